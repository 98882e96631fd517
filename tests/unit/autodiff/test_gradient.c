/* The Gradient operator: what it is the derivative of, by what, at which point, and where it may
 * stand. Numbers are small and whole, so that results are exact. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "graph/graph_case.h"

#define HEAD                                                                                       \
    "<ir_version: 10, opset_import: [\"\" : 28, \"local\" : 1, \"ai.onnx.preview.training\" : "    \
    "1]>\n"
#define LOCAL                                                                                      \
    "<domain: \"local\", opset_import: [\"\" : 28, \"local\" : 1, \"ai.onnx.preview.training\" : " \
    "1]>\n"
#define GRADIENT "ai.onnx.preview.training.Gradient"

static size_t count_gradients(const struct cm_graph *graph)
{
    size_t count = 0;
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        count += cm_str_is(node->op_type, "Gradient");
        for (size_t i = 0; i < node->n_bodies; i++)
            count += count_gradients(node->bodies[i].graph);
    }
    return count;
}

static struct cm_graph *expanded(struct cm_arena *arena, const char *text)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_error err = {0};
    CHECK_OK(cm_gradient_expand(graph, &err), &err);
    CHECK_INT(count_gradients(graph), 0);
    return graph;
}

/* Every output in turn, one row each. */
struct row {
    size_t count;
    float values[8];
};

static void check_rows(struct cm_arena *arena, struct cm_graph *graph,
                       const struct cm_datum *const *in, const struct row *rows, size_t n_rows)
{
    struct cm_datum *out = CM_NEW_ARRAY(arena, struct cm_datum, graph->n_outputs);
    struct cm_error err = {0};
    CHECK_INT(graph->n_outputs, n_rows);
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, out, NULL, &err), &err);
    for (size_t o = 0; o < n_rows; o++) {
        CHECK_INT(cm_tensor_count(&out[o].tensor), rows[o].count);
        for (size_t i = 0; i < rows[o].count; i++)
            if (cm_tensor_real(&out[o].tensor, (int64_t)i) != (double)rows[o].values[i])
                fail_msg("output %zu element %zu is %g, expected %g", o, i,
                         cm_tensor_real(&out[o].tensor, (int64_t)i), (double)rows[o].values[i]);
        cm_datum_drop(&out[o]);
    }
}

/* CHECK_ROWS(arena, text, INPUTS(..), {1, {3}}, {2, {1, 2}}) */
#define CHECK_ROWS(arena, text, inputs, ...)                                                       \
    check_rows((arena), expanded((arena), (text)), (inputs), (const struct row[]){__VA_ARGS__},    \
               sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

/* ---- what is differentiated by what ---- */

static void sums_and_products(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b) => (float[1] c, float[1] da, float[1] db) {\n"
                    "  c = Add(a, b)\n"
                    "  da, db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"c\"> (a, b)\n"
                    "}",
               INPUTS(FLOATS(arena, 1), FLOATS(arena, 2)), {1, {3}}, {1, {1}}, {1, {1}});
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b) => (float[1] d, float[1] da, float[1] db) {\n"
                    "  c = Add(a, b)\n"
                    "  d = Mul(c, a)\n"
                    "  da, db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"d\"> (a, b)\n"
                    "}",
               INPUTS(FLOATS(arena, 1), FLOATS(arena, 2)), {1, {3}}, {1, {4}}, {1, {1}});
}

void test_gradient__follows_the_published_examples(void)
{
    check_in_arena(sums_and_products);
}

/* W, X -> H; H, Z -> Y, as in the operator's text */
#define CHAIN        "  H = Mul(W, X)\n  Y = Mul(H, Z)\n"
#define CHAIN_INPUTS INPUTS(FLOATS(arena, 2, 3), FLOATS(arena, 5, 7), FLOATS(arena, 11, 13))

static void by_inputs(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD
               "main (float[2] W, float[2] X, float[2] Z) => (float[2] dW, float[2] dZ) {\n" CHAIN
               "  dW, dZ = " GRADIENT " <xs = [\"W\", \"Z\"], zs = [\"X\"], y = \"Y\"> (W, Z, X)\n"
               "}",
               CHAIN_INPUTS, {2, {55, 91}}, {2, {10, 21}});
}

void test_gradient__by_xs_with_zs_held(void)
{
    check_in_arena(by_inputs);
}

