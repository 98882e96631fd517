/* A folder of torch.distributed.checkpoint as one process writes it. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/dcp.h"
#include "convert/transfer/hold.h"

#include "base/folder_save.h"
#include "convert/frameworks/torch/pickle_write.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_pickle.h"
#include "convert/frameworks/torch/torch_state.h"

#define METADATA "torch.distributed.checkpoint.metadata."

struct writing {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    const char *path;
    struct cm_save *save;                  /* __0_0.distcp */
    struct cm_item *items, *paths, *infos; /* of .metadata */
    struct cm_error *err;
};

/* ---- objects of .metadata ---- */

static struct cm_item *name(struct cm_arena *arena, const char *text)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_OBJECT);

    item->truth = true;
    item->text = cm_str(text);
    return item;
}

static struct cm_item *object(struct cm_arena *arena, const char *class, struct cm_item *state)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_OBJECT);

    item->text = cm_str(class);
    item->state = state;
    return item;
}

/* function(argument) */
static struct cm_item *called(struct cm_arena *arena, const char *function,
                              const struct cm_item *argument)
{
    struct cm_item *item = object(arena, function, NULL);

    cm_item_append(arena, item, argument);
    return item;
}

static struct cm_item *tuple(struct cm_arena *arena)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_LIST);

    item->truth = true;
    return item;
}

/* dims NULL: zeros. */
static struct cm_item *size(struct cm_arena *arena, const int64_t *dims, int rank)
{
    struct cm_item *list = tuple(arena);

    for (int i = 0; i < rank; i++)
        cm_item_append(arena, list, cm_item_int(arena, dims ? dims[i] : 0));
    return called(arena, "torch.Size", list);
}

static struct cm_item *tensor_metadata(struct cm_arena *arena, const struct cm_saved_tensor *tensor)
{
    struct cm_item *properties = tuple(arena), *state = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *chunk = cm_item_new(arena, CM_ITEM_MAP),
                   *chunks = cm_item_new(arena, CM_ITEM_LIST);
    const struct cm_shape *shape = &tensor->shape;
    const struct cm_str type =
        cm_arena_printf(arena, "torch.%s", cm_torch_dtype_name(tensor->dtype));

    /* type, layout, requires_grad, memory format, pinned */
    cm_item_append(arena, properties, name(arena, cm_str_text(type)));
    cm_item_append(arena, properties,
                   called(arena, "torch.serialization._get_layout",
                          cm_item_text(arena, CM_STR("torch.strided"))));
    cm_item_append(arena, properties, cm_item_bool(arena, false));
    cm_item_append(arena, properties,
                   called(arena, METADATA "_MEM_FORMAT_ENCODING", cm_item_int(arena, 0)));
    cm_item_append(arena, properties, cm_item_bool(arena, false));
    cm_item_put(arena, chunk, "offsets", size(arena, NULL, shape->rank));
    cm_item_put(arena, chunk, "sizes", size(arena, shape->dims, shape->rank));
    cm_item_append(arena, chunks, object(arena, METADATA "ChunkStorageMetadata", chunk));
    cm_item_put(arena, state, "properties", object(arena, METADATA "TensorProperties", properties));
    cm_item_put(arena, state, "size", size(arena, shape->dims, shape->rank));
    cm_item_put(arena, state, "chunks", chunks);
    return object(arena, METADATA "TensorStorageMetadata", state);
}

/* ---- items ---- */

/* One value: its bytes in the file, and what .metadata says of it. */
static enum cm_status write_item(struct writing *w, struct cm_str path, const struct cm_item *keys,
                                 const struct cm_item *value)
{
    const struct cm_saved_tensor *tensor = value->kind == CM_ITEM_TENSOR ? value->tensor : NULL;
    struct cm_item *index = cm_item_new(w->arena, CM_ITEM_MAP);
    struct cm_item *info = cm_item_new(w->arena, CM_ITEM_MAP);
    struct cm_item *key = cm_item_text(w->arena, path);
    const uint64_t at = w->save->written;

    CM_TRY(cm_error_context(w->err, cm_torch_write(w->save, "archive", value, w->err), "'%.*s'",
                            CM_STR_FMT(path)));
    cm_item_put(w->arena, index, "fqn", key);
    if (tensor) {
        cm_item_put(w->arena, index, "index", cm_item_int(w->arena, 0));
        cm_item_put(w->arena, index, "offset", size(w->arena, NULL, tensor->shape.rank));
    } else {
        cm_item_put(w->arena, index, "index", &cm_item_none);
    }
    cm_item_put(w->arena, info, "relative_path", cm_item_text(w->arena, CM_STR("__0_0.distcp")));
    cm_item_put(w->arena, info, "offset", cm_item_int(w->arena, (int64_t)at));
    cm_item_put(w->arena, info, "length", cm_item_int(w->arena, (int64_t)(w->save->written - at)));
    cm_item_set(w->arena, w->items, key,
                tensor ? tensor_metadata(w->arena, tensor)
                       : object(w->arena, METADATA "BytesStorageMetadata",
                                cm_item_new(w->arena, CM_ITEM_MAP)));
    cm_item_set(w->arena, w->paths, key, keys);
    cm_item_set(w->arena, w->infos, object(w->arena, METADATA "MetadataIndex", index),
                object(w->arena, "torch.distributed.checkpoint.filesystem._StorageInfo", info));
    return CM_OK;
}

