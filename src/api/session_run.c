/* One run: what the caller feeds is checked against the model, what comes out is handed over. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/diagnostics.h"
#include "base/memory.h"
#include "exec/session.h"
#include "graph/eval.h"
#include "graph/feeds.h"

/* What the caller wants. */
struct wanted {
    size_t index; /* of the output */
    bool placed;  /* in memory of the caller's, which is room */
    struct cm_tensor room;
};

enum { FEW_FETCHES = 4 };

/* Everything of one run; the arrays are one piece of memory. */
struct run {
    struct cameo_session *session;
    const struct cameo_feed *feeds;
    size_t n_feeds;
    struct cameo_fetch *fetches;
    size_t n_fetches;
    struct cameo_run_options options;
    struct cm_api_listener listener;
    bool only_check;
    struct cameo_findings **findings; /* receives all that is wrong with the call; or NULL */
    struct cm_findings wrong;
    struct cm_datum *in, *out; /* one per input and output of the model */
    const struct cm_datum **fed;
    struct wanted *wanted; /* one per fetch */
    struct cm_error err;
};

/* ---- what is fed ---- */

static const char *input_name(const struct run *run, size_t index)
{
    return cameo_session_input(run->session, index)->name.data;
}

static const char *input_text(const struct run *run, size_t index)
{
    return cameo_session_input(run->session, index)->type.data;
}

/* "'x', 'y'", cut. */
static const char *list_names(const struct cameo_session *session, bool inputs, char text[400])
{
    const size_t count = inputs ? session->n_inputs : session->n_outputs;
    size_t used = 0;

    text[0] = 0;
    for (size_t i = 0; i < count && used < 300; i++) {
        const struct cameo_value_info *value =
            inputs ? cameo_session_input(session, i) : cameo_session_output(session, i);
        used +=
            (size_t)snprintf(text + used, 400 - used, "%s'%.60s'", i ? ", " : "", value->name.data);
        if (used >= 300 && i + 1 < count)
            snprintf(text + used, 400 - used, ", ...");
    }
    return text;
}

static enum cm_status find(struct run *run, const char *name, size_t index, bool inputs,
                           size_t *out)
{
    const struct cameo_session *session = run->session;
    const size_t count = inputs ? session->n_inputs : session->n_outputs;
    char names[400];

    *out = index;
    for (size_t i = 0; name && i < count; i++) {
        const struct cameo_value_info *value =
            inputs ? cameo_session_input(session, i) : cameo_session_output(session, i);
        *out = i;
        if (strcmp(value->name.data, name) == 0)
            return CM_OK;
    }
    if (!name && index < count)
        return CM_OK;
    list_names(session, inputs, names);
    if (name)
        return cm_fail(&run->err, CM_BAD_ARGUMENT, "there is no %s '%.200s'; the model has %s",
                       inputs ? "input" : "output", name, count ? names : "none");
    return cm_fail(&run->err, CM_BAD_ARGUMENT, "there is no %s %zu; the model has %s",
                   inputs ? "input" : "output", index, count ? names : "none");
}

static enum cm_status borrow_memory(struct run *run, size_t i, const struct cameo_tensor *given,
                                    const char **help)
{
    struct cm_datum *datum = &run->in[i];
    struct cameo_tensor lent;

    *datum = (struct cm_datum){.kind = CM_KIND_TENSOR};
    CM_TRY(cm_error_context(&run->err, cm_api_check_tensor(given, &lent, &datum->tensor, &run->err),
                            "input '%.200s'", input_name(run, i)));
    CM_TRY(cm_feed_check(run->session->graph, i, datum, help, &run->err));
    const enum cm_status status = run->only_check
                                      ? cm_api_check_bytes(&lent, &datum->tensor, &run->err)
                                      : cm_api_use_memory(&lent, &datum->tensor, &run->err);
    CM_TRY(cm_error_context(&run->err, status, "input '%.200s'", input_name(run, i)));
    /* Results may view strings of inputs, so those must live on after the call. */
    return run->only_check ? CM_OK : cm_api_own_strings(datum, &run->err);
}

