/* What two models differ in, for callers: src/compare/ compares; here both run on the same inputs.
 */
// SPDX-License-Identifier: Apache-2.0
#include "api/streaming.h"

#include "base/memory.h"
#include "compare/compare_results.h"
#include "onnx/tensor_data.h"

#include <math.h>

enum { FIRST = CM_COMPARE_A, SECOND = CM_COMPARE_B, MODELS };

struct cameo_comparison {
    struct cm_arena arena; /* everything below lives here */
    struct cm_comparison list;
    struct cameo_compare_row *rows;
    bool made_inputs;
    bool same;
};

/* Values of one run. */
struct results {
    struct cameo_fetch *fetches;
    size_t count;
};

struct compare_call {
    const struct cameo_model *models[MODELS]; /* the second: NULL where values were recorded */
    const struct cameo_feed *recorded;
    size_t n_recorded;
    struct cameo_compare_options options;
    struct cm_tolerance of_results, of_weights;
    struct cameo_comparison *made;
    struct cm_arena *scratch;
    bool has_inputs;
    struct cameo_feed *feeds; /* given and made up */
    size_t n_feeds;
    /* Released at the end, whatever happens. */
    struct cameo_made_inputs *inputs;
    struct cameo_model *copies[MODELS];
    struct cameo_session *sessions[MODELS];
    struct results results[MODELS];
    struct cm_error err;
};

/* ---- running ---- */

static void close_session(struct compare_call *call, int m)
{
    for (size_t i = 0; i < call->results[m].count; i++)
        cameo_value_free(call->results[m].fetches[i].value);
    cm_free(call->results[m].fetches);
    call->results[m] = (struct results){0};
    cameo_session_free(call->sessions[m]);
    call->sessions[m] = NULL;
    cameo_model_free(call->copies[m]);
    call->copies[m] = NULL;
}

/* Of a copy that gives values on the way, where they are inside. */
static enum cm_status open_session(struct compare_call *call, int m,
                                   const struct cm_compare_names *names, bool inside,
                                   struct cm_error *err)
{
    const struct cameo_model *model = call->models[m];
    struct cameo_error why;

    if (inside) {
        if (cameo_model_copy(model, &call->copies[m], &why) != CAMEO_OK ||
            cameo_model_expose(call->copies[m], names->items, names->count, NULL, &why) != CAMEO_OK)
            return cm_api_again(&why, err);
        model = call->copies[m];
    }
    return cameo_session_new(model, call->options.session, &call->sessions[m], &why) == CAMEO_OK
               ? CM_OK
               : cm_api_again(&why, err);
}

/* What the caller feeds, then what is made up. */
static enum cm_status make_inputs(struct compare_call *call, struct cm_error *err)
{
    const struct cameo_compare_options *o = &call->options;
    struct cameo_error why;
    size_t made;

    if (cameo_session_make_inputs(call->sessions[FIRST], o->make, o->feeds, o->feed_count,
                                  &call->inputs, &why) != CAMEO_OK)
        return cm_api_again(&why, err);
    const struct cameo_feed *more = cameo_made_inputs_feeds(call->inputs, &made);
    call->feeds = CM_NEW_ARRAY(call->scratch, struct cameo_feed, o->feed_count + made);
    for (size_t i = 0; i < o->feed_count; i++) {
        struct cameo_feed *feed = &call->feeds[call->n_feeds++];

        *feed = (struct cameo_feed)CAMEO_FEED_INIT;
        CM_TRY(cm_api_item(feed, sizeof *feed, o->feeds, i, err));
    }
    for (size_t i = 0; i < made; i++)
        call->feeds[call->n_feeds++] = more[i];
    call->made->made_inputs = made > 0;
    call->has_inputs = true;
    return CM_OK;
}

