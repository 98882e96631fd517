/* Sessions for tests. */
// SPDX-License-Identifier: Apache-2.0
#include "exec_case.h"

#include "lower/lower.h"

static void free_session(void *what)
{
    cm_session_free(what);
}

struct cm_session *exec_open_after(struct cm_arena *arena, struct cm_graph *graph,
                                   const char *passes, const struct cm_session_options *options)
{
    struct cm_session *session = NULL;
    struct cm_error err = {0};
    const struct cm_lower_options lower = {
        .pass = {.memory_limit = options ? options->memory_limit : 0}, .passes.only = passes};
    CHECK_OK(cm_lower_graph(graph, &lower, &err), &err);
    CHECK_OK(cm_session_new(graph, options, &session, &err), &err);
    cm_arena_defer(arena, free_session, session);
    return session;
}

struct cm_session *exec_open(struct cm_arena *arena, struct cm_graph *graph,
                             const struct cm_session_options *options)
{
    return exec_open_after(arena, graph, "fold", options);
}

struct cm_session *exec_of(struct cm_arena *arena, const char *text,
                           const struct cm_session_options *options)
{
    return exec_open(arena, graph_of(arena, text, NULL), options);
}

static void drop_datum(void *what)
{
    cm_datum_drop(what);
}

struct cm_datum *exec_ramp(struct cm_arena *arena, const struct cm_shape *shape, double first)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_error err = {0};
    CHECK_OK(cm_tensor_new(CM_FLOAT, shape, &datum->tensor, &err), &err);
    datum->kind = CM_KIND_TENSOR;
    cm_arena_defer(arena, drop_datum, datum);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] = (float)(first + (double)i / 4);
    return datum;
}

bool exec_same(const struct cm_datum *a, const struct cm_datum *b)
{
    if (a->kind != b->kind || a->n_items != b->n_items)
        return false;
    for (size_t i = 0; i < a->n_items; i++)
        if (!exec_same(&a->items[i], &b->items[i]))
            return false;
    if (a->kind != CM_KIND_TENSOR)
        return true;
    const size_t bytes = cm_tensor_bytes(&a->tensor);
    return a->tensor.type == b->tensor.type && cm_shape_equal(&a->tensor.shape, &b->tensor.shape) &&
           (bytes == 0 || memcmp(a->tensor.data, b->tensor.data, bytes) == 0);
}

void exec_check(struct cm_session *session, const struct cm_datum *const *in, size_t n_in,
                size_t n_out, const double *expected, size_t count)
{
    struct cm_datum out[8] = {0};
    struct cm_error err = {0};
    CHECK(n_out <= CM_COUNT(out));
    CHECK_OK(cm_session_run(session, in, n_in, out, n_out, NULL, &err), &err);
    CHECK_INT(out[0].kind, CM_KIND_TENSOR);
    CHECK_INT(cm_tensor_count(&out[0].tensor), count);
    for (size_t i = 0; i < count; i++)
        if (cm_tensor_real(&out[0].tensor, (int64_t)i) != expected[i])
            fail_msg("element %zu is %g, expected %g", i,
                     cm_tensor_real(&out[0].tensor, (int64_t)i), expected[i]);
    for (size_t o = 0; o < n_out; o++)
        cm_datum_drop(&out[o]);
}
