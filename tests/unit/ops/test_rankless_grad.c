/* Gradients of models whose input says nothing of its shape: they are those of the same model with
 * the shape written down. Operator cases always tell ranks. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"
#include "graph/graph_case.h"

#include <string.h>

enum { MOST = 64, N_GRADS = 2 };

struct model {
    const char *text; /* its first input is `x`, and a %s before it is its type */
    struct cm_shape shape;
    struct cm_shape weights; /* of its second input */
};

/* The sum of the outputs, and its gradients by both inputs. */
static void run(struct cm_arena *arena, const struct model *m, const char *type,
                struct cm_datum *out)
{
    struct cm_graph *graph = graph_of(arena, cm_arena_printf(arena, m->text, type).data, NULL);
    struct cm_error err = {0};
    struct cm_datum in[2] = {{.kind = CM_KIND_TENSOR}, {.kind = CM_KIND_TENSOR}};
    float values[2][MOST];
    cm_value grads[N_GRADS];

    for (int i = 0; i < MOST; i++) {
        values[0][i] = (float)(i * 7 % 11) / 4 - 1;
        values[1][i] = (float)(i * 5 % 13) / 8 - 0.5f;
    }
    in[0].tensor = cm_tensor_borrow(CM_FLOAT, &m->shape, values[0]);
    in[1].tensor = cm_tensor_borrow(CM_FLOAT, &m->weights, values[1]);
    CHECK_OK(cm_autodiff(graph, graph->outputs[0].value, 0, graph->inputs, 2, grads, &err), &err);
    cm_graph_set_outputs(graph, grads, N_GRADS);
    CHECK_OK(cm_graph_eval(graph, INPUTS(&in[0], &in[1]), 2, out, NULL, &err), &err);
}

static void compare(struct cm_arena *arena, const struct model *m, const char *known)
{
    struct cm_datum a[N_GRADS] = {0}, b[N_GRADS] = {0};
    run(arena, m, "float[]", a);
    run(arena, m, known, b);
    for (int i = 0; i < N_GRADS; i++) {
        const struct cm_tensor *x = &a[i].tensor, *y = &b[i].tensor;
        CHECK(cm_shape_equal(&x->shape, &y->shape));
        CHECK(cm_tensor_count(x) > 0);
        for (int64_t k = 0; k < cm_tensor_count(x); k++) {
            const double off = cm_tensor_real(x, k) - cm_tensor_real(y, k);
            CHECK(off < 1e-4 && off > -1e-4);
        }
        cm_datum_drop(&a[i]);
        cm_datum_drop(&b[i]);
    }
}

#define MODEL(inputs, body)                                                                        \
    GRAPH_HEAD "main (%s x, " inputs ") => (float s) {\n" body                                     \
               "\n  z = Mul(y, y)\n  s = ReduceSum <keepdims = 0> (z)\n}"

static void matrices(struct cm_arena *arena)
{
    const char *text = MODEL("float[3,2] w", "  y = MatMul(x, w)");
    compare(arena, &(struct model){text, CM_SHAPE(2, 2, 3), CM_SHAPE(3, 2)}, "float[2,2,3]");
    compare(arena, &(struct model){text, CM_SHAPE(4, 3), CM_SHAPE(3, 2)}, "float[4,3]");
    compare(arena, &(struct model){text, CM_SHAPE(3), CM_SHAPE(3, 2)}, "float[3]");
}

void test_rankless_grad__products_with_a_matrix(void)
{
    check_in_arena(matrices);
}

static void convolutions(struct cm_arena *arena)
{
    const struct model m = {
        MODEL("float[2,1,3,3] w",
              "  c = Conv <group = 2, strides = [2,1], auto_pad = \"SAME_LOWER\"> (x, w)\n"
              "  y = AveragePool <kernel_shape = [2,2], pads = [0,1,1,0]> (c)"),
        CM_SHAPE(1, 2, 4, 5), CM_SHAPE(2, 1, 3, 3)};
    const struct model back = {
        MODEL("float[2,1,2,2] w", "  y = ConvTranspose <strides = [2,1]> (x, w)"),
        CM_SHAPE(1, 2, 3, 2), CM_SHAPE(2, 1, 2, 2)};
    compare(arena, &m, "float[1,2,4,5]");
    compare(arena, &back, "float[1,2,3,2]");
}

void test_rankless_grad__convolutions_and_pools(void)
{
    check_in_arena(convolutions);
}

static void norms(struct cm_arena *arena)
{
    const struct model batch = {MODEL("float[2] w",
                                      "  zero = Sub(w, w)\n  one = Exp(zero)\n"
                                      "  y, m, v = BatchNormalization <training_mode = 1> "
                                      "(x, w, zero, zero, one)"),
                                CM_SHAPE(3, 2, 2, 2), CM_SHAPE(2)};
    const struct model fixed = {MODEL("float[2] w",
                                      "  zero = Sub(w, w)\n  one = Exp(zero)\n"
                                      "  y = BatchNormalization (x, w, w, zero, one)"),
                                CM_SHAPE(3, 2, 2), CM_SHAPE(2)};
    const struct model layer = {
        MODEL("float[2,3] w", "  y = LayerNormalization <axis = -2> (x, w)"), CM_SHAPE(2, 2, 3),
        CM_SHAPE(2, 3)};
    const struct model groups = {
        MODEL("float[4] w", "  y = GroupNormalization <num_groups = 2> (x, w, w)"),
        CM_SHAPE(2, 4, 2, 2), CM_SHAPE(4)};
    const struct model instances = {MODEL("float[2] w", "  y = InstanceNormalization (x, w, w)"),
                                    CM_SHAPE(2, 2, 2, 3), CM_SHAPE(2)};
    compare(arena, &batch, "float[3,2,2,2]");
    compare(arena, &fixed, "float[3,2,2]");
    compare(arena, &layer, "float[2,2,3]");
    compare(arena, &groups, "float[2,4,2,2]");
    compare(arena, &instances, "float[2,2,2,3]");
}

void test_rankless_grad__normalizations(void)
{
    check_in_arena(norms);
}

static void recurrent(struct cm_arena *arena)
{
    const struct model m = {
        MODEL("float[1,8,2] w", "  r = Add(w, w)\n  y = LSTM <hidden_size = 2> (x, w, r)"),
        CM_SHAPE(3, 2, 2), CM_SHAPE(1, 8, 2)};
    compare(arena, &m, "float[3,2,2]");
}

void test_rankless_grad__a_recurrent_layer(void)
{
    check_in_arena(recurrent);
}
