/* An operator of one's own that can be differentiated: its gradient is a function in ONNX's text
 * form, and so is its body, which is made for each use. Usage: custom_gradient */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <string.h>

static const char model_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1,\n"
    "                               \"ai.onnx.preview.training\" : 1]>\n"
    "g (float[N] x) => (float[N] y, float[N] dx)\n"
    "{\n"
    "    y = com.example.Power <exponent: int = 3> (x)\n"
    "    sum = ReduceSum <keepdims: int = 0> (y)\n"
    "    dx = ai.onnx.preview.training.Gradient <xs: strings = [\"x\"], y: string = \"sum\"> (x)\n"
    "}\n";

/* x multiplied by itself: as many nodes as the exponent asks for. */
static enum cameo_status make_body(struct cameo_use *use, void *arg)
{
    const int64_t exponent = cameo_use_int(use, "exponent");
    char text[2000] = "<domain: \"com.example\", opset_import: [\"\" : 17]>\n"
                      "Power (x) => (y) { p1 = Identity(x) ";
    size_t used = strlen(text);

    (void)arg;
    if (exponent < 1 || exponent > 20)
        return cameo_use_fail(use, CAMEO_UNSUPPORTED, "the exponent must be from 1 to 20");
    for (int64_t i = 2; i <= exponent; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "p%d = Mul(p%d, x) ", (int)i,
                                 (int)i - 1);
    snprintf(text + used, sizeof text - used, "y = Identity(p%d) }", (int)exponent);
    return cameo_use_give(use, text);
}

/* The derivative is exponent times y / x. Inputs are what it needs, by name: operands, and d_y for
 * the gradient of y; outputs are gradients of inputs. */
static const char gradient_text[] = "<domain: \"com.example\", opset_import: [\"\" : 17]>\n"
                                    "PowerGradient <exponent> (x, y, d_y) => (d_x)\n"
                                    "{\n"
                                    "    n = Constant <value_int: int = @exponent> ()\n"
                                    "    factor = CastLike(n, x)\n"
                                    "    lower = Div(y, x)\n"
                                    "    slope = Mul(factor, lower)\n"
                                    "    d_x = Mul(slope, d_y)\n"
                                    "}\n";

static enum cameo_status add_operator(struct cameo_registry *registry, struct cameo_error *err)
{
    const uint64_t floats = CAMEO_TYPE_BIT(CAMEO_FLOAT) | CAMEO_TYPE_BIT(CAMEO_DOUBLE);
    struct cameo_operand x = CAMEO_OPERAND_INIT, y = CAMEO_OPERAND_INIT;
    struct cameo_attribute exponent = CAMEO_ATTRIBUTE_INIT;
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    x.name = "x";
    x.variable = "T";
    x.types = floats;
    y = x;
    y.name = "y";
    exponent.name = "exponent";
    exponent.kind = CAMEO_ATTRIBUTE_INT;
    exponent.required = true;
    op.domain = "com.example";
    op.name = "Power";
    op.inputs = &x;
    op.input_count = 1;
    op.outputs = &y;
    op.output_count = 1;
    op.attributes = &exponent;
    op.attribute_count = 1;
    op.make_body = make_body;
    op.gradient = gradient_text; /* without it, gradients would flow through the body */
    return cameo_registry_add(registry, &op, err);
}

static enum cameo_status run_model(const struct cameo_model *model,
                                   const struct cameo_registry *registry, struct cameo_error *err)
{
    const float x[] = {-2, 1, 3};
    const int64_t dims[] = {3};
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session;
    const struct cameo_tensor memory = cameo_tensor_of(CAMEO_FLOAT, 1, dims, x, sizeof x);
    const struct cameo_feed feed = cameo_feed_tensor("x", &memory);
    struct cameo_fetch fetches[] = {cameo_fetch_value("y"), cameo_fetch_value("dx")};

    options.registry = registry;
    enum cameo_status status = cameo_session_new(model, &options, &session, err);
    if (status != CAMEO_OK)
        return status;
    status = cameo_session_run(session, &feed, 1, fetches, 2, NULL, err);
    for (int i = 0; status == CAMEO_OK && i < 3; i++)
        printf("x %g: y %g, dy/dx %g\n", (double)x[i], cameo_value_real(fetches[0].value, i),
               cameo_value_real(fetches[1].value, i));
    cameo_value_free(fetches[0].value);
    cameo_value_free(fetches[1].value);
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
