/* Models as code of other frameworks: the model runs once, so that the other framework can be
 * compared with it, and is written. */
// SPDX-License-Identifier: Apache-2.0
#include "api/handing_over.h"
#include "api/running.h"

#include "base/diagnostics.h"
#include "base/memory.h"

struct code_call {
    const struct cameo_model *model;
    const char *path;
    const struct cm_code_framework *to;
    struct cameo_export_options options;
    struct cm_code_sample sample;
    bool has_sample;
    const char *unchecked; /* why there is no sample */
    struct cameo_made_inputs *made;
    struct cameo_fetch *fetches;
    const struct cameo_exported *report;
};

/* ---- a run ---- */

static enum cameo_status run(struct code_call *call, struct cameo_session *session,
                             struct cameo_error *err)
{
    struct cameo_make_options make = CAMEO_MAKE_OPTIONS_INIT;
    size_t n_feeds;

    make.batch = 2;
    make.seed = 1;
    enum cameo_status status = cameo_session_make_inputs(session, &make, NULL, 0, &call->made, err);
    if (status)
        return status;
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(call->made, &n_feeds);
    const size_t n_outputs = cameo_session_output_count(session);
    call->fetches = cm_calloc(n_outputs + 1, sizeof *call->fetches);
    call->sample.names = cm_calloc(n_feeds + 1, sizeof *call->sample.names);
    call->sample.inputs = cm_calloc(n_feeds + 1, sizeof *call->sample.inputs);
    call->sample.outputs = cm_calloc(n_outputs + 1, sizeof *call->sample.outputs);
    if (!call->fetches || !call->sample.names || !call->sample.inputs || !call->sample.outputs) {
        struct cm_error why = {0};
        return cm_api_done(cm_fail(&why, CM_NO_MEMORY, "no memory for a run"), &why, err);
    }
    for (size_t i = 0; i < n_outputs; i++) {
        call->fetches[i] = (struct cameo_fetch)CAMEO_FETCH_INIT;
        call->fetches[i].index = i;
    }
    status = cameo_session_run(session, feeds, n_feeds, call->fetches, n_outputs, NULL, err);
    if (status)
        return status;
    for (size_t i = 0; i < n_feeds; i++) {
        const struct cameo_feed *feed = cameo_feed_at(feeds, i);
        call->sample.names[i] = cm_str(feed->name);
        call->sample.inputs[i] = *cm_api_value(feed->value);
    }
    for (size_t i = 0; i < n_outputs; i++)
        call->sample.outputs[i] = *cm_api_value(call->fetches[i].value);
    call->sample.n_inputs = n_feeds;
    call->sample.n_outputs = n_outputs;
    return CAMEO_OK;
}

/* A model that cannot be run is written without a check, and a note says why. A run that memory is
 * too short for ends the export. */
static enum cameo_status record(struct code_call *call, struct cameo_error *err)
{
    struct cameo_session *session = NULL;
    enum cameo_status status = cameo_session_new(call->model, NULL, &session, err);

    if (status == CAMEO_OK)
        status = run(call, session, err);
    cameo_session_free(session);
    call->has_sample = status == CAMEO_OK;
    call->unchecked = call->has_sample ? NULL : err->message;
    return status == CAMEO_NO_MEMORY ? status : CAMEO_OK;
}

static void let_go(struct code_call *call)
{
    for (size_t i = 0; call->fetches && i < call->sample.n_outputs; i++)
        cameo_value_free(call->fetches[i].value);
    cm_free(call->fetches);
    cm_free(call->sample.names);
    cm_free(call->sample.inputs);
    cm_free(call->sample.outputs);
    cameo_made_inputs_free(call->made);
}

/* ---- the code ---- */

static enum cm_status write_code(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct code_call *call = arg;
    const struct cm_model_file *file = call->model->file;
    struct cm_findings findings = {
        .arena = scratch, .rule = "export", .what = "the model cannot be written as code"};
    const struct cm_code_options options = {
        .to = call->to,
        .registry = cm_api_operators(NULL, file),
        .sample = call->has_sample ? &call->sample : NULL,
        .unchecked = call->unchecked,
        .findings = &findings,
        .cancel = call->options.cancel ? &call->options.cancel->set : NULL,
    };
    struct cm_code_report report = {0};

    if (call->path && !*call->path)
        return cm_fail(err, CM_BAD_ARGUMENT, "no path to write to was given");
    const enum cm_status status = cm_code_export(scratch, file, call->path, &options, &report, err);
    if (status && findings.violations)
        return cm_api_refuse(call->model, &findings, call->options.findings, err);
    CM_TRY(status);
    call->report = cm_api_exported(file->arena, report.saved, &report.notes);
    return CM_OK;
}

static enum cm_status take_options(struct code_call *call, const struct cameo_export_options *given,
                                   struct cm_error *err)
{
    call->options = (struct cameo_export_options)CAMEO_EXPORT_OPTIONS_INIT;
    CM_TRY(cm_api_options(&call->options, sizeof call->options, given, err));
    if (call->options.findings)
        *call->options.findings = NULL;
    call->to = cm_code_framework_find(call->options.to);
    return CM_OK;
}

enum cameo_status cm_api_export_code(const struct cameo_model *model, const char *path,
                                     const struct cameo_export_options *options,
                                     const struct cameo_exported **report, struct cameo_error *err)
{
    struct code_call call = {.model = model, .path = path};
    struct cameo_error unrecorded;
    struct cm_error why = {0};

    const enum cm_status taken = take_options(&call, options, &why);
    if (taken)
        return cm_api_done(taken, &why, err);
    enum cameo_status status = CAMEO_OK;
    if (path && !call.options.no_check)
        status = record(&call, &unrecorded);
    if (status == CAMEO_OK)
        status = cm_api_call(model, write_code, &call, err);
    else if (err)
        *err = unrecorded;
    let_go(&call);
    *report = status == CAMEO_OK ? call.report : NULL;
    return status;
}
