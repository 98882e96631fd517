/* How a tensor of a model is made of tensors of a framework: exporters transpose, merge, split and
 * reorder. A tensor is a list of parts; each is a box of a source with its axes in another order,
 * put at some place. Gate orders of recurrent layers are one part per gate, merged weights one per
 * weight. The same list leads back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_PARTS_H
#define CM_CONVERT_PARTS_H

#include "base/array.h"
#include "convert/saved.h"

struct cm_part {
    struct cm_str source;  /* the framework's name */
    int source_rank, rank; /* axes of the source, and of the model's tensor */
    int64_t *from,
        *size;   /* the box, by axis of the source; a size of -1: all that is behind from */
    int *axes;   /* by axis of the model's tensor: which of the source; -1: none, of size 1.
                    Axes of the source that none names must have size 1 in the box */
    int64_t *at; /* by axis of the model's tensor: where the part goes */
};

struct cm_parts {
    CM_ARRAY(struct cm_part);
};

/* A part that is all of the source as it is, with room for its arrays. */
struct cm_part *cm_part_add(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                            int source_rank, int rank);
/* The whole source as it is; with its axes in another order (axes has rank entries). */
void cm_parts_whole(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                    const struct cm_shape *shape);
void cm_parts_transposed(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                         const struct cm_shape *source_shape, const int *axes, int rank);
bool cm_parts_are_whole(const struct cm_parts *parts); /* one part, nothing changed */

/* By gate of ONNX, which gate of the framework it is: of PyTorch, or of Keras, whose weights are
 * turned. gates: 4 LSTM, 3 GRU, 1. */
const int *cm_gate_order(int gates, bool is_turned);

/* Finds the tensor that a part names; NULL: there is none. */
typedef const struct cm_saved_tensor *cm_part_source_fn(void *arg, struct cm_str name);

/* The tensor of the model, of this shape, as pieces of the sources: nothing is copied, reading it
 * reads them. Refuses parts that reach outside, or that leave a hole. */
enum cm_status cm_parts_gather(struct cm_arena *arena, const struct cm_parts *parts,
                               const struct cm_shape *shape, enum cm_dtype dtype,
                               cm_part_source_fn *find, void *arg, struct cm_saved_tensor **out,
                               struct cm_error *err) CM_MUST_CHECK;
/* The other way: one tensor of the framework out of tensors of the model. parts are all that name
 * it as their source, of whatever tensors; shape is its own. */
struct cm_part_use {
    const struct cm_part *part;
    const struct cm_saved_tensor *tensor; /* of the model, that the part is in */
};
enum cm_status cm_parts_scatter(struct cm_arena *arena, const struct cm_part_use *uses,
                                size_t count, const struct cm_shape *shape, enum cm_dtype dtype,
                                struct cm_saved_tensor **out, struct cm_error *err) CM_MUST_CHECK;

/* As JSON: [{"source": "w", "from": [..], "size": [..], "axes": [..], "at": [..]}], keys left out
 * where nothing is changed (from and at: zeros; axes: in order; size: all). And back, for a tensor
 * of this rank. */
const struct cm_item *cm_parts_item(struct cm_arena *arena, const struct cm_parts *parts);
enum cm_status cm_parts_from_item(struct cm_arena *arena, const struct cm_item *item, int rank,
                                  struct cm_parts *out, struct cm_error *err) CM_MUST_CHECK;

#endif
