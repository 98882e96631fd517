/* What a trainer reads and writes: data sets, batches of them, the trained model. */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"

#include "base/diagnostics.h"
#include "base/memory.h"

/* ---- the model ---- */

struct save_call {
    struct cameo_trainer *trainer;
    const char *path;
    struct cameo_save_options options;
    struct cm_save_report report;
    struct cm_error err;
};

static enum cm_status save_guarded(struct cm_guard *guard, void *arg)
{
    struct save_call *call = arg;
    const struct cm_save_options options = cm_api_save_options(&call->options);
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    cm_api_tell_position(call->trainer, &scratch, &scratch);
    const enum cm_status status =
        cm_trainer_save(call->trainer->trainer, &scratch, call->trainer->model->file, call->path,
                        &options, &call->report, &call->err);
    cm_arena_release(&scratch);
    return status;
}

enum cameo_status cameo_trainer_save(struct cameo_trainer *trainer, const char *path,
                                     const struct cameo_save_options *options,
                                     struct cameo_save_report *report, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    struct save_call call = {.trainer = trainer, .path = path};
    enum cm_status status = cm_api_check_save(path, options, report, &call.options, &call.err);

    if (status == CM_OK)
        status = cm_api_locked(trainer->model, save_guarded, &call, &call.err);
    if (status == CM_OK)
        cm_api_log_saved(trainer->model, path, &call.report);
    if (status == CM_OK && report)
        cm_api_give_report(&call.report, report);
    return cm_api_done(status, &call.err, err);
}

/* ---- data sets ---- */

enum cameo_status cameo_dataset_open(const char *path, const struct cameo_dataset_options *options,
                                     struct cameo_dataset **out, struct cameo_error *err)
{
    CM_API_NEED(path, err);
    return cameo_dataset_open_files(&path, 1, options, out, err);
}

enum cameo_status cameo_dataset_open_files(const char *const *paths, size_t count,
                                           const struct cameo_dataset_options *options,
                                           struct cameo_dataset **out, struct cameo_error *err)
{
    CM_API_NEED(paths, err);
    CM_API_NEED(out, err);
    struct cameo_dataset_options all = CAMEO_DATASET_OPTIONS_INIT;
    struct cameo_dataset *dataset = cm_calloc(1, sizeof *dataset);
    struct cm_error reason = {0};
    enum cm_status status = cm_api_options(&all, sizeof all, options, &reason);
    const struct cm_dataset_options inner = {.columns = all.columns,
                                             .flags = all.allow_links ? CM_FOLLOW_LINKS : 0};

    *out = NULL;
    if (!dataset)
        status = cm_fail(&reason, CM_NO_MEMORY, "no memory for a data set");
    if (status == CM_OK && !count)
        status = cm_fail(&reason, CM_BAD_ARGUMENT, "no path of a data set was given");
    for (size_t i = 0; status == CM_OK && i < count; i++)
        if (!paths[i])
            status = cm_fail(&reason, CM_BAD_ARGUMENT, "path %zu of the data set is NULL", i);
    if (status == CM_OK)
        status = cm_dataset_open(paths, count, &inner, &dataset->dataset, &reason);
    if (status)
        cm_free(dataset);
    else
        *out = dataset;
    return cm_api_done(status, &reason, err);
}

void cameo_dataset_free(struct cameo_dataset *dataset)
{
    if (!dataset)
        return;
    cm_dataset_close(dataset->dataset);
    cm_api_drop_arrays(dataset);
    cm_free(dataset);
}

int64_t cameo_dataset_samples(const struct cameo_dataset *dataset)
{
    return cm_dataset_samples(dataset->dataset);
}

size_t cameo_dataset_field_count(const struct cameo_dataset *dataset)
{
    return cm_dataset_field_count(dataset->dataset);
}

bool cameo_dataset_field(const struct cameo_dataset *dataset, size_t index,
                         struct cameo_dataset_field *out)
{
    struct cm_error unused = {0};

    if (!out || cm_api_check_out(out, &unused) != CM_OK ||
        index >= cm_dataset_field_count(dataset->dataset))
        return false;
    const struct cm_dataset_field *field = cm_dataset_field(dataset->dataset, index);
    struct cameo_dataset_field all = {.name = {field->name.data, field->name.size},
                                      .dtype = (enum cameo_dtype)field->type,
                                      .rank = field->sample.rank};
    for (int i = 0; i < field->sample.rank; i++)
        all.dims[i] = field->sample.dims[i];
    cm_api_give(out, &all, sizeof all);
    return true;
}

/* ---- batches ---- */

struct batches_call {
    struct cameo_batches *batches;
    const struct cameo_trainer *trainer;
    struct cm_dataset *dataset;
    struct cm_feeder_options feeding;
    struct cameo_findings **findings; /* the caller's, or NULL */
    struct cm_error err;
};

static enum cm_status match_arrays(struct cm_guard *guard, void *arg)
{
    struct batches_call *call = arg;
    struct cm_arena arena;
    struct cm_findings found = {.arena = &arena};

    cm_arena_init(&arena, guard);
    call->feeding.findings = &found;
    enum cm_status status = cm_feeder_new(call->trainer->trainer, call->dataset, &call->feeding,
                                          &call->batches->feeder, &call->err);
    if (found.violations)
        status = cm_api_refuse(call->trainer->model, &found, call->findings, &call->err);
    cm_arena_release(&arena);
    return status;
}

