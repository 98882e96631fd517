/* Matrix products by our own kernel and by oneDNN's, in turns: the best time of each and their
 * ratio.
 *
 *     build/bench/run_product [THREADS]
 *
 * One thread is measured in processor time, several by the clock. Names: m x n x k, then how the
 * operands come: "weights" are constant, "plain" ones may change, "A^T" and "B^T" lie transposed.
 */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "exec/session.h"
#include "lower/lower.h"
#include "onnx/syntax.h"

#include <stdlib.h>
#include <time.h>

enum { MOST_INPUTS = 4, ROUNDS = 9 };

static const double round_seconds = 4e-3;

struct shape {
    int batches; /* of both operands; 1: none */
    int m, n, k;
};

static const struct shape shapes[] = {
    {1, 1, 768, 768},   {1, 1, 3072, 768},     {1, 2, 768, 768},    {1, 4, 768, 768},
    {1, 8, 768, 768},   {1, 8, 3072, 768},     {1, 16, 768, 768},   {1, 32, 1024, 256},
    {1, 64, 512, 784},  {1, 64, 10, 512},      {1, 64, 512, 512},   {1, 12, 64, 64},
    {1, 37, 53, 71},    {1, 128, 128, 64},     {1, 128, 256, 256},  {1, 197, 768, 768},
    {1, 512, 512, 64},  {1, 784, 512, 64},     {1, 2048, 256, 256}, {1, 256, 1024, 2048},
    {1, 512, 768, 768}, {1, 1000, 1000, 1000}, {16, 128, 128, 64},  {16, 128, 64, 128},
    {48, 1, 64, 64},    {200, 16, 16, 16},     {64, 33, 35, 37},
};

enum kind { WEIGHTS, PLAIN, LEFT, RIGHT, KINDS };
static const char *const kind_names[KINDS] = {"weights", "plain", "A^T", "B^T"};

static double seconds(bool of_processor)
{
    struct timespec time;
    clock_gettime(of_processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A model of one product; from malloc. */
static char *text_of(const struct shape *s, enum kind kind)
{
    const size_t weights = kind == WEIGHTS ? (size_t)s->k * (size_t)s->n : 0;
    const size_t room = 1024 + 4 * weights;
    char *text = malloc(room), batch[32] = "";
    if (!text)
        return NULL;
    if (s->batches > 1)
        snprintf(batch, sizeof batch, "%d, ", s->batches);
    const int a[2] = {kind == LEFT ? s->k : s->m, kind == LEFT ? s->m : s->k};
    const int b[2] = {kind == RIGHT ? s->n : s->k, kind == RIGHT ? s->k : s->n};
    size_t at = (size_t)snprintf(
        text, room, "<ir_version: 10, opset_import: [\"\" : 28]>\nmain (float[%s%d, %d] a", batch,
        a[0], a[1]);
    if (kind == WEIGHTS) {
        at +=
            (size_t)snprintf(text + at, room - at, ") => (float[%s%d, %d] y) <float[%d, %d] b = {",
                             batch, s->m, s->n, b[0], b[1]);
        for (size_t i = 0; i < weights; i++)
            at += (size_t)snprintf(text + at, room - at, "%s%zu", i ? "," : "", 1 + i % 7);
        at += (size_t)snprintf(text + at, room - at, "}> ");
    } else {
        at += (size_t)snprintf(text + at, room - at, ", float[%s%d, %d] b) => (float[%s%d, %d] y) ",
                               batch, b[0], b[1], batch, s->m, s->n);
    }
    snprintf(text + at, room - at, "{ y = %s(a, b) }",
             kind == LEFT    ? "Gemm<transA = 1>"
             : kind == RIGHT ? "Gemm<transB = 1>"
                             : "MatMul");
    return text;
}

static enum cm_status open_text(struct cm_arena *arena, const char *text, const char *backend,
                                int threads, struct cm_session **out, struct cm_graph **graph,
                                struct cm_error *err)
{
    const struct cm_session_options options = {.threads = threads, .backend = backend};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    CM_TRY(cm_syntax_parse_model(cm_str(text), arena, model, err));
    CM_TRY(cm_lower_import(cm_module_new(arena, NULL), model, NULL, graph, err));
    CM_TRY(cm_lower_graph(*graph, NULL, err));
    return cm_session_new(*graph, &options, out, err);
}

static void drop(void *datum)
{
    cm_datum_drop(datum);
}

static enum cm_status make_input(struct cm_arena *arena, const struct cm_type *type,
                                 const struct cm_datum **out, struct cm_error *err)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_shape shape;
    cm_type_shape(type, &shape);
    CM_TRY(cm_tensor_new(type->dtype, &shape, &datum->tensor, err));
    datum->kind = CM_KIND_TENSOR;
    cm_arena_defer(arena, drop, datum);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] = (float)(0.5 + (double)(i % 1000) / 1000);
    *out = datum;
    return CM_OK;
}

