/* One value of a case in text form. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_CASE_VALUE_H
#define CM_TESTS_CASE_VALUE_H

#include "op_case.h"

/* Reads "f32[2] = 1 2", "seq(..)", "opt(..)", "map(..)" or "?" into out, name apart. */
enum cm_status case_value_read(struct cm_str text, struct cm_arena *arena, struct case_value *out,
                               struct cm_error *err);

/* A name of an element type, short or as in ONNX's text form. */
bool case_dtype(struct cm_str name, enum cm_dtype *out);

/* Spaces off both ends. */
struct cm_str case_trim(struct cm_str text);

#endif
