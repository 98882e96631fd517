/* External data files: where tensors say they are, and the files, mapped once each. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/external.h"

#include "base/array.h"
#include "base/file.h"
#include "base/memory.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
    struct cm_str location; /* owned */
    struct cm_mapping mapping;
    uint64_t device, inode;
};

struct cm_external_files {
    pthread_mutex_t lock; /* copies of a model share its files, and have locks of their own */
    char *folder;         /* owned, with everything else here: opening a file needs no arena */
    unsigned flags;
    bool copy;
    CM_ARRAY(struct entry);         /* sorted by location */
    const struct cm_mapping *model; /* borrowed; NULL: none */
};

static struct cm_str range_of(const struct cm_mapping *mapping)
{
    const bool mapped = mapping && mapping->data && !mapping->copied;

    return mapped ? (struct cm_str){(const char *)mapping->data, mapping->size} : CM_STR_NONE;
}

static pthread_mutex_t *lock_of(const struct cm_external_files *files)
{
    return &((struct cm_external_files *)(uintptr_t)files)->lock;
}

void cm_external_set_model(struct cm_external_files *files, const struct cm_mapping *mapping)
{
    files->model = mapping;
}

struct cm_mapped_ranges cm_external_ranges(struct cm_arena *arena,
                                           const struct cm_external_files *files)
{
    pthread_mutex_t *lock = lock_of(files);

    pthread_mutex_lock(lock);
    const size_t count = files->count;
    pthread_mutex_unlock(lock);
    /* Not under the lock: where memory runs out, this does not return. */
    struct cm_mapped_ranges ranges = {CM_NEW_ARRAY(arena, struct cm_str, count + 1), 1};
    pthread_mutex_lock(lock);
    ranges.items[0] = range_of(files->model);
    for (size_t i = 0; i < count; i++)
        ranges.items[ranges.count++] = range_of(&files->items[i].mapping);
    pthread_mutex_unlock(lock);
    return ranges;
}

void cm_external_forget(const struct cm_external_files *files, const void *bytes, size_t size)
{
    const struct cm_str own = range_of(files->model);

    cm_mapped_forget(&own, 1, bytes, size);
    pthread_mutex_lock(lock_of(files));
    for (size_t i = 0; i < files->count; i++) {
        const struct cm_str range = range_of(&files->items[i].mapping);
        cm_mapped_forget(&range, 1, bytes, size);
    }
    pthread_mutex_unlock(lock_of(files));
}

static enum cm_status parse_number(struct cm_str key, struct cm_str text, uint64_t *out,
                                   struct cm_error *err)
{
    int64_t value;

    if (!cm_str_to_int64(text, &value) || value < 0)
        return cm_fail(err, CM_BAD_MODEL, "external %.*s '%.*s' is not a number of bytes",
                       CM_STR_FMT(key), CM_STR_FMT(text));
    *out = (uint64_t)value;
    return CM_OK;
}

enum cm_status cm_external_place(const struct cm_tensor_proto *proto, struct cm_external_place *out,
                                 struct cm_error *err)
{
    static const char *const keys[] = {"location", "offset", "length"};
    struct cm_external_place place = {0};
    bool seen[3] = {false};

    for (size_t i = 0; i < proto->external_data.count; i++) {
        const struct cm_entry_proto *entry = &proto->external_data.items[i];
        size_t k = 0;
        while (k < CM_COUNT(keys) && !cm_str_is(entry->key, keys[k]))
            k++;
        if (k == CM_COUNT(keys))
            continue;
        if (seen[k])
            return cm_fail(err, CM_BAD_MODEL, "external %s is given twice", keys[k]);
        seen[k] = true;
        if (k == 0)
            place.location = entry->value;
        else
            CM_TRY(parse_number(entry->key, entry->value, k == 1 ? &place.offset : &place.length,
                                err));
    }
    if (place.location.size == 0)
        return cm_fail(err, CM_BAD_MODEL, "its data is external but no location is given");
    place.has_length = seen[2];
    *out = place;
    return CM_OK;
}

static void free_files(void *what)
{
    struct cm_external_files *files = what;

    for (size_t i = 0; i < files->count; i++) {
        cm_mapping_release(&files->items[i].mapping);
        cm_free((char *)(uintptr_t)files->items[i].location.data);
    }
    cm_free(files->items);
    pthread_mutex_destroy(&files->lock);
    *files = (struct cm_external_files){0};
}

struct cm_external_files *cm_external_files_new(struct cm_arena *arena, struct cm_str folder,
                                                unsigned flags, bool copy)
{
    struct cm_external_files *files = CM_NEW(arena, struct cm_external_files);

    files->folder = (char *)(uintptr_t)cm_arena_str(arena, folder).data;
    files->flags = flags;
    files->copy = copy;
    pthread_mutex_init(&files->lock,
                       NULL); /* of glibc's and musl's, one without attributes cannot fail */
    cm_arena_defer(arena, free_files, files);
    return files;
}

