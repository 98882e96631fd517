/* Weights that kernels pack leave the pages of mapped files, and only those, to the system. */
// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { SIZE = 300, ROWS = 8, TEXT = SIZE * SIZE * 8 + 1000 };

/* Two products, the second one with a weight large enough to be forgotten. */
static struct cameo_model *make_model(int name_length)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;
    char *text = malloc(TEXT);

    assert_non_null(text);
    /* Where the weights begin in the file depends on the length of the name before them. */
    int at = snprintf(text, TEXT,
                      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                      "%.*s (float[%d,%d] x) => (float[%d,%d] y)\n<float[%d,%d] w = {",
                      name_length, "abcdefgh", ROWS, SIZE, ROWS, SIZE, SIZE, SIZE);
    for (int i = 0; i < SIZE * SIZE; i++)
        at += snprintf(text + at, (size_t)(TEXT - at), "%s%d.5", i ? "," : "", i * 7 % 31 - 15);
    snprintf(text + at, (size_t)(TEXT - at), "}> { y = MatMul(x, w) }");
    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    free(text);
    return model;
}

/* What a fresh session gives in two runs, which must be the same. */
static void run_twice(const struct cameo_model *model, float *y)
{
    static float x[ROWS * SIZE];
    const int64_t dims[] = {ROWS, SIZE};
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_error err;

    for (int i = 0; i < ROWS * SIZE; i++)
        x[i] = (float)(i % 13) / 8;
    options.threads = 1;
    if (cameo_session_new(model, &options, &session, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    for (int run = 0; run < 2; run++) {
        const struct cameo_tensor input = cameo_tensor_of(CAMEO_FLOAT, 2, dims, x, sizeof x);
        const struct cameo_feed feed = cameo_feed_tensor("x", &input);
        struct cameo_fetch fetch = CAMEO_FETCH_INIT;

        fetch.name = "y";
        if (cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        const float *now = cameo_value_data(fetch.value);
        CHECK(run == 0 || memcmp(y, now, ROWS * SIZE * sizeof *y) == 0);
        memcpy(y, now, ROWS * SIZE * sizeof *y);
        cameo_value_free(fetch.value);
    }
    cameo_session_free(session);
}

static struct cameo_model *load_file(const char *path, bool copy)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    options.copy_files = copy;
    if (cameo_model_load(path, &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return model;
}

static void read_file(const char *path, char *to, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    CHECK_INT(fread(to, 1, size, file), size);
    fclose(file);
}

static size_t size_of_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    fclose(file);
    return (size_t)size;
}

static float expected[ROWS * SIZE], given[ROWS * SIZE];

/* Sessions one after the other on one model: what the first one forgot, the second finds again. */
static void check_sessions(const struct cameo_model *model)
{
    for (int session = 0; session < 2; session++) {
        run_twice(model, given);
        CHECK(memcmp(expected, given, sizeof given) == 0);
    }
}

static void check_bytes(const char *path)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;
    const size_t size = size_of_file(path);
    /* Pages that would come back as zeros. */
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *before = malloc(size);

    CHECK(bytes != MAP_FAILED && before);
    read_file(path, bytes, size);
    memcpy(before, bytes, size);
    options.borrow_bytes = true;
    if (cameo_model_load_memory(bytes, size, &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    check_sessions(model);
    CHECK(memcmp(bytes, before, size) == 0);
    cameo_model_free(model);
    munmap(bytes, size);
    free(before);
}

void test_weights_once__forgetting_spares_what_is_not_mapped(void)
{
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, "net.onnx", path);
    for (int name = 1; name <= 4; name++) {
        struct cameo_model *made = make_model(name);
        struct cameo_error err;
        run_twice(made, expected);
        if (cameo_model_save(made, path, NULL, NULL, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        cameo_model_free(made);
        for (int copy = 0; copy < 2; copy++) {
            struct cameo_model *model = load_file(path, copy);
            check_sessions(model);
            cameo_model_free(model);
        }
        check_bytes(path);
    }
    folder_remove(&folder);
}
