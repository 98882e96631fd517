/* How good a model is on a data set. */
// SPDX-License-Identifier: Apache-2.0
#include "api/streaming.h"

#include "base/array.h"
#include "base/memory.h"
#include "evaluate/metrics.h"
#include "evaluate/predictions.h"

#include <assert.h>

static_assert(sizeof(struct cameo_class_count) == sizeof(struct cm_class_count),
              "counts are public as they are");

struct cameo_evaluation {
    struct cm_arena arena; /* everything below lives here */
    struct cm_metrics_result result;
    struct cameo_metric *metrics;
    CM_ARRAY(const char *) notes;
};

/* Who computes the loss. */
enum loss_source { LOSS_OF_METRICS, LOSS_OF_TRAINING, LOSS_OF_FILE, LOSS_OF_OUTPUT };

enum { NO_OUTPUT = -1 };

struct evaluate_call {
    struct cameo_model *model;
    struct cameo_dataset *dataset;
    struct cameo_evaluate_options options;
    struct cameo_evaluation *made;
    struct cm_metrics *metrics;
    struct cm_api_stream stream;

    enum loss_source loss;
    struct cameo_trainer *trainer;
    struct cameo_model *loss_model;
    struct cameo_session *loss_session;
    struct cm_type target_type;
    struct cm_trainer_input *extra; /* beside the session's inputs; in the arena of made */
    size_t n_extra;
    size_t target; /* number of the input that is the truth */
    bool has_target;
    size_t *trainer_fed; /* by input of the trainer: of the stream */
    int labels, scores;  /* outputs, or NO_OUTPUT */
    int loss_output;
    struct cm_error err;
};

static void note(struct evaluate_call *call, const char *format, ...) CM_PRINTF(2, 3);

static void note(struct evaluate_call *call, const char *format, ...)
{
    char text[800];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *CM_PUSH(&call->made->arena, &call->made->notes) =
        cm_arena_str(&call->made->arena, cm_str(text)).data;
}

static bool is_named(const char *list, const char *name)
{
    const size_t size = strlen(name);

    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || !at[size]))
            return true;
    return false;
}

/* ---- the loss ---- */

static enum cm_status open_loss_file(struct evaluate_call *call, struct cm_error *err)
{
    struct cameo_error why;

    if (cameo_model_load(call->options.loss, NULL, &call->loss_model, &why) != CAMEO_OK ||
        cameo_session_new(call->loss_model, call->stream.options.session, &call->loss_session,
                          &why) != CAMEO_OK)
        return cm_error_context(err, cm_api_again(&why, err), "loss");
    const struct cameo_session *session = call->loss_session;
    int prediction = -1, target = -1;
    for (size_t i = 0; i < session->n_inputs; i++) {
        const char *name = cameo_session_input(session, i)->name.data;

        prediction = strcmp(name, "prediction") == 0 ? (int)i : prediction;
        target = strcmp(name, "target") == 0 ? (int)i : target;
    }
    if (prediction < 0 || target < 0 || session->n_inputs != 2 || session->n_outputs != 1)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "loss '%s': expected a model with inputs 'prediction' and 'target' and one "
                       "output",
                       call->options.loss);
    call->target_type = *session->input_types[target];
    return CM_OK;
}

static enum cm_status find_output(const struct evaluate_call *call, const char *name, int *out,
                                  struct cm_error *err)
{
    const struct cameo_session *session = call->stream.session;
    char names[300] = "";
    size_t used = 0;

    for (size_t i = 0; i < session->n_outputs; i++) {
        const struct cameo_text is = session->outputs[i].name;

        if (strcmp(is.data, name) == 0) {
            *out = (int)i;
            return CM_OK;
        }
        if (used + is.size + 8 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", used ? ", " : "",
                                     is.data);
    }
    return cm_fail(err, CM_NOT_FOUND, "the model has no output '%s', expected %s", name, names);
}

