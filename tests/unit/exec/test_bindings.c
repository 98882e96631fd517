/* Shapes that change: right results, bindings kept, what a new one costs, and how compiling grows
 * with the number of nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "exec/program.h"
#include "exec_case.h"
#include "onnx/syntax.h"

/* ---- sequences of every length ---- */

static const char attention[] =
    GRAPH_HEAD "main (float[L,4] q, float[L,4] k) => (float[L,4] y)\n"
               "<int64[2] flip = {-1, 4}, int64[1] zero = {0}, int64[1] two = {2}> {\n"
               "  t = Transpose <perm = [1, 0]> (k) s = MatMul(q, t) p = Softmax(s)\n"
               "  o = MatMul(p, k) size = Shape(o) r = Reshape(o, flip) n = Relu(r)\n"
               "  c = Slice(size, zero, two) e = Expand(n, c) y = Add(e, q) }";

static void lengths(struct cm_arena *arena)
{
    const struct cm_session_options options = {.backend = "reference"};
    struct cm_graph *plain = graph_of(arena, attention, NULL);
    struct cm_session *session = exec_of(arena, attention, &options);
    for (int64_t run = 0; run < 200; run++) {
        const int64_t length = 1 + run * 7 % 23;
        const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(length, 4), (double)run),
                                       exec_ramp(arena, &CM_SHAPE(length, 4), -(double)run)};
        struct cm_datum expected = {0}, out = {0};
        struct cm_error err = {0};
        CHECK_OK(cm_graph_eval(plain, in, 2, &expected, NULL, &err), &err);
        CHECK_OK(cm_session_run(session, in, 2, &out, 1, NULL, &err), &err);
        CHECK(exec_same(&out, &expected));
        cm_datum_drop(&expected);
        cm_datum_drop(&out);
    }
}

void test_bindings__every_run_may_bring_another_length(void)
{
    check_in_arena(lengths);
}

static uint64_t allocations(struct cm_arena *arena, struct cm_session *session, int64_t length)
{
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(length, 4), 0);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    const uint64_t before = cm_memory_count();
    CHECK_OK(cm_session_run(session, INPUTS(x, x), 2, &out, 1, NULL, &err), &err);
    const uint64_t made = cm_memory_count() - before;
    cm_datum_drop(&out);
    return made;
}

static void kept(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, attention, NULL);
    for (int round = 0; round < 3; round++)
        for (int64_t length = 1; length <= 4; length++) {
            const uint64_t made = allocations(arena, session, 10 * length);
            CHECK(round == 0 ? made > 0 : round == 1 || made == 0);
        }
}

void test_bindings__recent_shapes_are_not_planned_again(void)
{
    check_in_arena(kept);
}

/* ---- what bodies capture ---- */

static void shape_in_body(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[A,B] x, bool c) => (float[P,Q] y)\n"
                           "<int64[1] flat = {-1}> {\n"
                           "  s = Shape(x) n = Neg(x)\n"
                           "  y = If (c) <then_branch = yes () => (float[P,Q] p) {\n"
                           "        f = Reshape(n, flat) g = Abs(f) p = Reshape(g, s) },\n"
                           "      else_branch = no () => (float[R,S] q) {\n"
                           "        q = Transpose <perm = [1, 0]> (n) }>\n"
                           "}",
                NULL);
    static const int64_t shapes[][2] = {{2, 6}, {3, 4}, {2, 6}, {4, 3}, {12, 1}, {3, 4}};
    for (size_t run = 0; run < CM_COUNT(shapes); run++) {
        struct cm_datum out = {0};
        struct cm_error err = {0};
        CHECK_OK(
            cm_session_run(session,
                           INPUTS(exec_ramp(arena, &CM_SHAPE(shapes[run][0], shapes[run][1]), 0),
                                  graph_bool(arena, true)),
                           2, &out, 1, NULL, &err),
            &err);
        CHECK_INT(out.tensor.shape.dims[0], shapes[run][0]);
        CHECK_INT(out.tensor.shape.dims[1], shapes[run][1]);
        cm_datum_drop(&out);
    }
}

void test_bindings__a_body_sees_the_shape_arithmetic_of_this_run(void)
{
    check_in_arena(shape_in_body);
}

/* ---- costs ---- */

/* A chain of n nodes over float[N], a quarter of them constants that others read. */
static char *chain_text(struct cm_arena *arena, size_t n)
{
    char *text = cm_arena_alloc(arena, n * 60 + 400);
    size_t at = (size_t)snprintf(text, 400,
                                 GRAPH_HEAD "main (float[N] x) => (float[N] v%zu)\n"
                                            "{ v0 = Identity(x)\n",
                                 n / 4 * 3);
    for (size_t i = 0; i < n / 4 * 3; i++) {
        if (i % 3 == 2)
            at += (size_t)snprintf(text + at, 60, "c%zu = Constant <value_float = 0.5> ()\n", i);
        at += (size_t)snprintf(text + at, 40, "v%zu = ", i + 1);
        if (i % 3 == 2)
            at += (size_t)snprintf(text + at, 40, "Mul(v%zu, c%zu)", i, i);
        else
            at += (size_t)snprintf(text + at, 40, i % 3 ? "Add(v%zu, x)" : "Relu(v%zu)", i);
        text[at++] = '\n';
    }
    text[at] = '}';
    return text;
}

/* Bytes that a graph of this many nodes and its session take, and those that shapes new to it add.
 */
struct plan_cost {
    size_t nodes, compiled, bound;
};

static struct plan_cost cost;

static void compile_and_bind(struct cm_arena *arena)
{
    const char *text = chain_text(arena, cost.nodes);
    const size_t before = arena->held;
    struct cm_session *session =
        exec_of(arena, text, &(struct cm_session_options){.threads = 1, .backend = "reference"});
    cost.compiled = arena->held - before;
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(3), 1);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, &x, 1, &out, 1, NULL, &err), &err);
    cm_datum_drop(&out);
    const struct cm_binding *binding = session->free_contexts->blocks[0].bindings;
    cost.bound = binding->arena.held;
}

static struct plan_cost cost_of(size_t nodes)
{
    cost = (struct plan_cost){.nodes = nodes};
    check_in_arena(compile_and_bind);
    return cost;
}

/* How long it takes is for the benchmarks; what takes quadratic time mostly takes quadratic memory
 * too, which is the same on every machine. */
void test_bindings__plans_grow_no_faster_than_graphs(void)
{
    const struct plan_cost half = cost_of(20000), whole = cost_of(40000);
    CHECK((double)whole.compiled / (double)half.compiled < 2.3);
    CHECK((double)whole.bound / (double)half.bound < 2.3);
}