static enum cm_status feed_input(struct run *run, const struct cameo_feed *feed, size_t *input,
                                 const char **help)
{
    size_t i;

    CM_TRY(find(run, feed->name, feed->index, true, &i));
    *input = i;
    if (run->fed[i])
        return cm_fail(&run->err, CM_BAD_ARGUMENT, "input '%.200s' is fed twice",
                       input_name(run, i));
    run->fed[i] = &run->in[i]; /* rightly or not, it is not missing */
    if (!feed->value)
        return borrow_memory(run, i, feed->tensor, help);
    const struct cm_datum *datum = cm_api_value(feed->value);
    CM_TRY(cm_feed_check(run->session->graph, i, datum, help, &run->err));
    CM_TRY(cm_datum_share(datum, &run->in[i], &run->err));
    return cm_api_own_strings(&run->in[i], &run->err);
}

/* The size of a dimension as it is fed, or by the default; -1 when there is neither. */
static int64_t fed_size(const struct run *run, struct cm_api_axis at)
{
    const struct cm_datum *datum = run->fed[at.input];

    if (!datum || datum->kind != CM_KIND_TENSOR || at.axis >= datum->tensor.shape.rank)
        return -1;
    return datum->tensor.shape.dims[at.axis];
}

/* Dimensions of one name have one size, in all inputs. */
static enum cm_status check_symbols(struct run *run)
{
    const struct cameo_session *session = run->session;

    for (size_t i = 0; i < session->n_same; i++) {
        const struct cm_api_same *same = &session->same[i];
        const int64_t a = fed_size(run, same->a), b = fed_size(run, same->b);

        if (a >= 0 && b >= 0 && a != b)
            return cm_fail(
                &run->err, CM_BAD_ARGUMENT,
                "'%.60s' is %lld in input '%.200s' (%.100s) and %lld in input '%.200s' "
                "(%.100s)",
                cameo_session_input(session, same->a.input)->dims[same->a.axis].symbol.data,
                (long long)a, input_name(run, same->a.input), input_text(run, same->a.input),
                (long long)b, input_name(run, same->b.input), input_text(run, same->b.input));
    }
    return CM_OK;
}

/* ---- what comes out ---- */

static enum cm_status read_fetch(struct run *run, size_t f, struct wanted *out)
{
    struct cameo_fetch fetch = CAMEO_FETCH_INIT;
    struct cameo_tensor lent;

    out->placed = false;
    CM_TRY(cm_api_item(&fetch, sizeof fetch, run->fetches, f, &run->err));
    CM_TRY(find(run, fetch.name, fetch.index, false, &out->index));
    out->placed = fetch.tensor != NULL;
    if (!fetch.tensor)
        return CM_OK;
    const char *name = run->session->outputs[out->index].name.data;
    CM_TRY(cm_error_context(&run->err,
                            cm_api_check_tensor(fetch.tensor, &lent, &out->room, &run->err),
                            "output '%.200s'", name));
    if (lent.dtype == CAMEO_STRING)
        return cm_fail(&run->err, CM_BAD_ARGUMENT,
                       "memory for output '%.200s' cannot be of type string", name);
    if (!cm_api_is_dense(&lent, &out->room.shape) || lent.deleter)
        return cm_fail(&run->err, CM_UNSUPPORTED,
                       "memory for output '%.200s' has %s; results are written densely to memory "
                       "that stays the caller's",
                       name, lent.deleter ? "a deleter" : "strides");
    if (cm_tensor_bytes(&out->room) != lent.bytes || (lent.bytes && !lent.data))
        return cm_fail(&run->err, CM_BAD_ARGUMENT,
                       "memory for output '%.200s' has %zu bytes, its shape needs %zu", name,
                       lent.data ? lent.bytes : 0, cm_tensor_bytes(&out->room));
    return CM_OK;
}

/* Memory that the result surely does not fit is refused before anything runs. */
static enum cm_status check_room(struct run *run, const struct wanted *wanted)
{
    const struct cameo_value_info *output = &run->session->outputs[wanted->index];
    const struct cm_tensor *room = &wanted->room;
    bool fits = output->kind == CAMEO_KIND_TENSOR && (int)output->dtype == (int)room->type &&
                (output->rank < 0 || output->rank == room->shape.rank);

