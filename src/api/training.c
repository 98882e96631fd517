/* Trainers: made, asked, stepped. */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"

#include "base/diagnostics.h"
#include "base/memory.h"
#include "train/plateau.h"

struct new_call {
    struct cameo_trainer *trainer;
    struct cameo_trainer_options options;
    struct cm_findings findings; /* in the trainer's arena */
    struct cm_error err;
};

/* ---- making ---- */

static void describe_input(struct cm_arena *arena, const struct cm_trainer_input *input,
                           struct cameo_value_info *out)
{
    const struct cm_type *type = input->type;
    /* Symbols have no names here: a size that is not fixed prints as "?". */
    struct cm_dim plain[CM_MAX_RANK];
    struct cm_type shown = *type;

    out->name = cm_api_text(arena, input->name);
    out->doc_string = cm_api_text(arena, CM_STR_NONE);
    out->kind = (enum cameo_kind)type->kind;
    out->rank = -1;
    if (type->kind == CM_KIND_TENSOR && type->rank >= 0 && type->rank <= CM_MAX_RANK) {
        struct cameo_dim *dims = CM_NEW_ARRAY(arena, struct cameo_dim, (size_t)type->rank);

        for (int i = 0; i < type->rank; i++) {
            plain[i] = cm_dim_known(type->dims[i]) ? type->dims[i] : CM_DIM_ANY;
            dims[i].size = plain[i].value;
            dims[i].symbol = cm_api_text(arena, CM_STR_NONE);
        }
        shown.dims = plain;
        out->rank = type->rank;
        out->dims = dims;
    }
    if (type->kind == CM_KIND_TENSOR)
        out->dtype = (enum cameo_dtype)type->dtype;
    struct cm_symbols *symbols = cm_symbols_new(arena);
    const struct cm_str text = cm_type_print(arena, symbols, &shown);
    out->type = (struct cameo_text){text.data, text.size};
}

static void describe_variable(struct cm_arena *arena, const struct cm_trainer *trainer, size_t i,
                              struct cameo_initializer *out)
{
    const struct cm_tensor *tensor = cm_trainer_state(trainer, i);
    int64_t *dims = CM_NEW_ARRAY(arena, int64_t, (size_t)tensor->shape.rank);

    for (int d = 0; d < tensor->shape.rank; d++)
        dims[d] = tensor->shape.dims[d];
    *out = (struct cameo_initializer){.name = cm_api_text(arena, cm_trainer_state_name(trainer, i)),
                                      .dtype = (enum cameo_dtype)tensor->type,
                                      .rank = (size_t)tensor->shape.rank,
                                      .dims = dims,
                                      .elements = cm_tensor_count(tensor),
                                      .bytes = cm_tensor_bytes(tensor),
                                      .location = {"", 0},
                                      .is_state = true,
                                      .training = -1,
                                      .doc_string = {"", 0},
                                      .original = {"", 0},
                                      .folding = {"", 0}};
}

static void describe(struct cameo_trainer *t)
{
    struct cm_arena *arena = &t->arena;
    const size_t inputs = cm_trainer_input_count(t->trainer);
    const size_t variables = cm_trainer_state_count(t->trainer);
    const size_t scalars = cm_trainer_scalar_count(t->trainer);

    t->inputs = CM_NEW_ARRAY(arena, struct cameo_value_info, inputs);
    t->fed = CM_NEW_ARRAY(arena, struct cm_tensor, inputs);
    t->in = CM_NEW_ARRAY(arena, const struct cm_tensor *, inputs);
    for (size_t i = 0; i < inputs; i++)
        describe_input(arena, cm_trainer_input(t->trainer, i), &t->inputs[i]);
    t->variables = CM_NEW_ARRAY(arena, struct cameo_initializer, variables);
    for (size_t i = 0; i < variables; i++)
        describe_variable(arena, t->trainer, i, &t->variables[i]);
    cm_api_describe_parameters(t);
    t->scalars = CM_NEW_ARRAY(arena, struct cm_trainer_scalar, scalars);
    t->scalar_names = CM_NEW_ARRAY(arena, const char *, scalars);
    for (size_t i = 0; i < scalars; i++)
        t->scalar_names[i] = cm_api_text(arena, cm_trainer_scalar_name(t->trainer, i)).data;
}

/* Graphs are made, and conditions noted, when the caller's text may be gone. */
static void keep_text(struct cm_arena *arena, const char **text)
{
    *text = *text ? cm_arena_str(arena, cm_str(*text)).data : NULL;
}

static enum cm_status new_guarded(struct cm_guard *guard, void *arg)
{
    struct new_call *call = arg;
    struct cameo_trainer *t = call->trainer;

    cm_arena_init(&t->arena, guard);
    call->findings.arena = &t->arena;
    keep_text(&t->arena, &t->options.backend);
    keep_text(&t->arena, &t->options.without_passes);
    keep_text(&t->arena, &t->options.with_passes);
    struct cm_trainer_options options = {
        .threads = t->options.threads,
        .memory_limit = t->options.memory_limit,
        .backend = t->options.backend,
        .backend_versions = cm_api_backend_versions(&t->arena, t->options.backend),
        .seed = t->options.seed,
        .registry = cm_api_operators(t->options.registry, t->model->file),
        .check_finite = !t->options.allow_not_finite,
        .split = t->options.gradients,
        .without_passes = t->options.without_passes,
        .with_passes = t->options.with_passes,
        .findings = &call->findings};
    if (!options.registry)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for the operators");
    struct cm_model_file *file;
    CM_TRY(cm_api_today(t->model->file, &t->arena, &file, &call->err));
    if (!t->options.registry) /* the graph that the preparation made, if that is still the model */
        options.prepared = t->model->prepared;
    t->model->prepared = NULL;
    CM_TRY(cm_trainer_new(&t->arena, file, &options, &t->trainer, &call->err));
    describe(t);
    return CM_OK;
}

static enum cm_status check_options(struct cameo_trainer_options *options,
                                    const struct cameo_trainer_options *given, struct cm_error *err)
{
    *options = (struct cameo_trainer_options)CAMEO_TRAINER_OPTIONS_INIT;
    CM_TRY(cm_api_options(options, sizeof *options, given, err));
    if (options->backend && strcmp(options->backend, "plain") == 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "the backend 'plain' runs models and cannot train");
    CM_TRY(cm_api_check_threads(options->threads, err));
    return cm_api_check_backend(options->backend, err);
}

/* call->trainer is what there is of the trainer, for cameo_trainer_free; or NULL. */
static enum cm_status open_trainer(struct new_call *call, struct cameo_model *model,
                                   const struct cameo_trainer_options *options)
{
    const enum cm_status status = check_options(&call->options, options, &call->err);

    if (call->options.findings)
        *call->options.findings = NULL;
    CM_TRY(status);
    call->trainer = cm_calloc(1, sizeof *call->trainer);
    if (!call->trainer)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for a trainer");
    call->trainer->model = model;
    call->trainer->options = call->options;
    return cm_api_locked(model, new_guarded, call, &call->err);
}

/* When memory gave out, the list is gone with its arena. */
static bool is_listed(enum cm_status status)
{
    return status == CM_OK || status == CM_BAD_MODEL || status == CM_UNSUPPORTED;
}

enum cameo_status cameo_trainer_new(struct cameo_model *model,
                                    const struct cameo_trainer_options *options,
                                    struct cameo_trainer **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct new_call call = {.trainer = NULL};
    enum cm_status status = open_trainer(&call, model, options);

    *out = status ? NULL : call.trainer;
    if (status == CM_OK)
        cm_api_log_ready(model, "a trainer", call.options.backend);
    else if (call.options.findings && is_listed(status))
        status = cm_api_refused(model, &call.findings, status, call.options.findings, &call.err);
    status = cm_api_about(model, status, &call.err);
    if (status)
        cameo_trainer_free(call.trainer);
    return cm_api_done(status, &call.err, err);
}

enum cameo_status cameo_model_training_blockers(struct cameo_model *model,
                                                const struct cameo_trainer_options *options,
                                                struct cameo_findings **out,
                                                struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct new_call call = {.trainer = NULL};
    enum cm_status status = open_trainer(&call, model, options);

    *out = NULL;
    if (is_listed(status))
        status = cm_api_findings(model, &call.findings, status, out, &call.err);
    cameo_trainer_free(call.trainer);
    return cm_api_done(status, &call.err, err);
}

void cameo_trainer_free(struct cameo_trainer *trainer)
{
    if (!trainer)
        return;
    cm_arena_release(&trainer->arena);
    cm_free(trainer);
}

/* ---- asking ---- */

size_t cameo_trainer_input_count(const struct cameo_trainer *trainer)
{
    return cm_trainer_input_count(trainer->trainer);
}

const struct cameo_value_info *cameo_trainer_input(const struct cameo_trainer *trainer,
                                                   size_t index)
{
    return index < cameo_trainer_input_count(trainer) ? &trainer->inputs[index] : NULL;
}

size_t cameo_trainer_variable_count(const struct cameo_trainer *trainer)
{
    return cm_trainer_state_count(trainer->trainer);
}

const struct cameo_initializer *cameo_trainer_variable(const struct cameo_trainer *trainer,
                                                       size_t index)
{
    return index < cameo_trainer_variable_count(trainer) ? &trainer->variables[index] : NULL;
}

size_t cameo_trainer_find_variable(const struct cameo_trainer *trainer, const char *name)
{
    const int index = name ? cm_trainer_state_find(trainer->trainer, cm_str(name)) : -1;

    return index < 0 ? cameo_trainer_variable_count(trainer) : (size_t)index;
}

static enum cm_status check_values(const struct cameo_trainer *trainer, size_t index,
                                   const void *values, size_t size, struct cm_error *err)
{
    const struct cameo_initializer *row = cameo_trainer_variable(trainer, index);

    if (!row)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no variable %zu, the model has %zu", index,
                       cameo_trainer_variable_count(trainer));
    if (size != row->bytes || (size && !values))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "variable '%.200s' has %llu bytes of values, but %zu bytes were passed",
                       row->name.data, (unsigned long long)row->bytes, values ? size : 0);
    return CM_OK;
}

enum cameo_status cameo_trainer_read_variable(const struct cameo_trainer *trainer, size_t index,
                                              void *values, size_t size, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(values, size, err);
    struct cm_error reason = {0};
    const enum cm_status status = check_values(trainer, index, values, size, &reason);

    if (status == CM_OK && size)
        memcpy(values, cm_trainer_state(trainer->trainer, index)->data, size);
    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_trainer_set_variable(struct cameo_trainer *trainer, size_t index,
                                             const void *values, size_t size,
                                             struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(values, size, err);
    struct cm_error reason = {0};
    enum cm_status status = check_values(trainer, index, values, size, &reason);

    if (status == CM_OK) {
        struct cm_tensor value = *cm_trainer_state(trainer->trainer, index);
        value.data = (void *)(uintptr_t)values; /* only read */
        status = cm_trainer_set_state(trainer->trainer, index, &value, &reason);
    }
    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_trainer_add_validation(struct cameo_trainer *trainer, double loss,
                                               struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    struct cm_error reason = {0};

    return cm_api_done(cm_trainer_add_validation(trainer->trainer, loss, &reason), &reason, err);
}

size_t cameo_trainer_scalar_count(const struct cameo_trainer *trainer)
{
    return cm_trainer_scalar_count(trainer->trainer);
}

const char *cameo_trainer_scalar_name(const struct cameo_trainer *trainer, size_t index)
{
    return index < cameo_trainer_scalar_count(trainer) ? trainer->scalar_names[index] : NULL;
}

size_t cameo_trainer_loss(const struct cameo_trainer *trainer)
{
    const int loss = cm_trainer_loss(trainer->trainer);

    return loss < 0 ? cameo_trainer_scalar_count(trainer) : (size_t)loss;
}

uint64_t cameo_trainer_steps(const struct cameo_trainer *trainer)
{
    return cm_trainer_steps(trainer->trainer);
}

void cameo_trainer_set_cancel(struct cameo_trainer *trainer, struct cameo_cancel *cancel)
{
    cm_trainer_set_cancel(trainer->trainer, cancel ? &cancel->set : NULL);
}

void cameo_trainer_set_step(struct cameo_trainer *trainer, cameo_step_fn *step, void *step_arg)
{
    trainer->listener = (struct cm_api_listener){.step = step, .arg = step_arg};
    cm_trainer_set_step(trainer->trainer, step ? cm_api_tell_step : NULL, &trainer->listener);
}

/* ---- feeding ---- */

static enum cm_status find_input(const struct cameo_trainer *t, const struct cameo_feed *feed,
                                 size_t *out, struct cm_error *err)
{
    const size_t count = cameo_trainer_input_count(t);
    char names[400] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        *out = i;
        if (feed->name ? strcmp(t->inputs[i].name.data, feed->name) == 0 : feed->index == i)
            return CM_OK;
        if (used < 300)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.60s'",
                                     used ? ", " : "", t->inputs[i].name.data);
    }
    if (feed->name)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no input '%.200s'; a step takes %s",
                       feed->name, count ? names : "none");
    return cm_fail(err, CM_BAD_ARGUMENT, "there is no input %zu; a step takes %s", feed->index,
                   count ? names : "none");
}

