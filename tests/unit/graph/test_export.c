/* Graphs written as messages again, and read back. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_case.h"
#include "onnx/syntax.h"

static enum cm_status append(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    char *text = to;
    const size_t used = strlen(text);
    (void)err;
    CHECK(used + size < 4000);
    memcpy(text + used, bytes, size);
    text[used + size] = 0;
    return CM_OK;
}

static void export_text(struct cm_arena *arena, const struct cm_graph *graph, char text[4000],
                        struct cm_opsets *imports)
{
    struct cm_error err = {0};
    struct cm_graph_proto proto = {0};
    CHECK_OK(cm_graph_export(graph, arena, NULL, &proto, imports, &err), &err);
    text[0] = 0;
    CHECK_OK(cm_syntax_print_graph(&proto, NULL, append, text, &err), &err);
}

static void body_gradient(struct cm_arena *arena)
{
    const char *const model =
        "<ir_version: 10, opset_import: [\"\" : 28, \"ai.onnx.preview.training\" : 1]>\n"
        "main (float[2] x, float[2] p) => (float[2] g) {\n"
        "  y = Mul(x, x)\n"
        "  g = ai.onnx.preview.training.Gradient <xs = [\"x\"], y = \"y\"> (p)\n"
        "}";
    char text[4000];
    struct cm_opsets imports = {0};
    struct cm_graph *graph = graph_of(arena, model, NULL);
    /* Renamed since: the attributes follow. */
    cm_value_set_name(graph->module, graph->inputs[0], CM_STR("renamed"));
    export_text(arena, graph, text, &imports);
    CHECK(strstr(text, "xs: strings = [\"renamed\"]") || strstr(text, "xs = [\"renamed\"]"));
    CHECK(strstr(text, "Gradient"));
    CHECK(strstr(text, "(p)"));
    CHECK_INT(imports.count, 2);
}

void test_export__a_gradient_names_its_values_as_they_are_called_now(void)
{
    check_in_arena(body_gradient);
}

static void body_unnamed(struct cm_arena *arena)
{
    char text[4000], *model = cm_arena_alloc(arena, 5000);
    struct cm_opsets imports = {0};
    struct cm_graph *graph = graph_of(
        arena,
        GRAPH_HEAD "main (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {\n"
                   "  t1 = Add(x, w)\n"
                   "  y = If (c) <then_branch = a () => (float[2] r) { r = Neg(t1) },\n"
                   "              else_branch = b () => (float[2] r) { r = Identity(t1) }>\n"
                   "}",
        NULL);
    /* A value without a name gets one that is free. */
    const cm_value sum = GRAPH_ADD(graph, "Add", graph->outputs[0].value, graph->inputs[0]);
    cm_use_redirect(graph->module, &graph->outputs[0], sum);
    export_text(arena, graph, text, &imports);
    snprintf(model, 5000, GRAPH_HEAD "%s", text);
    struct cm_graph *again = graph_of(arena, model, NULL);
    CHECK_INT(again->n_nodes, graph->n_nodes);
    const struct cm_datum *in[] = {FLOATS(arena, 10, 20), graph_bool(arena, true)};
    struct cm_datum first[1] = {0}, second[1] = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_graph_eval(graph, in, 2, first, NULL, &err), &err);
    CHECK_OK(cm_graph_eval(again, in, 2, second, NULL, &err), &err);
    CHECK_INT(((float *)first[0].tensor.data)[1], -2);
    CHECK(memcmp(first[0].tensor.data, second[0].tensor.data, 2 * sizeof(float)) == 0);
    cm_datum_drop(first);
    cm_datum_drop(second);
}

void test_export__what_is_exported_reads_back_and_computes_the_same(void)
{
    check_in_arena(body_unnamed);
}
