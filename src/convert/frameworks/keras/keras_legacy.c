/* The older .h5 files of Keras: layers and their weights by name, in lists of names. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/keras/keras_file.h"

#include "base/map.h"

/* A list of names in an attribute; a long one is cut into name0, name1, .. */
static struct cm_item *names_in(struct cm_arena *arena, const struct cm_hdf5_object *object,
                                const char *key)
{
    struct cm_item *all = cm_item_new(arena, CM_ITEM_LIST);
    const struct cm_hdf5_attribute *part = cm_hdf5_attribute(object, key);

    for (size_t n = 0;; n++) {
        const struct cm_item *names = part ? part->value : NULL;

        for (size_t i = 0; i < cm_item_count(names); i++)
            cm_item_append(arena, all, cm_item_at(names, i));
        if (part && n == 0)
            return all;
        part = cm_hdf5_attribute(object, cm_arena_printf(arena, "%s%zu", key, n).data);
        if (!part)
            return all;
    }
}

/* "dense/kernel:0" is the variable "dense/kernel". */
static struct cm_str plain(struct cm_str name)
{
    if (cm_str_ends(name, ":0"))
        name.size -= 2;
    return name;
}

struct reading {
    struct cm_saved *saved;
    CM_ARRAY(struct cm_keras_weight) weights;
    struct cm_map owners; /* of slots: names of weights, as slots spell them, to the weight */
};

static void add_owner(struct reading *r, struct cm_str spelled, size_t weight)
{
    *cm_map_insert(&r->owners, r->saved->arena, spelled, NULL) = weight;
}

static void add_layer(struct reading *r, const struct cm_hdf5_object *layer)
{
    static const char *const buffers[] = {"moving_mean", "moving_variance", "seed_generator_state"};
    struct cm_arena *arena = r->saved->arena;
    const struct cm_item *names = names_in(arena, layer, "weight_names");

    for (size_t i = 0; i < cm_item_count(names); i++) {
        struct cm_str path = CM_STR_NONE;
        bool is_buffer = false;

        if (!cm_item_is_text(cm_item_at(names, i), &path))
            continue;
        const struct cm_hdf5_object *array = cm_hdf5_find(layer, path);
        if (!array || !array->tensor) {
            cm_saved_unknown(r->saved, "weight '%.*s' of layer '%.*s' is listed, but not there",
                             CM_STR_FMT(path), CM_STR_FMT(layer->name));
            continue;
        }
        const struct cm_str name = plain(path);
        for (size_t b = 0; b < CM_COUNT(buffers); b++)
            is_buffer |= cm_str_ends(name, buffers[b]);
        char *spelled = cm_arena_alloc(arena, name.size + 1);
        for (size_t c = 0; c < name.size; c++)
            spelled[c] = name.data[c] == '/' ? '_' : name.data[c];
        add_owner(r, (struct cm_str){spelled, name.size}, r->weights.count);
        add_owner(r, name, r->weights.count);
        *CM_PUSH(arena, &r->weights) = (struct cm_keras_weight){name, array->tensor, is_buffer};
        cm_saved_add(r->saved, is_buffer ? CM_SAVED_BUFFER : CM_SAVED_WEIGHT, name, array->tensor);
    }
}

/* "adam/dense_kernel_momentum" (Keras 3) and "Adam/dense/kernel/m" (Keras 2) are slots of
 * "dense/kernel". */
static bool add_slot(struct reading *r, struct cm_str name, struct cm_saved_tensor *tensor)
{
    const struct cm_str rest = cm_str_after_first(name, '/');

    for (size_t at = rest.size; at-- > 1;) {
        const struct cm_str weight = {rest.data, at}, word = cm_str_from(rest, at + 1);
        const uint64_t *owner;

        if ((rest.data[at] != '/' && rest.data[at] != '_') ||
            !(owner = cm_map_find(&r->owners, weight)))
            continue;
        const struct cm_keras_weight *found = &r->weights.items[*owner];
        if (!cm_shape_equal(&found->tensor->shape, &tensor->shape))
            continue;
        cm_saved_add_slot(r->saved, found->name, word, cm_keras_meaning(r->saved->rule, word),
                          tensor);
        return true;
    }
    return false;
}