/* Lists are taken apart where dictionaries or tensors are in them, as PyTorch does. */
static bool is_leaf(const struct cm_item *item, int depth)
{
    if (item->kind == CM_ITEM_MAP)
        return false;
    if (item->kind != CM_ITEM_LIST || item->truth || depth > CM_ITEM_DEPTH_MAX)
        return true;
    for (size_t i = 0; i < item->entries.count; i++) {
        const struct cm_item *entry = item->entries.items[i].value;
        if (entry->kind == CM_ITEM_TENSOR || !is_leaf(entry, depth + 1))
            return false;
    }
    return true;
}

static enum cm_status write_tree(struct writing *w, struct cm_str path, const struct cm_item *keys,
                                 const struct cm_item *item, int depth)
{
    if (depth > 0 && is_leaf(item, depth))
        return write_item(w, path, keys, item);
    if (depth > CM_ITEM_DEPTH_MAX)
        return cm_fail(w->err, CM_LIMIT, "what is to be written is nested too deeply");
    for (size_t i = 0; i < item->entries.count; i++) {
        const struct cm_item *key = item->entries.items[i].key;
        struct cm_item *longer = tuple(w->arena);
        const struct cm_str text = cm_item_key(w->arena, item, i);

        for (size_t k = 0; k < keys->entries.count; k++)
            cm_item_append(w->arena, longer, cm_item_at(keys, k));
        cm_item_append(w->arena, longer,
                       key ? cm_item_text(w->arena, text) : cm_item_int(w->arena, (int64_t)i));
        CM_TRY(write_tree(
            w,
            depth ? cm_arena_printf(w->arena, "%.*s.%.*s", CM_STR_ALL(path), CM_STR_ALL(text))
                  : text,
            longer, item->entries.items[i].value, depth + 1));
    }
    return CM_OK;
}

static struct cm_item *whole_tree(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *tree = cm_item_new(arena, CM_ITEM_MAP);

    cm_item_put(arena, tree, "model", cm_torch_weights_item(arena, saved));
    if (saved->has_optimizer)
        cm_item_put(arena, tree, "optim", cm_torch_optimizer_item(arena, saved, true));
    const struct cm_item *schedule = cm_torch_schedule_item(arena, saved);
    if (schedule)
        cm_item_put(arena, tree, "lr_scheduler", schedule);
    if (saved->step >= 0)
        cm_item_put(arena, tree, "step", cm_item_int(arena, saved->step));
    if (saved->epoch >= 0)
        cm_item_put(arena, tree, "epoch", cm_item_int(arena, saved->epoch));
    cm_item_put(arena, tree, "cameo", cm_hold_text(arena, saved));
    return tree;
}

static enum cm_status write_metadata(struct writing *w, struct cm_folder_save *folder)
{
    struct cm_pickle_writer pickle = {.arena = w->arena};
    struct cm_item *state = cm_item_new(w->arena, CM_ITEM_MAP);
    struct cm_item *meta = cm_item_new(w->arena, CM_ITEM_MAP);

    cm_item_put(w->arena, meta, "modules", cm_item_new(w->arena, CM_ITEM_LIST));
    cm_item_put(w->arena, state, "state_dict_metadata", w->items);
    cm_item_put(w->arena, state, "planner_data", w->paths);
    cm_item_put(w->arena, state, "storage_data", w->infos);
    cm_item_put(w->arena, state, "storage_meta", object(w->arena, METADATA "StorageMeta", meta));
    cm_item_put(w->arena, state, "version", cm_item_text(w->arena, CM_STR("1.0.0")));
    CM_TRY(cm_pickle_write(&pickle, object(w->arena, METADATA "Metadata", state), w->err));
    return cm_folder_put(folder, w->arena, CM_DCP_METADATA, cm_bytes_str(&pickle.out), w->err);
}

static enum cm_status write_items(void *arg, struct cm_save *save, struct cm_error *err)
{
    struct writing *w = arg;

    (void)err;
    w->save = save;
    return write_tree(w, CM_STR(""), tuple(w->arena), whole_tree(w->arena, w->saved), 0);
}

static enum cm_status write_folder(void *arg, struct cm_folder_save *folder, struct cm_error *err)
{
    struct writing *w = arg;

    enum cm_status status =
        cm_saved_put_file(w->saved, folder, "__0_0.distcp", write_items, w, err);
    if (!status)
        status = write_metadata(w, folder);
    return cm_error_context(err, status, "%.600s", w->path);
}

enum cm_status cm_dcp_write(const struct cm_saved *saved, const char *path, struct cm_error *err)
{
    struct writing writing = {.arena = saved->arena,
                              .saved = saved,
                              .path = path,
                              .items = cm_item_new(saved->arena, CM_ITEM_MAP),
                              .paths = cm_item_new(saved->arena, CM_ITEM_MAP),
                              .infos = cm_item_new(saved->arena, CM_ITEM_MAP),
                              .err = err};

    return cm_saved_write_folder(saved, path, write_folder, &writing, err);
}
