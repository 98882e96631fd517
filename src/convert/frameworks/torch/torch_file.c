/* Files of torch.save: the zip of a pickle and its storages, and the older form, pickles with the
 * storages after them. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/torch_file.h"

#include "base/array.h"
#include "base/map.h"
#include "bytes/zip.h"
#include "convert/frameworks/torch/torch_pickle.h"

/* LONG1 of 0x1950a86a20f9469cfc6c, in protocol 2. */
static const char legacy_head[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

bool cm_torch_is_file(struct cm_str head)
{
    return cm_str_starts(head, "PK\x03\x04") || cm_str_starts(head, legacy_head);
}

/* Where storages come from, and which there are already. */
struct loader {
    struct cm_zip_member *members; /* of a zip */
    struct cm_map places;          /* name of a member -> its number; of the older form: key ->
                                      number in storages */
    struct cm_str folder;          /* in the zip, with its slash */
    CM_ARRAY(struct cm_item *) storages; /* of the older form */
};

/* ('storage', class, key, location, count, ..); the class is a name. */
struct storage_id {
    struct cm_str name, key;
    enum cm_dtype dtype;
    int64_t count;
};

static enum cm_status read_id(const struct cm_item *id, struct storage_id *out,
                              struct cm_error *err)
{
    const struct cm_item *class = cm_item_at(id, 1), *count = cm_item_at(id, 4);
    struct cm_str tag;

    if (!cm_pickle_is_list(id, 5) || !cm_item_is_text(cm_item_at(id, 0), &tag) ||
        !cm_str_is(tag, "storage") || class->kind != CM_ITEM_OBJECT ||
        !cm_item_is_text(cm_item_at(id, 2), &out->key) || count->kind != CM_ITEM_INT)
        return cm_fail(err, CM_BAD_MODEL, "a persistent id is not that of a storage");
    out->name = class->text;
    out->count = count->number;
    out->dtype = cm_torch_dtype(class->text);
    if (out->dtype == CM_UNDEFINED)
        return cm_fail(err, CM_UNSUPPORTED, "a storage of class '%.*s' is not supported",
                       CM_STR_FMT(class->text));
    return CM_OK;
}

/* ---- zip ---- */

static enum cm_status list_members(struct cm_arena *arena, struct cm_zip *zip,
                                   struct loader *loader, struct cm_error *err)
{
    loader->members = CM_NEW_ARRAY(arena, struct cm_zip_member, (size_t)zip->count);
    cm_map_reserve(&loader->places, arena, (size_t)zip->count);
    for (size_t i = 0; i < zip->count; i++) {
        struct cm_zip_member *member = &loader->members[i];
        bool added;

        CM_TRY(cm_zip_next(zip, member, err));
        CM_TRY(cm_error_context(err, cm_zip_locate(zip, member, err), "member '%.*s'",
                                CM_STR_FMT(member->name)));
        *cm_map_insert(&loader->places, arena, member->name, &added) = i;
        if (!added)
            return cm_fail(err, CM_BAD_MODEL, "it has two members '%.*s'",
                           CM_STR_FMT(member->name));
        if (cm_str_ends(member->name, "/data.pkl") && !loader->folder.size)
            loader->folder = (struct cm_str){member->name.data, member->name.size - 8};
    }
    if (!loader->folder.size)
        return cm_fail(err, CM_BAD_MODEL,
                       "it is a zip file but not one of torch.save: it has no data.pkl");
    return CM_OK;
}

static const struct cm_zip_member *find_member(struct cm_arena *arena, const struct loader *loader,
                                               const char *middle, struct cm_str name)
{
    const uint64_t *at = cm_map_find(
        &loader->places,
        cm_arena_printf(arena, "%.*s%s%.*s", CM_STR_FMT(loader->folder), middle, CM_STR_FMT(name)));

    return at ? &loader->members[*at] : NULL;
}

/* The bytes of a storage stay in the file; only packed ones are unpacked, and compared with their
 * check sum. */
static enum cm_status zip_storage(struct cm_pickle *p, const struct cm_item *id,
                                  struct cm_item **out, struct cm_error *err)
{
    struct storage_id storage;

    CM_TRY(read_id(id, &storage, err));
    const struct cm_zip_member *member = find_member(p->arena, p->arg, "data/", storage.key);
    if (!member)
        return cm_fail(err, CM_BAD_MODEL, "storage '%.*s' is missing", CM_STR_FMT(storage.key));
    struct cm_str bytes = member->packed;
    if (member->deflated)
        CM_TRY(cm_zip_contents(p->arena, member, &bytes, err));
    return cm_error_context(
        err, cm_torch_storage(p, storage.name, storage.dtype, storage.count, bytes, out, err),
        "storage '%.*s'", CM_STR_FMT(storage.key));
}

static enum cm_status read_zip(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                               struct cm_item **out, struct cm_error *err)
{
    struct loader loader = {0};
    struct cm_zip zip;

    CM_TRY(cm_zip_open(bytes, 0, &zip, err));
    CM_TRY(list_members(arena, &zip, &loader, err));
    const struct cm_zip_member *order = find_member(arena, &loader, "byteorder", CM_STR_NONE);
    if (order && cm_str_is(order->packed, "big"))
        return cm_fail(err, CM_UNSUPPORTED, "it was saved on a big-endian machine");
    struct cm_pickle pickle = {.arena = arena,
                               .file = file,
                               .persistent = zip_storage,
                               .arg = &loader,
                               .known = cm_torch_pickle_names,
                               .n_known = cm_torch_pickle_name_count};
    const struct cm_zip_member *data = find_member(arena, &loader, "data.pkl", CM_STR_NONE);
    if (!data)
        return cm_fail(err, CM_BAD_MODEL, "its data.pkl is missing");
    CM_TRY(cm_error_context(err, cm_zip_contents(arena, data, &pickle.bytes, err), "data.pkl"));
    return cm_error_context(err, cm_pickle_run(&pickle, out, err), "data.pkl");
}

/* ---- the older form ---- */

/* A storage that is a window of another: (key, offset, count) as the sixth of its id. */
static enum cm_status legacy_window(struct cm_pickle *p, const struct cm_item *window,
                                    const struct cm_item *whole, struct cm_item **out,
                                    struct cm_error *err)
{
    const struct cm_item *offset = cm_item_at(window, 1), *count = cm_item_at(window, 2);
    const int64_t all = whole->tensor->shape.dims[0];
    struct cm_item *item = cm_pickle_item(p, CM_ITEM_OBJECT);

    if (!cm_pickle_is_list(window, 3) || offset->kind != CM_ITEM_INT || offset->number < 0 ||
        offset->number > all || count->kind != CM_ITEM_INT || count->number < 0 ||
        count->number > all - offset->number)
        return cm_fail(err, CM_BAD_MODEL, "a window of a storage reaches outside of it");
    item->text = whole->text;
    item->tensor = CM_NEW(p->arena, struct cm_saved_tensor);
    *item->tensor =
        (struct cm_saved_tensor){.dtype = whole->tensor->dtype, .shape = CM_SHAPE(count->number)};
    struct cm_saved_piece *piece = cm_saved_piece_add(p->arena, item->tensor, false);
    piece->offset = offset->number;
    piece->size[0] = count->number;
    piece->bytes = whole->tensor->pieces.items[0].bytes;
    *CM_PUSH(p->arena, &p->views) = (struct cm_pickle_view){item->tensor, whole->tensor};
    *out = item;
    return CM_OK;
}

static enum cm_status legacy_storage(struct cm_pickle *p, const struct cm_item *id,
                                     struct cm_item **out, struct cm_error *err)
{
    struct loader *loader = p->arg;
    const struct cm_item *window = cm_item_at(id, 5);
    struct storage_id storage;
    struct cm_str tag;
    bool added;

    if (cm_pickle_is_list(id, 2) && cm_item_is_text(cm_item_at(id, 0), &tag) &&
        cm_str_is(tag, "module")) { /* a class with its source, which is not wanted */
        *out = (struct cm_item *)cm_item_at(id, 1);
        return CM_OK;
    }
    CM_TRY(read_id(id, &storage, err));
    uint64_t *at = cm_map_insert(&loader->places, p->arena, storage.key, &added);
    if (added) {
        size_t size = 0;

        *at = loader->storages.count;
        if (!cm_dtype_bytes(storage.dtype, storage.count, &size) || size > p->bytes.size)
            return cm_fail(err, CM_BAD_MODEL,
                           "storage '%.*s' of %lld elements is larger than the file",
                           CM_STR_FMT(storage.key), (long long)storage.count);
        CM_TRY(cm_torch_storage(p, storage.name, storage.dtype, storage.count,
                                (struct cm_str){NULL, size}, out, err));
        *CM_PUSH(p->arena, &loader->storages) = *out;
    } else {
        *out = loader->storages.items[*at];
    }
    if (!window || window->kind == CM_ITEM_NONE)
        return CM_OK;
    return legacy_window(p, window, *out, out, err);
}

/* int64 count, then the elements, for each key. */
static enum cm_status place_storage(struct cm_pickle *p, const struct loader *loader,
                                    const struct cm_item *key, struct cm_error *err)
{
    struct cm_str name;
    int64_t count;

    if (!cm_item_is_text(key, &name))
        return cm_fail(err, CM_BAD_MODEL, "the key of a storage is not a text");
    const uint64_t *at = cm_map_find(&loader->places, name);
    if (!at)
        return cm_fail(err, CM_BAD_MODEL, "no tensor uses it, so that its type is not known");
    struct cm_saved_tensor *tensor = loader->storages.items[*at]->tensor;
    struct cm_str *bytes = &tensor->pieces.items[0].bytes;
    if (p->bytes.size - p->at < sizeof count)
        return cm_fail(err, CM_BAD_MODEL, "the file is cut");
    memcpy(&count, p->bytes.data + p->at, sizeof count);
    p->at += sizeof count;
    if (count != tensor->shape.dims[0])
        return cm_fail(err, CM_BAD_MODEL, "it has %lld elements, tensors expect %lld",
                       (long long)count, (long long)tensor->shape.dims[0]);
    if (bytes->size > p->bytes.size - p->at)
        return cm_fail(err, CM_BAD_MODEL, "the file is cut");
    bytes->data = p->bytes.data + p->at;
    p->at += bytes->size;
    return CM_OK;
}

static enum cm_status place_storages(struct cm_pickle *p, const struct loader *loader,
                                     const struct cm_item *keys, struct cm_error *err)
{
    if (!cm_pickle_is_list(keys, 0))
        return cm_fail(err, CM_BAD_MODEL, "the list of its storages is missing");
    for (size_t i = 0; i < keys->entries.count; i++)
        CM_TRY(cm_error_context(err, place_storage(p, loader, cm_item_at(keys, i), err),
                                "storage %zu", i));
    for (size_t i = 0; i < loader->storages.count; i++)
        if (!loader->storages.items[i]->tensor->pieces.items[0].bytes.data)
            return cm_fail(err, CM_BAD_MODEL, "a storage of class '%.*s' is missing",
                           CM_STR_FMT(loader->storages.items[i]->text));
    for (size_t i = 0; i < p->views.count; i++)
        cm_torch_place_view(p->views.items[i].tensor, p->views.items[i].storage);
    return CM_OK;
}

static enum cm_status read_legacy(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                                  struct cm_item **out, struct cm_error *err)
{
    struct loader loader = {0};
    struct cm_pickle pickle = {.arena = arena,
                               .bytes = bytes,
                               .file = file,
                               .arg = &loader,
                               .known = cm_torch_pickle_names,
                               .n_known = cm_torch_pickle_name_count};
    struct cm_item *parts[3] = {0}, *keys;
    bool little = true;

    for (size_t i = 0; i < CM_COUNT(parts); i++) /* magic number, version, machine */
        CM_TRY(cm_pickle_run(&pickle, &parts[i], err));
    (void)cm_item_is_bool(cm_item_get(parts[2], "little_endian"), &little);
    if (!little)
        return cm_fail(err, CM_UNSUPPORTED, "it was saved on a big-endian machine");
    pickle.persistent = legacy_storage;
    CM_TRY(cm_pickle_run(&pickle, out, err));
    pickle.persistent = NULL;
    CM_TRY(cm_pickle_run(&pickle, &keys, err));
    return place_storages(&pickle, &loader, keys, err);
}

enum cm_status cm_torch_read(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                             struct cm_item **out, struct cm_error *err)
{
    enum cm_status status;

    if (cm_str_starts(bytes, legacy_head))
        status = read_legacy(arena, bytes, file, out, err);
    else if (cm_str_starts(bytes, "PK\x03\x04"))
        status = read_zip(arena, bytes, file, out, err);
    else
        status = cm_fail(err, CM_BAD_MODEL, "it is not a file of torch.save");
    return cm_error_context(err, status, "%.*s", CM_STR_FMT(file));
}

enum cm_status cm_torch_read_file(struct cm_saved_place *place, struct cm_str name,
                                  struct cm_item **out, struct cm_error *err)
{
    struct cm_str bytes;

    CM_TRY(cm_place_map(place, name, &bytes, err));
    return cm_torch_read(place->arena, bytes, name, out, err);
}

enum cm_status cm_pickle_read(struct cm_arena *arena, struct cm_str bytes, struct cm_item **out,
                              struct cm_error *err)
{
    struct cm_pickle pickle = {.arena = arena,
                               .bytes = bytes,
                               .known = cm_torch_pickle_names,
                               .n_known = cm_torch_pickle_name_count};

    return cm_pickle_run(&pickle, out, err);
}
