/* How far tensor data are from a reference. */
// SPDX-License-Identifier: Apache-2.0
#include "compare/difference.h"

#include <math.h>
#include <string.h>

static void add_number(struct cm_difference *d, double a, double b, const struct cm_tolerance *t)
{
    const double apart = fabs(a - b);

    d->reference_norm += isfinite(b) ? b * b : 0;
    if (a == b || (isnan(a) && isnan(b)))
        return;
    if (isfinite(apart))
        d->norm += apart * apart;
    if (!(apart <= d->max_abs))
        d->max_abs = isnan(apart) ? INFINITY : apart;
    if (isfinite(apart) && apart <= t->absolute + t->relative * fabs(b))
        return;
    if (!d->differing++)
        d->first = d->count;
}

/* Number i of a tensor; complex ones have two each. */
static double number_at(const struct cm_tensor *tensor, int64_t i)
{
    if (tensor->type == CM_COMPLEX64)
        return (double)((const float *)tensor->data)[i];
    if (tensor->type == CM_COMPLEX128)
        return ((const double *)tensor->data)[i];
    return cm_tensor_real(tensor, i);
}

static void add_tensors(struct cm_difference *d, const struct cm_tensor *a,
                        const struct cm_tensor *b, const struct cm_tolerance *t)
{
    const bool complex = cm_dtype_info(a->type)->kind == CM_CLASS_COMPLEX;
    const int64_t count = cm_tensor_count(a) * (complex ? 2 : 1);

    if (a->type == CM_STRING) {
        const struct cm_str *x = a->data, *y = b->data;
        for (int64_t i = 0; i < count; i++, d->count++)
            if (!cm_str_equal(x[i], y[i]) && !d->differing++)
                d->first = d->count;
        return;
    }
    /* Most weights of most pairs are equal: then nothing else is to be known of them. */
    if (!count || memcmp(a->data, b->data, cm_tensor_bytes(a)) == 0) {
        d->count += count;
        return;
    }
    for (int64_t i = 0; i < count; i++, d->count++)
        add_number(d, number_at(a, i), number_at(b, i), t);
}

static enum cm_status add_values(struct cm_difference *d, const struct cm_datum *a,
                                 const struct cm_datum *b, const struct cm_tolerance *t,
                                 struct cm_error *err)
{
    if (a->kind != b->kind || a->n_items != b->n_items || a->tensor.type != b->tensor.type ||
        !cm_shape_equal(&a->tensor.shape, &b->tensor.shape))
        return cm_fail(err, CM_BAD_ARGUMENT, "the values are of different types or shapes");
    if (a->kind == CM_KIND_SPARSE || a->kind == CM_KIND_OPAQUE)
        return cm_fail(err, CM_UNSUPPORTED, "sparse and opaque values are not compared");
    if (a->kind == CM_KIND_TENSOR || a->kind == CM_KIND_MAP)
        add_tensors(d, &a->tensor, &b->tensor, t);
    for (size_t i = 0; i < a->n_items; i++)
        CM_TRY(add_values(d, &a->items[i], &b->items[i], t, err));
    return CM_OK;
}

enum cm_status cm_datum_difference(const struct cm_datum *a, const struct cm_datum *b,
                                   struct cm_tolerance tolerance, struct cm_difference *out,
                                   struct cm_error *err)
{
    *out = (struct cm_difference){.first = -1};
    CM_TRY(add_values(out, a, b, &tolerance, err));
    out->norm = sqrt(out->norm);
    out->reference_norm = sqrt(out->reference_norm);
    return CM_OK;
}

enum cm_status cm_tensor_difference(const struct cm_tensor *a, const struct cm_tensor *b,
                                    struct cm_tolerance tolerance, struct cm_difference *out,
                                    struct cm_error *err)
{
    const struct cm_datum x = {.kind = CM_KIND_TENSOR, .tensor = *a};
    const struct cm_datum y = {.kind = CM_KIND_TENSOR, .tensor = *b};

    return cm_datum_difference(&x, &y, tolerance, out, err);
}
