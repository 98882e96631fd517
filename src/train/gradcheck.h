/* Judging gradients: what the rules say against what differences of the values say, in double
 * precision. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_GRADCHECK_H
#define CM_TRAIN_GRADCHECK_H

#include "onnx/model_file.h"
#include "tensor/tensor.h"

struct cm_gradcheck_feed {
    struct cm_str name;
    const struct cm_tensor *value; /* of the model's type: floats are widened */
};

/* One tensor: an initializer or an input of floats. */
struct cm_gradcheck_row {
    struct cm_str name;
    int64_t elements;
    size_t checked;
    double analytic, numeric; /* of the element that differs most */
    double worst;             /* by how much, as a part of the larger of the two */
    int64_t at;               /* its number */
    bool reached;             /* false: no gradient reaches it, so both are 0 */
    double below, above;      /* differences to one side, of the same element */
    size_t kinks; /* elements at a kink or too near one for differences to tell: the sides disagree
                     with the gradient between them, or narrower differences say something else.
                     They do not count as differing */
};

typedef void cm_gradcheck_fn(void *arg, const struct cm_gradcheck_row *row);

struct cm_gradcheck_options {
    const struct cm_gradcheck_feed *feeds; /* inputs that are not listed are made up, see
                                              infer/invent.h */
    size_t n_feeds;
    uint64_t seed;
    size_t samples;        /* elements looked at per tensor; 0: 20 */
    cm_gradcheck_fn *tell; /* called with each row when it is done; NULL: none */
    void *tell_arg;
};

/* The objective is the sum of all elements of all float outputs, each times a random weight. Rows
 * live in arena. */
enum cm_status cm_gradcheck(struct cm_arena *arena, const struct cm_model_file *file,
                            const struct cm_gradcheck_options *options,
                            struct cm_gradcheck_row **rows, size_t *n_rows,
                            struct cm_error *err) CM_MUST_CHECK;

#endif
