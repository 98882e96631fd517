/* Runs of neighbouring elements, as normalizations, losses and optimizers see them: sums over a
 * run, and y = (x - mean) * factor + shift along it. Any float type; sums are kept in double. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_LINE_H
#define CM_TENSOR_LINE_H

#include "tensor/tensor.h"

/* A place in a tensor: element `at` of data. */
struct cm_line {
    enum cm_dtype type;
    void *data;
    int64_t at;
};

struct cm_line cm_line_at(const struct cm_tensor *tensor, int64_t at);
double cm_line_sum(struct cm_line x, int64_t count);
double cm_line_square_sum(struct cm_line x, int64_t count, double mean); /* of (x - mean) */
void cm_line_affine(struct cm_line x, struct cm_line y, int64_t count, double mean, double factor,
                    double shift);
/* y = (x - mean) * factor * scale + shift, with scale and shift (may be NULL) an array of doubles.
 */
void cm_line_affine_each(struct cm_line x, struct cm_line y, int64_t count, double mean,
                         double factor, const double *scale, const double *shift);
void cm_line_store(struct cm_line y, double value); /* one element */

/* count elements, `step` apart, to floats or doubles side by side and back; wide is CM_FLOAT or
 * CM_DOUBLE. */
void cm_line_load(struct cm_line x, int64_t step, int64_t count, enum cm_dtype wide, void *to);
void cm_line_save(struct cm_line y, int64_t step, int64_t count, enum cm_dtype wide,
                  const void *from);
/* Rounds floats to what a narrow type can hold. */
void cm_line_round(enum cm_dtype type, int64_t count, float *values);
/* What a type is computed in: double for double, else float. */
enum cm_dtype cm_line_wide(enum cm_dtype type);

#endif
