/* Products with weights in codes of any form: a few rows of weights at a time become floats. Forms
 * that multiply faster as they are have a way of their own in nbits_product.c. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_CODED_ROWS_H
#define CM_BACKENDS_CPU_CODED_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* (number - zero point) * scale each; numbers of one block share both. */
struct cm_weight_codes {
    int64_t n, k;                  /* rows and columns */
    int64_t bits, block;           /* of a code; codes of a block */
    int64_t blocks;                /* of a row; 0: blocks go over the ends of rows */
    int64_t row_bytes, zero_bytes; /* from one row to the next; 0: no gaps */
    const uint8_t *codes;
    const float *numbers; /* of each code, the first in the high bits; NULL: codes are numbers, the
                             first in the low bits */
    const float *scales;
    const uint8_t *zero_codes; /* zero points in codes of as many bits, or as numbers; */
    const float *zeros;        /* both NULL: cm_weight_zero tells */
    const int32_t *groups;     /* the block of each column; NULL: they follow each other */
};

/* Without zero points: the middle of numbers, 0 of those with a table. */
static inline float cm_weight_zero(const struct cm_weight_codes *w, int64_t row, int64_t block)
{
    if (w->zeros)
        return w->zeros[row * w->blocks + block];
    if (!w->zero_codes)
        return w->numbers ? 0 : (float)(1 << (w->bits - 1));
    const uint8_t *codes = w->zero_codes + row * w->zero_bytes;
    if (w->bits == 8)
        return (float)codes[block];
    const uint64_t bit = (uint64_t)block * (uint64_t)w->bits;
    return (float)(codes[bit / 8] >> bit % 8 & ((1 << w->bits) - 1));
}

struct cm_weight_product {
    struct cm_weight_codes w;
    bool stored;       /* Y = A W with the weights as they are stored; otherwise Y = A W' */
    int64_t m;         /* rows of A */
    const float *a;    /* n or k columns */
    const float *bias; /* NULL: there is none */
    float *y, *scratch;
};

/* The floats of scratch that a product of these sizes needs; false: too many. */
bool cm_weight_product_scratch(const struct cm_weight_product *product, int64_t *floats);
/* Uses all threads; results are the same for any number of them. */
void cm_weight_product_run(const struct cm_weight_product *product);

#endif
