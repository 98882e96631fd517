/* Message structs to bytes. What was read and not changed is copied from where it was read, so an
 * untouched message comes out byte for byte, in whatever order its writer used and with fields we
 * do not know; a changed field is written in place of the old one, and only the lengths around it
 * follow. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_ENCODE_H
#define CM_ONNX_ENCODE_H

#include "onnx/descriptor.h"

typedef enum cm_status cm_write_fn(void *to, const void *bytes, size_t size, struct cm_error *err);

/* The size of msg written; scratch holds the plan until it is written. */
struct cm_encoding;
enum cm_status cm_encode_plan(const struct cm_message_info *info, const void *msg,
                              struct cm_arena *scratch, struct cm_encoding **out,
                              struct cm_error *err) CM_MUST_CHECK;
uint64_t cm_encoding_size(const struct cm_encoding *encoding);
/* Calls write with consecutive pieces; views of the source file are passed on without a copy. */
enum cm_status cm_encode_write(const struct cm_encoding *encoding, cm_write_fn *write, void *to,
                               struct cm_error *err) CM_MUST_CHECK;
/* Both at once, into arena. */
enum cm_status cm_encode(const struct cm_message_info *info, const void *msg,
                         struct cm_arena *arena, struct cm_str *out,
                         struct cm_error *err) CM_MUST_CHECK;

#endif
