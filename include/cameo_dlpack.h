/* The structs of DLPack (https://dmlc.github.io/dlpack), for programs that do not have dlpack.h:
 * the layouts that it publishes, version 1, under its tags. Include dlpack.h first where both are
 * used; nothing is declared here then. The functions that take them are in cameo.h. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_DLPACK_H
#define CAMEO_DLPACK_H

#include "cameo.h"

#ifndef DLPACK_DLPACK_H_

#ifdef __cplusplus
extern "C" {
#endif

enum { CAMEO_DLPACK_MAJOR = 1, CAMEO_DLPACK_MINOR = 1 };

/* Members that DLPack has as enums of 32 bits. */
struct DLPackVersion {
    uint32_t major, minor; /* another major version has another layout */
};

struct DLDevice {
    int32_t device_type; /* 1: CPU; 3 and 11: memory that CUDA and ROCm share with it */
    int32_t device_id;
};

struct DLDataType {
    uint8_t code, bits; /* see CAMEO_DL_ below */
    uint16_t lanes;     /* 1 */
};

/* What code means. */
enum {
    CAMEO_DL_INT = 0,
    CAMEO_DL_UINT = 1,
    CAMEO_DL_FLOAT = 2,
    CAMEO_DL_OPAQUE = 3,
    CAMEO_DL_BFLOAT = 4,
    CAMEO_DL_COMPLEX = 5,
    CAMEO_DL_BOOL = 6,
    CAMEO_DL_FLOAT8_E3M4 = 7,
    CAMEO_DL_FLOAT8_E4M3 = 8,
    CAMEO_DL_FLOAT8_E4M3B11FNUZ = 9,
    CAMEO_DL_FLOAT8_E4M3FN = 10,
    CAMEO_DL_FLOAT8_E4M3FNUZ = 11,
    CAMEO_DL_FLOAT8_E5M2 = 12,
    CAMEO_DL_FLOAT8_E5M2FNUZ = 13,
    CAMEO_DL_FLOAT8_E8M0FNU = 14,
    CAMEO_DL_FLOAT6_E2M3FN = 15,
    CAMEO_DL_FLOAT6_E3M2FN = 16,
    CAMEO_DL_FLOAT4_E2M1FN = 17
};

struct DLTensor {
    void *data;
    struct DLDevice device;
    int32_t ndim;
    struct DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major and dense */
    uint64_t byte_offset;
};

/* The older form, without a version and flags. deleter frees all of it; it may be NULL. */
struct DLManagedTensor {
    struct DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

/* Bits of flags. */
#define CAMEO_DL_FLAG_READ_ONLY      (UINT64_C(1) << 0)
#define CAMEO_DL_FLAG_IS_COPIED      (UINT64_C(1) << 1)
#define CAMEO_DL_FLAG_SUBBYTE_PADDED (UINT64_C(1) << 2) /* each small element has a whole byte */

struct DLManagedTensorVersioned {
    struct DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    struct DLTensor dl_tensor;
};

#ifdef __cplusplus
}
#endif

#endif

#endif
