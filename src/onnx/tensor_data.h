/* A TensorProto's contents: where they are, whether they fit the shape, and as a struct cm_tensor.
 * raw_data and external data are viewed in place; typed fields are decoded on request; an unaligned
 * view is copied. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_TENSOR_DATA_H
#define CM_ONNX_TENSOR_DATA_H

#include "onnx/messages.h"
#include "tensor/tensor.h"

/* The shape as a struct cm_shape: refuses negative dims, a rank past CM_MAX_RANK, a product past 63
 * bits. */
enum cm_status cm_tensor_proto_shape(const struct cm_tensor_proto *proto, struct cm_shape *out,
                                     struct cm_error *err) CM_MUST_CHECK;
/* Bytes of the dense contents by type and shape (strings: bytes of all of them), without touching
 * them. */
enum cm_status cm_tensor_proto_bytes(const struct cm_tensor_proto *proto, uint64_t *out,
                                     struct cm_error *err) CM_MUST_CHECK;

/* Says whether contents fit type and shape: exactly one value field (none when empty or external),
 * the right one, long enough. Does not decode varints. */
enum cm_status cm_tensor_proto_check(const struct cm_tensor_proto *proto,
                                     struct cm_error *err) CM_MUST_CHECK;

struct cm_external_files; /* onnx/external.h */

/* The tensor. out->buffer is NULL when out views memory that lives as long as the proto's file;
 * otherwise the caller drops it. files resolves external data and may be NULL, which refuses it.
 * Messages name the tensor. */
enum cm_status cm_tensor_proto_load(const struct cm_tensor_proto *proto,
                                    struct cm_external_files *files, struct cm_tensor *out,
                                    struct cm_error *err) CM_MUST_CHECK;

/* The same, but contents that lie unaligned in memory are not copied: where *aligned is false, out
 * views them all the same, and whoever reads out->data must read it bytewise. */
enum cm_status cm_tensor_proto_view(const struct cm_tensor_proto *proto,
                                    struct cm_external_files *files, struct cm_tensor *out,
                                    bool *aligned, struct cm_error *err) CM_MUST_CHECK;

/* Makes proto hold tensor: dims, data_type and raw_data (string_data for strings) are set, other
 * contents cleared. The bytes are borrowed, not copied: they must live as long as the proto. */
enum cm_status cm_tensor_proto_store(struct cm_tensor_proto *proto, struct cm_arena *arena,
                                     const struct cm_tensor *tensor,
                                     struct cm_error *err) CM_MUST_CHECK;

/* Contents that are read when they are wanted, piece by piece where a model is saved: they need not
 * fit into memory. */
struct cm_contents {
    /* Bytes [offset, offset + size) into out. */
    enum cm_status (*read)(const struct cm_contents *self, uint64_t offset, size_t size, void *out,
                           struct cm_error *err);
    size_t piece; /* bytes to ask for at a time, above 0; a multiple of the size of an element */
};

/* Makes proto hold contents, which live as long as it does: dims, data_type and the size of
 * raw_data are set. */
enum cm_status cm_tensor_proto_store_later(struct cm_tensor_proto *proto, struct cm_arena *arena,
                                           enum cm_dtype type, const struct cm_shape *shape,
                                           const struct cm_contents *contents,
                                           struct cm_error *err) CM_MUST_CHECK;
typedef enum cm_status cm_contents_fn(void *arg, const void *bytes, size_t size,
                                      struct cm_error *err);
/* Hands the contents over, piece by piece. */
enum cm_status cm_contents_write(const struct cm_contents *contents, uint64_t size,
                                 cm_contents_fn *write, void *arg,
                                 struct cm_error *err) CM_MUST_CHECK;

/* The field for values of this element type that are not in raw_data: CM_TENSOR_FLOAT_DATA, ...; -1
 * for an undefined type. */
int cm_tensor_values_field(enum cm_dtype type);
/* The contents of such a field, unless it is CM_TENSOR_STRING_DATA. */
struct cm_packed *cm_tensor_proto_packed(struct cm_tensor_proto *proto, int field);

/* Puts other values of the same type and shape where proto has its own, in the same field, so that
 * nothing but values changes; external data moves into raw_data. Not for strings. Numbers in a
 * field of varints are coded into room, of as many bytes as cm_tensor_proto_room says (false: too
 * many); where that is 0 the values are borrowed and must live as long as the proto. */
bool cm_tensor_proto_room(struct cm_tensor_proto *proto, const struct cm_tensor *values,
                          size_t *room);
void cm_tensor_proto_replace(struct cm_tensor_proto *proto, const struct cm_tensor *values,
                             uint8_t *room);

/* Drops the values in all fields but one; -1: in all. */
void cm_tensor_proto_clear_values(struct cm_tensor_proto *proto, int but);
/* The tensor says no more that its data is in another file. */
void cm_tensor_proto_leave_file(struct cm_tensor_proto *proto);

#endif
