/* The pass simplify: arithmetic that changes nothing, shape arithmetic, decided branches, dead
 * code. Views and moves are in test_simplify_views.c. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/exec_case.h"
#include "exec/random_graph.h"
#include "simplify_case.h"

#define LEAVES(text, operators) check_pass(arena, cm_pass_simplify, text, operators)
#define F                       "main (float[N,M] x, float[1,M] row, float s, float[] any) => (y) "
#define I                       "main (int32[N,M] x, int64[N] k) => (y) "
#define B                       "main (bool[N,M] x, bool[M] row) => (y) "

/* ---- nothing to do ---- */

static void identities(struct cm_arena *arena)
{
    LEAVES(F "{ a = Identity(x) b = Identity(a) y = Relu(b) }", "Relu");
    LEAVES(F "{ a = Relu(x) y = Identity(a) }", "Relu");
    /* a name of the graph's border cannot be given up */
    LEAVES(F "{ y = Identity(x) }", "Identity");
    LEAVES("main (float[N] x) => (a, y) { a = Relu(x) y = Identity(a) }", "Relu Identity");
    LEAVES("main (float[N] x) => (y) <float[1] w = {1}> { y = Identity(w) }", "Identity");
}

void test_simplify__identity_goes_unless_a_name_would(void)
{
    check_in_arena(identities);
}

static void casts(struct cm_arena *arena)
{
    LEAVES(F "{ a = Cast<to = 1>(x) y = Relu(a) }", "Relu");
    LEAVES(F "{ a = CastLike(x, s) y = Relu(a) }", "Relu");
    LEAVES(F "{ a = Cast<to = 11>(x) y = Cast<to = 1>(a) }", "Cast Cast");
}

void test_simplify__casts_to_the_same_type_go(void)
{
    check_in_arena(casts);
}

static void dropouts(struct cm_arena *arena)
{
    LEAVES(F "{ a = Dropout(x) y = Relu(a) }", "Relu");
    LEAVES(F "<float r = {0.5}, bool t = {0}> { a, m = Dropout(x, r, t) y = Relu(a) }", "Relu");
    LEAVES(F "<float r = {0}, bool t = {1}> { a = Dropout(x, r, t) y = Relu(a) }", "Relu");
    LEAVES(F "<float r = {0.5}, bool t = {1}> { a = Dropout(x, r, t) y = Mul(a, x) }",
           "Dropout Mul");
    LEAVES("main (float[N,M] x, bool t) => (y)"
           "<float r = {0.5}> { a = Dropout(x, r, t) y = Relu(a) }",
           "Dropout Relu");
    LEAVES("main (float[N,M] x) => (y, m) { a, m = Dropout(x) y = Relu(a) }", "Dropout Relu");
}

void test_simplify__dropout_goes_where_it_drops_nothing(void)
{
    check_in_arena(dropouts);
}

static void single(struct cm_arena *arena)
{
    LEAVES(F "{ a = Sum(x) b = Max(a) c = Min(b) d = Mean(c) e = Concat<axis = 0>(d)"
             " f = Clip(e) y = Relu(f) }",
           "Relu");
    LEAVES(F "{ a = Sum(x, row) y = Concat<axis = 0>(a, x) }", "Sum Concat");
    LEAVES(F "{ a = Clip(x, s) y = Relu(a) }", "Clip Relu");
}

void test_simplify__operators_of_one_operand_go(void)
{
    check_in_arena(single);
}

/* ---- neutral numbers ---- */

