/* What ONNX Runtime adds to ai.onnx becomes standard operators; the numbers are ONNX Runtime's. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"

#include "onnx/syntax.h"
#include "versions/upgrade.h"

static enum cm_status try_adopt(struct cm_arena *arena, const char *text, struct cm_graph **out,
                                struct cm_error *err)
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node,
                                              .adopts = cm_upgrade_adopts};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, err), err);
    return cm_module_import(cm_module_new(arena, NULL), model, &options, out, err);
}

static struct cm_graph *adopted(struct cm_arena *arena, const char *text)
{
    struct cm_graph *graph = NULL;
    struct cm_error err = {0};
    CHECK_OK(try_adopt(arena, text, &graph, &err), &err);
    return graph;
}

#define HEAD "<ir_version: 7, opset_import: [\"\" : 12]>\n"
#define WEIGHTS                                                                                    \
    "  s = Constant <value = float[3] {1.0, 2.0, -0.5}> ()\n"                                      \
    "  b = Constant <value = float[3] {0.0, 1.0, 0.25}> ()\n"

static void rms_norm(struct cm_arena *arena)
{
    struct cm_graph *graph =
        adopted(arena, HEAD "main (float[3] x) => (float[3] y) {\n" WEIGHTS
                            "  y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.5> (x, s)\n"
                            "}");
    CHECK_STR(graph->last->op_type, "RMSNormalization");
    CHECK(cm_node_is_current(graph->last) && !cm_node_has_origin(graph->last));
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 0.5f, -1, 2)), 0.33333334f, -1.3333334f,
                -0.6666667f);
}

void test_upgrade_runtime__simplified_layer_normalization_is_rms_normalization(void)
{
    check_in_arena(rms_norm);
}

static void rms_statistic(struct cm_arena *arena)
{
    struct cm_graph *graph =
        adopted(arena, HEAD "main (float[3] x) => (float[1] i) {\n" WEIGHTS
                            "  y, i = SimplifiedLayerNormalization <epsilon = 0.5> (x, s)\n"
                            "}");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 0.5f, -1, 2)), 0.6666667f);
}

void test_upgrade_runtime__simplified_layer_normalization_gives_what_it_multiplied_by(void)
{
    check_in_arena(rms_statistic);
}

static void layer_norm(struct cm_arena *arena)
{
    struct cm_graph *graph =
        adopted(arena, HEAD "main (float[3] x) => (float[3] y) {\n" WEIGHTS
                            "  y = LayerNormalization <epsilon = 2.0, stash_type = 1> (x, s, b)\n"
                            "}");
    CHECK_STR(graph->last->op_type, "LayerNormalization");
    CHECK_INT(graph->last->schema->since_version, 17);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 0, 0, 3)), -0.5f, 0, -0.25f);
}

void test_upgrade_runtime__layer_normalization_is_known_before_opset_17(void)
{
    check_in_arena(layer_norm);
}

static void mixed_types(struct cm_arena *arena)
{
    struct cm_graph *graph = adopted(
        arena, HEAD "main (float[3] x) => (float[3] y) {\n" WEIGHTS "  h = Cast <to = 10> (x)\n"
                    "  y = LayerNormalization <epsilon = 2.0> (h, s, b)\n"
                    "}");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 0, 0, 3)), -0.5f, 0, -0.25f);
    graph = adopted(arena, HEAD "main (float[3] x) => (float16[3] y) {\n" WEIGHTS
                                "  h = Cast <to = 10> (s)\n"
                                "  y = LayerNormalization <epsilon = 2.0> (x, h)\n"
                                "}");
    const struct cm_type *type = cm_value_get(graph->module, graph->outputs[0].value)->fact.type;
    CHECK_INT(type->dtype, CM_FLOAT16);
}

void test_upgrade_runtime__the_result_has_the_type_of_the_scale(void)
{
    check_in_arena(mixed_types);
}

static void experiments(struct cm_arena *arena)
{
    static const struct {
        const char *node;
        float y[4]; /* of -1, 0, 0.5, 2 */
    } rows[] = {
        {"Affine <alpha = 2.0, beta = 0.5> (x)", {-1.5f, 0.5f, 1.5f, 4.5f}},
        {"Affine (x)", {-1, 0, 0.5f, 2}},
        {"Scale <scale = 2.0> (x)", {-2, 0, 1, 4}},
        {"ImageScaler <scale = 2.0, bias = [1.0]> (x)", {-1, 1, 2, 5}},
        {"ScaledTanh <alpha = 2.0, beta = 0.0> (x)", {0, 0, 0, 0}},
        {"ThresholdedRelu <alpha = 0.5> (x)", {0, 0, 0, 2}},
        {"Crop <border = [0, 0, 0, 0], scale = [2, 2]> (x)", {-1, 0, 0.5f, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct cm_str text =
            cm_arena_printf(arena,
                            "<ir_version: 3, opset_import: [\"\" : 8]>\n"
                            "main (float[4] f) => (float[4] y) {\n"
                            "  s = Constant <value = int64[4] {1, 1, 2, 2}> ()\n"
                            "  l = Constant <value = int64[1] {4}> ()\n"
                            "  x = Reshape (f, s) r = %s y = Reshape (r, l) }",
                            rows[i].node);
        struct cm_graph *graph = adopted(arena, text.data);
        graph_check(arena, graph, INPUTS(FLOATS(arena, -1, 0, 0.5f, 2)), NULL, rows[i].y, 4);
    }
}

void test_upgrade_runtime__experiments_of_the_first_opsets_are_known(void)
{
    check_in_arena(experiments);
}

static void cropped(struct cm_arena *arena)
{
    struct cm_graph *graph =
        adopted(arena, "<ir_version: 3, opset_import: [\"\" : 8]>\n"
                       "main (float[12] f) => (float[2] y) {\n"
                       "  s = Constant <value = int64[4] {1, 1, 3, 4}> ()\n"
                       "  l = Constant <value = int64[1] {2}> ()\n"
                       "  x = Reshape (f, s) c = Crop <border = [1, 0, 2, 1]> (x)\n"
                       "  y = Reshape (c, l) }");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)), 1, 5);
    graph = adopted(arena, "<ir_version: 3, opset_import: [\"\" : 8]>\n"
                           "main (float[4] x) => (float[2] y) {\n"
                           "  a = Constant <value = int64[1] {1}> ()\n"
                           "  b = Constant <value = int64[1] {-1}> ()\n"
                           "  y = DynamicSlice (x, a, b) }");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 0, 1, 2, 3)), 1, 2);
}

