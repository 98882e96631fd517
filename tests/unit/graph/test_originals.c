/* What the framework calls the tensors of a model, as PyTorch's exporters record it. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/originals.h"

#include "graph_case.h"
#include "onnx/syntax.h"

#include <stdio.h>

static struct cm_graph_proto *graph_proto(struct cm_arena *arena, const char *text)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_error err = {0};

    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, &err), &err);
    return model->graph;
}

/* "name" or "name (folding)" of an initializer. */
static void check_original(struct cm_arena *arena, const struct cm_originals *originals,
                           const char *name, const char *expected)
{
    const struct cm_original_texts texts = cm_originals_texts(originals, arena, cm_str(name));
    const struct cm_str found =
        cm_arena_printf(arena, texts.folding.size ? "%.*s (%.*s)" : "%.*s",
                        CM_STR_FMT(texts.original), CM_STR_FMT(texts.folding));

    CHECK_STRING(found.data, expected);
}

#define HEAD "<ir_version: 10, opset_import: [\"\" : 20]>\n"
#define FX   "\"pkg.torch.onnx.fx_node\": \"%v = call_function[target=torch.ops.aten."
#define FOLDED(name, from)                                                                         \
    name " <metadata_props: [\"pkg.onnxscript.optimizer.folded_from\": \"" from "\"]>"
#define SIGNATURE(text)                                                                            \
    "<metadata_props: [\"pkg.torch.export.ExportedProgram.graph_signature\": \"" text "\"]> "

/* ---- the newer exporter ---- */

static const char newer[] =
    HEAD SIGNATURE(
        "\n# inputs\n"
        "p_e_weight: PARAMETER target='e.weight'\n"
        "p_a_weight: PARAMETER target='a.weight'\n"
        "p_a_bias: PARAMETER target='a.bias'\n"
        "p_n_weight: PARAMETER target='n.weight'\n"
        "p_n_bias: PARAMETER target='n.bias'\n"
        "p_m_weight: PARAMETER target='m.weight'\n"
        "p_m_bias: PARAMETER target='m.bias'\n"
        "p_s: PARAMETER target='s'\n"
        "p_g_weight: PARAMETER target='g.weight'\n"
        "p_o_weight: PARAMETER target='o.weight'\n"
        "p_z_bias: PARAMETER target='z.bias'\n"
        "b_bn_running_mean: BUFFER target='bn.running_mean' persistent=True\n"
        "x: USER_INPUT\n") "main (int64[N] x) => (float[N,4] y)\n"
                           "<float[4,2] \"o.weight\" = {1,2,3,4,5,6,7,8}, float[2,4] val_9 = "
                           "{1,3,5,7,2,4,6,8},\n"
                           " float[2,2] val_1 = {1,2,3,4}, float[2] \"a.bias\" = {1,2}, float[2] "
                           "\"n.weight\" = {1,1},\n"
                           " float[2] \"n.bias\" = {0,0}, float[2] neg = {1,2}, float[2,1] val_7 = "
                           "{1,2}, float val_8 = {1},\n"
                           " float[2,2] t = {1,2,3,4}, float[2,2] permute_1 = {1,2,3,4},\n"
                           " float[2,4] " FOLDED("val_9", "['o.weight']") ", float[2,2] " FOLDED(
                               "val_1", "['a.weight']") ",\n"
                                                        " float[2] " FOLDED("neg", "['s', 'exp']") ", float[2,1] " FOLDED("val_7", "['g.weight', 'val_6']") ",\n float " FOLDED("val_8", "['val_5']") ", float[2,2] " FOLDED(
                                                            "t",
                                                            "['s']") ",\n"
                                                                     " float[2,2] " FOLDED(
                                                                         "permute_1",
                                                                         "['s', 'exp']") ">\n"
                                                                                         "{ [e "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "embedding"
                                                                                         ".default]"
                                                                                         "(args = "
                                                                                         "(%p_o_"
                                                                                         "weight, "
                                                                                         "%x))\",\n"
                                                                                         "      "
                                                                                         "\"pkg."
                                                                                         "torch."
                                                                                         "onnx."
                                                                                         "name_"
                                                                                         "scopes\":"
                                                                                         " \"['', "
                                                                                         "'e', "
                                                                                         "'embeddin"
                                                                                         "g']\"]>] "
                                                                                         "h = "
                                                                                         "Gather("
                                                                                         "\"o."
                                                                                         "weight\","
                                                                                         " x)\n"
                                                                                         "  [l "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "linear."
                                                                                         "default]("
                                                                                         "args = "
                                                                                         "(%h, "
                                                                                         "%p_a_"
                                                                                         "weight, "
                                                                                         "%p_a_"
                                                                                         "bias))\"]"
                                                                                         ">]\n"
                                                                                         "  l0 = "
                                                                                         "MatMul(h,"
                                                                                         " val_1)\n"
                                                                                         "  [l2 "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "linear."
                                                                                         "default]("
                                                                                         "args = "
                                                                                         "(%h, "
                                                                                         "%p_a_"
                                                                                         "weight, "
                                                                                         "%p_a_"
                                                                                         "bias))\"]"
                                                                                         ">]\n"
                                                                                         "  l1 = "
                                                                                         "Add(l0, "
                                                                                         "\"a."
                                                                                         "bias\")\n"
                                                                                         "  [n "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "layer_"
                                                                                         "norm."
                                                                                         "default]("
                                                                                         "args = "
                                                                                         "(%l1, "
                                                                                         "[2], "
                                                                                         "%p_n_"
                                                                                         "weight, "
                                                                                         "%p_n_"
                                                                                         "bias))\"]"
                                                                                         ">]\n"
                                                                                         "  n0 = "
                                                                                         "LayerNorm"
                                                                                         "alization"
                                                                                         "(l1, "
                                                                                         "\"n."
                                                                                         "weight\","
                                                                                         " \"n."
                                                                                         "bias\")\n"
                                                                                         "  [m "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "layer_"
                                                                                         "norm."
                                                                                         "default]("
                                                                                         "args = "
                                                                                         "(%n0, "
                                                                                         "[2], "
                                                                                         "%p_m_"
                                                                                         "weight, "
                                                                                         "%p_m_"
                                                                                         "bias))\"]"
                                                                                         ">]\n"
                                                                                         "  n1 = "
                                                                                         "LayerNorm"
                                                                                         "alization"
                                                                                         "(n0, "
                                                                                         "\"n."
                                                                                         "weight\","
                                                                                         " \"n."
                                                                                         "bias\")\n"
                                                                                         "  k = "
                                                                                         "Mul(n1, "
                                                                                         "neg) k1 "
                                                                                         "= "
                                                                                         "MatMul(k,"
                                                                                         " t) k2 = "
                                                                                         "MatMul("
                                                                                         "k1, "
                                                                                         "permute_"
                                                                                         "1) k3 = "
                                                                                         "Mul(k2, "
                                                                                         "val_8)\n"
                                                                                         "  [g "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "group_"
                                                                                         "norm."
                                                                                         "default]("
                                                                                         "args = "
                                                                                         "(%k, 1, "
                                                                                         "%p_g_"
                                                                                         "weight))"
                                                                                         "\"]>]\n"
                                                                                         "  k4 = "
                                                                                         "Mul(k3, "
                                                                                         "val_7)\n"
                                                                                         "  [o "
                                                                                         "<metadata"
                                                                                         "_props: "
                                                                                         "[" FX
                                                                                         "linear."
                                                                                         "default]("
                                                                                         "args = "
                                                                                         "(%k4, "
                                                                                         "%p_o_"
                                                                                         "weight))"
                                                                                         "\"]>]\n"
                                                                                         "  y = "
                                                                                         "MatMul("
                                                                                         "k4, "
                                                                                         "val_9) }";

