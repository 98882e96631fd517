/* Old operator versions are brought to the newest: every version has a row, steps keep the meaning,
 * and what cannot be kept is refused. Values of all (operator, version) pairs are compared by the
 * cases that tools/make_upgrade_cases.py makes; here is what those cannot show. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"

#include "onnx/syntax.h"
#include "versions/upgrade.h"
#include "versions/upgrade_step.h"

#include <stdio.h>

static enum cm_status try_import(struct cm_arena *arena, const char *imports, const char *graph,
                                 struct cm_graph **out, struct cm_error *err)
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    const struct cm_str text =
        cm_arena_printf(arena, "<ir_version: 3, opset_import: [%s]>\n%s", imports, graph);
    CHECK_OK(cm_syntax_parse_model(text, arena, model, err), err);
    return cm_module_import(cm_module_new(arena, NULL), model, &options, out, err);
}

static struct cm_graph *upgraded(struct cm_arena *arena, const char *imports, const char *text)
{
    struct cm_graph *graph = NULL;
    struct cm_error err = {0};
    CHECK_OK(try_import(arena, imports, text, &graph, &err), &err);
    return graph;
}

#define CHECK_REFUSED(arena, imports, text, status, part)                                          \
    do {                                                                                           \
        struct cm_graph *refused;                                                                  \
        struct cm_error err = {0};                                                                 \
        CHECK_FAILS(try_import((arena), (imports), (text), &refused, &err), (status), &err,        \
                    (part));                                                                       \
    } while (0)

/* "Op Op Op": the nodes of a graph, in order. */
static const char *operators(struct cm_arena *arena, const struct cm_graph *graph)
{
    struct cm_str list = CM_STR("");
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        CHECK(cm_node_is_current(node));
        list = cm_arena_printf(arena, "%s%s%.*s", list.data, list.size ? " " : "",
                               CM_STR_FMT(node->op_type));
    }
    return list.data;
}

void test_upgrade__every_version_of_every_operator_has_a_row(void)
{
    size_t versions = 0;

    for (size_t i = 0; i + 1 < cm_schema_count(); i++) { /* newest first within an operator */
        const struct cm_schema *schema = cm_schema_at(i), *before = cm_schema_at(i + 1);
        if (strcmp(schema->domain, before->domain) != 0 || strcmp(schema->name, before->name) != 0)
            continue;
        versions++;
        if (!cm_upgrade_known(cm_str(schema->domain), cm_str(schema->name), schema->since_version))
            fail_msg("no row for %s %s %d", schema->domain, schema->name, schema->since_version);
    }
    CHECK_INT(versions, 432);
}

/* The words of a row are operators, in order, with such a version. */
static size_t check_words(struct cm_str domain, const char *ops, int to, enum cm_upgrade_kind kind)
{
    struct cm_str last = CM_STR("");
    size_t count = 0;

    for (const char *at = ops, *end = ops; *end; at = end + 1) {
        for (end = at; *end && *end != ' ';)
            end++;
        const struct cm_str op = {at, (size_t)(end - at)};
        const struct cm_schema *schema = cm_schema_find(domain, op, to);
        if (!schema || schema->since_version != to)
            fail_msg("there is no %.*s %d", CM_STR_FMT(op), to);
        if (!cm_schema_find(domain, op, to - 1) && kind != CM_UPGRADE_MISSING)
            fail_msg("%.*s %d is the first version", CM_STR_FMT(op), to);
        if (cm_str_compare(last, op) >= 0)
            fail_msg("%.*s %d is out of order", CM_STR_FMT(op), to);
        if (kind && cm_upgrade_known(domain, op, to) != kind)
            fail_msg("the row %.*s %d is not found", CM_STR_FMT(op), to);
        last = op;
        count++;
    }
    return count;
}

/* A word out of order would be lost. */
void test_upgrade__every_row_is_found_and_names_versions_that_exist(void)
{
    size_t same = 0, changed = 0;

    for (size_t t = 0; t < cm_version_table_count; t++)
        for (size_t i = 0; i < cm_version_tables[t]->count; i++) {
            const struct cm_version_row *row = &cm_version_tables[t]->rows[i];
            const size_t count =
                check_words(cm_str(cm_version_tables[t]->domain), row->ops, row->to,
                            row->up_note ? CM_UPGRADE_CHANGED : CM_UPGRADE_MISSING);
            changed += row->up_note ? count : 0;
        }
    for (size_t i = 0; i < cm_version_unchanged_count; i++)
        same += check_words(cm_str(cm_version_unchanged[i].domain), cm_version_unchanged[i].ops,
                            cm_version_unchanged[i].to, CM_UPGRADE_SAME);
    CHECK_INT(changed, 96);
    CHECK_INT(same, 336);
}

