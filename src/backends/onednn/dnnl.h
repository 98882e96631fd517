/* What our kernels ask of oneDNN, in words that do not change with its major version. The library
 * is opened when the first kernel asks for it; without it every kernel declines and says why.
 *
 * A kernel's accepts describes its operands and calls one of the cm_dnnl_make_ functions, which
 * makes the primitive or declines with the reason; then cm_dnnl_prepare and cm_dnnl_run are the
 * same for all. Float32 only. */
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
    CM_DNNL_MOVED,         /* of a result: the same, then moved to rows by the call itself */
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

/* An operand that is a whole tensor of the call, or an absent one. Declines what has a rank that is
 * too high for oneDNN. */
bool cm_dnnl_operand(struct cm_call *call, int place, enum cm_dnnl_order order,
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

/* ---- what follows a product, element by element, before it is stored ---- */

enum cm_dnnl_joining { CM_DNNL_ADD, CM_DNNL_SUB, CM_DNNL_MUL, CM_DNNL_DIV };

/* Of x, with parameters a and b. */
enum cm_dnnl_function {
    CM_DNNL_RELU,      /* x where x > 0, else a x */
    CM_DNNL_TANH,      /* */
    CM_DNNL_ELU,       /* x where x > 0, else a (exp(x) - 1) */
    CM_DNNL_SQUARE,    /* */
    CM_DNNL_ABS,       /* */
    CM_DNNL_SQRT,      /* */
    CM_DNNL_LINEAR,    /* a x + b */
    CM_DNNL_LOGISTIC,  /* 1 / (1 + exp(-x)) */
    CM_DNNL_EXP,       /* */
    CM_DNNL_GELU_TANH, /* */
    CM_DNNL_GELU_ERF,  /* */
    CM_DNNL_SWISH,     /* x / (1 + exp(-a x)) */
    CM_DNNL_CLIP,      /* to [a, b] */
    CM_DNNL_HARDSWISH, /* x min(max(x + 3, 0), 6) / 6 */
    CM_DNNL_SOFT_RELU, /* log(1 + exp(x)) */
    CM_DNNL_MISH,      /* x tanh(log(1 + exp(x))) */
    CM_DNNL_FUNCTION_COUNT
};

enum cm_dnnl_post_kind {
    CM_DNNL_POST_FUNCTION, /* function of the result */
    CM_DNNL_POST_SUM,      /* operand added: of the result's shape, it lies as the result does and
                              may share its memory */
    CM_DNNL_POST_JOIN,     /* result joined with operand, which has 1 where it repeats */
};

struct cm_dnnl_post {
    enum cm_dnnl_post_kind kind;
    enum cm_dnnl_function function;
    float a, b;
    enum cm_dnnl_joining joining;
    struct cm_dnnl_operand operand;
};

enum { CM_DNNL_MOST_POSTS = 8 };

struct cm_dnnl_posts {
    struct cm_dnnl_post items[CM_DNNL_MOST_POSTS]; /* in this order */
    int count;
};

/* ---- factories, for accepts: true, or false with the reason in the call ---- */

struct cm_dnnl_conv {
    struct cm_dnnl_operand x, weights, bias, y; /* weights of groups have the group as axis 0 */
    struct cm_dnnl_window window;
    bool transposed; /* weights are (groups, out, in, kernel..) here too; pads take away from y */
    bool direct;     /* decline where oneDNN would go by way of a matrix product */
    struct cm_dnnl_posts posts;
};
bool cm_dnnl_make_conv(struct cm_call *call, const struct cm_dnnl_conv *conv);

/* The gradients of a convolution, or of a transposed one with weights as above: dx, and dw with db,
 * each by a primitive of its own. Absent ones are not computed; db comes with dw alone. */
struct cm_dnnl_conv_grad {
    struct cm_dnnl_operand dy, x, weights, dx, dw, db;
    struct cm_dnnl_window window;
    bool transposed;
    bool direct; /* as above */
};
bool cm_dnnl_make_conv_grad(struct cm_call *call, const struct cm_dnnl_conv_grad *grad);

struct cm_dnnl_matmul {
    struct cm_dnnl_operand a, b, bias, y; /* of one rank; bias has 1 where it repeats */
    struct cm_dnnl_posts posts;
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

/* Would the call's post-operations make a number of a NaN? oneDNN's maximum, minimum and
 * exponential do; ONNX's operators do not. */
bool cm_dnnl_loses_nan(const struct cm_call *call);

/* Says which layouts the primitive reads and writes, and how much scratch it needs. */
enum cm_status cm_dnnl_prepare(struct cm_call *call);
enum cm_status cm_dnnl_run(struct cm_call *call);
/* Members of a struct cm_kernel. */
#define CM_DNNL_RUNS .prepare = cm_dnnl_prepare, .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN

/* The same for kernels that do a part of the work themselves: state is what call->state was before
 * they took it, NULL where oneDNN does nothing; scratch has at least so many bytes. */
enum cm_status cm_dnnl_prepare_state(struct cm_call *call, void *state, size_t scratch_bytes);
enum cm_status cm_dnnl_run_state(struct cm_call *call, void *state);

/* In prepare, for kernels of others between those of oneDNN: channels last, as oneDNN's
 * convolutions read and write tensors of this shape; NULL where that is row by row. */
enum cm_status cm_dnnl_channels_last(struct cm_call *call, const struct cm_shape *shape,
                                     const struct cm_layout **out) CM_MUST_CHECK;

/* oneDNN as it was found; opens it if nobody did. */
struct cm_dnnl_found {
    const char *version; /* "2.6.3"; "" when it cannot be used */
    const char *path;    /* of the library; "" when none was opened */
    const char *why;     /* why it cannot be used; "" when it can */
    const char *teams;   /* whose threads it runs on: "OpenMP", "none" */
};
struct cm_dnnl_found cm_dnnl_found(void);

#endif
