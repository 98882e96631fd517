/* Functions inlined in model files: names, attributes, absent operands, versions, operators. */
// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.h"
#include "graph/graph_case.h"
#include "models/expand_model.h"
#include "onnx/descriptor.h"
#include "onnx/syntax.h"
#include "versions/upgrade.h"

#include <math.h>

enum { TEXT_MAX = 16000 };

#define HEAD  "<ir_version: 8, opset_import: [\"\" : 17, \"l\" : 1]>\n"
#define LOCAL "<domain: \"l\", opset_import: [\"\" : 17, \"l\" : 1]>\n"

struct expanded {
    struct cm_model_file *file, *made;
    struct cm_expand_report report;
    struct cm_findings left;
    struct cm_error err;
    enum cm_status status;
    char text[TEXT_MAX];
};

static enum cm_status append(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    char *text = to;
    const size_t used = strlen(text);
    (void)err;
    CHECK(used + size < TEXT_MAX);
    memcpy(text + used, bytes, size);
    text[used + size] = 0;
    return CM_OK;
}

static struct expanded *try_expand(struct cm_arena *arena, const char *text,
                                   const struct cm_expand_options *options)
{
    const struct cm_load_options load = {.format = CM_FORMAT_TEXT};
    struct expanded *e = CM_NEW(arena, struct expanded);

    CHECK_OK(cm_model_parse(arena, cm_str(text), &load, &e->file, &e->err), &e->err);
    e->left.arena = arena;
    e->status = cm_expand_model(e->file, options, arena, &e->made, &e->report, &e->left, &e->err);
    if (e->status == CM_OK)
        CHECK_OK(cm_syntax_print_model(&e->made->model, NULL, append, e->text, &e->err), &e->err);
    return e;
}

static struct expanded *expand(struct cm_arena *arena, const char *text,
                               const struct cm_expand_options *options)
{
    struct expanded *e = try_expand(arena, text, options);

    CHECK_OK(e->status, &e->err);
    return e;
}

static void check_has(const struct expanded *e, const char *part)
{
    if (!strstr(e->text, part))
        fail_msg("'%s' is not in:\n%s", part, e->text);
}

static void check_lacks(const struct expanded *e, const char *part)
{
    if (strstr(e->text, part))
        fail_msg("'%s' is in:\n%s", part, e->text);
}

static void run(struct cm_arena *arena, const struct cm_model_proto *model, bool condition,
                float out[2])
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node};
    const struct cm_datum *const in[] = {FLOATS(arena, -0.5F, 2), graph_bool(arena, condition)};
    struct cm_datum results[8] = {0};
    struct cm_graph *graph;
    struct cm_error err = {0};

    CHECK_OK(cm_module_import(cm_module_new(arena, NULL), model, &options, &graph, &err), &err);
    CHECK(graph->n_outputs <= CM_COUNT(results));
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, results, NULL, &err), &err);
    memcpy(out, results[0].tensor.data, 2 * sizeof *out);
    for (size_t i = 0; i < graph->n_outputs; i++)
        cm_datum_drop(&results[i]);
}

/* Both models give the same two floats for x = {-0.5, 2} and either condition. */
static void check_same_results(struct cm_arena *arena, const struct expanded *e)
{
    for (int c = 0; c < 2; c++) {
        float before[2], after[2];

        run(arena, &e->file->model, c, before);
        run(arena, &e->made->model, c, after);
        CHECK(fabsf(before[0] - after[0]) < 1e-6F && fabsf(before[1] - after[1]) < 1e-6F);
    }
}

static const struct cm_expand_options usual = {0}, core = {.core = true},
                                      operators = {.operators = true};

/* ---- names ---- */

static void case_two_calls_of_one_function_get_names_of_their_own(struct cm_arena *arena)
{
    const struct expanded *e = expand(arena,
                                      HEAD "g (float[2] x) => (float[2] y) {\n"
                                           "  t = l.f(x)\n  y = l.f(t)\n}\n" LOCAL
                                           "f (x) => (y) { t = Mul(x, x)\n y = Add(t, x) }\n",
                                      &usual);

    check_has(e, "\"t/t\" = Mul (x, x)");
    check_has(e, "t = Add (\"t/t\", x)");
    check_has(e, "\"y/t\" = Mul (t, t)");
    check_lacks(e, "f (");
    check_lacks(e, "\"l\"");
    CHECK(e->report.calls == 2 && e->report.functions == 1 && e->report.nodes == 4);
    check_same_results(arena, e);
}

void test_expand__two_calls_of_one_function_get_names_of_their_own(void)
{
    check_in_arena(case_two_calls_of_one_function_get_names_of_their_own);
}

