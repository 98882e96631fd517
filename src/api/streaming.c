/* Batches of a data set through a session. */
// SPDX-License-Identifier: Apache-2.0
#include "api/streaming.h"

#include "base/memory.h"
#include "models/inference_modes.h"

/* ---- opening ---- */

enum cm_status cm_api_again(const struct cameo_error *from, struct cm_error *err)
{
    return cm_fail(err, (enum cm_status)from->status, "%s", from->message);
}

struct mode_call {
    const struct cameo_model *model;
    bool trains; /* a node is in training mode, or may be */
};

static enum cm_status look_for_modes(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct mode_call *call = arg;
    struct cm_modes modes;

    (void)err;
    cm_modes_find(scratch, call->model->file, &modes);
    call->trains = modes.changes.count > 0;
    return CM_OK;
}

/* What is measured and predicted is what the shipped model gives, which strip() makes. */
static enum cm_status turn_off_modes(struct cm_api_stream *s, const struct cameo_model *model,
                                     struct cm_error *err)
{
    struct mode_call call = {.model = model};
    const struct cameo_edit *report;
    struct cameo_error why;

    CM_TRY(cm_api_guarded(model, look_for_modes, &call, err));
    if (!call.trains)
        return CM_OK;
    if (cameo_model_copy(model, &s->model, &why) != CAMEO_OK ||
        cameo_model_strip_training(s->model, &report, &why) != CAMEO_OK)
        return cm_api_again(&why, err);
    snprintf(s->note, sizeof s->note, "%s", report->changes[0].data);
    return CM_OK;
}

enum cm_status cm_api_stream_open(const struct cameo_model *model,
                                  const struct cameo_stream_options *options,
                                  struct cm_api_stream *out, struct cm_error *err)
{
    struct cameo_error why;

    *out = (struct cm_api_stream){.options = CAMEO_STREAM_OPTIONS_INIT};
    CM_TRY(cm_api_options(&out->options, sizeof out->options, options, err));
    if (out->options.batch_size < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "batches of %lld rows: expected at least 1",
                       (long long)out->options.batch_size);
    if (!out->options.as_is)
        CM_TRY(turn_off_modes(out, model, err));
    if (cameo_session_new(out->model ? out->model : model, out->options.session, &out->session,
                          &why) != CAMEO_OK)
        return cm_api_again(&why, err);
    return CM_OK;
}

static bool is_in_data(const struct cameo_dataset *dataset, const struct cameo_value_info *info)
{
    return cm_dataset_find(dataset->dataset, (struct cm_str){info->name.data, info->name.size}) >=
           0;
}

/* Inputs with a default are fed when the data has an array for them. */
static void list_inputs(struct cm_api_stream *s, const struct cameo_dataset *dataset,
                        const struct cm_trainer_input *extra, size_t n_extra)
{
    for (size_t i = 0; i < s->session->n_inputs; i++) {
        const struct cameo_value_info *info = cameo_session_input(s->session, i);
        const struct cm_type *type = s->session->input_types[i];

        if (info->has_default && !is_in_data(dataset, info))
            continue;
        if (type->kind == CM_KIND_TENSOR && type->rank > 0 && cm_dim_known(type->dims[0]))
            s->fixed = type->dims[0].value;
        s->numbers[s->n_fed] = i;
        s->inputs[s->n_fed++] = (struct cm_trainer_input){{info->name.data, info->name.size}, type};
    }
    s->n_inputs = s->n_fed;
    for (size_t i = 0; i < n_extra; i++)
        s->inputs[s->n_inputs++] = extra[i];
}

enum cm_status cm_api_stream_feed(struct cm_api_stream *s, struct cameo_dataset *dataset,
                                  const struct cm_trainer_input *extra, size_t n_extra,
                                  struct cm_error *err)
{
    const size_t most = s->session->n_inputs + n_extra + 1;