static void by_middle(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD
               "main (float[2] W, float[2] X, float[2] Z) => (float[2] dH, float[2] dZ) {\n" CHAIN
               "  dH, dZ = " GRADIENT " <xs = [\"H\", \"Z\"], y = \"Y\"> (H, Z)\n"
               "}",
               CHAIN_INPUTS, {2, {11, 13}}, {2, {10, 21}});
}

void test_gradient__by_an_intermediate_value(void)
{
    check_in_arena(by_middle);
}

/* H stands between x and y, and x reaches y beside it too: only that way counts. */
static void cut(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] dx, float[1] dh) {\n"
                    "  h = Mul(x, x)\n"
                    "  y = Mul(h, x)\n"
                    "  dx, dh = " GRADIENT " <xs = [\"x\", \"h\"], y = \"y\"> (x, h)\n"
                    "}",
               INPUTS(FLOATS(arena, 3)), {1, {9}}, {1, {3}});
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] dx) {\n"
                    "  h = Mul(x, x)\n"
                    "  y = Mul(h, x)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], zs = [\"h\"], y = \"y\"> (x, h)\n"
                    "}",
               INPUTS(FLOATS(arena, 3)), {1, {9}});
}

void test_gradient__nothing_flows_through_what_xs_and_zs_name(void)
{
    check_in_arena(cut);
}

static void no_path(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[3] b) => (float[1] da, float[3] db) {\n"
                    "  y = Neg(a)\n"
                    "  da, db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (a, b)\n"
                    "}",
               INPUTS(FLOATS(arena, 1), FLOATS(arena, 1, 2, 3)), {1, {-1}}, {3, {0, 0, 0}});
    /* a path of integers is none */
    CHECK_ROWS(arena,
               HEAD "main (float[2] x) => (float[2] dx) {\n"
                    "  i = Cast <to = 7> (x)\n"
                    "  y = Cast <to = 1> (i)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                    "}",
               INPUTS(FLOATS(arena, 1.5F, 2)), {2, {0, 0}});
    /* neither is one through an operator that is flat wherever it is smooth */
    CHECK_ROWS(arena,
               HEAD "main (float[2] x) => (float[2] dx) {\n"
                    "  f = Floor(x)\n"
                    "  y = Mul(f, x)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                    "}",
               INPUTS(FLOATS(arena, 1.5F, 2.25F)), {2, {1, 2}});
}

void test_gradient__by_what_y_does_not_depend_on_is_zero(void)
{
    check_in_arena(no_path);
}

static void of_itself(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[2] x) => (float[2] dx) {\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], y = \"x\"> (x)\n"
                    "}",
               INPUTS(FLOATS(arena, 4, 5)), {2, {1, 1}});
}

void test_gradient__of_a_value_by_itself_is_one(void)
{
    check_in_arena(of_itself);
}

static void many_elements(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[3] x, float[1] b) => (float[3] dx, float[1] db) {\n"
                    "  s = Add(x, b)\n"
                    "  y = Mul(s, x)\n"
                    "  dx, db = " GRADIENT " <xs = [\"x\", \"b\"], y = \"y\"> (x, b)\n"
                    "}",
               INPUTS(FLOATS(arena, 1, 2, 3), FLOATS(arena, 10)), {3, {12, 14, 16}}, {1, {6}});
}

void test_gradient__of_many_elements_is_that_of_their_sum(void)
{
    check_in_arena(many_elements);
}

static void skipped(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b) => (float[1] db) {\n"
                    "  y = Mul(a, b)\n"
                    "  , db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (a, b)\n"
                    "}",
               INPUTS(FLOATS(arena, 3), FLOATS(arena, 4)), {1, {3}});
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b) => (float[1] da) {\n"
                    "  y = Mul(a, b)\n"
                    "  da = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (a, b)\n"
                    "}",
               INPUTS(FLOATS(arena, 3), FLOATS(arena, 4)), {1, {4}});
}

void test_gradient__outputs_may_be_left_out(void)
{
    check_in_arena(skipped);
}

static void constants(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] dx, float[1] dw)\n"
                    "<float[1] w = {7}> {\n"
                    "  y = Mul(x, w)\n"
                    "  dx, dw = " GRADIENT " <xs = [\"x\", \"w\"], y = \"y\"> (x, w)\n"
                    "}",
               INPUTS(FLOATS(arena, 3)), {1, {7}}, {1, {3}});
}

void test_gradient__by_an_initializer(void)
{
    check_in_arena(constants);
}

/* ---- at which point ---- */

