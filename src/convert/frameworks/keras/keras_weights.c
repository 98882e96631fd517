/* A weights file of Keras: a group for each layer, in it "vars" with numbered arrays and the
 * layer's name. The order of layers, which the optimizer's variables follow, is that of writing. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/keras/keras_file.h"

enum { DEPTH_MAX = 64 };

/* A group of variables. */
struct unit {
    const struct cm_hdf5_object *vars;
    struct cm_str class_name; /* what its layer's group is called: "dense_1" */
    struct cm_str layer;      /* the user's name of the layer */
    struct cm_str prefix;     /* of the names of its variables */
    uint64_t order;
};

struct reading {
    struct cm_saved *saved;
    const struct cm_hdf5_object *root, *optimizer;
    CM_ARRAY(struct unit) units;
    CM_ARRAY(struct cm_keras_weight) weights;
    struct cm_map layers; /* configurations of layers, by name: index + 1 */
    const struct cm_item *layer_list;
    struct cm_item *paths, *groups, *kept; /* for writing the same file again */
    struct cm_map names;
};

static struct cm_str name_attribute(const struct cm_hdf5_object *vars)
{
    const struct cm_hdf5_attribute *name = cm_hdf5_attribute(vars, "name");

    return name ? cm_item_text_or_none(name->value) : CM_STR_NONE;
}

static struct cm_str joined(struct cm_arena *arena, struct cm_str a, struct cm_str b)
{
    return !a.size   ? b
           : !b.size ? a
                     : cm_arena_printf(arena, "%.*s/%.*s", CM_STR_ALL(a), CM_STR_ALL(b));
}

/* The last address of a group: space that became free is used again, but not for all of it. */
static uint64_t last_address(const struct cm_hdf5_object *group)
{
    uint64_t last = group->address;

    for (size_t i = 0; i < group->children.count; i++)
        if (group->children.items[i]->address > last)
            last = group->children.items[i]->address;
    return last;
}

/* Layers that are attributes of another are written by name, but trained in the order in which that
 * made them: for those of Keras's own that is known. */
static uint64_t made_as(struct cm_str attribute)
{
    static const char *const order[] = {"forward_layer", "backward_layer", "query_dense",
                                        "key_dense",     "value_dense",    "output_dense"};

    return (uint64_t)(cm_str_place(attribute, order, CM_COUNT(order)) + 1);
}

/* above: the order of the layer that such attributes are of, 0 elsewhere. */
static void find_units(struct reading *r, const struct cm_hdf5_object *group, struct cm_str prefix,
                       uint64_t above, int depth)
{
    enum { PLACES = 12 }; /* bits for what is below such an attribute */
    const struct cm_hdf5_object *vars = cm_hdf5_child(group, "vars");
    const bool is_root = group == r->root;
    struct cm_str layer = vars ? name_attribute(vars) : CM_STR_NONE;
    uint64_t order = above;

    if (depth > DEPTH_MAX || group == r->optimizer)
        return;
    if (vars && vars->is_group) {
        const struct cm_hdf5_attribute *name = cm_hdf5_attribute(vars, "name");

        if (!layer.size && !is_root)
            layer = group->name;
        if (!is_root)
            prefix = joined(r->saved->arena, prefix, layer);
        if (!above)
            order = (name && name->written ? name->written : last_address(vars)) << (PLACES + 4);
        *CM_PUSH(r->saved->arena, &r->units) =
            (struct unit){.vars = vars,
                          .class_name = group->name,
                          .layer = layer,
                          .prefix = prefix,
                          .order = above ? above + r->units.count % (1 << PLACES) : order};
    }
    for (size_t i = 0; i < group->children.count; i++) {
        const struct cm_hdf5_object *child = group->children.items[i];
        const uint64_t place = vars && !above ? made_as(child->name) : 0;

        if (child != vars && child->is_group)
            find_units(r, child, prefix, place ? order + (place << PLACES) : above, depth + 1);
    }
}

static int by_order(const void *a, const void *b)
{
    const uint64_t x = ((const struct unit *)a)->order, y = ((const struct unit *)b)->order;

    return (x > y) - (x < y);
}

