/* Looking for NaN and infinity. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/layout.h"
#include "train/trainer_parts.h"

/* A block at a time: the inner loop has no exit, so that it is one pass of wide instructions. */
enum { BLOCK = 4096 };

static bool floats_are_finite(const uint32_t *bits, int64_t count)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t end = count - at < BLOCK ? count : at + BLOCK;
        uint32_t bad = 0;

        for (int64_t i = at; i < end; i++)
            bad |= (bits[i] & 0x7f800000u) == 0x7f800000u;
        if (bad)
            return false;
    }
    return true;
}

static bool doubles_are_finite(const uint64_t *bits, int64_t count)
{
    const uint64_t mask = UINT64_C(0x7ff0000000000000);

    for (int64_t i = 0; i < count; i++)
        if ((bits[i] & mask) == mask)
            return false;
    return true;
}

static bool halves_are_finite(const uint16_t *bits, int64_t count, uint16_t mask)
{
    for (int64_t i = 0; i < count; i++)
        if ((bits[i] & mask) == mask)
            return false;
    return true;
}

bool cm_tensor_is_finite(const struct cm_tensor *tensor)
{
    const size_t element = cm_dtype_size(tensor->type);
    /* In a backend's layout the order does not matter, and its padding is zeros. */
    const int64_t count = tensor->layout && element ? (int64_t)(tensor->layout->bytes / element)
                                                    : cm_tensor_count(tensor);

    if (!tensor->data)
        return true;
    switch (tensor->type) {
    case CM_FLOAT:
        return floats_are_finite(tensor->data, count);
    case CM_DOUBLE:
        return doubles_are_finite(tensor->data, count);
    case CM_FLOAT16:
        return halves_are_finite(tensor->data, count, 0x7c00);
    case CM_BFLOAT16:
        return halves_are_finite(tensor->data, count, 0x7f80);
    default:
        return true;
    }
}
