/* Which format a checkpoint has. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/format.h"

#include <unistd.h>

// clang-format off
#define FORMATS(ROW) \
    ROW(deepspeed) \
    ROW(flax) \
    ROW(huggingface) \
    ROW(keras) \
    ROW(keras_legacy) \
    ROW(keras_weights) \
    ROW(lightning) \
    ROW(nemo) \
    ROW(onnxruntime) \
    ROW(orbax) \
    ROW(pytorch) \
    ROW(ray) \
    ROW(safetensors) \
    ROW(savedmodel) \
    ROW(tensorflow) \
    ROW(torch_distributed)
// clang-format on

#define DECLARED(name) extern const struct cm_format cm_format_##name;
#define LISTED(name)   &cm_format_##name,
FORMATS(DECLARED)
const struct cm_format *const cm_formats[] = {FORMATS(LISTED) NULL};
const size_t cm_format_count = CM_COUNT(cm_formats) - 1;

/* What a path that nobody recognizes looks like, for people. */
static const char *describe(struct cm_saved_place *place)
{
    static const struct {
        const char *head, *what;
    } known[] = {
        {"PK", "a zip file"},      {"\x1f\x8b", "a gzip file"}, {"{", "JSON"},
        {"\x08", "an ONNX model"}, {"%PDF", "a PDF"},           {"\x89PNG", "an image"},
    };

    if (!place->file.size)
        return place->names.count ? "a folder of other things" : "an empty folder";
    const struct cm_str head = cm_place_head(place, place->file);
    if (!head.size)
        return "an empty file";
    for (size_t i = 0; i < CM_COUNT(known); i++)
        if (cm_str_starts(head, known[i].head))
            return known[i].what;
    return "something else";
}

const struct cm_format *cm_format_of(struct cm_saved_place *place, const struct cm_format *except)
{
    const struct cm_format *best = NULL;
    int sure = 0;

    for (size_t i = 0; i < cm_format_count; i++) {
        const struct cm_format *format = cm_formats[i];
        const int how = format != except && format->recognize ? format->recognize(place) : 0;

        if (how > sure) {
            sure = how;
            best = format;
        }
    }
    return best;
}

enum { TRIED_MAX = 100 };

/* A folder that is no checkpoint may hold one: a file in it, if it is the only one. */
static enum cm_status look_inside(struct cm_saved_place *place, const struct cm_format **best,
                                  struct cm_error *err)
{
    struct cm_saved_place found = {0};

    for (size_t i = 0; !place->file.size && i < place->names.count && i < TRIED_MAX; i++) {
        struct cm_saved_place one = cm_place_file(place, place->names.items[i]);
        const struct cm_format *format = cm_format_of(&one, NULL);
        if (format && *best)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "'%.400s' holds several checkpoints, '%.100s' and '%.100s': name one",
                           cm_str_text(place->path), cm_str_text(found.file),
                           cm_str_text(one.file));
        if (format) {
            *best = format;
            found = one;
        }
    }
    if (*best)
        *place = found;
    return CM_OK;
}

/* A folder whose files are behind links is not recognized, as nobody may read them: say so. */
static enum cm_status refuse_links(const struct cm_saved_place *place, struct cm_error *err)
{
    for (size_t i = 0; !place->file.size && i < place->names.count && i < TRIED_MAX; i++) {
        int fd;

        if (cm_file_open_beneath(cm_str_text(place->folder), place->names.items[i], place->flags,
                                 &fd, err) == CM_BAD_MODEL)
            return cm_error_context(err, CM_BAD_MODEL, "%.600s", cm_str_text(place->path));
        if (fd >= 0)
            close(fd);
    }
    return CM_OK;
}

enum cm_status cm_saved_open(struct cm_arena *arena, const char *path, unsigned flags,
                             struct cm_saved **out, struct cm_error *err)
{
    struct cm_saved_place place;

    CM_TRY(cm_place_open(arena, path, flags, &place, err));
    const struct cm_format *best = cm_format_of(&place, NULL);
    if (!best)
        CM_TRY(look_inside(&place, &best, err));
    if (!best) {
        CM_TRY(refuse_links(&place, err));
        return cm_fail(err, CM_BAD_MODEL,
                       "'%.600s' is not a checkpoint that is known here: it looks like %s", path,
                       describe(&place));
    }
    struct cm_saved *saved = *out = cm_saved_new(arena, place.path);
    saved->system = best->system;
    saved->format = best->what;
    CM_TRY(cm_error_context(err, best->read(&place, saved, err), "%.600s", path));
    cm_place_tell(&place, saved);
    return CM_OK;
}
