/* What a model predicts for a data set, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/streaming.h"

#include "evaluate/predictions.h"
#include "io/arrays.h"

struct predict_call {
    const struct cameo_model *model;
    struct cameo_dataset *dataset;
    const char *path; /* or NULL, and then: */
    cameo_output_fn *output;
    void *output_arg;
    struct cameo_predict_options options;
    struct cm_api_stream stream;
    struct cm_arena arena;
    struct cameo_prediction report;
    struct cm_error err;
};

/* ---- batches ---- */

static enum cm_status run_batches(struct predict_call *call, struct cm_predictions *predictions,
                                  struct cm_error *err)
{
    const size_t n = cm_predictions_count(predictions);
    struct cameo_fetch *fetches = CM_NEW_ARRAY(&call->arena, struct cameo_fetch, n);
    const struct cm_datum **outputs = CM_NEW_ARRAY(&call->arena, const struct cm_datum *, n);

    for (;;) {
        CM_TRY(cm_api_stream_next(&call->stream, err));
        if (!call->stream.rows)
            return CM_OK;
        for (size_t k = 0; k < n; k++) {
            fetches[k] = cameo_fetch_value(NULL);
            fetches[k].index = cm_predictions_output(predictions, k);
        }
        CM_TRY(cm_api_stream_run(&call->stream, fetches, n, err));
        for (size_t k = 0; k < n; k++)
            outputs[k] = cm_api_value(fetches[k].value);
        const enum cm_status status = cm_predictions_add(predictions, outputs, call->stream.rows,
                                                         call->stream.batch[0]->shape.dims[0], err);
        for (size_t k = 0; k < n; k++)
            cameo_value_free(fetches[k].value);
        CM_TRY(status);
    }
}

/* All are made before the first is given away. */
static enum cm_status give_values(struct predict_call *call, struct cm_predictions *predictions,
                                  struct cm_error *err)
{
    const size_t n = cm_predictions_count(predictions);
    struct cameo_value **values = CM_NEW_ARRAY(&call->arena, struct cameo_value *, n);
    struct cm_array *arrays = CM_NEW_ARRAY(&call->arena, struct cm_array, n);
    enum cm_status status = CM_OK;

    for (size_t k = 0; k < n && !status; k++) {
        const struct cm_tensor *tensor = &arrays[k].value.tensor;
        struct cameo_error why;

        status = cm_predictions_array(predictions, k, &arrays[k], err);
        if (!status && cameo_value_new((enum cameo_dtype)tensor->type, tensor->shape.rank,
                                       tensor->shape.dims, &values[k], &why) != CAMEO_OK)
            status = cm_api_again(&why, err);
        if (!status && cm_tensor_bytes(tensor))
            memcpy(cameo_value_mutable_data(values[k]), tensor->data, cm_tensor_bytes(tensor));
    }
    for (size_t k = 0; k < n; k++) {
        const struct cm_str name = arrays[k].name;

        if (status)
            cameo_value_free(values[k]);
        else
            call->output(call->output_arg, (struct cameo_text){name.data, name.size}, values[k]);
    }
    return status;
}

/* ---- all of it ---- */

static enum cm_status predict(struct predict_call *call, struct cm_error *err)
{
    struct cm_predictions *predictions;

    CM_TRY(cm_api_stream_open(call->model, call->options.stream, &call->stream, err));
    const struct cameo_session *session = call->stream.session;
    struct cm_str *outputs = CM_NEW_ARRAY(&call->arena, struct cm_str, session->n_outputs);
    for (size_t i = 0; i < session->n_outputs; i++)
        outputs[i] = cm_str(session->outputs[i].name.data);
    CM_TRY(cm_predictions_new(&call->arena, outputs, session->n_outputs, call->options.outputs,
                              call->path, &predictions, err));
    CM_TRY(cm_api_stream_feed(&call->stream, call->dataset, NULL, 0, err));
    cm_api_stream_note(&call->stream, call->report.note, sizeof call->report.note);
    CM_TRY(cm_predictions_begin(predictions, err));
    CM_TRY(run_batches(call, predictions, err));
    call->report.samples = call->stream.samples;
    call->report.output_count = cm_predictions_count(predictions);
    return call->path ? cm_predictions_save(predictions, err) : give_values(call, predictions, err);
}

static enum cm_status predict_guarded(struct cm_guard *guard, void *arg)
{
    struct predict_call *call = arg;

    cm_arena_init(&call->arena, guard);
    const enum cm_status status = predict(call, &call->err);
    cm_arena_release(&call->arena);
    return status;
}

static enum cameo_status run_call(struct predict_call *call,
                                  const struct cameo_predict_options *options,
                                  struct cameo_prediction *report, struct cameo_error *err)
{
    enum cm_status status = cm_api_check_out(report, &call->err);

    call->options = (struct cameo_predict_options)CAMEO_PREDICT_OPTIONS_INIT;
    if (status == CM_OK)
        status = cm_api_options(&call->options, sizeof call->options, options, &call->err);
    if (status == CM_OK)
        status = cm_guarded(0, &call->err, predict_guarded, call);
    cm_api_stream_close(&call->stream);
    if (report && status == CM_OK)
        cm_api_give(report, &call->report, sizeof call->report);
    return cm_api_done(status, &call->err, err);
}

enum cameo_status cameo_model_predict(const struct cameo_model *model,
                                      struct cameo_dataset *dataset, const char *path,
                                      const struct cameo_predict_options *options,
                                      struct cameo_prediction *report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(dataset, err);
    CM_API_NEED(path, err);
    struct predict_call call = {.model = model, .dataset = dataset, .path = path};

    return run_call(&call, options, report, err);
}

enum cameo_status cameo_model_predict_values(const struct cameo_model *model,
                                             struct cameo_dataset *dataset,
                                             const struct cameo_predict_options *options,
                                             cameo_output_fn *output, void *output_arg,
                                             struct cameo_prediction *report,
                                             struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(dataset, err);
    CM_API_NEED(output, err);
    struct predict_call call = {
        .model = model, .dataset = dataset, .output = output, .output_arg = output_arg};

    return run_call(&call, options, report, err);
}
