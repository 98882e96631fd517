/* What a run did: gathered step by step, told as a table or as a trace. */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 2000000 };

void cli_steps_add(void *arg, const struct cameo_step *step)
{
    struct cli_steps *steps = arg;

    if (steps->count == steps->room) {
        const size_t room = steps->room * 2 + 256;
        struct cli_step *grown =
            room > STEPS_MAX ? NULL : realloc(steps->items, room * sizeof *grown);

        if (!grown) {
            steps->lost = true;
            return;
        }
        steps->items = grown;
        steps->room = room;
    }
    struct cli_step *made = &steps->items[steps->count++];
    *made = (struct cli_step){.kernel = step->kernel,
                              .id = step->id,
                              .begin_ns = step->begin_ns,
                              .end_ns = step->end_ns,
                              .live_bytes = step->live_bytes,
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
        rows[place[at] - 1].ns += step->end_ns - step->begin_ns;
    }
    return count;
}

static struct cameo_text text_of(const char *text)
{
    return (struct cameo_text){text, strlen(text)};
}

static void print_row(FILE *to, const struct row *row)
{
    const struct cli_step *step = row->first;

    fprintf(to, "%*s", step->depth * 2, "");
    cli_put_padded(to, text_of(step->op), (size_t)(step->depth < 8 ? 20 - step->depth * 2 : 4));
    fputc(' ', to);
    cli_put_padded(to, text_of(step->node[0] ? step->node : "-"), 24);
    fprintf(to, " %-10s %6llu %12.1f", step->kernel, (unsigned long long)row->runs,
            (double)row->ns / 1000);
    if (step->declined[0]) {
        fputs("  ", to);
        cli_put_text(to, step->declined, strlen(step->declined));
    }
    fputc('\n', to);
}

void cli_steps_explain(FILE *to, const struct cli_steps *steps)
{
    size_t room = 16;

    while (room < steps->count * 2)
        room *= 2;
    struct row *rows = calloc(steps->count + 1, sizeof *rows);
    size_t *place = calloc(room, sizeof *place);
    if (rows && place) {
        const size_t count = add_up(steps, rows, place, room);

        fprintf(to, "%-20s %-24s %-10s %6s %12s  %s\n", "operator", "node", "kernel", "runs",
                "time in us", "declined");
        for (size_t i = 0; i < count; i++)
            print_row(to, &rows[i]);
        if (steps->lost)
            fputs("... and more than could be kept\n", to);
        cli_print_libraries(to);
    }
    free(rows);
    free(place);
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
    FILE *to = fopen(path, "w");
    struct cli_json json = {.to = to};

    if (!to) {
        cli_complain("cannot write %s: %s", path, strerror(errno));
        return CLI_MACHINE;
    }
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "displayTimeUnit", "ns");
    cli_json_open(&json, "traceEvents", '[');
    for (size_t i = 0; i < steps->count; i++) {
        write_event(&json, &steps->items[i]);
        write_memory(&json, &steps->items[i]);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    int code = cli_flush(to, path);
    if (fclose(to) != 0 && code == CLI_YES)
        code = cli_broken(path);
    return code;
}
