/* Calls become bodies: inlined, instantiated, within the budget. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_case.h"

static const char squares[] =
    GRAPH_HEAD "main (float[2] x) => (float[2] y, float[2] z) {\n"
               "  y = local.plus_square(x)\n"
               "  z = Neg(y)\n"
               "}\n" GRAPH_LOCAL "square (a) => (b) { b = Mul(a, a) }\n" GRAPH_LOCAL
               "plus_square (a) => (b) {\n"
               "  c = local.square(a)\n"
               "  b = Add(c, a)\n"
               "}";

static void inline_one(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena, squares, NULL);
    struct cm_error err = {0};

    CHECK_OK(cm_graph_inline(graph->first, &err), &err);
    CHECK_INT(graph->n_nodes, 3);
    CHECK_STR(graph->first->op_type, "square");
    CHECK_STR(graph->first->next->op_type, "Add");
    const cm_value y = cm_graph_find(graph, CM_STR("y"));
    CHECK(y && cm_value_get(graph->module, y)->node == graph->first->next);
    CHECK_INT(graph->outputs[0].value, y);
    CHECK_INT(cm_value_get(graph->module, y)->n_uses, 2);
    CHECK_INT(cm_graph_find(graph, CM_STR("c")), 0); /* names of the body stay inside */
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 2, -1)), 6, 0);
}

void test_function__an_inlined_call_hands_its_names_and_uses_to_the_body(void)
{
    check_in_arena(inline_one);
}

static bool is_call(const struct cm_node *node, void *arg)
{
    size_t *asked = arg;
    ++*asked;
    return node->function != NULL;
}

static void inline_all(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena, squares, NULL);
    struct cm_error err = {0};
    size_t asked = 0;

    CHECK_OK(cm_graph_inline_all(graph, is_call, &asked, &err), &err);
    CHECK_INT(graph->n_nodes, 3);
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CHECK(node->schema && !node->function);
    CHECK(asked >= 3);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 2, -1)), 6, 0);
}

void test_function__inlining_goes_on_in_what_was_inlined(void)
{
    check_in_arena(inline_all);
}

static void inline_nested(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena,
        GRAPH_HEAD "main (float[2] x, bool c) => (float[2] y) {\n"
                   "  y = If (c) <then_branch = yes () => (float[2] r) { r = local.square(x) },\n"
                   "              else_branch = no () => (float[2] r) { r = Neg(x) }>\n"
                   "}\n" GRAPH_LOCAL "square (a) => (b) { b = Mul(a, a) }",
        NULL);
    struct cm_error err = {0};
    size_t asked = 0;

    CHECK_OK(cm_graph_inline_all(graph, is_call, &asked, &err), &err);
    CHECK_STR(graph->first->bodies[0].graph->first->op_type, "Mul");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 3, -1), graph_bool(arena, true)), 9, 1);
}

void test_function__calls_in_branches_are_inlined_too(void)
{
    check_in_arena(inline_nested);
}

static void operand_through(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float[2] x) => (float[2] y, float[2] z) {\n"
                            "  y, z = local.both(x)\n"
                            "}\n" GRAPH_LOCAL "both (a) => (a, b) { b = Neg(a) }",
                 NULL);
    struct cm_error err = {0};

    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 3, -1)), 3, -1);
    CHECK_OK(cm_graph_inline(graph->first, &err), &err);
    CHECK_INT(graph->outputs[0].value, graph->inputs[0]);
    CHECK_INT(cm_graph_find(graph, CM_STR("x")), graph->inputs[0]);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 3, -1)), 3, -1);
}

void test_function__a_body_may_hand_an_operand_through(void)
{
    check_in_arena(operand_through);
}

static void instantiate(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena, squares, NULL);
    struct cm_error err = {0};
    struct cm_node *call = graph->first;

    CHECK(cm_node_has_function(call) && !cm_node_has_function(call->next));
    CHECK_OK(cm_node_instantiate(call, &err), &err);
    struct cm_graph *instance = call->instance;
    CHECK(instance && !instance->parent);
    CHECK_INT(instance->n_inputs, 1);
    CHECK_INT(instance->n_outputs, 1);
    CHECK_GIVES(arena, instance, INPUTS(FLOATS(arena, 2, -1)), 6, 0);
    CHECK_OK(cm_node_instantiate(call, &err), &err);
    CHECK(call->instance == instance);
    CHECK_INT(graph->n_nodes, 2);
}

void test_function__an_instance_is_a_closed_graph_made_once(void)
{
    check_in_arena(instantiate);
}

static void budget(struct cm_arena *arena)
{
    /* two nodes, and three for what they call: the types of a call come from its body */
    struct cm_graph *graph =
        graph_of(arena, squares, &(struct cm_module_options){.node_budget = 100});
    struct cm_error err = {0};
    enum cm_status status = CM_OK;

    for (int i = 0; i < 100 && !status; i++) {
        const struct cm_node_spec spec = {
            .op_type = CM_STR("Neg"), .inputs = graph->inputs, .n_inputs = 1, .n_outputs = 1};
        status = cm_graph_add_node(graph, NULL, &spec, NULL, &err);
    }
    CHECK_INT(status, CM_LIMIT);
    const size_t full = graph->n_nodes;
    CHECK_FAILS(cm_graph_inline(graph->first, &err), CM_LIMIT, &err, "more than 100 nodes");
    CHECK(graph->n_nodes >= full);
    CHECK_STR(graph->first->op_type, "plus_square"); /* the call is still there */
}

void test_function__inlining_stops_at_the_node_budget(void)
{
    check_in_arena(budget);
}
