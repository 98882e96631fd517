/* CSV with a header: numbers are read once, checked, and kept as doubles, a line after the other.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "io/rows.h"

#include "base/map.h"
#include "base/number.h"
#include "io/spool.h"

enum { COLUMNS_MAX = 1 << 20 };

struct column {
    struct cm_str name;
    bool used, whole; /* some array takes it; all its numbers are whole so far */
    double value;     /* in the line being read */
};

/* Columns that make one array. */
struct group {
    struct cm_str name;
    enum cm_dtype type;
    CM_ARRAY(size_t); /* numbers of columns */
};

struct csv {
    struct cm_arena *arena;
    const char *at, *end;
    char separator;
    uint64_t line;
    CM_ARRAY(struct column);
    struct group *groups;
    size_t n_groups;
    struct cm_map names;
    struct cm_error *err;
};

static bool at_line_end(const struct csv *csv)
{
    return csv->at == csv->end || *csv->at == '\n' ||
           (*csv->at == '\r' && (csv->at + 1 == csv->end || csv->at[1] == '\n'));
}

static void skip_line_end(struct csv *csv)
{
    csv->at += csv->at < csv->end && *csv->at == '\r';
    csv->at += csv->at < csv->end && *csv->at == '\n';
    csv->line++;
}

static struct cm_str trim(struct cm_str text)
{
    while (text.size && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = cm_str_from(text, 1);
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* A cell, up to the separator or the end of the line, which stay. A quote within quotes is doubled;
 * such a cell is returned with both, which no number has. */
static enum cm_status take_cell(struct csv *csv, struct cm_str *out)
{
    const char *begin = csv->at;

    if (csv->at == csv->end || *csv->at != '"') {
        while (!at_line_end(csv) && *csv->at != csv->separator)
            csv->at++;
        *out = trim((struct cm_str){begin, (size_t)(csv->at - begin)});
        return CM_OK;
    }
    const uint64_t line = csv->line;
    for (csv->at++; csv->at < csv->end; csv->at++) {
        csv->line += *csv->at == '\n';
        if (*csv->at != '"')
            continue;
        if (csv->at + 1 == csv->end || csv->at[1] != '"')
            break;
        csv->at++;
    }
    if (csv->at == csv->end)
        return cm_fail(csv->err, CM_BAD_MODEL, "line %llu has a quote without an end",
                       (unsigned long long)line);
    *out = (struct cm_str){begin + 1, (size_t)(csv->at - begin - 1)};
    csv->at++;
    if (!at_line_end(csv) && *csv->at != csv->separator)
        return cm_fail(csv->err, CM_BAD_MODEL, "line %llu goes on after a quote",
                       (unsigned long long)line);
    return CM_OK;
}

/* Comma, unless the first line has none of them but semicolons or tabs. */
static char find_separator(const struct csv *csv)
{
    const char *const stop = memchr(csv->at, '\n', (size_t)(csv->end - csv->at));
    const size_t size = (size_t)((stop ? stop : csv->end) - csv->at);

    if (memchr(csv->at, ',', size))
        return ',';
    return memchr(csv->at, ';', size) ? ';' : memchr(csv->at, '\t', size) ? '\t' : ',';
}

static enum cm_status read_header(struct csv *csv)
{
    bool numbers = true, added;
    double number;

    if (csv->end - csv->at >= 3 && memcmp(csv->at, "\xef\xbb\xbf", 3) == 0)
        csv->at += 3;
    if (csv->at == csv->end)
        return cm_fail(csv->err, CM_BAD_MODEL, "it is empty");
    csv->separator = find_separator(csv);
    for (;;) {
        struct cm_str name;

        CM_TRY(take_cell(csv, &name));
        if (csv->count == COLUMNS_MAX)
            return cm_fail(csv->err, CM_LIMIT, "it has more than %d columns", COLUMNS_MAX);
        *CM_PUSH(csv->arena, csv) = (struct column){.name = name, .whole = true};
        *cm_map_insert(&csv->names, csv->arena, name, &added) = csv->count - 1;
        if (!added)
            return cm_fail(csv->err, CM_BAD_MODEL, "it has two columns '%.*s'", CM_STR_FMT(name));
        numbers = numbers && cm_str_to_double(name, &number);
        if (at_line_end(csv))
            break;
        csv->at++;
    }
    skip_line_end(csv);
    return !numbers ? CM_OK
                    : cm_fail(csv->err, CM_BAD_MODEL,
                              "its first line holds numbers, not the names of its columns");
}

static enum cm_status find_column(const struct csv *csv, struct cm_str name, size_t *out)
{
    const uint64_t *found = cm_map_find(&csv->names, name);
    const struct column *near = NULL;
    size_t best = 3;

    if (found) {
        *out = (size_t)*found;
        return CM_OK;
    }
    for (size_t i = 0; i < csv->count && i < 1000; i++) {
        const size_t distance = cm_str_distance(csv->items[i].name, name);

        if (distance < best) {
            best = distance;
            near = &csv->items[i];
        }
    }
    if (near)
        return cm_fail(csv->err, CM_NOT_FOUND, "it has no column '%.*s'; did you mean '%.*s'?",
                       CM_STR_FMT(name), CM_STR_FMT(near->name));
    return cm_fail(csv->err, CM_NOT_FOUND, "it has no column '%.*s' among its %zu",
                   CM_STR_FMT(name), csv->count);
}

static enum cm_status add_range(struct csv *csv, struct group *group,
                                const struct cm_column_range *range)
{
    size_t first, last;

    CM_TRY(find_column(csv, range->first, &first));
    CM_TRY(find_column(csv, range->last, &last));
    if (last < first)
        return cm_fail(csv->err, CM_BAD_ARGUMENT, "column '%.*s' comes after '%.*s'",
                       CM_STR_FMT(range->first), CM_STR_FMT(range->last));
    for (size_t i = first; i <= last; i++) {
        if (group->count == COLUMNS_MAX)
            return cm_fail(csv->err, CM_LIMIT, "array '%.*s' has more than %d columns",
                           CM_STR_FMT(group->name), COLUMNS_MAX);
        *CM_PUSH(csv->arena, group) = i;
        csv->items[i].used = true;
    }
    return CM_OK;
}

/* Named columns first, so that "the rest" is known. */
static enum cm_status choose(struct csv *csv, const char *text)
{
    struct cm_column_arrays arrays;

    CM_TRY(cm_columns_parse(csv->arena, text, &arrays, csv->err));
    csv->n_groups = arrays.count;
    csv->groups = CM_NEW_ARRAY(csv->arena, struct group, arrays.count);
    for (size_t i = 0; i < arrays.count; i++) {
        const struct cm_column_array *array = &arrays.items[i];

        csv->groups[i].name = cm_arena_str(csv->arena, array->name);
        csv->groups[i].type = array->type;
        for (size_t k = 0; k < array->count; k++)
            if (!array->items[k].rest)
                CM_TRY(add_range(csv, &csv->groups[i], &array->items[k]));
    }
    for (size_t i = 0; i < arrays.count; i++)
        for (size_t k = 0; k < arrays.items[i].count; k++)
            for (size_t c = 0; arrays.items[i].items[k].rest && c < csv->count; c++) {
                if (csv->items[c].used)
                    continue;
                csv->items[c].used = true;
                *CM_PUSH(csv->arena, &csv->groups[i]) = c;
            }
    for (size_t i = 0; i < csv->n_groups; i++)
        if (csv->groups[i].count == 0)
            return cm_fail(csv->err, CM_BAD_ARGUMENT, "no column is left for array '%.*s'",
                           CM_STR_FMT(csv->groups[i].name));
    return CM_OK;
}

/* All but the last are x, the last is y. */
static enum cm_status choose_last(struct csv *csv)
{
    if (csv->count < 2)
        return cm_fail(csv->err, CM_BAD_MODEL,
                       "it has one column '%.*s'; without --columns the last is y and the others "
                       "are x",
                       CM_STR_FMT(csv->items[0].name));
    csv->n_groups = 2;
    csv->groups = CM_NEW_ARRAY(csv->arena, struct group, 2);
    csv->groups[0].name = CM_STR("x");
    csv->groups[1].name = CM_STR("y");
    for (size_t c = 0; c < csv->count; c++) {
        csv->items[c].used = true;
        *CM_PUSH(csv->arena, &csv->groups[c + 1 == csv->count]) = c;
    }
    return CM_OK;
}

static enum cm_status read_number(const struct csv *csv, struct column *column, struct cm_str cell)
{
    int64_t integer;

    if (cell.size == 0)
        return cm_fail(csv->err, CM_BAD_MODEL, "line %llu: column '%.*s' is empty",
                       (unsigned long long)csv->line, CM_STR_FMT(column->name));
    if (cm_str_to_int64(cell, &integer)) {
        if (integer > INT64_C(1) << 53 || integer < -(INT64_C(1) << 53))
            return cm_fail(csv->err, CM_BAD_MODEL,
                           "line %llu: column '%.*s' holds %lld, too large to be kept exactly",
                           (unsigned long long)csv->line, CM_STR_FMT(column->name),
                           (long long)integer);
        column->value = (double)integer;
        return CM_OK;
    }
    column->whole = false;
    if (!cm_str_to_double(cell, &column->value))
        return cm_fail(csv->err, CM_BAD_MODEL, "line %llu: column '%.*s' holds '%.*s', no number",
                       (unsigned long long)csv->line, CM_STR_FMT(column->name), CM_STR_FMT(cell));
    return CM_OK;
}

static enum cm_status read_line(struct csv *csv)
{
    for (size_t c = 0;; c++) {
        struct cm_str cell;

        CM_TRY(take_cell(csv, &cell));
        if (csv->items[c].used)
            CM_TRY(read_number(csv, &csv->items[c], cell));
        const bool last = at_line_end(csv);
        if (last != (c + 1 == csv->count))
            return cm_fail(csv->err, CM_BAD_MODEL, "line %llu has %s cells than the %zu columns",
                           (unsigned long long)csv->line, last ? "fewer" : "more", csv->count);
        if (last)
            break;
        csv->at++;
    }
    skip_line_end(csv);
    return CM_OK;
}

static enum cm_status read_lines(struct csv *csv, struct cm_spool *spool, int64_t *n)
{
    *n = 0;
    while (csv->at < csv->end) {
        if (at_line_end(csv)) { /* empty lines mean nothing */
            skip_line_end(csv);
            continue;
        }
        CM_TRY(read_line(csv));
        for (size_t i = 0; i < csv->n_groups; i++)
            for (size_t k = 0; k < csv->groups[i].count; k++)
                CM_TRY(cm_spool_write(spool, &csv->items[csv->groups[i].items[k]].value,
                                      sizeof(double), csv->err));
        ++*n;
    }
    return *n ? CM_OK : cm_fail(csv->err, CM_BAD_MODEL, "it has no line after its header");
}

/* One column of whole numbers is a label or an index, so int64; all else is float. */
static enum cm_dtype natural_type(const struct csv *csv, const struct group *group)
{
    if (group->type)
        return group->type;
    return group->count == 1 && csv->items[group->items[0]].whole ? CM_INT64 : CM_FLOAT;
}

static enum cm_status add_groups(struct csv *csv, struct cm_str numbers, int64_t n,
                                 struct cm_rows_list *out)
{
    const uint8_t *data = (const uint8_t *)numbers.data;

    for (size_t i = 0; i < csv->n_groups; i++) {
        const struct group *group = &csv->groups[i];
        const struct cm_shape shape = {group->count > 1 ? 2 : 1, {n, (int64_t)group->count}};
        struct cm_rows *rows;

        CM_TRY(cm_rows_add(csv->arena, out, group->name, CM_DOUBLE, &shape, data, &rows, csv->err));
        rows->stride = numbers.size / (size_t)n;
        rows->view.type = natural_type(csv, group);
        CM_TRY(cm_error_context(csv->err, cm_rows_check_view(rows, &rows->view, csv->err),
                                "array '%.*s'", CM_STR_FMT(group->name)));
        data += group->count * sizeof(double);
    }
    return CM_OK;
}

enum cm_status cm_rows_csv(const struct cm_rows_file *file, struct cm_rows_list *out,
                           struct cm_error *err)
{
    struct csv csv = {.arena = file->arena, .at = file->bytes.data, .line = 1, .err = err};
    struct cm_spool *spool = cm_spool_new(file->arena, 0);
    struct cm_str numbers;
    int64_t n;

    if (file->bytes.size == 0)
        return cm_fail(err, CM_BAD_MODEL, "it is empty");
    csv.end = csv.at + file->bytes.size;
    CM_TRY(read_header(&csv));
    CM_TRY(file->columns ? choose(&csv, file->columns) : choose_last(&csv));
    CM_TRY(read_lines(&csv, spool, &n));
    CM_TRY(cm_spool_finish(spool, &numbers, err));
    return add_groups(&csv, numbers, n, out);
}
