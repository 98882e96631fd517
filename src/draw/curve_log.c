/* Training logs: JSON Lines, one flat object a step. Its numbers become curves. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "draw/curve.h"

#include "base/memory.h"
#include "bytes/item.h"

#include <errno.h>
#include <math.h>

enum { NAME_MAX_SIZE = 60 };

static bool is_number(const struct cm_item_entry *entry, double *out)
{
    return (entry->value->kind == CM_ITEM_INT || entry->value->kind == CM_ITEM_REAL) &&
           cm_item_is_real(entry->value, out) && isfinite(*out);
}

/* Everything but the step, which is where the others are; false: the line is no object. */
static bool keep_line(struct cm_curves *curves, struct cm_arena *arena, struct cm_str text,
                      const char *prefix, double number)
{
    struct cm_item *line;
    double step = number, value;

    if (cm_item_parse_json(arena, text, &line, NULL) || line->kind != CM_ITEM_MAP)
        return false;
    for (size_t i = 0; i < line->entries.count; i++)
        if (cm_str_is(line->entries.items[i].key->text, "step"))
            (void)is_number(&line->entries.items[i], &step);
    for (size_t i = 0; i < line->entries.count; i++) {
        const struct cm_str key = line->entries.items[i].key->text;
        char name[2 * NAME_MAX_SIZE];

        if (cm_str_is(key, "step") || !is_number(&line->entries.items[i], &value))
            continue;
        snprintf(name, sizeof name, "%.58s%.*s", prefix,
                 key.size < NAME_MAX_SIZE ? (int)key.size : NAME_MAX_SIZE - 1, key.data);
        cm_curve_add(curves, cm_curves_get(curves, cm_str(name)), step, value);
    }
    return true;
}

static bool is_blank(struct cm_str text)
{
    while (text.size && memchr(" \t\r\n", text.data[text.size - 1], 4))
        text.size--;
    return text.size == 0;
}

/* What must be let go of, whatever happens. */
struct reading {
    FILE *file;
    char *text;
    size_t room;
};

static void close_reading(void *arg)
{
    struct reading *reading = arg;

    if (reading->file)
        fclose(reading->file);
    free(reading->text);
}

static enum cm_status fail_file(const char *path, int why, struct cm_error *err)
{
    const bool named_wrong =
        why == ENOENT || why == ENOTDIR || why == EISDIR || why == EEXIST || why == ENAMETOOLONG;
    return cm_fail(err, named_wrong ? CM_NOT_FOUND : CM_IO, "%s: %s", path, strerror(why));
}

static enum cm_status read_lines(struct cm_curves *curves, struct reading *reading,
                                 const char *path, const char *prefix, struct cm_arena *scratch,
                                 struct cm_error *err)
{
    struct cm_arena arena; /* of one line */
    size_t number = 0, kept = 0;
    ssize_t size;

    cm_arena_init(&arena, scratch->guard);
    while ((size = getline(&reading->text, &reading->room, reading->file)) >= 0) {
        const struct cm_str text = {reading->text, (size_t)size};

        number++;
        if (is_blank(text))
            continue;
        cm_arena_reset(&arena);
        if (keep_line(curves, &arena, text, prefix, (double)kept + 1)) {
            kept++;
        } else if (text.data[text.size - 1] ==
                   '\n') { /* else: the run that writes it was stopped */
            cm_arena_release(&arena);
            return cm_fail(err, CM_BAD_MODEL, "%s: line %zu is not a JSON object", path, number);
        }
    }
    cm_arena_release(&arena);
    if (ferror(reading->file))
        return fail_file(path, errno, err);
    if (!feof(reading->file)) {
        cm_memory_note_refused();
        return cm_fail(err, CM_NO_MEMORY, "%s: no memory for line %zu", path, number + 1);
    }
    return kept ? CM_OK : cm_fail(err, CM_BAD_MODEL, "%s: it holds no step", path);
}

enum cm_status cm_curves_read(struct cm_curves *curves, const char *path, const char *prefix,
                              struct cm_arena *scratch, struct cm_error *err)
{
    struct reading *reading = CM_NEW(scratch, struct reading);

    cm_arena_defer(scratch, close_reading, reading);
    reading->file = fopen(path, "rb");
    if (!reading->file)
        return fail_file(path, errno, err);
    const enum cm_status status = read_lines(curves, reading, path, prefix, scratch, err);
    cm_arena_reset(scratch);
    return status;
}
