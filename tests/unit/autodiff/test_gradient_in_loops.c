/* Gradient beside and inside control flow: by values that bodies read from outside, through loops
 * whose states grow, and what becomes of values when a loop is put in place of another. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "graph/graph_case.h"

#define HEAD     "<ir_version: 10, opset_import: [\"\" : 28, \"ai.onnx.preview.training\" : 1]>\n"
#define GRADIENT "ai.onnx.preview.training.Gradient"

static bool is_around(const struct cm_graph *graph, const struct cm_graph *inner)
{
    while (inner && inner != graph)
        inner = inner->parent;
    return inner != NULL;
}

/* Every node reads what is defined where it stands, or around that. */
static void check_scopes(const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++) {
            const cm_value value = node->inputs[i].value;
            if (value && !is_around(cm_value_get(graph->module, value)->graph, graph))
                fail_msg("%s reads a value of a graph that it is not in",
                         cm_node_describe(node).text);
        }
        for (size_t b = 0; b < node->n_bodies; b++)
            check_scopes(node->bodies[b].graph);
    }
}

/* Checks the single elements of all outputs. */
static void check_all(struct cm_arena *arena, const char *text, const struct cm_datum *const *in,
                      const float *expected, size_t count)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_datum *out = CM_NEW_ARRAY(arena, struct cm_datum, graph->n_outputs);
    struct cm_error err = {0};
    CHECK_OK(cm_gradient_expand(graph, &err), &err);
    check_scopes(graph);
    CHECK_INT(graph->n_outputs, count);
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, out, NULL, &err), &err);
    for (size_t o = 0; o < count; o++) {
        CHECK_INT(cm_tensor_count(&out[o].tensor), 1);
        if (cm_tensor_real(&out[o].tensor, 0) != (double)expected[o])
            fail_msg("output %zu is %g, expected %g", o, cm_tensor_real(&out[o].tensor, 0),
                     (double)expected[o]);
        cm_datum_drop(&out[o]);
    }
}

#define CHECK_ALL(arena, text, inputs, ...)                                                        \
    check_all((arena), (text), (inputs), (const float[]){__VA_ARGS__},                             \
              sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

/* s - (s w^2)' / 4 by w is s (1 - w / 2) */
static void by_captured(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD "main (float[1] x, float[1] w) => (float[1] last, float[1] dx, float[1] dw)\n"
                   "<int64 trips = {2}, float[1] rate = {0.25}> {\n"
                   "  last = Loop (trips, , x) <body = b (int64 i, bool c, float[1] s)\n"
                   "    => (bool d, float[1] t) {\n"
                   "      d = Identity(c)\n"
                   "      ww = Mul(w, w)\n"
                   "      f = Mul(s, ww)\n"
                   "      g = " GRADIENT " <xs = [\"w\"], y = \"f\"> (w)\n"
                   "      step = Mul(g, rate)\n"
                   "      t = Sub(s, step)\n"
                   "    }>\n"
                   "  dx, dw = " GRADIENT " <xs = [\"x\", \"w\"], y = \"last\"> (x, w)\n"
                   "}",
              INPUTS(FLOATS(arena, 3), FLOATS(arena, 4)), 3, 1, 3);
}

void test_gradient__inside_a_loop_by_what_the_body_reads_from_outside(void)
{
    check_in_arena(by_captured);
}

static void of_outer(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD "main (float[1] x, int64 trips) => (float[1] last, float[1] dx) {\n"
                   "  h = Mul(x, x)\n"
                   "  last = Loop (trips, , x) <body = b (int64 i, bool c, float[1] s)\n"
                   "    => (bool d, float[1] t) {\n"
                   "      d = Identity(c)\n"
                   "      g = " GRADIENT " <xs = [\"x\"], y = \"h\"> (x)\n"
                   "      t = Add(s, g)\n"
                   "    }>\n"
                   "  dx = " GRADIENT " <xs = [\"x\"], y = \"last\"> (x)\n"
                   "}",
              INPUTS(FLOATS(arena, 3), graph_int(arena, 2)), 15, 5);
}

void test_gradient__inside_a_loop_of_a_value_outside(void)
{
    check_in_arena(of_outer);
}

/* The inner loop gives s (1 + w)^2 in four parts, whose derivative by s the outer multiplies with.
 */
