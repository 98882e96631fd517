/* Element types, numbered as in ONNX files. Everything that differs between them is a row of one
 * table: ask it, do not switch over types. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_DTYPE_H
#define CM_TENSOR_DTYPE_H

#include "base/text.h"

enum cm_dtype {
    CM_UNDEFINED = 0,
    CM_FLOAT = 1,
    CM_UINT8 = 2,
    CM_INT8 = 3,
    CM_UINT16 = 4,
    CM_INT16 = 5,
    CM_INT32 = 6,
    CM_INT64 = 7,
    CM_STRING = 8,
    CM_BOOL = 9,
    CM_FLOAT16 = 10,
    CM_DOUBLE = 11,
    CM_UINT32 = 12,
    CM_UINT64 = 13,
    CM_COMPLEX64 = 14,
    CM_COMPLEX128 = 15,
    CM_BFLOAT16 = 16,
    CM_FLOAT8E4M3FN = 17,
    CM_FLOAT8E4M3FNUZ = 18,
    CM_FLOAT8E5M2 = 19,
    CM_FLOAT8E5M2FNUZ = 20,
    CM_UINT4 = 21,
    CM_INT4 = 22,
    CM_FLOAT4E2M1 = 23,
    CM_FLOAT8E8M0 = 24,
    CM_UINT2 = 25,
    CM_INT2 = 26,
    CM_FLOAT6E2M3 = 27, /* six bits, four to three bytes; one to an entry in int32_data */
    CM_FLOAT6E3M2 = 28,
    CM_DTYPE_COUNT
};

enum cm_dtype_class {
    CM_CLASS_NONE, /* undefined and string: nothing to compute with */
    CM_CLASS_BOOL,
    CM_CLASS_SIGNED,
    CM_CLASS_UNSIGNED,
    CM_CLASS_FLOAT,
    CM_CLASS_COMPLEX,
};

/* Which repeated field of a TensorProto holds the values when raw_data does not. */
enum cm_typed_field {
    CM_TYPED_NONE,
    CM_TYPED_FLOAT,
    CM_TYPED_INT32,
    CM_TYPED_STRING,
    CM_TYPED_INT64,
    CM_TYPED_DOUBLE,
    CM_TYPED_UINT64,
};

struct cm_dtype_info {
    const char *name;      /* as in ONNX's text form: "float", "int64", "float8e4m3fn" */
    const char *onnx_name; /* as in the proto enumeration: "FLOAT" */
    int bits;              /* in storage; 0 for strings and undefined */
    enum cm_dtype_class kind;
    enum cm_typed_field field;
    int since_ir; /* the first IR version that knows it */
};

/* The row of type; the undefined row for numbers that are no type. */
const struct cm_dtype_info *cm_dtype_info(enum cm_dtype type);
const char *cm_dtype_name(enum cm_dtype type);
bool cm_dtype_parse(struct cm_str name, enum cm_dtype *out);
/* Is this number from a file one of ours, other than undefined? */
bool cm_dtype_is_valid(int64_t code);
/* Is it, and a floating-point type? */
bool cm_dtype_is_float(int64_t code);
/* Is it, and a number that is not complex, or bool? Others have no cm_tensor_real. */
bool cm_dtype_is_real(int64_t code);

/* The size of one element in memory; a string is a struct cm_str, types below a byte have none (0).
 */
size_t cm_dtype_size(enum cm_dtype type);
/* Bytes that count elements take when stored, sub-byte types packed as in ONNX; false on overflow.
 * Strings count as struct cm_str. */
bool cm_dtype_bytes(enum cm_dtype type, int64_t count, size_t *out);

#endif
