/* How a tensor's elements lie in memory when not row by row. A backend defines its layouts; the
 * compiler moves tensors between them and knows no more of them than this. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_LAYOUT_H
#define CM_TENSOR_LAYOUT_H

#include "tensor/tensor.h"

enum { CM_LAYOUT_ROWS = 64 };

struct cm_layout {
    const char *name; /* for people: "nChw16c" */
    size_t bytes;     /* of a tensor in it, padding included */
    size_t size;      /* of the backend's struct that begins with this one; a bytewise copy of that
                         is good for `same` and nothing else. 0: it cannot be copied */
    /* Of (batch, channel, spatial..): b channels side by side at each place, then the next places,
     * then the next b channels, the last ones filled up with zeros. The number of channels: they
     * come last. 0: it is another arrangement. */
    int64_t channel_block;
    /* Are two layouts of this backend the same arrangement? */
    bool (*same)(const struct cm_layout *a, const struct cm_layout *b);
    /* Moves elements; one of the two tensors may be plain. Both have memory. */
    enum cm_status (*reorder)(const struct cm_tensor *from, struct cm_tensor *to,
                              struct cm_error *err);
    /* Absent, or: the same of rows [begin, end) along the first axis of a plain constant alone,
     * where begin is a multiple of CM_LAYOUT_ROWS: so a large one need not be in memory twice. */
    void (*reorder_rows)(const struct cm_tensor *from, struct cm_tensor *to, int64_t begin,
                         int64_t end);
    bool reads_unaligned; /* `reorder` reads a plain tensor wherever its bytes begin */
    /* Of a constant: the kernel that wants it so takes it plain too, wherever its bytes begin, and
     * gives the same bits. The first run of a session is spared the packing then. */
    bool can_wait;
    bool is_streamed; /* a run reads it once and does little else: large pages pay */
};

/* Row by row, but beginning at an address that is not aligned for the element type: a weight where
 * it lies in its file. Nobody writes it; `bytes` is 0. */
extern const struct cm_layout cm_unaligned;

static inline bool cm_layout_equal(const struct cm_layout *a, const struct cm_layout *b)
{
    return a == b || (a && b && a->same == b->same && a->same(a, b));
}

#endif
