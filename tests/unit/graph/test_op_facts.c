/* What other parts are told of an operator, so that they need not know its name. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "graph/registry.h"

static const struct cm_op *op_of(const char *domain, const char *name)
{
    const struct cm_node_proto node = {.domain = cm_str(domain), .op_type = cm_str(name)};
    return cm_builtin_op(&node);
}

void test_op_facts__a_node_of_a_file_finds_its_operator(void)
{
    CHECK_STRING(op_of("", "Dropout")->name, "Dropout");
    CHECK(op_of("ai.onnx", "Dropout") == op_of("", "Dropout"));
    CHECK(op_of("ai.onnx.ml", "Scaler")->run);
}

void test_op_facts__of_an_unknown_operator_nothing_is_known(void)
{
    const struct cm_op *op = op_of("com.example", "Dropout");

    CHECK(op && !op->name && !op->training && !op->cost.work && !op->scores.labels &&
          !op->values.kept);
    CHECK(op_of("", "NoSuchThing") == op);
}

static bool has_attribute(const struct cm_schema *schema, const char *name)
{
    return !name || cm_schema_find_attr(schema, cm_str(name));
}

/* Operand i by its name in the schema. */
static const char *operand(const struct cm_schema *schema, int i)
{
    return i >= 0 && (size_t)i < schema->input_count ? schema->inputs[i].name : "";
}

static void agrees(const struct cm_op *op)
{
    const struct cm_schema *schema = cm_schema_newest(cm_str(op->domain), cm_str(op->name));
    const struct cm_training_form *training = op->training;

    CHECK(schema);
    CHECK(has_attribute(schema, op->values.zero_attribute));
    CHECK(has_attribute(schema, op->scores.probability_axis));
    if (op->scores.labels) {
        CHECK(has_attribute(schema, op->scores.labels->ignored));
        CHECK_INT(op->scores.labels->scores, 0);
        CHECK_STRING(operand(schema, op->scores.labels->labels),
                     schema->input_count > 1 ? schema->inputs[1].name : "");
    }
    if (!training)
        return;
    CHECK(training->mode_input || training->mode_attribute);
    CHECK(has_attribute(schema, training->mode_attribute));
    if (training->mode_input) {
        CHECK_STRING(operand(schema, training->mode_input), "training_mode");
        CHECK_INT(training->mode_input + 1, schema->input_count);
    }
    CHECK(training->statistics_input + training->n_statistics <= (int)schema->input_count);
    CHECK(training->statistics_output + training->n_statistics <= (int)schema->output_count);
    CHECK(!training->from_draw || (op->effects & CM_RANDOM && training->draw_output > 0 &&
                                   training->draw_output < (int)schema->output_count));
}

void test_op_facts__agree_with_the_schemas(void)
{
    for (size_t i = 0; i < cm_op_count; i++)
        agrees(cm_op_list[i]);
    CHECK_STRING(operand(cm_schema_newest(CM_STR(""), CM_STR("BatchNormalization")),
                         op_of("", "BatchNormalization")->training->statistics_input),
                 "input_mean");
}

void test_op_facts__work_is_never_less_than_the_elements_touched(void)
{
    /* (2, 3) by (3, 4): 24 products */
    const struct cm_amount amount = {.in = 18, .out = 8, .all = 72, .two = 72};

    CHECK(cm_work_linear(NULL, &amount) == 26);
    CHECK(cm_work_product(NULL, &amount) == 26 + 24);
    CHECK(cm_work_any(NULL, &amount) == 26 * 26);
    for (size_t i = 0; i < cm_op_count; i++) {
        const struct cm_op *op = cm_op_list[i];
        const struct cm_node node = {
            .op = op, .schema = cm_schema_newest(cm_str(op->domain), cm_str(op->name))};
        CHECK(!op->cost.work || op->cost.work(&node, &amount) >= 26);
    }
}