static void add_variable(struct reading *r, struct cm_str name, struct cm_saved_tensor *tensor)
{
    struct cm_plan_group *group = &r->saved->groups.items[0].settings;
    double value;

    if ((cm_str_ends(name, "/iteration") || cm_str_ends(name, "/iter")) &&
        cm_saved_tensor_number(tensor, &value) && value >= 0 && value < 1e18)
        r->saved->step = (int64_t)value;
    else if (cm_str_ends(name, "/learning_rate") && cm_saved_tensor_number(tensor, &value))
        group->lr = group->initial_lr = value;
    else if (!add_slot(r, name, tensor)) {
        cm_saved_add(r->saved, CM_SAVED_OTHER, name, tensor);
        cm_saved_unknown(r->saved, "variable '%.*s' of the optimizer", CM_STR_FMT(name));
    }
}

static void read_optimizer(struct reading *r, const struct cm_hdf5_object *group,
                           const struct cm_item *config)
{
    struct cm_saved *saved = r->saved;
    const struct cm_item *names = names_in(saved->arena, group, "weight_names");

    cm_saved_add_group(saved);
    cm_keras_set_optimizer(saved, cm_item_get_text(config, "class_name"));
    for (size_t i = 0; i < cm_item_count(names); i++) {
        const struct cm_str path = cm_item_text_or_none(cm_item_at(names, i));
        const struct cm_hdf5_object *array = path.size ? cm_hdf5_find(group, path) : NULL;
        if (array && array->tensor)
            add_variable(r, plain(path), array->tensor);
    }
    for (size_t i = 0; i < r->weights.count; i++)
        if (!r->weights.items[i].is_frozen)
            *CM_PUSH(saved->arena, &saved->groups.items[0].names) = r->weights.items[i].name;
    cm_keras_configure(saved, config);
}

enum cm_status cm_keras_read_legacy(struct cm_saved *saved, const struct cm_hdf5_object *root,
                                    struct cm_error *err)
{
    struct reading r = {.saved = saved};
    const struct cm_hdf5_object *weights = cm_hdf5_child(root, "model_weights");
    const struct cm_hdf5_object *group = weights ? weights : root;
    const struct cm_hdf5_object *optimizer = cm_hdf5_child(root, "optimizer_weights");
    const struct cm_item *layers = names_in(saved->arena, group, "layer_names");
    static const char *const configs[] = {"model_config", "training_config"};
    struct cm_item *parsed[2] = {NULL, NULL};

    for (size_t i = 0; i < CM_COUNT(configs); i++) {
        const struct cm_hdf5_attribute *attribute = cm_hdf5_attribute(root, configs[i]);
        struct cm_str text;

        if (!attribute || !cm_item_is_text(attribute->value, &text))
            continue;
        CM_TRY(cm_error_context(err, cm_item_parse_json(saved->arena, text, &parsed[i], err),
                                "attribute '%s'", configs[i]));
        cm_saved_tell(saved, i ? "keras.training_config" : "keras.config", parsed[i]);
    }
    const struct cm_hdf5_attribute *version = cm_hdf5_attribute(group, "keras_version");
    if (version)
        saved->version = cm_item_text_or_none(version->value);
    for (size_t i = 0; i < cm_item_count(layers); i++) {
        const struct cm_str name = cm_item_text_or_none(cm_item_at(layers, i));
        const struct cm_hdf5_object *layer = name.size ? cm_hdf5_find(group, name) : NULL;
        if (layer)
            add_layer(&r, layer);
    }
    if (optimizer)
        read_optimizer(&r, optimizer, cm_item_get(parsed[1], "optimizer_config"));
    return saved->entries.count
               ? CM_OK
               : cm_fail(err, CM_BAD_MODEL, "it is an HDF5 file, but has no weights of Keras");
}