/* A training that cannot be made ready here is no reason to judge nothing. */
static void open_training(struct evaluate_call *call)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_session_options session = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_error why;

    if (cm_api_options(&session, sizeof session, call->stream.options.session, &call->err))
        return;
    options.threads = session.threads;
    options.memory_limit = session.memory_limit;
    options.registry = session.registry;
    if (session.backend && strcmp(session.backend, "plain") != 0)
        options.backend = session.backend;
    if (cameo_trainer_new(call->model, &options, &call->trainer, &why) != CAMEO_OK)
        note(call, "the loss of the model's training is left out: %s", why.message);
    else if (cameo_trainer_loss(call->trainer) < cameo_trainer_scalar_count(call->trainer))
        call->loss = LOSS_OF_TRAINING;
}

static enum cm_status open_loss(struct evaluate_call *call, struct cm_error *err)
{
    const char *loss = call->options.loss;
    const size_t size = loss ? strlen(loss) : 0;

    call->loss_output = NO_OUTPUT;
    if (loss && strncmp(loss, "output:", 7) == 0) {
        call->loss = LOSS_OF_OUTPUT;
        return find_output(call, loss + 7, &call->loss_output, err);
    }
    if (loss && strchr(loss, '.') && size > 5) {
        call->loss = LOSS_OF_FILE;
        return open_loss_file(call, err);
    }
    if (!loss && call->model->summary.training_count &&
        (!call->options.metrics || is_named(call->options.metrics, "loss")))
        open_training(call);
    return CM_OK;
}

/* ---- what is compared ---- */

/* Labels are integers, one a row or position; scores are floats, or maps of them. */
static bool is_labels(const struct cameo_value_info *info)
{
    return info->kind == CAMEO_KIND_TENSOR &&
           (info->dtype == CAMEO_INT64 || info->dtype == CAMEO_INT32 || info->dtype == CAMEO_BOOL);
}

static bool is_scores(const struct cameo_value_info *info)
{
    if (info->kind == CAMEO_KIND_SEQUENCE)
        return strncmp(info->type.data, "seq(map(", 8) == 0;
    return info->kind == CAMEO_KIND_TENSOR &&
           cm_dtype_info((enum cm_dtype)info->dtype)->kind == CM_CLASS_FLOAT;
}

static enum cm_status choose_outputs(struct evaluate_call *call, struct cm_error *err)
{
    const struct cameo_session *session = call->stream.session;
    const char *wanted = call->options.output;
    size_t n_labels = 0, n_scores = 0;
    int only = NO_OUTPUT;

    call->labels = call->scores = NO_OUTPUT;
    if (wanted)
        CM_TRY(find_output(call, wanted, &only, err));
    for (size_t i = 0; i < session->n_outputs; i++) {
        const struct cameo_value_info *info = &session->outputs[i];

        if ((wanted && only != (int)i) || call->loss_output == (int)i)
            continue;
        if (is_labels(info) && ++n_labels)
            call->labels = (int)i;
        else if (is_scores(info) && ++n_scores)
            call->scores = (int)i;
    }
    if (n_labels > 1 || n_scores > 1)
        return cm_fail(
            err, CM_BAD_ARGUMENT,
            "the model has %zu outputs, and more than one could be judged: name the output",
            session->n_outputs);
    if (!n_labels && !n_scores)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       wanted ? "output '%s' holds neither numbers nor maps of numbers"
                              : "no output%s holds numbers or maps of numbers",
                       wanted ? wanted : "");
    if (call->loss == LOSS_OF_FILE && !n_scores)
        return cm_fail(err, CM_BAD_ARGUMENT, "a loss needs an output of floats");
    return CM_OK;
}

/* What the data must have beside the inputs of the model: for a trainer all that it is fed, else
 * the truth. */
static enum cm_status list_extra(struct evaluate_call *call, struct cm_error *err)
{
    const size_t count = call->trainer ? cameo_trainer_input_count(call->trainer) : 0;
    struct cm_arena *arena = &call->made->arena;
    const char *target = call->options.target;
    size_t found = SIZE_MAX;

