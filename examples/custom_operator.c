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
    struct cameo_tensor x = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    (void)arg;
    if (limit <= 0)
        return cameo_call_fail(call, CAMEO_BAD_MODEL, "the limit must be above 0");
    if (!cameo_call_input(call, 0, &x) || !cameo_call_output(call, 0, &y))
        return CAMEO_OK; /* nobody wants the result */
    const float *from = x.data;
    float *to = y.data;
    for (int64_t i = 0; i < cameo_tensor_count(&x); i++)
        to[i] = from[i] / (1 + (from[i] < 0 ? -from[i] : from[i]) / limit);
    return CAMEO_OK;
}

static enum cameo_status add_operator(struct cameo_registry *registry, struct cameo_error *err)
{
    struct cameo_operand x = CAMEO_OPERAND_INIT, y = CAMEO_OPERAND_INIT;
    struct cameo_attribute limit = CAMEO_ATTRIBUTE_INIT;
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    x.name = "x";
    x.variable = "T";
    x.types = CAMEO_TYPE_BIT(CAMEO_FLOAT);
    y = x;
    y.name = "y";
    limit.name = "limit";
    limit.kind = CAMEO_ATTRIBUTE_FLOAT;
    limit.has_default = true;
    limit.f = 1;
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
    const struct cameo_tensor from = cameo_tensor_of(CAMEO_FLOAT, 1, dims, x, sizeof x);
    const struct cameo_tensor to = cameo_tensor_of(CAMEO_FLOAT, 1, dims, y, sizeof y);
    const struct cameo_feed feed = cameo_feed_tensor("x", &from);
    struct cameo_fetch fetch = cameo_fetch_tensor("y", &to); /* into memory of ours */

    options.registry = registry;
    enum cameo_status status = cameo_session_new(model, &options, &session, err);
    if (status != CAMEO_OK)
        return status;
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
