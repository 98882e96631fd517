/* External files that a model leaves behind when another takes its place. Removing a file is the
 * one thing here that cannot be undone, so every doubt keeps it: links, names that are not ours,
 * neighbours that use it or cannot be read. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/array.h"
#include "base/map.h"
#include "onnx/model_save.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder with more models than this is not searched. */
enum { MAX_NEIGHBOURS = 256 };

/* Padding would be compared, too, so there is none. */
struct identity {
    uint64_t device, inode;
};

struct candidate {
    struct cm_str location;
    struct identity identity;
};

struct cm_old_data {
    const char *path;
    struct cm_load_options how; /* models are read */
    struct cm_str folder;
    CM_ARRAY(struct candidate);
};

struct collect {
    struct cm_arena *arena;
    struct cm_old_data *old;
    struct cm_map seen; /* locations */
    struct cm_map used; /* identities, as bytes */
};

static struct identity identity_of(const struct stat *facts)
{
    return (struct identity){(uint64_t)facts->st_dev, (uint64_t)facts->st_ino};
}

/* Only what open_beneath accepts without links is ever removed: nothing outside, one name. */
static enum cm_status collect_candidate(void *arg, struct cm_tensor_proto *tensor)
{
    struct collect *collect = arg;
    struct cm_str location;
    struct stat facts;
    int fd;

    if (!cm_tensor_proto_location(tensor, &location))
        return CM_OK;
    if (!cm_map_add(&collect->seen, collect->arena, location) ||
        cm_file_open_beneath(cm_str_text(collect->old->folder), location, 0, &fd, NULL) != CM_OK)
        return CM_OK;
    const bool known = fstat(fd, &facts) == 0;
    close(fd);
    if (known)
        *CM_PUSH(collect->arena, collect->old) = (struct candidate){location, identity_of(&facts)};
    return CM_OK;
}

struct cm_old_data *cm_old_data_find(struct cm_arena *arena, const char *path,
                                     const struct cm_mlir_form_hooks *mlir)
{
    struct cm_old_data *old = CM_NEW(arena, struct cm_old_data);
    struct collect collect = {.arena = arena, .old = old};
    struct cm_model_file *file;
    struct stat facts;

    old->how = (struct cm_load_options){.mlir = mlir};
    old->path = cm_arena_str(arena, cm_str(path)).data;
    old->folder = cm_path_folder(arena, path);
    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0 &&
        cm_model_open(arena, path, &old->how, &file, NULL) == CM_OK &&
        cm_model_each_tensor(&file->model, collect_candidate, &collect) != CM_OK)
        old->count = 0;
    return old;
}

static struct cm_str without_extension(struct cm_str name)
{
    size_t size = name.size;

    while (size > 0 && name.data[size - 1] != '.')
        size--;
    return size > 1 ? (struct cm_str){name.data, size - 1} : name;
}

static bool begins_with(struct cm_str text, struct cm_str prefix)
{
    return text.size >= prefix.size && memcmp(text.data, prefix.data, prefix.size) == 0;
}

/* "<stem>", perhaps "-<numbers>", and the same ending. */
static bool is_variant(struct cm_str name, struct cm_str base)
{
    const struct cm_str stem = without_extension(base);
    const struct cm_str ending = {base.data + stem.size, base.size - stem.size};

    if (name.size < base.size || !begins_with(name, stem))
        return false;
    const size_t end = name.size - ending.size;
    if (ending.size && memcmp(name.data + end, ending.data, ending.size) != 0)
        return false;
    for (size_t i = stem.size; i < end; i++) {
        const char c = name.data[i];
        if (c != '-' && (c < '0' || c > '9'))
            return false;
    }
    return end == stem.size || name.data[stem.size] == '-';
}

static bool is_named_like_ours(struct cm_arena *arena, const struct cm_old_data *old,
                               struct cm_str location, const char *external_name)
{
    const struct cm_str model = cm_str(cm_path_name(old->path));
    const struct cm_str stem = without_extension(model);
    const struct cm_str names[] = {
        cm_arena_printf(arena, "%s.data", cm_str_text(model)),
        cm_arena_printf(arena, "%.*s.data", CM_STR_FMT(stem)),
        cm_str(external_name),
    };

