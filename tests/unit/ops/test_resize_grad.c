/* The gradient of Resize where the aspect ratio is kept and sizes are constants: so are its
 * matrices. Operator cases cannot say that, their operands are inputs. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"
#include "graph/graph_case.h"

enum { ROWS = 4, COLUMNS = 2, COUNT = ROWS * COLUMNS };

/* x resized, weighted and summed. */
#define MODEL(attributes, out)                                                                     \
    GRAPH_HEAD "main (float[4,2] x) => (float s)\n"                                                \
               "<int64[2] sizes = {5, 5}> {\n"                                                     \
               "  y = Resize <" attributes "> (x, , , sizes)\n"                                    \
               "  w = RandomUniform <shape = " out ", seed = 1.0> ()\n"                            \
               "  z = Mul(y, w)\n"                                                                 \
               "  s = ReduceSum <keepdims = 0> (z)\n"                                              \
               "}"

/* Resize is linear, so its derivative by element k is what it makes of a tensor with a 1 there. */
static void compare(struct cm_arena *arena, const char *text)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_error err = {0};
    struct cm_datum x = {.kind = CM_KIND_TENSOR}, out[2] = {0};
    float values[COUNT];
    cm_value outputs[2] = {graph->outputs[0].value, 0};

    CHECK_OK(cm_autodiff(graph, outputs[0], 0, graph->inputs, 1, &outputs[1], &err), &err);
    cm_graph_set_outputs(graph, outputs, 2);
    x.tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(ROWS, COLUMNS), values);
    for (int k = 0; k < COUNT; k++) {
        memset(values, 0, sizeof values);
        values[k] = 1;
        CHECK_OK(cm_graph_eval(graph, INPUTS(&x), 1, out, NULL, &err), &err);
        CHECK_INT(cm_tensor_count(&out[1].tensor), COUNT);
        const double change = cm_tensor_real(&out[0].tensor, 0);
        const double slope = cm_tensor_real(&out[1].tensor, k);
        CHECK(change - slope < 1e-5 && slope - change < 1e-5);
        cm_datum_drop(&out[0]);
        cm_datum_drop(&out[1]);
    }
}

static void linear(struct cm_arena *arena)
{
    compare(arena, MODEL("mode = \"linear\", keep_aspect_ratio_policy = \"not_larger\"", "[5,3]"));
}

void test_resize_grad__keeping_the_aspect_ratio_within_sizes(void)
{
    check_in_arena(linear);
}

static void nearest(struct cm_arena *arena)
{
    compare(arena,
            MODEL("mode = \"nearest\", keep_aspect_ratio_policy = \"not_smaller\"", "[10,5]"));
}

void test_resize_grad__keeping_the_aspect_ratio_around_sizes(void)
{
    check_in_arena(nearest);
}
