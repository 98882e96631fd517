/* Types and shapes of a model's values, written into it. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/running.h"
#include "infer/erase.h"
#include "infer/infer_model.h"
#include "lower/lower.h"

struct infer_call {
    struct cameo_model *model;
    struct cameo_infer_options options;
    const struct cameo_inference *report;
    struct cm_error err;
};

static const struct cameo_inference *tell(struct cm_arena *arena, const struct cameo_model *model,
                                          const struct cm_infer_report *from)
{
    struct cameo_inference *report = CM_NEW(arena, struct cameo_inference);
    const size_t count = from->values.count;
    struct cameo_inferred_value *rows = CM_NEW_ARRAY(arena, struct cameo_inferred_value, count);
    const struct cameo_inferred_value **values =
        CM_NEW_ARRAY(arena, const struct cameo_inferred_value *, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_inferred_value *one = &from->values.items[i];
        rows[i] = (struct cameo_inferred_value){{one->place.data, one->place.size},
                                                {one->name.data, one->name.size},
                                                {one->type.data, one->type.size},
                                                one->unknown};
        values[i] = &rows[i];
    }
    *report = (struct cameo_inference){
        .value_count = from->n_values,
        .declared_count = from->n_declared,
        .typed_count = from->n_typed,
        .complete_count = from->n_complete,
        .dim_count = from->dims,
        .number_count = from->numbers,
        .symbolic_count = from->symbolic,
        .unknown_count = from->unknown,
        .values = values,
        .listed_count = count,
        .findings = cm_api_findings_in(arena, model, &from->findings),
    };
    return report;
}

static enum cm_status infer_guarded(struct cm_guard *guard, void *arg)
{
    struct infer_call *call = arg;
    struct cm_arena *arena = &call->model->arena;
    const struct cm_infer_model_options options = {
        .import = cm_lower_import_as,
        .registry = cm_api_operators(call->options.registry, call->model->file),
        .strict = call->options.strict,
        .list_values = call->options.list_values,
        .partial = call->options.partial,
        .open_inputs = call->options.open_inputs,
    };
    struct cm_infer_report report;

    if (!options.registry)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for the operators");
    const enum cm_status status =
        cm_infer_model(arena, call->model->file, &options, &report, &call->err);
    call->report = tell(arena, call->model, &report);
    CM_TRY(status);
    return cm_describe_again(call->model, guard, &call->err);
}

enum cameo_status cameo_model_infer(struct cameo_model *model,
                                    const struct cameo_infer_options *options,
                                    const struct cameo_inference **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct infer_call call = {.model = model,
                              .options = (struct cameo_infer_options)CAMEO_INFER_OPTIONS_INIT};

    if (report)
        *report = NULL;
    enum cm_status status = cm_api_options(&call.options, sizeof call.options, options, &call.err);
    if (status == CM_OK)
        status = cm_api_locked(model, infer_guarded, &call, &call.err);
    if (report && status != CM_NO_MEMORY)
        *report = call.report;
    return cm_api_done(status, &call.err, err);
}

struct erase_call {
    struct cameo_model *model;
    bool ranks;
    struct cm_error err;
};

static enum cm_status erase_guarded(struct cm_guard *guard, void *arg)
{
    struct erase_call *call = arg;

    cm_erase_shapes(&call->model->file->model, call->ranks);
    return cm_describe_again(call->model, guard, &call->err);
}

enum cameo_status cameo_model_erase_shapes(struct cameo_model *model, bool ranks,
                                           struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct erase_call call = {.model = model, .ranks = ranks};
    const enum cm_status status = cm_api_locked(model, erase_guarded, &call, &call.err);

    return cm_api_done(status, &call.err, err);
}