static void names_and_versions(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(arena, "\"\" : 6",
                                      "main (float[2] x) => (float[2] y) {\n"
                                      "  [clip] y = Clip <min = -1.0, max = 2.0> (x)\n"
                                      "}");
    const cm_value y = cm_graph_find(graph, CM_STR("y"));
    const struct cm_node *node = cm_value_get(graph->module, y)->node;

    CHECK_STR(node->op_type, "Clip");
    CHECK_STR(node->name, "clip");
    CHECK_INT(node->n_inputs, 3);
    CHECK_INT(node->n_attributes, 0);
    CHECK_INT(node->original_version, 6);
    CHECK_INT(node->schema->since_version, 13);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, -5, 5)), -1, 2);
}

void test_upgrade__a_node_keeps_its_name_its_outputs_and_its_original_version(void)
{
    check_in_arena(names_and_versions);
}

static void long_domain(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(arena, "\"ai.onnx\" : 6",
                                      "main (float[2] x) => (float[2] y) {\n"
                                      "  y = ai.onnx.Clip <min = -1.0, max = 2.0> (x)\n"
                                      "}");
    CHECK_STRING(operators(arena, graph), "Clip");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, -5, 5)), -1, 2);
}

void test_upgrade__both_names_of_the_default_domain_are_known(void)
{
    check_in_arena(long_domain);
}

static void one_bound(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(
        arena, "\"\" : 6", "main (float[2] x) => (float[2] y) { y = Clip <max = 2.0> (x) }");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, -5, 5)), -5, 2);
}

void test_upgrade__a_bound_that_is_not_given_stays_absent(void)
{
    check_in_arena(one_bound);
}

static void axis_of_known_ranks(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(arena, "\"\" : 6",
                                      "main (float[2,3] a, float[2] b) => (float[2,3] y) {\n"
                                      "  y = Sub <broadcast = 1, axis = 0> (a, b)\n"
                                      "}");
    struct cm_datum *a = FLOATS(arena, 1, 2, 3, 4, 5, 6);
    a->tensor.shape = CM_SHAPE(2, 3);
    CHECK_STRING(operators(arena, graph), "Unsqueeze Sub");
    CHECK_GIVES(arena, graph, INPUTS(a, FLOATS(arena, 10, 20)), -9, -8, -7, -16, -15, -14);
}

void test_upgrade__broadcasting_along_an_axis_adds_dimensions(void)
{
    check_in_arena(axis_of_known_ranks);
}

static void axis_of_unknown_ranks(struct cm_arena *arena)
{
    static const char *const axes[] = {"0", "-2"};
    for (size_t i = 0; i < 2; i++) {
        const struct cm_str text = cm_arena_printf(arena,
                                                   "main (float[] a, float[] b) => (float[] y) { y "
                                                   "= Sub <broadcast = 1, axis = %s> (a, b) }",
                                                   axes[i]);
        struct cm_graph *graph = upgraded(arena, "\"\" : 6", text.data);
        struct cm_datum *a = FLOATS(arena, 1, 2, 3, 4, 5, 6);
        a->tensor.shape = CM_SHAPE(2, 3);
        CHECK_INT(cm_value_get(graph->module, graph->inputs[0])->fact.type->rank, CM_RANK_UNKNOWN);
        CHECK_GIVES(arena, graph, INPUTS(a, FLOATS(arena, 10, 20)), -9, -8, -7, -16, -15, -14);
    }
}

void test_upgrade__broadcasting_along_an_axis_works_when_ranks_are_unknown(void)
{
    check_in_arena(axis_of_unknown_ranks);
}

static void wrong_axis(struct cm_arena *arena)
{
    CHECK_REFUSED(arena, "\"\" : 6",
                  "main (float[2,3] a, float[2,3] b) => (float[2,3] y) {\n"
                  "  y = Add <broadcast = 1, axis = 1> (a, b)\n"
                  "}",
                  CM_BAD_MODEL, "rank 2, which does not fit at axis 1 of rank 2");
    CHECK_REFUSED(arena, "\"\" : 6",
                  "main (float[] a, float[] b) => (float[] y) {\n"
                  "  y = Add <broadcast = 1, axis = -9223372036854775808> (a, b)\n"
                  "}",
                  CM_BAD_MODEL, "axis is -9223372036854775808");
}

