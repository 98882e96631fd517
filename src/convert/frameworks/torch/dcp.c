/* Folders of torch.distributed.checkpoint, which FSDP writes, too: .metadata, a pickle that says
 * which part of which tensor is where, and files of many small files of torch.save. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/dcp.h"

#include "base/number.h"
#include "convert/frameworks/torch/huggingface.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_pickle.h"
#include "convert/frameworks/torch/torch_state.h"

enum { GAP_MAX = 100000 }; /* entries of a list that nobody stored */

struct folder {
    struct cm_saved_place *place;
    struct cm_saved *saved;
    struct cm_map infos;      /* name, 0, offsets -> struct cm_item of the storage info */
    struct cm_map containers; /* path of a dictionary or list -> struct cm_item */
    struct cm_error *err;
};

static bool is_folder(struct cm_saved_place *place)
{
    if (place->file.size || !cm_place_has(place, CM_STR(CM_DCP_METADATA)))
        return false;
    for (size_t i = 0; i < place->names.count; i++)
        if (cm_str_ends(place->names.items[i], ".distcp"))
            return true;
    return false;
}

/* Accelerate puts weights and optimizer of FSDP into folders of their own. */
static bool is_half(struct cm_saved_place *place, struct cm_str name, struct cm_str *folder)
{
    if (!cm_str_ends(name, "/" CM_DCP_METADATA) ||
        (!cm_str_starts(name, "pytorch_model_fsdp_") && !cm_str_starts(name, "optimizer_")))
        return false;
    *folder = (struct cm_str){name.data, name.size - sizeof CM_DCP_METADATA};
    return !place->file.size && !memchr(folder->data, '/', folder->size);
}

static int recognize(struct cm_saved_place *place)
{
    struct cm_str folder;

    if (is_folder(place))
        return 2;
    for (size_t i = 0; i < place->names.count; i++)
        if (is_half(place, place->names.items[i], &folder))
            return 2;
    return 0;
}

/* ---- where items are ---- */

/* A name with offsets as text, by which items are found. */
static bool index_key(struct cm_arena *arena, struct cm_str name, const struct cm_item *offset,
                      struct cm_str *out)
{
    const size_t rank = cm_item_count(offset);
    char text[CM_MAX_RANK * 21 + 1];
    size_t used = 0;

    if (rank > CM_MAX_RANK)
        return false;
    text[0] = 0;
    for (size_t i = 0; i < rank; i++) {
        int64_t number;
        if (!cm_item_is_int(cm_item_at(offset, i), &number))
            return false;
        used += (size_t)snprintf(text + used, sizeof text - used, ",%lld", (long long)number);
    }
    *out =
        cm_arena_printf(arena, "%.*s%c%s", (int)cm_min_size(name.size, 100000), name.data, 1, text);
    return true;
}

static enum cm_status list_infos(struct folder *folder, const struct cm_item *infos)
{
    for (size_t i = 0; i < cm_item_count(infos); i++) {
        const struct cm_item_entry *entry = &infos->entries.items[i];
        struct cm_str name, key;

        if (!cm_item_is_text(cm_item_get(entry->key, "fqn"), &name) ||
            !index_key(folder->saved->arena, name, cm_item_get(entry->key, "offset"), &key))
            return cm_fail(folder->err, CM_BAD_MODEL,
                           ".metadata: entry %zu of its storage is not "
                           "an index",
                           i);
        *cm_map_insert(&folder->infos, folder->saved->arena, key, NULL) =
            (uint64_t)(uintptr_t)entry->value;
    }
    return CM_OK;
}

