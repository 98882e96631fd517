/* Formulas of losses and optimizers: functions in ONNX's text form, with conditions before lines,
 * as data/training/ has them. Reading keeps the lines whose conditions hold; applying adds the
 * nodes to a graph. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_FORMULA_H
#define CM_TRAIN_FORMULA_H

#include "graph/builder.h"

/* Reads the function of this name (NULL: the first) from the functions of a rule. words are the
 * conditions that hold, NULL at the end. Operands that no kept line reads and results that no kept
 * line computes are left out. */
enum cm_status cm_formula_read(struct cm_arena *arena, const char *functions, const char *name,
                               const char *const *words, const struct cm_function_proto **out,
                               struct cm_error *err) CM_MUST_CHECK;

/* Adds the nodes where build stands; actuals and results are as the function lists its inputs and
 * outputs. Gives the last node before those that were added (NULL: none). */
const struct cm_node *cm_formula_apply(struct cm_builder *build,
                                       const struct cm_function_proto *function,
                                       const cm_value *actuals, cm_value *results);

/* The word that names a value in graphs: the part before "__", which tells values of one word
 * apart. */
struct cm_str cm_formula_word(struct cm_str name);

/* The name without "_next": what a result of an optimizer's function is the next value of. */
struct cm_str cm_formula_stem(struct cm_str name);

struct cm_preparation;

/* Adds the nodes to the algorithm and names what they compute "hint.word", except for the
 * function's results: the caller names those. */
void cm_formula_emit(struct cm_preparation *p, const struct cm_function_proto *function,
                     struct cm_str hint, const cm_value *actuals, cm_value *results);

#endif
