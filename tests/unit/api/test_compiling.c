/* Compiling models and running what came of it. Where the module, clang or lld is missing, the
 * sentence that says so is all that can be judged; then each test says that it was left out. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

static const char sums[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "sums (float[2,3] x, float[N,3] z) => (float[2,3] y, float[N,3] w)\n"
                           "{ y = Add(x, x)\n w = Add(z, z) }\n";
static const char trained[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "line (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}, float[3] rate = {5, 5, 5}>\n"
    "{ y = Add(x, w) }\n"
    "training {\n"
    "  algorithm: step (float[3] t) => (float[3] out, float[3] w_new)\n"
    "  { d = Add(w, t) w_new = Add(d, rate) out = Add(d, d) },\n"
    "  update_binding: [\"w\": \"w_new\"]\n}\n";

static struct cameo_model *load(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return model;
}

/* false: a part of LLVM is missing, which the message says. */
static bool compiles(const char *text, const struct cameo_compile_options *options,
                     struct cameo_compilation **report)
{
    struct cameo_model *model = load(text);
    struct cameo_error err;
#ifdef MLIR_MODULE_FILE /* what was built beside the tests, not what is installed */
    setenv("CAMEO_MLIR", MLIR_MODULE_FILE, 0);
#endif
    const enum cameo_status status = cameo_model_compile(model, options, report, &err);

    cameo_model_free(model);
    if (status == CAMEO_OK)
        return true;
    if (status == CAMEO_UNSUPPORTED && strstr(err.message, "install")) {
        print_message("left out: %s\n", err.message);
        return false;
    }
    fail_msg("%s", err.message);
    return false;
}

static int write_text(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) == size ? 0 : 1;
}

/* The text of a model as linalg; the caller frees it. */
static char *linalg_of(const char *model_text, bool train_step)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_model *model = load(model_text);
    struct cameo_error err;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    options.emit = CAMEO_EMIT_LINALG;
    options.write = write_text;
    options.write_to = to;
    options.train_step = train_step;
    if (cameo_model_compile(model, &options, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    fclose(to);
    cameo_model_free(model);
    return text;
}

void test_compiling__linalg_needs_no_library_of_others(void)
{
    char *text = linalg_of(sums, false);

    CHECK(strstr(text, "func.func @cm_main") && strstr(text, "linalg.generic"));
    free(text);
}

void test_compiling__steps_draw_from_a_state_and_runs_from_the_beginning(void)
{
    static const char drawing[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "noise (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}>\n"
        "{ n = RandomNormalLike(x)\n u = RandomUniformLike<seed = 4.0>(n)\n"
        "  y = Add(u, n) }\n"
        "training {\n"
        "  algorithm: step () => (float[3] w_new) { w_new = Add(w, y) },\n"
        "  update_binding: [\"w\": \"w_new\"]\n}\n";
    char *text = linalg_of(drawing, true);

    CHECK(strstr(text, "%random: memref<?xi64>") && strstr(text, "memref.store"));
    free(text);
    text = linalg_of(drawing, false);
    CHECK(!strstr(text, "%random"));
    free(text);
}

void test_compiling__is_cancelled(void)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_model *model = load(sums);
    struct cameo_error err;

    options.emit = CAMEO_EMIT_LINALG;
    options.write = write_text;
    options.write_to = stderr;
    CHECK_INT(cameo_cancel_new(&options.cancel, &err), CAMEO_OK);
    cameo_cancel_set(options.cancel);
    CHECK_INT(cameo_model_compile(model, &options, NULL, &err), CAMEO_CANCELLED);
    cameo_cancel_free(options.cancel);
    cameo_model_free(model);
}

void test_compiling__each_reason_is_told(void)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_error err;
    struct cameo_model *model = load("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                     "words (string[2] x, string[3] z) => (string[2] y)\n"
                                     "{ y = Identity(x) }\n");
    struct cameo_findings *findings;

    options.emit = CAMEO_EMIT_LINALG;
    options.write = write_text;
    options.write_to = stderr;
    options.findings = &findings;
    CHECK_INT(cameo_model_compile(model, &options, NULL, &err), CAMEO_UNSUPPORTED);
    CHECK_INT(cameo_findings_violations(findings), 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_STRING(cameo_findings_at(findings, i)->rule.data, "compile");
        CHECK(strstr(cameo_findings_at(findings, i)->reason.data, "string"));
    }
    cameo_findings_free(findings);
    CHECK(strstr(err.message, "the model cannot be compiled, for 3 reasons: input 'x': "));
    CHECK(strstr(err.message, "input 'z': "));
    CHECK(strstr(err.message, "node making 'y' (Identity): "));
    cameo_model_free(model);
}

