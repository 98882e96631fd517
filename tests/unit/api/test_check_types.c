/* What inference adds to a check: wherever a model can be wrong in its types, one finding with its
 * place, and none that another rule has made already. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#define HEAD                                                                                       \
    "<ir_version: 10, opset_import: [\"\" : 17, \"local\" : 1, \"ai.onnx.preview.training\" : "    \
    "1]>\n"

static struct cameo_findings *check_text(const char *text, bool structure_only)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cameo_findings *findings;
    struct cameo_model *model;
    struct cameo_error err;

    load.format = CAMEO_FORMAT_TEXT;
    options.structure_only = structure_only;
    if (cameo_model_load_memory(text, strlen(text), &load, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    if (cameo_model_check(model, &options, &findings, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);
    return findings;
}

/* The findings of a model, a line each, are those of the row; "" for none. */
struct row {
    const char *model, *says;
};

/* clang-format off */
static const struct row rows[] = {
    {HEAD "g (float[2,3] x, float[4,5] w) => (float[2,5] y) { [m] y = MatMul(x, w) }",
     "TY2 graph 'g', node 'm' (MatMul): the left operand has 3 columns, the right one 4 rows\n"},
    {HEAD "g (float[2,3] x) => (int64[2,3] y) { [r] y = Relu(x) }",
     "TY3 graph 'g', output 'y': is declared int64[2,3], but node 'r' (Relu) computes float[2,3]\n"},
    {HEAD "g (float[2,3] x) => (float[3,2] y) { [r] y = Relu(x) }",
     "TY3 graph 'g', output 'y': is declared float[3,2], but node 'r' (Relu) computes float[2,3]\n"},
    {HEAD "g (float[2] x) => (float[N] y) <float[3] t> { t = Relu(x)\n y = Neg(t) }",
     "TY3 graph 'g', value_info 't': is declared float[3], but node making 't' (Relu) computes float[2]\n"},
    /* a version that the type came after */
    {"<ir_version: 7, opset_import: [\"\" : 13]> g (int32[2] x) => (int32[2] y) { y = Relu(x) }",
     "TY1 graph 'g', node 0 (Relu): input 0 'x' (X) is int32[2], must be one of float, float16, double, bfloat16\n"},
    {"<ir_version: 7, opset_import: [\"\" : 14]> g (int32[2] x) => (int32[2] y) { y = Relu(x) }", ""},
    {"<ir_version: 4, opset_import: [\"\" : 9]> g (float[2] x) => (bfloat16[2] y) { y = Cast<to = 16>(x) }",
     "TY1 graph 'g', node 0 (Cast): output 0 'output' would be bfloat16[2], must be one of float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double, uint32, uint64\n"},
    /* before there were imports */
    {"<ir_version: 2> g (float[2] x) => (float[2] y) { y = Tanh(x) }", ""},
    /* an output that no node computes */
    {HEAD "g (float[2] x) => (float[2] y, float[3] x) { y = Relu(x) }",
     "TY3 graph 'g', output 'x': is declared float[3], but it is float[2]\n"},
    /* bodies: their nodes, what they declare, what their node gives them */
    {HEAD "g (bool c, float[2,3] x) => (float[2,3] y) { [if] y = If(c) <then_branch = t () => (float[2,3] a) { [m] a = MatMul(x, x) },\n"
          " else_branch = e () => (float[9] b) { [n] b = Neg(x) }> }",
     "TY2 graph 'g', node 'if' (If), attribute 'then_branch', graph 't', node 'm' (MatMul): the left operand has 3 columns, the right one 2 rows\n"
     "TY3 graph 'g', node 'if' (If), attribute 'else_branch', graph 'e', output 'b': is declared float[9], but node 'n' (Neg) computes float[2,3]\n"},
    {HEAD "g (int64 n, bool c, float[2] x) => (float[2] y) { [loop] y = Loop(n, c, x) <body = b (int64 i, bool ci, int64[2] s) => (bool co, float[2] t) {\n"
          " co = Identity(ci)\n t = Relu(s) }> }",
     "TY3 graph 'g', node 'loop' (Loop), attribute 'body', graph 'b', input 's': is declared int64[2], but it is given float[2]\n"},
    {HEAD "g (int64 n, bool c, float[2] x) => (float[2] y) { [loop] y = Loop(n, c, x) <body = b (int64[1] i, bool[1] ci, float[2] s) => (bool co, float[2] t) {\n"
          " co = Identity(ci)\n t = Relu(s) }> }", ""},
    /* functions are judged by their calls, once for each fault */
    {HEAD "g (float[2] x, float[3] z) => (float[2] y) { [one] y = local.F(x, x)\n [two] t = local.F(x, z)\n [three] u = local.F(x, z) }\n"
          "<opset_import: [\"\" : 17], domain: \"local\"> F (a, b) => (c) { [add] c = Add(a, b) }",
     "TY2 function 'F', node 'add' (Add): input 1 has 3 where another has 2: neither equal nor 1, so they do not broadcast\n"},
    /* an operator that nobody knows: what is declared of its result goes on */
    {HEAD "g (float[2] x) => (float[2] y) <int64[2] t> { t = local.Unknown(x)\n [add] y = Add(t, x) }",
     "TY1 graph 'g', node 'add' (Add): input 1 'x' (B) is float, but input 0 't' (A) is int64\n"},
    {HEAD "g (float[2] x) => (float[2] y) { t = local.Unknown(x)\n y = Add(t, x)\n [m] z = MatMul(x, w) }",
     "CK15 graph 'g', node 'm' (MatMul): reads 'w', which nothing before it defines\n"},
    /* one finding for one fault, and all faults in one run */
    {HEAD "g (float[2] x, float[3] z) => (float[2] y, float[2] u) { [r] y = Relu(x, x)\n [add] u = Add(x, z) }",
     "CK26 graph 'g', node 'r' (Relu): has 2 inputs, needs 1\n"
     "TY2 graph 'g', node 'add' (Add): input 1 has 3 where another has 2: neither equal nor 1, so they do not broadcast\n"},
    /* training: both graphs, and what is bound */
    {HEAD "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }\n"
          "training { initialization: i () => (float[N] w0) { w0 = ConstantOfShape(three) <value = float[1] {0}>\n three = Constant<value = int64[1] {3}>() },\n"
          "  initialization_binding: [\"w\": \"w0\"],\n"
          "  algorithm: step (float[3] t) => (float[M] w2) { [add] d = Sub(y, t)\n [r] w2 = Concat<axis = 0>(w, w) }, update_binding: [\"w\": \"w2\"] }",
     "CK15 training_info[0].initialization, graph 'i', node 0 (ConstantOfShape): reads 'three', which a later node makes: the nodes are not in topological order; ONNX Runtime accepts this, and so does --tool ort\n"
     "TY2 training_info[0].algorithm, graph 'step', node 'add' (Sub): input 1 has 3 where another has 2: neither equal nor 1, so they do not broadcast\n"
     "TR12 training_info[0].initialization_binding[0]: 'w0' is float[3], but the variable 'w' is float[2]\n"
     "TR12 training_info[0].update_binding[0]: 'w2' is float[4], but the variable 'w' is float[2]\n"},
    {HEAD "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }\n"
          "training { algorithm: step (float[2] t) => (float[2] w2) { d = Sub(y, t)\n l = ReduceSum(d)\n dw = ai.onnx.preview.training.Gradient<xs = [\"w\"], y = \"l\">(w)\n w2 = Sub(w, dw) },\n"
          "  update_binding: [\"w\": \"w2\"] }\n"
          "training { algorithm: again (float[2] t) => (float[2] d) { d = Sub(y, t) } }", ""},
    /* what training changes is no constant */
    {HEAD "g (float[4] x) => (float[2,2] y) <int64[2] s = {3, 3}> { y = Reshape(x, s) }\n"
          "training { algorithm: step () => (int64[2] s2) { s2 = Identity(s) }, update_binding: [\"s\": \"s2\"] }", ""},
};
/* clang-format on */

