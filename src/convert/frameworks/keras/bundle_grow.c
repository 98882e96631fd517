/* A graph of objects for a training that came from elsewhere.
 *
 * Weights are children of "model" by their names, and an optimizer is what Keras's are, lists of
 * variables; Keras finds the weights through the list of those it trains, and through its layers
 * where these are known. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/keras/bundle_parts.h"
#include "convert/frameworks/keras/keras_optimizer.h"

struct growing {
    CM_ARRAY(struct cm_bundle_node) nodes;
    struct cm_map paths; /* of nodes, to their number */
};

static size_t new_child(struct cm_bundle_writing *w, struct growing *g, size_t above,
                        struct cm_str name)
{
    *CM_PUSH(w->arena, &g->nodes) = (struct cm_bundle_node){0};
    const size_t node = g->nodes.count - 1;
    *CM_PUSH(w->arena, &g->nodes.items[above].children) = (struct cm_bundle_child){name, node};
    return node;
}

/* The child of that name, made where there is none. */
static size_t child_of(struct cm_bundle_writing *w, struct growing *g, size_t above,
                       struct cm_str name)
{
    const struct cm_bundle_node *node = &g->nodes.items[above];

    for (size_t i = 0; i < node->children.count; i++)
        if (cm_str_equal(node->children.items[i].name, name))
            return node->children.items[i].node;
    return new_child(w, g, above, name);
}

/* The object at a path below "model": parts are parted by '/', or by '.' where there is none. */
static size_t object_at(struct cm_bundle_writing *w, struct growing *g, size_t model,
                        struct cm_str name)
{
    const char part = memchr(name.data, '/', name.size) ? '/' : '.';
    size_t node = model, begin = 0;

    for (size_t i = 0; i <= name.size; i++) {
        if (i < name.size && name.data[i] != part)
            continue;
        bool added;
        uint64_t *found = cm_map_insert(&g->paths, w->arena, (struct cm_str){name.data, i}, &added);
        if (added)
            *found = new_child(w, g, node, (struct cm_str){name.data + begin, i - begin});
        node = (size_t)*found;
        begin = i + 1;
    }
    return node;
}

static void set_variable(struct cm_bundle_writing *w, struct growing *g, size_t node,
                         struct cm_str path, struct cm_str full_name,
                         const struct cm_saved_tensor *tensor)
{
    g->nodes.items[node].full_name = full_name;
    g->nodes.items[node].key = cm_arena_printf(w->arena, "%.*s" CM_BUNDLE_SUFFIX, CM_STR_ALL(path));
    cm_bundle_add(w, g->nodes.items[node].key, tensor);
}

static void add_child(struct cm_bundle_writing *w, struct growing *g, size_t above, size_t number,
                      size_t node)
{
    *CM_PUSH(w->arena, &g->nodes.items[above].children) =
        (struct cm_bundle_child){cm_arena_printf(w->arena, "%zu", number), node};
}

static enum cm_status grow_optimizer(struct cm_bundle_writing *w, struct growing *g, size_t model)
{
    const struct cm_saved *saved = w->saved;
    const struct cm_saved_group *group = &saved->groups.items[0];
    enum cm_update_rule rule;
    const struct cm_optimizer_keras *known = cm_keras_optimizer(saved->optimizer, &rule);
    const char *name = known ? known->word : "optimizer";
    struct cm_keras_run runs[5];

    if (saved->groups.count != 1)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "optimizers of Keras have one group of weights, this one has %zu",
                       saved->groups.count);
    const size_t optimizer = new_child(w, g, 0, CM_STR("optimizer"));
    const size_t variables = new_child(w, g, optimizer, CM_STR("_variables"));
    const size_t trained = new_child(w, g, optimizer, CM_STR("_trainable_variables"));
    const size_t step = new_child(w, g, optimizer, CM_STR("_iterations"));
    size_t n = 0;

    set_variable(w, g, step, CM_STR("optimizer/_iterations"),
                 cm_arena_printf(w->arena, "%s/iteration", name),
                 cm_bundle_scalar(w, CM_INT64, cm_bundle_step(saved)));
    add_child(w, g, variables, n++, step);
    bool has_rate = cm_keras_has_rate(saved);
    (void)cm_item_is_bool(cm_item_get(cm_saved_fact(saved, "keras.layout"), "has_rate"), &has_rate);
    if (has_rate) {
        const size_t rate = new_child(w, g, optimizer, CM_STR("_learning_rate"));
        set_variable(w, g, rate, CM_STR("optimizer/_learning_rate"),
                     cm_arena_printf(w->arena, "%s/learning_rate", name),
                     cm_bundle_scalar(w, CM_FLOAT, group->settings.lr));
        add_child(w, g, variables, n++, rate);
    }
    for (size_t i = 0; i < group->names.count; i++)
        add_child(w, g, trained, i, object_at(w, g, model, group->names.items[i]));
    const size_t n_runs = cm_keras_runs(saved, runs);
    for (size_t r = 0; r < n_runs; r++)
        for (size_t k = 0; k < CM_COUNT(runs[r].words) && runs[r].words[k]; k++) {
            const char *word = runs[r].words[k],
                       *meaning = cm_keras_meaning(saved->rule, cm_str(word));
            const size_t list = new_child(w, g, optimizer, cm_str(runs[r].lists[k]));
            size_t stride = 1;
            while (stride < CM_COUNT(runs[r].words) && runs[r].words[stride])
                stride++;

            for (size_t i = 0; i < group->names.count; i++) {
                const struct cm_str weight = group->names.items[i];
                const struct cm_saved_tensor *tensor =
                    cm_saved_tensor_of(&w->index, meaning ? meaning : word, weight);
                const size_t number = n + i * stride + k;
                if (!tensor)
                    return cm_fail(w->err, CM_NOT_FOUND, "'%.*s' has no %s", CM_STR_FMT(weight),
                                   word);
                const size_t node = new_child(w, g, list, cm_arena_printf(w->arena, "%zu", i));
                add_child(w, g, variables, number, node);
                set_variable(
                    w, g, node, cm_arena_printf(w->arena, "optimizer/_variables/%zu", number),
                    cm_arena_printf(w->arena, "%s/%.*s_%s", name, CM_STR_ALL(weight), word),
                    tensor);
            }
            if (k + 1 == stride)
                n += stride * group->names.count;
        }
    return CM_OK;
}