    call->extra = CM_NEW_ARRAY(arena, struct cm_trainer_input, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct cm_trainer_input *input = cm_trainer_input(call->trainer->trainer, i);
        bool known = false;

        for (size_t k = 0; k < call->stream.session->n_inputs && !known; k++)
            known = cm_str_is(input->name, cameo_session_input(call->stream.session, k)->name.data);
        if (known)
            continue;
        if (target && cm_str_is(input->name, target))
            found = call->n_extra;
        call->extra[call->n_extra++] = *input;
    }
    call->has_target = call->options.metrics || call->loss != LOSS_OF_OUTPUT;
    if (call->n_extra > 1 && !target)
        return cm_fail(
            err, CM_BAD_ARGUMENT,
            "the training is fed %zu arrays beside the model's inputs: name the one that "
            "holds the truth",
            call->n_extra);
    call->target = call->n_extra == 1 ? 0 : found;
    if (call->has_target && call->target == SIZE_MAX) {
        call->target = call->n_extra;
        call->extra[call->n_extra++] = (struct cm_trainer_input){
            cm_arena_str(arena, cm_str(target ? target : "target")), &call->target_type};
    }
    return CM_OK;
}

/* ---- the loop ---- */

static enum cm_status judge(struct evaluate_call *call, const struct cm_datum *labels,
                            const struct cm_datum *scores, struct cm_error *err)
{
    const struct cm_api_stream *s = &call->stream;
    const struct cm_tensor *keys = NULL;
    struct cm_tensor matrix = {0};
    enum cm_status status = CM_OK;

    if (scores) {
        CM_TRY(cm_error_context(err, cm_score_matrix(scores, &matrix, &keys, err), "output '%s'",
                                s->session->outputs[call->scores].name.data));
        if (keys && keys->type == CM_INT64)
            status = cm_metrics_set_classes(call->metrics, keys->data,
                                            (size_t)cm_tensor_count(keys), err);
    }
    if (status == CM_OK)
        status =
            cm_metrics_add(call->metrics, labels ? &labels->tensor : NULL, scores ? &matrix : NULL,
                           s->batch[s->n_fed + call->target], s->rows, err);
    cm_tensor_drop(&matrix);
    return status;
}

static enum cm_status file_loss(struct evaluate_call *call, const struct cameo_value *scores,
                                double *out, struct cm_error *err)
{
    const struct cm_api_stream *s = &call->stream;
    const struct cameo_feed feeds[] = {
        cameo_feed_value("prediction", scores),
        cameo_feed_tensor("target", &s->tensors[s->n_fed + call->target])};
    struct cameo_fetch fetch = CAMEO_FETCH_INIT;
    struct cameo_error why;

    if (cameo_session_run(call->loss_session, feeds, 2, &fetch, 1, NULL, &why) != CAMEO_OK)
        return cm_error_context(err, cm_api_again(&why, err), "loss");
    *out = cameo_value_real(fetch.value, 0);
    const int64_t count = cameo_value_count(fetch.value);
    cameo_value_free(fetch.value);
    return count == 1 ? CM_OK
                      : cm_fail(err, CM_BAD_ARGUMENT, "the loss has %lld numbers, expected 1",
                                (long long)count);
}

static enum cm_status training_loss(struct evaluate_call *call, double *out, struct cm_error *err)
{
    const size_t count = cameo_trainer_input_count(call->trainer);
    struct cameo_feed *feeds = cm_calloc(count + 1, sizeof *feeds);
    struct cameo_measure measure = CAMEO_MEASURE_INIT;
    struct cameo_error why;

    if (!feeds)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a batch");
    for (size_t i = 0; i < count; i++) {
        feeds[i] = cameo_feed_tensor(NULL, &call->stream.tensors[call->trainer_fed[i]]);
        feeds[i].index = i;
    }
    const enum cameo_status status =
        cameo_trainer_evaluate(call->trainer, feeds, count, &measure, &why);
    cm_free(feeds);
    *out = measure.loss;
    return status ? cm_error_context(err, cm_api_again(&why, err), "loss") : CM_OK;
}

static enum cm_status add_batch(struct evaluate_call *call, struct cameo_fetch *fetches,
                                struct cm_error *err)
{
    const struct cameo_value *labels = call->labels >= 0 ? fetches[0].value : NULL;
    const struct cameo_value *scores = call->scores >= 0 ? fetches[call->labels >= 0].value : NULL;
    double loss = 0;