static void case_names_of_caller_and_body_may_be_the_same_and_crossed(struct cm_arena *arena)
{
    const struct expanded *e = expand(arena,
                                      HEAD "g (float[2] y) => (float[2] x) {\n"
                                           "  \"x/z\" = Neg(y)\n  x = l.f(\"x/z\", y)\n}\n" LOCAL
                                           "f (y, x) => (t) { z = Mul(x, y)\n t = Sub(z, x) }\n",
                                      &usual);

    check_has(e, "\"x/z_2\" = Mul (y, \"x/z\")");
    check_has(e, "x = Sub (\"x/z_2\", y)");
    check_same_results(arena, e);
}

void test_expand__names_of_caller_and_body_may_be_the_same_and_crossed(void)
{
    check_in_arena(case_names_of_caller_and_body_may_be_the_same_and_crossed);
}

static void case_functions_that_call_functions_are_inlined_to_the_end(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               HEAD "g (float[2] x) => (float[2] y) {\n  [call] y = l.a(x)\n}\n" LOCAL
                    "a (x) => (y) { [one] t = l.b(x)\n [two] u = l.b(t)\n y = Add(t, u) }\n" LOCAL
                    "b (x) => (y) { t = Exp(x)\n y = Sub(t, x) }\n",
               &usual);

    check_has(e, "\"call/one/t\" = Exp (x)");
    check_has(e, "\"call/two/t\" = Exp (\"call/t\")");
    CHECK(e->report.calls == 3 && e->report.functions == 2);
    check_same_results(arena, e);
}

void test_expand__functions_that_call_functions_are_inlined_to_the_end(void)
{
    check_in_arena(case_functions_that_call_functions_are_inlined_to_the_end);
}

static void case_graphs_inside_a_body_capture_names_of_the_body(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               HEAD "g (float[2] x, bool c) => (float[2] y) {\n"
                    "  t = Abs(x)\n  s = Neg(t)\n  y = l.f(s, c)\n}\n" LOCAL
                    "f (x, c) => (y) { t = Mul(x, x)\n"
                    "  y = If (c) <then_branch = a () => (float[2] r) { s = Add(t, x)\n"
                    "      r = Neg(s) },\n"
                    "    else_branch = b () => (float[2] r) <float[1] k = {3}> { s = Sub(t, x)\n"
                    "      u = Mul(s, k)\n r = Neg(u) }> }\n",
               &usual);

    check_has(e, "\"y/t\" = Mul (s, s)");
    check_has(e, "\"y/s\" = Add (\"y/t\", s)");
    check_has(e, "\"y/s_2\" = Sub (\"y/t\", s)");
    check_same_results(arena, e);
}

void test_expand__graphs_inside_a_body_capture_names_of_the_body(void)
{
    check_in_arena(case_graphs_inside_a_body_capture_names_of_the_body);
}

static void case_calls_in_graphs_of_control_flow_are_inlined(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               HEAD "g (float[2] x, bool c) => (float[2] y) {\n  t = Abs(x)\n"
                    "  y = If (c) <then_branch = a () => (float[2] r) { r = l.f(t) },\n"
                    "    else_branch = b () => (float[2] q) { q = l.f(x) }>\n}\n" LOCAL
                    "f (x) => (y) { t = Mul(x, x)\n y = Add(t, x) }\n",
               &usual);

    check_has(e, "\"r/t\" = Mul (t, t)");
    check_has(e, "\"q/t\" = Mul (x, x)");
    check_same_results(arena, e);
}

void test_expand__calls_in_graphs_of_control_flow_are_inlined(void)
{
    check_in_arena(case_calls_in_graphs_of_control_flow_are_inlined);
}

static void case_names_in_attributes_of_gradient_go_along(struct cm_arena *arena)
{
    const struct expanded *e = expand(
        arena,
        "<ir_version: 8, opset_import: [\"\" : 17, \"l\" : 1, \"ai.onnx.preview.training\" : 1]>\n"
        "g (float[2] x) => (float[2] y) {\n  y = l.slope(x)\n}\n"
        "<domain: \"l\", opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
        "slope (v) => (d) { z = Mul(v, v)\n s = ReduceSum<keepdims = 0>(z)\n"
        "  d = ai.onnx.preview.training.Gradient <xs = [\"v\"], y = \"s\", zs = [\"z\"]> (v, z)\n}"
        "\n",
        &usual);

    check_has(e, "xs: strings = [\"x\"], y: string = \"y/s\", zs: strings = [\"y/z\"]");
    check_has(e, "y = ai.onnx.preview.training.Gradient");
}

