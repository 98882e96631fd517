/* Working graphs as model files again: under the file's opset, with what no pass touched as it
 * came. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "graph/graph_case.h"
#include "models/write_model.h"
#include "onnx/descriptor.h"
#include "onnx/syntax.h"
#include "versions/upgrade.h"

#include <math.h>

enum { TEXT_MAX = 8000, MOST = 16 };

struct written {
    struct cm_model_file *file; /* as it was */
    struct cm_graph *graph;
    struct cm_model_file *made;
    struct cm_write_report report;
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

static struct written *open_text(struct cm_arena *arena, const char *text)
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node};
    const struct cm_load_options load = {.format = CM_FORMAT_TEXT};
    struct written *w = CM_NEW(arena, struct written);
    struct cm_error err = {0};
    CHECK_OK(cm_model_parse(arena, cm_str(text), &load, &w->file, &err), &err);
    CHECK_OK(
        cm_module_import(cm_module_new(arena, NULL), &w->file->model, &options, &w->graph, &err),
        &err);
    return w;
}

static void write_it(struct cm_arena *arena, struct written *w, bool portable)
{
    const struct cm_write_options options = {.portable = portable};
    struct cm_error err = {0};
    CHECK_OK(cm_write_model(w->graph, w->file, &options, arena, &w->made, &w->report, &err), &err);
    w->text[0] = 0;
    CHECK_OK(cm_syntax_print_model(&w->made->model, NULL, append, w->text, &err), &err);
}

static void check_has(const struct written *w, const char *part)
{
    if (!strstr(w->text, part))
        fail_msg("'%s' is not in:\n%s", part, w->text);
}

static void check_lacks(const struct written *w, const char *part)
{
    if (strstr(w->text, part))
        fail_msg("'%s' is in:\n%s", part, w->text);
}

/* Both models give the same float for x = {-3, 4}. */
static void check_same_results(struct cm_arena *arena, const struct written *w)
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node};
    const struct cm_model_proto *models[] = {&w->file->model, &w->made->model};
    const struct cm_datum *x = FLOATS(arena, -3, 4);
    struct cm_error err = {0};
    float first[2];
    for (int m = 0; m < 2; m++) {
        struct cm_datum out[1] = {0};
        struct cm_graph *graph;
        CHECK_OK(cm_module_import(cm_module_new(arena, NULL), models[m], &options, &graph, &err),
                 &err);
        CHECK_OK(cm_graph_eval(graph, INPUTS(x), 1, out, NULL, &err), &err);
        const float *got = out[0].tensor.data;
        if (m == 0)
            memcpy(first, got, sizeof first);
        else
            CHECK(fabsf(first[0] - got[0]) < 1e-6F && fabsf(first[1] - got[1]) < 1e-6F);
        cm_datum_drop(out);
    }
}

/* Puts `count` nodes from the one number `first` on into a region; the last one's result is its
 * own. */
static void fuse(struct cm_graph *graph, size_t first, size_t count)
{
    struct cm_module *module = graph->module;
    struct cm_error err = {0};
    struct cm_graph *body = cm_graph_new(module, NULL, CM_STR("group"));
    struct cm_builder inside = {.graph = body, .err = &err};
    struct cm_clone clone;
    cm_value operands[MOST];
    size_t n_operands = 0;
    struct cm_node *node = graph->first, *next;

    while (first--)
        node = node->next;
    struct cm_builder build = {.graph = graph, .before = node, .err = &err};
    struct cm_node *const begin = node;
    cm_clone_init(&clone, module);
    cm_value last = 0;
    for (size_t n = 0; n < count; n++, node = node->next) {
        for (int i = 0; i < node->n_inputs; i++) {
            const cm_value value = node->inputs[i].value;
            const struct cm_value_def *def = cm_value_get(module, value);
            if (def->role == CM_ROLE_INITIALIZER || cm_clone_of(&clone, value) != value)
                continue;
            cm_clone_map(&clone, value, cm_graph_add_input(body, CM_STR_NONE, def->fact.type));
            operands[n_operands++] = value;
        }
        CHECK_OK(cm_clone_node(&clone, &inside, node), &err);
        last = node->outputs[0];
    }
    const cm_value inner = cm_clone_of(&clone, last);
    cm_graph_set_outputs(body, &inner, 1);
    const cm_value result =
        cm_build(&build, &(struct cm_emission){.op = "ai.cameo::ElementwiseRegion",
                                               .inputs = operands,
                                               .n_inputs = n_operands,
                                               .body_graphs = &body,
                                               .body_names = (const char *const[]){"body"},
                                               .n_bodies = 1,
                                               .n_outputs = 1});
    CHECK_OK(build.status, &err);
    const struct cm_str name = cm_value_get(module, last)->name;
    cm_value_replace(module, last, result);
    cm_value_set_name(module, last, CM_STR_NONE);
    cm_value_set_name(module, result, name);
    node = begin;
    for (size_t n = 0; n + 1 < count; n++)
        node = node->next;
    for (size_t n = 0; n < count; n++, node = next) {
        next = node->prev;
        cm_graph_remove_node(node);
    }
}

