/* What a log is told, and that nothing is said without one. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "base/folder.h"
#include "check.h"

struct heard {
    char text[8000];
    size_t used, count, warnings;
};

static void hear(void *arg, enum cameo_log_level level, const char *message)
{
    struct heard *heard = arg;

    heard->count++;
    heard->warnings += level == CAMEO_LOG_WARNING;
    heard->used += (size_t)snprintf(heard->text + heard->used, sizeof heard->text - heard->used,
                                    "%s\n", message);
    CHECK(heard->used < sizeof heard->text);
    CHECK(message[strlen(message) - 1] != '.' && message[strlen(message) - 1] != '\n');
}

static struct cameo_model *load(const char *text, struct heard *heard)
{
    struct cameo_model *model = load_text(text);

    cameo_model_set_log(model, hear, heard);
    return model;
}

void test_log__a_session_tells_once_who_computes_what(void)
{
    static const float x[] = {1, 2};
    static const int64_t two[] = {2};
    struct heard heard = {0};
    struct cameo_model *model = load("<ir_version: 8, opset_import: [\"\" : 99]>\n"
                                     "g (float[2] x) => (float[2] y)\n"
                                     "{ [last] y = Neg(h)\n  [first] h = Abs(x) }\n",
                                     &heard);
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    const struct cameo_feed feed = cameo_feed_tensor("x", lend(CAMEO_FLOAT, 1, two, x, sizeof x));
    struct cameo_session *session;
    struct cameo_error err;

    options.backend = "plain";
    OK(cameo_session_new(model, &options, &session, &err));
    CHECK(strstr(heard.text, "the model imports opset 99 of 'ai.onnx'"));
    CHECK(strstr(heard.text, "are not in topological order"));
    CHECK_INT(heard.warnings, 2);
    CHECK(!strstr(heard.text, "oneDNN")); /* this engine has no use for it */
    OK(cameo_session_run(session, &feed, 1, NULL, 0, NULL, &err));
    CHECK(strstr(heard.text, "node 'first' (Abs) is computed by reference"));
    const size_t count = heard.count;
    OK(cameo_session_run(session, &feed, 1, NULL, 0, NULL, &err));
    CHECK_INT(heard.count, count);
    cameo_session_free(session);

    options.backend = NULL;
    OK(cameo_session_new(model, &options, &session, &err));
    CHECK(strstr(heard.text, "oneDNN")); /* used or not, it says which and why */
    cameo_session_free(session);
    cameo_model_set_log(model, NULL, NULL);
    const size_t silent = heard.count;
    OK(cameo_session_new(model, &options, &session, &err));
    CHECK_INT(heard.count, silent);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_log__preparing_and_saving_are_told(void)
{
    struct heard heard = {0};
    struct cameo_model *model = load("<ir_version: 8, opset_import: [\"\" : 13]>\n"
                                     "g (float[N,2] x) => (float[N,1] y)\n"
                                     "<float[2,1] w = {1, 2}> { y = MatMul(x, w) }\n",
                                     &heard);
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    struct cameo_error err;

    folder_make(&folder);
    options.loss = "mse";
    options.optimizer = "sgd";
    OK(cameo_model_prepare(model, &options, NULL, &err));
    CHECK(strstr(heard.text, "'w' is trained: "));
    CHECK(strstr(heard.text, "opset")); /* raised, and said so */
    OK(cameo_trainer_new(model, NULL, &trainer, &err));
    CHECK(strstr(heard.text, "a trainer is ready"));
    OK(cameo_checkpoint_save(trainer, folder_path(&folder, "c.safetensors", path), NULL, 0, &err));
    CHECK(strstr(heard.text, "c.safetensors' is written after step 0"));
    OK(cameo_trainer_save(trainer, folder_path(&folder, "out.onnx", path), NULL, NULL, &err));
    CHECK(strstr(heard.text, "out.onnx' is written, "));
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    folder_remove(&folder);
}
