/* Models become modules: nested graphs, functions, attribute references, and what is refused. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_case.h"

static void outer_names(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena,
        GRAPH_HEAD
        "main (float[2] x, bool c) => (float[2] y) {\n"
        "  k = Add(x, x)\n"
        "  y = If (c) <then_branch = yes () => (float[2] r) { t = Add(k, x) r = Neg(t) },\n"
        "              else_branch = no () => (float[2] r) { t = Mul(k, x) r = Abs(t) }>\n"
        "}",
        NULL);
    struct cm_module *module = graph->module;
    const cm_value k = cm_graph_find(graph, CM_STR("k"));

    CHECK_INT(cm_value_get(module, k)->n_uses, 2); /* once in each branch */
    CHECK(cm_value_get(module, k)->uses->graph->parent == graph);
    CHECK_INT(cm_graph_find(graph, CM_STR("t")), 0);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_bool(arena, true)), -3, 6);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_bool(arena, false)), 2, 8);
}

void test_import__branches_read_outer_names_and_share_none_of_their_own(void)
{
    check_in_arena(outer_names);
}

static void shadowed(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float[2] x, bool c) => (float[2] y) {\n"
                          "  t = Add(x, x)\n"
                          "  y = If (c) <then_branch = yes () => (float[2] t) { t = Neg(x) },\n"
                          "              else_branch = no () => (float[2] r) { r = Abs(x) }>\n"
                          "}",
                          NULL, &err),
                CM_BAD_MODEL, &err, "'t' is defined twice");
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD "main (float[2] x) => (float[2] y) {\n"
                                     "  y = Add(x, z)\n"
                                     "  z = Neg(x)\n"
                                     "}",
                          NULL, &err),
                CM_BAD_MODEL, &err, "reads 'z', which nothing before it defines");
    CHECK_FAILS(
        graph_try(arena, GRAPH_HEAD "main (float[2] x) => (float[2] y) { z = Neg(x) }", NULL, &err),
        CM_BAD_MODEL, &err, "output 'y' is never computed");
}

void test_import__names_are_defined_once_and_before_they_are_read(void)
{
    check_in_arena(shadowed);
}

static void functions(struct cm_arena *arena)
{
    /* the names inside are those of the caller, and mean something else */
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float[2] a) => (float[2] y) {\n"
                            "  b = local.plus_square(a)\n"
                            "  y = local.square(b)\n"
                            "}\n" GRAPH_LOCAL "square (a) => (b) { b = Mul(a, a) }\n" GRAPH_LOCAL
                            "plus_square (b) => (a) {\n"
                            "  c = local.square(b)\n"
                            "  a = Add(c, b)\n"
                            "}",
                 NULL);

    CHECK_INT(graph->n_nodes, 2);
    CHECK(graph->first->function && !graph->first->schema);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -3)), 4, 36);
}

void test_import__functions_call_functions(void)
{
    check_in_arena(functions);
}

static void references(struct cm_arena *arena)
{
    const char *text = GRAPH_HEAD "main (float[2] x) => (float[2] y) {\n"
                                  "  a = local.scaled <by = 10.0> (x)\n"
                                  "  b = local.scaled(a)\n"
                                  "  y = local.again <by = 2.0> (b)\n"
                                  "}\n" GRAPH_LOCAL "scaled <by: float = 3.0> (x) => (y) {\n"
                                  "  f = Constant <value_float: float = @by> ()\n"
                                  "  y = Mul(x, f)\n"
                                  "}\n" GRAPH_LOCAL "again <by> (x) => (y) {\n"
                                  "  t = local.scaled <by: float = @by> (x)\n"
                                  "  y = local.scaled(t)\n"
                                  "}";

    CHECK_GIVES(arena, graph_of(arena, text, NULL), INPUTS(FLOATS(arena, 1, 2)), 180, 360);
}

void test_import__attribute_references_take_the_call_then_the_default(void)
{
    check_in_arena(references);
}

