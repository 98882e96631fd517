/* Versions, names of public numbers, and the common way out of every call. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "base/printable.h"
#include "schema/schema.h"
#include "tensor/dtype.h"

#include <assert.h>

#define SAME(public_name, own_name)                                                                \
    static_assert((int)(public_name) == (int)(own_name), "public numbers are the library's own")

SAME(CAMEO_OK, CM_OK);
SAME(CAMEO_BAD_MODEL, CM_BAD_MODEL);
SAME(CAMEO_BAD_ARGUMENT, CM_BAD_ARGUMENT);
SAME(CAMEO_NOT_FOUND, CM_NOT_FOUND);
SAME(CAMEO_UNSUPPORTED, CM_UNSUPPORTED);
SAME(CAMEO_LIMIT, CM_LIMIT);
SAME(CAMEO_NO_MEMORY, CM_NO_MEMORY);
SAME(CAMEO_IO, CM_IO);
SAME(CAMEO_CANCELLED, CM_CANCELLED);
SAME(CAMEO_DIVERGED, CM_DIVERGED);

SAME(CAMEO_UNDEFINED, CM_UNDEFINED);
SAME(CAMEO_FLOAT, CM_FLOAT);
SAME(CAMEO_UINT8, CM_UINT8);
SAME(CAMEO_INT8, CM_INT8);
SAME(CAMEO_UINT16, CM_UINT16);
SAME(CAMEO_INT16, CM_INT16);
SAME(CAMEO_INT32, CM_INT32);
SAME(CAMEO_INT64, CM_INT64);
SAME(CAMEO_STRING, CM_STRING);
SAME(CAMEO_BOOL, CM_BOOL);
SAME(CAMEO_FLOAT16, CM_FLOAT16);
SAME(CAMEO_DOUBLE, CM_DOUBLE);
SAME(CAMEO_UINT32, CM_UINT32);
SAME(CAMEO_UINT64, CM_UINT64);
SAME(CAMEO_COMPLEX64, CM_COMPLEX64);
SAME(CAMEO_COMPLEX128, CM_COMPLEX128);
SAME(CAMEO_BFLOAT16, CM_BFLOAT16);
SAME(CAMEO_FLOAT8E4M3FN, CM_FLOAT8E4M3FN);
SAME(CAMEO_FLOAT8E4M3FNUZ, CM_FLOAT8E4M3FNUZ);
SAME(CAMEO_FLOAT8E5M2, CM_FLOAT8E5M2);
SAME(CAMEO_FLOAT8E5M2FNUZ, CM_FLOAT8E5M2FNUZ);
SAME(CAMEO_UINT4, CM_UINT4);
SAME(CAMEO_INT4, CM_INT4);
SAME(CAMEO_FLOAT4E2M1, CM_FLOAT4E2M1);
SAME(CAMEO_FLOAT8E8M0, CM_FLOAT8E8M0);
SAME(CAMEO_UINT2, CM_UINT2);
SAME(CAMEO_INT2, CM_INT2);
SAME(CAMEO_FLOAT6E2M3, CM_FLOAT6E2M3);
SAME(CAMEO_FLOAT6E3M2, CM_FLOAT6E3M2);
SAME(CAMEO_FLOAT6E3M2 + 1, CM_DTYPE_COUNT);

SAME(CAMEO_FORMAT_BY_NAME, CM_FORMAT_BY_NAME);
SAME(CAMEO_FORMAT_BINARY, CM_FORMAT_BINARY);
SAME(CAMEO_FORMAT_TEXT, CM_FORMAT_TEXT);
SAME(CAMEO_FORMAT_MLIR, CM_FORMAT_MLIR);
SAME(CAMEO_FORMAT_MLIR_GENERIC, CM_FORMAT_MLIR_GENERIC);
SAME(CAMEO_PLACE_KEEP, CM_PLACE_KEEP);
SAME(CAMEO_PLACE_EXTERNAL, CM_PLACE_EXTERNAL);
SAME(CAMEO_PLACE_INLINE, CM_PLACE_INLINE);
SAME(CAMEO_PLACE_AUTO, CM_PLACE_AUTO);

static_assert(sizeof((struct cameo_error){0}.message) == CM_ERROR_SIZE, "messages fit whole");

const char *cameo_version_string(void)
{
    return CM_VERSION_STRING;
}

int cameo_version_number(void)
{
    return CAMEO_VERSION_NUMBER;
}

int64_t cameo_newest_opset(const char *domain)
{
    return cm_schema_newest_opset(cm_str(domain ? domain : ""));
}

const char *cameo_status_name(enum cameo_status status)
{
    return cm_status_name((enum cm_status)status);
}

const char *cameo_dtype_name(enum cameo_dtype type)
{
    return cm_dtype_name((enum cm_dtype)type);
}

struct cameo_text cm_api_text(struct cm_arena *arena, struct cm_str text)
{
    if (text.size == 0)
        return (struct cameo_text){"", 0};
    const struct cm_str copy = cm_arena_str(arena, text);
    return (struct cameo_text){copy.data, copy.size};
}

struct cameo_entry *cm_api_entries(struct cm_arena *arena, const struct cm_entries *from)
{
    struct cameo_entry *entries = CM_NEW_ARRAY(arena, struct cameo_entry, from->count);

    for (size_t i = 0; i < from->count; i++) {
        entries[i].key = cm_api_text(arena, from->items[i].key);
        entries[i].value = cm_api_text(arena, from->items[i].value);
    }
    return entries;
}

size_t cameo_text_unprintable(struct cameo_text text)
{
    return text.size ? cm_str_unprintable((struct cm_str){text.data, text.size}) : 0;
}
