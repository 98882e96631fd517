/* How far tensor data are from a reference: of values, of initializers, of attributes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_COMPARE_DIFFERENCE_H
#define CM_COMPARE_DIFFERENCE_H

#include "tensor/tensor.h"

/* Two numbers are equal when |a - b| <= absolute + relative * |b|; NaN equals NaN. */
struct cm_tolerance {
    double relative, absolute;
};

/* Complex numbers count as two. */
struct cm_difference {
    int64_t count, differing; /* numbers or strings */
    int64_t first;            /* the first that differs; -1: none */
    double max_abs;           /* infinite where one of two numbers is not finite */
    double norm;              /* the Euclidean norm of a - b, finite terms only */
    double reference_norm;    /* of b; 0 where both have the same bytes */
};

/* Fails where they are of different types or shapes, sparse or opaque. */
enum cm_status cm_datum_difference(const struct cm_datum *a, const struct cm_datum *b,
                                   struct cm_tolerance tolerance, struct cm_difference *out,
                                   struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_tensor_difference(const struct cm_tensor *a, const struct cm_tensor *b,
                                    struct cm_tolerance tolerance, struct cm_difference *out,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif
