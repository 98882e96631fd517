/* Loops over codes with one scale. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/linear_loops.h"

#include "base/parallel.h"
#include "tensor/vector_math.h"

enum { X, SCALE, ZERO };
enum { GRAIN = 1 << 14 };

#define T         uint8_t
#define LEAST     0
#define GREATEST  UINT8_MAX
#define FOR(name) uint8_##name
#include "tensor/linear_codes.inc"
#define T         int8_t
#define LEAST     INT8_MIN
#define GREATEST  INT8_MAX
#define FOR(name) int8_##name
#include "tensor/linear_codes.inc"
#define T         uint16_t
#define LEAST     0
#define GREATEST  UINT16_MAX
#define FOR(name) uint16_##name
#include "tensor/linear_codes.inc"
#define T         int16_t
#define LEAST     INT16_MIN
#define GREATEST  INT16_MAX
#define FOR(name) int16_##name
#include "tensor/linear_codes.inc"

#define QUANTIZE   int64_t count, const float *x, float scale, float zero, void *codes
#define DEQUANTIZE int64_t count, const void *codes, float scale, float zero, float *y
#define BUILDS(type)                                                                               \
    CM_BUILDS(type##_quantize, (QUANTIZE), (machine, count, x, scale, zero, codes))                \
    CM_BUILDS(type##_dequantize, (DEQUANTIZE), (machine, count, codes, scale, zero, y))
BUILDS(uint8)
BUILDS(int8)
BUILDS(uint16)
BUILDS(int16)

typedef void quantize_fn(QUANTIZE);
typedef void dequantize_fn(DEQUANTIZE);

static const struct code_loops {
    quantize_fn *const *quantize;
    dequantize_fn *const *dequantize;
    size_t size;
} loops_of[CM_DTYPE_COUNT] = {
    [CM_UINT8] = {uint8_quantize_builds, uint8_dequantize_builds, 1},
    [CM_INT8] = {int8_quantize_builds, int8_dequantize_builds, 1},
    [CM_UINT16] = {uint16_quantize_builds, uint16_dequantize_builds, 2},
    [CM_INT16] = {int16_quantize_builds, int16_dequantize_builds, 2},
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