static void ones(struct cm_arena *arena)
{
    LEAVES(F "<float one = {1}> { a = Mul(x, one) b = Mul(one, a) c = Div(b, one)"
             " d = Pow(c, one) y = Relu(d) }",
           "Relu");
    LEAVES(F "<float[1,1] one = {1}> { a = Mul(x, one) y = Relu(a) }", "Relu");
    LEAVES(F "<float one = {1}> { a = Mul(any, one) y = Relu(a) }", "Relu");
    LEAVES(F "<int64 one = {1}> { a = Pow(x, one) y = Relu(a) }", "Relu");
    LEAVES(I "<int32 one = {1}> { a = Mul(x, one) b = Div(a, one) y = Abs(b) }", "Abs");
    /* it makes the result larger, or may do so */
    LEAVES(F "<float[1,1,1] one = {1}> { a = Mul(x, one) y = Relu(a) }", "Mul Relu");
    LEAVES(F "<float[1] one = {1}> { a = Mul(any, one) y = Relu(a) }", "Mul Relu");
    LEAVES(F "<float[3] one = {1, 1, 1}> { a = Mul(s, one) y = Relu(a) }", "Mul Relu");
    /* it is on the wrong side, or another number, or no constant */
    LEAVES(F "<float one = {1}> { a = Div(one, x) b = Pow(one, a) y = Relu(b) }", "Div Pow Relu");
    LEAVES(F "<float one = {1.0000001}> { a = Mul(x, one) y = Relu(a) }", "Mul Relu");
    LEAVES("main (float[N] x, float one = {1}) => (y) { a = Mul(x, one) y = Relu(a) }", "Mul Relu");
}

void test_simplify__factors_of_one_go_where_the_shape_stays(void)
{
    check_in_arena(ones);
}

static void zeros(struct cm_arena *arena)
{
    LEAVES(I "<int32 zero = {0}> { a = Add(x, zero) b = Add(zero, a) c = Sub(b, zero) y = Abs(c) }",
           "Abs");
    LEAVES(F "<float zero = {-0.0}> { a = Add(x, zero) b = Add(zero, a) y = Neg(b) }", "Neg");
    LEAVES(F "<float zero = {0}> { a = Sub(x, zero) y = Neg(a) }", "Neg");
    /* -0 + 0 is +0 */
    LEAVES(F "<float zero = {0}> { a = Add(x, zero) y = Neg(a) }", "Add Neg");
    LEAVES(F "<float zero = {-0.0}> { a = Sub(x, zero) y = Neg(a) }", "Sub Neg");
    LEAVES(I "<int32 zero = {0}> { a = Sub(zero, x) y = Abs(a) }", "Sub Abs");
    LEAVES(I "<int32[2,2,3] zero = {0,0,0,0,0,0,0,0,0,0,0,0}> { a = Add(x, zero) y = Abs(a) }",
           "Add Abs");
}

void test_simplify__terms_of_zero_go_where_the_sign_of_zero_stays(void)
{
    check_in_arena(zeros);
}

static void truths(struct cm_arena *arena)
{
    LEAVES(B "<bool t = {1}, bool f = {0}> { a = And(x, t) b = Or(f, a) y = Xor(b, row) }", "Xor");
    LEAVES(B "<bool t = {1}, bool f = {0}> { a = And(x, f) b = Or(a, t) y = Xor(b, row) }",
           "And Or Xor");
}

void test_simplify__neutral_truth_values_go(void)
{
    check_in_arena(truths);
}

static void doubles(struct cm_arena *arena)
{
    LEAVES(F "{ a = Neg(x) b = Neg(a) y = Relu(b) }", "Relu");
    LEAVES(B "{ a = Not(x) b = Not(a) c = Not(b) y = And(c, row) }", "Not And");
    LEAVES(F "{ a = Neg(x) b = Relu(a) y = Neg(b) }", "Neg Relu Neg");
}

void test_simplify__negations_cancel_in_pairs(void)
{
    check_in_arena(doubles);
}

static void choices(struct cm_arena *arena)
{
    LEAVES(F "<bool t = {1}> { a = Where(t, x, row) y = Relu(a) }", "Relu");
    LEAVES(F "<bool[2,1] f = {0, 0}> { a = Where(f, row, x) y = Relu(a) }", "Where Relu");
    LEAVES(F "<bool[1,1] f = {0}> { a = Where(f, row, x) y = Relu(a) }", "Relu");
    LEAVES(F "<bool t = {1}> { a = Where(t, row, x) y = Relu(a) }", "Where Relu");
    LEAVES("main (float[2,3] x, float[M] z) => (y) <bool t = {1}> { a = Where(t, x, z)"
           " y = Relu(a) }",
           "Where Relu"); /* z may not fit */
    LEAVES(F "<bool[1,3] c = {1, 0, 1}> { a = Where(c, x, s) y = Relu(a) }", "Where Relu");
}

