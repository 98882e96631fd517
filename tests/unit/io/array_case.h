/* What tests of array files share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_ARRAY_CASE_H
#define CM_TESTS_ARRAY_CASE_H

#include "io/arrays.h"

#define ARRAYS TESTS_DIR "/models/arrays/"

/* A whole file, in arena. */
struct cm_str array_bytes(struct cm_arena *arena, const char *path);
/* Parses bytes as format; the test says what must come of it. */
enum cm_status array_parse(struct cm_arena *arena, struct cm_str bytes, enum cm_array_format format,
                           struct cm_arrays *out, struct cm_error *err);
/* Opens a file that must be fine and hold one array; returns it. */
const struct cm_tensor *array_one(struct cm_arena *arena, const char *path);
/* Elements are 0, 1, 2, ... */
void check_ramp(const struct cm_tensor *tensor, enum cm_dtype type, int rank, int64_t count);

#endif