void test_upgrade__an_axis_where_the_operand_does_not_fit_is_refused(void)
{
    check_in_arena(wrong_axis);
}

static void old_schema(struct cm_arena *arena)
{
    CHECK_REFUSED(arena, "\"\" : 7",
                  "main (float[2] x) => (float[2] y) { y = Add <broadcast = 1> (x, x) }",
                  CM_BAD_MODEL, "attribute 'broadcast' is not defined in Add version 7");
    CHECK_REFUSED(arena, "\"\" : 6",
                  "main (float[2] x) => (float[2] y) { y = Add <broadcast = 1.5> (x, x) }",
                  CM_BAD_MODEL, "attribute 'broadcast' has type 1, must have 2");
    CHECK_REFUSED(arena, "\"\" : 9", "main (float[2] x) => (float[1] y) { y = TopK (x) }",
                  CM_BAD_MODEL, "attribute 'k' is required by TopK version 1");
    CHECK_REFUSED(
        arena, "\"\" : 9",
        "main (float[2] x) => (float[1] y) { y = Slice <starts = [0], ends = [1]> (x, x) }",
        CM_BAD_MODEL, "has 2 inputs, Slice version 1 needs 1 to 1");
}

void test_upgrade__nodes_are_held_to_the_rules_of_their_own_version(void)
{
    check_in_arena(old_schema);
}

/* Version 5 of the operator says nothing but that it is gone. */
static void only_deprecated(struct cm_arena *arena)
{
    static const char tree[] =
        "main (float[1,2] x) => (float[1,1] y) { y = ai.onnx.ml.TreeEnsembleRegressor "
        "<n_targets = 1, nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], "
        "nodes_values = [0.0], nodes_modes = [\"LEAF\"], nodes_truenodeids = [0], "
        "nodes_falsenodeids = [0], target_treeids = [0], target_nodeids = [0], target_ids = [0], "
        "target_weights = [1.0]> (x) }";
    for (int version = 1; version < 5; version++) {
        char opsets[64];
        snprintf(opsets, sizeof opsets, "\"\" : 15, \"ai.onnx.ml\" : %d", version);
        CHECK_STRING(operators(arena, upgraded(arena, opsets, tree)), "TreeEnsembleRegressor");
    }
    CHECK_REFUSED(arena, "\"\" : 15, \"ai.onnx.ml\" : 5", tree, CM_UNSUPPORTED,
                  "version 5 of the operator is deprecated");
}

void test_upgrade__operators_that_are_only_deprecated_stay_what_they_were(void)
{
    check_in_arena(only_deprecated);
}

static void mode_taken_out(struct cm_arena *arena)
{
    CHECK_REFUSED(arena, "\"\" : 1",
                  "main (float[1,1,4,4] x) => (float[] y) { y = GlobalLpPool <p = 2.5> (x) }",
                  CM_UNSUPPORTED, "p is 2.5");
    CHECK_REFUSED(arena, "\"\" : 1", "main (float[4] x) => (float[2] y) { y = Split (x) }",
                  CM_UNSUPPORTED, "Split version 1 needs attribute 'axis'");
}

void test_upgrade__what_cannot_be_said_any_more_is_refused_with_the_reason(void)
{
    check_in_arena(mode_taken_out);
}

static void softmax_forms(struct cm_arena *arena)
{
    CHECK_STRING(
        operators(arena, upgraded(arena, "\"\" : 11",
                                  "main (float[2,3] x) => (float[2,3] y) { y = Softmax (x) }")),
        "Softmax");
    CHECK_STRING(
        operators(arena, upgraded(arena, "\"\" : 11",
                                  "main (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax (x) }")),
        "Flatten Softmax Shape Reshape");
    CHECK_STRING(operators(arena, upgraded(arena, "\"\" : 11",
                                           "main (float[] x) => (float[] y) { y = Hardmax (x) }")),
                 "Flatten Hardmax Shape Reshape");
}

void test_upgrade__softmax_becomes_a_matrix_only_where_the_axis_is_not_the_last(void)
{
    check_in_arena(softmax_forms);
}

static struct cm_graph *resized(struct cm_arena *arena, const char *scales)
{
    const struct cm_str text =
        cm_arena_printf(arena,
                        "main (float[1,1,2,4] x) => (float[] y) <float[4] s = {%s}> {\n"
                        "  y = Resize (x, s)\n"
                        "}",
                        scales);
    return upgraded(arena, "\"\" : 10", text.data);
}

