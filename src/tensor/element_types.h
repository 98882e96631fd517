/* Element types as rows: ROW(TAG, C type, name, extra) for each type of a group. Kernels are
 * written out once per row of the smallest group that covers what their schema allows; narrow types
 * are not rows, they are converted around the float loop. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_ELEMENT_TYPES_H
#define CM_TENSOR_ELEMENT_TYPES_H

#include "tensor/dtype.h"

#define CM_FLOAT_TYPES(ROW, name, extra)                                                           \
    ROW(FLOAT, float, name, extra)                                                                 \
    ROW(DOUBLE, double, name, extra)
#define CM_SIGNED_TYPES(ROW, name, extra)                                                          \
    ROW(INT8, int8_t, name, extra)                                                                 \
    ROW(INT16, int16_t, name, extra)                                                               \
    ROW(INT32, int32_t, name, extra)                                                               \
    ROW(INT64, int64_t, name, extra)
#define CM_UNSIGNED_TYPES(ROW, name, extra)                                                        \
    ROW(UINT8, uint8_t, name, extra)                                                               \
    ROW(UINT16, uint16_t, name, extra)                                                             \
    ROW(UINT32, uint32_t, name, extra)                                                             \
    ROW(UINT64, uint64_t, name, extra)
#define CM_BOOL_TYPES(ROW, name, extra) ROW(BOOL, uint8_t, name, extra)

#define CM_FLOAT_SIGNED_TYPES(ROW, name, extra)                                                    \
    CM_FLOAT_TYPES(ROW, name, extra)                                                               \
    CM_SIGNED_TYPES(ROW, name, extra)
#define CM_NUMBER_TYPES(ROW, name, extra)                                                          \
    CM_FLOAT_SIGNED_TYPES(ROW, name, extra)                                                        \
    CM_UNSIGNED_TYPES(ROW, name, extra)
#define CM_INTEGER_TYPES(ROW, name, extra)                                                         \
    CM_SIGNED_TYPES(ROW, name, extra)                                                              \
    CM_UNSIGNED_TYPES(ROW, name, extra)

/* How loops over a type are built: those over types that networks hardly compute with are small
 * rather than fast. */
#define CM_BUILT_FLOAT
#define CM_BUILT_DOUBLE
#define CM_BUILT_BOOL
#define CM_BUILT_STRING CM_SMALL_CODE
#define CM_BUILT_INT8
#define CM_BUILT_UINT8
#define CM_BUILT_INT32
#define CM_BUILT_INT64
#define CM_BUILT_INT16  CM_SMALL_CODE
#define CM_BUILT_UINT16 CM_SMALL_CODE
#define CM_BUILT_UINT32 CM_SMALL_CODE
#define CM_BUILT_UINT64 CM_SMALL_CODE

/* One entry of a table of loops indexed by element type. */
#define CM_LOOP_ENTRY(TAG, ctype, name, extra) [CM_##TAG] = name##_##TAG,

#endif
