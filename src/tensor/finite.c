/* Looking for NaN and infinity: all bits of the exponent are set. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/finite.h"

#include "base/machine.h"
#include "base/parallel.h"
#include "tensor/layout.h"

#include <stdatomic.h>

/* A block at a time: the inner loop has no exit, so that it is one pass of wide instructions. */
enum { BLOCK = 4096, CHUNK = 1 << 16 };

#define T         uint16_t
#define FOR(name) look16_##name
#include "tensor/finite_type.inc"
#define T         uint32_t
#define FOR(name) look32_##name
#include "tensor/finite_type.inc"
#define T         uint64_t
#define FOR(name) look64_##name
#include "tensor/finite_type.inc"

#define LOOK const void *elements, int64_t count, uint64_t mask, bool *finite
CM_BUILDS(look16, (LOOK), (machine, elements, count, mask, finite))
CM_BUILDS(look32, (LOOK), (machine, elements, count, mask, finite))
CM_BUILDS(look64, (LOOK), (machine, elements, count, mask, finite))

bool cm_elements_are_finite(enum cm_dtype type, const void *elements, int64_t count)
{
    const enum cm_machine machine = cm_this_machine();
    bool finite = true;

    switch (type) {
    case CM_FLOAT:
        look32_builds[machine](elements, count, UINT64_C(0x7f800000), &finite);
        break;
    case CM_DOUBLE:
        look64_builds[machine](elements, count, UINT64_C(0x7ff0000000000000), &finite);
        break;
    case CM_FLOAT16:
        look16_builds[machine](elements, count, UINT64_C(0x7c00), &finite);
        break;
    case CM_BFLOAT16:
        look16_builds[machine](elements, count, UINT64_C(0x7f80), &finite);
        break;
    default:
        break;
    }
    return finite;
}

struct look {
    const struct cm_tensor *tensor;
    atomic_bool bad;
};

static void look_at_chunk(void *arg, int64_t begin, int64_t end)
{
    struct look *look = arg;
    const size_t element = cm_dtype_size(look->tensor->type);

    if (!cm_elements_are_finite(look->tensor->type,
                                (const char *)look->tensor->data + (size_t)begin * element,
                                end - begin))
        atomic_store_explicit(&look->bad, true, memory_order_relaxed);
}

bool cm_tensor_is_finite(const struct cm_tensor *tensor)
{
    const size_t element = cm_dtype_size(tensor->type);
    /* In a backend's layout the order does not matter, and its padding is zeros. */
    const int64_t count = tensor->layout && tensor->layout->bytes && element
                              ? (int64_t)(tensor->layout->bytes / element)
                              : cm_tensor_count(tensor);
    struct look look = {.tensor = tensor};

    if (!tensor->data || cm_dtype_info(tensor->type)->kind != CM_CLASS_FLOAT)
        return true;
    cm_parallel(count, CHUNK, look_at_chunk, &look);
    return !atomic_load(&look.bad);
}
