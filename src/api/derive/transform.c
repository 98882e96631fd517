/* Models made out of models: trainable ones, training steps, gradients. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "train/prepare/prepare.h"
#include "train/step.h"

/* ---- preparing ---- */

struct prepare_call {
    struct cameo_model *model;
    const struct cameo_prepare_options *options;
    const struct cameo_preparation *report;
    const struct cm_prepared_training *made;
};

const struct cameo_text *cm_api_notes(struct cm_arena *arena, const struct cm_findings *list,
                                      size_t *count)
{
    struct cameo_text *notes = CM_NEW_ARRAY(arena, struct cameo_text, list->count);
    const struct cm_finding *note;

    *count = 0;
    for (size_t i = 0; (note = cm_findings_next(list, CM_NOTE, &i)) != NULL;)
        notes[(*count)++] = cm_api_text(arena, note->reason);
    return notes;
}

void cm_api_tell_raised(struct cm_arena *arena, const struct cm_raised *raised,
                        struct cameo_text *list, size_t *count)
{
    const struct cm_str needed_by = raised->needed_by;

    if (raised->opset_before && raised->opset > raised->opset_before)
        list[(*count)++] = cm_api_view(cm_arena_printf(
            arena, "opset raised from %lld to %lld%s%.*s%s", (long long)raised->opset_before,
            (long long)raised->opset, needed_by.size ? ", which " : "", CM_STR_FMT(needed_by),
            needed_by.size ? " needs" : ""));
    if (raised->ir > raised->ir_before)
        list[(*count)++] =
            cm_api_view(cm_arena_printf(arena, "IR version raised from %lld to %lld",
                                        (long long)raised->ir_before, (long long)raised->ir));
}

const struct cameo_preparation *cm_api_preparation(struct cm_arena *arena,
                                                   const struct cameo_model *model,
                                                   const struct cm_prepare_report *from)
{
    struct cameo_preparation *report = CM_NEW(arena, struct cameo_preparation);
    struct cameo_choice *choices = CM_NEW_ARRAY(arena, struct cameo_choice, from->n_choices);
    const struct cameo_choice **rows =
        CM_NEW_ARRAY(arena, const struct cameo_choice *, from->n_choices);

    for (size_t i = 0; i < from->n_choices; i++) {
        choices[i].name = cm_api_text(arena, from->choices[i].name);
        rows[i] = &choices[i];
        choices[i].trained = from->choices[i].trained;
        choices[i].reason = cm_api_text(arena, from->choices[i].reason);
        choices[i].original = cm_api_text(arena, from->choices[i].original);
        choices[i].folding = cm_api_text(arena, from->choices[i].folding);
    }
    report->choices = rows;
    report->choice_count = from->n_choices;
    report->changes = cm_api_notes(arena, &from->findings, &report->change_count);
    report->findings = cm_api_findings_in(arena, model, &from->findings);
    report->target = cm_api_text(arena, from->target_name);
    report->loss = cm_api_text(arena, from->loss_name);
    return report;
}

static double or_default(double number)
{
    return number < 0 ? NAN : number;
}

struct cm_prepare_options cm_api_prepare_options(const struct cameo_prepare_options *o)
{
    return (struct cm_prepare_options){.mlir = &cm_api_mlir,
                                       .loss = o->loss,
                                       .output = o->output,
                                       .optimizer = o->optimizer,
                                       .lr = or_default(o->lr),
                                       .momentum = or_default(o->momentum),
                                       .weight_decay = or_default(o->weight_decay),
                                       .beta1 = or_default(o->beta1),
                                       .beta2 = or_default(o->beta2),
                                       .epsilon = or_default(o->epsilon),
                                       .schedule = (enum cm_schedule)o->schedule,
                                       .warmup = o->warmup,
                                       .schedule_steps = o->schedule_steps,
                                       .warmup_epochs = o->warmup_epochs,
                                       .schedule_epochs = o->schedule_epochs,
                                       .updates_per_epoch = o->updates_per_epoch,
                                       .schedule_factor = o->schedule_factor,
                                       .schedule_patience = o->schedule_patience,
                                       .schedule_threshold = o->schedule_threshold,
                                       .schedule_cooldown = o->schedule_cooldown,
                                       .schedule_min_lr = o->schedule_min_lr,
                                       .clip_norm = o->clip_norm,
                                       .accumulate = o->accumulate,
                                       .train = o->train,
                                       .freeze = o->freeze,
                                       .target = o->target,
                                       .class_axis = o->class_axis,
                                       .keep_opset = o->keep_opset,
                                       .keep_tied = o->keep_tied,
                                       .keep_untied = o->keep_untied,
                                       .settings = o->settings,
                                       .no_decay = o->no_decay,
                                       .no_decay_vectors = o->no_decay_vectors,
                                       .lr_for = o->lr_for,
                                       .warmup_from = or_default(o->warmup_from),
                                       .without = o->without,
                                       .until = o->until,
                                       .run_samples = o->run_samples,
                                       .run_batch_size = o->run_batch_size,
                                       .run_epochs = o->run_epochs,
                                       .run_steps = o->run_steps,
                                       .class_weights = o->class_weights,
                                       .class_weight_count = o->class_weight_count};
}

