/* What tests of data sets share. */
// SPDX-License-Identifier: Apache-2.0
#include "io/dataset_case.h"

#include "check.h"
#include "io/arrays.h"

char *dataset_file(const struct folder *folder, const char *name, const void *bytes, size_t size,
                   char *buffer)
{
    FILE *file = fopen(folder_path(folder, name, buffer), "wb");

    CHECK(file != NULL);
    CHECK_INT(fwrite(bytes, 1, size, file), size);
    CHECK_INT(fclose(file), 0);
    return buffer;
}

struct saving {
    const char *path;
    int64_t n;
    struct cm_error err;
};

static enum cm_status save_pair(struct cm_guard *guard, void *arg)
{
    struct saving *saving = arg;
    struct cm_array items[2] = {{.name = CM_STR("x")}, {.name = CM_STR("y")}};
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    float *x = CM_NEW_ARRAY(&arena, float, (size_t)saving->n * 2);
    int64_t *y = CM_NEW_ARRAY(&arena, int64_t, (size_t)saving->n);
    for (int64_t i = 0; i < saving->n; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = -(float)i;
        y[i] = i * 10;
    }
    items[0].value.kind = items[1].value.kind = CM_KIND_TENSOR;
    items[0].value.tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(saving->n, 2), x);
    items[1].value.tensor = cm_tensor_borrow(CM_INT64, &CM_SHAPE(saving->n), y);
    const enum cm_status status = cm_arrays_save(&arena, saving->path, items, 2, &saving->err);
    cm_arena_release(&arena);
    return status;
}

char *dataset_pair(const struct folder *folder, const char *name, int64_t n, char *buffer)
{
    struct saving saving = {.path = folder_path(folder, name, buffer), .n = n};

    CHECK_OK(cm_guarded(0, &saving.err, save_pair, &saving), &saving.err);
    return buffer;
}

struct cm_dataset *dataset_open(const char *path, const char *columns)
{
    const struct cm_dataset_options options = {.columns = columns};
    struct cm_dataset *dataset;
    struct cm_error err;

    CHECK_OK(cm_dataset_open(&path, 1, &options, &dataset, &err), &err);
    return dataset;
}

void dataset_refused(const char *path, const char *columns, enum cm_status status, const char *part)
{
    const struct cm_dataset_options options = {.columns = columns};
    struct cm_dataset *dataset;
    struct cm_error err;

    CHECK_FAILS(cm_dataset_open(&path, 1, &options, &dataset, &err), status, &err, part);
    CHECK(dataset == NULL);
}

void dataset_values(struct cm_dataset *dataset, size_t field, double *values, int64_t n)
{
    const struct cm_feed_options options = {.batch_size = cm_dataset_samples(dataset)};
    const struct cm_tensor *batch;
    struct cm_feed *feed;
    struct cm_error err;
    int64_t got;

    CHECK_OK(cm_feed_new(dataset, &options, &feed, &err), &err);
    CHECK_OK(cm_feed_next(feed, &batch, &got, &err), &err);
    CHECK_INT(got, cm_dataset_samples(dataset));
    CHECK_INT(cm_tensor_count(&batch[field]), n);
    for (int64_t i = 0; i < n; i++)
        values[i] = cm_tensor_real(&batch[field], i);
    cm_feed_free(feed);
}
