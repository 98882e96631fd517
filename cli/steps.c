/* What a run did: gathered step by step, told as a table or as a trace. */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 2000000 };

void cli_steps_add(void *arg, const struct cameo_step *step)
{
    struct cli_steps *steps = arg;

    if (steps->count == STEPS_MAX) {
        steps->lost = true;
        return;
    }
    steps->items = cli_grow(steps->items, steps->count, &steps->room, sizeof *steps->items);
    struct cli_step *made = &steps->items[steps->count++];
    *made = (struct cli_step){.kernel = step->kernel,
                              .id = step->id,
                              .begin_ns = step->begin_ns,
                              .end_ns = step->end_ns,
                              .live_bytes = step->live_bytes,
                              .flops = step->flops,
                              .depth = step->depth};
    snprintf(made->node, sizeof made->node, "%s", step->node.data);
    snprintf(made->op, sizeof made->op, "%s", step->op.data);
    snprintf(made->declined, sizeof made->declined, "%s", step->declined);
}

void cli_steps_free(struct cli_steps *steps)
{
    free(steps->items);
    *steps = (struct cli_steps){0};
}

/* One node of the table: its steps added up. */
struct row {
    const struct cli_step *first;
    uint64_t runs, ns;
    double flops;
};

/* Rows by node, in the order in which nodes first ran; place maps a node to its row. */
static size_t add_up(const struct cli_steps *steps, struct row *rows, size_t *place, size_t room)
{
    size_t count = 0;

    for (size_t i = 0; i < steps->count; i++) {
        const struct cli_step *step = &steps->items[i];
        size_t at = (size_t)(step->id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);

        while (place[at] && rows[place[at] - 1].first->id != step->id)
            at = (at + 1) & (room - 1);
        if (!place[at]) {
            rows[count] = (struct row){.first = step};
            place[at] = ++count;
        }
        rows[place[at] - 1].runs++;
        rows[place[at] - 1].flops += step->flops;
        rows[place[at] - 1].ns += step->end_ns - step->begin_ns;
    }
    return count;
}

static struct cameo_text text_of(const char *text)
{
    return (struct cameo_text){text, strlen(text)};
}

/* " 87%" of the peak, and who declined; the rest of a line. */
static void end_row(FILE *to, const struct row *row, double peak)
{
    const char *declined = row->first->declined;

    if (row->flops > 0 && peak > 0 && row->ns > 0)
        fprintf(to, " %5.0f%%", 100 * row->flops / ((double)row->ns / 1e9) / peak);
    else if (declined[0])
        fprintf(to, " %6s", "");
    if (declined[0]) {
        fputs("  ", to);
        cli_put_text(to, declined, strlen(declined));
    }
    fputc('\n', to);
}

static void print_row(FILE *to, const struct row *row, double peak)
{
    const struct cli_step *step = row->first;

    fprintf(to, "%*s", step->depth * 2, "");
    cli_put_padded(to, text_of(step->op), (size_t)(step->depth < 8 ? 20 - step->depth * 2 : 4));
    fputc(' ', to);
    cli_put_padded(to, text_of(step->node[0] ? step->node : "-"), 24);
    fprintf(to, " %-10s %6llu %12.1f", step->kernel, (unsigned long long)row->runs,
            (double)row->ns / 1000);
    end_row(to, row, peak);
}

void cli_steps_explain(FILE *to, const struct cli_steps *steps, double peak)
{
    size_t room = 16;

    while (room < steps->count * 2)
        room *= 2;
    struct row *rows = cli_alloc(steps->count, sizeof *rows);
    size_t *place = cli_alloc(room, sizeof *place);
    const size_t count = add_up(steps, rows, place, room);

    fprintf(to, "%-20s %-24s %-10s %6s %12s %6s  %s\n", "operator", "node", "kernel", "runs",
            "time in us", "peak", "declined");
    for (size_t i = 0; i < count; i++)
        print_row(to, &rows[i], peak);
    if (steps->lost)
        fputs("... and more than could be kept\n", to);
    cli_print_libraries(to);
    free(rows);
    free(place);
}

