/* Elementwise regions as one step and as the steps of their bodies: processor time of one thread
 * for each, and their ratio. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "exec/session.h"
#include "graph/import.h"
#include "onnx/syntax.h"
#include "rewrite/pass.h"

#include <time.h>

enum { ROUNDS = 15, RUNS = 3, MOST = 16 };

struct region {
    const char *name;
    const char *text; /* of a model whose nodes become one region; inputs have their shapes */
};

#define HEAD "<ir_version: 10, opset_import: [\"\" : 28]>\nmain "
#define GATE(type, shape, row, between)                                                            \
    HEAD "(" type shape " x, " type row " a, " type row " b) => (" type shape " y)"                \
         "{ p = Mul(x, a) q = Add(p, b) s = " between "(q) y = Mul(s, x) }"
#define ADAM(n)                                                                                    \
    HEAD "(float[" n "] w, float[" n "] g, float[" n "] m, float[" n                               \
         "] v, float lr, float b1, float b2, float c1, float c2, float eps) => (float[" n          \
         "] w2, float[" n "] m2, float[" n "] v2) { a = Mul(m, b1) b = Mul(g, c1) m2 = Add(a, b) " \
         "gg = Mul(g, g) c = Mul(v, b2) d = Mul(gg, c2) v2 = Add(c, d) s = Sqrt(v2) "              \
         "t = Add(s, eps) u = Div(m2, t) z = Mul(u, lr) w2 = Sub(w, z) }"

static const struct region regions[] = {
    {"x * a + b, Sigmoid, * x", GATE("float", "[1048576]", "", "Sigmoid")},
    {"x * a + b, Relu, * x", GATE("float", "[1048576]", "", "Relu")},
    {"the same in double", GATE("double", "[1048576]", "", "Relu")},
    {"the same in float16", GATE("float16", "[1048576]", "", "Relu")},
    {"16 million floats", GATE("float", "[16777216]", "", "Relu")},
    {"rows of 1024", GATE("float", "[1024, 1024]", "[1024]", "Relu")},
    {"rows of 64", GATE("float", "[16384, 64]", "[64]", "Relu")},
    {"columns beside rows of 64", GATE("float", "[16384, 64]", "[16384, 1]", "Relu")},
    {"rows of 3", GATE("float", "[349525, 3]", "[3]", "Relu")},
    {"columns beside rows of 3", GATE("float", "[349525, 3]", "[349525, 1]", "Relu")},
    {"Adam's update of 1 million", ADAM("1000000")},
    {"Adam's update of 1000", ADAM("1000")},
};

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void drop(void *datum)
{
    cm_datum_drop(datum);
}

/* Positive numbers around 1, whatever the type. */
static enum cm_status make_input(struct cm_arena *arena, const struct cm_type *type,
                                 const struct cm_datum **out, struct cm_error *err)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_shape shape;
    cm_type_shape(type, &shape);
    CM_TRY(cm_tensor_new(type->dtype, &shape, &datum->tensor, err));
    datum->kind = CM_KIND_TENSOR;
    cm_arena_defer(arena, drop, datum);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++) {
        const double number = 0.5 + (double)(i % 1000) / 1000;
        if (type->dtype == CM_FLOAT)
            ((float *)datum->tensor.data)[i] = (float)number;
        else if (type->dtype == CM_DOUBLE)
            ((double *)datum->tensor.data)[i] = number;
        else
            ((uint16_t *)datum->tensor.data)[i] = (uint16_t)(0x3c00 + i % 1000);
    }
    *out = datum;
    return CM_OK;
}

/* Milliseconds of the best run as one step and as several; results are written to the same memory
 * from the second run on. */
static enum cm_status measure(struct cm_session *session, const struct cm_datum *const *in,
                              size_t n_in, size_t n_out, double *best, struct cm_error *err)
{
    struct cm_datum out[MOST] = {0};
    enum cm_status status = CM_OK;
    best[0] = best[1] = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        for (int apart = 0; apart < 2; apart++) {
            const struct cm_run_options options = {.apart = apart};
            for (int i = 0; i <= RUNS && !status; i++) {
                const double began = seconds();
                status = cm_session_run(session, in, n_in, out, n_out, &options, err);
                const double took = (seconds() - began) * 1e3;
                if (i > 0 && took < best[apart]) /* the first one binds */
                    best[apart] = took;
            }
        }
    }
    for (size_t o = 0; o < n_out; o++)
        cm_datum_drop(&out[o]);
    return status;
}

static enum cm_status bench_one(struct cm_arena *arena, const struct region *region,
                                struct cm_error *err)
{
    const struct cm_session_options options = {.threads = 1};
    const struct cm_datum *in[MOST];
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_graph *graph;
    struct cm_session *session;
    double best[2];

    CM_TRY(cm_syntax_parse_model(cm_str(region->text), arena, model, err));
    CM_TRY(cm_module_import(cm_module_new(arena, NULL), model, NULL, &graph, err));
    CM_TRY(cm_pass_regions(graph, &(struct cm_pass_options){0}, err));
    for (size_t i = 0; i < graph->n_inputs; i++)
        CM_TRY(make_input(arena, cm_value_get(graph->module, graph->inputs[i])->fact.type, &in[i],
                          err));
    const size_t n_in = graph->n_inputs, n_out = graph->n_outputs, n_nodes = graph->n_nodes;
    CM_TRY(cm_session_new(graph, &options, &session, err));
    const enum cm_status status = measure(session, in, n_in, n_out, best, err);
    cm_session_free(session);
    if (!status)
        printf("region %-26s %zu node%s  %9.3f ms  body %9.3f ms  %.2fx\n", region->name, n_nodes,
               n_nodes == 1 ? " " : "s", best[0], best[1], best[1] / best[0]);
    return status;
}

static enum cm_status bench(struct cm_guard *guard, void *arg)
{
    struct cm_error *err = arg;
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < CM_COUNT(regions) && !status; i++) {
        struct cm_arena arena;
        cm_arena_init(&arena, guard);
        status = bench_one(&arena, &regions[i], err);
        cm_arena_release(&arena);
    }
    return status;
}

int main(void)
{
    struct cm_error err = {0};
    if (cm_guarded(0, &err, bench, &err) == CM_OK)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
