/* Bytes to message structs. Any bytes are safe: lengths are checked before use, nesting is limited,
 * and memory stays in proportion to the input. A singular field that appears twice is refused,
 * though protobuf would merge: files written by honest tools have none, and two readers could see
 * two models in one file. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_DECODE_H
#define CM_ONNX_DECODE_H

#include "onnx/descriptor.h"

/* Messages inside messages; the customary limit of protobuf readers. */
enum { CM_DECODE_DEPTH = 100 };

/* Memory that the structs of a file may take, in bytes: a fixed part, and so many times the file's
 * size. */
enum { CM_DECODE_MEMORY = 16 << 20, CM_DECODE_GROWTH = 32 };

/* Decodes bytes into the zeroed struct out. Strings and tensor contents stay views into bytes,
 * which must live as long as the structs; the rest goes to arena. Messages say where:
 * "graph.node[3].attribute[0]: length 80 runs past the end". */
enum cm_status cm_decode(const struct cm_message_info *info, struct cm_str bytes,
                         struct cm_arena *arena, void *out, struct cm_error *err) CM_MUST_CHECK;

/* Iterates over a packed field's varints: false at the end. The bytes were checked by cm_decode for
 * CM_FIELD_INT64S only; for struct cm_packed a broken varint ends the iteration with *broken set.
 */
bool cm_varint_next(struct cm_packed *rest, uint64_t *value, bool *broken);

#endif
