/* MatMulNBits and MatMulBnb4 by the kernel that reads codes as they are, against the reference
 * kernel. */
// SPDX-License-Identifier: Apache-2.0
#include "int8_case.h"

#include <math.h>

enum { NO_ZEROS, CODED_ZEROS, REAL_ZEROS };

struct nbits_form {
    int64_t m, n, k;
    int bits, block, zeros, level;
    bool bias, groups;
};

/* Blocks in no order, some of them more than once. */
static struct cm_datum *groups_of(struct cm_arena *arena, int64_t k, int64_t blocks)
{
    struct cm_datum *datum = bytes_of(arena, CM_INT32, &CM_SHAPE(k), 6);
    for (int64_t i = 0; i < k; i++)
        ((int32_t *)datum->tensor.data)[i] = (int32_t)(i / 3 * 5 % blocks);
    return datum;
}

static void close_to(struct cm_arena *arena, const char *text, const struct cm_datum *const *in,
                     size_t n_in, const char *kernel)
{
    struct cm_datum slow = {0};
    run(arena, text, "reference", in, n_in, "reference", &slow);
    for (int machine = CM_PLAIN; machine < CM_MACHINES; machine++) {
        struct cm_datum fast = {0}, alone = {0};
        double most = 0;
        cm_machine_limit((enum cm_machine)machine);
        run(arena, text, NULL, in, n_in, kernel, &fast);
        run_threads(arena, text, 1, NULL, in, n_in, kernel, &alone);
        cm_machine_limit(CM_MACHINES - 1);
        CHECK(exec_same(&fast, &alone));
        CHECK(cm_shape_equal(&fast.tensor.shape, &slow.tensor.shape));
        for (int64_t i = 0; i < cm_tensor_count(&slow.tensor); i++)
            most = fmax(most, fabs(cm_tensor_real(&slow.tensor, i)));
        for (int64_t i = 0; i < cm_tensor_count(&slow.tensor); i++) {
            const double a = cm_tensor_real(&fast.tensor, i), b = cm_tensor_real(&slow.tensor, i);
            if (!(fabs(a - b) <= 2e-6 * most))
                fail_msg("machine %d, element %lld: %.9g, expected %.9g in %s", machine,
                         (long long)i, a, b, text);
        }
        cm_datum_drop(&fast);
        cm_datum_drop(&alone);
    }
    cm_datum_drop(&slow);
}

static void try_form(struct cm_arena *arena, const struct nbits_form *f, const char *kernel)
{
    const int64_t blocks = (f->k + f->block - 1) / f->block, bytes = f->block * f->bits / 8;
    const int64_t zero_bytes = (blocks * f->bits + 7) / 8;
    const struct cm_str text = cm_arena_printf(
        arena,
        "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> "
        "main (float[M,K] a, uint8[N,B,L] b, float[S] s%s%s%s) => (float[M,N] y) {y = "
        "com.microsoft.MatMulNBits<N = %d, K = %d, bits = %d, block_size = %d, accuracy_level = %d>"
        "(a, b, s%s%s%s)}",
        f->zeros == CODED_ZEROS  ? ", uint8[Z] z"
        : f->zeros == REAL_ZEROS ? ", float[Z] z"
                                 : "",
        f->groups ? ", int32[K] g" : "", f->bias ? ", float[N] c" : "", (int)f->n, (int)f->k,
        f->bits, f->block, f->level, f->zeros ? ", z" : ", \"\"", f->groups ? ", g" : ", \"\"",
        f->bias ? ", c" : "");
    const struct cm_datum *in[6] = {bytes_of(arena, CM_FLOAT, &CM_SHAPE(f->m, f->k), 1),
                                    bytes_of(arena, CM_UINT8, &CM_SHAPE(f->n, blocks, bytes), 2),
                                    bytes_of(arena, CM_FLOAT, &CM_SHAPE(f->n * blocks), 3)};
    size_t count = 3;
    if (f->zeros)
        in[count++] = f->zeros == CODED_ZEROS
                          ? bytes_of(arena, CM_UINT8, &CM_SHAPE(f->n * zero_bytes), 4)
                          : bytes_of(arena, CM_FLOAT, &CM_SHAPE(f->n * blocks), 4);
    if (f->groups)
        in[count++] = groups_of(arena, f->k, blocks);
    if (f->bias)
        in[count++] = bytes_of(arena, CM_FLOAT, &CM_SHAPE(f->n), 5);
    close_to(arena, text.data, in, count, kernel);
}

