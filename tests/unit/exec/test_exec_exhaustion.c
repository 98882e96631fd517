/* Every allocation of a run, and of opening a session, made to fail in turn: a status, no leak, and
 * a session that goes on. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "exec_case.h"
#include "onnx/syntax.h"

static const char *model;
static const struct cm_shape shapes[] = {{1, {3}}, {1, {5}}};

/* Fresh sessions, so that everything a first run makes is made under failure; then a second run of
 * another shape, and one that must succeed. */
static void fail_in_turn(struct cm_arena *arena)
{
    struct cm_session *good = exec_of(arena, model, NULL);
    const struct cm_datum *in[2][2];
    struct cm_datum expected[2] = {0};
    struct cm_error err = {0};
    for (int i = 0; i < 2; i++) {
        in[i][0] = exec_ramp(arena, &shapes[i], -0.5);
        in[i][1] = graph_int(arena, 2);
        CHECK_OK(cm_session_run(good, in[i], 2, &expected[i], 1, NULL, &err), &err);
    }
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        struct cm_session *session = exec_of(arena, model, NULL);
        done = true;
        for (int i = 0; i < 2; i++) {
            struct cm_datum out = {0};
            cm_memory_fail_after(n);
            const enum cm_status status = cm_session_run(session, in[i], 2, &out, 1, NULL, &err);
            cm_memory_fail_after(0);
            if (status)
                CHECK_INT(status, CM_NO_MEMORY);
            done = done && !status;
            CHECK(status ? !out.tensor.data : exec_same(&out, &expected[i]));
            cm_datum_drop(&out);
            CHECK_OK(cm_session_run(session, in[i], 2, &out, 1, NULL, &err), &err);
            CHECK(exec_same(&out, &expected[i]));
            cm_datum_drop(&out);
        }
        CHECK(n < 2000);
    }
    for (int i = 0; i < 2; i++)
        cm_datum_drop(&expected[i]);
}

void test_oom__a_run_of_known_shapes_loses_nothing(void)
{
    model = GRAPH_HEAD "main (float[N] x, int64 n) => (float[N] y) <int64[1] flat = {-1}> {\n"
                       "  a = Relu(x) s = Shape(a) b = Reshape(a, flat) c = Expand(b, s)\n"
                       "  d = Concat <axis = 0> (c, x) p, q = Split <num_outputs = 2> (d)\n"
                       "  y = Mul(p, q) }";
    check_in_arena(fail_in_turn);
}

void test_oom__loops_and_branches_lose_nothing(void)
{
    model = GRAPH_HEAD
        "main (float[N] x, int64 n) => (float[M] z) <float zero = {0}> {\n"
        "  y, all = Loop (n, , x) <body = step (int64 i, bool c, float[] s)\n"
        "      => (bool go, float[] t, float[] u) {\n"
        "    go = Identity(c) u = Add(x, x) sum = ReduceSum <keepdims = 0> (s)\n"
        "    more = Greater(sum, zero)\n"
        "    t = If (more) <then_branch = yes () => (float[] p) { p = Concat <axis = 0> (s, x) },\n"
        "        else_branch = no () => (float[] q) { k = NonZero(s) q = Neg(s) }> }>\n"
        "  e, parts = Scan (x, all) <num_scan_inputs = 1, body = one (float[] v, float[] w)\n"
        "      => (float[] f, float[] g) { f = Add(v, w) g = Mul(v, w) }>\n"
        "  z = Concat <axis = 0> (y, e) }";
    check_in_arena(fail_in_turn);
}

void test_oom__steps_that_are_prepared_as_they_run_lose_nothing(void)
{
    model = GRAPH_HEAD
        "main (float[N] x, int64 n) => (float[M,4] y)\n"
        "<float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] column = {-1, 1}, int64 two = {2}> {\n"
        "  q = Less(n, two) c = Reshape(x, column)\n"
        "  a = If (q) <then_branch = yes () => (float[P,Q] p) { p = Identity(c) },\n"
        "      else_branch = no () => (float[P,Q] o) { o = Concat <axis = 1> (c, c) }>\n"
        "  l = SequenceConstruct(a, a) k = SequenceInsert(l, a, two) d = SequenceAt(k, two)\n"
        "  y = MatMul(d, w) }";
    check_in_arena(fail_in_turn);
}

/* ---- opening ---- */

struct opening {
    struct cm_error err;
};

static enum cm_status open_once(struct cm_guard *guard, void *arg)
{
    struct opening *o = arg;
    struct cm_arena arena;
    cm_arena_init(&arena, guard);
    struct cm_model_proto *proto = CM_NEW(&arena, struct cm_model_proto);
    struct cm_graph *graph;
    struct cm_session *session = NULL;
    enum cm_status status = cm_syntax_parse_model(cm_str(model), &arena, proto, &o->err);
    if (!status)
        status = cm_module_import(cm_module_new(&arena, NULL), proto, NULL, &graph, &o->err);
    if (!status)
        status = cm_session_new(graph, NULL, &session, &o->err);
    cm_session_free(session);
    cm_arena_release(&arena);
    return status;
}

void test_oom__opening_a_session_loses_nothing(void)
{
    model = GRAPH_HEAD "main (float[3] x) => (float[3] z, int64[1,K] k)\n"
                       "<float[3] w = {1, 0, 2}, int64[1] flat = {-1}> {\n"
                       "  a = Mul(w, w) b = Reshape(a, flat) c = Neg(b) k = NonZero(w)\n"
                       "  y = Celu(x) h = HardSwish(y)\n"
                       "  z = Add(h, c) }";
    struct opening o = {0};
    CHECK_OK(cm_guarded(0, &o.err, open_once, &o), &o.err);
    enum cm_status status = CM_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        cm_memory_fail_after(n);
        status = cm_guarded(0, &o.err, open_once, &o);
        cm_memory_fail_after(0);
        if (status)
            CHECK_INT(status, CM_NO_MEMORY);
        CHECK(n < 5000);
    }
}
