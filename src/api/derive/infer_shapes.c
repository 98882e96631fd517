/* Types and shapes of a model's values, written into it. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/running.h"
#include "infer/erase.h"
#include "infer/infer_model.h"
#include "lower/lower.h"

struct infer_call {
    struct cameo_model *model;
    const struct cameo_infer_options *given;
    const struct cameo_inference *report;
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

static enum cm_status infer(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct infer_call *call = arg;
    struct cm_arena *arena = &call->model->arena;
    struct cameo_infer_options given = CAMEO_INFER_OPTIONS_INIT;
    struct cm_infer_report report;

    (void)scratch;
    CM_TRY(cm_api_options(&given, sizeof given, call->given, err));
    const struct cm_infer_model_options options = {
        .import = cm_lower_import_as,
        .registry = cm_api_operators(given.registry, call->model->file),
        .strict = given.strict,
        .list_values = given.list_values,
        .partial = given.partial,
        .open_inputs = given.open_inputs,
    };
    if (!options.registry)
        return cm_fail(err, CM_NO_MEMORY, "no memory for the operators");
    const enum cm_status status = cm_infer_model(arena, call->model->file, &options, &report, err);
    call->report = tell(arena, call->model, &report);
    return status;
}

enum cameo_status cameo_model_infer(struct cameo_model *model,
                                    const struct cameo_infer_options *options,
                                    const struct cameo_inference **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct infer_call call = {.model = model, .given = options};
    const enum cameo_status status = cm_api_change_call(model, infer, &call, err);

    if (report)
        *report = status == CAMEO_NO_MEMORY ? NULL : call.report;
    return status;
}

struct erase_call {
    struct cameo_model *model;
    bool ranks;
};

static enum cm_status erase(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct erase_call *call = arg;

    (void)scratch;
    (void)err;
    cm_erase_shapes(&call->model->file->model, call->ranks);
    return CM_OK;
}

enum cameo_status cameo_model_erase_shapes(struct cameo_model *model, bool ranks,
                                           struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct erase_call call = {model, ranks};

    return cm_api_change_call(model, erase, &call, err);
}
