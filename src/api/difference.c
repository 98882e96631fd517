/* How far two values, or two initializers, are apart. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "onnx/tensor_data.h"

#include <math.h>
#include <string.h>

struct tolerance {
    double relative, absolute;
};

static void add_number(struct cameo_difference *d, double a, double b, const struct tolerance *t)
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

static void add_tensors(struct cameo_difference *d, const struct cm_tensor *a,
                        const struct cm_tensor *b, const struct tolerance *t)
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

static enum cm_status add_values(struct cameo_difference *d, const struct cm_datum *a,
                                 const struct cm_datum *b, const struct tolerance *t,
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

static enum cameo_status give(struct cameo_difference *d, enum cm_status status,
                              struct cameo_difference *out, const struct cm_error *from,
                              struct cameo_error *err)
{
    d->norm = sqrt(d->norm);
    d->reference_norm = sqrt(d->reference_norm);
    if (status == CM_OK)
        cm_api_give(out, d, sizeof *d);
    return cm_api_done(status, from, err);
}

enum cameo_status cameo_value_difference(const struct cameo_value *a, const struct cameo_value *b,
                                         double relative, double absolute,
                                         struct cameo_difference *out, struct cameo_error *err)
{
    CM_API_NEED(a, err);
    CM_API_NEED(b, err);
    CM_API_NEED(out, err);
    struct cameo_difference d = {.first = -1};
    struct cm_error why = {0};
    enum cm_status status = cm_api_check_out(out, &why);

    if (status == CM_OK)
        status = add_values(&d, cm_api_value(a), cm_api_value(b),
                            &(struct tolerance){relative, absolute}, &why);
    return give(&d, status, out, &why, err);
}

struct view_call {
    const struct cameo_model *model;
    size_t index;
    struct cm_tensor tensor;
    struct cm_error *err;
};

static enum cm_status view_guarded(struct cm_guard *guard, void *arg)
{
    struct view_call *call = arg;

    (void)guard;
    return cm_tensor_proto_load(call->model->slots[call->index].proto, call->model->file->files,
                                &call->tensor, call->err);
}

static enum cm_status view(struct view_call *call)
{
    const struct cameo_initializer *row = cameo_model_initializer(call->model, call->index);

    if (!row)
        return cm_fail(call->err, CM_NOT_FOUND, "there is no initializer %zu", call->index);
    if (row->sparse)
        return cm_fail(call->err, CM_UNSUPPORTED, "initializer '%.200s' is sparse", row->name.data);
    return cm_api_locked(call->model, view_guarded, call, call->err);
}

enum cameo_status cameo_initializer_difference(const struct cameo_model *a, size_t index_a,
                                               const struct cameo_model *b, size_t index_b,
                                               double relative, double absolute,
                                               struct cameo_difference *out,
                                               struct cameo_error *err)
{
    CM_API_NEED(a, err);
    CM_API_NEED(b, err);
    CM_API_NEED(out, err);
    struct cameo_difference d = {.first = -1};
    struct cm_error why = {0};
    struct view_call x = {a, index_a, {0}, &why}, y = {b, index_b, {0}, &why};
    enum cm_status status = cm_api_check_out(out, &why);

    if (status == CM_OK)
        status = view(&x);
    if (status == CM_OK)
        status = view(&y);
    if (status == CM_OK) {
        const struct cm_datum p = {.kind = CM_KIND_TENSOR, .tensor = x.tensor};
        const struct cm_datum q = {.kind = CM_KIND_TENSOR, .tensor = y.tensor};
        status = add_values(&d, &p, &q, &(struct tolerance){relative, absolute}, &why);
    }
    cm_tensor_drop(&x.tensor);
    cm_tensor_drop(&y.tensor);
    return give(&d, status, out, &why, err);
}
