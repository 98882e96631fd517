/* Pieces of slopes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/slope.h"

cm_value cm_slope_square_plus(struct cm_grad *g, cm_value v, int factor, double constant)
{
    const cm_value square = cm_emit(g, "Mul", v, v), k = cm_emit_scalar_like(g, v, constant);
    return factor < 0 ? cm_emit(g, "Sub", k, square) : cm_emit(g, "Add", square, k);
}

cm_value cm_slope_linear(struct cm_grad *g, cm_value v, double factor, double constant)
{
    if (factor != 1)
        v = cm_emit(g, "Mul", v, cm_emit_scalar_like(g, v, factor));
    return constant != 0 ? cm_emit(g, "Add", v, cm_emit_scalar_like(g, v, constant)) : v;
}

cm_value cm_slope_choose(struct cm_grad *g, cm_value v, const char *comparison, double limit,
                         cm_value inside, cm_value outside)
{
    const cm_value holds = cm_emit(g, comparison, v, cm_emit_scalar_like(g, v, limit));
    return cm_emit(g, "Where", holds, inside, outside);
}

double cm_slope_parameter(const struct cm_grad *g, const char *name)
{
    return (double)cm_node_float(g->node, name);
}