void test_compiling__wrong_options_are_refused(void)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_model *model = load(sums);
    struct cameo_error err;

    options.path = "net.dll";
    CHECK_INT(cameo_model_compile(model, &options, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "endings are .so"));
    options.path = "net.so";
    options.name = "2 names";
    CHECK_INT(cameo_model_compile(model, &options, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "not a C identifier"));
    options.name = NULL;
    options.initialize = true;
    CHECK_INT(cameo_model_compile(model, &options, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "initialize is for training steps"));
    options.initialize = false;
    options.emit = (enum cameo_emit)77;
    CHECK_INT(cameo_model_compile(model, &options, NULL, &err), CAMEO_BAD_ARGUMENT);
    cameo_model_free(model);
}

/* ---- with everything there ---- */

static void run_sums(const char *path)
{
    const float x[6] = {1, 2, 3, 4, 5, 6}, z[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7};
    const int64_t x_dims[] = {2, 3}, z_dims[] = {4, 3};
    struct cameo_tensor tensors[] = {CAMEO_TENSOR_INIT, CAMEO_TENSOR_INIT};
    struct cameo_compiled *compiled;
    struct cameo_session *session;
    struct cameo_error err;

    if (cameo_compiled_open(path, &compiled, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_session_new(cameo_compiled_model(compiled), NULL, &session, &err), CAMEO_OK);
    CHECK_STRING(cameo_session_input(session, 1)->type.data, "float[N,3]");
    tensors[0].dtype = tensors[1].dtype = CAMEO_FLOAT;
    tensors[0].rank = tensors[1].rank = 2;
    tensors[0].dims = x_dims;
    tensors[1].dims = z_dims;
    tensors[0].data = (void *)(uintptr_t)x;
    tensors[1].data = (void *)(uintptr_t)z;
    tensors[0].bytes = sizeof x;
    tensors[1].bytes = sizeof z;
    for (int again = 0; again < 3; again++) {
        struct cameo_feed feeds[] = {cameo_feed_tensor("x", &tensors[0]),
                                     cameo_feed_tensor("z", &tensors[1])};
        struct cameo_fetch fetches[] = {cameo_fetch_value("y"), cameo_fetch_value("w")};

        if (cameo_session_run(session, feeds, 2, fetches, 2, NULL, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        CHECK(cameo_value_real(fetches[0].value, 5) == 12.0);
        CHECK_INT(cameo_value_dims(fetches[1].value)[0], 4);
        CHECK(cameo_value_real(fetches[1].value, 11) == 14.0);
        cameo_value_free(fetches[0].value);
        cameo_value_free(fetches[1].value);
    }
    cameo_session_free(session);
    cameo_compiled_free(compiled);
}

void test_compiling__a_library_runs_like_a_model(void)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_compilation *report = NULL;
    char path[FOLDER_PATH_SIZE], header[FOLDER_PATH_SIZE];
    struct folder folder;

    folder_make(&folder);
    options.path = folder_path(&folder, "net.so", path);
    folder_path(&folder, "net.h", header);
    if (compiles(sums, &options, &report)) {
        CHECK_STRING(report->header_path, header);
        CHECK(report->code_bytes > 0 && !report->arena_is_fixed);
        CHECK(strstr(report->prototype, "int sums_run(const struct sums_tensor *inputs"));
        CHECK_INT(folder_count(&folder), 2);
        run_sums(path);
        cameo_compilation_free(report);
    }
    folder_remove(&folder);
}

void test_compiling__files_that_are_not_compiled_models_are_refused(void)
{
    struct cameo_compiled *compiled;
    struct cameo_error err;
    char path[FOLDER_PATH_SIZE];
    struct folder folder;

    folder_make(&folder);
    CHECK_INT(cameo_compiled_open("/nowhere/net.so", &compiled, &err), CAMEO_NOT_FOUND);
    folder_write(&folder, "net.so", "text");
    folder_path(&folder, "net.so", path);
    CHECK_INT(cameo_compiled_open(path, &compiled, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "net.so: is not a library"));
    folder_remove(&folder);
}

void test_compiling__a_training_step_has_its_state_in_the_header(void)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_compilation *report = NULL;
    struct cameo_compiled *compiled;
    struct cameo_error err;
    char path[FOLDER_PATH_SIZE];
    struct folder folder;

    folder_make(&folder);
    options.path = folder_path(&folder, "net.so", path);
    options.train_step = true;
    if (compiles(trained, &options, &report)) {
        CHECK_INT(report->state_bytes, 64);
        CHECK(strstr(report->prototype, "int line_step(void *state, const struct line_tensor"));
        CHECK_INT(cameo_compiled_open(path, &compiled, &err), CAMEO_UNSUPPORTED);
        CHECK(strstr(err.message, "is a training step"));
        cameo_compilation_free(report);
    }
    folder_remove(&folder);
}
