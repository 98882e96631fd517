/* The table of levels: every operator has one, and what is not core has a body. */
// SPDX-License-Identifier: Apache-2.0
#include "../check.h"

#include "graph/registry.h"
#include "schema/levels.h"
#include "schema/schema.h"

void test_levels__every_operator_has_one(void)
{
    size_t operators = 0;

    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *row = cm_schema_at(i);
        const struct cm_str domain = cm_str(row->domain), name = cm_str(row->name);

        if (cm_schema_newest(domain, name) != row)
            continue;
        const bool has_level = cm_level_of(domain, name) != CM_LEVEL_NONE;
        operators += has_level;
        if (!has_level && !row->deprecated) /* those become others when they are loaded */
            fail_msg("%s::%s is not in data/levels.list", row->domain, row->name);
    }
    if (operators != cm_level_count) /* and no other is in the table */
        fail_msg("%zu operators, %zu levels", operators, cm_level_count);
}

void test_levels__what_is_not_core_has_a_body_and_what_is_core_has_none(void)
{
    const struct cm_registry *registry = cm_registry_builtin();

    for (size_t i = 0; i < cm_level_count; i++) {
        const struct cm_level_row *row = &cm_levels[i];
        const struct cm_str domain = cm_str(row->domain), name = cm_str(row->name);
        const struct cm_op *op = cm_registry_op(registry, domain, name);
        const bool has_body = (op && op->body) || cm_registry_body(registry, domain, name);

        static const char *const names[] = {"none", "core", "function", "fused"};
        if (has_body != (row->level != CM_LEVEL_CORE))
            fail_msg("%s::%s is %s and has %s body", row->domain, row->name, names[row->level],
                     has_body ? "a" : "no");
    }
}

void test_levels__are_found_by_name(void)
{
    CHECK(cm_level_of(CM_STR(""), CM_STR("Add")) == CM_LEVEL_CORE);
    CHECK(cm_level_of(CM_STR("ai.onnx"), CM_STR("Relu")) == CM_LEVEL_FUNCTION);
    CHECK(cm_level_of(CM_STR("ai.cameo"), CM_STR("ConvGrad")) == CM_LEVEL_FUSED);
    CHECK(cm_level_of(CM_STR("com.microsoft"), CM_STR("Attention")) == CM_LEVEL_FUNCTION);
    CHECK(cm_level_of(CM_STR(""), CM_STR("Upsample")) == CM_LEVEL_NONE);
    CHECK(cm_level_of(CM_STR("who"), CM_STR("Add")) == CM_LEVEL_NONE);
}
