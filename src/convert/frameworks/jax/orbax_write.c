/* Writing folders of Orbax: an array is a folder with one chunk that is not compressed, as
 * PyTreeCheckpointHandler(use_ocdbt=False) has them; every version restores that. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/orbax.h"

#include "base/folder_save.h"
#include "bytes/numpy_types.h"
#include "convert/frameworks/jax/flax_state.h"

struct orbax_writer {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    struct cm_folder_save *folder;
    const struct cm_item *tree;
    struct cm_item *metadata; /* entries of tree_metadata */
    struct cm_error *err;
};

static bool is_sequence(const struct cm_item *map)
{
    for (size_t i = 0; i < map->entries.count; i++) {
        char index[24];

        snprintf(index, sizeof index, "%zu", i);
        if (map->kind == CM_ITEM_MAP && !cm_str_is(map->entries.items[i].key->text, index))
            return false;
    }
    return map->entries.count > 0;
}

static struct cm_item *list_of(struct cm_arena *arena, const struct cm_shape *shape)
{
    return cm_item_ints(arena, shape->dims, (size_t)shape->rank);
}

static enum cm_status put_json(struct orbax_writer *w, const char *name, const struct cm_item *item)
{
    return cm_saved_put_json(w->saved, w->folder, name, item, w->err);
}

static enum cm_status write_chunk(void *tensor, struct cm_save *save, struct cm_error *err)
{
    return cm_saved_tensor_write(save, tensor, err);
}

static enum cm_status put_chunk(struct orbax_writer *w, struct cm_str name,
                                const struct cm_saved_tensor *tensor)
{
    struct cm_str key = cm_arena_printf(w->arena, "%.*s/0", CM_STR_ALL(name));

    if (cm_shape_elements(&tensor->shape) == 0)
        return CM_OK;
    for (int d = 1; d < tensor->shape.rank; d++)
        key = cm_arena_printf(w->arena, "%.*s.0", CM_STR_ALL(key));
    return cm_saved_put_file(w->saved, w->folder, cm_str_text(key), write_chunk, (void *)tensor,
                             w->err);
}

static enum cm_status put_array(struct orbax_writer *w, struct cm_str name,
                                const struct cm_saved_tensor *tensor)
{
    struct cm_item *is = cm_item_new(w->arena, CM_ITEM_MAP);
    const char *code = cm_numpy_code(tensor->dtype);
    struct cm_shape chunk = tensor->shape;

    if (!code)
        return cm_fail(w->err, CM_UNSUPPORTED, "NumPy has no type for arrays of %s",
                       cm_dtype_name(tensor->dtype));
    for (int d = 0; d < chunk.rank; d++)
        chunk.dims[d] += chunk.dims[d] == 0;
    cm_item_put(w->arena, is, "chunks", list_of(w->arena, &chunk));
    cm_item_put(w->arena, is, "compressor", &cm_item_none);
    cm_item_put(w->arena, is, "dimension_separator", cm_item_text(w->arena, CM_STR(".")));
    cm_item_put(w->arena, is, "dtype", cm_item_text(w->arena, cm_str(code)));
    cm_item_put(w->arena, is, "fill_value", &cm_item_none);
    cm_item_put(w->arena, is, "filters", &cm_item_none);
    cm_item_put(w->arena, is, "order", cm_item_text(w->arena, CM_STR("C")));
    cm_item_put(w->arena, is, "shape", list_of(w->arena, &tensor->shape));
    cm_item_put(w->arena, is, "zarr_format", cm_item_int(w->arena, 2));
    CM_TRY(put_json(w, cm_arena_printf(w->arena, "%.*s/.zarray", CM_STR_ALL(name)).data, is));
    return put_chunk(w, name, tensor);
}

/* An entry of _METADATA: the keys that lead there, and what is there. */
static void list_leaf(struct orbax_writer *w, const struct cm_item *keys,
                      const struct cm_item *value)
{
    struct cm_arena *arena = w->arena;
    struct cm_item *entry = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *about = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_str name = CM_STR("(");
    const bool is_array = value->kind == CM_ITEM_TENSOR;
    const size_t count = cm_item_count(keys);

    for (size_t i = 0; i < count; i++) {
        const struct cm_str key = cm_item_get(cm_item_at(keys, i), "key")->text;

        name = cm_arena_printf(arena, "%.*s%s'%.*s'%s", CM_STR_ALL(name), i ? ", " : "",
                               CM_STR_ALL(key), count == 1 ? "," : "");
    }
    cm_item_put(arena, about, "value_type",
                cm_item_text(arena, is_array ? CM_STR("np.ndarray") : CM_STR("None")));
    cm_item_put(arena, about, "skip_deserialize", cm_item_bool(arena, !is_array));
    if (is_array)
        cm_item_put(arena, about, "write_shape", list_of(arena, &value->tensor->shape));
    cm_item_put(arena, entry, "key_metadata", keys);
    cm_item_put(arena, entry, "value_metadata", about);
    cm_item_set(arena, w->metadata,
                cm_item_text(arena, cm_arena_printf(arena, "%.*s)", CM_STR_ALL(name))), entry);
}