static enum cm_status open_batches(struct batches_call *call,
                                   const struct cameo_batches_options *given)
{
    struct cameo_batches *batches = call->batches;
    struct cm_error *err = &call->err;
    struct cameo_batches_options all = CAMEO_BATCHES_OPTIONS_INIT;

    CM_TRY(cm_api_options(&all, sizeof all, given, err));
    call->findings = all.findings;
    if (all.findings)
        *all.findings = NULL;
    const bool may_drop = all.last == CAMEO_LAST_AUTO;
    if (all.batch_size < 0 || (unsigned)all.last > CAMEO_LAST_AUTO)
        return cm_fail(err, CM_BAD_ARGUMENT, "batches of %lld rows: expected at least 1",
                       (long long)all.batch_size);
    call->feeding = (struct cm_feeder_options){
        .feed = {.batch_size = all.batch_size,
                 .shuffle = all.shuffle,
                 .seed = all.seed,
                 .last = may_drop ? CM_LAST_SHORT : (enum cm_last_batch)all.last,
                 .endless = all.endless,
                 .prefetch = all.prefetch},
        .may_drop = may_drop,
        .target = all.target,
        .raw_bytes = all.raw_bytes};
    batches->n_inputs = cm_trainer_input_count(call->trainer->trainer);
    batches->feeds = cm_calloc(batches->n_inputs + 1, sizeof *batches->feeds);
    batches->tensors = cm_calloc(batches->n_inputs + 1, sizeof *batches->tensors);
    if (!batches->feeds || !batches->tensors)
        return cm_fail(err, CM_NO_MEMORY, "no memory for batches");
    return cm_guarded(0, err, match_arrays, call);
}

enum cameo_status cameo_batches_new(struct cameo_dataset *dataset,
                                    const struct cameo_trainer *trainer,
                                    const struct cameo_batches_options *options,
                                    struct cameo_batches **out, struct cameo_error *err)
{
    CM_API_NEED(dataset, err);
    CM_API_NEED(trainer, err);
    CM_API_NEED(out, err);
    struct batches_call call = {.batches = cm_calloc(1, sizeof *call.batches),
                                .trainer = trainer,
                                .dataset = dataset->dataset};
    enum cm_status status;

    *out = NULL;
    if (!call.batches)
        status = cm_fail(&call.err, CM_NO_MEMORY, "no memory for batches");
    else
        status = open_batches(&call, options);
    if (status)
        cameo_batches_free(call.batches);
    else
        *out = call.batches;
    return cm_api_done(status, &call.err, err);
}

void cameo_batches_free(struct cameo_batches *batches)
{
    if (!batches)
        return;
    cm_feeder_free(batches->feeder);
    if (batches->trainer)
        cm_api_unfeed_trainer(batches->trainer);
    cm_free(batches->feeds);
    cm_free(batches->tensors);
    cm_free(batches->conditions);
    cm_free(batches);
}

static void describe_feeds(struct cameo_batches *batches, const struct cm_tensor *const *in)
{
    for (size_t i = 0; i < batches->n_inputs; i++) {
        batches->tensors[i] =
            cameo_tensor_of((enum cameo_dtype)in[i]->type, in[i]->shape.rank, in[i]->shape.dims,
                            in[i]->data, cm_tensor_bytes(in[i]));
        batches->feeds[i] = cameo_feed_tensor(NULL, &batches->tensors[i]);
        batches->feeds[i].index = i;
    }
}

const struct cameo_feed *cameo_batches_shapes(struct cameo_batches *batches)
{
    if (!cm_feeder_shapes(batches->feeder))
        return NULL;
    describe_feeds(batches, cm_feeder_shapes(batches->feeder));
    return batches->feeds;
}

enum cameo_status cameo_batches_next(struct cameo_batches *batches, const struct cameo_feed **feeds,
                                     int64_t *rows, struct cameo_error *err)
{
    CM_API_NEED(batches, err);
    CM_API_NEED(feeds, err);
    CM_API_NEED(rows, err);
    const struct cm_tensor *const *in = NULL;
    struct cm_error reason = {0};
    const enum cm_status status = cm_feeder_next(batches->feeder, &in, rows, &reason);

    if (status == CM_OK && *rows)
        describe_feeds(batches, in);
    *feeds = batches->feeds;
    return cm_api_done(status, &reason, err);
}

int64_t cameo_batches_per_epoch(const struct cameo_batches *batches)
{
    return cm_feeder_facts(batches->feeder)->batches;
}

int64_t cameo_batches_size(const struct cameo_batches *batches)
{
    return cm_feeder_facts(batches->feeder)->feed.batch_size;
}

enum cameo_last_batch cameo_batches_last(const struct cameo_batches *batches)
{
    return (enum cameo_last_batch)cm_feeder_facts(batches->feeder)->feed.last;
}

bool cameo_batches_scales(const struct cameo_batches *batches, size_t input)
{
    return cm_feeder_scales(batches->feeder, input);
}

void cameo_batches_tell(const struct cameo_batches *batches, struct cameo_batches_position *out)
{
    const struct cm_feed_position position = cm_feeder_position(batches->feeder);
    const struct cameo_batches_position all = {.epoch = position.epoch, .sample = position.sample};
    struct cm_error unused = {0};

    if (out && cm_api_check_out(out, &unused) == CM_OK)
        cm_api_give(out, &all, sizeof all);
}

enum cameo_status cameo_batches_seek(struct cameo_batches *batches,
                                     const struct cameo_batches_position *position,
                                     struct cameo_error *err)
{
    CM_API_NEED(batches, err);
    struct cameo_batches_position all = CAMEO_BATCHES_POSITION_INIT;
    struct cm_error reason = {0};
    enum cm_status status = cm_api_options(&all, sizeof all, position, &reason);

    if (status == CM_OK)
        status = cm_feeder_seek(batches->feeder, (struct cm_feed_position){all.epoch, all.sample},
                                &reason);
    return cm_api_done(status, &reason, err);
}