static void elsewhere(struct cm_arena *arena)
{
    /* y = h z, h = w x; at h = 100, z = 10, wherever w and x are */
    CHECK_ROWS(arena,
               HEAD "main (float[1] W, float[1] X, float[1] Z, float[1] h1, float[1] z1)\n"
                    "=> (float[1] Y, float[1] dH, float[1] dZ) {\n" CHAIN "  dH, dZ = " GRADIENT
                    " <xs = [\"H\", \"Z\"], y = \"Y\"> (h1, z1)\n"
                    "}",
               INPUTS(FLOATS(arena, 2), FLOATS(arena, 3), FLOATS(arena, 5), FLOATS(arena, 100),
                      FLOATS(arena, 10)),
               {1, {30}}, {1, {10}}, {1, {100}});
    /* what is not named keeps its value */
    CHECK_ROWS(arena,
               HEAD "main (float[1] x, float[1] w, float[1] at) => (float[1] y, float[1] dx) {\n"
                    "  s = Mul(x, x)\n"
                    "  y = Mul(s, w)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (at)\n"
                    "}",
               INPUTS(FLOATS(arena, 1), FLOATS(arena, 5), FLOATS(arena, 10)), {1, {5}}, {1, {100}});
}

void test_gradient__at_the_point_that_is_fed(void)
{
    check_in_arena(elsewhere);
}

static void held_elsewhere(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] x, float[1] z, float[1] at) => (float[1] dx) {\n"
                    "  s = Mul(x, x)\n"
                    "  y = Mul(s, z)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], zs = [\"z\"], y = \"y\"> (x, at)\n"
                    "}",
               INPUTS(FLOATS(arena, 3), FLOATS(arena, 1), FLOATS(arena, 10)), {1, {60}});
}

void test_gradient__zs_are_fed_too(void)
{
    check_in_arena(held_elsewhere);
}

static void fed_twice(struct cm_arena *arena)
{
    /* a b at a = b = p: each keeps its own derivative */
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b, float[1] p) => (float[1] da, float[1] db) {\n"
                    "  s = Mul(a, a)\n"
                    "  y = Mul(s, b)\n"
                    "  da, db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (p, p)\n"
                    "}",
               INPUTS(FLOATS(arena, 1), FLOATS(arena, 1), FLOATS(arena, 3)), {1, {18}}, {1, {9}});
    /* also when it is one of the two */
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b) => (float[1] da, float[1] db) {\n"
                    "  s = Mul(a, a)\n"
                    "  y = Mul(s, b)\n"
                    "  da, db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (a, a)\n"
                    "}",
               INPUTS(FLOATS(arena, 3), FLOATS(arena, 1)), {1, {18}}, {1, {9}});
    /* and when two names change places */
    CHECK_ROWS(arena,
               HEAD "main (float[1] a, float[1] b) => (float[1] da, float[1] db) {\n"
                    "  s = Mul(a, a)\n"
                    "  y = Mul(s, b)\n"
                    "  da, db = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (b, a)\n"
                    "}",
               INPUTS(FLOATS(arena, 3), FLOATS(arena, 5)), {1, {30}}, {1, {25}});
}

void test_gradient__one_value_may_stand_for_two_names(void)
{
    check_in_arena(fed_twice);
}

/* ---- of gradients ---- */

static void of_gradients(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] d1, float[1] d2, float[1] d3, float[1] d4) {\n"
                    "  s = Mul(x, x)\n"
                    "  y = Mul(s, s)\n"
                    "  d1 = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                    "  d2 = " GRADIENT " <xs = [\"x\"], y = \"d1\"> (x)\n"
                    "  d3 = " GRADIENT " <xs = [\"x\"], y = \"d2\"> (x)\n"
                    "  d4 = " GRADIENT " <xs = [\"x\"], y = \"d3\"> (x)\n"
                    "}",
               INPUTS(FLOATS(arena, 2)), {1, {32}}, {1, {48}}, {1, {48}}, {1, {24}});
}

void test_gradient__of_a_gradient_to_the_fourth_order(void)
{
    check_in_arena(of_gradients);
}

static void mixed(struct cm_arena *arena)
{
    /* O = (W X)^2 L: dO/dW = 2 W X^2 L; by X: 4 W X L, by W: 2 X^2 L */
    CHECK_ROWS(arena,
               HEAD "main (float[1] W, float[1] X, float[1] L)\n"
                    "=> (float[1] dX, float[1] dW, float[1] mixed, float[1] second) {\n"
                    "  Y = Mul(W, X)\n"
                    "  S = Mul(Y, Y)\n"
                    "  O = Mul(S, L)\n"
                    "  dX, dW = " GRADIENT
                    " <xs = [\"X\", \"W\"], zs = [\"L\"], y = \"O\"> (X, W, L)\n"
                    "  mixed, second = " GRADIENT
                    " <xs = [\"X\", \"W\"], zs = [\"L\"], y = \"dW\"> (X, W, L)\n"
                    "}",
               INPUTS(FLOATS(arena, 2), FLOATS(arena, 3), FLOATS(arena, 5)), {1, {120}}, {1, {180}},
               {1, {120}}, {1, {90}});
}

