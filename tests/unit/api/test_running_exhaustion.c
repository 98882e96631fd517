/* Every allocation of a run made to fail in turn: nothing leaks, breaks or lies. */
// SPDX-License-Identifier: Apache-2.0
#include "api/lend.h"
#include "base/folder.h"
#include "base/memory.h"
#include "cameo.h"
#include "check.h"

static const char text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
    "g (float[N,3] x, string[1] s) => (float[N,3] y, string[1] t, int64[2,M] n)\n"
    "<float[3] w = {1, 2, 3}>\n"
    "{ a = my.Same(x)\n  y = Mul(a, w)\n  t = Identity(s)\n"
    "  n = NonZero(x) }\n";

static enum cameo_status same(struct cameo_call *call, void *arg)
{
    struct cameo_tensor x = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    (void)arg;
    if (cameo_call_input(call, 0, &x) && cameo_call_output(call, 0, &y))
        memcpy(y.data, x.data, x.bytes);
    return CAMEO_OK;
}

static enum cameo_status add_same(struct cameo_registry *registry, struct cameo_error *err)
{
    static const struct cameo_operand floats = {
        .struct_size = sizeof(struct cameo_operand), .name = "x", .variable = "T"};
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    op.domain = "my";
    op.name = "Same";
    op.inputs = op.outputs = &floats;
    op.input_count = op.output_count = 1;
    op.run = same;
    return cameo_registry_add(registry, &op, err);
}

static enum cameo_status run_once(struct cameo_session *session, const char *path,
                                  struct cameo_error *err)
{
    static const float x[] = {0, 1, 2, 3, 4, 5};
    static const struct cameo_text word = {"word", 4};
    const int64_t dims[] = {2, 3}, one = 1;
    const struct cameo_feed feeds[] = {
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 2, dims, x, sizeof x)),
        cameo_feed_tensor("s", lend(CAMEO_STRING, 1, &one, &word, sizeof word))};
    struct cameo_fetch fetches[] = {fetch_index(0), fetch_index(1), fetch_index(2)};
    struct cameo_arrays *arrays = NULL;
    enum cameo_status status = cameo_session_run(session, feeds, 2, fetches, 3, NULL, err);

    const bool ran = status == CAMEO_OK;
    if (ran) {
        const struct cameo_value *values[] = {fetches[0].value, fetches[1].value};
        const char *const names[] = {"y", "t"};

        CHECK(cameo_value_real(values[0], 5) == 15);
        CHECK_STRING(cameo_value_string(values[1], 0).data, "word");
        CHECK_INT(cameo_value_count(fetches[2].value), 10);
        status = cameo_arrays_save(path, names, values, 2, err);
    }
    for (size_t i = 0; i < CM_COUNT(fetches); i++) {
        CHECK((fetches[i].value != NULL) == ran);
        cameo_value_free(fetches[i].value);
    }
    if (status == CAMEO_OK)
        status = cameo_arrays_open(path, CAMEO_KIND_NONE, &arrays, err);
    if (status == CAMEO_OK)
        CHECK_INT(cameo_arrays_count(arrays), 2);
    cameo_arrays_free(arrays);
    struct cameo_made_inputs *made = NULL;
    if (status == CAMEO_OK)
        status = cameo_session_make_inputs(session, NULL, NULL, 0, &made, err);
    CHECK((made != NULL) == (status == CAMEO_OK));
    cameo_made_inputs_free(made);
    return status;
}

static enum cameo_status whole_life(const char *path, const char *backend, struct cameo_error *err)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_registry *registry = NULL;
    struct cameo_session *session = NULL;
    struct cameo_model *model = NULL;

    load.format = CAMEO_FORMAT_TEXT;
    enum cameo_status status = cameo_model_load_memory(text, strlen(text), &load, &model, err);
    if (status == CAMEO_OK)
        status = cameo_registry_new(&registry, err);
    if (status == CAMEO_OK)
        status = add_same(registry, err);
    options.registry = registry;
    options.backend = backend;
    options.threads = 1;
    if (status == CAMEO_OK)
        status = cameo_session_new(model, &options, &session, err);
    for (int i = 0; i < 2 && status == CAMEO_OK; i++)
        status = run_once(session, path, err);
    cameo_session_free(session);
    cameo_registry_free(registry);
    cameo_model_free(model);
    return status;
}

static void fail_each(const char *backend)
{
    enum cameo_status status = CAMEO_NO_MEMORY;
    struct cameo_error err;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    uint64_t n = 0;

    folder_make(&folder);
    folder_path(&folder, "out.npz", path);
    while (status != CAMEO_OK && n < 100000) {
        cm_memory_fail_after(++n);
        status = whole_life(path, backend, &err);
        cm_memory_fail_after(0);
        if (status != CAMEO_OK && status != CAMEO_NO_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)n, err.message);
    }
    CHECK_INT(status, CAMEO_OK);
    CHECK(n > 50);
    CHECK_INT(folder_count(&folder), 1);
    folder_remove(&folder);
}

void test_oom__a_session_that_runs(void)
{
    fail_each("reference");
}

void test_oom__a_session_of_the_plain_engine(void)
{
    fail_each("plain");
}