    for (int i = 0; i < output->rank && fits; i++)
        fits = output->dims[i].size < 0 || output->dims[i].size == room->shape.dims[i];
    return fits ? CM_OK
                : cm_fail(&run->err, CM_BAD_ARGUMENT,
                          "output '%.200s' is %.200s, the memory for it has another type or shape",
                          output->name.data, output->type.data);
}

static enum cm_status check_fetch(struct run *run, size_t f)
{
    struct wanted *wanted = &run->wanted[f];

    CM_TRY(read_fetch(run, f, wanted));
    if (!wanted->placed)
        return CM_OK;
    CM_TRY(check_room(run, wanted));
    if (!cm_api_is_aligned(wanted->room.data, wanted->room.type))
        return CM_OK; /* kernels cannot write there: it is copied out */
    struct cm_datum *out = &run->out[wanted->index];
    if (out->kind == CM_KIND_NONE) /* the first to ask for it */
        *out = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = wanted->room};
    return CM_OK;
}

static bool overlap(const struct cm_tensor *a, const struct cm_tensor *b)
{
    const uintptr_t from_a = (uintptr_t)a->data, to_a = from_a + cm_tensor_bytes(a);
    const uintptr_t from_b = (uintptr_t)b->data, to_b = from_b + cm_tensor_bytes(b);

    return from_a && from_b && from_a < to_a && from_b < to_b && from_a < to_b && from_b < to_a;
}

/* Results are written while inputs are still read, in an order of our own. */
static enum cm_status check_overlaps(struct run *run)
{
    for (size_t f = 0; f < run->n_fetches; f++) {
        const struct wanted *wanted = &run->wanted[f];
        const char *name = run->session->outputs[wanted->index].name.data;

        for (size_t i = 0; i < run->session->n_inputs && wanted->placed; i++)
            if (run->fed[i] && run->fed[i]->kind == CM_KIND_TENSOR &&
                overlap(&wanted->room, &run->fed[i]->tensor))
                return cm_fail(&run->err, CM_BAD_ARGUMENT,
                               "the memory for output '%.200s' is also that of input '%.200s'",
                               name, input_name(run, i));
        for (size_t g = 0; g < f && wanted->placed; g++)
            if (run->wanted[g].placed && overlap(&wanted->room, &run->wanted[g].room))
                return cm_fail(&run->err, CM_BAD_ARGUMENT,
                               "the memory for output '%.200s' is also given for another", name);
    }
    return CM_OK;
}

/* ---- all that is wrong with a call ---- */

/* Adds why a check failed, about a value of the model, to what is wrong. */
static enum cm_status note(struct run *run, enum cm_status status, const char *value,
                           const char *help)
{
    if (status == CM_OK || status == CM_NO_MEMORY)
        return status;
    struct cm_finding *finding =
        cm_findings_add(&run->wrong, status, CM_STR(""), "%s", run->err.text);
    if (finding) {
        finding->value = cm_arena_str(run->wrong.arena, cm_str(value));
        finding->help = help;
    }
    run->err = (struct cm_error){0};
    return CM_OK;
}

static enum cm_status check_feeds(struct run *run)
{
    const struct cameo_session *session = run->session;

    for (size_t f = 0; f < run->n_feeds; f++) {
        struct cameo_feed feed = CAMEO_FEED_INIT;
        size_t input = session->n_inputs;
        const char *help = "";

        CM_TRY(cm_api_item(&feed, sizeof feed, run->feeds, f, &run->err));
        const enum cm_status status = feed_input(run, &feed, &input, &help);
        CM_TRY(note(run, status, input < session->n_inputs ? input_name(run, input) : "", help));
    }
    for (size_t i = 0; i < session->n_inputs; i++)
        if (!run->fed[i] && !cameo_session_input(session, i)->has_default)
            CM_TRY(
                note(run, cm_feed_missing(session->graph, i, &run->err), input_name(run, i), ""));
    return CM_OK;
}

static enum cm_status check_call(struct run *run)
{
    for (size_t f = 0; f < run->n_fetches; f++)
        CM_TRY(note(run, check_fetch(run, f), "", ""));
    CM_TRY(check_feeds(run));
    if (!run->wrong.violations)
        CM_TRY(note(run, check_symbols(run), "", ""));
    if (!run->wrong.violations)
        CM_TRY(note(run, check_overlaps(run), "", ""));
    return run->wrong.violations
               ? cm_api_refuse(run->session->model, &run->wrong, run->findings, &run->err)
               : CM_OK;
}

static enum cm_status check_guarded(struct cm_guard *guard, void *arg)
{
    struct run *run = arg;
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    run->wrong = (struct cm_findings){.arena = &scratch, .what = "the run cannot begin"};
    const enum cm_status status = check_call(run);
    cm_arena_release(&scratch);
    return status;
}

/* ---- results ---- */

/* The engine may have written there already. */
static enum cm_status copy_out(struct run *run, const struct wanted *wanted)
{
    const struct cm_datum *datum = &run->out[wanted->index];
    const struct cm_tensor *tensor = &datum->tensor, *room = &wanted->room;
    const size_t bytes = cm_tensor_bytes(room);
    char text[200];

    if (tensor->data == room->data && bytes)
        return CM_OK;
    bool same = datum->kind == CM_KIND_TENSOR && tensor->type == room->type &&
                tensor->shape.rank == room->shape.rank;
    for (int i = 0; i < room->shape.rank && same; i++)
        same = tensor->shape.dims[i] == room->shape.dims[i];
    if (!same)
        return cm_fail(&run->err, CM_BAD_ARGUMENT,
                       "output '%.200s' is %s of type %s and shape %s, the memory for it has "
                       "another type or shape",
                       run->session->outputs[wanted->index].name.data, cm_kind_phrase(datum->kind),
                       cm_dtype_name(tensor->type),
                       cm_shape_print(&tensor->shape, text, sizeof text));
    if (bytes)
        memcpy(room->data, tensor->data, bytes);
    return CM_OK;
}

static enum cm_status hand_over(struct run *run)
{
    for (size_t f = 0; f < run->n_fetches; f++) {
        const struct wanted *wanted = &run->wanted[f];
        struct cm_datum shared = {0};

        if (wanted->placed) {
            CM_TRY(copy_out(run, wanted));
            continue;
        }
        CM_TRY(cm_datum_share(&run->out[wanted->index], &shared, &run->err));
        enum cm_status status = cm_api_own(&shared, &run->err);
        if (status == CM_OK)
            status = cm_api_take(&shared, cm_api_fetched(run->fetches, f), &run->err);
        cm_datum_drop(&shared);
        CM_TRY(status);
    }
    return CM_OK;
}

/* ---- running ---- */

static bool hears(const struct run *run)
{
    return run->listener.step || run->listener.log;
}

static enum cm_status run_plain(struct cm_guard *guard, void *arg)
{
    struct run *run = arg;
    struct cameo_session *session = run->session;
    const struct cameo_run_options *given = &run->options;
    const struct cm_eval_options options = {.seed = session->options.seed,
                                            .memory_limit = session->options.memory_limit,
                                            .cancel = given->cancel ? &given->cancel->set : NULL,
                                            .step = hears(run) ? cm_api_tell_node : NULL,
                                            .step_arg = &run->listener};

    cm_arena_lend(&session->arena, guard);
    for (size_t i = 0; i < session->n_outputs; i++)
        run->out[i] = (struct cm_datum){0};
    return cm_graph_eval(session->graph, run->fed, session->n_inputs, run->out, &options,
                         &run->err);
}

static enum cm_status run_engine(struct run *run)
{
    struct cameo_session *session = run->session;
    const struct cameo_run_options *given = &run->options;
    const struct cm_run_options options = {.cancel = given->cancel ? &given->cancel->set : NULL,
                                           .step = hears(run) ? cm_api_tell_step : NULL,
                                           .step_arg = &run->listener};

