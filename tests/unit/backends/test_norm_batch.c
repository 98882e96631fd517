/* BatchNormalization by the statistics of the batch and its gradient, against the reference
 * kernels, in each layout that convolutions give. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "backends/onednn/dnnl.h"

#include <math.h>

static void plain_shapes(struct cm_arena *arena)
{
    static const char *const shapes[][2] = {
        {"1,1", "1"},       {"5", "1"},        {"7,3", "3"},       {"3,5,1", "5"},
        {"2,3,5", "3"},     {"1,2,7,9", "2"},  {"3,65,4,4", "65"}, {"2,8,3,3,3", "8"},
        {"6,4,33,31", "4"}, {"2000,17", "17"}, {"1,1,70001", "1"}, {"4,70,16,17", "70"},
    };
    for (size_t i = 0; i < CM_COUNT(shapes); i++) {
        const struct cm_str forward = cm_arena_printf(
            arena,
            "g (float[%s] x, float[%s] s, float[%s] b, float[%s] m, float[%s] v) => (y, nm, nv) "
            "{ y, nm, nv = BatchNormalization<training_mode = 1, momentum = 0.7>(x, s, b, m, v) }",
            shapes[i][0], shapes[i][1], shapes[i][1], shapes[i][1], shapes[i][1]);
        const struct cm_str backward = cm_arena_printf(
            arena,
            "g (float[%s] x, float[%s] dy, float[%s] s) => (dx, ds, db) "
            "{ dx, ds, db = ai.cameo.BatchNormalizationGrad<epsilon = 0.01>(dy, x, s) }",
            shapes[i][0], shapes[i][0], shapes[i][1]);
        for (int far = 0; far < 2; far++) { /* a mean that is large beside the deviation */
            const struct kernel_case both[] = {
                {forward.data, "cpu", far ? 2e-5 : 2e-6, far ? 50 : 0, 0, false, false},
                {backward.data, "cpu", far ? 2e-5 : 2e-6, far ? 50 : 0, 0, false, false}};
            check_kernels(arena, &both[0]);
            check_kernels(arena, &both[1]);
        }
    }
}

void test_norm_batch__shapes_that_fill_no_vector(void)
{
    check_in_arena(plain_shapes);
}

static void odd_numbers(struct cm_arena *arena)
{
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < CM_COUNT(odd); i++) {
        check_kernels(
            arena,
            &(struct kernel_case){
                "g (float[2,5,3,3] x, float[5] s, float[5] b, float[5] m, float[5] v) => (y, nm, "
                "nv) { y, nm, nv = BatchNormalization<training_mode = 1>(x, s, b, m, v) }",
                "cpu", 2e-6, 0, odd[i], false, false});
        check_kernels(arena,
                      &(struct kernel_case){
                          "g (float[2,5,3,3] x, float[2,5,3,3] dy, float[5] s) => (dx, ds, db) "
                          "{ dx, ds, db = ai.cameo.BatchNormalizationGrad(dy, x, s) }",
                          "cpu", 2e-6, 0, odd[i], false, false});
    }
}

void test_norm_batch__what_is_no_number_spoils_its_channel_alone(void)
{
    check_in_arena(odd_numbers);
}

/* Between convolutions: blocks of channels, the last one filled up, or channels last. */
static void layouts(struct cm_arena *arena)
{
    static const int channels[] = {16, 24, 32, 48, 64, 20};
    if (!cm_dnnl_found().version[0])
        return;
    for (size_t i = 0; i < CM_COUNT(channels); i++) {
        const int c = channels[i];
        const struct cm_str forward = cm_arena_printf(
            arena,
            "g (float[2,16,9,7] x, float[%d,16,1,1] w, float[%d] s, float[%d] b, float[%d] m, "
            "float[%d] v, float[8,%d,3,3] u) => (z, nm, nv) { t = Conv(x, w) y, nm, nv = "
            "BatchNormalization<training_mode = 1>(t, s, b, m, v) z = Conv(y, u) }",
            c, c, c, c, c, c);
        check_kernels(arena, &(struct kernel_case){forward.data, "onednn, cpu, onednn", 1e-5, 0, 0,
                                                   true, false});
        const struct cm_str backward = cm_arena_printf(
            arena,
            "g (float[2,16,9,7] x, float[%d,16,1,1] w, float[%d] s, float[%d,16,1,1] u) => (dx, "
            "ds, db) { t = Conv(x, w) dy = Conv(x, u) "
            "dx, ds, db = ai.cameo.BatchNormalizationGrad(dy, t, s) }",
            c, c, c);
        check_kernels(arena, &(struct kernel_case){backward.data, "onednn, onednn, cpu", 1e-5, 0, 0,
                                                   true, false});
    }
}

void test_norm_batch__layouts_of_convolutions_stay(void)
{
    check_in_arena(layouts);
}

static void declined(struct cm_arena *arena)
{
    check_kernels(arena, &(struct kernel_case){
                             "g (float[2,0,3] x, float[0] s, float[0] b, float[0] m, float[0] v) "
                             "=> (y) { y = BatchNormalization<training_mode = 1>(x, s, b, m, v) }",
                             "reference", 0, 0, 0, false, false});
}

void test_norm_batch__empty_tensors_go_to_the_reference(void)
{
    check_in_arena(declined);
}
