/* Finite differences of a graph's weighted results. */
// SPDX-License-Identifier: Apache-2.0
#include "op_slope.h"

#include "base/random.h"
#include "tensor/half.h"

#include <math.h>

bool datum_is_float(const struct cm_datum *datum)
{
    return datum->kind == CM_KIND_TENSOR &&
           cm_dtype_info(datum->tensor.type)->kind == CM_CLASS_FLOAT;
}

double datum_real(const struct cm_datum *datum, int64_t i)
{
    return datum->kind ? cm_tensor_real(&datum->tensor, i) : 0;
}

double datum_largest(const struct cm_datum *datum)
{
    double largest = 0;
    for (int64_t i = 0; datum->kind && i < cm_tensor_count(&datum->tensor); i++) {
        const double value = fabs(cm_tensor_real(&datum->tensor, i));
        if (isfinite(value))
            largest = fmax(largest, value);
    }
    return largest;
}

static void store_real(struct cm_tensor *to, int64_t i, double value)
{
    const float number = (float)value;
    if (to->type == CM_DOUBLE)
        ((double *)to->data)[i] = value;
    else if (to->type == CM_FLOAT)
        ((float *)to->data)[i] = number;
    else
        cm_narrow_store(to->type, to->data, i, 1, &number);
}

static void drop_datum(void *what)
{
    cm_datum_drop(what);
}

enum cm_status datum_convert(struct cm_arena *arena, const struct cm_tensor *from,
                             enum cm_dtype type, struct cm_datum *out, struct cm_error *err)
{
    struct cm_datum *made = CM_NEW(arena, struct cm_datum);

    cm_arena_defer(arena, drop_datum, made);
    CM_TRY(cm_tensor_new(type, &from->shape, &made->tensor, err));
    made->kind = CM_KIND_TENSOR;
    for (int64_t i = 0; i < cm_tensor_count(from); i++)
        store_real(&made->tensor, i, cm_tensor_real(from, i));
    *out = *made;
    return CM_OK;
}

enum cm_status datum_weights(struct cm_arena *arena, const struct cm_tensor *like, uint64_t stream,
                             struct cm_datum *out, struct cm_error *err)
{
    struct cm_random random;

    CM_TRY(datum_convert(arena, like, like->type, out, err));
    cm_random_seed_philox(&random, 7, stream);
    for (int64_t i = 0; i < cm_tensor_count(like); i++) {
        const double size = 0.5 + cm_random_uniform(&random);
        store_real(&out->tensor, i, cm_random_bits(&random) & 1 ? size : -size);
    }
    return CM_OK;
}

enum cm_status slopes_value(const struct slopes *slopes, double *out)
{
    struct cm_arena arena;
    struct cm_datum *got;

    cm_arena_init(&arena, slopes->guard);
    const enum cm_status status = op_graph_run(slopes->graph, false, &arena, &got, slopes->err);
    *out = 0;
    for (size_t o = 0; !status && o < slopes->graph->graph->n_outputs; o++) {
        const struct cm_datum *weights = &slopes->weights[o];
        for (int64_t i = 0; weights->kind && i < cm_tensor_count(&weights->tensor); i++)
            *out += cm_tensor_real(&weights->tensor, i) * cm_tensor_real(&got[o].tensor, i);
    }
    cm_arena_release(&arena);
    return status;
}

static bool differ(double a, double b, double much)
{
    return !(fabs(a - b) <= much * (1 + fmax(fabs(a), fabs(b))));
}

static enum cm_status slope_with(const struct slopes *slopes, struct cm_tensor *x, int64_t i,
                                 double middle, double step, double *out)
{
    const double value = cm_tensor_real(x, i);
    double left, right;

    *out = NAN;
    store_real(x, i, value + step);
    const double above = cm_tensor_real(x, i) - value;
    CM_TRY(slopes_value(slopes, &right));
    store_real(x, i, value - step);
    const double below = value - cm_tensor_real(x, i);
    CM_TRY(slopes_value(slopes, &left));
    store_real(x, i, value);
    if (!differ((right - middle) / above, (middle - left) / below, slopes->precision->kink))
        *out = (right - left) / (above + below);
    return CM_OK;
}

enum cm_status slopes_at(const struct slopes *slopes, struct cm_tensor *x, int64_t i, double middle,
                         double *out)
{
    const double value = cm_tensor_real(x, i);
    const double step = slopes->precision->step * fmax(1, fabs(value));
    double wide;

    *out = NAN;
    if (!isfinite(value))
        return CM_OK;
    CM_TRY(slope_with(slopes, x, i, middle, step, out));
    if (!slopes->precision->twice || !isfinite(*out))
        return CM_OK;
    CM_TRY(slope_with(slopes, x, i, middle, 3 * step, &wide));
    if (differ(*out, wide, slopes->precision->kink))
        *out = NAN;
    return CM_OK;
}
