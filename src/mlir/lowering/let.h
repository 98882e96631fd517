/* What templates of MLIR have besides the engine's directives and functions: @let, a line of
 * arithmetic as operations of arith and math, and numbers as MLIR writes them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_LET_H
#define CM_MLIR_LET_H

#include "template/template.h"

/* Members of the host. */
bool cm_mlir_directive(void *arg, struct cm_template_run *run, struct cm_str line);
struct cm_str cm_mlir_print_float(struct cm_template_run *run, double value);

/* literal(number, T): a number as a constant of type T; bare(T): the type as MLIR has it, without
 * the sign that is for @let. False: the call is neither. */
bool cm_mlir_literal_call(struct cm_template_run *run, struct cm_str name,
                          const struct cm_term *args, size_t count, struct cm_term *out);

#endif