static void resize_directions(struct cm_arena *arena)
{
    struct cm_graph *graph = resized(arena, "1, 1, 2, 2");
    CHECK_STRING(operators(arena, graph), "Resize");
    CHECK_STR(cm_node_str(graph->last, "nearest_mode"), "floor");
    graph = resized(arena, "1, 1, 0.5, 0.75");
    CHECK_STRING(operators(arena, graph), "Resize");
    CHECK_STR(cm_node_str(graph->last, "nearest_mode"), "ceil");
    graph = resized(arena, "1, 1, 2, 0.75");
    CHECK_STRING(operators(arena, graph), "Min Resize Max Resize");
    CHECK_STR(cm_node_str(graph->last, "nearest_mode"), "floor");
}

void test_upgrade__an_old_resize_becomes_two_only_where_it_grows_and_shrinks(void)
{
    check_in_arena(resize_directions);
}

static void dropout_mask(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(
        arena, "\"\" : 7",
        "main (float[2] x) => (float[2] m, float[2] y) { y, m = Dropout <ratio = 0.9> (x) }");
    CHECK_STRING(operators(arena, graph), "Dropout Cast");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 3, 4)), 1, 1);
    graph = upgraded(arena, "\"\" : 9", "main (float[2] x) => (float[2] y) { y = Dropout (x) }");
    CHECK_STRING(operators(arena, graph), "Dropout");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 3, 4)), 3, 4);
}

void test_upgrade__a_dropout_mask_keeps_the_type_it_had(void)
{
    check_in_arena(dropout_mask);
}

static void training_dropout(struct cm_arena *arena)
{
    struct cm_graph *graph =
        upgraded(arena, "\"\" : 6", "main (float[2] x) => (float[2] y) { y = Dropout (x) }");
    CHECK_INT(graph->last->n_inputs, 3); /* with training_mode, as is_test was 0 by default */
    graph = upgraded(arena, "\"\" : 6",
                     "main (float[2] x) => (float[2] y) { y = Dropout <is_test = 1> (x) }");
    CHECK_INT(graph->last->n_inputs, 2);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 3, 4)), 3, 4);
}

void test_upgrade__dropout_trained_unless_told_that_it_is_a_test(void)
{
    check_in_arena(training_dropout);
}

/* Running sums of two sequences of different lengths: what lies past the end is zero. */
static void batch_scan(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(
        arena, "\"\" : 8",
        "main (int64[2] n, float[2,1] s, float[2,3,1] x) => (float[2,3,1] y, float[2,1] z) {\n"
        "  z, y = Scan (n, s, x) <num_scan_inputs = 1,\n"
        "    body = step (float[1] a, float[1] b) => (float[1] c, float[1] d) {\n"
        "      c = Add(a, b) d = Identity(c)\n"
        "    }>\n"
        "}");
    static const int64_t lengths[] = {3, 2};
    struct cm_datum n = {.kind = CM_KIND_TENSOR};
    n.tensor = cm_tensor_borrow(CM_INT64, &CM_SHAPE(2), (void *)(uintptr_t)lengths);
    struct cm_datum *s = FLOATS(arena, 10, 20), *x = FLOATS(arena, 1, 2, 3, 4, 5, 6);
    s->tensor.shape = CM_SHAPE(2, 1);
    x->tensor.shape = CM_SHAPE(2, 3, 1);
    CHECK_GIVES(arena, graph, INPUTS(&n, s, x), 11, 13, 16, 24, 29, 0);
}

void test_upgrade__a_batch_of_sequences_is_scanned_one_by_one(void)
{
    check_in_arena(batch_scan);
}

static void inside_bodies(struct cm_arena *arena)
{
    struct cm_graph *graph = upgraded(arena, "\"\" : 9",
                                      "main (float[3] x, bool c) => (float[1] y) {\n"
                                      "  y = If (c) <then_branch = yes () => (float[1] r) {\n"
                                      "    r = ReduceSum <axes = [0]> (x) },\n"
                                      "  else_branch = no () => (float[1] r) {\n"
                                      "    r = Slice <starts = [1], ends = [2]> (x) }>\n"
                                      "}");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 4), graph_bool(arena, true)), 7);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 4), graph_bool(arena, false)), 2);
}

void test_upgrade__nodes_in_bodies_are_upgraded_too(void)
{
    check_in_arena(inside_bodies);
}
