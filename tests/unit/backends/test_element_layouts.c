/* Elementwise regions and single operators over tensors that convolutions leave with channels last,
 * or in blocks of them, and operands that repeat by batch, channel or place: against the reference
 * kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "backends/onednn/dnnl.h"

enum { BY_BATCH = 1, BY_CHANNEL = 2, BY_PLACE = 4, SHORT = 8 /* without the first axis */ };

static int repeats;
static const char *nodes;

static void agree(struct cm_arena *arena)
{
    static const int channels[] = {16, 24, 7, 300};
    for (size_t i = 0; i < CM_COUNT(channels); i++)
        for (int batch = 1; batch <= 2; batch++) {
            const int c = channels[i];
            const struct cm_str first =
                cm_arena_printf(arena, "%d,", repeats & BY_BATCH ? batch : 1);
            const struct cm_str graph = cm_arena_printf(
                arena,
                "g (float[%d,3,9,8] x, float[%d,3,3,3] w, float[%s%d,%s] s, float[%d,%d,9,8] r)"
                " => (y) { c = Conv<pads = [1,1,1,1]>(x, w) m = MaxPool<kernel_shape = [1,1]>(c)"
                " %s }",
                batch, c, repeats & SHORT ? "" : first.data, repeats & BY_CHANNEL ? c : 1,
                repeats & BY_PLACE ? "9,8" : "1,1", batch, c, nodes);
            check_kernels(arena, &(struct kernel_case){.graph = graph.data,
                                                       .kernels = "cpu",
                                                       .tolerance = 1e-5,
                                                       .any_bits = true,
                                                       .passes = true});
        }
}

static void check_operand(int how)
{
    static const char *const all[] = {
        "k = Mul(m, s) t = Add(k, s) y = Relu(t)",
        "k = Sub(s, m) t = Mul(k, k) y = Add(t, r)",
        "t = Sigmoid(s) k = Mul(m, t) q = Add(k, m) y = Tanh(q)",
    };
    if (!cm_dnnl_found().version[0])
        return;
    repeats = how;
    for (size_t i = 0; i < CM_COUNT(all); i++) {
        nodes = all[i];
        check_in_arena(agree);
    }
}

void test_element_layouts__operands_by_channel(void)
{
    check_operand(BY_CHANNEL);
    check_operand(BY_CHANNEL | SHORT);
}

/* One node is no region. */
void test_element_layouts__arithmetic_by_channel(void)
{
    static const char *const single[] = {"y = Mul(m, s)", "y = Add(s, m)", "y = Sub(s, m)",
                                         "y = Div(m, s)"};
    if (!cm_dnnl_found().version[0])
        return;
    for (int how = 0; how < 2; how++)
        for (size_t i = 0; i < CM_COUNT(single); i++) {
            repeats = BY_CHANNEL | (how ? BY_BATCH : SHORT);
            nodes = single[i];
            check_in_arena(agree);
        }
}

void test_element_layouts__operands_by_image_and_channel(void)
{
    check_operand(BY_BATCH | BY_CHANNEL);
    check_operand(BY_BATCH);
}

void test_element_layouts__operands_by_place(void)
{
    check_operand(BY_PLACE | SHORT);
    check_operand(BY_PLACE | BY_BATCH);
}
