/* Trainings of programs that hold their data themselves: arrays as a data set, batches of a
 * function, the trained model without a file. */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"

#include "base/memory.h"

/* ---- arrays as a data set ---- */

void cm_api_drop_arrays(struct cameo_dataset *dataset)
{
    for (size_t i = 0; dataset->copies && i < dataset->n_arrays; i++)
        cm_tensor_drop(&dataset->copies[i]);
    for (size_t i = 0; dataset->taken && i < dataset->n_arrays; i++)
        if (dataset->taken[i].deleter)
            dataset->taken[i].deleter(dataset->taken[i].deleter_arg);
    cm_free(dataset->copies);
    cm_free(dataset->taken);
    dataset->copies = NULL;
    dataset->taken = NULL;
}

static bool is_column_major(const struct cm_shape *shape, const int64_t *strides)
{
    int64_t step = 1;

    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] > 1 && strides[i] != step)
            return false;
        step *= shape->dims[i];
    }
    return true;
}

/* Is each sample dense, so that only the way from one to the next is a stride? */
static bool has_dense_samples(const struct cm_shape *shape, const int64_t *strides)
{
    int64_t step = 1;

    for (int i = shape->rank - 1; i > 0; i--) {
        if (shape->dims[i] > 1 && strides[i] != step)
            return false;
        step *= shape->dims[i];
    }
    return strides[0] >= step;
}

static enum cm_status take_array(struct cameo_dataset *dataset, size_t i,
                                 const struct cameo_tensor *tensors, struct cm_dataset_array *array,
                                 struct cm_error *err)
{
    struct cameo_tensor given = CAMEO_TENSOR_INIT, lent;
    struct cm_tensor tensor;

    CM_TRY(cm_api_item(&given, sizeof given, tensors, i, err));
    given.struct_size = sizeof given; /* it was filled up */
    CM_TRY(cm_api_check_tensor(&given, &lent, &tensor, err));
    CM_TRY(cm_api_check_bytes(&lent, &tensor, err));
    const size_t size = cm_dtype_size(tensor.type);
    array->type = tensor.type;
    array->shape = tensor.shape;
    array->data = lent.data;
    dataset->taken[i].deleter_arg = lent.deleter_arg;
    dataset->taken[i].deleter = lent.deleter;
    if (tensor.type == CM_STRING || tensor.shape.rank == 0 || cm_api_is_dense(&lent, &tensor.shape))
        return CM_OK;
    if (size && is_column_major(&tensor.shape, lent.strides)) {
        array->column_major = true;
    } else if (size && has_dense_samples(&tensor.shape, lent.strides)) {
        array->stride = (size_t)lent.strides[0] * size;
    } else {
        CM_TRY(cm_api_gather(tensor.type, &tensor.shape, lent.strides, lent.data,
                             &dataset->copies[i], err));
        array->data = dataset->copies[i].data;
    }
    return CM_OK;
}

static enum cm_status take_arrays(struct cameo_dataset *dataset, const char *const *names,
                                  const struct cameo_tensor *tensors, struct cm_error *err)
{
    const size_t count = dataset->n_arrays;
    struct cm_dataset_array *arrays = cm_calloc(count + 1, sizeof *arrays);
    enum cm_status status = CM_OK;

    dataset->copies = cm_calloc(count + 1, sizeof *dataset->copies);
    dataset->taken = cm_calloc(count + 1, sizeof *dataset->taken);
    if (!arrays || !dataset->copies || !dataset->taken)
        status = cm_fail(err, CM_NO_MEMORY, "no memory for a data set");
    for (size_t i = 0; i < count && !status; i++) {
        if (!names[i])
            status = cm_fail(err, CM_BAD_ARGUMENT, "the name of array %zu is NULL", i);
        else
            status = cm_error_context(err, take_array(dataset, i, tensors, &arrays[i], err),
                                      "array '%.200s'", names[i]);
        arrays[i].name = cm_str(names[i]);
    }
    if (!status)
        status = cm_dataset_of_arrays(arrays, count, &dataset->dataset, err);
    cm_free(arrays);
    return status;
}

enum cameo_status cameo_dataset_from_arrays(const char *const *names,
                                            const struct cameo_tensor *tensors, size_t count,
                                            struct cameo_dataset **out, struct cameo_error *err)
{
    CM_API_NEED_ALL(names, count, err);
    CM_API_NEED_ALL(tensors, count, err);
    CM_API_NEED(out, err);
    struct cameo_dataset *dataset = cm_calloc(1, sizeof *dataset);
    struct cm_error reason = {0};

    *out = NULL;
    if (dataset)
        dataset->n_arrays = count;
    const enum cm_status status = dataset
                                      ? take_arrays(dataset, names, tensors, &reason)
                                      : cm_fail(&reason, CM_NO_MEMORY, "no memory for a data set");
    if (status && dataset) {
        cm_free(dataset->taken); /* they stay the caller's */
        dataset->taken = NULL;
        cm_api_drop_arrays(dataset);
        cm_free(dataset);
    } else {
        *out = dataset;
    }
    return cm_api_done(status, &reason, err);
}