/* ---- what no pass touched ---- */

static const char untouched[] =
    "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"somebody\",\n"
    " metadata_props: [\"key\": \"value\"]>\n"
    "main (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {\n"
    "  [first] a = ReduceMean<axes = [0], keepdims = 1>(x)\n"
    "  b, c = Split<axis = 0>(x)\n"
    "  [last] d = Add(a, b)\n"
    "  e = Mul(d, w)\n"
    "  y = Add(e, c)\n"
    "}";

static void stays(struct cm_arena *arena)
{
    struct written *w = open_text(arena, untouched);
    struct cm_str where = CM_STR_NONE;
    write_it(arena, w, false);
    if (!cm_message_equal(&cm_model_info, &w->file->model, &w->made->model, arena, &where))
        fail_msg("%.*s differs: %s", CM_STR_FMT(where), w->text);
    CHECK_INT(w->report.nodes, 5);
    CHECK_INT(w->report.nodes_inlined, 5);
    CHECK_INT(w->report.opset, 17);
}

void test_write_model__a_model_that_no_pass_touched_comes_out_as_it_was(void)
{
    check_in_arena(stays);
}

static void rewired(struct cm_arena *arena)
{
    struct written *w = open_text(arena, untouched);
    struct cm_node *mean = w->graph->first, *split = mean->next;
    /* the mean of the first half */
    cm_node_move(mean, split->next);
    cm_node_set_input(mean, 0, split->outputs[0]);
    struct cm_error err = {0};
    CHECK_OK(cm_graph_retype(w->graph, &err), &err);
    write_it(arena, w, false);
    check_has(w, "[first] a = ReduceMean <axes: ints = [0], keepdims: int = 1> (b)");
}

void test_write_model__a_node_that_reads_something_else_keeps_the_form_of_the_file(void)
{
    check_in_arena(rewired);
}

static void other_axes(struct cm_arena *arena)
{
    struct written *w = open_text(arena, untouched);
    struct cm_builder build = {.graph = w->graph, .before = w->graph->first};
    cm_node_set_input(w->graph->first, 1, cm_build_int64s(&build, 1, &(int64_t){-1}));
    write_it(arena, w, false);
    check_has(w, "a = ReduceMean <keepdims: int = 1, axes: ints = [-1]> (x)");
}

void test_write_model__a_constant_that_was_an_attribute_and_was_changed_counts(void)
{
    check_in_arena(other_axes);
}

static void old_file(struct cm_arena *arena)
{
    struct written *w =
        open_text(arena, "<ir_version: 3, opset_import: [\"\" : 8]>\n"
                         "main (float[2] x, float[2] w, float[2] unread) => (float[2] y)\n"
                         "<float[2] w = {1, 2}, float[2] unread = {1, 2}> {\n"
                         "  a = Unsqueeze<axes = [0]>(x) b = Squeeze<axes = [0]>(a)\n"
                         "  y = Add(b, w)\n"
                         "}");
    write_it(arena, w, false);
    CHECK_INT(w->report.opset_before, 8);
    CHECK_INT(w->report.opset, 17);
    CHECK_INT(w->report.ir, 8);
    CHECK_INT(w->made->model.graph->input.count, 1);
    check_lacks(w, "unread");
    check_has(w, "Squeeze (a, t");
    check_same_results(arena, w);
}

