/* What our kernels ask of oneDNN, in words that do not change with its major version: exactly one
 * of the dnnl_v*.c files behind it is compiled, and only that one sees oneDNN's own headers.
 *
 * A kernel's accepts describes its operands and calls one of the cm_dnnl_ factories, which makes
 * the primitive or declines with the reason; then cm_dnnl_prepare and cm_dnnl_run are the same for
 * all. Float32 only. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_ONEDNN_DNNL_H
#define CM_BACKENDS_ONEDNN_DNNL_H

#include "graph/op.h"

enum { CM_DNNL_MAX_RANK = 12 }; /* as many as oneDNN reads */

/* How an operand may lie in memory. */
enum cm_dnnl_order {
    CM_DNNL_PLAIN,         /* row by row, or by the strides given */
    CM_DNNL_CHANNELS_LAST, /* of (batch, channel, spatial..) */
    CM_DNNL_GIVEN,         /* as the input lies now */
    CM_DNNL_FREE,          /* as the primitive likes best */
};

/* Which tensor of the call an operand is. */
#define CM_DNNL_IN(i)  (i)
#define CM_DNNL_OUT(o) (~(o))

struct cm_dnnl_operand {
    int place; /* CM_DNNL_IN, CM_DNNL_OUT */
    enum cm_dnnl_order order;
    int rank; /* 0: the operand is absent */
    int64_t dims[CM_DNNL_MAX_RANK];
    int64_t strides[CM_DNNL_MAX_RANK]; /* of CM_DNNL_PLAIN; all 0: row by row */
};

/* An operand that is a whole tensor of the call, or an absent one; false when its rank is too high
 * for oneDNN. */
bool cm_dnnl_operand(const struct cm_call *call, int place, enum cm_dnnl_order order,
                     struct cm_dnnl_operand *out);

/* Windows over the spatial axes, by axis. */
struct cm_dnnl_window {
    int rank;
    int64_t kernel[CM_DNNL_MAX_RANK], stride[CM_DNNL_MAX_RANK], dilation[CM_DNNL_MAX_RANK];
    int64_t pad_begin[CM_DNNL_MAX_RANK], pad_end[CM_DNNL_MAX_RANK];
};

enum cm_dnnl_pooling {
    CM_DNNL_MAX,
    CM_DNNL_AVERAGE_ALL,  /* padding counts */
    CM_DNNL_AVERAGE_REAL, /* padding does not */
};

/* ---- factories, for accepts: true, or false with the reason in the call ---- */

struct cm_dnnl_conv {
    struct cm_dnnl_operand x, weights, bias, y; /* weights of groups have the group as axis 0 */
    struct cm_dnnl_window window;
    bool direct; /* decline where oneDNN would go by way of a matrix product */
};
bool cm_dnnl_make_conv(struct cm_call *call, const struct cm_dnnl_conv *conv);
/* Transposed: weights are (groups, out, in, kernel..) here too; pads take away from the result. */
bool cm_dnnl_make_deconv(struct cm_call *call, const struct cm_dnnl_conv *conv);

struct cm_dnnl_matmul {
    struct cm_dnnl_operand a, b, bias, y; /* of one rank; bias has 1 where it repeats */
    float scale;                          /* of the product; 1 where there is a bias */
};
bool cm_dnnl_make_matmul(struct cm_call *call, const struct cm_dnnl_matmul *matmul);

struct cm_dnnl_pool {
    struct cm_dnnl_operand x, y;
    struct cm_dnnl_window window;
    enum cm_dnnl_pooling kind;
};
bool cm_dnnl_make_pool(struct cm_call *call, const struct cm_dnnl_pool *pool);

/* y = (x - mean) / sqrt(variance + epsilon) * scale + shift, by channel; y lies as x. */
struct cm_dnnl_batch_norm {
    struct cm_dnnl_operand x, scale, shift, mean, variance, y;
    float epsilon;
};
bool cm_dnnl_make_batch_norm(struct cm_call *call, const struct cm_dnnl_batch_norm *norm);

/* y = x / (bias + alpha / size * sum of squares over `size` channels) ^ beta; y lies as x. */
struct cm_dnnl_lrn {
    struct cm_dnnl_operand x, y;
    int64_t size;
    float alpha, beta, bias;
};
bool cm_dnnl_make_lrn(struct cm_call *call, const struct cm_dnnl_lrn *lrn);

enum cm_dnnl_joining { CM_DNNL_ADD, CM_DNNL_SUB, CM_DNNL_MUL, CM_DNNL_DIV };

/* y = a joined with b, which has 1 where it repeats; y lies as a. */
struct cm_dnnl_binary {
    struct cm_dnnl_operand a, b, y;
    enum cm_dnnl_joining kind;
};
bool cm_dnnl_make_binary(struct cm_call *call, const struct cm_dnnl_binary *binary);

/* All operands in the same order. */
bool cm_dnnl_make_concat(struct cm_call *call, const struct cm_dnnl_operand *x, int count, int axis,
                         const struct cm_dnnl_operand *y);

/* ---- what follows acceptance ---- */

/* Says which layouts the primitive reads and writes, and how much scratch it needs. */
enum cm_status cm_dnnl_prepare(struct cm_call *call);
enum cm_status cm_dnnl_run(struct cm_call *call);

/* Of oneDNN as it is loaded: "2.6.3". */
struct cm_dnnl_version {
    char text[32];
};
struct cm_dnnl_version cm_dnnl_version(void);

#endif
