/* How tensors lie for oneDNN: descriptors, layouts made of them, and moving tensors between these.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_ONEDNN_DNNL_LAYOUT_H
#define CM_BACKENDS_ONEDNN_DNNL_LAYOUT_H

#include "backends/onednn/dnnl_abi.h"
#include "tensor/layout.h"

/* Multiplications and additions that one thread does in the time it takes to wake the others, some
 * ten microseconds. Decided by shapes alone: oneDNN's choice of kernel depends on the threads. */
enum { CM_DNNL_WORTH_A_TEAM = 1 << 20 };

/* Of moving that many elements through memory. */
static inline double cm_dnnl_work_of_moving(double elements)
{
    return 32 * elements;
}

/* (n, c, s..) with c innermost; tensors of rank 1 have no channels. */
void cm_dnnl_channels_last_strides(int rank, const int64_t *dims, int64_t *strides);
/* How the operand's bytes lie when its tensor is plain; for the caller to free, or NULL. */
struct dnnl_memory_desc *cm_dnnl_plain_desc(const struct cm_dnnl_operand *operand);

/* A reorder that was needed before: made once, run often. */
struct cm_dnnl_mover {
    struct dnnl_memory_desc *from, *to;
    struct dnnl_primitive *primitive;
    struct dnnl_memory *from_memory, *to_memory;
    struct dnnl_stream *stream;
    bool reads_unaligned; /* from any address */
};

struct cm_dnnl_layout {
    struct cm_layout base;
    struct cm_dnnl_arrangement arrangement;
    struct dnnl_memory_desc *desc, *plain; /* owned: this one, and that of the same tensor plain */
    struct cm_dnnl_mover into, out_of;
};

/* False when there is no memory. */
bool cm_dnnl_mover_init(struct cm_dnnl_mover *mover, const struct dnnl_memory_desc *from,
                        const struct dnnl_memory_desc *to);
void cm_dnnl_mover_release(struct cm_dnnl_mover *mover);
/* Made again where the descriptors are not those of the last time. */
bool cm_dnnl_move(struct cm_dnnl_mover *mover, const struct dnnl_memory_desc *from, void *from_data,
                  const struct dnnl_memory_desc *to, void *to_data);

/* Is it a struct cm_dnnl_layout? */
bool cm_dnnl_is_layout(const struct cm_layout *layout);
/* In prepare: the layout of an operand that a primitive wants to lie as desc; NULL: plain. */
enum cm_status cm_dnnl_layout_for(struct cm_call *call, const struct cm_dnnl_operand *asked,
                                  const struct dnnl_memory_desc *desc,
                                  const struct cm_layout **out) CM_MUST_CHECK;

enum cm_status cm_dnnl_out_of_memory(struct cm_call *call);

#endif
