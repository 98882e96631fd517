/* A .weights.h5 file that Keras loads: weights under the classes of their layers, and the
 * optimizer's variables by number. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/keras/keras_file.h"

#include "base/map.h"
#include "base/memory.h"

struct writing {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    CM_ARRAY(struct cm_hdf5_output) outputs;
    struct cm_saved_index index;
    struct cm_error *err;
};

static void add(struct writing *w, struct cm_str path, const struct cm_saved_tensor *tensor,
                struct cm_str name)
{
    *CM_PUSH(w->arena, &w->outputs) = (struct cm_hdf5_output){path, tensor, name};
}

static void add_array(struct writing *w, struct cm_str path, const struct cm_saved_tensor *tensor)
{
    add(w, path, tensor, tensor->dtype == CM_BFLOAT16 ? CM_STR("bfloat16") : CM_STR_NONE);
}

/* ---- as the file was that it came from ---- */

static enum cm_status add_as_before(struct writing *w, const struct cm_item *layout)
{
    const struct cm_item *groups = cm_item_get(layout, "groups");
    const struct cm_item *variables = cm_item_get(layout, "variables");
    const struct cm_item *kept = cm_item_get(layout, "kept");
    size_t used = 0, weights = 0;

    for (size_t i = 0; i < cm_item_count(groups); i++) {
        const struct cm_str path = cm_item_text_or_none(groups->entries.items[i].key);
        const struct cm_str name = cm_item_text_or_none(groups->entries.items[i].value);
        add(w, path, NULL, name);
    }
    for (size_t i = 0; i < cm_item_count(variables); i++) {
        const struct cm_str path = cm_item_text_or_none(variables->entries.items[i].key);
        const struct cm_str name = cm_item_text_or_none(variables->entries.items[i].value);
        const struct cm_saved_entry *entry = cm_saved_entry(&w->index, "", name);
        const struct cm_saved_tensor *tensor =
            entry ? entry->tensor
                  : cm_keras_kept(w->arena, cm_item_get(kept, cm_arena_str(w->arena, path).data));
        if (!tensor)
            return cm_fail(w->err, CM_NOT_FOUND, "weight '%.*s' is missing", CM_STR_FMT(name));
        used += entry && entry->role != CM_SAVED_OTHER && entry->role != CM_SAVED_RANDOM;
        add_array(w, path, tensor);
    }
    for (size_t i = 0; i < w->saved->entries.count; i++)
        weights += w->saved->entries.items[i].role == CM_SAVED_WEIGHT ||
                   w->saved->entries.items[i].role == CM_SAVED_BUFFER;
    if (used < weights)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "%zu weights are not in the layers that Keras had: they were added since",
                       weights - used);
    return CM_OK;
}

/* ---- from names alone ---- */

/* The name that all layers begin with: the model's. */
static struct cm_str common_model(const struct writing *w)
{
    struct cm_str model = CM_STR_NONE;

    for (size_t i = 0; i < w->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &w->saved->entries.items[i];
        const struct cm_str layer = cm_str_before_last(entry->name, '/');
        const char *slash = layer.size ? memchr(layer.data, '/', layer.size) : NULL;

        if (entry->role != CM_SAVED_WEIGHT && entry->role != CM_SAVED_BUFFER)
            continue;
        if (!slash)
            return CM_STR_NONE;
        const struct cm_str first = {layer.data, (size_t)(slash - layer.data)};
        if (model.size && !cm_str_equal(model, first))
            return CM_STR_NONE;
        model = first;
    }
    return model;
}

/* The order in which a layer stores its variables. */
static int rank_of(struct cm_str name)
{
    static const char *const order[] = {"kernel",
                                        "depthwise_kernel",
                                        "pointwise_kernel",
                                        "embeddings",
                                        "recurrent_kernel",
                                        "gamma",
                                        "beta",
                                        "bias",
                                        "moving_mean",
                                        "moving_variance"};

    const int place = cm_str_place(name, order, CM_COUNT(order));
    return place < 0 ? (int)CM_COUNT(order) : place;
}

struct layer {
    struct cm_str name;
    const struct cm_saved_entry *variables[8];
    size_t count;
};

static enum cm_status add_layer(struct writing *w, struct cm_map *classes, struct layer *layer,
                                struct cm_str model)
{
    struct cm_str names[8], path;
    struct cm_shape shapes[8];
    bool is_cell, added;

    for (size_t i = 1; i < layer->count; i++) /* few: put in order by insertion */
        for (size_t k = i;
             k > 0 && rank_of(cm_str_after_last(layer->variables[k]->name, '/')) <
                          rank_of(cm_str_after_last(layer->variables[k - 1]->name, '/'));
             k--) {
            const struct cm_saved_entry *swapped = layer->variables[k];
            layer->variables[k] = layer->variables[k - 1];
            layer->variables[k - 1] = swapped;
        }
    for (size_t i = 0; i < layer->count; i++) {
        names[i] = cm_str_after_last(layer->variables[i]->name, '/');
        shapes[i] = layer->variables[i]->tensor->shape;
    }
    const char *class_name = cm_keras_guess_class(names, shapes, layer->count, &is_cell);
    size_t depth = 0;
    for (size_t i = model.size ? model.size + 1 : 0; i < layer->name.size; i++)
        depth += layer->name.data[i] == '/';
    if (class_name && depth > is_cell)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "'%.*s' is a layer inside of another whose class is not known; export "
                       "tensorflow instead",
                       CM_STR_FMT(layer->name));
    if (!class_name)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "'%.*s' has variables that no layer of Keras has; export tensorflow "
                       "instead, or --map names to those of Keras",
                       CM_STR_FMT(layer->name));
    uint64_t *seen = cm_map_insert(classes, w->arena, cm_str(class_name), &added);
    path = added ? cm_arena_printf(w->arena, "layers/%s", class_name)
                 : cm_arena_printf(w->arena, "layers/%s_%llu", class_name,
                                   (unsigned long long)++*seen);
    struct cm_str own = cm_str_after_last(layer->name, '/');
    if (is_cell) { /* "lstm/lstm_cell/kernel" */
        add(w, cm_arena_printf(w->arena, "%.*s/vars", CM_STR_ALL(path)), NULL,
            cm_str_after_last(cm_str_before_last(layer->name, '/'), '/'));
        path = cm_arena_printf(w->arena, "%.*s/cell", CM_STR_ALL(path));
    }
    path = cm_arena_printf(w->arena, "%.*s/vars", CM_STR_ALL(path));
    add(w, path, NULL, own);
    for (size_t i = 0; i < layer->count; i++)
        add_array(w, cm_arena_printf(w->arena, "%.*s/%zu", CM_STR_ALL(path), i),
                  layer->variables[i]->tensor);
    return CM_OK;
}

