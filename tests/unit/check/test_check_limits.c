/* The checker on models that are large, deep or hostile. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "check/check.h"
#include "check/sample_model.h"

#include <time.h>

static struct cm_findings findings_of(struct cm_arena *arena, const struct cm_model_proto *model)
{
    struct cm_findings findings = {0};
    struct cm_error err = {0};

    CHECK_OK(cm_check_model(model, NULL, 0, arena, &findings, &err), &err);
    return findings;
}

static struct cm_nodes chain(struct cm_arena *arena, size_t count, const char *op)
{
    struct cm_nodes nodes = {CM_NEW_ARRAY(arena, struct cm_node_proto, count), count};
    struct cm_str before = CM_STR("x");

    for (size_t i = 0; i < count; i++) {
        struct cm_node_proto *node = &nodes.items[i];

        node->op_type = cm_str(op);
        *CM_LIST_ADD(arena, &node->input) = before;
        before = cm_arena_printf(arena, "v%zu", i);
        *CM_LIST_ADD(arena, &node->output) = before;
    }
    return nodes;
}

static struct cm_model_proto *chain_model(struct cm_arena *arena, size_t count, const char *op)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);

    model->ir_version = 10;
    sample_opset(arena, &model->opset_import, "", 21);
    model->graph = CM_NEW(arena, struct cm_graph_proto);
    model->graph->name = cm_str("g");
    sample_value(arena, &model->graph->input, "x", 1, 1, 2);
    model->graph->node = chain(arena, count, op);
    return model;
}

static void check_cut(struct cm_arena *arena)
{
    const struct cm_findings findings =
        findings_of(arena, chain_model(arena, 3 * CM_FINDINGS_MAX, "Relux"));

    CHECK_INT(findings.count, CM_FINDINGS_MAX);
    CHECK_INT(findings.violations, 3 * CM_FINDINGS_MAX);
    CHECK_INT(findings.total, 3 * CM_FINDINGS_MAX);
}

void test_check_limits__findings_past_the_limit_are_counted_but_not_listed(void)
{
    check_in_arena(check_cut);
}

static double seconds_for(struct cm_arena *arena, size_t count)
{
    const struct cm_model_proto *model = chain_model(arena, count, "Relu");
    const clock_t start = clock();
    const struct cm_findings findings = findings_of(arena, model);

    CHECK_INT(findings.count, 0);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static void check_linear(struct cm_arena *arena)
{
    /* Quadratic cost would make this take minutes; sanitizers and busy machines have room. */
    CHECK(seconds_for(arena, 200000) < 20.0);
}

void test_check_limits__a_long_chain_takes_linear_time(void)
{
    check_in_arena(check_linear);
}

/* Each function calls the next. */
static struct cm_model_proto *call_chain(struct cm_arena *arena, size_t count)
{
    struct cm_model_proto *model = chain_model(arena, 1, "Relu");

    sample_opset(arena, &model->opset_import, "d", 1);
    model->functions.items = CM_NEW_ARRAY(arena, struct cm_function_proto, count);
    model->functions.count = count;
    for (size_t i = 0; i < count; i++) {
        struct cm_function_proto *function = &model->functions.items[i];
        struct cm_node_proto *node = CM_LIST_ADD(arena, &function->node);

        function->name = cm_arena_printf(arena, "f%zu", i);
        function->domain = CM_STR("d");
        cm_msg_set(&function->msg, CM_FUNCTION_DOMAIN);
        sample_opset(arena, &function->opset_import, "", 21);
        sample_opset(arena, &function->opset_import, "d", 1);
        function->input = sample_words(arena, "a");
        function->output = sample_words(arena, "b");
        node->input = function->input;
        node->output = function->output;
        node->op_type = i + 1 < count ? cm_arena_printf(arena, "f%zu", i + 1) : CM_STR("Relu");
        node->domain = i + 1 < count ? CM_STR("d") : CM_STR("");
    }
    return model;
}

static void check_depth(struct cm_arena *arena)
{
    CHECK_INT(findings_of(arena, call_chain(arena, 100)).violations, 0);
    CHECK_INT(findings_of(arena, call_chain(arena, 101)).violations, 1);
    /* A chain as long as it likes neither overflows nor floods. */
    CHECK_INT(findings_of(arena, call_chain(arena, 10000)).violations, 1);
    CHECK_INT(findings_of(arena, call_chain(arena, 10001)).violations, 2);
}

void test_check_limits__calls_may_be_a_hundred_deep(void)
{
    check_in_arena(check_depth);
}

static void check_names(struct cm_arena *arena)
{
    struct cm_model_proto *model = chain_model(arena, 1, "Relu");

    model->graph->node.items[0].input.items[0] = (struct cm_str){"a\033[2J\377", 6};
    const struct cm_findings findings = findings_of(arena, model);
    CHECK_INT(findings.violations, 1);
    CHECK_STR(findings.items[0].reason, "reads 'a?[2J?', which nothing before it defines");
}

void test_check_limits__names_cannot_smuggle_control_characters_into_messages(void)
{
    check_in_arena(check_names);
}

static void exhaust(struct cm_arena *arena)
{
    (void)findings_of(arena, chain_model(arena, 2000, "Relux"));
}

void test_check_limits__running_out_of_memory_ends_the_call_cleanly(void)
{
    struct cm_error err = {0};

    CHECK_INT(check_in_arena_limited(1 << 20, &err, exhaust), CM_LIMIT);
    CHECK_INT(check_in_arena_limited(64 << 20, &err, exhaust), CM_OK);
}
