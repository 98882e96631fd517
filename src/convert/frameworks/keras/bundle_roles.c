/* What the variables of a TensorFlow checkpoint are, told by the objects that hold them: an object
 * with a counter of iterations is an optimizer; lists in it, the slots of Keras 2, or variables
 * that are called as weights elsewhere are its slots; the rest are weights. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/bundle.h"

#include "base/map.h"

struct naming {
    struct cm_arena *arena;
    const struct cm_bundle_graph *graph;
    const struct cm_shape **shapes; /* by node; NULL: no variable */
    struct cm_bundle_roles *roles;
    struct cm_map full_names; /* to the node, + 1; 0 where several have it */
};

static const char *const step_names[] = {"_iterations", "iterations", "iter"};
static const char *const rate_names[] = {"_learning_rate", "learning_rate"};
static const char *const setting_names[] = {"beta_1", "beta_2", "momentum", "rho", "decay"};

/* Lists of Keras's optimizers, with Keras's word for what is in them. */
static const struct {
    const char *list, *word;
} lists[] = {
    {"_momentums", "momentum"},
    {"momentums", "momentum"},
    {"_velocities", "velocity"},
    {"_velocity_hats", "velocity_hat"},
    {"_accumulators", "accumulator"},
    {"_average_gradients", "average_gradient"},
    {"_model_variables_moving_average", "average"},
    {"_accumulated_gradients", "gradient_accumulator"},
};

static size_t number_of(const struct naming *n, const struct cm_bundle_node *node)
{
    return (size_t)(node - n->graph->nodes);
}

/* The variable that is a child of one of these names, or NULL. */
static const struct cm_bundle_node *variable_in(const struct naming *n,
                                                const struct cm_bundle_node *node,
                                                const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cm_bundle_node *child = cm_bundle_child(n->graph, node, names[i]);

        if (child && n->shapes[number_of(n, child)])
            return child;
    }
    return NULL;
}

/* ---- names ---- */

static void count_names(struct naming *n)
{
    for (size_t i = 0; i < n->graph->count; i++) {
        const struct cm_str name = n->graph->nodes[i].full_name;
        bool added;

        if (!n->shapes[i] || !name.size)
            continue;
        uint64_t *node = cm_map_insert(&n->full_names, n->arena, name, &added);
        *node = added ? i + 1 : 0;
    }
}

/* The name that the variable itself has, if it is one of its own; else where the object is. */
static struct cm_str name_of(const struct naming *n, size_t i)
{
    const struct cm_bundle_node *node = &n->graph->nodes[i];

    if (cm_map_get(&n->full_names, node->full_name, 0) && !cm_str_is(node->full_name, "Variable") &&
        !cm_str_is(node->full_name, "ShardedVariable"))
        return node->full_name;
    if (node->path.size)
        return node->path;
    struct cm_str key = node->key;
    if (cm_str_ends(key, CM_BUNDLE_SUFFIX))
        key.size -= sizeof CM_BUNDLE_SUFFIX - 1;
    return key;
}

static void set_use(struct naming *n, const struct cm_bundle_node *node, enum cm_bundle_use use)
{
    if (node)
        n->roles->variables[number_of(n, node)].use = use;
}

static void set_slot(struct naming *n, size_t slot, size_t weight, struct cm_str word)
{
    struct cm_bundle_variable *variable = &n->roles->variables[slot];

    if (!n->shapes[slot] || !n->shapes[weight] || slot == weight)
        return;
    variable->use = cm_str_is(word, "average") ? CM_USE_AVERAGE : CM_USE_SLOT;
    variable->weight = weight;
    variable->slot = word;
}

/* ---- optimizers of Keras ---- */

static size_t *trained_by(struct naming *n, size_t *count)
{
    const struct cm_bundle_node *list =
        cm_bundle_child(n->graph, n->roles->optimizer, "_trainable_variables");
    const size_t most = list ? list->children.count : 0;
    size_t *nodes = CM_NEW_ARRAY(n->arena, size_t, most + 1);

    *count = 0;
    for (size_t i = 0; i < most; i++) {
        const struct cm_bundle_child *child = &list->children.items[i];
        int64_t at;

        if (!n->shapes[child->node] || !cm_str_to_int64(child->name, &at) || at < 0 ||
            (uint64_t)at >= most)
            continue;
        nodes[at] = child->node + 1;
        n->roles->variables[child->node].position = (size_t)at;
        *count = most;
    }
    return nodes;
}

static bool take_lists(struct naming *n)
{
    size_t count;
    const size_t *trained = trained_by(n, &count);

    for (size_t i = 0; i < CM_COUNT(lists); i++) {
        const struct cm_bundle_node *list =
            cm_bundle_child(n->graph, n->roles->optimizer, lists[i].list);

        for (size_t c = 0; list && c < list->children.count; c++) {
            const struct cm_bundle_child *child = &list->children.items[c];
            int64_t at;

            if (cm_str_to_int64(child->name, &at) && at >= 0 && (uint64_t)at < count && trained[at])
                set_slot(n, child->node, trained[at] - 1, cm_str(lists[i].word));
        }
    }
    return count > 0;
}