/* What one item holds: a file of torch.save inside a file. */
static enum cm_status read_item(struct folder *folder, struct cm_str name,
                                const struct cm_item *offset, struct cm_item **out)
{
    struct cm_str key, path, bytes;
    int64_t at, length;

    if (!index_key(folder->saved->arena, name, offset, &key))
        return cm_fail(folder->err, CM_BAD_MODEL, "its offsets are broken");
    const struct cm_item *info =
        (const struct cm_item *)(uintptr_t)cm_map_get(&folder->infos, key, 0);
    const struct cm_item *packing = cm_item_get(info, "transform_descriptors");
    if (!info || !cm_item_is_text(cm_item_get(info, "relative_path"), &path) ||
        !cm_item_is_int(cm_item_get(info, "offset"), &at) ||
        !cm_item_is_int(cm_item_get(info, "length"), &length))
        return cm_fail(folder->err, CM_BAD_MODEL, ".metadata does not say where it is");
    if (cm_item_count(packing))
        return cm_fail(folder->err, CM_UNSUPPORTED, "it is stored through an extension, %.*s",
                       CM_STR_FMT(cm_item_json(folder->saved->arena, packing, 100)));
    CM_TRY(cm_place_map(folder->place, path, &bytes, folder->err));
    if (at < 0 || length < 0 || (uint64_t)at > bytes.size ||
        (uint64_t)length > bytes.size - (uint64_t)at)
        return cm_fail(folder->err, CM_BAD_MODEL,
                       "%.*s has %zu bytes, expected an item at %lld of %lld bytes",
                       CM_STR_FMT(path), bytes.size, (long long)at, (long long)length);
    return cm_torch_read(folder->saved->arena, (struct cm_str){bytes.data + at, (size_t)length},
                         path, out, folder->err);
}

/* ---- tensors ---- */

static bool read_dims(const struct cm_item *list, int64_t *dims, size_t rank)
{
    for (size_t i = 0; i < rank; i++)
        if (!cm_item_is_int(cm_item_at(list, i), &dims[i]) || dims[i] < 0)
            return false;
    return cm_item_count(list) == rank;
}

/* A chunk as a piece of its tensor: where it is in the item's storage. */
static enum cm_status add_chunk(struct folder *folder, struct cm_str name,
                                const struct cm_item *chunk, struct cm_saved_tensor *tensor)
{
    const size_t rank = (size_t)tensor->shape.rank;
    const struct cm_item *offsets = cm_item_get(chunk, "offsets");
    int64_t first[CM_MAX_RANK], size[CM_MAX_RANK];
    struct cm_item *item;

    if (!read_dims(offsets, first, rank) || !read_dims(cm_item_get(chunk, "sizes"), size, rank))
        return cm_fail(folder->err, CM_BAD_MODEL, "a chunk of it is broken");
    for (size_t i = 0; i < rank; i++)
        if (size[i] == 0)
            return CM_OK;
    CM_TRY(read_item(folder, name, offsets, &item));
    if (item->kind != CM_ITEM_TENSOR || item->tensor->dtype != tensor->dtype ||
        (size_t)item->tensor->shape.rank != rank ||
        memcmp(item->tensor->shape.dims, size, rank * sizeof *size) != 0)
        return cm_fail(folder->err, CM_BAD_MODEL,
                       "a chunk of it has another type or shape than "
                       ".metadata says");
    const struct cm_saved_piece *from = &item->tensor->pieces.items[0];
    struct cm_saved_piece *piece =
        cm_saved_piece_add(folder->saved->arena, tensor, from->stride != NULL);
    piece->bytes = from->bytes;
    piece->offset = from->offset;
    piece->file = from->file;
    memcpy(piece->first, first, rank * sizeof *first);
    memcpy(piece->size, size, rank * sizeof *size);
    if (from->stride)
        memcpy(piece->stride, from->stride, rank * sizeof *size);
    return CM_OK;
}

