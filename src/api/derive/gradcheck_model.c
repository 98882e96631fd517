/* Judging the gradients of a model. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "train/gradcheck.h"

struct gradcheck_call {
    const struct cameo_model *model;
    const struct cameo_gradcheck_options *given;
    const struct cameo_feed *feeds;
    size_t n_feeds;
    cameo_gradcheck_fn *row;
    void *arg;
};

static enum cm_status name_of_feed(const struct gradcheck_call *call, const struct cameo_feed *feed,
                                   struct cm_str *out, struct cm_error *err)
{
    const size_t count = call->model->summary.input_count;

    for (size_t i = 0; i < count; i++) {
        const struct cameo_text name = call->model->inputs[i].name;
        if (feed->name ? strcmp(name.data, feed->name) == 0 : feed->index == i) {
            *out = (struct cm_str){name.data, name.size};
            return CM_OK;
        }
    }
    if (feed->name)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model has no input '%.200s'", feed->name);
    return cm_fail(err, CM_BAD_ARGUMENT, "the model has no input %zu, only %zu", feed->index,
                   count);
}

/* A copy that strides or alignment ask for lives in arena. */
static enum cm_status tensor_of_feed(struct cm_arena *arena, const struct cameo_feed *feed,
                                     struct cm_tensor *out, struct cm_error *err)
{
    struct cameo_tensor lent;

    if (feed->value) {
        const struct cm_datum *datum = cm_api_value(feed->value);
        if (datum->kind != CM_KIND_TENSOR)
            return cm_fail(err, CM_BAD_ARGUMENT, "it is fed with something that is not a tensor");
        *out = datum->tensor;
        return CM_OK;
    }
    CM_TRY(cm_api_check_tensor(feed->tensor, &lent, out, err));
    cm_tensor_defer(arena, out);
    return cm_api_use_memory(&lent, out, err);
}

struct telling {
    const struct gradcheck_call *call;
    struct cm_arena *arena;
};

/* Rows are told as they come: a large model takes long. */
static void tell(void *arg, const struct cm_gradcheck_row *row)
{
    const struct telling *telling = arg;
    const struct cameo_gradcheck out = {.name = cm_api_text(telling->arena, row->name),
                                        .elements = row->elements,
                                        .checked = row->checked,
                                        .analytic = row->analytic,
                                        .numeric = row->numeric,
                                        .worst = row->worst,
                                        .at = row->at,
                                        .reached = row->reached,
                                        .below = row->below,
                                        .above = row->above,
                                        .kinks = row->kinks};
    telling->call->row(telling->call->arg, &out);
}

static enum cm_status gradcheck(void *arg, struct cm_arena *arena, struct cm_error *err)
{
    struct gradcheck_call *call = arg;
    struct cameo_gradcheck_options given = CAMEO_GRADCHECK_OPTIONS_INIT;
    struct cm_gradcheck_feed *feeds = CM_NEW_ARRAY(arena, struct cm_gradcheck_feed, call->n_feeds);
    struct telling telling = {call, arena};
    struct cm_gradcheck_row *rows;
    size_t count;

    CM_TRY(cm_api_options(&given, sizeof given, call->given, err));
    for (size_t i = 0; i < call->n_feeds; i++) {
        struct cm_tensor *value = CM_NEW(arena, struct cm_tensor);
        struct cameo_feed feed = CAMEO_FEED_INIT;

        CM_TRY(cm_api_item(&feed, sizeof feed, call->feeds, i, err));
        CM_TRY(name_of_feed(call, &feed, &feeds[i].name, err));
        for (size_t other = 0; other < i; other++)
            if (cm_str_equal(feeds[other].name, feeds[i].name))
                return cm_fail(err, CM_BAD_ARGUMENT, "input '%.*s' is fed twice",
                               CM_STR_FMT(feeds[i].name));
        CM_TRY(cm_error_context(err, tensor_of_feed(arena, &feed, value, err), "input '%.*s'",
                                CM_STR_FMT(feeds[i].name)));
        feeds[i].value = value;
    }
    const struct cm_gradcheck_options options = {.feeds = feeds,
                                                 .n_feeds = call->n_feeds,
                                                 .seed = given.seed,
                                                 .samples = given.samples,
                                                 .tell = tell,
                                                 .tell_arg = &telling};
    return cm_gradcheck(arena, call->model->file, &options, &rows, &count, err);
}

enum cameo_status cameo_model_gradcheck(const struct cameo_model *model,
                                        const struct cameo_gradcheck_options *options,
                                        const struct cameo_feed *feeds, size_t feed_count,
                                        cameo_gradcheck_fn *row, void *arg, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    CM_API_NEED(row, err);
    struct gradcheck_call call = {.model = model,
                                  .given = options,
                                  .feeds = feeds,
                                  .n_feeds = feed_count,
                                  .row = row,
                                  .arg = arg};
    const enum cameo_status status = cm_api_call(model, gradcheck, &call, err);

    if (status == CAMEO_OK)
        cm_api_take_over(feeds, feed_count);
    return status;
}
