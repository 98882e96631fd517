/* Matrix products of a call as calls of sgemm.h: which operand is what, how they lie, and what
 * follows the product element by element. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_PRODUCT_PLAN_H
#define CM_BACKENDS_CPU_PRODUCT_PLAN_H

#include "backends/cpu/sgemm.h"
#include "graph/op.h"
#include "tensor/layout.h"

enum {
    CM_PRODUCT_FOLLOWERS = 8,
    CM_PRODUCT_FOLLOWER_OPERANDS = 3,
    CM_PRODUCT_PARTS = 32, /* batches are shared out in so many, each with scratch of its own */
};

/* How an operand of what follows lies over the result. */
enum cm_product_extent {
    CM_PRODUCT_ABSENT,
    CM_PRODUCT_VALUE,  /* the product, or what one follower made of it */
    CM_PRODUCT_NUMBER, /* one element that repeats */
    CM_PRODUCT_COLUMN, /* one element a column */
    CM_PRODUCT_WHOLE,  /* as large as the result */
};

struct cm_product_operand {
    enum cm_product_extent extent;
    int place;            /* of a value: 0 is the product; else the call's input, -1: constant */
    const void *constant; /* of a number in the body */
};

/* An elementwise operator after the product. */
struct cm_product_follower {
    struct cm_element_loop loop;
    int n_in;
    struct cm_product_operand in[CM_PRODUCT_FOLLOWER_OPERANDS];
};

/* The right operand as sgemm.h wants it. */
struct cm_packed_layout {
    struct cm_layout base;
    int64_t k, n;
    bool transposed;
};

struct cm_product_plan {
    struct cm_sgemm gemm;      /* of one batch; pointers come with the call */
    int a, b, d;               /* inputs of the call; d -1: none */
    int64_t b_row, b_column;   /* strides of the right operand where it is plain */
    bool constant;             /* the right operand: packed once .. */
    bool can_wait;             /* .. but the first run reads it as it is */
    bool in_place;             /* the right operand: read as it is */
    bool swapped;              /* the transposed product, B^T A^T: what is packed then is A */
    int n_axes;                /* of batches; the right operand has one matrix: 0 */
    int64_t axes[CM_MAX_RANK]; /* their lengths */
    int64_t a_batch[CM_MAX_RANK], b_batch[CM_MAX_RANK]; /* and strides */
    int64_t batches, parts;
    int64_t part_floats; /* of scratch: what is packed */
    struct cm_product_follower followers[CM_PRODUCT_FOLLOWERS];
    int n_followers;
    int first_follower; /* 1: the first one, an addition, is d */
    int column_axis;    /* of the result: the one that the columns are */
    bool reads_columns; /* a follower has an operand with one element a column */
    struct cm_packed_layout layout;
};

/* For accepts, with node the product (MatMul, Gemm, or a Conv that reads single places, channels
 * last) and in[] where its operands are among the
 * call's inputs (-1: absent), whose output 0 is the product's result after what follows it. NULL
 * after declining. */
struct cm_product_plan *cm_product_plan_new(struct cm_call *call, const struct cm_node *node,
                                            const int *in);

/* For accepts: where the operands of a product, the call's node or the first one of its body, are
 * among the call's inputs. */
bool cm_product_places(struct cm_call *call, const struct cm_node *product, int *in);
/* For accepts, of a region: reads what follows the product. Needs gemm.n, d and column_axis. */
bool cm_product_read_followers(struct cm_call *call, struct cm_product_plan *plan);

/* A cm_sgemm_finish_fn. */
struct cm_product_finish {
    const struct cm_product_plan *plan;
    const struct cm_call *call;
    int64_t first; /* element of the result that the batch begins with */
};
void cm_product_finish(const void *arg, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       float *c, int64_t c_row);

/* For accepts: are there so few rows that ours is the faster kernel? Decided by the shape alone. */
bool cm_product_plan_suits(struct cm_call *call, const struct cm_product_plan *plan);

/* In prepare: settles in how many parts it is run, and says how many bytes of scratch that takes.
 */
size_t cm_product_plan_scratch(struct cm_product_plan *plan);

/* The state is the plan. */
enum cm_status cm_product_plan_prepare(struct cm_call *call);
enum cm_status cm_product_plan_run(struct cm_call *call);

#endif