void test_write_model__an_old_file_is_raised_to_the_least_opset(void)
{
    check_in_arena(old_file);
}

/* Scale and shift per group became seven nodes that make them per channel. */
static void groups(struct cm_arena *arena)
{
    const struct cm_write_options options = {.untouched = true};
    struct cm_error err = {0};
    struct written *w = open_text(
        arena, "<ir_version: 8, opset_import: [\"\" : 18]>\n"
               "m (float[N,4,2] x) => (float[N,4,2] y) <float[2] s = {1, 2}, float[2] b = {0, 1}>\n"
               "{ r = Relu (x) z = GroupNormalization <num_groups = 2> (r, s, b)\n"
               "  y = GroupNormalization <num_groups = 2> (z, b, s) }");

    CHECK(w->graph->n_nodes > 5);
    CHECK_OK(cm_write_model(w->graph, w->file, &options, arena, &w->made, &w->report, &err), &err);
    w->text[0] = 0;
    CHECK_OK(cm_syntax_print_model(&w->made->model, NULL, append, w->text, &err), &err);
    CHECK_INT(w->made->model.graph->node.count, 3);
    check_has(w, "z = GroupNormalization <num_groups: int = 2> (r, s, b)");
    check_has(w, "y = GroupNormalization <num_groups: int = 2> (z, b, s)");
    CHECK_INT(w->report.opset, 18);
}

void test_write_model__what_an_upgrade_made_of_a_node_is_written_as_that_node(void)
{
    check_in_arena(groups);
}

/* ---- forms that older versions have ---- */

/* A model of opset 17 whose output is computed by one more node, as the newest version has it. */
static struct written *with_new(struct cm_arena *arena, const struct cm_emission *emission)
{
    struct written *w = open_text(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                         "main (float[2] x) => (float[2] y) { y = Neg(x) }");
    struct cm_graph *graph = w->graph;
    struct cm_error err = {0};
    struct cm_builder build = {.graph = graph, .err = &err};
    struct cm_emission full = *emission;
    cm_value inputs[3] = {graph->first->outputs[0], 0, 0};
    if (!emission->inputs) {
        full.inputs = inputs;
        full.n_inputs = 1;
    }
    cm_value_set_name(graph->module, inputs[0], CM_STR("negative"));
    const cm_value y = cm_build(&build, &full);
    CHECK_OK(build.status, &err);
    cm_value_set_name(graph->module, y, CM_STR("y"));
    cm_use_redirect(graph->module, &graph->outputs[0], y);
    return w;
}

/* Nodes of a newer opset, as if passes had made them, in a file of opset 17. */
static struct written *as_if_made(struct cm_arena *arena, const char *nodes)
{
    const struct cm_str text = cm_arena_printf(
        arena,
        "<ir_version: 10, opset_import: [\"\" : 22]>\n"
        "main (float[2] x, float[1,4,4,2] s, float[1,2,2,2] g, int64[1] any) => ()\n"
        "<int64[1] axes = {-1}, int64 axis = {2}> {\n  %s\n}",
        nodes);
    struct written *w = open_text(arena, text.data);
    struct cm_graph *graph = w->graph;
    const cm_value last = graph->last->outputs[0];
    struct cm_value_infos *outputs = &w->file->model.graph->output;
    for (struct cm_node *node = graph->first; node; node = node->next)
        node->origin = NULL;
    cm_graph_set_outputs(graph, &last, 1);
    CM_LIST_ADD(arena, outputs)->name = cm_value_get(graph->module, last)->name;
    w->file->model.opset_import.items[0].version = 17;
    write_it(arena, w, false);
    return w;
}

