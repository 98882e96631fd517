/* Loops over codes with one scale. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/linear_loops.h"

#include "base/parallel.h"
#include "tensor/vector_math.h"

enum { X, SCALE, ZERO };
enum { GRAIN = 1 << 14 };

/* Limits are set before rounding, where NaN becomes the lowest. Within them, adding 1.5 * 2^23
 * rounds half to even and leaves the integer in the low bits. */
#define DEFINE_LOOPS(name, ctype, least, greatest)                                                 \
    static CM_ALWAYS_INLINE void quantize_##name##_on(enum cm_machine machine, int64_t count,      \
                                                      const float *x, float scale, float zero,     \
                                                      void *codes)                                 \
    {                                                                                              \
        const float low = (float)(least)-zero, high = (float)(greatest)-zero;                      \
        const int32_t shift = (int32_t)zero - 0x4b400000;                                          \
        ctype *y = codes;                                                                          \
        (void)machine;                                                                             \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            float v = x[i] / scale;                                                                \
            v = v > low ? v : low;                                                                 \
            v = v < high ? v : high;                                                               \
            y[i] = (ctype)((int32_t)cm_float_bits(v + 12582912.0f) + shift);                       \
        }                                                                                          \
    }                                                                                              \
    CM_BUILDS(quantize_##name,                                                                     \
              (int64_t count, const float *x, float scale, float zero, void *codes),               \
              (machine, count, x, scale, zero, codes))                                             \
    static CM_ALWAYS_INLINE void dequantize_##name##_on(enum cm_machine machine, int64_t count,    \
                                                        const void *codes, float scale,            \
                                                        float zero, float *y)                      \
    {                                                                                              \
        const ctype *x = codes;                                                                    \
        (void)machine;                                                                             \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = ((float)x[i] - zero) * scale;                                                   \
    }                                                                                              \
    CM_BUILDS(dequantize_##name,                                                                   \
              (int64_t count, const void *codes, float scale, float zero, float *y),               \
              (machine, count, codes, scale, zero, y))
DEFINE_LOOPS(uint8, uint8_t, 0, UINT8_MAX)
DEFINE_LOOPS(int8, int8_t, INT8_MIN, INT8_MAX)
DEFINE_LOOPS(uint16, uint16_t, 0, UINT16_MAX)
DEFINE_LOOPS(int16, int16_t, INT16_MIN, INT16_MAX)

typedef void quantize_fn(int64_t count, const float *x, float scale, float zero, void *codes);
typedef void dequantize_fn(int64_t count, const void *codes, float scale, float zero, float *y);

static const struct code_loops {
    quantize_fn *const *quantize;
    dequantize_fn *const *dequantize;
    size_t size;
} loops_of[CM_DTYPE_COUNT] = {
    [CM_UINT8] = {quantize_uint8_builds, dequantize_uint8_builds, 1},
    [CM_INT8] = {quantize_int8_builds, dequantize_int8_builds, 1},
    [CM_UINT16] = {quantize_uint16_builds, dequantize_uint16_builds, 2},
    [CM_INT16] = {quantize_int16_builds, dequantize_int16_builds, 2},
};

bool cm_codes_have_loops(enum cm_dtype type)
{
    return loops_of[type].size != 0;
}

/* ---- Whole tensors ---- */

struct codes_job {
    const struct code_loops *loops;
    const float *x;
    const char *codes;
    char *to;
    float *y;
    float scale, zero;
};

static void quantize_some(void *arg, int64_t begin, int64_t end)
{
    const struct codes_job *job = arg;
    job->loops->quantize[cm_this_machine()](end - begin, job->x + begin, job->scale, job->zero,
                                            job->to + (size_t)begin * job->loops->size);
}

static void dequantize_some(void *arg, int64_t begin, int64_t end)
{
    const struct codes_job *job = arg;
    job->loops->dequantize[cm_this_machine()](end - begin,
                                              job->codes + (size_t)begin * job->loops->size,
                                              job->scale, job->zero, job->y + begin);
}

void cm_quantize_all(enum cm_dtype type, int64_t count, const float *x, float scale, float zero,
                     void *codes)
{
    struct codes_job job = {
        .loops = &loops_of[type], .x = x, .to = codes, .scale = scale, .zero = zero};
    cm_parallel(count, GRAIN, quantize_some, &job);
}

void cm_dequantize_all(enum cm_dtype type, int64_t count, const void *codes, float scale,
                       float zero, float *y)
{
    struct codes_job job = {
        .loops = &loops_of[type], .codes = codes, .y = y, .scale = scale, .zero = zero};
    cm_parallel(count, GRAIN, dequantize_some, &job);
}

/* ---- Blocks of elements ---- */

static float zero_of(const struct cm_elements *e, enum cm_dtype type)
{
    const void *zero = e->n_in > ZERO ? e->in[ZERO] : NULL;
    if (!zero)
        return 0;
    const struct cm_tensor one = {.type = type, .data = (void *)(uintptr_t)zero};
    return (float)cm_tensor_real(&one, 0);
}

static void quantize_block(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const struct code_loops *loops = loop->arg;
    const enum cm_dtype type = (enum cm_dtype)(loops - loops_of);
    loops->quantize[cm_this_machine()](e->count, e->in[X], *(const float *)e->in[SCALE],
                                       zero_of(e, type), e->out);
}

static void dequantize_block(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const struct code_loops *loops = loop->arg;
    const enum cm_dtype type = (enum cm_dtype)(loops - loops_of);
    loops->dequantize[cm_this_machine()](e->count, e->in[X], *(const float *)e->in[SCALE],
                                         zero_of(e, type), e->out);
}

/* Is operand i of a node absent, or one number that broadcasts without effect? */
static bool is_single(const struct cm_node *node, int i)
{
    const cm_value value = cm_node_input(node, i);
    if (!value)
        return true;
    const struct cm_type *p = cm_value_get(node->module, value)->fact.type;
    const struct cm_type *x = cm_value_get(node->module, node->inputs[X].value)->fact.type;
    return p->rank == 0 || (p->rank == 1 && p->dims[0].value == 1 && x->rank >= 1);
}

static bool has_one_scale(const struct cm_node *node, const enum cm_dtype *in)
{
    return in[SCALE] == CM_FLOAT && is_single(node, SCALE) && is_single(node, ZERO);
}

bool cm_quantize_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                             struct cm_element_loop *loop)
{
    const int64_t precision = cm_node_int(node, "precision");
    *loop = (struct cm_element_loop){.run = quantize_block, .arg = &loops_of[out]};
    return in[X] == CM_FLOAT && has_one_scale(node, in) && cm_codes_have_loops(out) &&
           (!precision || precision == CM_FLOAT);
}

bool cm_dequantize_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                               enum cm_dtype out, struct cm_element_loop *loop)
{
    *loop = (struct cm_element_loop){.run = dequantize_block, .arg = &loops_of[in[X]]};
    return out == CM_FLOAT && has_one_scale(node, in) && cm_codes_have_loops(in[X]);
}