/* Keras 2.11 and later names a slot "Adam/m/dense/kernel". */
static bool take_named(struct naming *n)
{
    const struct cm_bundle_node *list =
        cm_bundle_child(n->graph, n->roles->optimizer, "_variables");
    bool found = false;

    for (size_t c = 0; list && c < list->children.count; c++) {
        const size_t node = list->children.items[c].node;
        const struct cm_str slot = cm_str_after_first(n->graph->nodes[node].full_name, '/');
        const struct cm_str weight = cm_str_after_first(slot, '/');
        const uint64_t owner = weight.data ? cm_map_get(&n->full_names, weight, 0) : 0;

        if (owner) {
            set_slot(n, node, (size_t)owner - 1, cm_str_before_first(slot, '/'));
            found = true;
        }
    }
    return found;
}

static bool take_slots(struct naming *n)
{
    const struct cm_bundle_node *optimizer = n->roles->optimizer;

    for (size_t i = 0; i < optimizer->slots.count; i++) {
        const struct cm_bundle_slot *slot = &optimizer->slots.items[i];
        set_slot(n, slot->slot, slot->weight, slot->name);
    }
    return optimizer->slots.count > 0;
}

/* ---- optimizers that somebody wrote ---- */

static bool is_below(struct cm_str path, struct cm_str above)
{
    return path.size > above.size && memcmp(path.data, above.data, above.size) == 0 &&
           path.data[above.size] == '/';
}

static bool try_weight(struct naming *n, const struct cm_map *weights, size_t slot,
                       struct cm_str path, struct cm_str word)
{
    const uint64_t *weight = path.size ? cm_map_find(weights, path) : NULL;

    if (!weight || !cm_shape_equal(n->shapes[*weight], n->shapes[slot]))
        return false;
    set_slot(n, slot, (size_t)*weight, word);
    return true;
}

/* "optimizer/fc/kernel" is a slot of "model/fc/kernel", and so are "optimizer/m/fc/kernel" and
 * "optimizer/fc/kernel/m", if their shapes agree. */
static void take_twins(struct naming *n)
{
    const struct cm_bundle_graph *graph = n->graph;
    const struct cm_str above = n->roles->optimizer->path;
    struct cm_map weights = {0};

    for (size_t i = 0; i < graph->count; i++) {
        const struct cm_str path = graph->nodes[i].path;

        if (n->shapes[i] && !is_below(path, above) && cm_str_after_first(path, '/').size)
            *cm_map_insert(&weights, n->arena, cm_str_after_first(path, '/'), NULL) = i;
    }
    for (size_t i = 0; i < graph->count && above.size; i++) {
        const struct cm_str path = graph->nodes[i].path;

        if (!n->shapes[i] || !is_below(path, above) || n->roles->variables[i].use != CM_USE_NONE)
            continue;
        const struct cm_str rest = cm_str_from(path, above.size + 1);
        if (!try_weight(n, &weights, i, rest, CM_STR("")) &&
            !try_weight(n, &weights, i, cm_str_after_first(rest, '/'),
                        cm_str_before_first(rest, '/')))
            (void)try_weight(n, &weights, i, cm_str_before_last(rest, '/'),
                             cm_str_after_last(rest, '/'));
    }
}

/* ---- all ---- */

static void take_optimizer(struct naming *n)
{
    const struct cm_bundle_node *optimizer = n->roles->optimizer;
    const struct cm_bundle_node *step = variable_in(n, optimizer, step_names, CM_COUNT(step_names));

    set_use(n, step, CM_USE_STEP);
    set_use(n, variable_in(n, optimizer, rate_names, CM_COUNT(rate_names)), CM_USE_RATE);
    for (size_t i = 0; i < CM_COUNT(setting_names); i++) /* Keras 2: settings are variables */
        if (cm_bundle_child(n->graph, optimizer, "iter"))
            set_use(n, variable_in(n, optimizer, &setting_names[i], 1), CM_USE_SETTING);
    n->roles->optimizer_name = cm_str_before_first(step->full_name, '/');
    if (take_slots(n) || take_lists(n) || take_named(n) ||
        cm_bundle_child(n->graph, optimizer, "_variables"))
        return;
    n->roles->by_hand = true;
    take_twins(n);
}

void cm_bundle_roles(struct cm_arena *arena, const struct cm_bundle_graph *graph,
                     cm_bundle_shape_fn *shape_of, const void *arg, struct cm_bundle_roles *out)
{
    struct naming n = {.arena = arena, .graph = graph, .roles = out};

    *out = (struct cm_bundle_roles){
        .variables = CM_NEW_ARRAY(arena, struct cm_bundle_variable, graph->count)};
    n.shapes = CM_NEW_ARRAY(arena, const struct cm_shape *, graph->count);
    for (size_t i = 0; i < graph->count; i++) {
        out->variables[i].position = SIZE_MAX;
        if (graph->nodes[i].key.size)
            n.shapes[i] = shape_of(arg, graph->nodes[i].key);
    }
    count_names(&n);
    for (size_t i = 0; i < graph->count; i++)
        if (variable_in(&n, &graph->nodes[i], step_names, CM_COUNT(step_names)) &&
            out->optimizers++ == 0)
            out->optimizer = &graph->nodes[i];
    if (out->optimizer)
        take_optimizer(&n);
    for (size_t i = 0; i < graph->count; i++) {
        struct cm_bundle_variable *variable = &out->variables[i];

        if (!n.shapes[i])
            variable->use = CM_USE_NONE;
        else if (variable->use == CM_USE_NONE)
            variable->use = n.shapes[i]->rank > 0 || variable->position != SIZE_MAX ? CM_USE_WEIGHT
                                                                                    : CM_USE_OTHER;
        variable->name = name_of(&n, variable->use == CM_USE_SLOT || variable->use == CM_USE_AVERAGE
                                         ? variable->weight
                                         : i);
    }
}
