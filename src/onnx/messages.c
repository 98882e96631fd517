/* Growing the exact lists of message structs. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/messages.h"

#include "base/number.h"

void *cm_list_extended_by(struct cm_arena *arena, const void *items, size_t count, size_t more,
                          size_t size)
{
    size_t total;

    /* A count that overflows cannot be allocated either; let the arena say so. */
    if (!cm_size_add(count, more, &total))
        total = SIZE_MAX;
    void *const longer = cm_arena_alloc_array(arena, total, size);
    if (count)
        memcpy(longer, items, count * size);
    return longer;
}

void *cm_list_extended(struct cm_arena *arena, const void *items, size_t count, size_t size)
{
    return cm_list_extended_by(arena, items, count, 1, size);
}
