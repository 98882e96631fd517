/* What two models differ in, for callers: src/compare/ compares what they are made of; here both
 * run on the same inputs. */
// SPDX-License-Identifier: Apache-2.0
#include "api/streaming.h"

#include "base/memory.h"
#include "compare/comparison.h"
#include "onnx/tensor_data.h"

#include <math.h>
#include <stdlib.h>

enum { FIRST, SECOND, MODELS };

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
    struct cm_outlines *outlines[MODELS]; /* in scratch */
    struct cm_arena *scratch;
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

static void close_sessions(struct compare_call *call)
{
    for (int m = 0; m < MODELS; m++) {
        for (size_t i = 0; i < call->results[m].count; i++)
            cameo_value_free(call->results[m].fetches[i].value);
        cm_free(call->results[m].fetches);
        call->results[m] = (struct results){0};
        cameo_session_free(call->sessions[m]);
        call->sessions[m] = NULL;
        cameo_model_free(call->copies[m]);
        call->copies[m] = NULL;
    }
}

/* Of a copy that gives values on the way, unless names is NULL. */
static enum cm_status open_session(struct compare_call *call, int m, const char *const *names,
                                   size_t count, struct cm_error *err)
{
    const struct cameo_model *model = call->models[m];
    struct cameo_error why;

    if (names) {
        if (cameo_model_copy(model, &call->copies[m], &why) != CAMEO_OK ||
            cameo_model_expose(call->copies[m], names, count, NULL, &why) != CAMEO_OK)
            return cm_api_again(&why, err);
        model = call->copies[m];
    }
    return cameo_session_new(model, call->options.session, &call->sessions[m], &why) == CAMEO_OK
               ? CM_OK
               : cm_api_again(&why, err);
}

static enum cm_status run(struct compare_call *call, int m, const char *const *names, size_t count,
                          struct cm_error *err)
{
    struct results *results = &call->results[m];
    struct cameo_error why;

    results->fetches = cm_calloc(count + 1, sizeof *results->fetches);
    if (!results->fetches)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu values", count);
    results->count = count;
    for (size_t i = 0; i < count; i++)
        results->fetches[i] = cameo_fetch_value(names[i]);
    return cameo_session_run(call->sessions[m], call->feeds, call->n_feeds, results->fetches, count,
                             NULL, &why) == CAMEO_OK
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
    return CM_OK;
}

/* ---- judging ---- */

