/* Older forms of nodes, by the steps between versions. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/older_forms.h"

#include "versions/upgrade_step.h"

/* Is the value an operand of the node, or none? */
static bool is_operand(const struct cm_node *node, cm_value value)
{
    bool found = !value;
    for (int i = 0; !found && i < node->n_inputs; i++)
        found = node->inputs[i].value == value;
    return found;
}

static struct cm_node_spec as_spec(const struct cm_node *node, struct cm_arena *arena,
                                   const struct cm_node_form *form)
{
    struct cm_node_spec spec = cm_node_spec_of(node, arena);

    spec.n_attributes = form->n_attributes;
    spec.attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, form->n_attributes);
    for (size_t i = 0; i < form->n_attributes; i++)
        spec.attributes[i] = form->attributes[i];
    return spec;
}

bool cm_older_form(const struct cm_node *node, int64_t opset, struct cm_arena *arena,
                   struct cm_node_form *form)
{
    struct cm_error ignored = {0};
    struct cm_graph *helpers = cm_graph_new(node->module, node->graph, CM_STR_NONE);
    struct cm_builder builder = {.graph = helpers, .err = &ignored};
    struct cm_node_spec spec = as_spec(node, arena, form);
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_outputs);
    struct cm_version_form older = {0};

    if (node->domain.size || !node->schema || node->schema->since_version <= opset)
        return false;
    for (int o = 0; o < node->n_outputs; o++)
        outputs[o] = node->outputs[o];
    if (cm_convert_node(&builder, &spec, node->schema, opset, outputs, &older) != CM_OK ||
        !older.schema || helpers->first || !cm_str_equal(older.spec.op_type, node->op_type) ||
        older.spec.n_outputs != (size_t)node->n_outputs)
        return false;
    for (size_t i = 0; i < older.spec.n_inputs; i++)
        if (!is_operand(node, older.spec.inputs[i]))
            return false;
    form->inputs = older.spec.inputs;
    form->n_inputs = older.spec.n_inputs;
    form->attributes = older.spec.attributes;
    form->n_attributes = older.spec.n_attributes;
    return true;
}
