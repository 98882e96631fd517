/* Transposes between convolutions with channels last and what has them last by its shape, against
 * the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "backends/onednn/dnnl.h"

static const char *graph, *kernels;

static void agree_in(struct cm_arena *arena)
{
    check_kernels(arena,
                  &(struct kernel_case){
                      .graph = graph, .kernels = kernels, .tolerance = 1e-5, .any_bits = true});
}

static void agree(const char *text, const char *steps)
{
    graph = text;
    kernels = steps;
    if (cm_dnnl_found().version[0])
        check_in_arena(agree_in);
}

void test_transpose_layouts__channels_go_to_the_end(void)
{
    agree("g (float[2,3,9,8] x, float[24,3,3,3] w) => (y)"
          " { c = Conv(x, w) y = Transpose<perm = [0,2,3,1]>(c) }",
          "onednn, cpu");
    agree("g (float[2,3,90] x, float[24,3,3] w) => (y)"
          " { c = Conv(x, w) y = Transpose<perm = [0,2,1]>(c) }",
          "onednn, cpu");
    agree("g (float[2,3,9,8] x, float[24,3,3,3] w) => (y)"
          " { c = Conv(x, w) y = Transpose<perm = [0,3,2,1]>(c) }",
          "reference");
}

void test_transpose_layouts__channels_come_from_the_end(void)
{
    agree("g (float[2,9,8,16] x, float[24,16,3,3] w) => (y)"
          " { t = Transpose<perm = [0,3,1,2]>(x) y = Conv(t, w) }",
          "cpu, onednn");
    agree("g (float[2,9,8,16] x, float[24,16,3,3] w) => (y, t)"
          " { t = Transpose<perm = [0,3,1,2]>(x) y = Conv(t, w) }",
          "reference, onednn");
    agree("g (float[2,9,8,16] x, float[24,16,3,3] w) => (y, z)"
          " { t = Transpose<perm = [0,3,1,2]>(x) z = Relu(t) y = Conv(t, w) }",
          "reference, reference, onednn");
}
