/* Types and shapes of all values, through the public API. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"

#define HEAD "<ir_version: 10, opset_import: [\"\" : 17, \"local\" : 1]>\n"

/* Infers and lists; the report lives as long as the model. */
static const struct cameo_inference *infer(struct cameo_model *model)
{
    struct cameo_infer_options options = CAMEO_INFER_OPTIONS_INIT;
    const struct cameo_inference *report;
    struct cameo_error err;

    options.list_values = true;
    OK(cameo_model_infer(model, &options, &report, &err));
    return report;
}

static void check_type(const struct cameo_inference *report, const char *place, const char *name,
                       const char *type)
{
    for (size_t i = 0; i < report->listed_count; i++) {
        const struct cameo_inferred_value *value = report->values[i];
        if (strcmp(value->name.data, name) != 0 || strcmp(value->place.data, place) != 0)
            continue;
        if (strcmp(value->type.data, type) != 0)
            fail_msg("%s%s is %s, should be %s", place, name, value->type.data, type);
        return;
    }
    fail_msg("there is no value '%s%s'", place, name);
}

void test_infer_api__follows_sizes_through_shape_arithmetic(void)
{
    struct cameo_model *model = load_text(
        HEAD "g (float[N,T,8] x) => (float[] y)\n"
             "<int64[1] one = {1}, int64[1] two = {2}, int64[1] rest = {-1}, int64 zero = {0}>\n"
             "{ s = Shape(x)  n = Gather(s, zero)  t = Gather(s, one)\n"
             "  l = Unsqueeze(n, one_axis)  m = Mul(t, two)\n"
             "  one_axis = Constant<value_ints = [0]>()\n"
             "  shape = Concat<axis = 0>(l, m, rest)  y = Reshape(x, shape)\n"
             "  h = Div(m, two)  e = Expand(zero, h)\n"
             "  last = Squeeze(t, one_axis)  step = Constant<value_int = 1>()\n"
             "  r = Range(zero, last, step) }");
    const struct cameo_inference *report = infer(model);

    check_type(report, "", "y", "float[N,2*T,4]");
    check_type(report, "", "e", "int64[T]");
    check_type(report, "", "r", "int64[T]");
    CHECK_INT(report->unknown_count, 0);
    CHECK_STR(((struct cm_str){cameo_model_output(model, 0)->type.data,
                               cameo_model_output(model, 0)->type.size}),
              "float[N,2*T,4]");
    cameo_model_free(model);
}

void test_infer_api__a_function_has_what_holds_at_every_call(void)
{
    struct cameo_model *model =
        load_text(HEAD "g (float[N,3] x, float[M,3] y) => (float[] a, float[] b)\n"
                       "{ a = local.f(x)  b = local.f(y) }\n"
                       "<domain: \"local\", opset_import: [\"\" : 17]>\n"
                       "f (p) => (q) { r = Relu(p)  q = Transpose(r) }");
    const struct cameo_inference *report = infer(model);

    check_type(report, "", "a", "float[3,N]");
    check_type(report, "", "b", "float[3,M]");
    check_type(report, "function 'f': ", "r", "float[?,3]");
    check_type(report, "function 'f': ", "q", "float[3,?]");
    cameo_model_free(model);
}

void test_infer_api__bodies_and_sequences_have_types(void)
{
    struct cameo_model *model =
        load_text(HEAD "g (float[N] x, int64 n, bool c) => (float[] y, float[] z)\n"
                       "{ y, z = Loop(n, c, x) <body = b (int64 i, bool k, float[] v) =>\n"
                       "      (bool k2, float[] w, float[] u) { k2 = Identity(k)  w = Relu(v)\n"
                       "       u = Concat<axis = 0>(v, w) }>\n"
                       "  s = SequenceConstruct(x, x) }");
    const struct cameo_inference *report = infer(model);

    check_type(report, "", "y", "float[N]");
    check_type(report, "node 'y' (Loop): body 'body': ", "u", "float[2*N]");
    check_type(report, "", "s", "seq(float[N])");
    cameo_model_free(model);
}

void test_infer_api__a_model_that_contradicts_itself_stays_as_it_was(void)
{
    struct cameo_model *model = load_text(HEAD "g (float[2,3] x) => (float[4] y, int64[2] z)\n"
                                               "{ y = Neg(x)  z = Identity(x)  w = MatMul(x, x) }");
    const struct cameo_inference *report;
    struct cameo_error err;

    REFUSED(cameo_model_infer(model, NULL, &report, &err), CAMEO_BAD_MODEL, "MatMul");
    CHECK_INT(cameo_findings_violations(report->findings), 3);
    CHECK_STR(((struct cm_str){cameo_model_output(model, 0)->type.data,
                               cameo_model_output(model, 0)->type.size}),
              "float[4]");
    cameo_model_free(model);
}

void test_infer_api__erased_shapes_are_found_again(void)
{
    struct cameo_model *model = load_text(HEAD "g (float[N,3] x) => (float[N,3] y) { y = Neg(x) }");
    struct cameo_error err;

    OK(cameo_model_erase_shapes(model, false, &err));
    CHECK_INT(cameo_model_input(model, 0)->rank, 2);
    CHECK_INT(cameo_model_input(model, 0)->dims[1].size, -1);
    check_type(infer(model), "", "y", "float[unk__0,unk__1]");
    OK(cameo_model_erase_shapes(model, true, &err));
    CHECK_INT(cameo_model_input(model, 0)->rank, -1);
    check_type(infer(model), "", "y", "float[]");
    cameo_model_free(model);
}