/* Plain numbers as arrays without axes, as Orbax has them. */
static const struct cm_item *as_array(struct orbax_writer *w, const struct cm_item *value)
{
    switch (value->kind) {
    case CM_ITEM_BOOL:
        return cm_item_tensor(w->arena, cm_saved_int(w->arena, value->truth));
    case CM_ITEM_INT:
        return cm_item_tensor(w->arena, cm_saved_int(w->arena, value->number));
    case CM_ITEM_REAL:
        return cm_item_tensor(w->arena, cm_saved_scalar(w->arena, CM_DOUBLE, value->real));
    default:
        return value;
    }
}

static enum cm_status put_tree(struct orbax_writer *w, const struct cm_item *tree,
                               struct cm_str name, const struct cm_item *keys, int depth)
{
    const bool is_tree = tree->kind == CM_ITEM_MAP || tree->kind == CM_ITEM_LIST;

    if (depth > CM_ITEM_DEPTH_MAX)
        return cm_fail(w->err, CM_LIMIT, "the tree is nested too deep");
    if (!is_tree || !tree->entries.count) {
        tree = as_array(w, tree);
        if (tree->kind == CM_ITEM_TEXT || tree->kind == CM_ITEM_BYTES ||
            tree->kind == CM_ITEM_OBJECT)
            return cm_fail(w->err, CM_UNSUPPORTED,
                           "'%.*s' is neither a number nor an array, and Orbax has no place for it",
                           CM_STR_FMT(name));
        list_leaf(w, keys, tree);
        return tree->kind == CM_ITEM_TENSOR ? put_array(w, name, tree->tensor) : CM_OK;
    }
    const int kind = is_sequence(tree) ? CM_ORBAX_SEQUENCE : CM_ORBAX_MAP;
    for (size_t i = 0; i < tree->entries.count; i++) {
        const struct cm_str text = cm_item_key(w->arena, tree, i);
        struct cm_item *path = cm_item_new(w->arena, CM_ITEM_LIST);
        struct cm_item *about = cm_item_new(w->arena, CM_ITEM_MAP);

        for (size_t k = 0; k < cm_item_count(keys); k++)
            cm_item_append(w->arena, path, cm_item_at(keys, k));
        cm_item_put(w->arena, about, "key", cm_item_text(w->arena, text));
        cm_item_put(w->arena, about, "key_type", cm_item_int(w->arena, kind));
        cm_item_append(w->arena, path, about);
        CM_TRY(put_tree(w, tree->entries.items[i].value,
                        cm_arena_printf(w->arena, "%.*s%s%.*s", CM_STR_ALL(name),
                                        name.size ? "." : "", CM_STR_ALL(text)),
                        path, depth + 1));
    }
    return CM_OK;
}

static enum cm_status put_metadata(struct orbax_writer *w)
{
    const struct cm_item *settings = cm_orbax_settings(w->arena, w->saved);
    struct cm_item *metadata = cm_item_new(w->arena, CM_ITEM_MAP);
    struct cm_item *checkpoint = cm_item_new(w->arena, CM_ITEM_MAP);

    cm_item_put(w->arena, metadata, "tree_metadata", w->metadata);
    cm_item_put(w->arena, metadata, "use_ocdbt", cm_item_bool(w->arena, false));
    cm_item_put(w->arena, metadata, "use_zarr3", cm_item_bool(w->arena, false));
    cm_item_put(w->arena, metadata, "store_array_data_equal_to_fill_value",
                cm_item_bool(w->arena, true));
    cm_item_put(w->arena, metadata, "custom_metadata", settings ? settings : &cm_item_none);
    CM_TRY(put_json(w, "_METADATA", metadata));
    cm_item_put(
        w->arena, checkpoint, "item_handlers",
        cm_item_text(w->arena, CM_STR("orbax.checkpoint._src.handlers.standard_checkpoint_handler."
                                      "StandardCheckpointHandler")));
    cm_item_put(w->arena, checkpoint, "metrics", cm_item_new(w->arena, CM_ITEM_MAP));
    cm_item_put(w->arena, checkpoint, "performance_metrics", cm_item_new(w->arena, CM_ITEM_MAP));
    /* Times of which nobody asks anything; without them a folder counts as not finished. */
    cm_item_put(w->arena, checkpoint, "init_timestamp_nsecs", cm_item_int(w->arena, 1));
    cm_item_put(w->arena, checkpoint, "commit_timestamp_nsecs", cm_item_int(w->arena, 2));
    cm_item_put(w->arena, checkpoint, "custom_metadata", cm_item_new(w->arena, CM_ITEM_MAP));
    return put_json(w, "_CHECKPOINT_METADATA", checkpoint);
}

static enum cm_status put_all(void *arg, struct cm_folder_save *folder, struct cm_error *err)
{
    struct orbax_writer *w = arg;

    (void)err;
    w->folder = folder;
    CM_TRY(put_tree(w, w->tree, CM_STR_NONE, cm_item_new(w->arena, CM_ITEM_LIST), 0));
    return put_metadata(w);
}

enum cm_status cm_orbax_write(const struct cm_saved *saved, const char *path, struct cm_error *err)
{
    struct orbax_writer w = {.arena = saved->arena,
                             .saved = saved,
                             .metadata = cm_item_new(saved->arena, CM_ITEM_MAP),
                             .err = err};

    CM_TRY(cm_jax_tree(saved->arena, saved, &w.tree, err));
    return cm_saved_write_folder(saved, path, put_all, &w, err);
}