static void newer_records(struct cm_arena *arena)
{
    const struct cm_graph_proto *graph = graph_proto(arena, newer);
    struct cm_originals *o = cm_originals_read(arena, graph);

    check_original(arena, o, "o.weight", "o.weight, e.weight"); /* tied */
    check_original(arena, o, "val_9", "o.weight (transposed)");
    check_original(arena, o, "val_1", "a.weight (transposed)");
    check_original(arena, o, "a.bias", "");
    check_original(arena, o, "n.weight", "n.weight, m.weight"); /* equal when they were written */
    check_original(arena, o, "n.bias", "n.bias, m.bias");
    check_original(arena, o, "neg", "s (computed)");
    check_original(arena, o, "t", "s (transposed)");
    check_original(arena, o, "permute_1", "s (computed)"); /* of exp(s) */
    check_original(arena, o, "val_7", "g.weight (unsqueezed)");
    check_original(arena, o, "val_8", "");
    check_original(arena, o, "nothing", "");
    CHECK(cm_originals_find(o, CM_STR("val_1"))->is_parameter);
    CHECK_INT(o->missing.count, 1);
    CHECK(cm_str_is(o->missing.items[0], "z.bias"));
    CHECK_INT(o->norms.count, 1);
    CHECK(cm_str_is(o->norms.items[0], "bn"));
    const struct cm_node_proto *second = &graph->node.items[4];
    CHECK(cm_str_is(cm_originals_meant(o, CM_STR("n.bias"), second, 2), "m.bias"));
    cm_originals_part(o, arena, CM_STR("n.bias"), CM_STR("m.bias"), CM_STR("other"));
    check_original(arena, o, "n.bias", "");
    check_original(arena, o, "other", "m.bias");
}

void test_originals__records_of_the_newer_exporter_are_read(void)
{
    check_in_arena(newer_records);
}

