/* Training logs: JSON Lines, one flat object a step, of which the numbers are taken. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "curve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 256, DEPTH_MAX = 32 };

/* The numbers of one line. */
struct line {
    const char *at;
    size_t count;
    struct {
        char name[CURVE_NAME_MAX / 2];
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
    const double value = strtod(line->at, &end);
    line->at = end;
    if (line->count < NUMBERS_MAX) {
        snprintf(line->numbers[line->count].name, sizeof line->numbers[0].name, "%s", name);
        line->numbers[line->count++].value = value;
    }
    return true;
}

static bool take_object(struct line *line)
{
    char name[CURVE_NAME_MAX / 2];

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
static void keep_line(struct curves *curves, const struct line *line, const char *prefix,
                      double number)
{
    double step = number;

    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->numbers[i].name, "step") == 0)
            step = line->numbers[i].value;
    for (size_t i = 0; i < line->count; i++) {
        char name[CURVE_NAME_MAX];

        if (strcmp(line->numbers[i].name, "step") == 0)
            continue;
        snprintf(name, sizeof name, "%.58s%s", prefix, line->numbers[i].name);
        curve_add(curves_get(curves, name), step, line->numbers[i].value);
    }
}

static int read_lines(struct curves *curves, FILE *file, const char *path, const char *prefix)
{
    struct line *line = cli_alloc(1, sizeof *line);
    char *text = NULL;
    size_t room = 0, number = 0, kept = 0;
    int code = CLI_YES;

    while (code == CLI_YES) {
        const ssize_t size = getline(&text, &room, file);

        if (size < 0 && !feof(file) && !ferror(file))
            cli_no_memory();
        if (size < 0)
            break;
        number++;
        line->at = text;
        skip_blanks(line);
        if (!*line->at && strlen(text) == (size_t)size)
            continue;
        if (strlen(text) == (size_t)size && take_object(line)) {
            kept++;
            keep_line(curves, line, prefix, (double)kept);
        } else if (text[size - 1] == '\n') { /* else: the run that writes it was stopped there */
            cli_complain("%s: line %zu is not a JSON object", path, number);
            code = CLI_NO;
        }
    }
    if (ferror(file)) {
        const int why = errno;

        cli_complain("%s: %s", path, strerror(why));
        code = cli_errno_code(why);
    } else if (code == CLI_YES && kept == 0) {
        cli_complain("%s: it holds no step", path);
        code = CLI_NO;
    }
    free(text);
    free(line);
    return code;
}

int curves_read(struct curves *curves, const char *path, const char *prefix)
{
    FILE *file = fopen(path, "rb");

    if (!file) {
        const int why = errno;

        cli_complain("%s: %s", path, strerror(why));
        return cli_errno_code(why);
    }
    const int code = read_lines(curves, file, path, prefix);
    fclose(file);
    return code;
}