    if (call->loss == LOSS_OF_OUTPUT) {
        const struct cameo_value *value = fetches[(call->labels >= 0) + (call->scores >= 0)].value;

        if (cameo_value_count(value) != 1)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "output '%s' has %lld numbers, expected 1 for a loss",
                           call->options.loss + 7, (long long)cameo_value_count(value));
        loss = cameo_value_real(value, 0);
    }
    if (call->loss == LOSS_OF_TRAINING)
        CM_TRY(training_loss(call, &loss, err));
    if (call->loss == LOSS_OF_FILE)
        CM_TRY(file_loss(call, scores, &loss, err));
    if (call->loss)
        cm_metrics_add_loss(call->metrics, loss, call->stream.rows);
    if (!call->has_target) {
        cm_metrics_add_rows(call->metrics, call->stream.rows);
        return CM_OK;
    }
    return judge(call, labels ? cm_api_value(labels) : NULL, scores ? cm_api_value(scores) : NULL,
                 err);
}

static enum cm_status run_batches(struct evaluate_call *call, struct cm_error *err)
{
    struct cameo_fetch fetches[3];
    const int outputs[] = {call->labels, call->scores, call->loss_output};

    for (;;) {
        size_t count = 0;

        CM_TRY(cm_api_stream_next(&call->stream, err));
        if (!call->stream.rows)
            return CM_OK;
        for (size_t i = 0; i < 3; i++)
            if (outputs[i] >= 0) {
                fetches[count] = cameo_fetch_value(NULL);
                fetches[count++].index = (size_t)outputs[i];
            }
        CM_TRY(cm_api_stream_run(&call->stream, fetches, count, err));
        const enum cm_status status = add_batch(call, fetches, err);
        for (size_t i = 0; i < count; i++)
            cameo_value_free(fetches[i].value);
        CM_TRY(status);
    }
}

/* ---- the result ---- */

static void tell(struct evaluate_call *call)
{
    const struct cameo_evaluation *made = call->made;
    const struct cameo_value_info *outputs = call->stream.session->outputs;
    char text[700];

    if (call->stream.session->n_outputs > 1 && call->labels >= 0 && call->scores >= 0)
        note(call, "labels are output '%s', scores are output '%s'",
             outputs[call->labels].name.data, outputs[call->scores].name.data);
    if (made->result.probabilities)
        note(call, "the scores are probabilities: cross-entropy takes their logarithms");
    if (call->loss == LOSS_OF_TRAINING)
        note(call, "the loss is that of the model's training");
    cm_api_stream_note(&call->stream, text, sizeof text);
    if (*text)
        note(call, "%s", text);
}

static enum cm_status finish(struct evaluate_call *call, struct cm_error *err)
{
    struct cameo_evaluation *made = call->made;

    CM_TRY(cm_metrics_result(call->metrics, &made->arena, &made->result, err));
    made->metrics = CM_NEW_ARRAY(&made->arena, struct cameo_metric, made->result.count + 1);
    for (size_t i = 0; i < made->result.count; i++) {
        const struct cm_metric *from = &made->result.items[i];

        made->metrics[i] =
            (struct cameo_metric){from->name, from->average, from->value, from->bound};
    }
    tell(call);
    return CM_OK;
}

static enum cm_status evaluate(struct evaluate_call *call, struct cm_error *err)
{
    const struct cameo_evaluate_options *o = &call->options;