/* What is fed, in place where it can be; then out holds no reference, and otherwise a copy. */
static enum cm_status borrow(const struct cameo_feed *feed, const char *name, bool only_shapes,
                             struct cm_tensor *out, struct cm_error *err)
{
    struct cameo_tensor lent;

    if (feed->value) {
        const struct cm_datum *datum = cm_api_value(feed->value);

        if (datum->kind != CM_KIND_TENSOR)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "input '%.200s' is fed with something that is not a tensor", name);
        *out = datum->tensor;
        out->buffer = NULL;
        return CM_OK;
    }
    enum cm_status status = cm_api_check_tensor(feed->tensor, &lent, out, err);
    if (status == CM_OK && lent.dtype == CAMEO_STRING)
        status = cm_fail(err, CM_BAD_ARGUMENT, "strings cannot be trained on");
    if (status == CM_OK && !only_shapes)
        status = cm_api_use_memory(&lent, out, err);
    return cm_error_context(err, status, "input '%.200s'", name);
}

void cm_api_unfeed_trainer(struct cameo_trainer *t)
{
    for (size_t i = 0; i < cameo_trainer_input_count(t); i++)
        cm_tensor_drop(&t->fed[i]);
}

enum cm_status cm_api_feed_trainer(struct cameo_trainer *t, const struct cameo_feed *feeds,
                                   size_t feed_count, bool only_shapes, struct cm_error *err)
{
    const size_t count = cameo_trainer_input_count(t);
    char missing[500] = "";
    size_t used = 0;

    cm_api_unfeed_trainer(t);
    memset(t->in, 0, count * sizeof *t->in);
    for (size_t f = 0; f < feed_count; f++) {
        struct cameo_feed feed = CAMEO_FEED_INIT;
        size_t i = 0;

        CM_TRY(cm_api_item(&feed, sizeof feed, feeds, f, err));
        CM_TRY(find_input(t, &feed, &i, err));
        if (t->in[i])
            return cm_fail(err, CM_BAD_ARGUMENT, "input '%.200s' is fed twice",
                           t->inputs[i].name.data);
        CM_TRY(borrow(&feed, t->inputs[i].name.data, only_shapes, &t->fed[i], err));
        t->in[i] = &t->fed[i];
    }
    for (size_t i = 0; i < count; i++)
        if (!t->in[i] && used < 350)
            used +=
                (size_t)snprintf(missing + used, sizeof missing - used, "%s'%.60s' (%.80s)",
                                 used ? ", " : "", t->inputs[i].name.data, t->inputs[i].type.data);
    return used ? cm_fail(err, CM_BAD_ARGUMENT, "inputs are missing: %s", missing) : CM_OK;
}

enum cm_status cm_api_fed_trainer(struct cameo_trainer *trainer, const struct cameo_feed *feeds,
                                  size_t feed_count, enum cm_status status)
{
    cm_api_unfeed_trainer(trainer);
    if (status == CM_OK)
        cm_api_take_over(feeds, feed_count);
    return status;
}

/* ---- doing ---- */

struct stored_call {
    struct cm_trainer *trainer;
    struct cm_error err;
};

static enum cm_status stored_guarded(struct cm_guard *guard, void *arg)
{
    struct stored_call *call = arg;

    (void)guard;
    return cm_trainer_take_stored(call->trainer, &call->err);
}

enum cameo_status cameo_trainer_initialize(struct cameo_trainer *trainer, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    struct stored_call call = {.trainer = trainer->trainer};
    enum cm_status status = cm_api_locked(trainer->model, stored_guarded, &call, &call.err);

    if (status == CM_OK)
        status = cm_trainer_run_initialization(trainer->trainer, &call.err);
    return cm_api_done(status, &call.err, err);
}

