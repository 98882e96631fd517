/* Types of arrays as NumPy calls them. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/numpy_types.h"

static const struct {
    const char *name, *code;
    enum cm_dtype dtype;
} dtypes[] = {
    {"float32", "<f4", CM_FLOAT},
    {"float64", "<f8", CM_DOUBLE},
    {"float16", "<f2", CM_FLOAT16},
    {"bfloat16", "bfloat16", CM_BFLOAT16},
    {"int32", "<i4", CM_INT32},
    {"int64", "<i8", CM_INT64},
    {"int16", "<i2", CM_INT16},
    {"int8", "|i1", CM_INT8},
    {"uint32", "<u4", CM_UINT32},
    {"uint64", "<u8", CM_UINT64},
    {"uint16", "<u2", CM_UINT16},
    {"uint8", "|u1", CM_UINT8},
    {"bool", "|b1", CM_BOOL},
    {"complex64", "<c8", CM_COMPLEX64},
    {"complex128", "<c16", CM_COMPLEX128},
    {"float8_e4m3fn", "float8_e4m3fn", CM_FLOAT8E4M3FN},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", CM_FLOAT8E4M3FNUZ},
    {"float8_e5m2", "float8_e5m2", CM_FLOAT8E5M2},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", CM_FLOAT8E5M2FNUZ},
};

/* Types of the ml_dtypes package have no code but their names. */
static bool is_numpys(const char *code)
{
    return *code == '<' || *code == '|';
}

bool cm_numpy_dtype(struct cm_str name, enum cm_dtype *out)
{
    for (size_t i = 0; i < CM_COUNT(dtypes); i++)
        if (cm_str_is(name, dtypes[i].name) || cm_str_is(name, dtypes[i].code)) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

bool cm_numpy_dtype_of(struct cm_str code, enum cm_dtype *out)
{
    for (size_t i = 0; i < CM_COUNT(dtypes); i++)
        if (is_numpys(dtypes[i].code) && cm_str_is(code, dtypes[i].code + 1)) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

const char *cm_numpy_name(enum cm_dtype dtype)
{
    for (size_t i = 0; i < CM_COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

const char *cm_numpy_code(enum cm_dtype dtype)
{
    for (size_t i = 0; i < CM_COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].code;
    return NULL;
}

const char *cm_numpy_own_code(enum cm_dtype dtype)
{
    const char *code = cm_numpy_code(dtype);

    return code && is_numpys(code) ? code : NULL;
}