static void older_forms(struct cm_arena *arena)
{
    static const struct {
        const char *node, *wanted;
    } rows[] = {
        {"y = ReduceMax<keepdims = 0>(x, axes)",
         "ReduceMax <keepdims: int = 0, axes: ints = [-1]> (x)"},
        {"y = ReduceL2<noop_with_empty_axes = 0>(x)", "y = ReduceL2 (x)"},
        {"a, y = Split<num_outputs = 2>(x)", "a, y = Split (x)"},
        {"y = DFT(s, , axis)", "y = DFT <axis: int = 2> (s)"},
        {"y = DFT(s)", "y = DFT <axis: int = -2> (s)"},
        {"y = GridSample<mode = \"cubic\">(s, g)",
         "y = GridSample <mode: string = \"bicubic\"> (s, g)"},
    };
    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        const struct written *w = as_if_made(arena, rows[i].node);
        CHECK_INT(w->report.opset, 17);
        check_has(w, rows[i].wanted);
    }
    /* axes that are known only at run time, parts that are not equal: no older version has these;
     * Split has a body, which is called */
    CHECK_INT(as_if_made(arena, "y = ReduceMax(x, any)")->report.opset, 18);
    const struct written *w = as_if_made(arena, "a, b, y = Split<num_outputs = 3, axis = 1>(s)");
    CHECK_INT(w->report.opset, 17);
    check_has(w, "ai.cameo.functions.Split (s)");
}

void test_write_model__new_nodes_take_the_form_that_the_opset_has(void)
{
    check_in_arena(older_forms);
}

static void gelu(struct cm_arena *arena)
{
    struct written *w = with_new(arena, &(struct cm_emission){.op = "Gelu"});
    write_it(arena, w, false);
    CHECK_INT(w->report.opset, 17);
    CHECK_INT(w->report.functions, 1);
    CHECK_INT(w->report.nodes, 2);
    CHECK(w->report.nodes_inlined > 2);
    check_has(w, "y = ai.cameo.functions.Gelu (negative)");
    check_has(w, "Erf");
    w = with_new(arena, &(struct cm_emission){.op = "Gelu"});
    write_it(arena, w, true);
    CHECK_INT(w->report.opset, 17);
    check_lacks(w, "functions");
    check_has(w, "Erf");
}

void test_write_model__an_operator_that_is_too_new_is_written_as_its_function(void)
{
    check_in_arena(gelu);
}

static void no_way(struct cm_arena *arena)
{
    /* a type that Cast does not know before 19 */
    struct cm_attribute_proto to = cm_attr_int(arena, "to", CM_FLOAT8E4M3FN);
    struct written *w =
        with_new(arena, &(struct cm_emission){.op = "Cast", .attributes = &to, .n_attributes = 1});
    write_it(arena, w, false);
    CHECK_INT(w->report.opset, 19);
    CHECK_INT(w->report.ir, 9);
    CHECK(strstr(w->report.raised_for.data, "Cast"));
}

void test_write_model__the_opset_is_raised_where_nothing_else_helps(void)
{
    check_in_arena(no_way);
}

/* ---- regions ---- */

static const char repeated[] =
    "<ir_version: 7, opset_import: [\"\" : 17]>\n"
    "main (float[2] x) => (float[2] y) <float two = {2}, float three = {3}> {\n"
    "  a = Mul(x, two) b = Relu(a)\n"
    "  c = Mul(b, two) d = Relu(c)\n"
    "  e = Mul(d, three) f = Relu(e)\n"
    "  y = Sub(f, x)\n"
    "}";

