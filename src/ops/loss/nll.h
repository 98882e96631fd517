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

/* Statements of a formula from the gradient of the loss and its operands. slopes: the gradient by
 * minus the logarithms, per position (N, 1, d..), as float or double; chosen: where each class is
 * the right one (N, C, d..), bools. The ignored class need not be one. w is what each position
 * weighs; none where every position weighs 1. */
#define CM_LOSS_SLOPES(d_loss, scores, classes, weights)                                           \
    "wide(t) = dtype(" scores ") == double ? double(t) : float(t); axis = [1]; c = " classes ";"   \
    "slope = wide(" d_loss "); mask = given(ignore_index) ? Equal(c, ignore_index) : none;"        \
    "found(t) = Gather(wide(t), mask ? Where(mask, like(c, 0), c) : c);"                           \
    "w = " weights " ? found(" weights ") : mask ? wide(1) : none;"                                \
    "w = mask ? Where(mask, wide(0), w) : w;"                                                      \
    "total(t) = t ? ReduceSum<keepdims=0>(t) : wide(Size(c));"                                     \
    "slope = reduction == 'mean' ? slope / total(w) : slope;"                                      \
    "slope = w ? slope * w : reduction == 'none' ? slope : Expand(slope, Shape(c));"               \
    "slopes = Unsqueeze(slope, axis); one = Unsqueeze(c, axis);"                                   \
    "range = Range(like(c, 0), cast(Squeeze(Shape<start=1, end=2>(" scores ")), c), like(c, 1));"  \
    "spread(t) = { one = int64(1); Unsqueeze(t, Range(one, Size(Shape(c)), one)) };"               \
    "every = rank(c) == -1 ? spread(range) : rank(c) == 1 ? range"                                 \
    "  : Unsqueeze(range, [1 to rank(c) - 1]);"                                                    \
    "chosen = Equal(one, every);"

#endif
