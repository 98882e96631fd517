/* Values for inputs that nobody gave, so that a model can be tried at once: sizes as open_sizes.h
 * finds them, floats at random, integers within what they are used to point at, strings from what
 * their readers know. Refuses maps and opaque values. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_INFER_INVENT_H
#define CM_INFER_INVENT_H

#include "infer/open_sizes.h"

struct cm_invent_options {
    struct cm_size_options sizes;
    const bool *wanted; /* per input of the graph: make a value for it */
    uint64_t seed;
    size_t memory_limit; /* bytes of all values together; 0: none */
    bool both_signs;     /* floats on both sides of 0, away from it; otherwise from 0 to 1 */
};

/* values, one for each input, receives those that are wanted; they are the caller's to drop, and
 * strings in them are views into the model. */
enum cm_status cm_invent(struct cm_graph *graph, const struct cm_invent_options *options,
                         struct cm_open_sizes *sizes, struct cm_datum *values,
                         struct cm_error *err) CM_MUST_CHECK;

#endif