void test_simplify__decided_choices_go_where_the_shape_stays(void)
{
    check_in_arena(choices);
}

/* ---- shape arithmetic ---- */

static void known_shapes(struct cm_arena *arena)
{
    LEAVES("main (float[2,3,N] x, float[6] z) => (y)"
           "<int64 i = {1}, int64[1] zero = {0}, int64[1] two = {2}>"
           "{ a = Shape(x) b = Gather(a, i) c = Slice(a, zero, two) d = ReduceProd<keepdims=0>(c)"
           "  e = Mul(b, d) f = Cast<to = 1>(e) g = Shape<start = -3, end = 2>(x)"
           "  h = Cast<to = 1>(g) j = ReduceSum<keepdims = 0>(h) k = Add(f, j) y = Add(z, k) }",
           "Add");
    LEAVES("main (float[2,3] x, float[6] z) => (y) { n = Size(x) f = Cast<to = 1>(n)"
           " y = Add(z, f) }",
           "Add");
    LEAVES("main (float[2,N] x, float[6] z) => (y) { n = Size(x) f = Cast<to = 1>(n)"
           " y = Add(z, f) }",
           "Size Cast Add");
    /* as an output it must be computed */
    LEAVES("main (float[2,3] x) => (y) { y = Shape(x) }", "Shape");
    LEAVES("main (float[2,3] x) => (y, z) { y = Shape(x) z = Neg(y) }", "Shape Neg");
}

void test_simplify__what_inference_knows_becomes_constant(void)
{
    check_in_arena(known_shapes);
}

static void reshape_targets(struct cm_arena *arena)
{
    LEAVES("main (float[N,M,8] x) => (y)"
           "<int64 i0 = {0}, int64 i1 = {1}, int64[1] ax = {0}, int64[2] hd = {2, 4}>"
           "{ s = Shape(x) n = Gather(s, i0) m = Gather(s, i1) n1 = Unsqueeze(n, ax)"
           "  m1 = Unsqueeze(m, ax) t = Concat<axis = 0>(n1, m1, hd) r = Reshape(x, t)"
           "  y = Relu(r) }",
           "Reshape Relu");
    LEAVES("main (float[N,M,8] x) => (y)"
           "<int64 i0 = {0}, int64 i1 = {1}, int64[1] ax = {0}, int64[1] eight = {8}>"
           "{ s = Shape(x) n = Gather(s, i0) m = Gather(s, i1) p = Mul(n, m)"
           "  p1 = Unsqueeze(p, ax) t = Concat<axis = 0>(p1, eight) r = Reshape(x, t)"
           "  y = Relu(r) }",
           "Reshape Relu");
    /* two dimensions are open */
    LEAVES("main (float[N,M,8] x) => (y)"
           "<int64 i0 = {0}, int64 i1 = {1}, int64[1] ax = {0}, int64[1] eight = {8}>"
           "{ s = Shape(x) n = Gather(s, i0) m = Gather(s, i1) n1 = Unsqueeze(n, ax)"
           "  m1 = Unsqueeze(m, ax) t = Concat<axis = 0>(m1, n1, eight) r = Reshape(x, t)"
           "  y = Relu(r) }",
           "Shape Gather Gather Concat Reshape Relu");
}

void test_simplify__reshape_to_a_computed_shape_needs_no_computing(void)
{
    check_in_arena(reshape_targets);
}

/* ---- branches and bodies ---- */

