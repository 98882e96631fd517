/* The rounded left operand of MatMulNBits, its groups, and the numbers of MatMulBnb4. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/nbits_form.h"

#include "base/parallel.h"
#include "graph/op.h"

#include <math.h>

enum { ZEROS = 3, G_IDX = 4 };
enum { LANES = 16, GRAIN = 8 };

/* clang-format off */
const float cm_bnb4_numbers[2][16] = {
    {0, 0.0625F / 12, 8.0F / 12, 1, 4.0F / 12, 0.5F, 2.0F / 12, 0.25F,
     -0.0F, -0.0625F / 12, -8.0F / 12, -1, -4.0F / 12, -0.5F, -2.0F / 12, -0.25F},
    {-1, -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F, -0.18477343F, -0.091050036F, 0,
     0.0795803F, 0.1609302F, 0.2461123F, 0.33791524F, 0.44070983F, 0.562617F, 0.72295684F, 1},
};
/* clang-format on */

bool cm_nbits_rounds(const struct cm_node *node)
{
    const int64_t bits = cm_node_int(node, "bits"), block = cm_node_int(node, "block_size");
    const int64_t least = bits == 2 ? 32 : 16, most = bits == 2 ? 128 : 256;
    const cm_value zeros = cm_node_input(node, ZEROS);
    return cm_node_int(node, "accuracy_level") == 4 && (block & (block - 1)) == 0 &&
           block >= least && block <= most && !cm_node_input(node, G_IDX) &&
           (!zeros || cm_value_get(node->module, zeros)->fact.type->dtype == CM_UINT8);
}

static float largest_magnitude(const float *x, int64_t count)
{
    float most[LANES] = {0}, result = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            most[l] = fabsf(x[i + l]) > most[l] ? fabsf(x[i + l]) : most[l];
    for (; i < count; i++)
        most[0] = fabsf(x[i]) > most[0] ? fabsf(x[i]) : most[0];
    for (int l = 0; l < LANES; l++)
        result = most[l] > result ? most[l] : result;
    return result;
}

struct rounding {
    const float *from;
    int64_t columns, block;
    float *to;
};

static void round_rows(void *arg, int64_t begin, int64_t end)
{
    const struct rounding *r = arg;
    const float shift = 12582912; /* 1.5 * 2^23: adding it rounds to a whole number, half to even */
    for (int64_t row = begin; row < end; row++)
        for (int64_t k = 0; k < r->columns; k += r->block) {
            const float *x = r->from + row * r->columns + k;
            float *y = r->to + row * r->columns + k;
            const int64_t count = r->columns - k < r->block ? r->columns - k : r->block;
            const float most = largest_magnitude(x, count);
            const float inverse = most == 0 ? 0 : 127 / most, scale = most / 127;
            for (int64_t i = 0; i < count; i++)
                y[i] = (x[i] * inverse + shift - shift) * scale;
        }
}

void cm_nbits_round(const float *from, int64_t rows, int64_t columns, int64_t block, float *to)
{
    struct rounding r = {.from = from, .columns = columns, .block = block, .to = to};
    cm_parallel(rows, GRAIN, round_rows, &r);
}

enum cm_status cm_nbits_check_groups(struct cm_call *call, const struct cm_tensor *g_idx,
                                     int64_t blocks)
{
    for (int64_t i = 0; i < cm_tensor_count(g_idx); i++) {
        const int32_t block = ((const int32_t *)g_idx->data)[i];
        if (block < 0 || block >= blocks)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "g_idx names block %d, there are %lld in a row", block,
                                (long long)blocks);
    }
    return CM_OK;
}
