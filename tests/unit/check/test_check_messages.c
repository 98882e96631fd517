/* Messages checked by themselves, and what the flags change. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "check/check.h"
#include "check/sample_model.h"

static struct cm_node_proto *one_node(struct cm_arena *arena, const char *op, const char *inputs)
{
    struct cm_nodes *nodes = CM_NEW(arena, struct cm_nodes);

    return sample_node(arena, nodes, "n", op, inputs, "y");
}

static size_t violations_of_node(struct cm_arena *arena, const struct cm_node_proto *node,
                                 int64_t opset)
{
    struct cm_check_context context = {0};
    struct cm_findings findings;
    struct cm_error err = {0};

    if (opset)
        sample_opset(arena, &context.imports, "", opset);
    CHECK_OK(cm_check_message(&cm_node_info, node, &context, arena, &findings, &err), &err);
    return findings.violations;
}

static void check_versions(struct cm_arena *arena)
{
    const struct cm_node_proto *dropout = one_node(arena, "Dropout", "x ratio");

    CHECK_INT(violations_of_node(arena, dropout, 10), 1);
    CHECK_INT(violations_of_node(arena, dropout, 12), 0);
    CHECK_INT(violations_of_node(arena, dropout, 0), 0);
}

void test_check_messages__a_node_is_judged_by_the_imports_given(void)
{
    check_in_arena(check_versions);
}

static void check_attributes(struct cm_arena *arena)
{
    const struct cm_check_context newest = {0};
    const struct cm_check_context oldest = {.ir_version = 1};
    struct cm_attribute_proto attribute = {.name = CM_STR("alpha")};
    struct cm_findings findings;
    struct cm_error err = {0};

    CHECK_OK(cm_check_message(&cm_attribute_info, &attribute, &newest, arena, &findings, &err),
             &err);
    CHECK_INT(findings.violations, 1);
    CHECK_STRING(findings.items[0].rule, "CK40");
    CHECK_STR(findings.items[0].place, "attribute 'alpha'");
    CHECK_OK(cm_check_message(&cm_attribute_info, &attribute, &oldest, arena, &findings, &err),
             &err);
    CHECK_INT(findings.count, 0);
}

void test_check_messages__an_attribute_needs_a_type_since_ir_version_2(void)
{
    check_in_arena(check_attributes);
}

static void check_values(struct cm_arena *arena)
{
    const struct cm_check_context context = {0};
    struct cm_value_infos values = {NULL, 0};
    struct cm_findings findings;
    struct cm_error err = {0};

    sample_value(arena, &values, "x", 1, 2, 3);
    CHECK_OK(
        cm_check_message(&cm_value_info_info, &values.items[0], &context, arena, &findings, &err),
        &err);
    CHECK_INT(findings.count, 0);
    values.items[0].type->tensor_type->shape = NULL;
    CHECK_OK(
        cm_check_message(&cm_value_info_info, &values.items[0], &context, arena, &findings, &err),
        &err);
    CHECK_INT(findings.violations, 1);
    CHECK_STR(findings.items[0].place, "value_info 'x'");
    CHECK_STR(findings.items[0].reason,
              "its type has no shape; ONNX Runtime accepts this, and so does --tool ort");
}

void test_check_messages__a_value_needs_a_shape(void)
{
    check_in_arena(check_values);
}

static size_t violations(struct cm_arena *arena, const struct cm_model_proto *model, unsigned flags)
{
    struct cm_findings findings;
    struct cm_error err = {0};

    CHECK_OK(cm_check_model(model, NULL, flags, arena, &findings, &err), &err);
    return findings.violations;
}

static void check_custom(struct cm_arena *arena)
{
    struct cm_model_proto *model = sample_model(arena);

    CHECK_INT(violations(arena, model, CM_CHECK_CUSTOM_DOMAINS), 0);
    model->graph->node.items[3].op_type = CM_STR("Unheard");
    CHECK_INT(violations(arena, model, 0), 0);
    CHECK_INT(violations(arena, model, CM_CHECK_CUSTOM_DOMAINS), 1);
}

void test_check_messages__custom_operators_must_be_functions_only_when_asked(void)
{
    check_in_arena(check_custom);
}

static void check_opsets(struct cm_arena *arena)
{
    struct cm_model_proto *model = sample_model(arena);

    model->functions.items[0].opset_import.items[0].version = 13;
    CHECK_INT(violations(arena, model, 0), 1);
    CHECK_INT(violations(arena, model, CM_CHECK_SKIP_OPSETS), 0);
}

void test_check_messages__functions_may_import_other_versions_when_asked(void)
{
    check_in_arena(check_opsets);
}
