/* Loops over quantized values that share a scale, by type. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/linear_codes.h"

#include "base/machine.h"
#include "tensor/vector_math.h"

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

static const struct {
    cm_quantize_fn *const *quantize;
    cm_dequantize_fn *const *dequantize;
} loops[CM_DTYPE_COUNT] = {
    [CM_UINT8] = {uint8_quantize_builds, uint8_dequantize_builds},
    [CM_INT8] = {int8_quantize_builds, int8_dequantize_builds},
    [CM_UINT16] = {uint16_quantize_builds, uint16_dequantize_builds},
    [CM_INT16] = {int16_quantize_builds, int16_dequantize_builds},
};

cm_quantize_fn *cm_quantize_loop(enum cm_dtype type)
{
    return loops[type].quantize ? loops[type].quantize[cm_this_machine()] : NULL;
}

cm_dequantize_fn *cm_dequantize_loop(enum cm_dtype type)
{
    return loops[type].dequantize ? loops[type].dequantize[cm_this_machine()] : NULL;
}
