/* Weights and statistics that functions of a model hold. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "train_case.h"

static const char calling[] = "<ir_version: 9, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                              "net (float[n,2] x) => (float[n,2] y) <float[2] w = {1, 2}>\n"
                              "{ h = my.layer (x) y = Mul (h, w) }\n"
                              "<domain: \"my\", opset_import: [\"\" : 18]>\n"
                              "layer (x) => (y)\n"
                              "{ v = Constant <value = float[2] {1, 2}> ()\n"
                              "  c = Constant <value = float[2] {3, 4}> ()\n"
                              "  z = Mul (x, v) y = Add (z, c) }";

/* How many weights were lifted out of the function; where there are any, its call is expanded. */
static size_t lifted(struct cm_arena *arena, const char *train, const char *freeze, size_t trained)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("mse", "sgd", 1);
    struct cm_model_file *file = train_model(arena, calling);

    options.train = train;
    options.freeze = freeze;
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    size_t count = 0;
    for (size_t i = 0; i < report.n_choices; i++)
        count += report.choices[i].trained;
    CHECK_INT(count, trained);
    const size_t found = file->model.graph->initializer.count - 1;
    CHECK_INT(file->model.functions.count, found ? 0 : 1);
    return found;
}

static void functions(struct cm_arena *arena)
{
    CHECK_INT(lifted(arena, NULL, NULL, 3), 2);
    CHECK_INT(lifted(arena, "^w$", NULL, 1), 0);
    CHECK_INT(lifted(arena, "^layer.c", NULL, 1), 1);
    CHECK_INT(lifted(arena, NULL, "^layer", 1), 0);
    CHECK_INT(lifted(arena, NULL, "^layer.v|^w", 1), 1);
}

void test_lift_functions__weights_in_functions_stay_unless_they_are_chosen(void)
{
    check_in_arena(functions);
}

/* A function that is called twice is one layer; what it gives as a result is a copy. Bodies of
 * control flow in it hold weights too. */
static void tied_functions(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("mse", "sgd", 1);
    struct cm_model_file *file =
        train_model(arena, "<ir_version: 9, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                           "net (float[n,2] x, bool c) => (float[n,2] y, float[2] k, float[2] m)\n"
                           "{ h, k = my.layer (x, c) y, m = my.layer (h, c) }\n"
                           "<domain: \"my\", opset_import: [\"\" : 18]>\n"
                           "layer (x, c) => (y, q)\n"
                           "{ q = Constant <value_floats = [3.0, 4.0]> ()\n"
                           "  y = If (c) <then_branch = yes () => (o) <float[2] v = {1, 2}>\n"
                           "                { z = Mul (x, v) o = Add (z, q) },\n"
                           "              else_branch = no () => (o) { o = Identity (x) }> }");

    options.output = "y";
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    const struct cm_graph_proto *graph = file->model.graph;
    CHECK_INT(graph->initializer.count, 2);
    CHECK_STR(graph->initializer.items[0].name, "layer.q");
    CHECK_STR(graph->initializer.items[1].name, "layer.v");
    CHECK_INT(graph->output.count, 3);
    CHECK_STR(graph->output.items[2].name, "m");
    CHECK_INT(graph->node.count, 4); /* two If, two copies of q */
    CHECK_INT(file->model.training_info.items[0].update_binding.count, 3);
}

void test_lift_functions__weights_of_a_function_stay_tied(void)
{
    check_in_arena(tied_functions);
}

/* Running statistics are updated whatever is trained. */
static void function_statistics(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("mse", "sgd", 1);
    struct cm_model_file *file =
        train_model(arena, "<ir_version: 9, opset_import: [\"\" : 18, \"my\" : 1]>\n"
                           "net (float[n,2] x) => (float[n,2] y) <float[2] w = {1, 2}>\n"
                           "{ h = my.norm (x) y = Mul (h, w) }\n"
                           "<domain: \"my\", opset_import: [\"\" : 18]>\n"
                           "norm (x) => (y)\n"
                           "{ s = Constant <value = float[2] {1, 1}> ()\n"
                           "  o = Constant <value = float[2] {0, 0}> ()\n"
                           "  m = Constant <value = float[2] {0, 0}> ()\n"
                           "  v = Constant <value = float[2] {1, 1}> ()\n"
                           "  y = BatchNormalization (x, s, o, m, v) }");

    options.train = "^w$";
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    CHECK_INT(report.n_choices, 3);
    CHECK_STR(report.choices[1].name, "norm.m");
    CHECK(!report.choices[1].trained);
    CHECK_STR(report.choices[1].reason, "train does not match it");
    const struct cm_entries *bound = &file->model.training_info.items[0].update_binding;
    size_t found = 0;
    for (size_t i = 0; i < bound->count; i++)
        found +=
            cm_str_is(bound->items[i].key, "norm.m") || cm_str_is(bound->items[i].key, "norm.v");
    CHECK_INT(found, 2);
}

void test_lift_functions__statistics_in_functions_are_updated_in_any_case(void)
{
    check_in_arena(function_statistics);
}