static enum cm_status read_tensor(struct folder *folder, struct cm_str name,
                                  const struct cm_item *metadata, struct cm_item **out)
{
    const struct cm_item *size = cm_item_get(metadata, "size");
    const struct cm_item *properties = cm_item_get(metadata, "properties");
    const struct cm_item *chunks = cm_item_get(metadata, "chunks");
    const struct cm_item *type =
        properties && properties->kind == CM_ITEM_OBJECT ? cm_item_at(properties->state, 0) : NULL;
    struct cm_saved_tensor *tensor = CM_NEW(folder->saved->arena, struct cm_saved_tensor);
    int64_t count;

    if (cm_item_get(properties, "dtype"))
        type = cm_item_get(properties, "dtype");
    tensor->dtype = type ? cm_torch_dtype(type->text) : CM_UNDEFINED;
    tensor->shape.rank = (int)cm_min_size(cm_item_count(size), CM_MAX_RANK);
    if (!read_dims(size, tensor->shape.dims, (size_t)tensor->shape.rank) ||
        !cm_shape_count(&tensor->shape, &count))
        return cm_fail(folder->err, CM_BAD_MODEL, "its shape is broken");
    if (tensor->dtype == CM_UNDEFINED)
        return cm_fail(folder->err, CM_UNSUPPORTED, "its type '%.*s' is not supported",
                       CM_STR_FMT(type ? type->text : CM_STR("")));
    for (size_t i = 0; i < cm_item_count(chunks); i++)
        CM_TRY(add_chunk(folder, name, cm_item_at(chunks, i), tensor));
    CM_TRY(cm_saved_tensor_check(folder->saved->arena, tensor, folder->err));
    *out = cm_item_tensor(folder->saved->arena, tensor);
    return CM_OK;
}

/* ---- the tree ---- */

/* Puts a value at a position of a list or under a key of a map. */
static enum cm_status put(struct folder *folder, struct cm_item *into, const struct cm_item *key,
                          const struct cm_item *value)
{
    int64_t index;

    if (into->kind == CM_ITEM_MAP) {
        cm_item_set(folder->saved->arena, into, key, value);
        return CM_OK;
    }
    if (!cm_item_is_int(key, &index) || index < 0 || index > (int64_t)into->entries.count + GAP_MAX)
        return cm_fail(folder->err, CM_BAD_MODEL, "its place in a list is broken");
    while ((int64_t)into->entries.count <= index)
        cm_item_append(folder->saved->arena, into, &cm_item_none);
    into->entries.items[index].value = value;
    return CM_OK;
}

/* The list or dictionary that the first `depth` keys of a path lead to. */
static enum cm_status find_container(struct folder *folder, const struct cm_item *path,
                                     struct cm_item **out)
{
    struct cm_arena *arena = folder->saved->arena;
    struct cm_str text = CM_STR("");
    struct cm_item *at = *out; /* the tree */

    for (size_t i = 0; i + 1 < path->entries.count; i++) {
        const struct cm_item *key = cm_item_at(path, i), *next = cm_item_at(path, i + 1);
        const struct cm_str shown = cm_item_json(arena, key, 0);
        bool added;

        text = cm_arena_printf(arena, "%.*s%c%.*s", CM_STR_ALL(text), 1,
                               (int)cm_min_size(shown.size, 100000), shown.data);
        uint64_t *known = cm_map_insert(&folder->containers, arena, text, &added);
        if (added) {
            struct cm_item *made =
                cm_item_new(arena, next->kind == CM_ITEM_INT ? CM_ITEM_LIST : CM_ITEM_MAP);
            *known = (uint64_t)(uintptr_t)made;
            CM_TRY(put(folder, at, key, made));
        }
        at = (struct cm_item *)(uintptr_t)*known;
    }
    *out = at;
    return CM_OK;
}

static enum cm_status add_value(struct folder *folder, struct cm_item *tree,
                                const struct cm_item *path, struct cm_str name,
                                const struct cm_item *metadata)
{
    struct cm_item *value, *into = tree;

    if (cm_item_is_a(metadata, "TensorStorageMetadata"))
        CM_TRY(read_tensor(folder, name, metadata, &value));
    else
        CM_TRY(read_item(folder, name, NULL, &value));
    if (cm_item_count(path) == 0) {
        cm_item_set(folder->saved->arena, tree, cm_item_text(folder->saved->arena, name), value);
        return CM_OK;
    }
    if (cm_item_count(path) > CM_ITEM_DEPTH_MAX)
        return cm_fail(folder->err, CM_LIMIT, "it is nested too deeply");
    CM_TRY(find_container(folder, path, &into));
    return put(folder, into, cm_item_at(path, path->entries.count - 1), value);
}