/* A cm_compare_run_fn. The first run makes the inputs of all. */
static enum cm_status run(void *arg, enum cm_compare_side side,
                          const struct cm_compare_names *names, bool inside,
                          const struct cm_datum *const **values, struct cm_error *err)
{
    struct compare_call *call = arg;
    struct results *results = &call->results[side];
    const struct cm_datum **data =
        CM_NEW_ARRAY(call->scratch, const struct cm_datum *, names->count);
    struct cameo_error why;

    close_session(call, (int)side);
    CM_TRY(open_session(call, (int)side, names, inside, err));
    if (!call->has_inputs)
        CM_TRY(make_inputs(call, err));
    results->fetches = cm_calloc(names->count + 1, sizeof *results->fetches);
    if (!results->fetches)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu values", names->count);
    results->count = names->count;
    for (size_t i = 0; i < names->count; i++)
        results->fetches[i] = cameo_fetch_value(names->items[i]);
    if (cameo_session_run(call->sessions[side], call->feeds, call->n_feeds, results->fetches,
                          names->count, NULL, &why) != CAMEO_OK)
        return cm_api_again(&why, err);
    for (size_t i = 0; i < names->count; i++)
        data[i] = cm_api_value(results->fetches[i].value);
    *values = data;
    return CM_OK;
}

static enum cm_status compare_recorded(struct compare_call *call,
                                       const struct cm_compare_runs *runs, struct cm_error *err)
{
    struct cm_recorded_value *values =
        CM_NEW_ARRAY(call->scratch, struct cm_recorded_value, call->n_recorded);

    for (size_t i = 0; i < call->n_recorded; i++) {
        struct cameo_feed feed = CAMEO_FEED_INIT;

        CM_TRY(cm_api_item(&feed, sizeof feed, call->recorded, i, err));
        if (!feed.name || !feed.value)
            return cm_fail(err, CM_BAD_ARGUMENT, "recorded value %zu has no %s", i,
                           feed.name ? "value" : "name");
        values[i] = (struct cm_recorded_value){feed.name, cm_api_value(feed.value)};
    }
    return cm_compare_recorded(&call->made->list, runs, values, call->n_recorded, err);
}

/* ---- the call ---- */

struct load_call {
    const struct cameo_model *model;
    const struct cm_tensor_proto *proto;
    struct cm_tensor *out;
};

static enum cm_status load_locked(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct load_call *call = arg;

    (void)scratch;
    return cm_tensor_proto_load(call->proto, call->model->file->files, call->out, err);
}

static enum cm_status load(void *model, const struct cm_tensor_proto *proto, struct cm_tensor *out,
                           struct cm_error *err)
{
    struct load_call call = {model, proto, out};

    return cm_api_guarded(model, load_locked, &call, err);
}

static bool wants(const struct compare_call *call, enum cm_compare_part part)
{
    return !call->options.parts || call->options.parts >> part & 1;
}

static enum cm_status compare_parts(struct compare_call *call, struct cm_error *err)
{
    struct cm_comparison *list = &call->made->list;
    struct cm_compared compared[MODELS];
    const struct cm_compare_runs runs = {compared, call->of_results, run, call};

    for (int m = 0; m < MODELS && call->models[m]; m++) {
        const struct cm_model_proto *model = &call->models[m]->file->model;

        compared[m] = (struct cm_compared){model, cm_outlines_new(call->scratch, model), load,
                                           (void *)(uintptr_t)call->models[m]};
    }
    if (call->recorded)
        return compare_recorded(call, &runs, err);
    if (wants(call, CM_COMPARE_STRUCTURE))
        cm_compare_structure(list, &compared[FIRST], &compared[SECOND]);
    if (wants(call, CM_COMPARE_WEIGHTS))
        cm_compare_weights(list, &compared[FIRST], &compared[SECOND], call->of_weights);
    return wants(call, CM_COMPARE_RESULTS) ? cm_compare_results(list, &runs, err) : CM_OK;
}

static void translate(struct cameo_comparison *made)
{
    const size_t count = made->list.count;
    struct cameo_difference *differences =
        CM_NEW_ARRAY(&made->arena, struct cameo_difference, count);

    made->rows = CM_NEW_ARRAY(&made->arena, struct cameo_compare_row, count);
    made->same = true;
    for (size_t i = 0; i < count; i++) {
        const struct cm_compare_row *from = &made->list.items[i];

        cm_api_difference(&from->difference, &differences[i]);
        made->rows[i] = (struct cameo_compare_row){
            .part = (enum cameo_compare_part)from->part,
            .kind = (enum cameo_compare_kind)from->kind,
            .name = {from->name.data, from->name.size},
            .text = {from->text.data, from->text.size},
            .difference = from->measured ? &differences[i] : NULL,
        };
        made->same = made->same && from->kind == CM_COMPARE_NOTE;
    }
}