    for (size_t i = 0; i < CM_COUNT(names); i++) {
        if (names[i].size && is_variant(location, names[i]))
            return true;
    }
    return false;
}

/* Whatever way a model gets to a file, links included, it uses it. */
static enum cm_status collect_used(void *arg, struct cm_tensor_proto *tensor)
{
    struct collect *collect = arg;
    struct cm_str location;
    struct stat facts;

    if (!cm_tensor_proto_location(tensor, &location))
        return CM_OK;
    if (!cm_map_add(&collect->seen, collect->arena, location))
        return CM_OK;
    const struct cm_str path = cm_path_join(collect->arena, collect->old->folder, location);
    if (stat(cm_str_text(path), &facts) != 0)
        return CM_OK;
    struct identity *key = CM_NEW(collect->arena, struct identity);
    *key = identity_of(&facts);
    cm_map_insert(&collect->used, collect->arena, (struct cm_str){(const char *)key, sizeof *key},
                  NULL);
    return CM_OK;
}

static bool note_uses(struct collect *collect, const char *path)
{
    struct cm_model_file *file;

    return cm_model_open(collect->arena, path, &collect->old->how, &file, NULL) == CM_OK &&
           cm_model_each_tensor(&file->model, collect_used, collect) == CM_OK;
}

static bool is_model_name(struct cm_str name)
{
    static const char *const endings[] = {".onnx", ".onnxtxt", ".onnxtext", ".mlir", ".pb"};

    for (size_t i = 0; i < CM_COUNT(endings); i++) {
        if (cm_str_ends(name, endings[i]))
            return true;
    }
    return false;
}

static void close_folder(void *folder)
{
    closedir(folder);
}

/* False when a neighbour could not be asked. */
static bool note_neighbours(struct collect *collect)
{
    DIR *folder = opendir(cm_str_text(collect->old->folder));
    size_t asked = 0;

    if (!folder)
        return false;
    cm_arena_defer(collect->arena, close_folder, folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const struct cm_str name = cm_str(entry->d_name);
        if (!is_model_name(name) || cm_str_is(name, cm_path_name(collect->old->path)))
            continue;
        const struct cm_str path = cm_path_join(collect->arena, collect->old->folder, name);
        if (++asked > MAX_NEIGHBOURS || !note_uses(collect, cm_str_text(path)))
            return false;
    }
    return true;
}

struct removal {
    const struct cm_old_data *old;
    const char *external_name;
    struct cm_save_report *report;
};

static void leave(struct cm_save_report *report, const struct candidate *items, size_t count)
{
    if (count && report->old_left == 0)
        snprintf(report->old_name, sizeof report->old_name, "%.*s", CM_STR_FMT(items->location));
    report->old_left += count;
}

static void remove_unused(struct collect *collect, const struct removal *removal)
{
    const struct cm_old_data *old = collect->old;

    for (size_t i = 0; i < old->count; i++) {
        const struct candidate *item = &old->items[i];
        const struct cm_str key = {(const char *)&item->identity, sizeof item->identity};
        if (cm_map_find(&collect->used, key))
            continue;
        const struct cm_str path = cm_path_join(collect->arena, old->folder, item->location);
        const bool ours =
            is_named_like_ours(collect->arena, old, item->location, removal->external_name);
        if (ours && unlink(cm_str_text(path)) == 0)
            removal->report->old_removed++;
        else
            leave(removal->report, item, 1);
    }
}

static enum cm_status remove_guarded(struct cm_guard *guard, void *arg)
{
    const struct removal *removal = arg;
    struct cm_old_data old = *removal->old;
    struct cm_arena arena;
    struct collect collect = {.arena = &arena, .old = &old};

    cm_arena_init(&arena, guard);
    if (note_uses(&collect, old.path) && note_neighbours(&collect))
        remove_unused(&collect, removal);
    else
        leave(removal->report, old.items, old.count);
    cm_arena_release(&arena);
    return CM_OK;
}

void cm_old_data_remove(const struct cm_old_data *old, const char *external_name,
                        struct cm_save_report *report)
{
    struct removal removal = {old, external_name, report};

    /* The model is saved by now: running out of memory here only leaves files behind. */
    if (old->count && cm_guarded(0, NULL, remove_guarded, &removal) != CM_OK)
        leave(report, old->items, old->count);
}