static void without_list(struct cm_arena *arena)
{
    const struct cm_graph_proto *graph = graph_proto(
        arena,
        HEAD "main (float[N,2] x) => (float[N,2] y)\n"
             "<float[2,2] val_0 = {1,2,3,4}, float[2,2] val_1 = {1,2,3,4}, float val_2 = {1},\n"
             " float[2,2] val_3 = {1,2,3,4}, float[2,2] " FOLDED(
                 "val_0",
                 "['fc.weight']") ",\n"
                                  " float[2,2] " FOLDED("val_1", "['val_7']") ", float " FOLDED(
                                      "val_2",
                                      "['eps']") ",\n"
                                                 " float[2,2] " FOLDED(
                                                     "val_3",
                                                     "['a', 'b']") ">\n"
                                                                   "{ [a <metadata_props: [" FX
                                                                   "linear.default](args = (%x, "
                                                                   "%p_fc_weight))\"]>]\n"
                                                                   "  h = MatMul(x, val_0) k = "
                                                                   "MatMul(h, val_1) l = Mul(k, "
                                                                   "val_2) y = MatMul(l, val_3) }");
    const struct cm_originals *o = cm_originals_read(arena, graph);

    check_original(arena, o, "val_0", "fc.weight (transposed)");
    check_original(arena, o, "val_1", "");
    check_original(arena, o, "val_2", "");
    check_original(arena, o, "val_3", "");
}

void test_originals__without_a_list_of_tensors_one_name_alone_counts(void)
{
    check_in_arena(without_list);
}

/* ---- the older exporter ---- */

static void older_names(struct cm_arena *arena)
{
    const struct cm_graph_proto *graph = graph_proto(
        arena, HEAD
        "main (float[N,2] x) => (float[N,2] y)\n"
        "<float[2,2] \"onnx::MatMul_1\" = {1,2,3,4}, float[2,2] \"onnx::MatMul_2\" = {1,2,3,4},\n"
        " float[2,2] \"onnx::MatMul_3\" = {1,2,3,4}, float[1,1,1] \"onnx::Conv_4\" = {1},\n"
        " float[2] \"net.fc.bias\" = {1,2}, float[2] \"onnx::Mul_5\" = {1,2}>\n"
        "{ [\"/net/fc/MatMul\"] a = MatMul(x, \"onnx::MatMul_1\")\n"
        "  [\"/net/fc/Add\"] b = Add(a, \"net.fc.bias\")\n"
        "  [\"/net/seq/seq.0/MatMul\"] c = MatMul(b, \"onnx::MatMul_2\")\n"
        "  [\"/net/MatMul\"] d = MatMul(c, \"onnx::MatMul_3\")\n"
        "  [\"/net/d1/d1.0/Conv\"] e = Conv(d, \"onnx::Conv_4\")\n"
        "  [\"/net/fc/Mul\"] f = Mul(e, \"onnx::Mul_5\")\n"
        "  [\"/net/seq/Mul\"] y = Mul(f, \"onnx::Mul_5\") }");
    const struct cm_originals *o = cm_originals_read(arena, graph);

    check_original(arena, o, "onnx::MatMul_1", "net.fc (module)"); /* it is more than a product */
    check_original(arena, o, "onnx::MatMul_2", "net.seq.0.weight (transposed)");
    check_original(arena, o, "onnx::MatMul_3", "net (module)");
    check_original(arena, o, "onnx::Conv_4", "net.d1.0.weight (computed)");
    check_original(arena, o, "onnx::Mul_5", "net (module)");
    check_original(arena, o, "net.fc.bias", "");
}

void test_originals__nodes_of_the_older_exporter_name_modules(void)
{
    check_in_arena(older_names);
}

/* ---- broken records ---- */

static void broken_records(struct cm_arena *arena)
{
    static const char *const texts[] = {"",
                                        "'",
                                        "p: PARAMETER target=",
                                        "p: PARAMETER target='",
                                        "p: PARAMETER target=''",
                                        ": PARAMETER target='a'",
                                        "p_a: PARAMETER target='a'\np_a: BUFFER target='a'",
                                        "p_a: PARAMETER target='val_0'\n%\n%%p_",
                                        "\n\n:\n:::",
                                        "p_a: PARAMETER target='a\n'"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct cm_str text = cm_arena_printf(
            arena,
            HEAD SIGNATURE(
                "%s") "main (float[N,2] x) => (float[N,2] y)\n"
                      "<float[2,2] val_0 = {1,2,3,4}, float[2,2] " FOLDED(
                          "val_0",
                          "%s") ">\n"
                                "{ [\"///\" <metadata_props: [\"pkg.torch.onnx.fx_node\": \"%s\",\n"
                                "      \"pkg.torch.onnx.name_scopes\": \"%s\"]>]\n"
                                "  y = MatMul(x, val_0) }",
            texts[i], texts[i], texts[i], texts[i]);
        const struct cm_originals *o = cm_originals_read(arena, graph_proto(arena, text.data));

        (void)cm_originals_texts(o, arena, CM_STR("val_0"));
        CHECK_INT(o->count, 1);
    }
    CHECK_INT(cm_originals_read(arena, NULL)->count, 0);
}

void test_originals__broken_records_say_nothing(void)
{
    check_in_arena(broken_records);
}