/* The index of location, or of the first one after it. */
static size_t search(const struct cm_external_files *files, struct cm_str location)
{
    size_t low = 0, high = files->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (cm_str_compare(files->items[middle].location, location) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct cm_external_files *files, size_t at, struct cm_str location)
{
    return at < files->count && cm_str_equal(files->items[at].location, location);
}

static enum cm_status open_file(const struct cm_external_files *files, struct cm_str location,
                                struct entry *out, struct cm_error *err)
{
    struct stat facts = {0};
    int fd;

    enum cm_status status = cm_file_open_beneath(files->folder, location, files->flags, &fd, err);
    if (status == CM_NOT_FOUND) /* by the model, which is broken without */
        return cm_fail(err, CM_BAD_MODEL, "there is no file '%.*s' in folder '%.600s'",
                       CM_STR_FMT(location), files->folder);
    CM_TRY(status);
    status = cm_fd_map(fd, cm_str_text(out->location), files->copy, &out->mapping, err);
    if (status == CM_OK && fstat(fd, &facts) == 0) {
        out->device = (uint64_t)facts.st_dev;
        out->inode = (uint64_t)facts.st_ino;
    }
    close(fd);
    return status;
}

static enum cm_status no_memory(struct cm_error *err)
{
    return cm_fail(err, CM_NO_MEMORY, "no memory for the list of external files");
}

static enum cm_status make_room(struct cm_external_files *files, struct cm_error *err)
{
    if (files->count < files->capacity)
        return CM_OK;
    const size_t capacity = files->capacity ? 2 * files->capacity : 8;
    struct entry *entries = cm_realloc(files->items, capacity * sizeof *entries);
    if (!entries)
        return no_memory(err);
    files->items = entries;
    files->capacity = capacity;
    return CM_OK;
}

static enum cm_status add(struct cm_external_files *files, size_t at, struct cm_str location,
                          struct cm_error *err)
{
    struct entry entry = {0};

    CM_TRY(cm_file_name_is_inside(location, err)); /* bounds its length, too */
    if (!*files->folder)
        return cm_fail(err, CM_BAD_MODEL,
                       "it is in file '%.*s', but a model in memory has no folder to look in",
                       CM_STR_FMT(location));
    CM_TRY(make_room(files, err));
    char *copy = cm_malloc(location.size + 1);
    if (!copy)
        return no_memory(err);
    memcpy(copy, location.data, location.size);
    copy[location.size] = 0;
    entry.location = (struct cm_str){copy, location.size};
    const enum cm_status status = open_file(files, location, &entry, err);
    if (status) {
        cm_free(copy);
        return status;
    }
    memmove(files->items + at + 1, files->items + at, (files->count - at) * sizeof *files->items);
    files->items[at] = entry;
    files->count++;
    return CM_OK;
}

static struct cm_external_file describe(const struct entry *entry)
{
    const char *data = entry->mapping.data ? (const char *)entry->mapping.data : "";
    return (struct cm_external_file){{data, entry->mapping.size}, entry->device, entry->inode};
}

enum cm_status cm_external_file(struct cm_external_files *files, struct cm_str location,
                                struct cm_external_file *out, struct cm_error *err)
{
    pthread_mutex_lock(&files->lock);
    const size_t at = search(files, location);
    const enum cm_status status =
        is_at(files, at, location) ? CM_OK : add(files, at, location, err);
    if (status == CM_OK)
        *out = describe(&files->items[at]);
    pthread_mutex_unlock(&files->lock);
    return status;
}

enum cm_status cm_external_range(struct cm_external_files *files,
                                 const struct cm_external_place *place, uint64_t need,
                                 struct cm_str *out, struct cm_error *err)
{
    struct cm_external_file file;

    CM_TRY(cm_external_file(files, place->location, &file, err));
    if (place->offset > file.bytes.size || need > file.bytes.size - place->offset)
        return cm_fail(err, CM_BAD_MODEL,
                       "external file '%.*s' has %zu bytes, the tensor needs %llu from offset %llu",
                       CM_STR_FMT(place->location), file.bytes.size, (unsigned long long)need,
                       (unsigned long long)place->offset);
    *out = (struct cm_str){file.bytes.data + place->offset, (size_t)need};
    return CM_OK;
}

enum cm_status cm_external_view(struct cm_external_files *files,
                                const struct cm_tensor_proto *proto, uint64_t need,
                                struct cm_str *out, struct cm_error *err)
{
    struct cm_external_place place;

    CM_TRY(cm_external_place(proto, &place, err));
    if (place.has_length && place.length != need)
        return cm_fail(err, CM_BAD_MODEL, "external length is %llu, its type and shape need %llu",
                       (unsigned long long)place.length, (unsigned long long)need);
    return cm_external_range(files, &place, need, out, err);
}
