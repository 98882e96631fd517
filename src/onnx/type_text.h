/* Types as people write them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_TYPE_TEXT_H
#define CM_ONNX_TYPE_TEXT_H

#include "onnx/messages.h"

/* "float[N,3]", "seq(int64[])"; "?" when the type is missing. The text ends with a zero byte. comma
 * stands between the key and the value of a map. */
struct cm_str cm_type_text(struct cm_arena *arena, const struct cm_type_proto *type,
                           const char *comma);

#endif
