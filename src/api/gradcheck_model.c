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

static enum cm_status tensor_of_feed(struct gradcheck_call *call, const struct cameo_feed *feed,
                                     struct cm_str name, struct cm_tensor *out)
{
    struct cm_shape shape;

    if (feed->value) {
        const struct cm_datum *datum = cm_api_value(feed->value);
        if (datum->kind != CM_KIND_TENSOR)
            return cm_fail(&call->err, CM_BAD_ARGUMENT, "input '%.*s' is fed no tensor",
                           CM_STR_FMT(name));
        *out = datum->tensor;
        return CM_OK;
    }
    if (!cm_dtype_is_valid((int64_t)feed->dtype))
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "input '%.*s' is fed type %d, which is none",
                       CM_STR_FMT(name), (int)feed->dtype);
    CM_TRY(cm_api_shape(feed->rank, feed->dims, &shape, &call->err));
    *out = cm_tensor_borrow((enum cm_dtype)feed->dtype, &shape, (void *)(uintptr_t)feed->data);
    if (feed->bytes != cm_tensor_bytes(out) || (feed->bytes && !feed->data))
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "input '%.*s' is fed %zu bytes, needs %zu",
                       CM_STR_FMT(name), feed->bytes, cm_tensor_bytes(out));
    return CM_OK;
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
        CM_TRY(name_of_feed(call, &call->feeds[i], &feeds[i].name, &call->err));
        CM_TRY(tensor_of_feed(call, &call->feeds[i], feeds[i].name, value));
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
    return cm_api_done(status, &call.err, err);
}
