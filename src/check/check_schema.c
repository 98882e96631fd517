/* A node against the schema of its operator: counts, missing operands, attributes. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "schema/schema.h"

static const char *const attribute_types[CM_ATTR_TYPE_COUNT] = {
    "nothing", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
    "strings", "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};

static const char *attribute_type_name(int32_t type)
{
    return type >= 0 && type < CM_ATTR_TYPE_COUNT ? attribute_types[type] : "of unknown type";
}

static void report_count(struct cm_checker *c, const struct cm_model_place *place, const char *what,
                         size_t count, int min, int max)
{
    if (min == max)
        cm_report(c, CM_RULE_CK26, place, "has %zu %s, needs %d", count, what, min);
    else if (max == CM_SCHEMA_UNBOUNDED)
        cm_report(c, CM_RULE_CK26, place, "has %zu %s, needs at least %d", count, what, min);
    else
        cm_report(c, CM_RULE_CK26, place, "has %zu %s, needs %d to %d", count, what, min, max);
}

static void examine_operands(struct cm_checker *c, const struct cm_model_place *place,
                             const struct cm_schema *schema, const struct cm_strs *operands,
                             bool inputs)
{
    const struct cm_schema_param *params = inputs ? schema->inputs : schema->outputs;
    const size_t count = inputs ? schema->input_count : schema->output_count;
    const char *what = inputs ? "input" : "output";

    for (size_t i = 0; i < operands->count && i < count; i++) {
        if (!operands->items[i].size && params[i].kind == CM_PARAM_SINGLE)
            cm_report(c, CM_RULE_CK27, place, "%s %zu '%s' must be present, but its name is empty",
                      what, i, params[i].name);
    }
    const bool legal = inputs ? cm_schema_allows_inputs(schema, operands->count)
                              : cm_schema_allows_outputs(schema, operands->count);
    if (legal)
        return;
    report_count(c, place, inputs ? "inputs" : "outputs", operands->count,
                 inputs ? schema->min_inputs : schema->min_outputs,
                 inputs ? schema->max_inputs : schema->max_outputs);
}

static void examine_value_present(struct cm_checker *c, const struct cm_model_place *place,
                                  const struct cm_attribute_proto *attribute)
{
    bool present = true;

    switch (attribute->type) {
    case CM_ATTR_TENSOR:
        present = attribute->t != NULL;
        break;
    case CM_ATTR_SPARSE_TENSOR:
        present = attribute->sparse_tensor != NULL;
        break;
    case CM_ATTR_GRAPH:
        present = attribute->g != NULL;
        break;
    case CM_ATTR_TYPE_PROTO:
        present = attribute->tp != NULL;
        break;
    default:
        break;
    }
    if (!present)
        cm_report(c, CM_RULE_CK30, place, "attribute '%.*s' has no value",
                  CM_STR_FMT(attribute->name));
}

/* Schemas that ONNX marks as open to any attribute. */
static bool lets_pass(const struct cm_schema *schema)
{
    static const char *const open[] = {"LayerNormalization"};

    for (size_t i = 0; !schema->domain[0] && i < CM_COUNT(open); i++)
        if (strcmp(schema->name, open[i]) == 0)
            return true;
    return false;
}

static void examine_known(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_schema *schema,
                          const struct cm_attribute_proto *attribute)
{
    const struct cm_schema_attr *known = cm_schema_find_attr(schema, attribute->name);

    if (!known) {
        /* Names that begin so are some tool's own business. */
        if (!cm_str_starts(attribute->name, "__"))
            cm_report(c, lets_pass(schema) ? CM_RULE_ST26 : CM_RULE_CK28, place,
                      "%s has no attribute '%.*s' in version %d", schema->name,
                      CM_STR_FMT(attribute->name), schema->since_version);
        return;
    }
    const bool untyped = c->ir_version >= 2 && !cm_msg_has(&attribute->msg, CM_ATTRIBUTE_TYPE);
    if (untyped)
        return; /* CK40 */
    if (attribute->type != (int32_t)known->kind)
        cm_report(c, CM_RULE_CK29, place, "attribute '%s' is %s, needs %s", known->name,
                  attribute_type_name(attribute->type), attribute_type_name((int32_t)known->kind));
    else if (!attribute->ref_attr_name.size)
        examine_value_present(c, place, attribute);
}

void cm_examine_against_schema(struct cm_checker *c, const struct cm_model_place *place,
                               const struct cm_node_proto *node)
{
    int64_t version = 0;
    const bool imported = cm_imports_find(c->imports, node->domain, &version);
    const struct cm_schema *schema =
        imported ? cm_schema_find(node->domain, node->op_type, version) : NULL;

    if (!schema)
        return;
    if (schema->deprecated) {
        cm_report(c, CM_RULE_CK25, place, "%s is deprecated since version %d", schema->name,
                  schema->since_version);
        return;
    }
    examine_operands(c, place, schema, &node->input, true);
    examine_operands(c, place, schema, &node->output, false);
    for (size_t i = 0; i < node->attribute.count; i++)
        examine_known(c, place, schema, &node->attribute.items[i]);
    for (size_t i = 0; i < schema->attr_count; i++) {
        if (schema->attrs[i].required && !cm_node_attribute(node, cm_str(schema->attrs[i].name)))
            cm_report(c, CM_RULE_CK31, place, "the required attribute '%s' is missing",
                      schema->attrs[i].name);
    }
}
