/* The table of element types. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include "base/number.h"

// clang-format off
static const struct cm_dtype_info infos[CM_DTYPE_COUNT] = {
    [CM_UNDEFINED]       = {"undefined", "UNDEFINED", 0, CM_CLASS_NONE, CM_TYPED_NONE, 1},
    [CM_FLOAT]           = {"float", "FLOAT", 32, CM_CLASS_FLOAT, CM_TYPED_FLOAT, 1},
    [CM_UINT8]           = {"uint8", "UINT8", 8, CM_CLASS_UNSIGNED, CM_TYPED_INT32, 1},
    [CM_INT8]            = {"int8", "INT8", 8, CM_CLASS_SIGNED, CM_TYPED_INT32, 1},
    [CM_UINT16]          = {"uint16", "UINT16", 16, CM_CLASS_UNSIGNED, CM_TYPED_INT32, 1},
    [CM_INT16]           = {"int16", "INT16", 16, CM_CLASS_SIGNED, CM_TYPED_INT32, 1},
    [CM_INT32]           = {"int32", "INT32", 32, CM_CLASS_SIGNED, CM_TYPED_INT32, 1},
    [CM_INT64]           = {"int64", "INT64", 64, CM_CLASS_SIGNED, CM_TYPED_INT64, 1},
    [CM_STRING]          = {"string", "STRING", 0, CM_CLASS_NONE, CM_TYPED_STRING, 1},
    [CM_BOOL]            = {"bool", "BOOL", 8, CM_CLASS_BOOL, CM_TYPED_INT32, 1},
    [CM_FLOAT16]         = {"float16", "FLOAT16", 16, CM_CLASS_FLOAT, CM_TYPED_INT32, 1},
    [CM_DOUBLE]          = {"double", "DOUBLE", 64, CM_CLASS_FLOAT, CM_TYPED_DOUBLE, 1},
    [CM_UINT32]          = {"uint32", "UINT32", 32, CM_CLASS_UNSIGNED, CM_TYPED_UINT64, 1},
    [CM_UINT64]          = {"uint64", "UINT64", 64, CM_CLASS_UNSIGNED, CM_TYPED_UINT64, 1},
    [CM_COMPLEX64]       = {"complex64", "COMPLEX64", 64, CM_CLASS_COMPLEX, CM_TYPED_FLOAT, 1},
    [CM_COMPLEX128]      = {"complex128", "COMPLEX128", 128, CM_CLASS_COMPLEX, CM_TYPED_DOUBLE, 1},
    [CM_BFLOAT16]        = {"bfloat16", "BFLOAT16", 16, CM_CLASS_FLOAT, CM_TYPED_INT32, 4},
    [CM_FLOAT8E4M3FN]    = {"float8e4m3fn", "FLOAT8E4M3FN", 8, CM_CLASS_FLOAT, CM_TYPED_INT32, 9},
    [CM_FLOAT8E4M3FNUZ]  = {"float8e4m3fnuz", "FLOAT8E4M3FNUZ", 8, CM_CLASS_FLOAT, CM_TYPED_INT32, 9},
    [CM_FLOAT8E5M2]      = {"float8e5m2", "FLOAT8E5M2", 8, CM_CLASS_FLOAT, CM_TYPED_INT32, 9},
    [CM_FLOAT8E5M2FNUZ]  = {"float8e5m2fnuz", "FLOAT8E5M2FNUZ", 8, CM_CLASS_FLOAT, CM_TYPED_INT32, 9},
    [CM_UINT4]           = {"uint4", "UINT4", 4, CM_CLASS_UNSIGNED, CM_TYPED_INT32, 10},
    [CM_INT4]            = {"int4", "INT4", 4, CM_CLASS_SIGNED, CM_TYPED_INT32, 10},
    [CM_FLOAT4E2M1]      = {"float4e2m1", "FLOAT4E2M1", 4, CM_CLASS_FLOAT, CM_TYPED_INT32, 11},
    [CM_FLOAT8E8M0]      = {"float8e8m0", "FLOAT8E8M0", 8, CM_CLASS_FLOAT, CM_TYPED_INT32, 12},
    [CM_UINT2]           = {"uint2", "UINT2", 2, CM_CLASS_UNSIGNED, CM_TYPED_INT32, 13},
    [CM_INT2]            = {"int2", "INT2", 2, CM_CLASS_SIGNED, CM_TYPED_INT32, 13},
    [CM_FLOAT6E2M3]      = {"float6e2m3", "FLOAT6E2M3", 6, CM_CLASS_FLOAT, CM_TYPED_INT32, 14},
    [CM_FLOAT6E3M2]      = {"float6e3m2", "FLOAT6E3M2", 6, CM_CLASS_FLOAT, CM_TYPED_INT32, 14},
};
// clang-format on

const struct cm_dtype_info *cm_dtype_info(enum cm_dtype type)
{
    return &infos[(unsigned)type < CM_DTYPE_COUNT ? type : CM_UNDEFINED];
}

const char *cm_dtype_name(enum cm_dtype type)
{
    return cm_dtype_info(type)->name;
}

bool cm_dtype_parse(struct cm_str name, enum cm_dtype *out)
{
    for (int i = 1; i < CM_DTYPE_COUNT; i++) {
        if (cm_str_is(name, infos[i].name)) {
            *out = (enum cm_dtype)i;
            return true;
        }
    }
    return false;
}

bool cm_dtype_is_valid(int64_t code)
{
    return code > CM_UNDEFINED && code < CM_DTYPE_COUNT;
}

bool cm_dtype_is_float(int64_t code)
{
    return cm_dtype_is_valid(code) && cm_dtype_info((enum cm_dtype)code)->kind == CM_CLASS_FLOAT;
}

bool cm_dtype_is_real(int64_t code)
{
    if (!cm_dtype_is_valid(code))
        return false;
    const enum cm_dtype_class kind = cm_dtype_info((enum cm_dtype)code)->kind;
    return kind != CM_CLASS_NONE && kind != CM_CLASS_COMPLEX;
}

size_t cm_dtype_size(enum cm_dtype type)
{
    return type == CM_STRING ? sizeof(struct cm_str) : (size_t)cm_dtype_info(type)->bits / 8;
}

bool cm_dtype_bytes(enum cm_dtype type, int64_t count, size_t *out)
{
    if (count < 0)
        return false;
    const size_t n = (size_t)count;
    const size_t bits = (size_t)cm_dtype_info(type)->bits;
    if (bits != 0 && bits < 8) {
        *out = n / 8 * bits + (n % 8 * bits + 7) / 8; /* a stream of bits, lowest first */
        return true;
    }
    return cm_size_mul(n, cm_dtype_size(type), out);
}
