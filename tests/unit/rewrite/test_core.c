/* The pass core: what is not a core operator gives way to its body. */
// SPDX-License-Identifier: Apache-2.0
#include "before_after.h"

#define MODEL "<ir_version: 10, opset_import: [\"\": 21]> main "

static bool keeps_softplus(struct cm_str domain, struct cm_str name)
{
    return !domain.size && cm_str_is(name, "Softplus");
}

static void bodies(struct cm_arena *arena)
{
    static const struct before_after rows[] = {
        {cm_pass_core, MODEL "(float[2,3] x) => (y) { y = Add(x, x) }", "Add", 0, {0}},
        {cm_pass_core,
         MODEL "(float[2,3] x) => (y) { a = Softplus(x) y = Neg(a) }",
         "Softplus Neg",
         0,
         {.keeps = keeps_softplus}},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++)
        before_after_check(arena, &rows[i]);
}

void test_core__core_operators_and_those_that_are_wanted_whole_stay(void)
{
    check_in_arena(bodies);
}

static void parts(struct cm_arena *arena)
{
    static const struct cm_pass_options options = {0};
    struct cm_graph *graph =
        before_after_graph(arena, MODEL "(float[2,3] x) => (y) { [act] y = Softplus(x) }");
    struct cm_error err = {0};

    CHECK_OK(cm_pass_core(graph, &options, &err), &err);
    CHECK(graph->n_nodes > 1);
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CHECK(cm_str_starts(node->name, "act/"));
    CHECK_STR(cm_value_get(graph->module, graph->outputs[0].value)->name, "y");
}

void test_core__parts_are_called_after_the_node_that_they_were(void)
{
    check_in_arena(parts);
}
