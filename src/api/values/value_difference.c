/* How far two values, or two initializers, are apart, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "compare/difference.h"
#include "onnx/tensor_data.h"

void cm_api_difference(const struct cm_difference *from, struct cameo_difference *out)
{
    *out = (struct cameo_difference){sizeof *out,   from->count, from->differing,     from->first,
                                     from->max_abs, from->norm,  from->reference_norm};
}

static enum cameo_status give(const struct cm_difference *d, enum cm_status status,
                              struct cameo_difference *out, const struct cm_error *from,
                              struct cameo_error *err)
{
    struct cameo_difference all;

    if (status == CM_OK) {
        cm_api_difference(d, &all);
        cm_api_give(out, &all, sizeof all);
    }
    return cm_api_done(status, from, err);
}

enum cameo_status cameo_value_difference(const struct cameo_value *a, const struct cameo_value *b,
                                         double relative, double absolute,
                                         struct cameo_difference *out, struct cameo_error *err)
{
    CM_API_NEED(a, err);
    CM_API_NEED(b, err);
    CM_API_NEED(out, err);
    struct cm_difference d = {0};
    struct cm_error why = {0};
    enum cm_status status = cm_api_check_out(out, &why);

    if (status == CM_OK)
        status = cm_datum_difference(cm_api_value(a), cm_api_value(b),
                                     (struct cm_tolerance){relative, absolute}, &d, &why);
    return give(&d, status, out, &why, err);
}

struct view_call {
    const struct cameo_model *model;
    size_t index;
    struct cm_tensor tensor;
};

static enum cm_status load(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct view_call *call = arg;
    const struct cameo_initializer *row = cameo_model_initializer(call->model, call->index);

    (void)scratch;
    if (!row)
        return cm_fail(err, CM_NOT_FOUND, "there is no initializer %zu", call->index);
    if (row->sparse)
        return cm_fail(err, CM_UNSUPPORTED, "initializer '%.200s' is sparse", row->name.data);
    return cm_tensor_proto_load(call->model->slots[call->index].proto, call->model->file->files,
                                &call->tensor, err);
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
    struct cm_difference d = {0};
    struct cm_error why = {0};
    struct view_call x = {a, index_a, {0}}, y = {b, index_b, {0}};
    enum cm_status status = cm_api_check_out(out, &why);

    if (status == CM_OK)
        status = cm_api_guarded(a, load, &x, &why);
    if (status == CM_OK)
        status = cm_api_guarded(b, load, &y, &why);
    if (status == CM_OK)
        status = cm_tensor_difference(&x.tensor, &y.tensor,
                                      (struct cm_tolerance){relative, absolute}, &d, &why);
    cm_tensor_drop(&x.tensor);
    cm_tensor_drop(&y.tensor);
    return give(&d, status, out, &why, err);
}
