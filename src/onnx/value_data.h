/* Values in files of their own, as test data and stored inputs are: TensorProto, SequenceProto,
 * OptionalProto and MapProto to run-time values and back. The bytes do not say which message they
 * are; whoever asks knows it from the type of the graph input. Sparse values are refused. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_VALUE_DATA_H
#define CM_ONNX_VALUE_DATA_H

#include "onnx/messages.h"
#include "tensor/tensor.h"

/* The value that bytes hold as a message for this kind: CM_KIND_TENSOR, CM_KIND_SEQUENCE,
 * CM_KIND_MAP or CM_KIND_OPTIONAL, whose value is its content or CM_KIND_NONE. Contents may stay
 * views into bytes, which must outlive the value and everything that shares it; the caller drops
 * it. Messages go to arena. External data is refused. */
enum cm_status cm_value_proto_load(struct cm_arena *arena, struct cm_str bytes, enum cm_kind kind,
                                   struct cm_datum *out, struct cm_error *err) CM_MUST_CHECK;
/* The reverse: datum as the bytes of a message for this kind, in arena. Without a value only
 * CM_KIND_OPTIONAL can be written. An empty sequence is written as one of tensors. */
enum cm_status cm_value_proto_store(struct cm_arena *arena, const struct cm_datum *datum,
                                    enum cm_kind kind, struct cm_str name, struct cm_str *out,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif
