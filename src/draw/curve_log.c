/* Training logs: JSON Lines, one flat object a step. Its numbers become curves. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "draw/curve.h"

#include "base/memory.h"

#include <errno.h>

enum { NUMBERS_MAX = 256, NAME_MAX_SIZE = 60, DEPTH_MAX = 32 };

/* The numbers of one line. */
struct line {
    const char *at;
    size_t count;
    struct {
        char name[NAME_MAX_SIZE];
        double value;
    } numbers[NUMBERS_MAX];
};

static void skip_blanks(struct line *line)
{
    while (*line->at == ' ' || *line->at == '\t' || *line->at == '\r' || *line->at == '\n')
        line->at++;
}

static bool take(struct line *line, char c)
{
    skip_blanks(line);
    if (*line->at != c)
        return false;
    line->at++;
    return true;
}

/* A string, its escapes left as they are; what does not fit in name is cut. */
static bool take_string(struct line *line, char *name, size_t size)
{
    size_t used = 0;

    if (!take(line, '"'))
        return false;
    for (; *line->at && *line->at != '"'; line->at++) {
        const bool escape = *line->at == '\\' && line->at[1];

        if (used + 1 + escape < size)
            name[used++] = *line->at;
        if (escape) {
            line->at++;
            if (used + 1 < size)
                name[used++] = *line->at;
        }
    }
    name[used] = 0;
    return take(line, '"');
}

/* Something nested: passed over up to its closing bracket. */
static bool skip_nested(struct line *line)
{
    char text[8];
    int depth = 0;

    do {
        skip_blanks(line);
        if (*line->at == '"') {
            if (!take_string(line, text, sizeof text))
                return false;
            continue;
        }
        if (*line->at == '{' || *line->at == '[')
            depth++;
        else if (*line->at == '}' || *line->at == ']')
            depth--;
        else if (!*line->at)
            return false;
        line->at++;
    } while (depth > 0 && depth < DEPTH_MAX);
    return depth == 0;
}

static bool take_value(struct line *line, const char *name)
{
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    char text[8], *end;

    skip_blanks(line);
    if (*line->at == '"')
        return take_string(line, text, sizeof text);
    if (*line->at == '{' || *line->at == '[')
        return skip_nested(line);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(line->at, words[i], strlen(words[i])) == 0) {
            line->at += strlen(words[i]);
            return true;
        }
    if (*line->at != '-' && (*line->at < '0' || *line->at > '9'))
        return false;
    const double value = cm_read_double(line->at, &end);
    line->at = end;
    if (line->count < NUMBERS_MAX) {
        snprintf(line->numbers[line->count].name, sizeof line->numbers[0].name, "%s", name);
        line->numbers[line->count++].value = value;
    }
    return true;
}

static bool take_object(struct line *line)
{
    char name[NAME_MAX_SIZE];

    line->count = 0;
    if (!take(line, '{'))
        return false;
    if (take(line, '}'))
        return true;
    do {
        if (!take_string(line, name, sizeof name) || !take(line, ':') || !take_value(line, name))
            return false;
    } while (take(line, ','));
    if (!take(line, '}'))
        return false;
    skip_blanks(line);
    return *line->at == 0;
}

/* Everything but the step, which is where the others are. */
static void keep_line(struct cm_curves *curves, const struct line *line, const char *prefix,
                      double number)
{
    double step = number;

    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->numbers[i].name, "step") == 0)
            step = line->numbers[i].value;
    for (size_t i = 0; i < line->count; i++) {
        char name[2 * NAME_MAX_SIZE];

        if (strcmp(line->numbers[i].name, "step") == 0)
            continue;
        snprintf(name, sizeof name, "%.58s%s", prefix, line->numbers[i].name);
        cm_curve_add(curves, cm_curves_get(curves, cm_str(name)), step, line->numbers[i].value);
    }
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
    struct line *line = CM_NEW(scratch, struct line);
    size_t number = 0, kept = 0;
    ssize_t size;

    while ((size = getline(&reading->text, &reading->room, reading->file)) >= 0) {
        number++;
        line->at = reading->text;
        skip_blanks(line);
        if (!*line->at && strlen(reading->text) == (size_t)size)
            continue;
        if (strlen(reading->text) == (size_t)size && take_object(line)) {
            kept++;
            keep_line(curves, line, prefix, (double)kept);
        } else if (reading->text[size - 1] == '\n') { /* else: the run that writes it was stopped */
            return cm_fail(err, CM_BAD_MODEL, "%s: line %zu is not a JSON object", path, number);
        }
    }
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