void test_expand__names_in_attributes_of_gradient_go_along(void)
{
    check_in_arena(case_names_in_attributes_of_gradient_go_along);
}

/* ---- attributes and operands ---- */

static void case_attributes_come_from_the_call_the_default_or_not_at_all(struct cm_arena *arena)
{
    const struct expanded *e = expand(
        arena,
        HEAD "g (float[2] x) => (float[2] y, float[2] z, float[2] w) {\n"
             "  y = l.h<al = 0.5>(x)\n  z = l.h(x)\n  w = l.f(x)\n}\n" LOCAL
             "h <al: float = 0.25> (x) => (y) { y = LeakyRelu<alpha: float = @al>(x) }\n" LOCAL
             "f <al> (x) => (y) { y = LeakyRelu<alpha: float = @al>(x) }\n",
        &usual);

    check_has(e, "y = LeakyRelu <alpha: float = 0.5> (x)");
    check_has(e, "z = LeakyRelu <alpha: float = 0.25> (x)");
    check_has(e, "w = LeakyRelu (x)");
    check_same_results(arena, e);
}

void test_expand__attributes_come_from_the_call_the_default_or_not_at_all(void)
{
    check_in_arena(case_attributes_come_from_the_call_the_default_or_not_at_all);
}

static void case_absent_operands_and_results_are_absent_in_the_body(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               HEAD "g (float[2] x) => (float[2] y, float[2] z) <float hi = {1}> {\n"
                    "  y = l.f(x, , hi)\n  , z = l.two(x)\n}\n" LOCAL
                    "f (x, lo, hi) => (y) { y = Clip(x, lo, hi) }\n" LOCAL
                    "two (x) => (a, b) { b = Exp(x)\n a = Neg(b) }\n",
               &usual);

    check_has(e, "y = Clip (x, \"\", hi)");
    check_has(e, "z = Exp (x)");
    check_has(e, "\"z/a\" = Neg (z)");
    check_same_results(arena, e);
}

void test_expand__absent_operands_and_results_are_absent_in_the_body(void)
{
    check_in_arena(case_absent_operands_and_results_are_absent_in_the_body);
}

static void case_what_a_function_hands_through_is_copied(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               HEAD "g (float[2] x) => (float[2] y, float[2] z) {\n"
                    "  y, z = l.f(x)\n}\n" LOCAL "f (x) => (x, b) { b = Exp(x) }\n",
               &usual);

    check_has(e, "y = Identity (x)");
    check_same_results(arena, e);
}

void test_expand__what_a_function_hands_through_is_copied(void)
{
    check_in_arena(case_what_a_function_hands_through_is_copied);
}

/* ---- what is left alone ---- */

static void case_only_and_except_name_functions_and_operators(struct cm_arena *arena)
{
    static const char text[] =
        HEAD "g (float[2] x) => (float[2] y, float[2] z) {\n"
             "  t = l.f(x)\n  u = Relu(t)\n  z = l.h(u)\n"
             "  y = Softsign(u)\n}\n" LOCAL "f (x) => (y) { y = l.h(x) }\n" LOCAL
             "h (x) => (y) { y = Neg(x) }\n";
    const struct cm_expand_options only = {.only = "l::f, Softsign"}, except = {.except = "h"},
                                   all = {.only = "l::*"}, none = {.only = "Gelu"};
    const struct expanded *e = expand(arena, text, &only);

    check_has(e, "t = l.h (x)");
    check_has(e, "u = Relu (t)");
    check_lacks(e, "Softsign");
    check_same_results(arena, e);
    e = expand(arena, text, &except);
    check_has(e, "t = l.h (x)");
    check_has(e, "y = Softsign (u)");
    CHECK(e->report.functions == 1);
    e = expand(arena, text, &all);
    check_has(e, "t = Neg (x)");
    check_lacks(e, "\"l\"");
    e = try_expand(arena, text, &none);
    CHECK(e->status == CM_BAD_ARGUMENT && strstr(e->err.text, "'Gelu'"));
}

void test_expand__only_and_except_name_functions_and_operators(void)
{
    check_in_arena(case_only_and_except_name_functions_and_operators);
}

static void case_a_model_without_functions_keeps_its_messages(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               "<ir_version: 8, opset_import: [\"\" : 9, \"who\" : 3]>\n"
               "g (float[2] x) => (float[2] y) { t = who.Knows<a = 1>(x)\n y = Relu(t) }\n",
               &usual);

    CHECK(cm_message_equal(&cm_model_info, &e->file->model, &e->made->model, arena, NULL));
    CHECK(e->made->model.msg.changed == e->file->model.msg.changed);
}