void test_gradient__mixed_second_derivatives(void)
{
    check_in_arena(mixed);
}

static void penalty(struct cm_arena *arena)
{
    /* loss = y + (dy/dx)^2 with y = w x^2: d loss / dw = x^2 + 8 w x^2 */
    CHECK_ROWS(arena,
               HEAD "main (float[1] x, float[1] w) => (float[1] dw) {\n"
                    "  s = Mul(x, x)\n"
                    "  y = Mul(w, s)\n"
                    "  g = " GRADIENT " <xs = [\"x\"], zs = [\"w\"], y = \"y\"> (x, w)\n"
                    "  p = Mul(g, g)\n"
                    "  loss = Add(y, p)\n"
                    "  dw = " GRADIENT " <xs = [\"w\"], zs = [\"x\"], y = \"loss\"> (w, x)\n"
                    "}",
               INPUTS(FLOATS(arena, 3), FLOATS(arena, 2)), {1, {153}});
}

void test_gradient__may_be_part_of_what_is_differentiated(void)
{
    check_in_arena(penalty);
}

static void gradient_elsewhere(struct cm_arena *arena)
{
    /* the second derivative of x^3, at another point than the first's */
    CHECK_ROWS(arena,
               HEAD "main (float[1] x, float[1] at) => (float[1] d1, float[1] d2) {\n"
                    "  s = Mul(x, x)\n"
                    "  y = Mul(s, x)\n"
                    "  d1 = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                    "  d2 = " GRADIENT " <xs = [\"x\"], y = \"d1\"> (at)\n"
                    "}",
               INPUTS(FLOATS(arena, 2), FLOATS(arena, 5)), {1, {12}}, {1, {30}});
}

void test_gradient__of_a_gradient_at_another_point(void)
{
    check_in_arena(gradient_elsewhere);
}

/* ---- where it stands ---- */

#define BRANCHES(body_then, body_else)                                                             \
    HEAD "main (bool c, float[1] x) => (float[1] out) {\n"                                         \
         "  y = Mul(x, x)\n"                                                                       \
         "  out = If (c) <then_branch = t () => (float[1] r) {" body_then                          \
         "}, else_branch = e () => (float[1] q) {" body_else "}>\n"                                \
         "}"

static void in_branches(struct cm_arena *arena)
{
    /* names of the graphs around */
    const char *outer = BRANCHES("r = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)", "q = Neg(y)");
    CHECK_ROWS(arena, outer, INPUTS(graph_bool(arena, true), FLOATS(arena, 3)), {1, {6}});
    CHECK_ROWS(arena, outer, INPUTS(graph_bool(arena, false), FLOATS(arena, 3)), {1, {-9}});
    /* names of the branch itself, and at a point that is made there */
    const char *inner =
        BRANCHES("u = Mul(y, x) r = " GRADIENT " <xs = [\"x\"], y = \"u\"> (x)",
                 "v = Mul(x, x) at = Add(x, x) q = " GRADIENT " <xs = [\"x\"], y = \"v\"> (at)");
    CHECK_ROWS(arena, inner, INPUTS(graph_bool(arena, true), FLOATS(arena, 3)), {1, {27}});
    CHECK_ROWS(arena, inner, INPUTS(graph_bool(arena, false), FLOATS(arena, 3)), {1, {12}});
}

void test_gradient__inside_a_branch_names_inner_and_outer_values(void)
{
    check_in_arena(in_branches);
}

static void through_branches(struct cm_arena *arena)
{
    const char *text = HEAD "main (bool c, float[1] x) => (float[1] y, float[1] dx) {\n"
                            "  s = Mul(x, x)\n"
                            "  y = If (c) <then_branch = t () => (float[1] r) {\n"
                            "    u = Mul(s, x)\n"
                            "    r = " GRADIENT " <xs = [\"x\"], y = \"u\"> (x)\n"
                            "  }, else_branch = e () => (float[1] q) { q = Neg(s) }>\n"
                            "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                            "}";
    CHECK_ROWS(arena, text, INPUTS(graph_bool(arena, true), FLOATS(arena, 2)), {1, {12}},
               {1, {12}});
    CHECK_ROWS(arena, text, INPUTS(graph_bool(arena, false), FLOATS(arena, 2)), {1, {-4}},
               {1, {-4}});
}