    if (given->cancel && atomic_load(&given->cancel->set))
        return cm_fail(&run->err, CM_CANCELLED, "the run was cancelled");
    if (session->exec)
        return cm_session_run(session->exec, run->fed, session->n_inputs, run->out,
                              session->n_outputs, &options, &run->err);
    return cm_api_locked(session->model, run_plain, run, &run->err); /* one at a time */
}

static enum cm_status run_checked(struct run *run)
{
    const struct cameo_session *session = run->session;

    CM_TRY(cm_guarded(0, &run->err, check_guarded, run));
    if (run->only_check)
        return CM_OK;
    const enum cm_status status = cm_api_about(session->model, run_engine(run), &run->err);
    if (status) { /* nothing is held; what is left there is the caller's memory */
        for (size_t i = 0; i < session->n_outputs; i++)
            run->out[i] = (struct cm_datum){0};
        return status;
    }
    return hand_over(run);
}

static enum cm_status run_session(struct run *run)
{
    const size_t n_in = run->session->n_inputs, n_out = run->session->n_outputs;
    const size_t count = n_in + n_out;
    struct wanted few[FEW_FETCHES];

    /* What the last run used, unless another run uses it now. The product is bounded by what the
     * file declares and cannot overflow. */
    run->in = atomic_exchange(&run->session->spare, NULL);
    if (run->in)
        memset(run->in, 0, (count + 1) * (sizeof *run->in + sizeof *run->fed));
    else
        run->in = cm_calloc(count + 1, sizeof *run->in + sizeof *run->fed);
    run->wanted = run->n_fetches > FEW_FETCHES ? cm_calloc(run->n_fetches, sizeof *few) : few;
    if (run->in) {
        run->out = run->in + n_in;
        run->fed = (const struct cm_datum **)(void *)(run->in + count + 1);
    }
    const enum cm_status status =
        run->in && run->wanted
            ? run_checked(run)
            : cm_fail(&run->err, CM_NO_MEMORY, "no memory for %zu values", count);
    if (run->wanted != few)
        cm_free(run->wanted);
    for (size_t i = 0; i < count && run->in; i++)
        cm_datum_drop(&run->in[i]);
    cm_free(atomic_exchange(&run->session->spare, run->in));
    for (size_t i = 0; i < run->n_fetches && status; i++) {
        struct cameo_value **value = cm_api_fetched(run->fetches, i);
        cameo_value_free(*value);
        *value = NULL;
    }
    if (status == CM_OK && !run->only_check)
        cm_api_take_over(run->feeds, run->n_feeds);
    return status;
}

enum cameo_status cameo_session_run(struct cameo_session *session, const struct cameo_feed *feeds,
                                    size_t feed_count, struct cameo_fetch *fetches,
                                    size_t fetch_count, const struct cameo_run_options *options,
                                    struct cameo_error *err)
{
    CM_API_NEED(session, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    CM_API_NEED_ALL(fetches, fetch_count, err);
    struct run run = {.session = session,
                      .feeds = feeds,
                      .n_feeds = feed_count,
                      .fetches = fetches,
                      .n_fetches = fetch_count,
                      .options = CAMEO_RUN_OPTIONS_INIT};

    enum cm_status status = cm_api_check_fetches(fetches, fetch_count, &run.err);
    if (status == CM_OK)
        status = cm_api_options(&run.options, sizeof run.options, options, &run.err);
    run.findings = run.options.findings;
    if (run.findings)
        *run.findings = NULL;
    run.listener = (struct cm_api_listener){.step = run.options.step, .arg = run.options.step_arg};
    if (session->model->log.fn && !atomic_exchange(&session->told, true))
        run.listener.log = session->model;
    if (status == CM_OK)
        status = run_session(&run);
    return cm_api_done(status, &run.err, err);
}

enum cameo_status cameo_session_check(struct cameo_session *session, const struct cameo_feed *feeds,
                                      size_t feed_count, struct cameo_findings **findings,
                                      struct cameo_error *err)
{
    CM_API_NEED(session, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    struct run run = {.session = session,
                      .feeds = feeds,
                      .n_feeds = feed_count,
                      .only_check = true,
                      .findings = findings};

    if (findings)
        *findings = NULL;
    const enum cm_status status = run_session(&run);
    return cm_api_done(status, &run.err, err);
}