static void branches(struct cm_arena *arena)
{
    LEAVES(F "<bool t = {1}> { a = If(t)<then_branch = g () => (p) { q = Neg(x) p = Relu(q) },"
             " else_branch = h () => (r) { r = Abs(x) }> y = Neg(a) }",
           "Neg Relu Neg");
    /* the shape decides; a branch may give what it did not make, and the same twice */
    LEAVES("main (float[2,3] x) => (y, z) <int64 i = {0}, int64 three = {3}>"
           "{ s = Shape(x) d = Gather(s, i) c = Equal(d, three)"
           "  y, z = If(c)<then_branch = g () => (p, q) { p = Abs(x) q = Neg(x) },"
           "  else_branch = h () => (r, r2) { r = Identity(x) r2 = Identity(x) }> }",
           "Identity Identity");
    LEAVES("main (float[2,3] x) => (y, z) <bool t = {1}>"
           "{ y, z = If(t)<then_branch = g () => (p, p) { p = Abs(x) },"
           "  else_branch = h () => (r, r2) { r = Identity(x) r2 = Identity(x) }> }",
           "Abs Identity");
    LEAVES("main (float[2,3] x) => (y) <bool t = {0}>"
           "{ y = If(t)<then_branch = g () => (p) { p = Abs(x) },"
           "  else_branch = h () => (r) <float[1] r = {2}> { }> }",
           "Identity");
    LEAVES("main (float[N] x, bool t) => (y)"
           "{ y = If(t)<then_branch = g () => (p) { q = Identity(x) n = Neg(q) p = Neg(n) },"
           "  else_branch = h () => (r) { a = Neg(x) u = Identity(a) r = Neg(u) }> }",
           "If{Neg Neg}{Neg Neg}");
}

void test_simplify__an_if_that_is_decided_becomes_its_branch(void)
{
    check_in_arena(branches);
}

static void bodies(struct cm_arena *arena)
{
    LEAVES("main (float[2] x) => (y) <int64 n = {3}, bool t = {1}, float one = {1}>"
           "{ y = Loop(n, t, x)<body = g (int64 i, bool c, float[2] v) => (c2, w)"
           "  { c2 = Identity(c) d = Dropout(v) e = Mul(d, one) w = Relu(e) }> }",
           "Loop{Identity Relu}");
}

void test_simplify__bodies_are_simplified_too(void)
{
    check_in_arena(bodies);
}

/* ---- what must stay for Gradient ---- */

static void simplify_gradient(struct cm_arena *arena, const char *text, const char *operators)
{
    const struct cm_str whole = cm_arena_printf(
        arena, "<ir_version: 10, opset_import: [\"\" : 28, \"ai.onnx.preview.training\" : 1]>\n%s",
        text);
    struct cm_graph *graph = graph_of(arena, whole.data, NULL);
    const struct cm_pass_options options = {.training = true};
    struct cm_error err = {0};
    CHECK_OK(cm_pass_simplify(graph, &options, &err), &err);
    CHECK_STRING(graph_operators(arena, graph), operators);
}

#define GRADIENT(x) "ai.onnx.preview.training.Gradient<xs = [\"" x "\"], y = \"l\">(" x ")"

static void named_values(struct cm_arena *arena)
{
    simplify_gradient(arena,
                      "g (float[2] x) => (d) { a = Identity(x) b = Identity(a) c = Relu(b)"
                      " l = ReduceSum(c) d = " GRADIENT("a") " }",
                      "Identity Relu ReduceSum Gradient");
    simplify_gradient(arena,
                      "g (float[2,3] x) => (d) { a = Transpose(x) b = Transpose(a) c = Relu(b)"
                      " l = ReduceSum(c) d = " GRADIENT("a") " }",
                      "Transpose Transpose Relu ReduceSum Gradient");
    simplify_gradient(arena,
                      "g (float[2] x) => (d) <float w = {1}> { a = Mul(x, w) c = Relu(a)"
                      " l = ReduceSum(c) d = " GRADIENT("w") " }",
                      "Mul Relu ReduceSum Gradient");
    simplify_gradient(arena,
                      "g (float[2] x) => (d) <float w = {1}> { a = Mul(x, w) c = Relu(a)"
                      " l = ReduceSum(c) d = " GRADIENT("x") " }",
                      "Relu ReduceSum Gradient");
}

void test_simplify__what_a_gradient_names_stays(void)
{
    check_in_arena(named_values);
}