void test_expand__a_model_without_functions_keeps_its_messages(void)
{
    check_in_arena(case_a_model_without_functions_keeps_its_messages);
}

static void case_functions_of_unknown_operators_can_be_inlined(struct cm_arena *arena)
{
    const struct expanded *e = expand(
        arena,
        "<ir_version: 8, opset_import: [\"\" : 17, \"l\" : 1]>\n"
        "g (float[2] x) => (float[2] y) { y = l.f(x) }\n"
        "<domain: \"l\", opset_import: [\"who\" : 3]> f (x) => (y) { y = who.Knows<a = 1>(x) }\n",
        &usual);

    check_has(e, "y = who.Knows <a: int = 1> (x)");
    check_has(e, "\"who\" : 3");
}

void test_expand__functions_of_unknown_operators_can_be_inlined(void)
{
    check_in_arena(case_functions_of_unknown_operators_can_be_inlined);
}

/* ---- versions ---- */

static void case_a_body_of_another_opset_is_converted(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               "<ir_version: 8, opset_import: [\"\" : 18, \"l\" : 1]>\n"
               "g (float[2,1] x) => (float[2] y) { y = l.f(x) }\n"
               "<domain: \"l\", opset_import: [\"\" : 13]> f (x) => (y) { n = Neg(x)\n"
               "  y = ReduceMean<axes = [1], keepdims = 0>(n) }\n",
               &usual);

    check_lacks(e, "axes: ints");
    check_has(e, "ReduceMean <keepdims: int = 0> (");
    CHECK(e->report.opset == 18);
}

void test_expand__a_body_of_another_opset_is_converted(void)
{
    check_in_arena(case_a_body_of_another_opset_is_converted);
}

static void case_a_body_that_is_too_new_raises_the_opset_and_says_why(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               "<ir_version: 6, opset_import: [\"\" : 11, \"l\" : 1]>\n"
               "g (float[2] x) => (float[2] y) { s = Softmax<axis = 0>(x)\n y = l.f(s) }\n"
               "<domain: \"l\", opset_import: [\"\" : 20]> f (x) => (y) { y = Gelu(x) }\n",
               &usual);

    CHECK(e->report.opset == 20 && e->report.opset_before == 11 && e->report.ir == 9);
    CHECK(e->report.raised_for.size);
    check_has(e, "y = Gelu (s)");
    check_same_results(arena, e);
}

void test_expand__a_body_that_is_too_new_raises_the_opset_and_says_why(void)
{
    check_in_arena(case_a_body_that_is_too_new_raises_the_opset_and_says_why);
}

/* ---- operators ---- */

static void case_operators_give_way_to_bodies_for_the_types_at_hand(struct cm_arena *arena)
{
    const struct expanded *e = expand(arena,
                                      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                      "g (float[2] x) => (float[2] y) {\n"
                                      "  [hinge] t = Relu(x)\n  [share] y = Softmax(t)\n}\n",
                                      &operators);

    check_lacks(e, "Softmax");
    check_lacks(e, "Relu");
    check_has(e, "\"share/t");
    CHECK(e->report.operators == 2);
    check_same_results(arena, e);
}

void test_expand__operators_give_way_to_bodies_for_the_types_at_hand(void)
{
    check_in_arena(case_operators_give_way_to_bodies_for_the_types_at_hand);
}

static void case_operators_inside_control_flow_read_values_around_it(struct cm_arena *arena)
{
    const struct expanded *e =
        expand(arena,
               "<ir_version: 8, opset_import: [\"\" : 17]>\n"
               "g (float[2] x, bool c) => (float[2] y) {\n  t = Abs(x)\n"
               "  y = If (c) <then_branch = a () => (float[2] r) { [in] r = Softsign(t) },\n"
               "    else_branch = b () => (float[2] q) { [other] q = Neg(t) }>\n}\n",
               &core);

    check_lacks(e, "Softsign");
    check_has(e, "[other] q = Neg (t)");
    check_same_results(arena, e);
}

void test_expand__operators_inside_control_flow_read_values_around_it(void)
{
    check_in_arena(case_operators_inside_control_flow_read_values_around_it);
}

static void case_core_refuses_what_has_no_body_all_at_once(struct cm_arena *arena)
{
    const struct expanded *e =
        try_expand(arena,
                   "<ir_version: 8, opset_import: [\"\" : 17, \"who\" : 1]>\n"
                   "g (float[2] x) => (float[2] y) {\n"
                   "  [a] t = who.Knows(x)\n  [b] u = who.Else(x)\n  y = Relu(x)\n}\n",
                   &core);

    CHECK(e->status == CM_UNSUPPORTED && e->left.count == 2);
    CHECK(strstr(e->err.text, "'a'") && strstr(e->err.text, "'b'"));
}

