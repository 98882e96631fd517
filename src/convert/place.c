/* The files of a checkpoint: listed once, mapped when asked for. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "convert/format.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEVELS = 6, HEAD_SIZE = 64 };

struct cm_place_file {
    struct cm_place_file *next;
    struct cm_str path, name;
    struct cm_mapping mapping;
};

static void unmap(void *file)
{
    cm_mapping_release(&((struct cm_place_file *)file)->mapping);
}

/* ---- listing ---- */

static int by_name(const void *a, const void *b)
{
    return cm_str_compare(*(const struct cm_str *)a, *(const struct cm_str *)b);
}

enum cm_status cm_place_open(struct cm_arena *arena, const char *path, unsigned flags,
                             struct cm_saved_place *out, struct cm_error *err)
{
    struct stat facts;

    *out = (struct cm_saved_place){.arena = arena,
                                   .path = cm_arena_str(arena, cm_str(path)),
                                   .flags = flags,
                                   .named = true,
                                   .opened = CM_NEW(arena, struct cm_place_file *)};
    if (stat(path, &facts) != 0 && errno == ENOENT) { /* TensorFlow's names leave the ending out */
        const struct cm_str index = cm_arena_printf(arena, "%s.index", path);

        if (stat(cm_str_text(index), &facts) == 0 && S_ISREG(facts.st_mode))
            out->path = index;
    }
    path = cm_str_text(out->path);
    if (stat(path, &facts) != 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? cm_fail(err, CM_NOT_FOUND, "there is no file or folder '%.600s'", path)
                   : cm_fail(err, CM_IO, "cannot open '%.600s': %s", path, strerror(errno));
    if (S_ISDIR(facts.st_mode)) {
        out->folder = out->path;
        return cm_error_context(err, cm_folder_list(arena, path, LEVELS, flags, &out->names, err),
                                "%.600s", path);
    }
    out->folder = cm_path_folder(arena, cm_str_text(out->path));
    out->file = cm_arena_str(arena, cm_str(cm_path_name(cm_str_text(out->path))));
    *CM_PUSH(arena, &out->names) = out->file;
    return CM_OK;
}

struct cm_saved_place cm_place_file(struct cm_saved_place *place, struct cm_str name)
{
    const struct cm_str path = cm_path_join(place->arena, place->folder, name);
    struct cm_saved_place one = {
        .arena = place->arena,
        .path = path,
        .folder = cm_path_folder(place->arena, cm_str_text(path)),
        .file = cm_arena_str(place->arena, cm_str(cm_path_name(cm_str_text(path)))),
        .flags = place->flags,
        .opened = place->opened};

    *CM_PUSH(place->arena, &one.names) = one.file;
    return one;
}

struct cm_saved_place cm_place_below(struct cm_saved_place *place, struct cm_str folder)
{
    struct cm_saved_place below = {.arena = place->arena,
                                   .path = cm_path_join(place->arena, place->folder, folder),
                                   .flags = place->flags,
                                   .opened = place->opened};

    below.folder = below.path;
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];

        if (name.size > folder.size + 1 && memcmp(name.data, folder.data, folder.size) == 0 &&
            name.data[folder.size] == '/')
            *CM_PUSH(place->arena, &below.names) = cm_str_from(name, folder.size + 1);
    }
    return below;
}

bool cm_place_has(const struct cm_saved_place *place, struct cm_str name)
{
    return place->names.count &&
           bsearch(&name, place->names.items, place->names.count, sizeof name, by_name);
}

/* ---- reading ---- */

static enum cm_status open_file(struct cm_saved_place *place, struct cm_str name, int *fd,
                                struct cm_error *err)
{
    /* What the user named may be a link; names inside come from files. */
    if (place->named && place->file.size && cm_str_equal(name, place->file)) {
        *fd = open(cm_str_text(place->path), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (*fd < 0)
            return cm_fail(err, CM_IO, "cannot open '%.600s': %s", cm_str_text(place->path),
                           strerror(errno));
        return CM_OK;
    }
    return cm_file_open_beneath(cm_str_text(place->folder), name, place->flags, fd, err);
}

enum cm_status cm_place_map(struct cm_saved_place *place, struct cm_str name, struct cm_str *out,
                            struct cm_error *err)
{
    const struct cm_str path = cm_path_join(place->arena, place->folder, name);
    struct cm_place_file *file = *place->opened;
    int fd;

    while (file && !cm_str_equal(file->path, path))
        file = file->next;
    if (!file) {
        CM_TRY(open_file(place, name, &fd, err));
        struct cm_mapping mapping;
        const enum cm_status status = cm_fd_map(fd, cm_str_text(path), false, &mapping, err);
        close(fd);
        CM_TRY(status);
        file = CM_NEW(place->arena, struct cm_place_file);
        *file =
            (struct cm_place_file){*place->opened, path, cm_arena_str(place->arena, name), mapping};
        cm_arena_defer(place->arena, unmap, file);
        *place->opened = file;
    }
    *out = file->mapping.size
               ? (struct cm_str){(const char *)file->mapping.data, file->mapping.size}
               : CM_STR(""); /* readers add to the pointer, which must not be NULL */
    return CM_OK;
}

enum cm_status cm_place_json(struct cm_saved_place *place, struct cm_str name, struct cm_item **out,
                             struct cm_error *err)
{
    struct cm_str text;

    *out = NULL;
    if (!cm_place_has(place, name))
        return CM_OK;
    CM_TRY(cm_place_map(place, name, &text, err));
    return cm_error_context(err, cm_item_parse_json(place->arena, text, out, err), "%.*s",
                            CM_STR_FMT(name));
}

struct cm_str cm_place_head(struct cm_saved_place *place, struct cm_str name)
{
    char *head = cm_arena_alloc(place->arena, HEAD_SIZE);
    int fd;

    if (open_file(place, name, &fd, NULL))
        return CM_STR_NONE;
    const ssize_t got = pread(fd, head, HEAD_SIZE, 0);
    close(fd);
    return (struct cm_str){head, got > 0 ? (size_t)got : 0};
}

void cm_place_tell(const struct cm_saved_place *place, struct cm_saved *saved)
{
    for (const struct cm_place_file *file = *place->opened; file; file = file->next) {
        *CM_PUSH(saved->arena, &saved->files) = file->name;
        if (file->mapping.data && !file->mapping.copied)
            *CM_PUSH(saved->arena, &saved->mapped) =
                (struct cm_str){(const char *)file->mapping.data, file->mapping.size};
    }
}