/* In the order of planner_data, which is that of the dictionary that was saved; where that is
 * missing, names are not taken apart. */
static enum cm_status read_tree(struct folder *folder, const struct cm_item *metadata,
                                struct cm_item *tree)
{
    const struct cm_item *items = cm_item_get(metadata, "state_dict_metadata");
    const struct cm_item *paths = cm_item_get(metadata, "planner_data");
    const size_t first = cm_item_count(paths), count = cm_item_count(items);
    struct cm_arena *arena = folder->saved->arena;
    struct cm_map by_name = {0};

    for (size_t i = 0; i < count; i++) {
        struct cm_str name;
        if (!cm_item_is_text(items->entries.items[i].key, &name))
            return cm_fail(folder->err, CM_BAD_MODEL, ".metadata: a name is not a text");
        *cm_map_insert(&by_name, arena, name, NULL) = i + 1;
    }
    for (size_t i = 0; i < first + count; i++) {
        const struct cm_item_entry *entry =
            i < first ? &paths->entries.items[i] : &items->entries.items[i - first];
        struct cm_str name;
        uint64_t *at = cm_item_is_text(entry->key, &name) ? cm_map_find(&by_name, name) : NULL;

        if (!at || !*at)
            continue; /* has been read */
        CM_TRY(cm_error_context(folder->err,
                                add_value(folder, tree, i < first ? entry->value : NULL, name,
                                          items->entries.items[*at - 1].value),
                                "'%.*s'", CM_STR_FMT(name)));
        *at = 0;
    }
    return CM_OK;
}

/* Ranks that wrote files: __<rank>_<n>.distcp. */
static int64_t count_ranks(const struct cm_saved_place *place)
{
    int64_t most = -1;

    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        int64_t rank = 0;

        if (!cm_str_starts(name, "__") || !cm_str_ends(name, ".distcp"))
            continue;
        for (size_t k = 2; k < name.size && name.data[k] >= '0' && name.data[k] <= '9' && k < 12;
             k++)
            rank = rank * 10 + name.data[k] - '0';
        most = rank > most ? rank : most;
    }
    return most + 1;
}

static enum cm_status read_folder(struct cm_saved_place *place, struct cm_saved *saved,
                                  struct cm_item *tree, struct cm_error *err)
{
    struct folder folder = {.place = place, .saved = saved, .err = err};
    struct cm_item *metadata;
    struct cm_str bytes;

    CM_TRY(cm_place_map(place, CM_STR(CM_DCP_METADATA), &bytes, err));
    CM_TRY(cm_error_context(err, cm_pickle_read(saved->arena, bytes, &metadata, err), ".metadata"));
    if (!cm_item_is_a(metadata, "Metadata"))
        return cm_fail(err, CM_BAD_MODEL, ".metadata is not that of torch.distributed.checkpoint");
    CM_TRY(list_infos(&folder, cm_item_get(metadata, "storage_data")));
    saved->ranks = count_ranks(place);
    return read_tree(&folder, metadata, tree);
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    struct cm_item *tree = cm_item_new(saved->arena, CM_ITEM_MAP);

    if (is_folder(place))
        CM_TRY(read_folder(place, saved, tree, err));
    for (size_t i = 0; i < place->names.count; i++) {
        struct cm_str folder;
        if (!is_half(place, place->names.items[i], &folder))
            continue;
        struct cm_saved_place below = cm_place_below(place, folder);
        CM_TRY(cm_error_context(err, read_folder(&below, saved, tree, err), "%.*s",
                                CM_STR_FMT(folder)));
    }
    CM_TRY(cm_torch_take_tree(saved, tree, err));
    return is_folder(place) ? CM_OK : cm_huggingface_read_training(place, saved, err);
}

const struct cm_format cm_format_torch_distributed = {
    .name = "torch-distributed",
    .system = "PyTorch",
    .what = "a folder of torch.distributed.checkpoint or FSDP",
    .recognize = recognize,
    .read = read,
    .write = cm_dcp_write,
};