static enum cm_status add_by_names(struct writing *w)
{
    struct {
        CM_ARRAY(struct layer);
    } layers = {0};
    struct cm_map places = {0}, classes = {0};
    const struct cm_str model = common_model(w);

    add(w, CM_STR("vars"), NULL, model.size ? model : CM_STR("functional"));
    for (size_t i = 0; i < w->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &w->saved->entries.items[i];
        bool added;

        if (entry->role != CM_SAVED_WEIGHT && entry->role != CM_SAVED_BUFFER)
            continue;
        const struct cm_str name = cm_str_before_last(entry->name, '/');
        uint64_t *place = cm_map_insert(&places, w->arena, name, &added);
        if (added) {
            *place = layers.count;
            *CM_PUSH(w->arena, &layers) = (struct layer){.name = name};
        }
        struct layer *layer = &layers.items[*place];
        if (layer->count == CM_COUNT(layer->variables))
            return cm_fail(w->err, CM_UNSUPPORTED, "layer '%.*s' has too many variables",
                           CM_STR_FMT(name));
        const struct cm_saved_entry *best = cm_saved_entry(&w->index, "", entry->name);
        layer->variables[layer->count++] = best ? best : entry;
    }
    for (size_t i = 0; i < layers.count; i++)
        CM_TRY(add_layer(w, &classes, &layers.items[i], model));
    return CM_OK;
}

/* ---- the optimizer ---- */

static enum cm_status add_optimizer(struct writing *w, struct cm_str name, bool has_rate)
{
    const struct cm_saved *saved = w->saved;
    const struct cm_saved_group *group = &saved->groups.items[0];
    enum cm_update_rule rule;
    const struct cm_optimizer_keras *known = cm_keras_optimizer(saved->optimizer, &rule);
    const int64_t step =
        (saved->step < 0 ? 0 : saved->step) * (saved->accumulate > 1 ? saved->accumulate : 1);
    struct cm_keras_run runs[5];
    size_t n = 0;

    if (saved->groups.count != 1)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "optimizers of Keras have one group of weights, this one has %zu",
                       saved->groups.count);
    if (!name.size)
        name = known ? cm_str(known->word) : CM_STR("optimizer");
    add(w, CM_STR("optimizer/vars"), NULL, name);
    add_array(w, cm_arena_printf(w->arena, "optimizer/vars/%zu", n++),
              cm_saved_int(w->arena, step));
    if (has_rate)
        add_array(w, cm_arena_printf(w->arena, "optimizer/vars/%zu", n++),
                  cm_saved_scalar(w->arena, CM_FLOAT, group->settings.lr));
    const size_t n_runs = cm_keras_runs(saved, runs);
    for (size_t r = 0; r < n_runs; r++)
        for (size_t i = 0; i < group->names.count; i++)
            for (size_t k = 0; k < CM_COUNT(runs[r].words) && runs[r].words[k]; k++) {
                const struct cm_str word = cm_str(runs[r].words[k]);
                const char *meaning = cm_keras_meaning(saved->rule, word);
                const struct cm_str weight = group->names.items[i];
                const struct cm_saved_tensor *slot =
                    cm_saved_tensor_of(&w->index, meaning ? meaning : runs[r].words[k], weight);

                if (!slot)
                    return cm_fail(w->err, CM_NOT_FOUND, "'%.*s' has no %.*s", CM_STR_FMT(weight),
                                   CM_STR_FMT(word));
                add_array(w, cm_arena_printf(w->arena, "optimizer/vars/%zu", n++), slot);
            }
    return CM_OK;
}

/* ---- the file ---- */

static enum cm_status write_outputs(void *arg, struct cm_save *save, struct cm_error *err)
{
    const struct writing *w = arg;

    return cm_hdf5_write(w->arena, save, w->outputs.items, w->outputs.count, err);
}

enum cm_status cm_keras_write_weights(const struct cm_saved *saved, const char *path,
                                      struct cm_error *err)
{
    struct writing w = {.arena = saved->arena, .saved = saved, .err = err};
    const struct cm_item *layout = cm_saved_fact(saved, "keras.layout");
    bool has_rate = cm_keras_has_rate(saved);
    const struct cm_str name = cm_item_get_text(layout, "optimizer");

    w.index = cm_saved_index(w.arena, saved);
    (void)cm_item_is_bool(cm_item_get(layout, "has_rate"), &has_rate);
    CM_TRY(layout ? add_as_before(&w, layout) : add_by_names(&w));
    if (saved->has_optimizer && saved->groups.count)
        CM_TRY(add_optimizer(&w, name, has_rate));
    return cm_saved_write_file(saved, path, write_outputs, &w, err);
}
