/* Every allocation of a whole session made to fail in turn: nothing leaks, breaks or lies. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "base/memory.h"
#include "cameo.h"
#include "check.h"

#define MODELS TESTS_DIR "/models/"

static int swallow(void *to, const void *bytes, size_t size)
{
    (void)to;
    (void)bytes;
    (void)size;
    return 0;
}

struct session {
    const char *from, *to;
    struct cameo_error err;
    bool text;
};

/* A copy, a value of it that is looked at where it lies, and one that is replaced. */
static enum cameo_status use_copy(const struct cameo_model *model, size_t index, const void *values,
                                  size_t size, struct cameo_error *err)
{
    struct cameo_model *copy = NULL;
    struct cameo_value *view = NULL;
    enum cameo_status status = cameo_model_copy(model, &copy, err);

    if (status == CAMEO_OK)
        status = cameo_model_view_initializer(copy, index, &view, err);
    cameo_value_free(view);
    if (status == CAMEO_OK)
        status = cameo_model_set_initializer(copy, index, values, size, err);
    cameo_model_free(copy);
    return status;
}

static enum cameo_status use_model(struct session *session, struct cameo_model *model)
{
    struct cameo_write_options write = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_findings *findings = NULL;
    struct cameo_error *err = &session->err;
    float values[6] = {1, 2, 3, 4, 5, 6};
    size_t index;

    enum cameo_status status = cameo_model_check(model, NULL, &findings, err);
    cameo_findings_free(findings);
    if (status == CAMEO_OK && cameo_model_find_initializer(model, "W", &index)) {
        status = cameo_model_read_initializer(model, index, values, sizeof values, err);
        if (status == CAMEO_OK)
            status = use_copy(model, index, values, sizeof values, err);
        if (status == CAMEO_OK)
            status = cameo_model_set_initializer(model, index, values, sizeof values, err);
    }
    write.format = session->text ? CAMEO_FORMAT_TEXT : CAMEO_FORMAT_BINARY;
    if (status == CAMEO_OK)
        status = cameo_model_write(model, &write, swallow, NULL, err);
    if (status == CAMEO_OK)
        status = cameo_model_save(model, session->to, NULL, NULL, err);
    return status;
}

static enum cameo_status run_session(struct session *session)
{
    struct cameo_model *model;
    enum cameo_status status = cameo_model_load(session->from, NULL, &model, &session->err);

    if (status == CAMEO_OK)
        status = use_model(session, model);
    cameo_model_free(model);
    return status;
}

/* Runs the session with the nth allocation failing, n growing until none is reached. The result
 * goes to folder, where this many files come into being. */
static void fail_each(const struct folder *folder, const char *from, bool text, int files)
{
    char to[FOLDER_PATH_SIZE];
    struct session session = {.from = from, .text = text};
    enum cameo_status status = CAMEO_NO_MEMORY;
    const int before = folder_count(folder);
    uint64_t n = 0;

    session.to = folder_path(folder, "out.onnx", to);
    while (status != CAMEO_OK && n < 100000) {
        cm_memory_fail_after(++n);
        status = run_session(&session);
        cm_memory_fail_after(0);
        if (status != CAMEO_OK && status != CAMEO_NO_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)n, session.err.message);
        CHECK((status == CAMEO_OK) == (session.err.message[0] == 0));
    }
    CHECK_INT(status, CAMEO_OK);
    CHECK(n > 5);
    CHECK_INT(folder_count(folder), before + files);
}

static void fail_each_on(const char *from, bool text)
{
    struct folder folder;

    folder_make(&folder);
    fail_each(&folder, from, text, 1);
    folder_remove(&folder);
}

void test_oom__a_session_on_a_small_model(void)
{
    fail_each_on(MODELS "linear.onnx", false);
}

void test_oom__a_session_on_a_training_model(void)
{
    fail_each_on(MODELS "training_mlp_adam_initialized.onnx", false);
}

void test_oom__a_session_that_prints_text(void)
{
    fail_each_on(MODELS "functions.onnx", true);
}

void test_oom__a_session_on_values_in_another_file(void)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct folder folder;
    char from[FOLDER_PATH_SIZE];
    struct cameo_model *model;

    folder_make(&folder);
    options.placement = CAMEO_PLACE_EXTERNAL;
    options.threshold = 1;
    CHECK_INT(cameo_model_load(MODELS "linear.onnx", NULL, &model, NULL), CAMEO_OK);
    folder_path(&folder, "in.onnx", from);
    CHECK_INT(cameo_model_save(model, from, &options, NULL, NULL), CAMEO_OK);
    cameo_model_free(model);
    fail_each(&folder, from, false, 2); /* the changed values go to a file of their own */
    folder_remove(&folder);
}
