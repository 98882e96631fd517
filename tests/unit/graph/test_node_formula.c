/* Formulas emit the nodes that they say, in the order in which they are read. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph_case.h"

#include <math.h>

struct scene {
    struct cm_builder build;
    const struct cm_node *node;
    struct cm_error err;
    cm_value x, y; /* float[2], {3, -1} and {2, 4} when it runs */
};

static void set_scene(struct cm_arena *arena, struct scene *s)
{
    struct cm_graph *graph = graph_new(arena);
    *s = (struct scene){.build.graph = graph};
    s->build.err = &s->err;
    s->x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 2));
    s->y = cm_graph_add_input(graph, CM_STR("y"), graph_float_type(arena, 2));
}

static void check_gives(struct cm_arena *arena, const char *text, float first, float second)
{
    struct scene s;
    set_scene(arena, &s);
    const cm_value result = cm_emit_formula(&s, text, s.x, s.y);
    CHECK_OK(s.build.status, &s.err);
    cm_graph_set_outputs(s.build.graph, &result, 1);
    CHECK_GIVES(arena, s.build.graph, INPUTS(FLOATS(arena, 3, -1), FLOATS(arena, 2, 4)), first,
                second);
}

static void arithmetic(struct cm_arena *arena)
{
    check_gives(arena, "x, y: x + y * x - y / 2", 8, -7);
    check_gives(arena, "x, y: (x - y) * -x", -3, -5);
    check_gives(arena, "x, y: half = 1 / 4 + 0.25; x * half", 1.5f, -0.5f);
    check_gives(arena, "x, y: Where(Greater(x, 0), like(x, 1), y)", 1, 4);
    check_gives(arena, "x, y: x * 2.5e-1 * 4e+0", 3, -1);
    check_gives(arena, "x, y: Min(x, -inf + Abs(y) * 0)", -INFINITY, -INFINITY);
}

void test_node_formula__numbers_take_the_type_of_their_neighbour(void)
{
    check_in_arena(arithmetic);
}

static void calls(struct cm_arena *arena)
{
    check_gives(arena, "x, y: ReduceSum<keepdims=1>(x, [0]) + y", 4, 6);
    check_gives(arena, "x, y: float(int64(x / 2)) + y", 3, 4);
    check_gives(arena, "x, y: Concat<axis=0>(Slice(x, [1], [inf]), Slice(y, [0], [1]))", -1, 2);
    check_gives(arena, "x, y: Reshape(Unsqueeze(x, [1 to 2]), [2, 1 to 0]) + y", 5, 3);
    check_gives(arena, "x, y: twice(t) = t + t; mix(a, b) = { c = twice(a); c - b }; mix(x, y)", 4,
                -6);
    check_gives(arena, "x, y: a, b = Split<num_outputs=2>(x); a + b * y", 1, -1);
    check_gives(arena, "x, y: Clip(x, , like(x, 1)) + y", 3, 3);
}

void test_node_formula__operators_and_functions_are_called(void)
{
    check_in_arena(calls);
}

static void choices(struct cm_arena *arena)
{
    check_gives(arena, "x, y: rank(x) == 1 ? x : unknown(y)", 3, -1);
    check_gives(arena, "x, y: rank(x) == 2 ? Split<a='}->', b=[1]>(x, (y)) : x + y", 5, 3);
    check_gives(arena, "x, y: (0 ? x : 1 ? y : x) - (1 ? 0 ? y : x : y)", -1, 5);
    check_gives(arena, "x, y: pick(t, n) = n == 2 ? t : -t; pick(x, 1 + 1) + pick(y, 3)", 1, -5);
    check_gives(arena, "x, y: Slice(x, [dtype(x) == float ? 1 : 0], [inf]) * y", -2, -4);
    check_gives(arena, "x, y: none ? x : y - none + none", 2, 4);
    check_gives(arena, "x, y: none + x * (dtype(x) == dtype(y) ? 2 : 3)", 6, -2);
}

void test_node_formula__a_choice_emits_one_branch(void)
{
    check_in_arena(choices);
}

static void in_order(struct cm_arena *arena)
{
    static const char *const order[] = {"Mul", "Neg", "Sub", "Floor"};
    struct scene s;
    cm_value results[2];
    size_t i = 0;
    set_scene(arena, &s);
    cm_emit_formulas(&s, results, "x, y: a = x * y - -x; b = Floor(float(a)) -> b, a", s.x, s.y);
    CHECK_OK(s.build.status, &s.err);
    for (const struct cm_node *node = s.build.graph->first; node; node = node->next, i++)
        CHECK_STR(node->op_type, i < CM_COUNT(order) ? order[i] : "none");
    CHECK_INT(i, CM_COUNT(order));
    CHECK_INT(cm_value_get(s.build.graph->module, results[0])->node->n_inputs, 1);
    CHECK_INT(cm_value_get(s.build.graph->module, results[1])->node->n_inputs, 2);
}

void test_node_formula__nodes_come_in_the_order_of_the_text(void)
{
    check_in_arena(in_order);
}

static void mistakes(struct cm_arena *arena)
{
    static const char *const texts[] = {
        "x: y",        "x: x +",          "x: (x",           "x: 1",
        "x: Add(x, x", "x: Add<axis>(x)", "x: x y",          "y x",
        "x: [1",       "x: f(a) = a; f(", "x: x * %",        "x: Where(1, 2, 3)",
        "x: 1 ? x",    "x: 0 ? x : y",    "x: dtype(x) == y"};
    for (size_t i = 0; i < CM_COUNT(texts); i++) {
        struct scene s;
        set_scene(arena, &s);
        CHECK_INT(cm_emit_formula(&s, texts[i], s.x), 0);
        CHECK(s.build.status != CM_OK);
    }
}

void test_node_formula__what_cannot_be_read_fails(void)
{
    check_in_arena(mistakes);
}
