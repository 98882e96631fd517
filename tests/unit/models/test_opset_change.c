/* Models under other versions: what the cases of single nodes cannot show. */
// SPDX-License-Identifier: Apache-2.0
#include "models/opset_change.h"

#include "check.h"
#include "onnx/syntax.h"
#include "versions/upgrade.h"
#include "versions/upgrade_step.h"

#include <stdio.h>
#include <string.h>

static struct cm_model_file *parse(struct cm_arena *arena, const char *text)
{
    struct cm_model_file *file = CM_NEW(arena, struct cm_model_file);
    struct cm_error err = {0};
    file->arena = arena;
    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, &file->model, &err), &err);
    return file;
}

static enum cm_status convert(struct cm_arena *arena, struct cm_model_file *file, int64_t opset,
                              struct cm_version_report *report, struct cm_error *err)
{
    struct cm_opset_proto target = {.version = opset};
    const struct cm_opsets targets = {&target, 1};
    *err = (struct cm_error){0};
    return cm_convert_version(arena, file, &targets, report, err);
}

/* "Op Op Op" */
static const char *operators(struct cm_arena *arena, const struct cm_nodes *nodes)
{
    struct cm_str list = CM_STR("");
    for (size_t i = 0; i < nodes->count; i++)
        list = cm_arena_printf(arena, "%s%s%.*s", list.data, i ? " " : "",
                               CM_STR_FMT(nodes->items[i].op_type));
    return list.data;
}

/* Every change on the way up has a way down, or is known to have none. */
void test_opset_change__versions_without_a_way_down_are_known(void)
{
    static const char *const none[] = {"GroupNormalization 21"}; /* its function body is written */
    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *schema = cm_schema_at(i);
        const struct cm_str domain = cm_str(schema->domain), op = cm_str(schema->name);
        const int to = schema->since_version;
        char name[80];
        bool known = cm_downgrade_known(domain, op, to) || schema->deprecated ||
                     !cm_upgrade_known(domain, op, to);
        snprintf(name, sizeof name, "%s %d", schema->name, to);
        for (size_t k = 0; k < CM_COUNT(none); k++)
            known = known || strcmp(name, none[k]) == 0;
        if (!known)
            fail_msg("%s has no way down", name);
    }
}

static void a_constant_that_became(struct cm_arena *arena)
{
    struct cm_version_report report;
    struct cm_error err;
    struct cm_model_file *file =
        parse(arena, "<ir_version: 8, opset_import: [\"\" : 18]>\n"
                     "g (float[2,1] x) => (float[2] y, int64[1] kept)"
                     " <int64[1] axes = {1}, int64[1] other = {1}>"
                     "{ a = Squeeze(x, axes)  b = Squeeze(x, other)  kept = Identity(other)"
                     "  y = Add(a, b) }");
    CHECK_OK(convert(arena, file, 12, &report, &err), &err);
    CHECK_STRING(operators(arena, &file->model.graph->node), "Squeeze Squeeze Identity Add");
    CHECK_INT(file->model.graph->initializer.count, 1);
    CHECK(cm_str_is(file->model.graph->initializer.items[0].name, "other"));
}

void test_opset_change__a_constant_that_became_an_attribute_goes_with_its_last_reader(void)
{
    check_in_arena(a_constant_that_became);
}

static void calls_of_a_function(struct cm_arena *arena)
{
    struct cm_version_report report;
    struct cm_error err;
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 11, \"f\" : 1]>\n"
        "g (float[2,3] x, float[2,3%s] z) => (float[2,3] y, float[2,3%s] w)"
        "{ y = f.norm(x)  w = f.norm(z) }\n"
        "<domain: \"f\", opset_import: [\"\" : 11]> norm (v) => (u) { u = Softmax<axis = 1>(v) }";
    char model[600];
    snprintf(model, sizeof model, text, "", "");
    struct cm_model_file *file = parse(arena, model);
    CHECK_OK(convert(arena, file, 13, &report, &err), &err);
    CHECK_STRING(operators(arena, &file->model.functions.items[0].node), "Softmax");
    CHECK_INT(file->model.functions.items[0].opset_import.items[0].version, 13);
    snprintf(model, sizeof model, text, ",4", ",4"); /* one call flattens, the other need not */
    file = parse(arena, model);
    CHECK_FAILS(convert(arena, file, 13, &report, &err), CM_UNSUPPORTED, &err,
                "calls of the function differ");
    CHECK_INT(file->model.opset_import.items[0].version, 11);
}

void test_opset_change__calls_of_a_function_must_agree(void)
{
    check_in_arena(calls_of_a_function);
}

static void what_nobody_knows_stays(struct cm_arena *arena)
{
    struct cm_version_report report;
    struct cm_error err;
    struct cm_model_file *file =
        parse(arena, "<ir_version: 7, opset_import: [\"\" : 12, \"theirs\" : 3]>\n"
                     "g (float[2,1] x) => (float[2] y) <float[2,1] m>"
                     "{ m = theirs.Secret(x)  y = Squeeze<axes = [1]>(m) }");
    CHECK_OK(convert(arena, file, 13, &report, &err), &err);
    CHECK_STRING(operators(arena, &file->model.graph->node), "Secret Constant Squeeze");
    CHECK_INT(file->model.opset_import.items[1].version, 3);
}

void test_opset_change__what_nobody_knows_stays(void)
{
    check_in_arena(what_nobody_knows_stays);
}

static void a_value_that_training(struct cm_arena *arena)
{
    struct cm_version_report report;
    struct cm_error err;
    struct cm_model_file *file =
        parse(arena, "<ir_version: 8, opset_import: [\"\" : 18]>\n"
                     "g (float[2,1] x) => (float[2] y) <int64[1] axes = {1}>"
                     "{ y = Squeeze(x, axes) }");
    struct cm_training_proto *entry = CM_LIST_ADD(arena, &file->model.training_info);
    struct cm_entry_proto *binding = CM_LIST_ADD(arena, &entry->update_binding);
    binding->key = binding->value = CM_STR("axes");
    CHECK_FAILS(convert(arena, file, 12, &report, &err), CM_UNSUPPORTED, &err,
                "needs 'axes' to be constant");
}

void test_opset_change__a_value_that_training_changes_is_no_constant(void)
{
    check_in_arena(a_value_that_training);
}