static enum cm_status compare(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct compare_call *call = arg;
    struct cm_comparison *list = &call->made->list;

    cm_arena_init(&call->made->arena, scratch->guard);
    call->scratch = list->scratch = scratch;
    list->arena = &call->made->arena;
    CM_TRY(compare_parts(call, err));
    translate(call->made);
    return CM_OK;
}

static enum cm_status check_options(struct compare_call *call,
                                    const struct cameo_compare_options *options)
{
    struct cameo_compare_options *o = &call->options;

    *o = (struct cameo_compare_options)CAMEO_COMPARE_OPTIONS_INIT;
    CM_TRY(cm_api_options(o, sizeof *o, options, &call->err));
    if (o->parts >> CM_COMPARE_PARTS)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "parts is %#x, expected bits below %#x",
                       o->parts, 1u << CM_COMPARE_PARTS);
    if (o->feed_count && !o->feeds)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "there are %zu feeds, but feeds is NULL",
                       o->feed_count);
    if (isnan(o->relative) || isnan(o->absolute))
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "a tolerance is not a number");
    call->of_results = (struct cm_tolerance){o->relative < 0 ? 1e-3 : o->relative,
                                             o->absolute < 0 ? 1e-5 : o->absolute};
    call->of_weights =
        (struct cm_tolerance){o->relative < 0 ? 0 : o->relative, o->absolute < 0 ? 0 : o->absolute};
    return CM_OK;
}

static enum cameo_status run_call(struct compare_call *call,
                                  const struct cameo_compare_options *options,
                                  struct cameo_comparison **out, struct cameo_error *err)
{
    enum cm_status status = check_options(call, options);

    *out = NULL;
    if (status == CM_OK) {
        call->made = cm_calloc(1, sizeof *call->made);
        status = call->made ? cm_api_guarded(NULL, compare, call, &call->err)
                            : cm_fail(&call->err, CM_NO_MEMORY, "no memory for a comparison");
    }
    for (int m = 0; m < MODELS; m++)
        close_session(call, m);
    cameo_made_inputs_free(call->inputs);
    if (status)
        cameo_comparison_free(call->made);
    else
        *out = call->made;
    return cm_api_done(status, &call->err, err);
}

enum cameo_status cameo_model_compare(const struct cameo_model *a, const struct cameo_model *b,
                                      const struct cameo_compare_options *options,
                                      struct cameo_comparison **out, struct cameo_error *err)
{
    CM_API_NEED(a, err);
    CM_API_NEED(b, err);
    CM_API_NEED(out, err);
    struct compare_call call = {.models = {a, b}};

    return run_call(&call, options, out, err);
}

enum cameo_status cameo_model_compare_values(const struct cameo_model *model,
                                             const struct cameo_feed *recorded,
                                             size_t recorded_count,
                                             const struct cameo_compare_options *options,
                                             struct cameo_comparison **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(recorded, err);
    CM_API_NEED(out, err);
    struct compare_call call = {
        .models = {model}, .recorded = recorded, .n_recorded = recorded_count};

    return run_call(&call, options, out, err);
}

void cameo_comparison_free(struct cameo_comparison *comparison)
{
    if (!comparison)
        return;
    cm_arena_release(&comparison->arena);
    cm_free(comparison);
}

bool cameo_comparison_same(const struct cameo_comparison *comparison)
{
    return comparison->same;
}

bool cameo_comparison_made_inputs(const struct cameo_comparison *comparison)
{
    return comparison->made_inputs;
}

size_t cameo_comparison_compared(const struct cameo_comparison *comparison,
                                 enum cameo_compare_part part)
{
    return (unsigned)part < CM_COMPARE_PARTS ? comparison->list.compared[part] : 0;
}

size_t cameo_comparison_differing(const struct cameo_comparison *comparison,
                                  enum cameo_compare_part part)
{
    return (unsigned)part < CM_COMPARE_PARTS ? comparison->list.differing[part] : 0;
}

const struct cameo_compare_row *cameo_comparison_row(const struct cameo_comparison *comparison,
                                                     size_t index)
{
    return index < comparison->list.count ? &comparison->rows[index] : NULL;
}