static void through_inner(struct cm_arena *arena)
{
    const char *text =
        HEAD "main (float[1] x, float[1] w, int64 trips)\n"
             "  => (float[1] last, float[1] dx, float[1] dw, float[1] dww) <int64 two = {2}> {\n"
             "  last = Loop (trips, , x) <body = b (int64 i, bool c, float[1] s)\n"
             "    => (bool d, float[1] t) {\n"
             "      d = Identity(c)\n"
             "      u = Loop (two, , s) <body = e (int64 j, bool on, float[] p)\n"
             "        => (bool still, float[] q) {\n"
             "          still = Identity(on)\n"
             "          pw = Mul(p, w)\n"
             "          q = Concat <axis = 0> (p, pw)\n"
             "        }>\n"
             "      y = ReduceSum(u)\n"
             "      g = " GRADIENT " <xs = [\"s\"], y = \"y\"> (s)\n"
             "      t = Mul(s, g)\n"
             "    }>\n"
             "  dx, dw = " GRADIENT " <xs = [\"x\", \"w\"], y = \"last\"> (x, w)\n"
             "  dww = " GRADIENT " <xs = [\"w\"], y = \"dw\"> (w)\n"
             "}";
    CHECK_ALL(arena, text, INPUTS(FLOATS(arena, 1), FLOATS(arena, 1), graph_int(arena, 2)), 16, 16,
              32, 48);
    CHECK_ALL(arena, text, INPUTS(FLOATS(arena, 1), FLOATS(arena, 1), graph_int(arena, 0)), 1, 1, 0,
              0);
}

void test_gradient__inside_a_loop_through_a_loop_whose_state_grows(void)
{
    check_in_arena(through_inner);
}

/* The loop becomes one that also lists its states; what is asked for is an output of it. */
static void by_output(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD
              "main (float[1] x, float[1] k, int64 trips)\n"
              "  => (float[1] dx, float[1] dl, float[1] dm, float[1] dn) {\n"
              "  a, l = Loop (trips, , x, k) <body = b (int64 i, bool c, float[] s, float[1] m)\n"
              "    => (bool d, float[] t, float[1] n) {\n"
              "      d = Identity(c)\n"
              "      t = Concat <axis = 0> (s, s)\n"
              "      n = Add(m, m)\n"
              "    }>\n"
              "  sum = ReduceSum(a)\n"
              "  y = Mul(sum, l)\n"
              "  dx, dl = " GRADIENT " <xs = [\"x\", \"l\"], y = \"y\"> (x, l)\n"
              "  dm, dn = " GRADIENT " <xs = [\"x\", \"l\"], y = \"sum\"> (x, l)\n"
              "}",
              INPUTS(FLOATS(arena, 3), FLOATS(arena, 1), graph_int(arena, 2)), 16, 12, 4, 0);
}

void test_gradient__by_an_output_of_a_loop_that_another_output_goes_through(void)
{
    check_in_arena(by_output);
}

/* x^2 w, twice the first time: 4 x^4 w^3 after three iterations */
static void inner_constants(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD "main (float[1] x, float[1] w, int64 trips) => (float[1] dx, float[1] dw) {\n"
                   "  y = Loop (trips, , x) <body = b (int64 i, bool c, float[1] s)\n"
                   "    => (bool d, float[1] t) <int64 one = {1}, float[1] two = {2}> {\n"
                   "      d = Identity(c)\n"
                   "      is = Equal(i, one)\n"
                   "      t = If (is) <then_branch = p () => (float[1] u) { u = Mul(s, two) },\n"
                   "        else_branch = q () => (float[1] v) { ss = Mul(s, s) v = Mul(ss, w) }>\n"
                   "    }>\n"
                   "  dx, dw = " GRADIENT " <xs = [\"x\", \"w\"], y = \"y\"> (x, w)\n"
                   "}",
              INPUTS(FLOATS(arena, 1), FLOATS(arena, 3), graph_int(arena, 3)), 432, 108);
}

void test_gradient__of_a_body_whose_constants_are_read_in_graphs_inside_it(void)
{
    check_in_arena(inner_constants);
}

/* Its slices have no gradients to be put together. */
static void over_nothing(struct cm_arena *arena)
{
    struct cm_datum *none = CM_NEW(arena, struct cm_datum);
    struct cm_error err = {0};
    none->kind = CM_KIND_TENSOR;
    CHECK_OK(
        cm_tensor_new(CM_FLOAT, &(struct cm_shape){.rank = 2, .dims = {1, 0}}, &none->tensor, &err),
        &err);
    CHECK_ALL(arena,
              HEAD "main (float[1] a, float[1] w, float[1,N] x)\n"
                   "  => (float[1] da, float[1] dw, float[1,1] sum) {\n"
                   "  r = SequenceConstruct(a, w)\n"
                   "  l = Scan (a, x) <num_scan_inputs = 1, scan_input_axes = [-1], body = b\n"
                   "    (float[1] s, float[1] p) => (float[1] t) <int64 one = {1}> {\n"
                   "      q = SequenceAt(r, one)\n"
                   "      pq = Mul(p, q)\n"
                   "      t = Mul(s, pq)\n"
                   "    }>\n"
                   "  y = Mul(l, l)\n"
                   "  da, dw, dx = " GRADIENT " <xs = [\"a\", \"w\", \"x\"], y = \"y\"> (a, w, x)\n"
                   "  sum = ReduceSum(dx)\n"
                   "}",
              INPUTS(FLOATS(arena, 3), FLOATS(arena, 4), none), 6, 0, 0);
    cm_datum_drop(none);
}

