/* What NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss share: which class each position has,
 * what it weighs, and how the losses of all positions become the result. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_LOSS_NLL_H
#define CM_OPS_LOSS_NLL_H

#include "graph/node_formula.h"

/* Scores (N, C, d..) against classes (N, d..): output 0 becomes the loss. */
cm_infer_fn cm_loss_infer;
cm_require_fn cm_loss_require;
extern const struct cm_class_labels cm_loss_labels;

enum cm_loss_reduction { CM_REDUCE_NONE, CM_REDUCE_SUM, CM_REDUCE_MEAN };

/* Attribute `reduction`; false where it is none of these. */
bool cm_loss_reduction(const struct cm_node *node, enum cm_loss_reduction *out);

struct cm_loss {
    int64_t images, classes, area; /* N, C, and the product of d */
    enum cm_loss_reduction reduction;
    bool ignores;
    int64_t ignored;
};
void cm_loss_read(struct cm_call *call, struct cm_loss *out);

/* Gives minus the logarithm of the probability of class c at position (image, i). */
typedef double cm_loss_fn(const struct cm_call *call, const struct cm_loss *loss, int64_t image,
                          int64_t i, int64_t c);
/* Classes outside [0, C) are refused, unless they are the ignored one; then c is -1 and what
 * of_class gives is not used. */
enum cm_status cm_loss_run(struct cm_call *call, const struct cm_loss *loss,
                           cm_loss_fn *of_class) CM_MUST_CHECK;

/* What a gradient is made from: build is where nodes go, node has the attributes. */
struct cm_loss_parts {
    struct cm_builder build;
    const struct cm_node *node;
    cm_value scores, classes, weights; /* operands of the loss; weights may be 0 */
    cm_value gradient;                 /* of its result */
};

/* The gradient by minus the logarithms, per position (N, 1, d..), as float or double; and where
 * each class is the right one (N, C, d..), bools. */
enum cm_status cm_loss_slopes(struct cm_loss_parts *p, cm_value *slopes,
                              cm_value *chosen) CM_MUST_CHECK;

#endif
