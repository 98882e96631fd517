/* What tests of the ONNX dialect share: printing into memory, and the way there and back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_DIALECT_CASE_H
#define CM_TESTS_DIALECT_CASE_H

#include "check.h"
#include "mlir/dialect/dialect.h"

/* The text, NUL-terminated; fails the test where it cannot be printed. */
struct cm_str dialect_print(struct cm_arena *arena, const struct cm_model_proto *model,
                            const struct cm_dialect_options *options);
/* A model in ONNX's text form. */
struct cm_model_proto *dialect_model(struct cm_arena *arena, const char *text);
/* Fails the test where text cannot be read. */
struct cm_model_proto *dialect_parse(struct cm_arena *arena, struct cm_str text);
/* Prints model in both forms, reads each again, and checks that the same model comes back, which is
 * printed as the same text. name is for messages. */
void dialect_check_round(struct cm_arena *arena, const struct cm_model_proto *model,
                         const char *name);

#endif