/* ---- batches of a function ---- */

static enum cm_status from_caller(enum cameo_status status, struct cameo_error *why,
                                  struct cm_error *err)
{
    why->message[sizeof why->message - 1] = 0;
    return cm_fail(err, (enum cm_status)status, "%s",
                   *why->message ? why->message : "the caller's batches failed");
}

static enum cm_status begin_epoch(void *arg, uint64_t epoch, int64_t skip, struct cm_error *err)
{
    const struct cameo_batches *batches = arg;
    struct cameo_error why = {0};
    const enum cameo_status status = batches->source.begin(batches->source.arg, epoch, skip, &why);

    return status ? from_caller(status, &why, err) : CM_OK;
}

/* What was fed is let go of when the next batch is asked for. */
static enum cm_status next_batch(void *arg, const struct cm_tensor *const **in, int64_t *n,
                                 struct cm_error *err)
{
    const struct cameo_batches *batches = arg;
    const struct cameo_feed *feeds = NULL;
    struct cameo_error why = {0};
    size_t count = 0;

    *n = 0;
    cm_api_unfeed_trainer(batches->trainer);
    const enum cameo_status status =
        batches->source.next(batches->source.arg, &feeds, &count, n, &why);
    if (status)
        return from_caller(status, &why, err);
    if (*n < 0 || (*n > 0 && count && !feeds))
        return cm_fail(err, CM_BAD_ARGUMENT, "a batch of the caller's has %lld rows and no feeds",
                       (long long)*n);
    if (!*n)
        return CM_OK;
    CM_TRY(cm_api_feed_trainer(batches->trainer, feeds, count, false, err));
    *in = batches->trainer->in;
    return CM_OK;
}

static enum cm_status open_source(struct cameo_batches *batches,
                                  const struct cameo_batch_source *given, struct cm_error *err)
{
    struct cameo_batch_source all = CAMEO_BATCH_SOURCE_INIT;

    CM_TRY(cm_api_options(&all, sizeof all, given, err));
    if (!all.begin || !all.next)
        return cm_fail(err, CM_BAD_ARGUMENT, "the source has no function '%s'",
                       all.begin ? "next" : "begin");
    if (all.batches < 0 || all.samples < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "the source has %lld batches and %lld samples",
                       (long long)all.batches, (long long)all.samples);
    if (all.conditions) {
        const size_t size = strlen(all.conditions) + 1;

        batches->conditions = cm_calloc(1, size);
        if (!batches->conditions)
            return cm_fail(err, CM_NO_MEMORY, "no memory for batches");
        memcpy(batches->conditions, all.conditions, size);
    }
    batches->source = all;
    return cm_feeder_of_source(&(struct cm_batch_source){.begin = begin_epoch,
                                                         .next = next_batch,
                                                         .arg = batches,
                                                         .batches = all.batches,
                                                         .samples = all.samples,
                                                         .conditions = cm_str(batches->conditions)},
                               &batches->feeder, err);
}

enum cameo_status cameo_batches_from_function(struct cameo_trainer *trainer,
                                              const struct cameo_batch_source *source,
                                              struct cameo_batches **out, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED(source, err);
    CM_API_NEED(out, err);
    struct cameo_batches *batches = cm_calloc(1, sizeof *batches);
    struct cm_error reason = {0};
    enum cm_status status;

    *out = NULL;
    if (batches) {
        batches->trainer = trainer;
        batches->n_inputs = cm_trainer_input_count(trainer->trainer);
        batches->feeds = cm_calloc(batches->n_inputs + 1, sizeof *batches->feeds);
        batches->tensors = cm_calloc(batches->n_inputs + 1, sizeof *batches->tensors);
    }
    if (!batches || !batches->feeds || !batches->tensors)
        status = cm_fail(&reason, CM_NO_MEMORY, "no memory for batches");
    else
        status = open_source(batches, source, &reason);
    if (status)
        cameo_batches_free(batches);
    else
        *out = batches;
    return cm_api_done(status, &reason, err);
}

/* ---- the trained model ---- */

static enum cm_status copy_trained(void *call, struct cameo_model *made, struct cm_arena *scratch,
                                   struct cm_error *err)
{
    struct cameo_trainer *trainer = call;

    cm_api_tell_position(trainer, &made->arena, scratch);
    CM_TRY(cm_trainer_show_state(trainer->trainer, &made->arena, scratch, err));
    made->file = cm_model_copy(&made->arena, trainer->model->file);
    return CM_OK;
}

enum cameo_status cameo_trainer_copy_model(struct cameo_trainer *trainer, struct cameo_model **out,
                                           struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED(out, err);

    return cm_api_derive_call(trainer->model, copy_trained, trainer, out, err);
}