/* ---- by operator ---- */

enum { SUMMARY_MAX = 512, SUMMARY_SHOWN = 12 };

static bool is_like(const struct cli_step *a, const struct cli_step *b)
{
    return strcmp(a->op, b->op) == 0 && strcmp(a->kernel, b->kernel) == 0 &&
           strcmp(a->declined, b->declined) == 0;
}

static int longer(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Steps of bodies are part of the step that runs the body. */
static size_t by_operator(const struct cli_steps *steps, struct row rows[SUMMARY_MAX],
                          uint64_t *all)
{
    size_t count = 0;

    for (size_t i = 0; i < steps->count; i++) {
        const struct cli_step *step = &steps->items[i];
        size_t at = 0;

        if (step->depth > 0)
            continue;
        *all += step->end_ns - step->begin_ns;
        while (at < count && !is_like(rows[at].first, step))
            at++;
        if (at == SUMMARY_MAX)
            continue;
        if (at == count)
            rows[count++] = (struct row){.first = step};
        rows[at].runs++;
        rows[at].ns += step->end_ns - step->begin_ns;
        rows[at].flops += step->flops;
    }
    return count;
}

void cli_steps_summary(FILE *to, const struct cli_steps *steps, double peak)
{
    struct row *rows = cli_alloc(SUMMARY_MAX, sizeof *rows);
    uint64_t all = 0;
    const size_t count = by_operator(steps, rows, &all);

    qsort(rows, count, sizeof *rows, longer);
    fprintf(to, "%-40s %-10s %6s %12s %6s %6s  %s\n", "operator", "kernel", "nodes", "time in us",
            "share", "peak", "declined");
    for (size_t i = 0; i < count && i < SUMMARY_SHOWN; i++) {
        const struct cli_step *step = rows[i].first;

        cli_put_padded(to, text_of(step->op), 40);
        fprintf(to, " %-10s %6llu %12.1f %5.1f%%", step->kernel, (unsigned long long)rows[i].runs,
                (double)rows[i].ns / 1000, 100 * (double)rows[i].ns / (double)(all ? all : 1));
        end_row(to, &rows[i], peak);
    }
    if (count > SUMMARY_SHOWN)
        fprintf(to, "and %zu more\n", count - SUMMARY_SHOWN);
    free(rows);
}

static void write_event(struct cli_json *json, const struct cli_step *step)
{
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "name", step->op);
    cli_json_string(json, "cat", step->kernel);
    cli_json_string(json, "ph", "X");
    cli_json_real(json, "ts", (double)step->begin_ns / 1000);
    cli_json_real(json, "dur", (double)(step->end_ns - step->begin_ns) / 1000);
    cli_json_int(json, "pid", 1);
    cli_json_int(json, "tid", 1);
    cli_json_open(json, "args", '{');
    cli_json_string(json, "node", step->node);
    cli_json_string(json, "kernel", step->kernel);
    if (step->declined[0])
        cli_json_string(json, "declined", step->declined);
    cli_json_count(json, "bytes", step->live_bytes);
    if (step->flops > 0)
        cli_json_real(json, "flops", step->flops);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

/* A curve of the memory that results hold. */
static void write_memory(struct cli_json *json, const struct cli_step *step)
{
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "name", "memory");
    cli_json_string(json, "ph", "C");
    cli_json_real(json, "ts", (double)step->end_ns / 1000);
    cli_json_int(json, "pid", 1);
    cli_json_open(json, "args", '{');
    cli_json_count(json, "bytes", step->live_bytes);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

int cli_steps_profile(const char *path, const struct cli_steps *steps)
{
    struct cli_output output;
    const int code = cli_output_begin(&output, path);
    struct cli_json json = {.to = output.to};

    if (code != CLI_YES)
        return code;
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "displayTimeUnit", "ns");
    cli_json_open(&json, "traceEvents", '[');
    for (size_t i = 0; i < steps->count; i++) {
        write_event(&json, &steps->items[i]);
        write_memory(&json, &steps->items[i]);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    return cli_output_end(&output, CLI_YES);
}