static enum cm_status prepare(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct prepare_call *call = arg;
    struct cm_arena *arena = &call->model->arena;
    struct cameo_prepare_options all;
    struct cm_prepare_report report;

    (void)scratch;
    CM_TRY(cm_api_check_prepare(&all, call->options, err));
    const struct cm_prepare_options options = cm_api_prepare_options(&all);
    const enum cm_status status = cm_prepare(arena, call->model->file, &options, &report, err);
    call->report = cm_api_preparation(arena, call->model, &report);
    call->made = report.made;
    return status;
}

enum cm_status cm_api_check_prepare(struct cameo_prepare_options *out,
                                    const struct cameo_prepare_options *given, struct cm_error *err)
{
    *out = (struct cameo_prepare_options)CAMEO_PREPARE_OPTIONS_INIT;
    CM_TRY(cm_api_options(out, sizeof *out, given, err));
    if ((unsigned)out->schedule > CAMEO_SCHEDULE_PLATEAU)
        return cm_fail(err, CM_BAD_ARGUMENT, "schedule %d does not exist", (int)out->schedule);
    if (out->class_weight_count && !out->class_weights)
        return cm_fail(err, CM_BAD_ARGUMENT, "class_weights is NULL, but class_weight_count is %zu",
                       out->class_weight_count);
    return CM_OK;
}

enum cameo_status cameo_model_prepare(struct cameo_model *model,
                                      const struct cameo_prepare_options *options,
                                      const struct cameo_preparation **report,
                                      struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct prepare_call call = {.model = model, .options = options};
    const enum cameo_status status = cm_api_change_call(model, prepare, &call, err);

    if (report)
        *report = status == CAMEO_NO_MEMORY ? NULL : call.report;
    if (status != CAMEO_OK)
        return status;
    model->prepared = call.made;
    for (size_t i = 0; i < call.report->change_count; i++)
        cm_api_log(model, CAMEO_LOG_INFO, "%s", call.report->changes[i].data);
    for (size_t i = 0; i < call.report->choice_count; i++)
        cm_api_log(model, CAMEO_LOG_DEBUG, "'%s' is %s: %s", call.report->choices[i]->name.data,
                   call.report->choices[i]->trained ? "trained" : "left as it is",
                   call.report->choices[i]->reason.data);
    return CAMEO_OK;
}

/* ---- new models ---- */

struct derive_call {
    const struct cameo_model *from;
    const char *of;
    const char *const *wrt;
    size_t n_wrt;
    struct cm_step_options options;
};

static enum cm_status make_step(void *arg, struct cameo_model *made, struct cm_arena *scratch,
                                struct cm_error *err)
{
    const struct derive_call *call = arg;
    struct cm_model_file *today;

    (void)scratch;
    CM_TRY(cm_api_today(call->from->file, &made->arena, &today, err));
    return cm_step_model(&made->arena, today, &call->options, &made->file, err);
}

static enum cm_status make_gradient(void *arg, struct cameo_model *made, struct cm_arena *scratch,
                                    struct cm_error *err)
{
    const struct derive_call *call = arg;
    struct cm_arena *arena = &made->arena;
    struct cm_str *wrt = CM_NEW_ARRAY(arena, struct cm_str, call->n_wrt);

    (void)scratch;
    if (!call->n_wrt)
        return cm_fail(err, CM_BAD_ARGUMENT, "the values to differentiate by are missing");
    for (size_t i = 0; i < call->n_wrt; i++)
        wrt[i] = cm_arena_str(arena, cm_str(call->wrt[i]));
    return cm_grad_model(arena, call->from->file, cm_str(call->of), wrt, call->n_wrt,
                         &call->options, &made->file, err);
}

static enum cm_status copy(void *from, struct cameo_model *made, struct cm_arena *scratch,
                           struct cm_error *err)
{
    (void)scratch;
    (void)err;
    made->file = cm_model_copy(&made->arena, ((const struct cameo_model *)from)->file);
    return CM_OK;
}

enum cameo_status cameo_model_copy(const struct cameo_model *model, struct cameo_model **out,
                                   struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    return cm_api_derive_call(model, copy, (void *)(uintptr_t)model, out, err);
}

enum cameo_status cameo_model_step(const struct cameo_model *model, bool portable,
                                   struct cameo_model **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct derive_call call = {.from = model, .options = {.portable = portable}};

    return cm_api_derive_call(model, make_step, &call, out, err);
}

enum cameo_status cameo_model_gradient(const struct cameo_model *model, const char *of,
                                       const char *const *wrt, size_t wrt_count, bool portable,
                                       struct cameo_model **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(of, err);
    CM_API_NEED_ALL(wrt, wrt_count, err);
    CM_API_NEED(out, err);
    struct derive_call call = {
        .from = model, .of = of, .wrt = wrt, .n_wrt = wrt_count, .options = {.portable = portable}};

    return cm_api_derive_call(model, make_gradient, &call, out, err);
}