/* Where Keras's models have their layers: as attributes, or numbered in "_operations", of a
 * Sequential below "_functional" and behind the input. path is that in a weights file:
 * "layers/lstm/cell/vars/0". */
static void add_layer_variable(struct cm_bundle_writing *w, struct growing *g, size_t model,
                               const struct cm_map *layers, bool is_sequential, struct cm_str path,
                               struct cm_str name)
{
    struct cm_str rest = path;
    size_t node = model;
    const char *parts[3] = {is_sequential ? "_functional" : "_operations",
                            is_sequential ? "_operations" : NULL, NULL};

    if (cm_str_starts(path, "layers/")) {
        const char *end = memchr(path.data + 7, '/', path.size - 7);
        const struct cm_str layer = {path.data, end ? (size_t)(end - path.data) : path.size};
        const uint64_t number = cm_map_get(layers, layer, UINT64_MAX);

        if (!end || number == UINT64_MAX)
            return;
        for (size_t i = 0; parts[i]; i++)
            node = child_of(w, g, node, cm_str(parts[i]));
        node = child_of(
            w, g, node,
            cm_arena_printf(w->arena, "%llu", (unsigned long long)(number + is_sequential)));
        rest = (struct cm_str){end + 1, path.size - (size_t)(end + 1 - path.data)};
    }
    for (size_t at = 0, i = 0; i < rest.size; i++)
        if (rest.data[i] == '/') {
            const struct cm_str part = {rest.data + at, i - at};

            if (cm_str_is(part, "vars"))
                break;
            node = child_of(w, g, node, part);
            at = i + 1;
        }
    const struct cm_str own = cm_str_after_last(name, '/');
    const size_t variable = object_at(w, g, model, name);
    const struct cm_str hidden = cm_arena_printf(w->arena, "_%.*s", CM_STR_ALL(own));
    *CM_PUSH(w->arena, &g->nodes.items[node].children) = (struct cm_bundle_child){own, variable};
    *CM_PUSH(w->arena, &g->nodes.items[node].children) = (struct cm_bundle_child){hidden, variable};
}

static void add_layers(struct cm_bundle_writing *w, struct growing *g, size_t model)
{
    const struct cm_item *layout = cm_saved_fact(w->saved, "keras.layout");
    const struct cm_item *groups = cm_item_get(layout, "groups");
    const struct cm_item *variables = cm_item_get(layout, "variables");
    struct cm_map layers = {0};
    bool is_sequential = true;
    struct cm_str path, name;

    for (size_t i = 0; i < cm_item_count(groups); i++) {
        if (!cm_item_is_text(groups->entries.items[i].key, &path) ||
            !cm_str_starts(path, "layers/") || !cm_str_ends(path, "/vars"))
            continue;
        const struct cm_str layer = {path.data, path.size - 5};
        if (memchr(layer.data + 7, '/', layer.size - 7))
            continue;
        is_sequential &= !cm_str_starts(layer, "layers/input_layer");
        const uint64_t number = layers.count;
        *cm_map_insert(&layers, w->arena, layer, NULL) = number;
    }
    for (size_t i = 0; i < cm_item_count(variables); i++)
        if (cm_item_is_text(variables->entries.items[i].key, &path) &&
            cm_item_is_text(variables->entries.items[i].value, &name) && name.size &&
            cm_saved_tensor_of(&w->index, "", name))
            add_layer_variable(w, g, model, &layers, is_sequential, path, name);
}

enum cm_status cm_bundle_grow(struct cm_bundle_writing *w, struct cm_bundle_graph *graph)
{
    const struct cm_saved *saved = w->saved;
    struct growing g = {0};

    *CM_PUSH(w->arena, &g.nodes) = (struct cm_bundle_node){0};
    const size_t model = new_child(w, &g, 0, CM_STR("model"));
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];

        if ((entry->role != CM_SAVED_WEIGHT && entry->role != CM_SAVED_BUFFER) || !entry->name.size)
            continue;
        const size_t node = object_at(w, &g, model, entry->name);
        if (!g.nodes.items[node].key.size)
            set_variable(w, &g, node,
                         cm_arena_printf(w->arena, "model/%.*s", CM_STR_ALL(entry->name)),
                         entry->name, cm_saved_tensor_of(&w->index, "", entry->name));
    }
    add_layers(w, &g, model);
    if (saved->has_optimizer && saved->groups.count)
        CM_TRY(grow_optimizer(w, &g, model));
    const size_t counter = new_child(w, &g, 0, CM_STR("save_counter"));
    set_variable(w, &g, counter, CM_STR("save_counter"), CM_STR("save_counter"),
                 cm_bundle_scalar(w, CM_INT64, 1));
    *graph = (struct cm_bundle_graph){g.nodes.items, g.nodes.count};
    return CM_OK;
}
