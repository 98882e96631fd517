/* One model used by several threads at once; run under the thread sanitizer by `make tsan`. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <pthread.h>

#define MODELS TESTS_DIR "/models/"

enum { THREADS = 4, ROUNDS = 8 };

struct worker {
    pthread_t thread;
    const struct cameo_model *model;
    const struct folder *folder;
    int number;
    int wrong; /* results that were not as expected */
};

static int count_bytes(void *to, const void *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)to += size;
    return 0;
}

static void use_model(struct worker *worker)
{
    char name[32], path[FOLDER_PATH_SIZE];
    struct cameo_findings *findings;
    float values[6] = {0};
    size_t index = 0, written = 0;

    worker->wrong += cameo_model_summary(worker->model)->node_count != 1;
    worker->wrong += !cameo_model_find_initializer(worker->model, "W", &index);
    worker->wrong +=
        cameo_model_read_initializer(worker->model, index, values, sizeof values, NULL) != CAMEO_OK;
    worker->wrong += values[5] != 5.0f;
    worker->wrong +=
        cameo_model_write(worker->model, NULL, count_bytes, &written, NULL) != CAMEO_OK;
    worker->wrong += written == 0;
    snprintf(name, sizeof name, "copy%d.onnx", worker->number);
    worker->wrong += cameo_model_save(worker->model, folder_path(worker->folder, name, path), NULL,
                                      NULL, NULL) != CAMEO_OK;
    if (cameo_model_check(worker->model, NULL, &findings, NULL) == CAMEO_OK)
        worker->wrong += cameo_findings_violations(findings) != 0;
    else
        worker->wrong++;
    cameo_findings_free(findings);
}

static void *work(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        use_model(arg);
    return NULL;
}

static void save_external(const char *path)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.placement = CAMEO_PLACE_EXTERNAL;
    options.threshold = 1;
    if (cameo_model_load(MODELS "linear.onnx", NULL, &model, &err) != CAMEO_OK ||
        cameo_model_save(model, path, &options, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);
}

/* Values are external, so that the first readers race to map the file. */
void test_threads__describe_read_check_and_save_one_model(void)
{
    struct worker workers[THREADS] = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    struct cameo_model *model;
    struct cameo_error err;

    folder_make(&folder);
    save_external(folder_path(&folder, "model.onnx", path));
    if (cameo_model_load(path, NULL, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < THREADS; i++) {
        workers[i].model = model;
        workers[i].folder = &folder;
        workers[i].number = i;
        CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(workers[i].thread, NULL), 0);
        CHECK_INT(workers[i].wrong, 0);
    }
    cameo_model_free(model);
    folder_remove(&folder);
}

static void *load_and_free(void *arg)
{
    struct worker *worker = arg;
    struct cameo_model *model;

    for (int i = 0; i < ROUNDS; i++) {
        worker->wrong += cameo_model_load(MODELS "functions.onnx", NULL, &model, NULL) != CAMEO_OK;
        cameo_model_free(model);
    }
    return NULL;
}

void test_threads__models_are_independent(void)
{
    struct worker workers[THREADS] = {0};

    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&workers[i].thread, NULL, load_and_free, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(workers[i].thread, NULL), 0);
        CHECK_INT(workers[i].wrong, 0);
    }
}
