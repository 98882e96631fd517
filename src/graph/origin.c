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
    *origin = (struct cm_origin){.proto = proto,
                                 .version = node->original_version,
                                 .attributes = node->attributes,
                                 .n_attributes = node->n_attributes,
                                 .operands = operands,
                                 .n_operands = count};
    node->origin = origin;
}

static struct cm_origin_place find_place(const struct cm_node *first, const struct cm_node *before,
                                         cm_value value, bool as_output)
{
    int at = 0;

    for (const struct cm_node *node = first; value && node != before; node = node->next, at++) {
        const int count = as_output ? node->n_outputs : node->n_inputs;

        for (int i = 0; i < count; i++)
            if ((as_output ? node->outputs[i] : node->inputs[i].value) == value)
                return (struct cm_origin_place){at, i};
    }
    return (struct cm_origin_place){-1, 0};
}

void cm_group_set_origin(struct cm_node *first, const struct cm_node *before,
                         const struct cm_node_proto *proto, int64_t version, const cm_value *given,
                         const cm_value *outputs)
{
    struct cm_arena *arena = first->module->arena;
    const size_t n_in = proto->input.count, n_out = proto->output.count;
    struct cm_origin_place *inputs = CM_NEW_ARRAY(arena, struct cm_origin_place, n_in);
    struct cm_origin_place *results = CM_NEW_ARRAY(arena, struct cm_origin_place, n_out);
    struct cm_origin *origin = CM_NEW(arena, struct cm_origin);

    *origin = (struct cm_origin){
        .proto = proto, .version = version, .inputs = inputs, .outputs = results};
    for (size_t i = 0; i < n_in; i++) {
        inputs[i] = find_place(first, before, given[i], false);
        if (given[i] && inputs[i].node < 0)
            return; /* nobody would know what it is by now */
    }
    for (size_t o = 0; o < n_out; o++) {
        results[o] = find_place(first, before, outputs[o], true);
        if (outputs[o] && results[o].node < 0)
            return;
    }
    for (struct cm_node *node = first; node != before; node = node->next) {
        node->origin = origin;
        origin->n_nodes++;
    }
}

/* Copies of a group may stand one after the other. */
bool cm_node_in_group(const struct cm_node *node, const struct cm_node **first)
{
    const struct cm_origin *origin = node->origin;
    const size_t size = origin ? origin->n_nodes : 0;
    size_t before = 0, all = 0;

    if (!size)
        return false;
    for (const struct cm_node *at = node->prev; at && at->origin == origin; at = at->prev)
        before++;
    for (const struct cm_node *at = node; at && at->origin == origin; at = at->next)
        all++;
    all += before;
    *first = node;
    for (size_t i = before % size; i > 0; i--)
        *first = (*first)->prev;
    return all % size == 0;
}

static const struct cm_node *node_at(const struct cm_node *first, struct cm_origin_place place)
{
    for (int i = 0; i < place.node; i++)
        first = first->next;
    return place.node < 0 ? NULL : first;
}

cm_value cm_origin_operand(const struct cm_node *first, size_t i)
{
    if (!first->origin->n_nodes)
        return cm_node_input(first, (int)i);
    const struct cm_origin_place place = first->origin->inputs[i];
    const struct cm_node *node = node_at(first, place);
    return node ? cm_node_input(node, place.index) : 0;
}

cm_value cm_origin_result(const struct cm_node *first, size_t o)
{
    if (!first->origin->n_nodes)
        return cm_node_output(first, (int)o);
    const struct cm_origin_place place = first->origin->outputs[o];
    const struct cm_node *node = node_at(first, place);
    return node ? cm_node_output(node, place.index) : 0;
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

    if (!origin || origin->n_nodes || node->attributes != origin->attributes ||
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
