/* Products of codes by the packed product, against the reference kernel: the same bits, whatever
 * the processor has. */
// SPDX-License-Identifier: Apache-2.0
#include "int8_case.h"

static const struct {
    const char *name;
    enum cm_dtype type;
} kinds[] = {{"uint8", CM_UINT8}, {"int8", CM_INT8}};

static const int64_t sizes[][3] = {{1, 1, 1},   {2, 3, 4},     {3, 16, 5},   {8, 32, 8},
                                   {9, 33, 31}, {70, 130, 65}, {1, 200, 70}, {33, 17, 300}};

/* Every pair of types, with zero points and without, and one for each column. */
static void sums(struct cm_arena *arena)
{
    for (size_t s = 0; s < CM_COUNT(sizes); s++)
        for (int pair = 0; pair < 4; pair++)
            for (int zeros = 0; zeros < 3; zeros++) {
                const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                const struct cm_str text = cm_arena_printf(
                    arena,
                    GRAPH_HEAD "main (%s[M,K] a, %s[K,N] b%s%s%s%s) => (int32[M,N] y) "
                               "{y = MatMulInteger(a, b%s)}",
                    kinds[pair & 1].name, kinds[pair >> 1].name, zeros ? ", " : "",
                    zeros ? kinds[pair & 1].name : "", zeros ? " az, " : "",
                    zeros > 1 ? pair >> 1 ? "int8[N] bz" : "uint8[N] bz"
                    : zeros   ? pair >> 1 ? "int8 bz" : "uint8 bz"
                              : "",
                    zeros ? ", az, bz" : "");
                const enum cm_dtype left = kinds[pair & 1].type, right = kinds[pair >> 1].type;
                const struct cm_datum *in[] = {
                    bytes(arena, left, &CM_SHAPE(m, k), 1), bytes(arena, right, &CM_SHAPE(k, n), 2),
                    bytes(arena, left, &(struct cm_shape){0}, 3),
                    bytes(arena, right, zeros > 1 ? &CM_SHAPE(n) : &(struct cm_shape){0}, 4)};
                agree(arena, text.data, in, zeros ? 4 : 2, "cpu");
            }
}

void test_int8_product__sums_of_every_pair_of_types(void)
{
    check_in_arena(sums);
}

static void results(struct cm_arena *arena)
{
    for (size_t s = 0; s < CM_COUNT(sizes); s++)
        for (int pair = 0; pair < 4; pair++) {
            const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            const char *const left = kinds[pair & 1].name, *const right = kinds[pair >> 1].name;
            const enum cm_dtype a = kinds[pair & 1].type, b = kinds[pair >> 1].type;
            const struct cm_shape one = {0};
            const struct cm_datum *const in[] = {bytes(arena, a, &CM_SHAPE(m, k), 1),
                                                 bytes(arena, CM_FLOAT, &one, 2),
                                                 bytes(arena, a, &one, 3),
                                                 bytes(arena, b, &CM_SHAPE(k, n), 4),
                                                 bytes(arena, CM_FLOAT, &CM_SHAPE(n), 5),
                                                 bytes(arena, b, &CM_SHAPE(n), 6),
                                                 bytes(arena, CM_FLOAT, &one, 7),
                                                 bytes(arena, a, &one, 8)};
            agree(arena,
                  cm_arena_printf(arena,
                                  GRAPH_HEAD
                                  "main (%s[M,K] a, float as, %s az, %s[K,N] b, float[N] bs, "
                                  "%s[N] bz, float ys, %s yz) => (%s[M,N] y) "
                                  "{y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz)}",
                                  left, left, right, right, left, left)
                      .data,
                  in, CM_COUNT(in), "cpu");
            const struct cm_datum *const reals[] = {in[0], in[3], in[1], in[4],
                                                    in[2], in[5], in[4]};
            agree(arena,
                  cm_arena_printf(
                      arena,
                      "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> "
                      "main (%s[M,K] a, %s[K,N] b, float as, float[N] bs, %s az, "
                      "%s[N] bz, float[N] bias) => (float[M,N] y) {y = "
                      "com.microsoft.MatMulIntegerToFloat(a, b, as, bs, az, bz, bias)}",
                      left, right, left, right)
                      .data,
                  reals, CM_COUNT(reals), "cpu");
        }
}

void test_int8_product__codes_and_numbers_of_sums(void)
{
    check_in_arena(results);
}

static void batches(struct cm_arena *arena)
{
    const struct cm_datum *const in[] = {bytes(arena, CM_UINT8, &CM_SHAPE(2, 3, 9, 20), 1),
                                         bytes(arena, CM_INT8, &CM_SHAPE(2, 3, 20, 35), 2)};
    agree(arena,
          GRAPH_HEAD "main (uint8[2,3,M,K] a, int8[2,3,K,N] b) => (int32[2,3,M,N] y) "
                     "{y = MatMulInteger(a, b)}",
          in, 2, "cpu");
    const struct cm_datum *const shared[] = {in[0], bytes(arena, CM_INT8, &CM_SHAPE(20, 35), 2)};
    agree(arena,
          GRAPH_HEAD "main (uint8[2,3,M,K] a, int8[K,N] b) => (int32[2,3,M,N] y) "
                     "{y = MatMulInteger(a, b)}",
          shared, 2, "cpu");
    const struct cm_datum *const spread[] = {bytes(arena, CM_UINT8, &CM_SHAPE(1, 3, 9, 20), 1),
                                             in[1]};
    agree(arena,
          GRAPH_HEAD "main (uint8[1,3,M,K] a, int8[2,3,K,N] b) => (int32[2,3,M,N] y) "
                     "{y = MatMulInteger(a, b)}",
          spread, 2, "reference");
}

void test_int8_product__batches(void)
{
    check_in_arena(batches);
}

static void declined(struct cm_arena *arena)
{
    const struct cm_datum *const rows[] = {bytes(arena, CM_UINT8, &CM_SHAPE(3, 4), 1),
                                           bytes(arena, CM_UINT8, &CM_SHAPE(4, 5), 2),
                                           bytes(arena, CM_UINT8, &CM_SHAPE(3), 3)};
    agree(arena,
          GRAPH_HEAD "main (uint8[M,K] a, uint8[K,N] b, uint8[M] az) => (int32[M,N] y) "
                     "{y = MatMulInteger(a, b, az)}",
          rows, 3, "reference");
    const struct cm_datum *const empty[] = {bytes(arena, CM_UINT8, &CM_SHAPE(3, 0), 1),
                                            bytes(arena, CM_UINT8, &CM_SHAPE(0, 5), 2)};
    agree(arena,
          GRAPH_HEAD "main (uint8[M,K] a, uint8[K,N] b) => (int32[M,N] y) "
                     "{y = MatMulInteger(a, b)}",
          empty, 2, "reference");
}

void test_int8_product__what_it_leaves_to_the_reference(void)
{
    check_in_arena(declined);
}