void test_gradient__goes_through_a_branch_that_holds_another(void)
{
    check_in_arena(through_branches);
}

static void in_loops(struct cm_arena *arena)
{
    /* two steps of s - (s^2)' / 4 = s / 2 */
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] last)\n"
                    "<int64 trips = {2}, bool go = {1}, float[1] rate = {0.25}> {\n"
                    "  last = Loop (trips, go, x) <body = b (int64 i, bool c, float[1] s)\n"
                    "    => (bool d, float[1] t) {\n"
                    "      d = Identity(c)\n"
                    "      f = Mul(s, s)\n"
                    "      g = " GRADIENT " <xs = [\"s\"], y = \"f\"> (s)\n"
                    "      step = Mul(g, rate)\n"
                    "      t = Sub(s, step)\n"
                    "    }>\n"
                    "}",
               INPUTS(FLOATS(arena, 12)), {1, {3}});
}

void test_gradient__inside_a_loop(void)
{
    check_in_arena(in_loops);
}

static void of_functions(struct cm_arena *arena)
{
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] dx) {\n"
                    "  y = local.cube(x)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                    "}\n" LOCAL "cube (a) => (b) { s = Mul(a, a) b = Mul(s, a) }",
               INPUTS(FLOATS(arena, 2)), {1, {12}});
}

void test_gradient__of_a_function(void)
{
    check_in_arena(of_functions);
}

static void in_functions(struct cm_arena *arena)
{
    /* names are the function's own, even where the caller has the same; each call has its point */
    const char *slope = LOCAL "slope (y) => (dy) {\n"
                              "  x = Mul(y, y)\n"
                              "  dy = " GRADIENT " <xs = [\"y\"], y = \"x\"> (y)\n"
                              "}";
    char text[2000];
    snprintf(text, sizeof text, "%s%s",
             HEAD "main (float[1] x, float[1] z) => (float[1] p, float[1] q) {\n"
                  "  p = local.slope(x)\n"
                  "  y = Add(x, z)\n"
                  "  q = local.slope(y)\n"
                  "}\n",
             slope);
    CHECK_ROWS(arena, text, INPUTS(FLOATS(arena, 3), FLOATS(arena, 7)), {1, {6}}, {1, {20}});
    /* called by a function, and inside a branch */
    snprintf(text, sizeof text, "%s%s%s",
             HEAD "main (float[1] x, bool c) => (float[1] p) {\n"
                  "  p = If (c) <then_branch = t () => (float[1] r) { r = local.twice(x) },\n"
                  "    else_branch = e () => (float[1] q) { q = Neg(x) }>\n"
                  "}\n",
             LOCAL "twice (x) => (y) { d = local.slope(x) y = Add(d, d) }\n", slope);
    CHECK_ROWS(arena, text, INPUTS(FLOATS(arena, 3), graph_bool(arena, true)), {1, {12}});
}

void test_gradient__inside_a_function_names_the_functions_values(void)
{
    check_in_arena(in_functions);
}

static void through_functions(struct cm_arena *arena)
{
    /* p = (x^3)' = 3 x^2, so its derivative is 6 x */
    CHECK_ROWS(arena,
               HEAD "main (float[1] x) => (float[1] p, float[1] dx) {\n"
                    "  p = local.slope(x)\n"
                    "  dx = " GRADIENT " <xs = [\"x\"], y = \"p\"> (x)\n"
                    "}\n" LOCAL "slope (a) => (d) {\n"
                    "  s = Mul(a, a)\n"
                    "  b = Mul(s, a)\n"
                    "  d = " GRADIENT " <xs = [\"a\"], y = \"b\"> (a)\n"
                    "}",
               INPUTS(FLOATS(arena, 2)), {1, {12}}, {1, {12}});
}

void test_gradient__goes_through_a_function_that_holds_another(void)
{
    check_in_arena(through_functions);
}

