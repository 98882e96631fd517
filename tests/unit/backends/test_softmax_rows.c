/* Softmax, the loss that it is part of, and their gradients, against the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include <math.h>

static void agree(struct cm_arena *arena, const char *graph, double shift, float odd)
{
    check_kernels(arena, &(struct kernel_case){graph, "cpu", 2e-6, shift, odd, false, false});
}

static const char *const shapes[] = {"1,1",  "3,2",    "2,3,16", "5,17",      "4,31",
                                     "2,64", "7,1000", "300,40", "2,3,4,129", "3,20001"};

static void softmaxes(struct cm_arena *arena)
{
    static const float odd[] = {0, NAN, INFINITY, -INFINITY, 80, -120};
    for (size_t i = 0; i < CM_COUNT(shapes); i++)
        for (size_t k = 0; k < CM_COUNT(odd); k++)
            for (int logs = 0; logs < 2; logs++) {
                const char *name = logs ? "LogSoftmax" : "Softmax", *shape = shapes[i];
                agree(arena,
                      cm_arena_printf(arena, "g (float[%s] x) => (y) { y = %s(x) }", shape, name)
                          .data,
                      0, odd[k]);
                agree(arena,
                      cm_arena_printf(
                          arena,
                          "g (float[%s] y, float[%s] dy) => (dx) { dx = ai.cameo.%sGrad(dy, y) }",
                          shape, shape, name)
                          .data,
                      0, k < 2 ? odd[k] : 0);
            }
    agree(arena, "g (float[3,50] x) => (y) { y = Softmax(x) }", 1e6, 0);
}

void test_softmax_rows__sizes_and_odd_numbers(void)
{
    check_in_arena(softmaxes);
}

static void losses(struct cm_arena *arena)
{
    static const char *const sizes[] = {"1,1", "5,3", "4,16", "130,77", "3,9000"};
    static const char *const kinds[] = {"reduction = \"mean\"", "reduction = \"sum\"",
                                        "reduction = \"none\"",
                                        "reduction = \"mean\", ignore_index = 0"};
    for (size_t i = 0; i < CM_COUNT(sizes); i++)
        for (size_t k = 0; k < CM_COUNT(kinds); k++)
            for (int weights = 0; weights < 2; weights++) {
                const char *s = sizes[i], *classes = strchr(s, ',') + 1;
                const char *weight = weights ? ", w" : "";
                agree(arena,
                      cm_arena_printf(arena,
                                      "g (float[%s] x, float[%s] z, float[%s] v) => (loss, p) "
                                      "{ w = Abs(v) l = ArgMax<axis = 1, keepdims = 0>(z) loss, p "
                                      "= SoftmaxCrossEntropyLoss<%s>(x, l%s) }",
                                      s, s, classes, kinds[k], weight)
                          .data,
                      0, 0);
                agree(arena,
                      cm_arena_printf(
                          arena,
                          "g (float[%s] p, float[%s] z, float[%s] v, float[%.*s] d) => (dx) "
                          "{ w = Abs(v) l = ArgMax<axis = 1, keepdims = 0>(z) dx = "
                          "ai.cameo.SoftmaxCrossEntropyLossGrad<%s>(d, p, l%s) }",
                          s, s, classes, k == 2 ? (int)strcspn(s, ",") : 1, k == 2 ? s : "1",
                          kinds[k], weight)
                          .data,
                      -2, 0);
            }
}

static void losses_of_images(struct cm_arena *arena)
{
    agree(arena,
          "g (float[2,21,9,7] x, float[2,21,9,7] z) => (loss, p) { l = ArgMax<axis = 1, keepdims = "
          "0>(z) loss, p = SoftmaxCrossEntropyLoss<ignore_index = 3>(x, l) }",
          0, 0);
    agree(arena,
          "g (float[40,5,70] x, float[40,5,70] z) => (loss) { l = ArgMax<axis = 1, keepdims = "
          "0>(z) loss = SoftmaxCrossEntropyLoss<reduction = \"none\">(x, l) }",
          0, 0);
    agree(arena,
          "g (float[40,5,70] p, float[40,5,70] z, float[1] d) => (dx) { l = ArgMax<axis = 1, "
          "keepdims = 0>(z) dx = ai.cameo.SoftmaxCrossEntropyLossGrad<ignore_index = 3>(d, p, l) }",
          -2, 0);
    check_kernels(
        arena,
        &(struct kernel_case){
            .graph = "g (float[40,500,7] x, float[40,500,7] z, float[1] d, float[500] v) => (dx) "
                     "{ l = ArgMax<axis = 1, keepdims = 0>(z) p = Cast<to = 11>(x) "
                     "e = Cast<to = 11>(d) w = Cast<to = 11>(v) dx = "
                     "ai.cameo.SoftmaxCrossEntropyLossGrad<ignore_index = 3>(e, p, l, w) }",
            .kernels = "cpu"});
}

void test_softmax_rows__losses_of_images(void)
{
    check_in_arena(losses_of_images);
}

void test_softmax_rows__losses(void)
{
    check_in_arena(losses);
}

static void declined(struct cm_arena *arena)
{
    static const char *const graphs[] = {"g (float[0,4] x) => (y) { y = LogSoftmax(x) }",
                                         "g (float x) => (y) { y = Softmax(x) }"};
    for (size_t i = 0; i < CM_COUNT(graphs); i++)
        check_kernels(arena, &(struct kernel_case){graphs[i], "reference", 0, 0, 0, false, false});
}

void test_softmax_rows__nothing_to_do_goes_to_the_reference(void)
{
    check_in_arena(declined);
}

static void other_axes(struct cm_arena *arena)
{
    static const char *const graphs[] = {
        "g (float[3,4,5] x) => (y) { y = Softmax<axis = 1>(x) }",
        "g (float[3,4,5] x) => (y) { y = LogSoftmax<axis = 0>(x) }",
        "g (float[2,7,70] x) => (y) { y = Softmax<axis = 1>(x) }",
        "g (float[1,1,33] x) => (y) { y = LogSoftmax<axis = 1>(x) }",
        "g (float[65,3] x) => (y) { y = Softmax<axis = 0>(x) }",
        "g (float[2,5,64] x) => (y) { y = Softmax<axis = 1>(x) }",
        "g (float[2,70,151] x) => (y) { y = LogSoftmax<axis = 1>(x) }",
        "g (float[1,16] x) => (y) { y = Softmax<axis = 0>(x) }"};
    static const float odd[] = {3, NAN, INFINITY, -INFINITY, -120};
    for (size_t i = 0; i < CM_COUNT(graphs); i++)
        for (size_t k = 0; k < CM_COUNT(odd); k++)
            check_kernels(arena,
                          &(struct kernel_case){graphs[i], "cpu", 2e-6, -3, odd[k], false, false});
}

void test_softmax_rows__other_axes(void)
{
    check_in_arena(other_axes);
}

/* Doubles and narrow floats, which are computed line by line. */
static void other_types(struct cm_arena *arena)
{
    static const struct {
        int type;
        double tolerance;
    } types[] = {{11, 1e-14}, {10, 2e-3}, {16, 2e-2}};
    for (size_t i = 0; i < CM_COUNT(types); i++)
        for (int axis = 0; axis < 2; axis++)
            for (int logs = 0; logs < 2; logs++) {
                const char *const name = logs ? "LogSoftmax" : "Softmax";
                const char *const forward =
                    cm_arena_printf(arena,
                                    "g (float[37,300] x) => (y) { t = Cast<to = %d>(x) y = "
                                    "%s<axis = %d>(t) }",
                                    types[i].type, name, axis)
                        .data;
                const char *const backward =
                    cm_arena_printf(arena,
                                    "g (float[37,300] y, float[37,300] dy) => (dx) { t = Cast<to = "
                                    "%d>(y) dt = Cast<to = %d>(dy) dx = ai.cameo.%sGrad<axis = "
                                    "%d>(dt, t) }",
                                    types[i].type, types[i].type, name, axis)
                        .data;
                const double tolerance = types[i].tolerance;
                check_kernels(arena,
                              &(struct kernel_case){forward, "cpu", tolerance, 0, 9, false, false});
                check_kernels(
                    arena, &(struct kernel_case){backward, "cpu", tolerance, 0, 0, false, false});
            }
}

void test_softmax_rows__lines_of_other_types(void)
{
    check_in_arena(other_types);
}
