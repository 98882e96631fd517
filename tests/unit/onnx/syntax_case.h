/* What tests of the text form share: the four kinds of text as one, printing into memory, and when
 * two models say the same. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_SYNTAX_CASE_H
#define CM_TESTS_SYNTAX_CASE_H

#include "check.h"
#include "onnx/descriptor.h"
#include "onnx/syntax.h"

struct syntax_kind {
    const char *name; /* "model" */
    const struct cm_message_info *info;
};

enum { SYNTAX_KINDS = 4 };
extern const struct syntax_kind syntax_kinds[SYNTAX_KINDS];

/* Into a new message of the arena; NULL with err on failure. */
void *syntax_parse(struct cm_arena *arena, const struct syntax_kind *kind, struct cm_str text,
                   struct cm_error *err);
/* The text, NUL-terminated; no data on failure. */
struct cm_str syntax_print(struct cm_arena *arena, const struct syntax_kind *kind, const void *msg,
                           const struct cm_syntax_options *options, struct cm_error *err);

/* Gives every tensor in msg its one form: typed values become raw_data, and an absent string,
 * number or type is like an empty one. For comparing what the text form keeps with what a file had.
 */
void syntax_level(struct cm_arena *arena, const struct syntax_kind *kind, void *msg);

/* Prints msg without options, reads it again, and checks that both say the same. Returns the text.
 */
struct cm_str syntax_check_round(struct cm_arena *arena, const struct syntax_kind *kind, void *msg);

#endif
