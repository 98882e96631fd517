/* Convolutions and matrix products, as nodes of their own and as the heads of product regions. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_ONEDNN_DNNL_PRODUCT_H
#define CM_BACKENDS_ONEDNN_DNNL_PRODUCT_H

#include "backends/onednn/dnnl_operand.h"
#include "backends/product_body.h"

/* A step after the product: a function, or the addition of an input of the call. */
struct cm_dnnl_follower {
    bool adds;
    enum cm_dnnl_function function;
    float a, b;
    int place;                  /* of the input */
    enum cm_body_extent extent; /* columns: channels */
};

/* A product whose result, after what follows it, is output 0 of a call. */
struct cm_dnnl_product {
    const struct cm_node *node; /* its attributes */
    int in[3];                  /* where its operands are among the call's; -1: absent */
    bool turned;                /* the right one, a matrix, lies transposed */
    struct cm_dnnl_follower followers[CM_DNNL_MOST_POSTS];
    int n_followers;
};

/* The call is the product and nothing follows. */
struct cm_dnnl_product cm_dnnl_lone_product(const struct cm_call *call);

/* A shape that says which operands have one number a channel. */
enum cm_dnnl_channels { CM_DNNL_CHANNELS_AT_1, CM_DNNL_CHANNELS_AT_END };

/* Turns the followers into post-operations on y; the first addition by channel becomes the bias,
 * where `bias` is absent and nothing comes before it. */
bool cm_dnnl_set_followers(struct cm_call *call, const struct cm_dnnl_product *product,
                           enum cm_dnnl_channels channels, const struct cm_dnnl_operand *y,
                           struct cm_dnnl_operand *bias, struct cm_dnnl_posts *posts);

/* For accepts: true, or false with the reason in the call. */
typedef bool cm_dnnl_accept_fn(struct cm_call *call, const struct cm_dnnl_product *product);
cm_dnnl_accept_fn cm_dnnl_accept_conv, cm_dnnl_accept_conv_transpose, cm_dnnl_accept_matmul,
    cm_dnnl_accept_gemm;

/* ---- weights of convolutions ---- */

/* (out, in / groups, kernel..) as (groups, out / groups, in / groups, kernel..): the same bytes. */
void cm_dnnl_split_groups(struct cm_dnnl_operand *weights, int64_t groups);
/* Those of a transposed convolution, (in, out / groups, kernel..), as oneDNN sees them: the two
 * exchanged, by strides, and groups split. */
void cm_dnnl_exchange_channels(struct cm_dnnl_operand *weights, int groups);
/* Sets the pads at the end of a transposed convolution from x to y: what makes its sizes fit,
 * output_padding included. */
void cm_dnnl_fit_pads(const struct cm_shape *x, const struct cm_shape *y, struct cm_dnnl_window *w);

#endif
