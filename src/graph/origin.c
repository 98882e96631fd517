/* Where nodes came from. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/module.h"

void cm_node_set_origin(struct cm_node *node, const struct cm_node_proto *proto)
{
    struct cm_arena *arena = node->module->arena;
    struct cm_origin *origin = CM_NEW(arena, struct cm_origin);
    const size_t count = (size_t)node->n_inputs;
    cm_value *operands = NULL;

    if (count > proto->input.count) {
        operands = CM_NEW_ARRAY(arena, cm_value, count);
        for (size_t i = 0; i < count; i++)
            operands[i] = node->inputs[i].value;
    }
    *origin = (struct cm_origin){proto, node->attributes, node->n_attributes, operands, count};
    node->origin = origin;
}

void cm_node_forget_origin(struct cm_node *node)
{
    node->origin = NULL;
}

/* Two constants with the same contents; passes put one in the place of the other. */
static bool same_constant(const struct cm_module *module, cm_value a, cm_value b)
{
    if (!a || !b || a == b)
        return a == b;
    const struct cm_value_def *x = cm_value_get(module, a), *y = cm_value_get(module, b);
    const struct cm_tensor *p = x->is_state ? NULL : x->fact.constant;
    const struct cm_tensor *q = y->is_state ? NULL : y->fact.constant;
    return p && q && p->type == q->type && p->type != CM_STRING && p->data && q->data &&
           cm_shape_equal(&p->shape, &q->shape) &&
           memcmp(p->data, q->data, cm_tensor_bytes(p)) == 0;
}

bool cm_node_has_origin(const struct cm_node *node)
{
    const struct cm_origin *origin = node->origin;

    if (!origin || node->attributes != origin->attributes ||
        node->n_attributes != origin->n_attributes ||
        !cm_str_equal(node->op_type, origin->proto->op_type))
        return false;
    const int given = (int)origin->proto->input.count, count = (int)origin->n_operands;
    for (int i = 0; i < given; i++)
        if ((cm_node_input(node, i) != 0) != (origin->proto->input.items[i].size != 0))
            return false;
    for (int i = given; i < count || i < node->n_inputs; i++)
        if (i >= count || !same_constant(node->module, cm_node_input(node, i), origin->operands[i]))
            return false;
    return true;
}