struct side {
    const char *backend;
    struct cm_session *session;
    struct cm_datum out;
    double best;
};

static void note_kernel(void *arg, const struct cm_step_report *report)
{
    *(const char **)arg = report->kernel;
}

/* One round of one side. */
static enum cm_status measure(struct side *side, const struct cm_datum *const *in, size_t n_in,
                              int threads, struct cm_error *err)
{
    for (double left = round_seconds; left > 0;) {
        const double began = seconds(threads == 1);
        CM_TRY(cm_session_run(side->session, in, n_in, &side->out, 1, NULL, err));
        const double took = seconds(threads == 1) - began;
        side->best = took < side->best ? took : side->best;
        left -= took;
    }
    return CM_OK;
}

static enum cm_status compare(struct cm_arena *arena, const struct shape *s, enum kind kind,
                              int threads, struct cm_error *err)
{
    struct side sides[2] = {{.backend = "cpu", .best = 1e9}, {.backend = "onednn", .best = 1e9}};
    const struct cm_datum *in[MOST_INPUTS];
    const char *ran = "";
    size_t n_in = 0;
    char *text = text_of(s, kind);
    enum cm_status status = text ? CM_OK : cm_fail(err, CM_NO_MEMORY, "no memory");
    for (int i = 0; i < 2 && !status; i++) {
        struct cm_graph *graph;
        status = open_text(arena, text, sides[i].backend, threads, &sides[i].session, &graph, err);
        n_in = status ? 0 : graph->n_inputs;
        for (size_t j = 0; j < n_in && !status && i == 0; j++)
            status = make_input(arena, cm_value_get(graph->module, graph->inputs[j])->fact.type,
                                &in[j], err);
        const struct cm_run_options options = {.step = note_kernel, .step_arg = &ran};
        if (!status)
            status = cm_session_run(sides[i].session, in, n_in, &sides[i].out, 1, &options, err);
        if (!status && !cm_str_is(cm_str(ran), sides[i].backend))
            sides[i].best = 0;
    }
    for (int round = 0; round < ROUNDS && !status; round++)
        for (int i = 0; i < 2 && !status; i++)
            if (sides[i].best > 0)
                status = measure(&sides[i], in, n_in, threads, err);
    if (!status) {
        const double work = 2.0 * s->batches * s->m * s->n * s->k;
        printf("%3d x %4d x %4d x %4d %-7s  ours %9.1f us %6.1f GFLOP/s  onednn %9.1f us  %.2fx\n",
               s->batches, s->m, s->n, s->k, kind_names[kind], sides[0].best * 1e6,
               work / sides[0].best * 1e-9, sides[1].best * 1e6, sides[1].best / sides[0].best);
        fflush(stdout);
    }
    for (int i = 0; i < 2; i++) {
        cm_datum_drop(&sides[i].out);
        cm_session_free(sides[i].session);
    }
    free(text);
    return status;
}

static int threads_wanted = 1;

static enum cm_status bench(struct cm_guard *guard, void *arg)
{
    struct cm_error *err = arg;
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < CM_COUNT(shapes); i++)
        for (int kind = 0; kind < KINDS && !status; kind++) {
            struct cm_arena arena;
            if (shapes[i].batches > 1 && kind != PLAIN)
                continue;
            cm_arena_init(&arena, guard);
            status = compare(&arena, &shapes[i], (enum kind)kind, threads_wanted, err);
            cm_arena_release(&arena);
        }
    return status;
}

int main(int argc, char **argv)
{
    struct cm_error err = {0};
    if (argc > 1)
        threads_wanted = (int)strtol(argv[1], NULL, 10);
    if (cm_guarded(0, &err, bench, &err) == CM_OK)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