static void append(char *all, size_t room, const struct cameo_finding *finding)
{
    const size_t used = strlen(all);

    snprintf(all + used, room - used, "%s %s: %s\n", finding->rule.data, finding->place.data,
             finding->reason.data);
}

void test_check_types__findings_are_those_of_the_row(void)
{
    int wrong = 0;

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cameo_findings *findings = check_text(rows[i].model, false);
        const struct cameo_finding *finding;
        char all[8192] = "";

        for (size_t k = 0; (finding = cameo_findings_at(findings, k)) != NULL; k++)
            append(all, sizeof all, finding);
        if (strcmp(all, rows[i].says) != 0) {
            print_message("%s\nfound:\n%sexpected:\n%s\n", rows[i].model, all, rows[i].says);
            wrong++;
        }
        cameo_findings_free(findings);
    }
    CHECK_INT(wrong, 0);
}

void test_check_types__structure_alone_infers_nothing(void)
{
    struct cameo_findings *findings = check_text(rows[0].model, true);

    CHECK_INT(cameo_findings_count(findings), 0);
    cameo_findings_free(findings);
}

void test_check_types__a_finding_names_node_and_value_and_says_what_to_do(void)
{
    struct cameo_findings *findings = check_text(rows[0].model, false);
    const struct cameo_finding *finding = cameo_findings_at(findings, 0);

    CHECK_STRING(finding->node.data, "m");
    CHECK_STRING(finding->op_type.data, "MatMul");
    CHECK_STRING(finding->value.data, "");
    CHECK(finding->help.size > 0);
    cameo_findings_free(findings);

    findings = check_text(rows[1].model, false);
    finding = cameo_findings_at(findings, 0);
    CHECK_STRING(finding->node.data, "");
    CHECK_STRING(finding->value.data, "y");
    cameo_findings_free(findings);
}

void test_check_types__every_rule_has_a_text_and_help(void)
{
    CHECK(cameo_check_rule_count() > 90);
    for (size_t i = 0; i < cameo_check_rule_count(); i++) {
        const struct cameo_check_rule *rule = cameo_check_rule_at(i);

        CHECK(rule->id.size && rule->text.size && rule->help.size);
        CHECK(rule->severity <= rule->strict_severity);
    }
    CHECK(!cameo_check_rule_at(cameo_check_rule_count()));
}