    s->inputs = cm_calloc(most, sizeof *s->inputs);
    s->numbers = cm_calloc(most, sizeof *s->numbers);
    s->feeds = cm_calloc(most, sizeof *s->feeds);
    s->tensors = cm_calloc(most, sizeof *s->tensors);
    if (!s->inputs || !s->numbers || !s->feeds || !s->tensors)
        return cm_fail(err, CM_NO_MEMORY, "no memory for batches");
    list_inputs(s, dataset, extra, n_extra);
    if (!s->n_fed)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model has no input that data could be fed to");
    const struct cm_feeder_options options = {
        .feed = {.batch_size = s->options.batch_size,
                 .last = s->fixed ? CM_LAST_WRAP : CM_LAST_SHORT,
                 .prefetch = true},
        .target = s->target,
        .raw_bytes = s->options.raw_bytes};
    s->samples = cm_dataset_samples(dataset->dataset);
    if (!s->samples)
        return cm_fail(err, CM_BAD_ARGUMENT, "the data set has no samples");
    return cm_feeder_new_for(s->inputs, s->n_inputs, dataset->dataset, &options, &s->feeder, err);
}

void cm_api_stream_close(struct cm_api_stream *s)
{
    cm_feeder_free(s->feeder);
    cameo_session_free(s->session);
    cameo_model_free(s->model);
    cm_free(s->inputs);
    cm_free(s->numbers);
    cm_free(s->feeds);
    cm_free(s->tensors);
    *s = (struct cm_api_stream){0};
}

bool cm_api_stream_fills_up(const struct cm_api_stream *s)
{
    return s->fixed && s->samples % s->fixed != 0;
}

void cm_api_stream_note(const struct cm_api_stream *s, char *text, size_t size)
{
    size_t used = 0;

    *text = 0;
    if (*s->note)
        used = (size_t)snprintf(text, size, "%s", s->note);
    if (cm_api_stream_fills_up(s) && used < size)
        used += (size_t)snprintf(
            text + used, size - used,
            "%sthe model takes batches of %lld rows: samples from the beginning "
            "fill up the last one (%lld of them), and their results are not "
            "used",
            used ? "; " : "", (long long)s->fixed, (long long)(s->fixed - s->samples % s->fixed));
    for (size_t i = 0; i < s->n_fed && used + 20 < size; i++)
        if (cm_feeder_scales(s->feeder, i))
            used += (size_t)snprintf(text + used, size - used,
                                     "%sinput '%.*s' is fed bytes divided by 255", used ? "; " : "",
                                     CM_STR_FMT(s->inputs[i].name));
}

/* ---- running ---- */

enum cm_status cm_api_stream_next(struct cm_api_stream *s, struct cm_error *err)
{
    const struct cameo_stream_options *o = &s->options;
    int64_t rows;

    s->done += s->rows;
    if (s->rows && o->progress && !o->progress(o->progress_arg, s->done, s->samples))
        return cm_fail(err, CM_CANCELLED, "stopped after %lld of %lld samples", (long long)s->done,
                       (long long)s->samples);
    s->rows = 0;
    if (s->done >= s->samples)
        return CM_OK;
    CM_TRY(cm_feeder_next(s->feeder, &s->batch, &rows, err));
    s->rows = rows < s->samples - s->done ? rows : s->samples - s->done;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const struct cm_tensor *t = s->batch[i];

        s->tensors[i] = cameo_tensor_of((enum cameo_dtype)t->type, t->shape.rank, t->shape.dims,
                                        t->data, cm_tensor_bytes(t));
        s->feeds[i] = cameo_feed_tensor(NULL, &s->tensors[i]);
        s->feeds[i].index = i < s->n_fed ? s->numbers[i] : 0;
    }
    return CM_OK;
}

enum cm_status cm_api_stream_run(struct cm_api_stream *s, struct cameo_fetch *fetches,
                                 size_t fetch_count, struct cm_error *err)
{
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    struct cameo_error why;

    options.cancel = s->options.cancel;
    if (cameo_session_run(s->session, s->feeds, s->n_fed, fetches, fetch_count, &options, &why) !=
        CAMEO_OK)
        return cm_api_again(&why, err);
    return CM_OK;
}
