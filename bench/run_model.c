/* Runs a model on made-up inputs and prints how long that takes. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "exec/session.h"
#include "lower/lower.h"
#include "onnx/model_file.h"

#include <time.h>

static const char usage[] =
    "usage: run_model [--threads N] [--backend NAME] [--without PASSES] [--runs N] [--steps]\n"
    "                 [--serve] MODEL\n"
    "--steps  also what each step took, by operator and kernel\n"
    "--serve  reads how many runs to make, line by line, and prints the milliseconds of each\n";

struct settings {
    struct cm_session_options session;
    const char *path, *without;
    int runs;
    bool steps, serve;
};

enum { MOST_VALUES = 256, MOST_RUNS = 100000, MOST_KINDS = 256 };

struct bench {
    const struct settings *settings;
    struct cm_session *session;
    struct cm_datum in[MOST_VALUES], out[MOST_VALUES];
    const struct cm_datum *in_list[MOST_VALUES];
    size_t n_in, n_out;
    struct cm_error err;
};

static double now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* ---- inputs: numbers between 0 and 1 that are the same each time; unknown sizes are 1 ---- */

static enum cm_status make_input(const struct cm_type *type, struct cm_datum *out,
                                 struct cm_error *err)
{
    struct cm_shape shape = {.rank = type->rank > 0 ? type->rank : 0};
    if (type->kind != CM_KIND_TENSOR || type->dtype == CM_STRING)
        return cm_fail(err, CM_UNSUPPORTED, "an input is no tensor of numbers");
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = cm_dim_known(type->dims[i]) ? type->dims[i].value : 1;
    CM_TRY(cm_tensor_new(type->dtype, &shape, &out->tensor, err));
    out->kind = CM_KIND_TENSOR;
    memset(out->tensor.data, 0, cm_tensor_bytes(&out->tensor));
    uint32_t state = 1;
    for (int64_t i = 0; type->dtype == CM_FLOAT && i < cm_tensor_count(&out->tensor); i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)out->tensor.data)[i] = (float)(state >> 8) / 16777216.0f;
    }
    return CM_OK;
}

/* Before IR version 4 every initializer had to be an input too. Peers take such for constants when
 * nothing is fed, and so does this program. */
static void drop_defaults(struct cm_arena *arena, struct cm_graph_proto *graph)
{
    struct cm_map names = {0};
    size_t kept = 0;
    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&names, arena, graph->initializer.items[i].name, NULL);
    for (size_t i = 0; i < graph->input.count; i++)
        if (!cm_map_find(&names, graph->input.items[i].name))
            graph->input.items[kept++] = graph->input.items[i];
    graph->input.count = kept;
}

static enum cm_status open_model(struct cm_arena *arena, struct bench *b)
{
    struct cm_model_file *file;
    struct cm_graph *graph;
    CM_TRY(cm_model_open(arena, b->settings->path, NULL, &file, &b->err));
    if (file->model.ir_version < 4 && file->model.graph)
        drop_defaults(arena, file->model.graph);
    struct cm_module *module =
        cm_module_new(arena, &(struct cm_module_options){.files = file->files});
    CM_TRY(cm_lower_import(module, &file->model, NULL, &graph, &b->err));
    b->n_in = graph->n_inputs;
    b->n_out = graph->n_outputs;
    if (b->n_in > MOST_VALUES || b->n_out > MOST_VALUES)
        return cm_fail(&b->err, CM_LIMIT, "more than %d inputs or outputs", MOST_VALUES);
    for (size_t i = 0; i < b->n_in; i++) {
        const struct cm_value_def *def = cm_value_get(module, graph->inputs[i]);
        if (def->initializer)
            continue;
        CM_TRY(make_input(def->fact.type, &b->in[i], &b->err));
        b->in_list[i] = &b->in[i];
    }
    CM_TRY(cm_lower_graph(graph, &(struct cm_lower_options){.passes.without = b->settings->without},
                          &b->err));
    return cm_session_new(graph, &b->settings->session, &b->session, &b->err);
}

/* ---- running ---- */

