/* The training of a model, for writers. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_CODE_TRAINING_H
#define CM_CONVERT_CODE_TRAINING_H

#include "convert/code/code_state.h"

/* What the loss reads. */
struct cm_code_fed {
    struct cm_str name; /* in the model: of a result, or of an input such as the labels */
    size_t var;         /* of the lines */
    int output;         /* of the model; -1: it is an array of the data */
};

struct cm_code_training {
    struct cm_code *loss; /* its lines end with a return */
    CM_ARRAY(struct cm_code_fed) fed;
    bool is_inside; /* it reads a value that the model does not return */
};

/* The lines of the loss, as a function of what the model returns and of arrays of the data. Fails
 * with CM_NOT_FOUND where the model has no training info. */
enum cm_status cm_code_training_loss(const struct cm_code *model, struct cm_code_training *out,
                                     struct cm_error *err) CM_MUST_CHECK;

#endif
