/* Checkpoints of other frameworks brought into a model. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "convert/format.h"
#include "convert/transfer/import_saved.h"

struct import_call {
    struct cameo_model *model;
    const char *path;
    const struct cameo_import_options *given;
    struct cameo_import_report *report;
};

static void tell(struct cm_arena *arena, const struct cameo_model *model,
                 const struct cm_saved *saved, const struct cm_saved_import_report *from,
                 struct cameo_import_report *out)
{
    struct cameo_import_match *matches =
        CM_NEW_ARRAY(arena, struct cameo_import_match, from->n_matches + 1);

    for (size_t i = 0; i < from->n_matches; i++)
        matches[i] = (struct cameo_import_match){cm_api_text(arena, from->matches[i].initializer),
                                                 cm_api_text(arena, from->matches[i].source),
                                                 cm_api_text(arena, from->matches[i].how)};
    *out =
        (struct cameo_import_report){.system = saved->system,
                                     .format = saved->format,
                                     .matches = matches,
                                     .match_count = from->n_matches,
                                     .findings = cm_api_findings_in(arena, model, &from->findings)};
    out->notes = cm_api_notes(arena, &from->findings, &out->note_count);
    if (from->prepare.choices || from->prepare.findings.violations)
        out->preparation = cm_api_preparation(arena, model, &from->prepare);
}

static enum cm_status import_checkpoint(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct import_call *call = arg;
    struct cm_arena *arena = &call->model->arena;
    struct cameo_import_options o = CAMEO_IMPORT_OPTIONS_INIT;
    struct cameo_prepare_options prepare;
    struct cm_saved_import_report report;
    struct cm_saved *saved;

    (void)scratch;
    CM_TRY(cm_api_options(&o, sizeof o, call->given, err));
    CM_TRY(cm_api_check_prepare(&prepare, o.prepare, err));
    const struct cm_saved_import_options options = {.prepare = cm_api_prepare_options(&prepare),
                                                    .has_schedule = o.use_schedule,
                                                    .has_clip = o.use_clip_norm,
                                                    .has_accumulate = o.use_accumulate,
                                                    .map = o.map,
                                                    .settings = o.settings,
                                                    .weights_only = o.weights_only,
                                                    .partial = o.partial};
    CM_TRY(cm_saved_open(arena, call->path, o.allow_links ? CM_FOLLOW_LINKS : 0, &saved, err));
    const enum cm_status status =
        cm_saved_import(arena, call->model->file, saved, &options, &report, err);
    call->report = CM_NEW(arena, struct cameo_import_report);
    tell(arena, call->model, saved, &report, call->report);
    return status;
}

enum cameo_status cameo_model_import(struct cameo_model *model, const char *path,
                                     const struct cameo_import_options *options,
                                     const struct cameo_import_report **report,
                                     struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(path, err);
    struct import_call call = {.model = model, .path = path, .given = options};
    const enum cameo_status status = cm_api_change_call(model, import_checkpoint, &call, err);

    if (report)
        *report = status == CAMEO_NO_MEMORY ? NULL : call.report;
    for (size_t i = 0; status == CAMEO_OK && i < call.report->note_count; i++)
        cm_api_log(model, CAMEO_LOG_INFO, "%s", call.report->notes[i].data);
    return status;
}
