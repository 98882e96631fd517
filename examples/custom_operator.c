/* An operator that ONNX does not have: registered, then used by a model like any other. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <string.h>

static const char model_text[] = "<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1]>\n"
                                 "g (float[N] x) => (float[N] y)\n"
                                 "{\n"
                                 "    clamped = com.example.SoftLimit <limit: float = 2.0> (x)\n"
                                 "    y = Neg(clamped)\n"
                                 "}\n";

/* y = x / (1 + |x| / limit) */
static enum cameo_status soft_limit(struct cameo_call *call, void *arg)
{
    const float limit = cameo_call_float(call, "limit");
    struct cameo_tensor x, y;

    (void)arg;
    if (limit <= 0)
        return cameo_call_fail(call, CAMEO_BAD_MODEL, "the limit must be above 0");
    if (!cameo_call_input(call, 0, &x) || !cameo_call_output(call, 0, &y))
        return CAMEO_OK; /* nobody wants the result */
    const float *from = x.data;
    float *to = y.data;
    for (int64_t i = 0; i < x.count; i++)
        to[i] = from[i] / (1 + (from[i] < 0 ? -from[i] : from[i]) / limit);
    return CAMEO_OK;
}

static enum cameo_status add_operator(struct cameo_registry *registry, struct cameo_error *err)
{
    static const struct cameo_operand x = {"x", "T", CAMEO_TYPE_BIT(CAMEO_FLOAT),
                                           CAMEO_OPERAND_SINGLE};
    static const struct cameo_operand y = {"y", "T", CAMEO_TYPE_BIT(CAMEO_FLOAT),
                                           CAMEO_OPERAND_SINGLE};
    static const struct cameo_attribute limit = {"limit", CAMEO_ATTRIBUTE_FLOAT, false, true, 1, 0,
                                                 NULL};
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    op.domain = "com.example";
    op.name = "SoftLimit";
    op.inputs = &x;
    op.input_count = 1;
    op.outputs = &y;
    op.output_count = 1;
    op.attributes = &limit;
    op.attribute_count = 1;
    op.run = soft_limit; /* without infer the output is like the input, which is right here */
    return cameo_registry_add(registry, &op, err);
}

static enum cameo_status run_model(const struct cameo_model *model,
                                   const struct cameo_registry *registry, struct cameo_error *err)
{
    const float x[] = {-8, -1, 0, 1, 8};
    float y[5];
    const int64_t dims[] = {5};
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session;
    struct cameo_feed feed = {0};
    struct cameo_fetch fetch = {0};

    options.registry = registry;
    enum cameo_status status = cameo_session_new(model, &options, &session, err);
    if (status != CAMEO_OK)
        return status;
    feed.name = "x";
    feed.dtype = CAMEO_FLOAT;
    feed.rank = 1;
    feed.dims = dims;
    feed.data = x;
    feed.bytes = sizeof x;
    fetch.name = "y"; /* into memory of ours */
    fetch.dtype = CAMEO_FLOAT;
    fetch.rank = 1;
    fetch.dims = dims;
    fetch.data = y;
    fetch.bytes = sizeof y;
    status = cameo_session_run(session, &feed, 1, &fetch, 1, NULL, err);
    for (int i = 0; status == CAMEO_OK && i < 5; i++)
        printf("%g -> %g\n", (double)x[i], (double)y[i]);
    cameo_session_free(session);
    return status;
}

int main(void)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_registry *registry = NULL;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    load.format = CAMEO_FORMAT_TEXT;
    enum cameo_status status =
        cameo_model_load_memory(model_text, strlen(model_text), &load, &model, &err);
    if (status == CAMEO_OK)
        status = cameo_registry_new(&registry, &err);
    if (status == CAMEO_OK)
        status = add_operator(registry, &err);
    if (status == CAMEO_OK)
        status = run_model(model, registry, &err);
    if (status != CAMEO_OK)
        fprintf(stderr, "%s\n", err.message);
    cameo_model_free(model);
    cameo_registry_free(registry);
    return status != CAMEO_OK;
}