void test_upgrade_runtime__borders_are_cut_off(void)
{
    check_in_arena(cropped);
}

static void own_function(struct cm_arena *arena)
{
    struct cm_graph *graph = adopted(
        arena, "<ir_version: 10, opset_import: [\"\" : 17, \"local\" : 1]>\n"
               "main (float[2] x) => (float[2] y) { y = SimplifiedLayerNormalization (x, x) }\n"
               "<domain: \"\", opset_import: [\"\" : 17]>\n"
               "SimplifiedLayerNormalization (a, b) => (c) { c = Add (a, b) }\n");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2)), 2, 4);
}

void test_upgrade_runtime__a_function_of_the_model_comes_first(void)
{
    check_in_arena(own_function);
}

static void refusals(struct cm_arena *arena)
{
    static const struct {
        enum cm_status status;
        const char *text, *part;
    } cases[] = {
        {CM_BAD_MODEL,
         HEAD "main (float[3] x) => (float[3] y) { y = SimplifiedLayerNormalization (x) }",
         "input 1 must be a tensor"},
        {CM_BAD_MODEL,
         HEAD "main (float[3] x) => (float[3] y) {\n" WEIGHTS
              "  y, i, j = SimplifiedLayerNormalization (x, s) }",
         "has 3 outputs, can have 2"},
        {CM_UNSUPPORTED,
         HEAD "main (float[3] x) => (float[3] y) {\n" WEIGHTS
              "  y, i = SimplifiedLayerNormalization <axis = 4> (x, s) }",
         "axis"},
        {CM_BAD_MODEL,
         HEAD "main (float[3] x) => (float[3] y) {\n" WEIGHTS
              "  y = LayerNormalization <power = 2> (x, s) }",
         "power"},
        {CM_BAD_MODEL, HEAD "main (float[1,1,2,2] x) => (float[1] y) { y = ImageScaler (x) }",
         "attribute 'bias' is required"},
        {CM_BAD_MODEL,
         HEAD "main (float[1,1,2,2] x) => (float[1] y) { y = Crop <border = [1, 2]> (x) }",
         "attribute 'border' has 2 numbers, needs 4"},
        {CM_BAD_MODEL,
         HEAD "main (float[1,1,2,2] x) => (float[1] y) { y = Crop <border = [1, 2, 3, -4]> (x) }",
         "not a valid size"},
        {CM_BAD_MODEL, HEAD "main (float[2] x) => (float[2] y) { y, z = Affine (x) }",
         "has 2 outputs, must have 1"},
        {CM_UNSUPPORTED, HEAD "main (float[3] x) => (float[3] y) { y = RMSNormalization (x, x) }",
         "does not have this operator; a later opset does"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cm_graph *graph;
        struct cm_error err = {0};
        CHECK_FAILS(try_adopt(arena, cases[i].text, &graph, &err), cases[i].status, &err,
                    cases[i].part);
    }
}

void test_upgrade_runtime__what_does_not_fit_is_refused(void)
{
    check_in_arena(refusals);
}
