/* What the executor itself costs: chains of tiny nodes, whose arithmetic is next to nothing.
 *
 *     build/bench/run_small
 *
 * Prints nanoseconds per node of a run whose shapes are as before, of a run that meets new shapes,
 * and of a loop whose body is the chain; best of several rounds. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "exec/session.h"
#include "lower/lower.h"
#include "onnx/syntax.h"

#include <time.h>

enum { NODES = 100, ELEMENTS = 8, ROUNDS = 7 };

static double seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* The chain from value `from` to value v100, one node to a line. */
static void put_chain(char *text, size_t room, const char *from)
{
    size_t at = (size_t)snprintf(text, room, "v0 = Neg(%s)\n", from);
    for (int i = 1; i <= NODES && at < room; i++)
        at += (size_t)snprintf(text + at, room - at,
                               i % 2 ? "v%d = Relu(v%d)\n" : "v%d = Add(v%d, x)\n", i, i - 1);
}

static enum cm_status open_text(struct cm_arena *arena, const char *text, struct cm_session **out,
                                struct cm_error *err)
{
    const struct cm_session_options options = {.threads = 1, .backend = "reference"};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_graph *graph;
    CM_TRY(cm_syntax_parse_model(cm_str(text), arena, model, err));
    CM_TRY(cm_lower_import(cm_module_new(arena, NULL), model, NULL, &graph, err));
    CM_TRY(cm_lower_graph(graph, NULL, err));
    return cm_session_new(graph, &options, out, err);
}

static enum cm_status run(struct cm_session *session, int64_t elements, int64_t trips,
                          struct cm_error *err)
{
    float x[64] = {1, -1};
    struct cm_datum out = {0};
    const struct cm_datum in = {.kind = CM_KIND_TENSOR,
                                .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(elements), x)};
    const struct cm_datum n = {.kind = CM_KIND_TENSOR,
                               .tensor = cm_tensor_borrow(CM_INT64, &CM_SCALAR, &trips)};
    const struct cm_datum *const both[] = {&in, &n};
    const enum cm_status status = cm_session_run(session, both, 2, &out, 1, NULL, err);
    cm_datum_drop(&out);
    return status;
}

/* Seconds of `runs` runs, best of all rounds; new shapes in each when asked for. */
static enum cm_status measure(struct cm_session *session, int runs, int64_t trips, bool new_shapes,
                              double *best, struct cm_error *err)
{
    *best = 1e9;
    for (int i = 0; i < 3; i++)
        CM_TRY(run(session, ELEMENTS, trips, err));
    for (int round = 0; round < ROUNDS; round++) {
        const double began = seconds();
        for (int i = 0; i < runs; i++)
            CM_TRY(run(session, new_shapes ? 1 + i % 60 : ELEMENTS, trips, err));
        const double took = seconds() - began;
        *best = took < *best ? took : *best;
    }
    return CM_OK;
}

static enum cm_status bench(struct cm_guard *guard, void *arg)
{
    struct cm_error *err = arg;
    static char chain[1 << 14], text[1 << 15];
    static const char head[] = "<ir_version: 10, opset_import: [\"\" : 28]>\n"
                               "main (float[N] x, int64 n) => (float[N] ";
    struct cm_arena arena;
    struct cm_session *plain = NULL, *loop = NULL;
    double same = 0, fresh = 0, body = 0;
    enum { RUNS = 2000, FRESH = 60, TRIPS = 200 };

    cm_arena_init(&arena, guard);
    put_chain(chain, sizeof chain, "x");
    snprintf(text, sizeof text, "%sv%d) { %s }", head, NODES, chain);
    enum cm_status status = open_text(&arena, text, &plain, err);
    put_chain(chain, sizeof chain, "s");
    snprintf(
        text, sizeof text,
        "%sy) { y = Loop (n, , x) <body = step (int64 i, bool c, float[] s) => (bool c, float[] "
        "v%d) { %s }> }",
        head, NODES, chain);
    if (!status)
        status = open_text(&arena, text, &loop, err);
    if (!status)
        status = measure(plain, RUNS, 0, false, &same, err);
    if (!status)
        status = measure(plain, FRESH, 0, true, &fresh, err);
    if (!status)
        status = measure(loop, 5, TRIPS, false, &body, err);
    if (!status)
        printf("run %d nodes of %d floats  %.0f ns/node   new shapes %.0f ns/node   in a loop's "
               "body %.0f ns/node\n",
               NODES + 1, ELEMENTS, same / RUNS / (NODES + 1) * 1e9,
               fresh / FRESH / (NODES + 1) * 1e9, body / 5 / TRIPS / (NODES + 1) * 1e9);
    cm_session_free(plain);
    cm_session_free(loop);
    cm_arena_release(&arena);
    return status;
}

int main(void)
{
    struct cm_error err = {0};
    if (cm_guarded(0, &err, bench, &err) == CM_OK)
        return 0;
    fprintf(stderr, "run_small: %s\n", err.text);
    return 3;
}