static void forms(struct cm_arena *arena)
{
    static const int64_t sizes[][3] = {{1, 1, 32},  {1, 37, 96}, {3, 20, 70},  {7, 16, 64},
                                       {8, 16, 64}, {9, 33, 40}, {21, 50, 130}};
    for (size_t i = 0; i < CM_COUNT(sizes); i++)
        for (int bits = 4; bits <= 8; bits += 4)
            for (int zeros = NO_ZEROS; zeros <= REAL_ZEROS; zeros++)
                for (int block = 32; block <= 64; block += 32)
                    for (int level = 0; level <= 4; level += 4)
                        try_form(arena,
                                 &(struct nbits_form){sizes[i][0], sizes[i][1], sizes[i][2], bits,
                                                      block, zeros, level, zeros != CODED_ZEROS,
                                                      false},
                                 "cpu");
}

void test_nbits_product__bits_blocks_and_zero_points(void)
{
    check_in_arena(forms);
}

/* Forms whose rows become floats: two bits, blocks of any size, groups. */
static void forms_by_rows(struct cm_arena *arena)
{
    static const int64_t sizes[][3] = {{1, 1, 32}, {7, 37, 70}, {8, 16, 64}, {21, 50, 130}};
    for (size_t i = 0; i < CM_COUNT(sizes); i++)
        for (int bits = 2; bits <= 8; bits *= 2)
            for (int zeros = NO_ZEROS; zeros <= REAL_ZEROS; zeros++)
                for (int block = 8; block <= 32; block *= 2)
                    try_form(arena,
                             &(struct nbits_form){sizes[i][0], sizes[i][1], sizes[i][2], bits,
                                                  block, zeros, zeros == NO_ZEROS ? 4 : 0,
                                                  zeros != CODED_ZEROS, block == 32},
                             "cpu");
    try_form(arena, &(struct nbits_form){3, 20, 70, 2, 32, CODED_ZEROS, 4, true, false}, "cpu");
}

void test_nbits_product__any_bits_any_blocks_and_groups(void)
{
    check_in_arena(forms_by_rows);
}

/* Blocks go over the ends of rows, and rows begin within bytes. */
static void try_bnb4(struct cm_arena *arena, int64_t m, int64_t n, int64_t k, int block)
{
    for (int transposed = 0; transposed <= 1; transposed++)
        for (int type = 0; type <= 1; type++) {
            const struct cm_str text = cm_arena_printf(
                arena,
                "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> "
                "main (float[M,L] a, uint8[B] b, float[S] s) => (float[M,R] y) {y = "
                "com.microsoft.MatMulBnb4<N = %d, K = %d, block_size = %d, quant_type = %d, "
                "transB = %d>(a, b, s)}",
                (int)n, (int)k, block, type, transposed);
            const struct cm_datum *in[] = {
                bytes_of(arena, CM_FLOAT, &CM_SHAPE(m, transposed ? k : n), 1),
                bytes_of(arena, CM_UINT8, &CM_SHAPE((n * k + 1) / 2), 2),
                bytes_of(arena, CM_FLOAT, &CM_SHAPE((n * k + block - 1) / block), 3)};
            close_to(arena, text.data, in, CM_COUNT(in), "cpu");
        }
}

static void bnb4_forms(struct cm_arena *arena)
{
    static const int64_t sizes[][3] = {{1, 5, 64}, {3, 37, 33}, {8, 20, 70}, {21, 50, 131}};
    for (size_t i = 0; i < CM_COUNT(sizes); i++)
        for (int block = 16; block <= 64; block *= 4)
            try_bnb4(arena, sizes[i][0], sizes[i][1], sizes[i][2], block);
}

void test_nbits_product__numbers_of_bnb4(void)
{
    check_in_arena(bnb4_forms);
}
