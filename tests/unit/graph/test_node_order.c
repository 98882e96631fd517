/* Nodes that are out of order are sorted as they are imported, or refused where that cannot be. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_order.h"

#include "graph_case.h"
#include "onnx/syntax.h"

#include <stdio.h>

/* The order of the main graph's nodes, as the first output of each. */
static void check_order(struct cm_arena *arena, const char *text, const char *expected)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_error err = {0};
    struct cm_node_order order;
    char found[200] = "";

    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, &err), &err);
    const struct cm_nodes *nodes = &model->graph->node;
    CHECK_OK(cm_node_order(arena, arena, nodes, &order, &err), &err);
    for (size_t i = 0; order.items && i < nodes->count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%.*s", i ? " " : "",
                 CM_STR_FMT(nodes->items[order.items[i]].output.items[0]));
    CHECK_STRING(found, expected);
}

static void orders(struct cm_arena *arena)
{
    check_order(arena,
                GRAPH_HEAD "main (float x) => (float c) { a = Neg(x) b = Abs(a) c = Add(a, b) }",
                "");
    /* d and e are needed early; all others stay as they were */
    check_order(arena,
                GRAPH_HEAD "main (float x) => (float f) {\n"
                           "  a = Neg(x) b = Add(a, e) c = Abs(b) d = Exp(x) e = Neg(d)\n"
                           "  f = Add(c, e)\n"
                           "}",
                "a d e b c f");
    /* 'z' inside the branch is the branch's own */
    check_order(arena,
                GRAPH_HEAD "main (float x, bool c) => (float z) {\n"
                           "  y = If (c) <then_branch = a () => (float z) { z = Neg(x) },\n"
                           "              else_branch = b () => (float z) { z = Abs(x) }>\n"
                           "  z = Exp(y)\n"
                           "}",
                "");
    /* a branch reads what comes later, two graphs further in */
    check_order(arena,
                GRAPH_HEAD
                "main (float x, bool c) => (float y) {\n"
                "  y = If (c) <then_branch = a () => (float r) {\n"
                "                r = If (c) <then_branch = b () => (float s) { s = Neg(late) },\n"
                "                            else_branch = d () => (float s) { s = Abs(x) }> },\n"
                "              else_branch = e () => (float s) { s = Abs(x) }>\n"
                "  late = Exp(x)\n"
                "}",
                "late y");
}

void test_node_order__nodes_move_only_where_an_earlier_one_needs_them(void)
{
    check_in_arena(orders);
}

static void circles(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD "main (float x) => (float y) {\n"
                                     "  y = Add(a, x) [first] a = Neg(b) [second] b = Abs(a)\n"
                                     "}",
                          NULL, &err),
                CM_BAD_MODEL, &err,
                "2 nodes read each other's results in a circle: node 'first' (Neg), node 'second' "
                "(Abs)");
    CHECK_FAILS(
        graph_try(arena, GRAPH_HEAD "main (float x) => (float y) { y = Add(y, x) }", NULL, &err),
        CM_BAD_MODEL, &err, "node making 'y' (Add) reads its own result");
    /* through a branch */
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float x, bool c) => (float y) {\n"
                          "  y = If (c) <then_branch = a () => (float r) { r = Neg(t) },\n"
                          "              else_branch = b () => (float r) { r = Abs(x) }>\n"
                          "  t = Exp(y)\n"
                          "}",
                          NULL, &err),
                CM_BAD_MODEL, &err, "2 nodes read each other's results in a circle");
}

void test_node_order__circles_are_refused_by_name(void)
{
    check_in_arena(circles);
}

static void everywhere(struct cm_arena *arena)
{
    /* the main graph, a branch and a function, each the wrong way round */
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD
                 "main (float[2] x, bool c) => (float[2] y) {\n"
                 "  y = local.f(t)\n"
                 "  t = If (c) <then_branch = a () => (float[2] r) { r = Neg(s) s = Add(x, x) },\n"
                 "              else_branch = b () => (float[2] r) { r = Abs(x) }>\n"
                 "}\n" GRAPH_LOCAL "f (a) => (b) { b = Mul(c, a) c = Add(a, a) }",
                 NULL);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_bool(arena, true)), 8, 32);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_bool(arena, false)), 2, 8);
}

void test_node_order__graphs_branches_and_functions_are_sorted(void)
{
    check_in_arena(everywhere);
}

/* As deep as it gets: recursion would overflow the stack, and a search per node take minutes. */
static void long_chain(struct cm_arena *arena)
{
    enum { LENGTH = 100000 };
    struct cm_nodes nodes = {CM_NEW_ARRAY(arena, struct cm_node_proto, LENGTH), LENGTH};
    struct cm_node_order order;
    struct cm_error err = {0};

    for (size_t i = 0; i < LENGTH; i++) {
        struct cm_str *names = CM_NEW_ARRAY(arena, struct cm_str, 2);
        names[0] = cm_arena_printf(arena, "v%zu", i + 1);
        names[1] = cm_arena_printf(arena, "v%zu", i);
        nodes.items[i].input = (struct cm_strs){&names[0], 1};
        nodes.items[i].output = (struct cm_strs){&names[1], 1};
    }
    CHECK_OK(cm_node_order(arena, arena, &nodes, &order, &err), &err);
    CHECK(order.items && order.items[0] == LENGTH - 1 && order.items[LENGTH - 1] == 0);
    CHECK(order.reader == &nodes.items[0]);
    CHECK(cm_str_is(order.name, "v1"));
}

void test_node_order__a_long_chain_backwards_is_turned_around(void)
{
    check_in_arena(long_chain);
}