/* Layers of a Functional model have names of their own; elsewhere the model's comes before them.
 * Only Functional models list their inputs as layers. */
static struct cm_str model_prefix(const struct reading *r, const struct cm_item *config)
{
    const struct cm_hdf5_object *layers = cm_hdf5_child(r->root, "layers");
    struct cm_str kind;

    if (cm_item_is_text(cm_item_get(config, "class_name"), &kind) && cm_str_is(kind, "Functional"))
        return CM_STR_NONE;
    for (size_t i = 0; !config && layers && i < layers->children.count; i++)
        if (cm_str_starts(layers->children.items[i]->name, "input_layer"))
            return CM_STR_NONE;
    return name_attribute(cm_hdf5_child(r->root, "vars"));
}

static int by_number(const void *a, const void *b)
{
    const struct cm_str x = (*(const struct cm_hdf5_object *const *)a)->name;
    const struct cm_str y = (*(const struct cm_hdf5_object *const *)b)->name;

    return x.size != y.size ? (x.size > y.size) - (x.size < y.size) : cm_str_compare(x, y);
}

/* The arrays of a group of variables, by number. */
static const struct cm_hdf5_object **arrays_of(struct reading *r, const struct cm_hdf5_object *vars,
                                               size_t *count)
{
    const struct cm_hdf5_object **arrays =
        CM_NEW_ARRAY(r->saved->arena, const struct cm_hdf5_object *, vars->children.count + 1);

    *count = 0;
    for (size_t i = 0; i < vars->children.count; i++) {
        const struct cm_hdf5_object *child = vars->children.items[i];

        if (child->tensor)
            arrays[(*count)++] = child;
        else
            cm_saved_unknown(r->saved, "'/%.*s': an array of a type that is not read",
                             CM_STR_FMT(child->path));
    }
    if (*count)
        qsort(arrays, *count, sizeof *arrays, by_number);
    return arrays;
}

static const struct cm_item *layer_config(const struct reading *r, struct cm_str layer)
{
    const uint64_t found = cm_map_get(&r->layers, layer, 0);

    return found ? cm_item_get(cm_item_at(r->layer_list, (size_t)found - 1), "config") : NULL;
}

static void add_unit(struct reading *r, const struct unit *unit)
{
    struct cm_arena *arena = r->saved->arena;
    size_t count;
    const struct cm_hdf5_object **arrays = arrays_of(r, unit->vars, &count);
    const struct cm_item *config = layer_config(r, unit->layer);
    struct cm_shape *shapes = CM_NEW_ARRAY(arena, struct cm_shape, count + 1);
    struct cm_str *names = CM_NEW_ARRAY(arena, struct cm_str, count + 1);
    bool trainable = true;

    cm_item_set(arena, r->groups, cm_item_text(arena, unit->vars->path),
                cm_item_text(arena, unit->layer));
    for (size_t i = 0; i < count; i++)
        shapes[i] = arrays[i]->tensor->shape;
    (void)cm_item_is_bool(cm_item_get(config, "trainable"), &trainable);
    const size_t trained =
        cm_keras_name_variables(arena, unit->class_name, config, shapes, count, names);
    for (size_t i = 0; i < count; i++) {
        struct cm_saved_tensor *tensor = arrays[i]->tensor;
        const bool is_float = cm_dtype_is_float((int)tensor->dtype);
        struct cm_str name = joined(arena, unit->prefix, names[i]);

        if (!cm_map_add(&r->names, arena, name))
            name = arrays[i]->path;
        cm_saved_add(r->saved,
                     cm_str_is(names[i], "seed_generator_state") ? CM_SAVED_RANDOM
                     : !is_float                                 ? CM_SAVED_OTHER
                     : i < trained                               ? CM_SAVED_WEIGHT
                                                                 : CM_SAVED_BUFFER,
                     name, tensor);
        cm_item_set(arena, r->paths, cm_item_text(arena, arrays[i]->path),
                    cm_item_text(arena, name));
        const struct cm_item *kept = cm_keras_keep(arena, tensor);
        if (kept)
            cm_item_set(arena, r->kept, cm_item_text(arena, arrays[i]->path), kept);
        if (is_float)
            *CM_PUSH(arena, &r->weights) =
                (struct cm_keras_weight){name, tensor, i >= trained || !trainable};
    }
}

