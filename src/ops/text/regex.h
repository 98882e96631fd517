/* Regular expressions of RE2's syntax, matched as a whole in time proportional to the text, or
 * searched for in it. Not here, and refused: flags, Unicode classes, and what RE2 has not. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_TEXT_REGEX_H
#define CM_OPS_TEXT_REGEX_H

#include "base/status.h"
#include "base/text.h"

enum { CM_REGEX_STEPS = 8192, CM_REGEX_RANGES = 8192 };

struct cm_regex_step {
    uint8_t op;
    bool negated; /* of a class */
    int32_t a, b; /* jumps, from here; a class: its ranges */
};

struct cm_regex_range {
    uint32_t from, to;
};

struct cm_regex {
    int32_t n_steps, n_ranges;
    struct cm_regex_step steps[CM_REGEX_STEPS];
    struct cm_regex_range ranges[CM_REGEX_RANGES];
};

enum cm_status cm_regex_compile(struct cm_str pattern, struct cm_regex *out,
                                struct cm_error *err) CM_MUST_CHECK;
/* Bytes of memory that matching needs, aligned for int32_t. */
size_t cm_regex_scratch(const struct cm_regex *regex);
bool cm_regex_matches(const struct cm_regex *regex, struct cm_str text, void *scratch);

/* The first part of text at or after `from` that matches, and of those that begin there the
 * longest; what is before `from` counts as context. */
struct cm_regex_part {
    size_t start, end;
};
/* Bytes of memory that finding needs, aligned for size_t. */
size_t cm_regex_find_scratch(const struct cm_regex *regex);
/* CM_LIMIT when *work, which goes down with every place the search is in, has run out: a search
 * that ends early for many places of a text may read its rest each time. */
enum cm_status cm_regex_find(const struct cm_regex *regex, struct cm_str text, size_t from,
                             void *scratch, int64_t *work, struct cm_regex_part *out, bool *found,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