static void absent(struct cm_arena *arena)
{
    const char *text =
        GRAPH_HEAD "main (float[3] x, float low, float high) => (float[3] a, float[3] b) {\n"
                   "  a = local.bounded(x, low, high)\n"
                   "  b = local.bounded(x, , high)\n"
                   "}\n" GRAPH_LOCAL "bounded (x, low, high) => (y) { y = Clip(x, low, high) }";
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_datum *low = FLOATS(arena, -1), *high = FLOATS(arena, 1);
    low->tensor.shape = high->tensor.shape = CM_SCALAR;
    const struct cm_datum *const in[] = {FLOATS(arena, -5, 0.5F, 5), low, high};

    CHECK_GIVES(arena, graph, in, -1, 0.5F, 1);
    const cm_value second = graph->outputs[1].value;
    cm_graph_set_outputs(graph, &second, 1);
    CHECK_GIVES(arena, graph, in, -5, 0.5F, 1);
}

void test_import__an_operand_the_call_leaves_out_is_absent_in_the_function(void)
{
    check_in_arena(absent);
}

static void unknown(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float[2] x, bool c) => (float[2] y) {\n"
                          "  a = Frobnicate(x)\n"
                          "  b = local.unheard(a)\n"
                          "  d = Frobnicate(b)\n"
                          "  y = If (c) <then_branch = yes () => (float[2] r) { r = Twiddle(d) },\n"
                          "              else_branch = no () => (float[2] r) { r = Neg(d) }>\n"
                          "}",
                          NULL, &err),
                CM_UNSUPPORTED, &err, "3 operators are not known");
    CHECK(strstr(err.text, "Frobnicate") && strstr(err.text, "local.unheard"));
    CHECK(strstr(err.text, "Twiddle"));
    CHECK(!strstr(strstr(err.text, "Frobnicate") + 1, "Frobnicate")); /* each is named once */
}

void test_import__all_unknown_operators_are_named_at_once(void)
{
    check_in_arena(unknown);
}

static void cycles(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float[2] x) => (float[2] y) { y = local.ping(x) }\n" GRAPH_LOCAL
                          "ping (a) => (b) { b = local.pong(a) }\n" GRAPH_LOCAL
                          "pong (a) => (b) { b = local.ping(a) }",
                          NULL, &err),
                CM_LIMIT, &err, "functions call each other more than 100 deep");
}

void test_import__functions_that_call_each_other_in_a_circle_are_refused(void)
{
    check_in_arena(cycles);
}

/* Twenty functions, each calling the one before it ten times: 10^20 nodes. */
static void laughs(struct cm_arena *arena)
{
    struct cm_str text = cm_arena_printf(
        arena, "%s",
        GRAPH_HEAD "main (float[2] x) => (float[2] y) { y = local.f19(x) }\n" GRAPH_LOCAL
                   "f0 (a) => (b) { b = Neg(a) }\n");
    struct cm_error err = {0};

    for (int i = 1; i < 20; i++) {
        struct cm_str body = cm_arena_printf(arena, "t0 = Neg(a)");
        for (int k = 0; k < 10; k++)
            body = cm_arena_printf(arena, "%s t%d = local.f%d(t%d)", body.data, k + 1, i - 1, k);
        text = cm_arena_printf(arena, "%s" GRAPH_LOCAL "f%d (a) => (b) { %s b = Neg(t10) }\n",
                               text.data, i, body.data);
    }
    CHECK_FAILS(graph_try(arena, text.data, &(struct cm_module_options){.node_budget = 5000}, &err),
                CM_LIMIT, &err, "more than 5000 nodes");
}

void test_import__functions_that_multiply_beyond_the_budget_are_refused(void)
{
    check_in_arena(laughs);
}

static void nesting(struct cm_arena *arena)
{
    struct cm_str body = CM_STR("r = Neg(x)");
    struct cm_error err = {0};

    for (int i = 0; i < 12; i++)
        body = cm_arena_printf(arena,
                               "%s = If (c) <then_branch = t () => (float[2] r) { %s }, "
                               "else_branch = e () => (float[2] r) { r = Abs(x) }>",
                               i < 11 ? "r" : "y", body.data);
    const struct cm_str text = cm_arena_printf(
        arena, GRAPH_HEAD "main (float[2] x, bool c) => (float[2] y) { %s }", body.data);
    CHECK_OK(graph_try(arena, text.data, NULL, &err), &err);
}

void test_import__a_dozen_nested_branches_are_fine(void)
{
    check_in_arena(nesting);
}