static enum cm_status run_once(struct bench *b, const struct cm_run_options *options, double *ms)
{
    const double began = now_ms();
    CM_TRY(cm_session_run(b->session, b->in_list, b->n_in, b->out, b->n_out, options, &b->err));
    *ms = now_ms() - began;
    for (size_t o = 0; o < b->n_out; o++)
        cm_datum_drop(&b->out[o]);
    return CM_OK;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum cm_status run_many(struct bench *b, double *times, int runs)
{
    for (int i = 0; i < runs; i++)
        CM_TRY(run_once(b, NULL, &times[i]));
    return CM_OK;
}

/* ---- where the time goes ---- */

struct kind {
    struct cm_str op;
    const char *kernel, *declined;
    double ms;
    int count;
};

struct kinds {
    struct kind items[MOST_KINDS];
    size_t count;
    double between, last; /* time that is no step's: reorders */
};

static void note_step(void *arg, const struct cm_step_report *report)
{
    struct kinds *kinds = arg;
    size_t k = 0;
    kinds->between += (double)report->begin_ns / 1e6 - kinds->last;
    kinds->last = (double)report->end_ns / 1e6;
    while (k < kinds->count && (!cm_str_equal(kinds->items[k].op, report->node->op_type) ||
                                strcmp(kinds->items[k].kernel, report->kernel) != 0 ||
                                strcmp(kinds->items[k].declined, report->declined) != 0))
        k++;
    if (k == MOST_KINDS)
        return;
    struct kind *kind = &kinds->items[k];
    if (k == kinds->count) {
        *kind = (struct kind){report->node->op_type, report->kernel, report->declined, 0, 0};
        kinds->count++;
    }
    kind->ms += (double)(report->end_ns - report->begin_ns) / 1e6;
    kind->count++;
}

static int by_time(const void *a, const void *b)
{
    return compare(&((const struct kind *)b)->ms, &((const struct kind *)a)->ms);
}

static enum cm_status print_steps(struct bench *b)
{
    static struct kinds kinds;
    const struct cm_run_options options = {.step = note_step, .step_arg = &kinds};
    double ms;
    CM_TRY(run_once(b, &options, &ms));
    qsort(kinds.items, kinds.count, sizeof kinds.items[0], by_time);
    for (size_t k = 0; k < kinds.count; k++)
        printf("%9.3f ms %4d x %-20.*s %-10s %s\n", kinds.items[k].ms, kinds.items[k].count,
               CM_STR_FMT(kinds.items[k].op), kinds.items[k].kernel, kinds.items[k].declined);
    printf("%9.3f ms between steps: changes of layout\n", kinds.between);
    return CM_OK;
}

/* ---- the program ---- */

static enum cm_status serve(struct bench *b, double *times)
{
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const long runs = strtol(line, NULL, 10);
        if (runs < 1 || runs > MOST_RUNS)
            return cm_fail(&b->err, CM_BAD_ARGUMENT, "cannot make that many runs");
        CM_TRY(run_many(b, times, (int)runs));
        for (long i = 0; i < runs; i++)
            printf("%.6f%c", times[i], i + 1 < runs ? ' ' : '\n');
        fflush(stdout);
    }
    return CM_OK;
}

static enum cm_status measure(struct cm_guard *guard, void *arg)
{
    static double times[MOST_RUNS];
    struct bench *b = arg;
    struct cm_arena arena;
    const double began = now_ms();
    cm_arena_init(&arena, guard);
    CM_TRY(open_model(&arena, b));
    const double created = now_ms() - began;
    CM_TRY(run_many(b, times, 3));
    const double first = times[0];
    if (b->settings->serve)
        return serve(b, times);
    CM_TRY(run_many(b, times, b->settings->runs));
    if (b->settings->steps)
        CM_TRY(print_steps(b));
    qsort(times, (size_t)b->settings->runs, sizeof times[0], compare);
    printf("best %.3f ms  median %.3f ms  of %d runs; first run %.1f ms, made ready in %.1f ms\n",
           times[0], times[b->settings->runs / 2], b->settings->runs, first, created);
    return CM_OK;
}

static bool parse(int argc, char **argv, struct settings *out)
{
    *out = (struct settings){.runs = 20, .session = {.threads = 1}};
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--threads") == 0 && more)
            out->session.threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--backend") == 0 && more)
            out->session.backend = argv[++i];
        else if (strcmp(argv[i], "--without") == 0 && more)
            out->without = argv[++i];
        else if (strcmp(argv[i], "--runs") == 0 && more)
            out->runs = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--steps") == 0)
            out->steps = true;
        else if (strcmp(argv[i], "--serve") == 0)
            out->serve = true;
        else if (argv[i][0] != '-' && !out->path)
            out->path = argv[i];
        else
            return false;
    }
    return out->path && out->runs > 0 && out->runs <= MOST_RUNS;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct settings settings;
    if (!parse(argc, argv, &settings)) {
        fputs(usage, stderr);
        return 2;
    }
    bench.settings = &settings;
    const enum cm_status status = cm_guarded(0, &bench.err, measure, &bench);
    if (status)
        fprintf(stderr, "%s: %s\n", settings.path, bench.err.text);
    return status ? 1 : 0;
}
