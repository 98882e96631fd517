/* Between an image and the patches that windows cut from it: the copying half of convolution, the
 * product being the other.
 *
 * One channel of an image becomes a matrix with a line per tap (place in the kernel) and a column
 * per window; gathering fills it, scattering adds it back. Rows of windows, along the last axis,
 * are handled as one; a part of them may be done at a time. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONV_PATCH_H
#define CM_OPS_CONV_PATCH_H

#include "ops/common/window.h"

struct cm_patch {
    int rank;                                         /* spatial axes, at least 1 */
    int64_t image[CM_MAX_RANK], windows[CM_MAX_RANK]; /* sizes */
    int64_t kernel[CM_MAX_RANK], stride[CM_MAX_RANK], dilation[CM_MAX_RANK];
    int64_t pad[CM_MAX_RANK];    /* before the image; may not be negative */
    int64_t taps;                /* elements of the kernel */
    int64_t width, rows;         /* windows along the last axis, and the product of the others */
    int64_t image_size, columns; /* elements of one channel, and all windows */
};

/* image and windows are the spatial dims of the two tensors. False when a product of sizes
 * overflows. */
bool cm_patch_init(struct cm_patch *patch, const struct cm_window *window, const int64_t *image,
                   const int64_t *windows);
/* Is the matrix the image itself? */
bool cm_patch_is_trivial(const struct cm_patch *patch);
/* How many rows of windows to do at a time, when all of them have `lines` lines in all. */
int64_t cm_patch_chunk(const struct cm_patch *patch, int64_t lines);

/* Fills taps lines of n_rows * width elements from the channel at image_at; windows outside the
 * image read zeros. */
void cm_patch_gather(const struct cm_patch *patch, enum cm_dtype type, const void *image,
                     int64_t image_at, int64_t first_row, int64_t n_rows, void *lines,
                     int64_t lines_at);
/* Adds such lines to the channel; float or double. */
void cm_patch_scatter(const struct cm_patch *patch, enum cm_dtype type, const void *lines,
                      int64_t lines_at, int64_t first_row, int64_t n_rows, void *image,
                      int64_t image_at);

/* ---- what Conv and ConvTranspose share beyond that ---- */

/* Types of the operands: ranks, groups and the bias agree. channels are the axes of W: in Conv
 * (out, in / group), in ConvTranspose (in, out / group). Sets rank to the number of spatial axes,
 * CM_RANK_UNKNOWN when it is not known; result_channels and, where known, kernel sizes (else
 * CM_DIM_UNKNOWN). */
struct cm_conv_facts {
    int rank;
    int64_t group;
    struct cm_dim batch, result_channels;
    bool kernel_known;
    int64_t kernel[CM_MAX_RANK];
    struct cm_window window; /* read when kernel_known */
};
enum cm_status cm_conv_facts(struct cm_infer *in, bool transpose,
                             struct cm_conv_facts *out) CM_MUST_CHECK;

/* Pads of ConvTranspose for an input of these sizes, into window; out (may be NULL) receives the
 * spatial sizes of the result. */
enum cm_status cm_conv_transpose_sizes(const struct cm_node *node, struct cm_window *window,
                                       const int64_t *sizes, int64_t *out,
                                       struct cm_error *err) CM_MUST_CHECK;

cm_grad_fn cm_conv_grad, cm_conv_transpose_grad;

/* ---- ConvGrad and ConvTransposeGrad; their results are the gradients of X, W and the bias ---- */

enum { CM_CONV_GRAD_DY, CM_CONV_GRAD_X, CM_CONV_GRAD_W }; /* operands */

struct cm_conv_grad_kind {
    bool transpose;
};
cm_body_fn cm_conv_grad_body;

#endif