enum cameo_status cameo_trainer_step(struct cameo_trainer *trainer, const struct cameo_feed *feeds,
                                     size_t feed_count, double *scalars, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    struct cm_error reason = {0};
    enum cm_status status = cm_api_feed_trainer(trainer, feeds, feed_count, false, &reason);

    if (status == CM_OK)
        status = cm_trainer_step(trainer->trainer, trainer->in, trainer->scalars, &reason);
    status = cm_api_fed_trainer(trainer, feeds, feed_count, status);
    for (size_t i = 0; scalars && status == CM_OK && i < cameo_trainer_scalar_count(trainer); i++)
        scalars[i] = trainer->scalars[i].value;
    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_trainer_memory(struct cameo_trainer *trainer,
                                       const struct cameo_feed *feeds, size_t feed_count,
                                       struct cameo_memory *out, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    CM_API_NEED(out, err);
    struct cm_error reason = {0};
    struct cm_trainer_memory memory = {0};
    enum cm_status status = cm_api_check_out(out, &reason);

    if (status == CM_OK)
        status = cm_api_feed_trainer(trainer, feeds, feed_count, true, &reason);
    if (status == CM_OK)
        status = cm_trainer_memory(trainer->trainer, trainer->in, &memory, &reason);
    const struct cameo_memory all = {.weights = memory.weights,
                                     .state = memory.state,
                                     .updates = memory.updates,
                                     .constants = memory.constants,
                                     .batch = memory.batch,
                                     .work = memory.work,
                                     .late = memory.late,
                                     .activations = memory.activations,
                                     .gradients = memory.gradients,
                                     .arithmetic = memory.arithmetic,
                                     .scratch = memory.scratch,
                                     .limited = memory.limited};
    if (status == CM_OK)
        cm_api_give(out, &all, sizeof all);
    return cm_api_done(status, &reason, err);
}

/* The graph for one or the other is made when somebody asks first. */
typedef enum cm_status prepare_fn(struct cm_trainer *trainer, struct cm_error *err);

struct evaluate_call {
    struct cameo_trainer *trainer;
    prepare_fn *make;
    struct cm_error err;
};

static enum cm_status prepare_guarded(struct cm_guard *guard, void *arg)
{
    struct evaluate_call *call = arg;

    cm_arena_lend(&call->trainer->arena, guard);
    return call->make(call->trainer->trainer, &call->err);
}

static enum cm_status prepare(struct cameo_trainer *trainer, prepare_fn *make, bool *done,
                              struct cm_error *err)
{
    struct evaluate_call call = {.trainer = trainer, .make = make};

    if (*done)
        return CM_OK;
    const enum cm_status status = cm_api_locked(trainer->model, prepare_guarded, &call, &call.err);
    if (status)
        *err = call.err;
    *done = status == CM_OK;
    return status;
}

enum cm_status cm_api_prepare_evaluation(struct cameo_trainer *trainer, struct cm_error *err)
{
    return prepare(trainer, cm_trainer_prepare_evaluation, &trainer->evaluates, err);
}

struct cameo_measure cm_api_measure(const struct cm_trainer_measure *from)
{
    const struct cm_measure_scores scores = cm_measure_scores(from);

    return (struct cameo_measure){.struct_size = sizeof(struct cameo_measure),
                                  .samples = from->samples,
                                  .loss = from->loss,
                                  .judged = from->judged,
                                  .correct = from->correct,
                                  .compared = from->compared,
                                  .absolute = from->absolute,
                                  .squared = from->squared,
                                  .targets = from->targets,
                                  .target_squares = from->target_squares,
                                  .accuracy = scores.accuracy,
                                  .mae = scores.mae,
                                  .mse = scores.mse,
                                  .r2 = scores.r2};
}

enum cameo_status cameo_trainer_evaluate(struct cameo_trainer *trainer,
                                         const struct cameo_feed *feeds, size_t feed_count,
                                         struct cameo_measure *out, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    CM_API_NEED(out, err);
    struct cm_error reason = {0};
    struct cm_trainer_measure measure = {0};
    enum cm_status status = cm_api_check_out(out, &reason);

    if (status == CM_OK)
        status = cm_api_prepare_evaluation(trainer, &reason);
    if (status == CM_OK)
        status = cm_api_feed_trainer(trainer, feeds, feed_count, false, &reason);
    if (status == CM_OK)
        status = cm_trainer_evaluate(trainer->trainer, trainer->in, &measure, &reason);
    status = cm_api_fed_trainer(trainer, feeds, feed_count, status);
    const struct cameo_measure all = cm_api_measure(&measure);
    if (status == CM_OK)
        cm_api_give(out, &all, sizeof all);
    return cm_api_done(status, &reason, err);
}

/* ---- predicting ---- */

struct prediction {
    struct cameo_trainer *trainer;
    struct cm_datum *in, *out;
    const struct cm_datum **fed;
    size_t n_in, n_out;
    struct cm_error err;
};

static enum cm_status feed_prediction(struct prediction *p, const struct cameo_feed *feeds,
                                      size_t number)
{
    struct cameo_feed one = CAMEO_FEED_INIT;
    const struct cameo_feed *feed = &one;

    CM_TRY(cm_api_item(&one, sizeof one, feeds, number, &p->err));
    for (size_t i = 0; i < p->n_in; i++) {
        const struct cm_trainer_input *input = cm_trainer_predict_input(p->trainer->trainer, i);

        if (feed->name ? !cm_str_is(input->name, feed->name) : feed->index != i)
            continue;
        CM_TRY(borrow(feed, feed->name ? feed->name : "", false, &p->in[i].tensor, &p->err));
        p->in[i].kind = CM_KIND_TENSOR;
        p->fed[i] = &p->in[i];
        return CM_OK;
    }
    return cm_fail(&p->err, CM_BAD_ARGUMENT, "the inference graph reads no input '%.200s'",
                   feed->name ? feed->name : "");
}

static enum cm_status take_prediction(struct prediction *p, struct cameo_fetch *fetches,
                                      size_t number)
{
    struct cameo_fetch one = CAMEO_FETCH_INIT;
    const struct cameo_fetch *fetch = &one;

    CM_TRY(cm_api_item(&one, sizeof one, fetches, number, &p->err));
    for (size_t o = 0; o < p->n_out; o++) {
        const struct cm_str name = cm_trainer_predict_output(p->trainer->trainer, o);
        struct cm_datum shared = {0};

        if (fetch->name ? !cm_str_is(name, fetch->name) : fetch->index != o)
            continue;
        CM_TRY(cm_datum_share(&p->out[o], &shared, &p->err));
        enum cm_status status = cm_api_own(&shared, &p->err);
        if (status == CM_OK)
            status = cm_api_take(&shared, cm_api_fetched(fetches, number), &p->err);
        cm_datum_drop(&shared);
        return status;
    }
    return cm_fail(&p->err, CM_BAD_ARGUMENT, "there is no output '%.200s'",
                   fetch->name ? fetch->name : "");
}

static enum cm_status predict(struct prediction *p, const struct cameo_feed *feeds,
                              size_t feed_count, struct cameo_fetch *fetches, size_t fetch_count)
{
    for (size_t f = 0; f < feed_count; f++)
        CM_TRY(feed_prediction(p, feeds, f));
    CM_TRY(cm_trainer_predict(p->trainer->trainer, p->fed, p->out, &p->err));
    enum cm_status status = CM_OK;
    for (size_t f = 0; f < fetch_count && status == CM_OK; f++)
        status = take_prediction(p, fetches, f);
    for (size_t o = 0; o < p->n_out; o++)
        cm_datum_drop(&p->out[o]);
    for (size_t f = 0; f < fetch_count && status; f++) {
        struct cameo_value **value = cm_api_fetched(fetches, f);
        cameo_value_free(*value);
        *value = NULL;
    }
    return status;
}

enum cameo_status cameo_trainer_predict(struct cameo_trainer *trainer,
                                        const struct cameo_feed *feeds, size_t feed_count,
                                        struct cameo_fetch *fetches, size_t fetch_count,
                                        struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    CM_API_NEED_ALL(fetches, fetch_count, err);
    struct prediction p = {.trainer = trainer};
    enum cm_status status = cm_api_check_fetches(fetches, fetch_count, &p.err);

    if (status == CM_OK)
        status = prepare(trainer, cm_trainer_prepare_prediction, &trainer->predicts, &p.err);
    if (status)
        return cm_api_done(status, &p.err, err);
    p.n_in = cm_trainer_predict_input_count(trainer->trainer);
    p.n_out = cm_trainer_predict_output_count(trainer->trainer);
    p.in = cm_calloc(p.n_in + 1, sizeof *p.in);
    p.out = cm_calloc(p.n_out + 1, sizeof *p.out);
    p.fed = cm_calloc(p.n_in + 1, sizeof *p.fed);
    if (p.in && p.out && p.fed)
        status = predict(&p, feeds, feed_count, fetches, fetch_count);
    else
        status = cm_fail(&p.err, CM_NO_MEMORY, "no memory for a prediction");
    for (size_t i = 0; p.in && i < p.n_in; i++)
        cm_tensor_drop(&p.in[i].tensor);
    if (status == CM_OK)
        cm_api_take_over(feeds, feed_count);
    cm_free(p.in);
    cm_free(p.out);
    cm_free(p.fed);
    return cm_api_done(status, &p.err, err);
}