/* "float[2,3]", "sequence of 2". */
static const char *describe(char *text, size_t size, const struct cm_datum *datum)
{
    const struct cm_shape *shape = &datum->tensor.shape;
    size_t used;

    if (datum->kind == CM_KIND_SEQUENCE || datum->kind == CM_KIND_MAP) {
        snprintf(text, size, "%s of %zu", datum->kind == CM_KIND_MAP ? "map" : "sequence",
                 datum->n_items);
        return text;
    }
    if (datum->kind != CM_KIND_TENSOR)
        return "nothing";
    used = (size_t)snprintf(text, size, "%s", cm_dtype_name(datum->tensor.type));
    for (int i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld%s", i ? "," : "[",
                                 (long long)shape->dims[i], i + 1 == shape->rank ? "]" : "");
    return text;
}

/* Adds a row where a is not what is expected, b; false: there is one. where: who computes it. */
static bool judge(struct compare_call *call, enum cm_compare_kind kind, struct cm_str name,
                  struct cm_str where, const struct cameo_value *a, const struct cameo_value *b)
{
    const struct cm_datum *x = cm_api_value(a), *y = cm_api_value(b);
    struct cm_comparison *list = &call->made->list;
    struct cm_difference d;
    char is[200], wanted[200];

    if (cm_datum_difference(x, y, call->of_results, &d, NULL) != CM_OK) {
        cm_compare_add(list, CM_COMPARE_RESULTS, kind, name, NULL, "%.*s%sis %s, expected %s",
                       CM_STR_FMT(where), where.size ? ", " : "", describe(is, sizeof is, x),
                       describe(wanted, sizeof wanted, y));
        return false;
    }
    if (!d.differing)
        return true;
    cm_compare_add(list, CM_COMPARE_RESULTS, kind, name, &d, "%.*s", CM_STR_FMT(where));
    return false;
}

static const struct cm_outline_value *value_of(const struct compare_call *call, struct cm_str name)
{
    const struct cm_outline *graph = call->outlines[FIRST]->main;

    return graph ? cm_outline_find(graph, name) : NULL;
}

static struct cm_str maker_of(const struct compare_call *call, const struct cm_outline_value *value)
{
    return value && value->maker ? cm_compare_node(call->scratch, value->maker) : CM_STR_NONE;
}

/* ---- two models ---- */

struct names {
    CM_ARRAY(const char *);
};

/* Outputs by name, or by position where no name is in both. */
static void pair_outputs(const struct compare_call *call, struct names *a, struct names *b)
{
    const struct cameo_value_info *x, *y;

    for (int named = 1; named >= 0 && !a->count; named--)
        for (size_t i = 0; (x = cameo_model_output(call->models[FIRST], i)) != NULL; i++)
            for (size_t k = 0; (y = cameo_model_output(call->models[SECOND], k)) != NULL; k++)
                if (named ? strcmp(x->name.data, y->name.data) == 0 : i == k) {
                    *CM_PUSH(call->scratch, a) = x->name.data;
                    *CM_PUSH(call->scratch, b) = y->name.data;
                    break;
                }
}

/* Values that nodes of both compute, in the order of the first. */
static void common_values(const struct compare_call *call, struct names *names)
{
    const struct cm_outline *a = call->outlines[FIRST]->main, *b = call->outlines[SECOND]->main;

    for (size_t n = 0; a && b && n < a->node_count; n++) {
        const struct cm_strs *outputs = &a->nodes[n].proto->output;

        for (size_t o = 0; o < outputs->count; o++) {
            const struct cm_outline_value *value =
                outputs->items[o].size ? cm_outline_find(b, outputs->items[o]) : NULL;
            if (value && value->maker)
                *CM_PUSH(call->scratch, names) =
                    cm_str_text(cm_arena_str(call->scratch, outputs->items[o]));
        }
    }
}

/* Runs both models again with all values that they have in common as outputs. Models that
 * cannot run that way have no first value; their outputs were compared before. */
static void find_first(struct compare_call *call)
{
    struct cm_error ignored = {0};
    struct names names = {0};

    close_sessions(call);
    common_values(call, &names);
    for (int m = 0; m < MODELS; m++)
        if (!names.count || open_session(call, m, names.items, names.count, &ignored) != CM_OK)
            return;
    for (int m = 0; m < MODELS; m++)
        if (run(call, m, names.items, names.count, &ignored) != CM_OK)
            return;
    for (size_t i = 0; i < names.count; i++) {
        const struct cm_str name = cm_str(names.items[i]);

        if (!judge(call, CM_COMPARE_FIRST, name, maker_of(call, value_of(call, name)),
                   call->results[SECOND].fetches[i].value, call->results[FIRST].fetches[i].value))
            return;
    }
}

static enum cm_status compare_results(struct compare_call *call, struct cm_error *err)
{
    struct cm_comparison *list = &call->made->list;
    size_t *compared = &list->compared[CM_COMPARE_RESULTS];
    size_t *differing = &list->differing[CM_COMPARE_RESULTS];
    struct names a = {0}, b = {0};
    struct cm_error why = {0};

    CM_TRY(open_session(call, FIRST, NULL, 0, err));
    CM_TRY(make_inputs(call, err));
    pair_outputs(call, &a, &b);
    CM_TRY(run(call, FIRST, a.items, a.count, err));
    enum cm_status status = open_session(call, SECOND, NULL, 0, &why);
    if (status == CM_OK)
        status = run(call, SECOND, b.items, b.count, &why);
    if (status) {
        ++*differing;
        cm_compare_add(list, CM_COMPARE_RESULTS, CM_COMPARE_CHANGED, CM_STR("second model"), NULL,
                       "does not run: %s", why.text);
        return CM_OK;
    }
    for (size_t i = 0; i < a.count; i++) {
        ++*compared;
        *differing +=
            !judge(call, CM_COMPARE_VALUE, cm_str(a.items[i]), CM_STR_NONE,
                   call->results[SECOND].fetches[i].value, call->results[FIRST].fetches[i].value);
    }
    if (*differing)
        find_first(call);
    return CM_OK;
}

/* ---- recorded values ---- */

struct recorded {
    const char *name;
    const struct cameo_value *value;
    struct cm_str maker;
    size_t order; /* 1 + the number of the node; 0: no node computes it */
};

static int in_order(const void *a, const void *b)
{
    const struct recorded *x = a, *y = b;

    return x->order != y->order ? (x->order > y->order) - (x->order < y->order)
                                : strcmp(x->name, y->name);
}

/* Those that are values of the model, in the order of its nodes. */
static enum cm_status read_recorded(struct compare_call *call, struct recorded *out, size_t *count,
                                    struct cm_error *err)
{
    for (size_t i = 0; i < call->n_recorded; i++) {
        struct cameo_feed feed = CAMEO_FEED_INIT;

        CM_TRY(cm_api_item(&feed, sizeof feed, call->recorded, i, err));
        if (!feed.name || !feed.value)
            return cm_fail(err, CM_BAD_ARGUMENT, "recorded value %zu has no %s", i,
                           feed.name ? "value" : "name");
        const struct cm_outline_value *value = value_of(call, cm_str(feed.name));
        if (value)
            out[(*count)++] =
                (struct recorded){.name = feed.name,
                                  .value = feed.value,
                                  .maker = maker_of(call, value),
                                  .order = value->maker ? value->maker->index + 1 : 0};
        else
            cm_compare_add(&call->made->list, CM_COMPARE_RESULTS, CM_COMPARE_NOTE,
                           cm_str(feed.name), NULL, "is not a value of the model");
    }
    if (!*count)
        return cm_fail(err, CM_NOT_FOUND, "nothing recorded is named after a value of the model");
    qsort(out, *count, sizeof *out, in_order);
    return CM_OK;
}

static enum cm_status compare_recorded(struct compare_call *call, struct cm_error *err)
{
    struct recorded *items = CM_NEW_ARRAY(call->scratch, struct recorded, call->n_recorded);
    struct names names = {0};
    size_t *differing = &call->made->list.differing[CM_COMPARE_RESULTS];
    size_t count = 0;

    CM_TRY(read_recorded(call, items, &count, err));
    for (size_t i = 0; i < count; i++)
        *CM_PUSH(call->scratch, &names) = items[i].name;
    CM_TRY(open_session(call, FIRST, names.items, count, err));
    CM_TRY(make_inputs(call, err));
    CM_TRY(run(call, FIRST, names.items, count, err));
    for (size_t i = 0; i < count; i++)
        *differing +=
            !judge(call, *differing ? CM_COMPARE_VALUE : CM_COMPARE_FIRST, cm_str(items[i].name),
                   items[i].maker, call->results[FIRST].fetches[i].value, items[i].value);
    call->made->list.compared[CM_COMPARE_RESULTS] = count;
    return CM_OK;
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

static enum cm_status compare(struct compare_call *call, struct cm_error *err)
{
    struct cm_comparison *list = &call->made->list;
    struct cm_compared compared[MODELS];

    for (int m = 0; m < MODELS && call->models[m]; m++) {
        const struct cm_model_proto *model = &call->models[m]->file->model;

        call->outlines[m] = cm_outlines_new(call->scratch, model);
        compared[m] = (struct cm_compared){model, call->outlines[m], load,
                                           (void *)(uintptr_t)call->models[m]};
    }
    if (call->recorded)
        return compare_recorded(call, err);
    if (wants(call, CM_COMPARE_STRUCTURE))
        cm_compare_structure(list, &compared[FIRST], &compared[SECOND]);
    if (wants(call, CM_COMPARE_WEIGHTS))
        cm_compare_weights(list, &compared[FIRST], &compared[SECOND], call->of_weights);
    return wants(call, CM_COMPARE_RESULTS) ? compare_results(call, err) : CM_OK;
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

static enum cm_status compare_guarded(struct cm_guard *guard, void *arg)
{
    struct compare_call *call = arg;
    struct cm_arena scratch;

    cm_arena_init(&call->made->arena, guard);
    cm_arena_init(&scratch, guard);
    call->scratch = &scratch;
    call->made->list.arena = &call->made->arena;
    call->made->list.scratch = &scratch;
    const enum cm_status status = compare(call, &call->err);
    cm_arena_release(&scratch);
    if (status == CM_OK)
        translate(call->made);
    return status;
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
        status = call->made ? cm_guarded(0, &call->err, compare_guarded, call)
                            : cm_fail(&call->err, CM_NO_MEMORY, "no memory for a comparison");
    }
    close_sessions(call);
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
