/* What data/gradients/ says of operators: the facts about gradients that no rule can tell. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_EXPLAIN_GRADIENT_NOTES_H
#define CM_AUTODIFF_EXPLAIN_GRADIENT_NOTES_H

#include "base/arena.h"

/* Written by tools/gen_gradients.c. Bytes from 128 on stand for the two bytes of their pair. */
extern const unsigned char cm_gradient_pairs[128][2];
extern const unsigned char cm_gradient_notes[];
extern const size_t cm_gradient_notes_size;

/* The lines of an operator's entry, each a keyword, a space and text; no entry is no lines. domain
 * is "ai.onnx", never "". Lives in arena. */
struct cm_str cm_gradient_entry(struct cm_arena *arena, struct cm_str domain, struct cm_str name);

/* Takes the next line that starts with the keyword off the lines; false when there is none. */
bool cm_gradient_line(struct cm_str *lines, const char *keyword, struct cm_str *out);

#endif
