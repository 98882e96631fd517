/* Judging the gradients of a model. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "train/gradcheck.h"

struct gradcheck_call {
    const struct cameo_model *model;
    struct cameo_gradcheck_options options;
    const struct cameo_feed *feeds;
    size_t n_feeds;
    cameo_gradcheck_fn *row;
    void *arg;
    struct cm_error err;
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
static enum cm_status tensor_of_feed(struct gradcheck_call *call, struct cm_arena *arena,
                                     const struct cameo_feed *feed, struct cm_tensor *out)
{
    struct cameo_tensor lent;

    if (feed->value) {
        const struct cm_datum *datum = cm_api_value(feed->value);
        if (datum->kind != CM_KIND_TENSOR)
            return cm_fail(&call->err, CM_BAD_ARGUMENT,
                           "it is fed with something that is not a tensor");
        *out = datum->tensor;
        return CM_OK;
    }
    CM_TRY(cm_api_check_tensor(feed->tensor, &lent, out, &call->err));
    cm_tensor_defer(arena, out);
    return cm_api_use_memory(&lent, out, &call->err);
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

static enum cm_status check(struct gradcheck_call *call, struct cm_arena *arena)
{
    struct cm_gradcheck_feed *feeds = CM_NEW_ARRAY(arena, struct cm_gradcheck_feed, call->n_feeds);
    struct telling telling = {call, arena};
    struct cm_gradcheck_row *rows;
    size_t count;

    for (size_t i = 0; i < call->n_feeds; i++) {
        struct cm_tensor *value = CM_NEW(arena, struct cm_tensor);
        struct cameo_feed feed = CAMEO_FEED_INIT;

        CM_TRY(cm_api_item(&feed, sizeof feed, call->feeds, i, &call->err));
        CM_TRY(name_of_feed(call, &feed, &feeds[i].name, &call->err));
        for (size_t other = 0; other < i; other++)
            if (cm_str_equal(feeds[other].name, feeds[i].name))
                return cm_fail(&call->err, CM_BAD_ARGUMENT, "input '%.*s' is fed twice",
                               CM_STR_FMT(feeds[i].name));
        CM_TRY(cm_error_context(&call->err, tensor_of_feed(call, arena, &feed, value),
                                "input '%.*s'", CM_STR_FMT(feeds[i].name)));
        feeds[i].value = value;
    }
    const struct cm_gradcheck_options options = {.feeds = feeds,
                                                 .n_feeds = call->n_feeds,
                                                 .seed = call->options.seed,
                                                 .samples = call->options.samples,
                                                 .tell = tell,
                                                 .tell_arg = &telling};
    return cm_gradcheck(arena, call->model->file, &options, &rows, &count, &call->err);
}

static enum cm_status gradcheck_guarded(struct cm_guard *guard, void *arg)
{
    struct gradcheck_call *call = arg;
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    const enum cm_status status = check(call, &scratch);
    cm_arena_release(&scratch);
    return status;
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
                                  .options =
                                      (struct cameo_gradcheck_options)CAMEO_GRADCHECK_OPTIONS_INIT,
                                  .feeds = feeds,
                                  .n_feeds = feed_count,
                                  .row = row,
                                  .arg = arg};
    enum cm_status status = cm_api_options(&call.options, sizeof call.options, options, &call.err);

    if (status == CM_OK && !row)
        status = cm_fail(&call.err, CM_BAD_ARGUMENT, "no function for the rows was given");
    if (status == CM_OK)
        status = cm_api_locked(model, gradcheck_guarded, &call, &call.err);
    if (status == CM_OK)
        cm_api_take_over(feeds, feed_count);
    return cm_api_done(status, &call.err, err);
}