void test_gradient__of_a_scan_over_nothing_that_reads_a_sequence(void)
{
    check_in_arena(over_nothing);
}

/* z is held, so x reaches y only beside it, in a branch and in a loop: z x and z^2 x */
static void held_outside(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD "main (bool c, float[1] x, int64 trips) => (float[1] dx, float[1] dl) {\n"
                   "  z = Mul(x, x)\n"
                   "  h = Neg(z)\n"
                   "  y = If (c) <then_branch = t () => (float[1] r) { r = Mul(z, x) },\n"
                   "    else_branch = e () => (float[1] q) { q = Neg(x) }>\n"
                   "  dx = " GRADIENT " <xs = [\"x\"], zs = [\"z\"], y = \"y\"> (x, z)\n"
                   "  l = Loop (trips, , x) <body = b (int64 i, bool g, float[1] s)\n"
                   "    => (bool d, float[1] t) { d = Identity(g) t = Mul(s, h) }>\n"
                   "  dl = " GRADIENT " <xs = [\"x\"], zs = [\"z\"], y = \"l\"> (x, z)\n"
                   "}",
              INPUTS(graph_bool(arena, true), FLOATS(arena, 3), graph_int(arena, 2)), 9, 81);
}

void test_gradient__nothing_flows_through_what_zs_name_into_bodies(void)
{
    check_in_arena(held_outside);
}

/* What is drawn is drawn once: the derivative of x r r by x is that without x. */
static void random_loop(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD "main (float[1] x, int64 trips) => (float[1] zero) {\n"
                   "  y = Loop (trips, , x) <body = b (int64 i, bool c, float[1] s)\n"
                   "    => (bool d, float[1] t) {\n"
                   "      d = Identity(c)\n"
                   "      r = RandomNormalLike(s)\n"
                   "      t = Mul(s, r)\n"
                   "    }>\n"
                   "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                   "  both = Mul(x, dx)\n"
                   "  zero = Sub(both, y)\n"
                   "}",
              INPUTS(FLOATS(arena, 2), graph_int(arena, 2)), 0);
}

void test_gradient__of_a_loop_finds_what_the_body_drew(void)
{
    check_in_arena(random_loop);
}

static void random_map(struct cm_arena *arena)
{
    CHECK_ALL(arena,
              HEAD "main (float[8] x, float[8] w) => (float[1] zero) {\n"
                   "  s = SequenceConstruct(x, w)\n"
                   "  m = SequenceMap (s) <body = b (float[8] p) => (float[8] q)\n"
                   "    <bool yes = {1}> { q = Dropout(p, , yes) }>\n"
                   "  y = ConcatFromSequence <axis = 0> (m)\n"
                   "  dx, dw = " GRADIENT " <xs = [\"x\", \"w\"], y = \"y\"> (x, w)\n"
                   "  dy = Concat <axis = 0> (dx, dw)\n"
                   "  off = Sub(dy, y)\n"
                   "  zero = ReduceSumSquare(off)\n"
                   "}",
              INPUTS(FLOATS(arena, 1, 1, 1, 1, 1, 1, 1, 1), FLOATS(arena, 1, 1, 1, 1, 1, 1, 1, 1)),
              0);
}

void test_gradient__of_a_map_finds_what_the_body_drew(void)
{
    check_in_arena(random_map);
}

static void random_inside(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_graph *graph =
        graph_of(arena,
                 HEAD "main (float[1] x, float[2,1] xs, int64 trips) => (float[1] dx) {\n"
                      "  y = Loop (trips, , x) <body = b (int64 i, bool c, float[1] s)\n"
                      "    => (bool d, float[1] t) {\n"
                      "      d = Identity(c)\n"
                      "      t = Scan (s, xs) <num_scan_inputs = 1, body = e\n"
                      "        (float[1] u, float[1] v) => (float[1] w) {\n"
                      "          r = RandomNormalLike(v)\n"
                      "          w = Mul(u, r)\n"
                      "        }>\n"
                      "    }>\n"
                      "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                      "}",
                 NULL);
    CHECK_INT(cm_gradient_expand(graph, &err), CM_UNSUPPORTED);
    CHECK(strstr(err.text, "(Scan) in its body draws random numbers inside another body"));
}

void test_gradient__of_a_scan_that_draws_inside_a_loop_is_refused(void)
{
    check_in_arena(random_inside);
}
