/* Drawing blocks of random numbers. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/random/draws.h"

#include "tensor/half.h"

enum { BLOCK = 256 };

enum cm_status cm_draws_dtype(struct cm_infer *in, enum cm_dtype otherwise, enum cm_dtype *out)
{
    const struct cm_schema *schema = in->node->schema;
    const bool given = cm_node_has_attr(in->node, "dtype");
    const int64_t code = given ? cm_node_int(in->node, "dtype") : (int64_t)otherwise;
    *out = (enum cm_dtype)code;
    if (!cm_dtype_is_valid(code))
        return cm_infer_fail(in, "attribute 'dtype' is %lld, which is not an element type",
                             (long long)code);
    if (!cm_type_set_allows_tensor(cm_schema_types_of(schema, cm_schema_output(schema, 0)), *out))
        return cm_infer_fail(in, "its result cannot be %s, %s", cm_dtype_name(*out),
                             given ? "which attribute 'dtype' names"
                                   : "the type of its input; attribute 'dtype' sets another");
    return CM_OK;
}

/* A round trip through the type. */
static void round_block(enum cm_dtype type, int64_t count, float *block)
{
    uint16_t stored[BLOCK];
    cm_narrow_store(type, stored, 0, count, block);
    cm_narrow_load(type, stored, 0, count, block);
}

static void fill_narrow(const struct cm_draws *draws, struct cm_random *random, enum cm_dtype type,
                        void *to, int64_t first, int64_t count)
{
    float constants[2] = {(float)draws->scale, (float)draws->shift};
    round_block(type, 2, constants);
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float block[BLOCK];
        for (int64_t i = 0; i < n; i++)
            block[i] = (float)draws->draw(random);
        round_block(type, n, block);
        for (int64_t i = 0; i < n; i++)
            block[i] *= constants[0];
        round_block(type, n, block);
        for (int64_t i = 0; i < n; i++)
            block[i] += constants[1];
        cm_narrow_store(type, to, first + at, n, block);
    }
}

void cm_draws_fill(const struct cm_draws *draws, struct cm_random *random, enum cm_dtype type,
                   void *to, int64_t first, int64_t count)
{
    if (type == CM_DOUBLE) {
        double *ys = (double *)to + first;
        for (int64_t i = 0; i < count; i++)
            ys[i] = draws->draw(random) * draws->scale + draws->shift;
    } else if (type == CM_FLOAT) {
        float *ys = (float *)to + first;
        const float scale = (float)draws->scale, shift = (float)draws->shift;
        for (int64_t i = 0; i < count; i++) {
            const float scaled = (float)draws->draw(random) * scale;
            ys[i] = scaled + shift;
        }
    } else {
        fill_narrow(draws, random, type, to, first, count);
    }
}