static void read_optimizer(struct reading *r, const struct cm_item *config)
{
    struct cm_saved *saved = r->saved;
    const struct cm_item *optimizer = cm_item_path(config, "compile_config.optimizer");
    const struct cm_hdf5_object *vars = cm_hdf5_child(r->optimizer, "vars");
    struct cm_str name = name_attribute(vars);
    size_t count;

    const struct cm_hdf5_object **arrays = arrays_of(r, vars, &count);
    struct cm_saved_tensor **tensors =
        CM_NEW_ARRAY(saved->arena, struct cm_saved_tensor *, count + 1);
    for (size_t i = 0; i < count; i++)
        tensors[i] = arrays[i]->tensor;
    cm_saved_add_group(saved);
    (void)cm_item_is_text(cm_item_get(optimizer, "class_name"), &name);
    cm_keras_set_optimizer(saved, name);
    cm_keras_take_variables(saved, tensors, count, r->weights.items, r->weights.count,
                            cm_item_get(optimizer, "config"));
    struct cm_plan_group *group = &saved->groups.items[0].settings;
    enum cm_update_rule rule;
    const struct cm_optimizer_keras *found = cm_keras_optimizer(saved->optimizer, &rule);
    if (!found || !found->decays)
        group->weight_decay = 0;
    group->decoupled = 1;
    cm_keras_configure(saved, optimizer);
}

enum cm_status cm_keras_read_weights(struct cm_saved *saved, const struct cm_hdf5_object *root,
                                     const struct cm_item *config, struct cm_error *err)
{
    struct cm_arena *arena = saved->arena;
    struct reading r = {.saved = saved,
                        .root = root,
                        .layer_list = cm_item_path(config, "config.layers"),
                        .paths = cm_item_new(arena, CM_ITEM_MAP),
                        .groups = cm_item_new(arena, CM_ITEM_MAP),
                        .kept = cm_item_new(arena, CM_ITEM_MAP)};
    const struct cm_hdf5_object *optimizer = cm_hdf5_child(root, "optimizer");
    struct cm_item *layout = cm_item_new(arena, CM_ITEM_MAP);

    if (cm_hdf5_child(optimizer, "vars"))
        r.optimizer = optimizer;
    for (size_t i = 0; i < cm_item_count(r.layer_list); i++) {
        const struct cm_item *layer = cm_item_at(r.layer_list, i);
        struct cm_str name;

        if (cm_item_is_text(cm_item_path(layer, "config.name"), &name))
            *cm_map_insert(&r.layers, arena, name, NULL) = i + 1;
    }
    find_units(&r, root, model_prefix(&r, config), 0, 0);
    if (r.units.count == 0)
        return cm_fail(err, CM_BAD_MODEL,
                       "it is an HDF5 file, but not one of Keras: no group has 'vars'");
    qsort(r.units.items, r.units.count, sizeof *r.units.items, by_order);
    for (size_t i = 0; i < r.units.count; i++)
        add_unit(&r, &r.units.items[i]);
    if (r.optimizer)
        read_optimizer(&r, config);
    cm_item_put(arena, layout, "groups", r.groups);
    cm_item_put(arena, layout, "variables", r.paths);
    if (cm_item_count(r.kept))
        cm_item_put(arena, layout, "kept", r.kept);
    if (r.optimizer)
        cm_item_put(arena, layout, "has_rate",
                    cm_item_bool(arena, r.saved->schedule_known == CM_SCHEDULE_NONE));
    if (r.optimizer)
        cm_item_put(arena, layout, "optimizer",
                    cm_item_text(arena, name_attribute(cm_hdf5_child(r.optimizer, "vars"))));
    cm_saved_tell(saved, "keras.layout", layout);
    return CM_OK;
}