static void keeps_draws(struct cm_arena *arena)
{
    struct cm_graph *graph =
        expanded(arena, HEAD "main (float[64] x) => (float[64] y, float[64] dx)\n"
                             "<float half = {0.5}, bool on = {1}> {\n"
                             "  y = Dropout(x, half, on)\n"
                             "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                             "}");
    struct cm_error err = {0};
    struct cm_datum out[2] = {0};
    float ones[64];
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    CHECK_OK(cm_graph_eval(graph, INPUTS(graph_floats(arena, 64, ones)), 1, out, NULL, &err), &err);
    double sum = 0;
    for (int64_t i = 0; i < 64; i++) {
        CHECK(cm_tensor_real(&out[0].tensor, i) == cm_tensor_real(&out[1].tensor, i));
        sum += cm_tensor_real(&out[1].tensor, i);
    }
    CHECK(sum > 0 && sum < 128); /* some went, some stayed */
    cm_datum_drop(&out[0]);
    cm_datum_drop(&out[1]);
}

void test_gradient__uses_what_a_random_node_drew(void)
{
    check_in_arena(keeps_draws);
}

static void keeps_names(struct cm_arena *arena)
{
    const struct cm_graph *graph =
        expanded(arena, HEAD "main (float[1] x) => (float[1] dx) {\n"
                             "  y = Mul(x, x)\n"
                             "  dx = " GRADIENT " <xs = [\"x\"], y = \"y\"> (x)\n"
                             "}");
    CHECK_INT(cm_graph_find(graph, CM_STR("dx")), graph->outputs[0].value);
    CHECK(cm_graph_find(graph, CM_STR("y")));
}

void test_gradient__its_outputs_keep_their_names(void)
{
    check_in_arena(keeps_names);
}

/* ---- refusals ---- */

static void refused(struct cm_arena *arena, const char *node, const char *part)
{
    struct cm_error err = {0};
    char text[1000];
    snprintf(text, sizeof text,
             HEAD "main (float[1] a, float[1] b, int64[1] n) => (float[1] da) {\n"
                  "  y = Mul(a, b)\n  %s\n}",
             node);
    enum cm_status status = graph_try(arena, text, NULL, &err);
    if (!status)
        status = cm_gradient_expand(graph_of(arena, text, NULL), &err);
    if (!status)
        fail_msg("'%s' was taken", node);
    if (!strstr(err.text, part))
        fail_msg("'%s' is refused with '%s', which does not say '%s'", node, err.text, part);
}

static void all_refused(struct cm_arena *arena)
{
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], y = \"nobody\"> (a)", "nobody");
    refused(arena, "da = " GRADIENT " <xs = [\"nobody\"], y = \"y\"> (a)", "nobody");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], zs = [\"nobody\"], y = \"y\"> (a, b)",
            "nobody");
    refused(arena, "da = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (a)", "2 names");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], zs = [\"b\"], y = \"y\"> (a)", "2 names");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], y = \"y\"> (a, b)", "1 name");
    refused(arena, "da = " GRADIENT " <xs: strings = [], y = \"y\"> (a)",
            "attribute 'xs' is empty");
    refused(arena, "da = " GRADIENT " <y = \"y\"> (a)", "xs");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"]> (a)", "y");
    refused(arena, "da, db = " GRADIENT " <xs = [\"a\"], y = \"y\"> (a)", "2 outputs");
    refused(arena, "da = " GRADIENT " <xs = [\"n\"], y = \"y\"> (n)",
            "a derivative by a value of type int64");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], y = \"n\"> (a)",
            "a value of type int64[1] has no derivative");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], y = \"y\"> (n)", "int64");
    refused(arena, "da = " GRADIENT " <xs = [\"a\", \"a\"], y = \"y\"> (a, a)", "twice");
    refused(arena, "da = " GRADIENT " <xs = [\"a\"], zs = [\"a\"], y = \"y\"> (a, a)", "twice");
    refused(arena, "da = " GRADIENT " <xs = [\"a\", \"b\"], y = \"y\"> (, b)", "input 0");
}

void test_gradient__refuses_what_makes_no_sense_and_says_why(void)
{
    check_in_arena(all_refused);
}

static void flat(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena,
                                      HEAD "main (float[2] x, int64 k) => (float[2] dx) {\n"
                                           "  y = " GRADIENT " <xs = [\"x\"], y = \"x\"> (x)\n"
                                           "  z = Mul(y, x)\n"
                                           "  dx = " GRADIENT " <xs = [\"x\"], y = \"z\"> (x)\n"
                                           "}",
                                      NULL);
    struct cm_error err = {0};
    CHECK_OK(cm_gradient_expand(graph, &err), &err);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2), graph_int(arena, 1)), 1, 1);
}

void test_gradient__that_is_constant_has_none_itself(void)
{
    check_in_arena(flat);
}
