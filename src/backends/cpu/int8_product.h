/* Products of matrices of bytes with zero points, summed as 32-bit integers that wrap around, and
 * what is made of the sums: the sums themselves, real numbers, or codes again.
 *
 * Inside, the left operand is unsigned and the right one signed; a byte of the other kind is
 * brought over by 128, and so is its zero point. The right operand is packed into panels, with the
 * sums of its columns: as a layout (tensor/layout.h), so that constant weights are packed once. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_INT8_PRODUCT_H
#define CM_BACKENDS_CPU_INT8_PRODUCT_H

#include "backends/cpu/int8_image.h"
#include "base/machine.h"

enum { CM_INT8_WIDTH = 32 }; /* columns that are computed at a time, CM_INT8_ROWS rows of them */

/* The right operand: element (tap, d, column) of a batch is at these strides. */
struct cm_int8_packing {
    struct cm_layout layout;
    int64_t batches, columns, taps, depth;
    int64_t batch_stride, column_stride, depth_stride, tap_stride;
    bool is_unsigned;
    bool dense;  /* taps follow each other without gaps: for the product they are one, `taps` times
                    as deep */
    bool by_tap; /* columns are not multiplied with others: see int8_depthwise.h */
    /* Filled by cm_int8_packing_init: */
    int64_t padded;      /* columns, to whole panels */
    int64_t listed;      /* columns, to whole tiles: the length of lists in struct cm_int8_finish */
    int64_t panel_bytes; /* of one panel */
    int64_t batch_bytes; /* of one batch: the sums of its columns, then its panels */
};
/* Sets what follows from the sizes; false where they are too large. */
bool cm_int8_packing_init(struct cm_int8_packing *p);

/* Where the operands of a product or convolution are, b being the right one; -1: there is none. */
struct cm_int8_operands {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
};
static inline const struct cm_tensor *cm_int8_operand(const struct cm_call *call, int i)
{
    return i >= 0 && i < call->n_in ? call->in[i] : NULL;
}
static inline bool cm_int8_is_byte(enum cm_dtype type)
{
    return type == CM_UINT8 || type == CM_INT8;
}
/* Are a and b bytes, the result bytes or sums, what belongs to a and y one number each, and is
 * nothing empty? Declines otherwise. */
bool cm_int8_accepts(struct cm_call *call, const struct cm_int8_operands *at);
/* The zero point of a column of b as it is packed; zero may be NULL. */
int32_t cm_int8_zero_of(const struct cm_tensor *zero, bool is_unsigned, int64_t column);
/* Takes room in scratch, which ends at *end so far; false: too much. */
bool cm_int8_reserve(int64_t count, int64_t each, enum cm_dtype type, size_t *end, size_t *at);

/* What becomes of the sums of a column. Each list has `listed` elements; NULL: as if all were 0. */
struct cm_int8_finish {
    enum cm_dtype type;     /* CM_INT32, CM_FLOAT, CM_UINT8 or CM_INT8 */
    const int32_t *offsets; /* are added, wrapping around */
    const int32_t *zeros;   /* zero points of the right operand as it is packed */
    const float *scales;    /* then come products, but for CM_INT32 .. */
    const float *bias;      /* .. and with CM_FLOAT sums */
    float zero;             /* zero point of codes */
};

/* Rows of the left operand, times one batch of packed columns. */
struct cm_int8_block {
    const struct cm_int8_packing *packing;
    const void *packed; /* the batch */
    const struct cm_int8_finish *finish;
    const uint8_t *const *a; /* CM_INT8_ROWS pointers for each tap, for each CM_INT8_ROWS rows, the
                                last of which is repeated */
    int rows;
    char *y;       /* row 0, column 0 of the result */
    int64_t y_row; /* bytes from one row to the next */
};
/* Up to CM_INT8_WIDTH columns [from, to) of the result; from is a multiple of that. */
void cm_int8_multiply(const struct cm_int8_block *block, int64_t from, int64_t to);

/* What becomes of CM_INT8_WIDTH sums in each of `rows` rows: the first `count` results of a row are
 * stored. */
struct cm_int8_sums {
    const struct cm_int8_finish *finish;
    int64_t from, count; /* columns */
    int rows;
    const int32_t *row_sums; /* of the left operand; NULL where the right one has no zero points */
    int32_t *sums;           /* changed */
    char *y;
    int64_t y_row;
};
void cm_int8_finish_sums(const struct cm_int8_sums *sums);

/* offsets[j] = added[j] - zero_a * (sum of column j) + (number of products) * zero_a * zeros[j];
 * added and zeros may be NULL. */
void cm_int8_offsets(const struct cm_int8_packing *p, const void *packed, int32_t zero_a,
                     const int32_t *zeros, const int32_t *added, int32_t *offsets);

/* Has this machine vpdpbusd and its kin? */
bool cm_int8_has_vnni(enum cm_machine machine);

/* Signed bytes as unsigned ones, 128 more; with the team. */
void cm_int8_flip(int64_t count, const uint8_t *from, uint8_t *to);

#endif