static void regions(struct cm_arena *arena)
{
    struct written *w = open_text(arena, repeated);
    for (size_t first = 0; first < 3; first++)
        fuse(w->graph, first, 2);
    write_it(arena, w, false);
    CHECK_INT(w->report.functions, 2);
    CHECK_INT(w->report.nodes, 4);
    CHECK_INT(w->report.nodes_inlined, 7);
    CHECK_INT(w->report.ir, 8);
    check_has(w, "b = ai.cameo.functions.Mul_Relu (x)");
    check_has(w, "d = ai.cameo.functions.Mul_Relu (b)");
    check_has(w, "f = ai.cameo.functions.Mul_Relu_2 (d)");
    check_has(w, "\"ai.cameo.functions\" : 1");
    check_lacks(w, "\"ai.cameo\"");
    check_lacks(w, "float two"); /* no initializer: it is inside the function */
    check_same_results(arena, w);
    w = open_text(arena, repeated);
    fuse(w->graph, 0, 2);
    write_it(arena, w, true);
    CHECK_INT(w->report.nodes, 6);
    CHECK_INT(w->report.nodes_inlined, 7);
    CHECK_INT(w->made->model.graph->node.count, 7);
    check_lacks(w, "ai.cameo");
    check_same_results(arena, w);
}

void test_write_model__regions_alike_are_one_function(void)
{
    check_in_arena(regions);
}

/* ---- functions of the file ---- */

static void functions(struct cm_arena *arena)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                               "main (float[2] x) => (float[2] y) { y = my.outer(x) }\n"
                               "<domain: \"my\", opset_import: [\"\" : 17]>\n"
                               "inner (x) => (y) { y = Neg(x) }\n"
                               "<domain: \"my\", opset_import: [\"\" : 17, \"my\" : 1]>\n"
                               "outer (x) => (y) { y = my.inner(x) }\n"
                               "<domain: \"my\", opset_import: [\"\" : 17]>\n"
                               "never (x) => (y) { y = Abs(x) }\n";
    struct written *w = open_text(arena, text);
    write_it(arena, w, false);
    CHECK_INT(w->made->model.functions.count, 2);
    check_lacks(w, "never");
    w = open_text(arena, text);
    write_it(arena, w, true);
    CHECK_INT(w->made->model.functions.count, 0);
    check_has(w, "y = Neg (x)");
}

void test_write_model__functions_that_are_called_stay(void)
{
    check_in_arena(functions);
}

static void output_names(struct cm_arena *arena)
{
    struct written *w = open_text(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                         "main (float[2] x) => (float[2] y, float[2] z) {\n"
                                         "  y = Neg(x) z = Identity(y)\n"
                                         "}");
    cm_value_replace(w->graph->module, w->graph->last->outputs[0], w->graph->first->outputs[0]);
    write_it(arena, w, false);
    check_has(w, "z = Identity (y)");
    CHECK_INT(w->report.nodes, 2);
}

void test_write_model__an_output_keeps_its_name_when_its_value_has_another(void)
{
    check_in_arena(output_names);
}

/* Its value loses the name: that of another node would be free then. */
static void free_names(struct cm_arena *arena)
{
    struct written *w = open_text(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                         "main (float[2] x) => (float[2] t1, float[2] t1) {\n"
                                         "  a = Neg(x) b = Abs(a) t1 = Relu(b)\n"
                                         "}");
    struct cm_module *module = w->graph->module;
    cm_value_set_name(module, w->graph->first->outputs[0], CM_STR_NONE);
    cm_value_set_name(module, w->graph->last->outputs[0], CM_STR_NONE);
    write_it(arena, w, false);
    check_has(w, "t2 = Neg (x)");
    check_has(w, "t3 = Relu (b)\n   t1 = Identity (t3)\n}");
}

void test_write_model__names_of_outputs_are_given_to_nothing_else(void)
{
    check_in_arena(free_names);
}

static void refused(struct cm_arena *arena)
{
    const struct cm_write_options options = {.portable = true};
    struct written *w = open_text(
        arena, "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
               "main (float[2] x) => (float[2] g) {\n"
               "  y = Mul(x, x)\n"
               "  g = ai.onnx.preview.training.Gradient <xs = [\"x\"], y = \"y\"> (x)\n"
               "}");
    struct cm_error err = {0};
    CHECK_FAILS(cm_write_model(w->graph, w->file, &options, arena, &w->made, &w->report, &err),
                CM_UNSUPPORTED, &err, "1 node has no form of standard operators: node making 'g'");
}

void test_write_model__what_has_no_portable_form_is_named(void)
{
    check_in_arena(refused);
}