static void states(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena, GRAPH_HEAD "m (float[2] x) => (y) <float w = {1}> { a = Mul(x, w) y = Relu(a) }",
        NULL);
    const struct cm_pass_options options = {.training = true};
    struct cm_error err = {0};
    cm_value_get(graph->module, cm_graph_find(graph, CM_STR("w")))->is_state = true;
    CHECK_OK(cm_pass_simplify(graph, &options, &err), &err);
    CHECK_STRING(graph_operators(arena, graph), "Mul Relu");
}

void test_simplify__a_state_variable_is_no_constant(void)
{
    check_in_arena(states);
}

/* ---- dead code ---- */

static void unread(struct cm_arena *arena)
{
    LEAVES(F "{ a = Neg(x) b = Relu(a) y = Abs(x) }", "Abs");
    struct cm_graph *graph =
        LEAVES("main (float[1,1,4] x) => (y) { y, i = MaxPool<kernel_shape = [2]>(x) }", "MaxPool");
    CHECK_INT(graph->first->n_outputs, 1);
    graph = LEAVES("main (float[2,4] x, float[4] g) => (y)"
                   "{ a, m, d = LayerNormalization(x, g) y = Mul(a, d) }",
                   "LayerNormalization Mul");
    CHECK_INT(graph->first->n_outputs, 3);
    CHECK_INT(graph->first->outputs[1], 0);
}

void test_simplify__what_nobody_reads_goes(void)
{
    check_in_arena(unread);
}

/* ---- budgets ---- */

enum { LONG = 20000 };

static void long_chain(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const struct cm_pass_options options = {0};
    struct cm_error err = {0};
    cm_value value = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 2));
    for (int i = 0; i < LONG; i++)
        value = GRAPH_ADD(graph, i % 3 ? "Identity" : "Neg", value);
    cm_graph_set_outputs(graph, &value, 1);
    CHECK_OK(cm_pass_simplify(graph, &options, &err), &err);
    CHECK(graph->n_nodes <= 2); /* the negations cancel, one may carry the output */
}

void test_simplify__long_chains_of_nothing_collapse(void)
{
    check_in_arena(long_chain);
}

/* ---- random models ---- */

enum { MOST = 8, MODELS = 1500 };

static struct random_graph sample;
static uint64_t next_seed;
static size_t nodes_before, nodes_after;

static void try_sample(struct cm_arena *arena)
{
    random_graph_make(&sample, next_seed++);
    struct cm_graph *before = random_graph_import(arena, &sample),
                    *after = random_graph_import(arena, &sample);
    const struct cm_pass_options options = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_pass_simplify(after, &options, &err), &err);
    nodes_before += before->n_nodes;
    nodes_after += after->n_nodes;
    const int64_t rows = 1 + (int64_t)(next_seed % 3), columns = 1 + (int64_t)(next_seed / 3 % 4);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(rows, columns), -1),
                                   exec_ramp(arena, &CM_SHAPE(rows, columns), 0),
                                   exec_ramp(arena, &CM_SHAPE(columns), -0.5), graph_int(arena, 2)};
    struct cm_datum *expected = cm_data_new(arena, MOST), *given = cm_data_new(arena, MOST);
    if (cm_graph_eval(before, in, CM_COUNT(in), expected, NULL, NULL))
        return; /* refused as it runs; what refuses may be dead code */
    CHECK_OK(cm_graph_eval(after, in, CM_COUNT(in), given, NULL, &err), &err);
    for (size_t o = 0; o < sample.n_outputs; o++)
        if (!exec_same(&expected[o], &given[o]))
            fail_msg("seed %llu: output '%s' differs\n%s", (unsigned long long)next_seed - 1,
                     sample.outputs[o], sample.text);
}

void test_simplify__random_models_give_the_same_bits(void)
{
    next_seed = 1;
    nodes_before = nodes_after = 0;
    for (int i = 0; i < MODELS; i++)
        check_in_arena(try_sample);
    CHECK(nodes_after < nodes_before);
}