void test_expand__core_refuses_what_has_no_body_all_at_once(void)
{
    check_in_arena(case_core_refuses_what_has_no_body_all_at_once);
}

/* ---- training ---- */

static void case_training_info_is_expanded_and_its_bindings_stay(struct cm_arena *arena)
{
    const struct cm_load_options load = {.format = CM_FORMAT_TEXT};
    struct cm_model_file *made;
    struct cm_expand_report report;
    struct cm_findings left = {.arena = arena};
    struct cm_error err = {0};
    struct cm_model_file *file, *training;
    static const char text[] =
        HEAD "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {\n"
             "  y = Mul(x, w)\n}\n" LOCAL "f (x) => (y) { t = Exp(x)\n y = Relu(t) }\n";
    static const char algorithm[] = HEAD "a () => (float[2] next) { next = l.f(w) }\n";

    CHECK_OK(cm_model_parse(arena, cm_str(text), &load, &file, &err), &err);
    CHECK_OK(cm_model_parse(arena, cm_str(algorithm), &load, &training, &err), &err);
    struct cm_training_proto *entry = CM_LIST_ADD(arena, &file->model.training_info);
    entry->algorithm = training->model.graph;
    cm_msg_set(&entry->msg, CM_TRAINING_ALGORITHM);
    struct cm_entry_proto *binding = CM_LIST_ADD(arena, &entry->update_binding);
    *binding = (struct cm_entry_proto){.key = CM_STR("w"), .value = CM_STR("next")};
    cm_msg_set(&entry->msg, CM_TRAINING_UPDATE_BINDING);
    CHECK_OK(cm_expand_model(file, &core, arena, &made, &report, &left, &err), &err);
    const struct cm_training_proto *after = &made->model.training_info.items[0];
    CHECK(report.calls == 1 && report.operators == 1 && report.functions == 1);
    CHECK(cm_str_is(after->algorithm->node.items[0].op_type, "Exp"));
    CHECK(cm_str_is(after->algorithm->node.items[0].input.items[0], "w"));
    const struct cm_nodes *nodes = &after->algorithm->node;
    CHECK(cm_str_is(nodes->items[nodes->count - 1].output.items[0], "next"));
    CHECK(cm_str_is(after->update_binding.items[0].key, "w"));
    CHECK(made->model.graph == file->model.graph); /* nothing in it was to be done */
}

void test_expand__training_info_is_expanded_and_its_bindings_stay(void)
{
    check_in_arena(case_training_info_is_expanded_and_its_bindings_stay);
}

/* ---- budgets ---- */

static void case_a_chain_of_functions_that_double_is_refused(struct cm_arena *arena)
{
    char text[8000];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   HEAD "g (float[2] x) => (float[2] y) { y = l.f0(x) }\n");

    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 LOCAL "f%d (x) => (y) { t = l.f%d(x)\n y = l.f%d(t) }\n", i, i + 1,
                                 i + 1);
    snprintf(text + used, sizeof text - used, LOCAL "f40 (x) => (y) { y = Neg(x) }\n");
    const struct expanded *e = try_expand(arena, text, &usual);
    CHECK(e->status == CM_LIMIT && strstr(e->err.text, "nodes"));
    e = try_expand(arena,
                   HEAD "g (float[2] x) => (float[2] y) { y = l.f(x) }\n" LOCAL
                        "f (x) => (y) { y = l.f(x) }\n",
                   &usual);
    CHECK(e->status == CM_LIMIT);
}

void test_expand__a_chain_of_functions_that_double_is_refused(void)
{
    check_in_arena(case_a_chain_of_functions_that_double_is_refused);
}

/* The call is not in the function's own list of nodes but in a graph inside one of them. */
static void case_a_function_that_calls_itself_from_a_branch_is_refused(struct cm_arena *arena)
{
    const struct expanded *e =
        try_expand(arena,
                   HEAD "g (float[2] x, bool c) => (float[2] y) { y = l.f(x, c) }\n" LOCAL
                        "f (x, c) => (y) {\n"
                        "  y = If (c) <then_branch = a () => (float[2] r) { r = l.f(x, c) },\n"
                        "              else_branch = b () => (float[2] s) { s = Neg(x) }> }\n",
                   &usual);

    CHECK(e->status == CM_LIMIT);
    CHECK(strstr(e->err.text, "deep"));
}

void test_expand__a_function_that_calls_itself_from_a_branch_is_refused(void)
{
    check_in_arena(case_a_function_that_calls_itself_from_a_branch_is_refused);
}
