/* Sections about the gradients of operators. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "cameo.h"
#include "check.h"
#include "graph/registry.h"

struct text {
    char data[1 << 16];
    size_t size;
};

static int add(void *to, const void *bytes, size_t size)
{
    struct text *text = to;

    if (text->size + size >= sizeof text->data)
        return 1;
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
    return 0;
}

static int refuse(void *to, const void *bytes, size_t size)
{
    (void)to, (void)bytes, (void)size;
    return 1;
}

static const char *describe(const char *domain, const char *name, int64_t opset)
{
    static struct text text;
    struct cameo_error err;

    text.size = 0;
    if (cameo_operator_gradient(domain, name, opset, add, &text, &err) != CAMEO_OK)
        fail_msg("%s: %s", name, err.message);
    return text.data;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

void test_describe_gradient__says_what_is_chosen_at_a_kink(void)
{
    const char *text = describe(NULL, "Relu", 0);

    has(text, "## Relu\n");
    has(text, "dX = dY where Y > 0, else 0");
    has(text, "at X=0: dX=0");
    has(text, "Kept from the forward pass: `Y`");
    has(text, "dX = Where (t2, dY, t1)");
}

void test_describe_gradient__names_operands_without_a_gradient(void)
{
    has(describe(NULL, "Gather", 0), "integers, booleans or strings: `indices`");
    has(describe(NULL, "MaxRoiPool", 0), "- No gradient: `rois`");
}

void test_describe_gradient__names_results_that_a_rule_asks_for(void)
{
    has(describe(NULL, "Dropout", 0), "Kept from the forward pass: `mask`");
}

/* Only its shape is read. */
void test_describe_gradient__does_not_count_shapes_as_kept(void)
{
    has(describe(NULL, "Reshape", 0), "Kept from the forward pass: nothing");
}

void test_describe_gradient__of_an_older_opset_is_about_the_newest_version(void)
{
    has(describe("ai.onnx", "Relu", 13), "Opset 13 has version 13");
    CHECK(!strstr(describe("ai.onnx", "Relu", 14), "Opset"));
}

void test_describe_gradient__finds_operators_of_every_domain_by_name(void)
{
    has(describe(NULL, "SkipLayerNormalization", 0), "## com.microsoft.SkipLayerNormalization\n");
    has(describe(NULL, "com.microsoft.Gelu", 0), "## com.microsoft.Gelu\n");
    has(describe(NULL, "Gelu", 0), "## Gelu\n");
}

/* Every example can be built and differentiated. */
void test_describe_gradient__there_is_a_section_for_every_operator(void)
{
    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *schema = cm_schema_at(i);
        if (schema == cm_schema_newest(cm_str(schema->domain), cm_str(schema->name)) &&
            !schema->deprecated)
            CHECK(strlen(describe(schema->domain, schema->name, 0)) > 40);
    }
}

void test_describe_gradient__an_unknown_name_brings_the_nearest(void)
{
    struct text text = {.size = 0};
    struct cameo_error err;

    CHECK_INT(cameo_operator_gradient(NULL, "Rellu", 0, add, &text, &err), CAMEO_NOT_FOUND);
    has(err.message, "'Relu'");
    CHECK_INT(cameo_operator_gradient(NULL, "Relu", -1, add, &text, &err), CAMEO_NOT_FOUND);
    CHECK_INT(text.size, 0);
}

void test_describe_gradient__a_writer_may_refuse(void)
{
    struct cameo_error err;

    CHECK_INT(cameo_operator_gradient(NULL, "Relu", 0, refuse, NULL, &err), CAMEO_IO);
}

void test_describe_gradient__every_allocation_may_fail(void)
{
    for (uint64_t n = 1;; n++) {
        struct text text = {.size = 0};
        struct cameo_error err;
        cm_memory_fail_after(n);
        const enum cameo_status status = cameo_operator_gradient(NULL, "Conv", 0, add, &text, &err);
        cm_memory_fail_after(0);
        if (status == CAMEO_OK)
            return;
        CHECK_INT(status, CAMEO_NO_MEMORY);
    }
}
