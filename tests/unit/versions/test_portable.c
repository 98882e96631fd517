/* The oldest opset under which a graph means what it means. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"
#include "graph/registry.h"
#include "versions/portable.h"

/* A graph of one node over x, bfloat16 b, int64 list i. */
static struct cm_graph *graph_with(struct cm_arena *arena, const char *node)
{
    const struct cm_str text = cm_arena_printf(
        arena,
        GRAPH_HEAD "main (float[4] x, bfloat16[4] b, int64[1] i, float[1] u, bool c) => () {\n"
                   "  %s\n}",
        node); /* names are views of it */
    return graph_of(arena, text.data, NULL);
}

static void needs(struct cm_arena *arena, const char *node, int64_t wanted)
{
    struct cm_graph *graph = graph_with(arena, node);
    struct cm_error err = {0};
    int64_t opset;
    CHECK_OK(cm_portable_opset(graph, CM_PORTABLE_OPSET, &opset, &err), &err);
    if (opset != wanted)
        fail_msg("'%s' needs opset %lld, expected %lld", node, (long long)opset, (long long)wanted);
    const struct cm_node *why = cm_portable_blocker(graph, CM_PORTABLE_OPSET);
    CHECK(wanted == CM_PORTABLE_OPSET ? !why : why != NULL);
}

static void types(struct cm_arena *arena)
{
    needs(arena, "y = Relu(x)", 17);
    needs(arena, "y = Sin(x)", 17);
    needs(arena, "y = Sin(b)", 22);
    needs(arena, "y = Cast<to = 16>(x)", 17);
    needs(arena, "y = Cast<to = 17>(x)", 19);
}

void test_portable__element_types_decide_by_operands_and_results(void)
{
    check_in_arena(types);
}

static void forms(struct cm_arena *arena)
{
    needs(arena, "y = ReduceSum(x, i)", 17);
    needs(arena, "y = ReduceMax(x)", 17);
    needs(arena, "y = ReduceMax(x, i)", 18);
    needs(arena, "y = ReduceMax<noop_with_empty_axes = 0>(x)", 18);
    needs(arena, "a, d = Split<num_outputs = 2>(x)", 18);
    needs(arena, "s = Constant<value_ints = [1, 3]>() a, d = Split(x, s)", 17);
    needs(arena, "y = Shape<start = 0>(x)", 17);
}

void test_portable__attributes_and_operands_decide(void)
{
    check_in_arena(forms);
}

static void words(struct cm_arena *arena)
{
    needs(arena, "p = Constant<value_ints = [1, 1]>() y = Pad<mode = \"edge\">(x, p)", 17);
    needs(arena, "p = Constant<value_ints = [1, 1]>() y = Pad<mode = \"wrap\">(x, p)", 19);
    needs(arena, "y = ScatterElements<reduction = \"add\">(x, i, u)", 17);
    needs(arena, "y = ScatterElements<reduction = \"max\">(x, i, u)", 18);
}

void test_portable__words_that_came_later_decide(void)
{
    check_in_arena(words);
}

static void changed(struct cm_arena *arena)
{
    needs(arena, "y = Gelu(x)", 20);
    needs(arena,
          "y = If(c)<then_branch = t () => (float[4] r) {r = Gelu(x)},"
          " else_branch = e () => (float[4] q) {q = Neg(x)}>",
          20);
}

void test_portable__operators_that_came_later_decide_in_branches_too(void)
{
    check_in_arena(changed);
}

static void blocker(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_with(arena, "g = Gelu(x) m = ReduceMax(g, i) y = Sin(b)");
    struct cm_error err = {0};
    int64_t opset;
    CHECK_STR(cm_portable_blocker(graph, CM_PORTABLE_OPSET)->op_type, "Sin");
    CHECK(!cm_portable_blocker(graph, 22));
    CHECK_OK(cm_portable_opset(graph, 25, &opset, &err), &err);
    CHECK_INT(opset, 25);
    CHECK_FAILS(cm_portable_opset(graph, 1000, &opset, &err), CM_BAD_ARGUMENT, &err, "opset 1000");
}

void test_portable__says_which_node_needs_the_opset(void)
{
    check_in_arena(blocker);
}

static void label(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_with(arena, "y = Relu(x)");
    struct cm_graph_proto *proto = CM_NEW(arena, struct cm_graph_proto);
    struct cm_opsets imports = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_graph_export(graph, arena, NULL, proto, &imports, &err), &err);
    cm_portable_label(arena, &imports, 17);
    CHECK_INT(imports.count, 1);
    CHECK_INT(imports.items[0].version, 17);
    struct cm_opsets none = {0};
    cm_portable_label(arena, &none, 17);
    CHECK_INT(none.count, 1);
    CHECK_INT(none.items[0].version, 17);
}

void test_portable__labels_the_import_of_standard_operators(void)
{
    check_in_arena(label);
}

static void copies(struct cm_arena *arena)
{
    /* a branch that gives an outer value twice, once the importer has taken it as it is */
    struct cm_graph *graph = graph_with(
        arena, "y, z = If(c)<then_branch = t () => (float[4] r, float[4] s)"
               " {r = Identity(x) s = Identity(x)},"
               " else_branch = e () => (float[4] p, float[4] q) {p = Neg(x) q = Neg(x)}>");
    struct cm_graph *branch = cm_node_body(graph->first, "then_branch");
    const cm_value x = cm_graph_find(graph, CM_STR("x"));
    cm_graph_set_outputs(branch, (const cm_value[]){x, x}, 2);
    struct cm_graph_proto *proto = CM_NEW(arena, struct cm_graph_proto);
    struct cm_opsets imports = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_graph_export(graph, arena, NULL, proto, &imports, &err), &err);
    const struct cm_graph_proto *then = proto->node.items[0].attribute.items[0].g;
    CHECK_INT(then->node.count, 4);
    for (size_t o = 0; o < 2; o++) {
        CHECK_STR(then->node.items[2 + o].op_type, "Identity");
        CHECK_STR(then->node.items[2 + o].input.items[0], "x");
        CHECK(cm_str_equal(then->node.items[2 + o].output.items[0], then->output.items[o].name));
    }
    CHECK(!cm_str_equal(then->output.items[0].name, then->output.items[1].name));
}

void test_portable__an_inner_graph_is_written_to_define_all_it_gives(void)
{
    check_in_arena(copies);
}
