/* Slopes by finite differences: of the sum of a graph's results, each element under a weight, as
 * one element of an operand moves. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_SLOPE_H
#define CM_TESTS_OP_SLOPE_H

#include "op_graph.h"

/* How far finite differences can be trusted. */
struct precision {
    double step, tol, floor;
    double kink; /* slopes to the two sides that differ by this much have no derivative between */
    bool twice;  /* look again with a wider step: a jump has slopes that depend on it */
};

struct slopes {
    const struct op_graph *graph;
    const struct cm_datum *weights; /* per result; of no kind: not counted */
    const struct precision *precision;
    struct cm_guard *guard;
    struct cm_error *err;
};

enum cm_status slopes_value(const struct slopes *slopes, double *out);
/* The slope at element i of operand x, the value there being middle; NaN where there is none. */
enum cm_status slopes_at(const struct slopes *slopes, struct cm_tensor *x, int64_t i, double middle,
                         double *out);

/* What gradients are made of. */
bool datum_is_float(const struct cm_datum *datum);
/* The same numbers in another element type; dropped with arena. */
enum cm_status datum_convert(struct cm_arena *arena, const struct cm_tensor *from,
                             enum cm_dtype type, struct cm_datum *out, struct cm_error *err);
/* Weights for a result: random, of size 0.5 to 1.5, different for each stream. */
enum cm_status datum_weights(struct cm_arena *arena, const struct cm_tensor *like, uint64_t stream,
                             struct cm_datum *out, struct cm_error *err);
double datum_largest(const struct cm_datum *datum); /* of the finite elements; 0 without any */
double datum_real(const struct cm_datum *datum, int64_t i); /* 0 where there is no datum */

#endif
