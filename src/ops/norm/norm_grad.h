/* What the gradients of normalizations share. They compute in float or double: narrow operands are
 * cast first and results last, because sums over many elements do not fit the narrow types. Means
 * are sums divided by counts, as ReduceMean changed its form between the opsets that may be
 * written. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_NORM_NORM_GRAD_H
#define CM_OPS_NORM_NORM_GRAD_H

#include "graph/op.h"

/* x as float or double. */
cm_value cm_norm_widen(struct cm_grad *g, cm_value x);
/* x as the element type of like. */
cm_value cm_norm_as(struct cm_grad *g, cm_value x, cm_value like);
/* Sets the gradient of input i, cast to its type. */
enum cm_status cm_norm_set(struct cm_grad *g, int i, cm_value gradient) CM_MUST_CHECK;
/* Sum over axes, which keep their place with length 1 unless keepdims is false. */
cm_value cm_norm_sum(struct cm_grad *g, cm_value x, cm_value axes, bool keepdims);
/* A constant list of the axes [from, to), `less` left out (-1: none). */
cm_value cm_norm_axes(struct cm_grad *g, int from, int to, int less);
/* A vector over channels with `after` axes of length 1 behind it. */
cm_value cm_norm_per_channel(struct cm_grad *g, cm_value x, int after);

/* Normalizing x over axes: xhat = (x - mean) * inverse. */
struct cm_normalized {
    cm_value xhat, inverse, axes;
    cm_value count; /* elements per mean, as a scalar of x's type */
    bool centred;   /* a mean was taken off */
};
/* mean and inverse may be given (0: computed from x). */
struct cm_normalized cm_norm_forward(struct cm_grad *g, cm_value x, cm_value axes, bool centred,
                                     double epsilon, cm_value mean, cm_value inverse);
/* The gradient by x, given that by xhat. */
cm_value cm_norm_backward(struct cm_grad *g, const struct cm_normalized *n, cm_value dxhat);

cm_grad_fn cm_layer_norm_grad, cm_rms_norm_grad, cm_batch_norm_grad;

/* Of the operand that BatchNormalization normalizes; a batch of single numbers has one channel. */
struct cm_dim cm_batch_norm_channels(const struct cm_type *x);

#endif