    call->target_type = (struct cm_type){.kind = CM_KIND_TENSOR, .rank = CM_RANK_UNKNOWN};
    CM_TRY(cm_api_stream_open(call->model, o->stream, &call->stream, err));
    CM_TRY(open_loss(call, err));
    const struct cm_metrics_options options = {.names = o->metrics,
                                               .loss = call->loss ? NULL : o->loss,
                                               .class_axis = o->class_axis,
                                               .ignored = o->ignored,
                                               .names_of_classes = o->classes,
                                               .n_classes = o->class_count};
    CM_TRY(cm_metrics_new(&options, &call->metrics, err));
    CM_TRY(list_extra(call, err));
    if (call->has_target)
        CM_TRY(choose_outputs(call, err));
    else
        call->labels = call->scores = NO_OUTPUT;
    call->stream.target = call->trainer ? o->target : NULL;
    CM_TRY(cm_api_stream_feed(&call->stream, call->dataset, call->extra, call->n_extra, err));
    if (call->loss && cm_api_stream_fills_up(&call->stream))
        return cm_fail(err, CM_UNSUPPORTED,
                       "the model takes batches of %lld rows and %lld samples leave a shorter one: "
                       "a loss that is computed for whole batches cannot be told; name one of the "
                       "built-in losses",
                       (long long)call->stream.fixed, (long long)call->stream.samples);
    if (call->loss == LOSS_OF_TRAINING) {
        const size_t count = cameo_trainer_input_count(call->trainer);

        call->trainer_fed = CM_NEW_ARRAY(&call->made->arena, size_t, count + 1);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < call->stream.n_inputs; k++)
                if (cm_str_equal(cm_trainer_input(call->trainer->trainer, i)->name,
                                 call->stream.inputs[k].name))
                    call->trainer_fed[i] = k;
    }
    CM_TRY(run_batches(call, err));
    return finish(call, err);
}

static enum cm_status evaluate_guarded(struct cm_guard *guard, void *arg)
{
    struct evaluate_call *call = arg;

    cm_arena_init(&call->made->arena, guard);
    return evaluate(call, &call->err);
}

enum cameo_status cameo_model_evaluate(struct cameo_model *model, struct cameo_dataset *dataset,
                                       const struct cameo_evaluate_options *options,
                                       struct cameo_evaluation **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(dataset, err);
    CM_API_NEED(out, err);
    struct evaluate_call call = {
        .model = model, .dataset = dataset, .options = CAMEO_EVALUATE_OPTIONS_INIT};

    *out = NULL;
    enum cm_status status = cm_api_options(&call.options, sizeof call.options, options, &call.err);
    if (status == CM_OK) {
        call.made = cm_calloc(1, sizeof *call.made);
        status = call.made ? cm_guarded(0, &call.err, evaluate_guarded, &call)
                           : cm_fail(&call.err, CM_NO_MEMORY, "no memory for an evaluation");
    }
    cm_metrics_free(call.metrics);
    cameo_trainer_free(call.trainer);
    cameo_session_free(call.loss_session);
    cameo_model_free(call.loss_model);
    cm_api_stream_close(&call.stream);
    if (status)
        cameo_evaluation_free(call.made);
    else
        *out = call.made;
    return cm_api_done(status, &call.err, err);
}

void cameo_evaluation_free(struct cameo_evaluation *evaluation)
{
    if (!evaluation)
        return;
    cm_arena_release(&evaluation->arena);
    cm_free(evaluation);
}

int64_t cameo_evaluation_samples(const struct cameo_evaluation *evaluation)
{
    return evaluation->result.samples;
}

const struct cameo_metric *cameo_evaluation_metric(const struct cameo_evaluation *evaluation,
                                                   size_t index)
{
    return index < evaluation->result.count ? &evaluation->metrics[index] : NULL;
}

const struct cameo_class_count *cameo_evaluation_class(const struct cameo_evaluation *evaluation,
                                                       size_t index)
{
    const struct cm_metrics_result *result = &evaluation->result;

    return index < result->n_classes
               ? (const struct cameo_class_count *)(const void *)&result->classes[index]
               : NULL;
}

int64_t cameo_evaluation_confused(const struct cameo_evaluation *evaluation, size_t actual,
                                  size_t predicted)
{
    const struct cm_metrics_result *result = &evaluation->result;

    if (!result->confusion || actual >= result->n_classes || predicted >= result->n_classes)
        return -1;
    return (int64_t)result->confusion[actual * result->n_classes + predicted];
}

const char *cameo_evaluation_note(const struct cameo_evaluation *evaluation, size_t index)
{
    return index < evaluation->notes.count ? evaluation->notes.items[index] : NULL;
}
