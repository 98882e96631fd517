/* Changes to nodes: their operators, attributes, wires, number. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate_model.h"

static struct cm_node_proto *some_node(struct mutation *m)
{
    return m->nodes.count ? m->nodes.items[chance_draw(m->chance, m->nodes.count)] : NULL;
}

/* ---- attributes ---- */

static size_t random_count(struct mutation *m, size_t now)
{
    if (now && chance_percent(m->chance, 60))
        return now;
    return chance_draw(m->chance, chance_percent(m->chance, 95) ? 7 : 70);
}

/* One member of a list, or all of them, or another number of them. */
static void random_ints(struct mutation *m, struct cm_attribute_proto *attr)
{
    const size_t before = attr->ints.count, count = random_count(m, before);
    int64_t *items = CM_NEW_ARRAY(m->arena, int64_t, count);
    const bool all = chance_percent(m->chance, 30);

    for (size_t i = 0; i < count; i++)
        items[i] = i < before && !all ? attr->ints.items[i] : chance_number(m->chance);
    if (count && !all)
        items[chance_draw(m->chance, count)] = chance_number(m->chance);
    attr->ints.items = items;
    attr->ints.count = count;
    cm_msg_set(&attr->msg, CM_ATTRIBUTE_INTS);
}

static void random_floats(struct mutation *m, struct cm_attribute_proto *attr)
{
    const size_t before = attr->floats.count, count = random_count(m, before);
    float *items = CM_NEW_ARRAY(m->arena, float, count);

    for (size_t i = 0; i < count; i++)
        items[i] = i < before && chance_percent(m->chance, 70) ? attr->floats.items[i]
                                                               : chance_real(m->chance);
    attr->floats.items = items;
    attr->floats.count = count;
    cm_msg_set(&attr->msg, CM_ATTRIBUTE_FLOATS);
}

static void random_strings(struct mutation *m, struct cm_attribute_proto *attr)
{
    const size_t before = attr->strings.count, count = random_count(m, before);
    struct cm_str *items = CM_NEW_ARRAY(m->arena, struct cm_str, count);

    for (size_t i = 0; i < count; i++)
        items[i] = i < before && chance_percent(m->chance, 70) ? attr->strings.items[i]
                                                               : chance_word(m->chance);
    attr->strings.items = items;
    attr->strings.count = count;
    cm_msg_set(&attr->msg, CM_ATTRIBUTE_STRINGS);
}

static void random_graph(struct mutation *m, struct cm_attribute_proto *attr)
{
    if (m->graphs.count)
        attr->g = mutation_copy(m, &cm_graph_info,
                                m->graphs.items[chance_draw(m->chance, m->graphs.count)]);
    if (!attr->g)
        attr->g = CM_NEW(m->arena, struct cm_graph_proto);
    if (chance_percent(m->chance, 50)) { /* reads what is around it */
        attr->g->input.count = chance_draw(m->chance, attr->g->input.count + 1);
        cm_msg_set(&attr->g->msg, CM_GRAPH_INPUT);
    }
    cm_msg_set(&attr->msg, CM_ATTRIBUTE_G);
}

static void random_value(struct mutation *m, struct cm_attribute_proto *attr)
{
    switch (attr->type) {
    case CM_ATTR_FLOAT:
        attr->f = chance_real(m->chance);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_F);
        break;
    case CM_ATTR_INT:
        attr->i = chance_number(m->chance);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_I);
        break;
    case CM_ATTR_STRING:
        attr->s = chance_word(m->chance);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_S);
        break;
    case CM_ATTR_TENSOR:
        attr->t = CM_NEW(m->arena, struct cm_tensor_proto);
        mutation_fill_tensor(m, attr->t, mutation_dtype(m), false);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_T);
        break;
    case CM_ATTR_GRAPH:
        random_graph(m, attr);
        break;
    case CM_ATTR_FLOATS:
        random_floats(m, attr);
        break;
    case CM_ATTR_INTS:
        random_ints(m, attr);
        break;
    case CM_ATTR_STRINGS:
        random_strings(m, attr);
        break;
    case CM_ATTR_TYPE_PROTO:
        attr->tp = mutation_type(m);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_TP);
        break;
    default:
        break;
    }
}

static struct cm_attribute_proto *find_attribute(struct cm_node_proto *node, struct cm_str name)
{
    for (size_t i = 0; i < node->attribute.count; i++)
        if (cm_str_equal(node->attribute.items[i].name, name))
            return &node->attribute.items[i];
    return NULL;
}

static void set_attribute(struct mutation *m, struct cm_node_proto *node,
                          const struct cm_schema_attr *known)
{
    struct cm_attribute_proto *attr = find_attribute(node, cm_str(known->name));

    if (!attr) {
        attr = CM_LIST_ADD(m->arena, &node->attribute);
        attr->name = cm_str(known->name);
        attr->type = (int32_t)known->kind;
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_NAME);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_TYPE);
    }
    random_value(m, attr);
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

bool mutate_attribute(struct mutation *m)
{
    struct cm_node_proto *node = some_node(m);
    if (!node)
        return false;
    const struct cm_schema *schema = cm_schema_newest(node->domain, node->op_type);
    const size_t count = node->attribute.count;

    if (count && chance_percent(m->chance, 10)) {
        node->attribute.items[chance_draw(m->chance, count)] = node->attribute.items[count - 1];
        node->attribute.count--;
        cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
        return true;
    }
    if (count && (!schema || chance_percent(m->chance, 50))) {
        struct cm_attribute_proto *attr = &node->attribute.items[chance_draw(m->chance, count)];
        if (chance_percent(m->chance, 2)) {
            attr->type = (int32_t)chance_draw(m->chance, CM_ATTR_TYPE_COUNT);
            cm_msg_set(&attr->msg, CM_ATTRIBUTE_TYPE);
        }
        random_value(m, attr);
        return true;
    }
    if (!schema || !schema->attr_count)
        return false;
    set_attribute(m, node, &schema->attrs[chance_draw(m->chance, schema->attr_count)]);
    return true;
}

/* ---- operators ---- */

/* The model must import what it uses. */
static void import(struct mutation *m, const struct cm_schema *schema)
{
    struct cm_model_proto *model = m->model;
    const struct cm_str domain = cm_str(schema->domain);

    for (size_t i = 0; i < model->opset_import.count; i++)
        if (cm_str_equal(model->opset_import.items[i].domain, domain))
            return;
    struct cm_opset_proto *opset = CM_LIST_ADD(m->arena, &model->opset_import);
    opset->domain = domain;
    opset->version = cm_schema_newest_opset(domain);
    cm_msg_set(&opset->msg, CM_OPSET_DOMAIN);
    cm_msg_set(&opset->msg, CM_OPSET_VERSION);
    cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
}

/* Attributes that the operator has stay, those it needs are made. */
static void suit_attributes(struct mutation *m, struct cm_node_proto *node,
                            const struct cm_schema *schema)
{
    struct cm_attribute_proto *kept =
        CM_NEW_ARRAY(m->arena, struct cm_attribute_proto, node->attribute.count);
    size_t count = 0;

    for (size_t i = 0; i < node->attribute.count; i++) {
        const struct cm_schema_attr *known =
            cm_schema_find_attr(schema, node->attribute.items[i].name);
        if (known && (int32_t)known->kind == node->attribute.items[i].type)
            kept[count++] = node->attribute.items[i];
    }
    node->attribute.items = kept;
    node->attribute.count = count;
    for (size_t i = 0; i < schema->attr_count; i++)
        if (schema->attrs[i].required && !find_attribute(node, cm_str(schema->attrs[i].name)))
            set_attribute(m, node, &schema->attrs[i]);
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

static void become(struct mutation *m, struct cm_node_proto *node, const struct cm_schema *schema)
{
    node->op_type = cm_str(schema->name);
    node->domain = cm_str(schema->domain);
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node->msg, CM_NODE_DOMAIN);
    cm_msg_clear(&node->msg, CM_NODE_OVERLOAD);
    node->overload = CM_STR_NONE;
    import(m, schema);
    if (chance_percent(m->chance, 95))
        suit_attributes(m, node, schema);
}

bool mutate_operator(struct mutation *m)
{
    struct cm_node_proto *node = some_node(m);
    if (!node)
        return false;
    for (int tries = 0; tries < 100; tries++) {
        const struct cm_schema *schema = cm_schema_at(chance_draw(m->chance, cm_schema_count()));
        if (!schema->deprecated && cm_schema_allows_inputs(schema, node->input.count) &&
            cm_schema_allows_outputs(schema, node->output.count)) {
            become(m, node, schema);
            return true;
        }
    }
    return false;
}

/* ---- wires ---- */

static struct cm_strs *own_list(struct mutation *m, struct cm_strs *list)
{
    list->items = cm_list_extended(m->arena, list->items, list->count, sizeof *list->items);
    return list;
}

bool mutate_operand(struct mutation *m)
{
    struct cm_node_proto *node = some_node(m);
    if (!node)
        return false;
    const bool outputs = chance_percent(m->chance, 20);
    struct cm_strs *list = own_list(m, outputs ? &node->output : &node->input);
    struct cm_str name = mutation_name(m);

    if (outputs && chance_percent(m->chance, 50))
        name = chance_percent(m->chance, 50) ? CM_STR_NONE : mutation_new_name(m);
    switch (chance_draw(m->chance, 5)) {
    case 0:
        list->items[list->count++] = name;
        break;
    case 1:
        if (!list->count)
            return false;
        list->count--;
        break;
    default:
        if (!list->count)
            return false;
        list->items[chance_draw(m->chance, list->count)] =
            chance_percent(m->chance, 8) ? CM_STR_NONE : name;
        break;
    }
    cm_msg_set(&node->msg, outputs ? CM_NODE_OUTPUT : CM_NODE_INPUT);
    return true;
}

/* ---- how many ---- */

/* Twice, with results of other names; gone; in another order. */
bool mutate_nodes(struct mutation *m)
{
    const struct node_list list = m->lists.count
                                      ? m->lists.items[chance_draw(m->chance, m->lists.count)]
                                      : (struct node_list){0};
    if (!list.nodes || !list.nodes->count)
        return false;
    const size_t at = chance_draw(m->chance, list.nodes->count);

    switch (chance_draw(m->chance, 3)) {
    case 0: {
        struct cm_node_proto *copy = mutation_copy(m, &cm_node_info, &list.nodes->items[at]);
        if (!copy)
            return false;
        for (size_t o = 0; o < copy->output.count; o++)
            copy->output.items[o] = mutation_new_name(m);
        cm_msg_set(&copy->msg, CM_NODE_OUTPUT);
        *CM_LIST_ADD(m->arena, list.nodes) = *copy;
        break;
    }
    case 1:
        for (size_t i = at + 1; i < list.nodes->count; i++)
            list.nodes->items[i - 1] = list.nodes->items[i];
        list.nodes->count--;
        break;
    default: {
        const size_t to = chance_draw(m->chance, list.nodes->count);
        const struct cm_node_proto moved = list.nodes->items[at];
        list.nodes->items[at] = list.nodes->items[to];
        list.nodes->items[to] = moved;
        break;
    }
    }
    cm_msg_set(list.owner, list.field);
    return true;
}

/* What the node makes is what the graph gives: otherwise nobody would compute it. */
static void give_result(struct mutation *m, struct cm_graph_proto *graph, struct cm_str name)
{
    struct cm_value_info_proto *info;

    if (graph->output.count && chance_percent(m->chance, 50))
        info = &graph->output.items[chance_draw(m->chance, graph->output.count)];
    else
        info = CM_LIST_ADD(m->arena, &graph->output);
    if (!info->type || chance_percent(m->chance, 50)) {
        info->type = mutation_type(m);
        if (info->type->tensor_type && chance_percent(m->chance, 80)) {
            cm_msg_clear(&info->type->tensor_type->msg, CM_TENSOR_TYPE_SHAPE);
            info->type->tensor_type->shape = NULL;
        }
        cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
    }
    info->name = name;
    cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
    cm_msg_set(&graph->msg, CM_GRAPH_OUTPUT);
}

void mutation_add_node(struct mutation *m, struct cm_graph_proto *graph,
                       const struct cm_schema *schema, struct cm_strs in, struct cm_strs out)
{
    struct cm_node_proto *node = CM_LIST_ADD(m->arena, &graph->node);

    node->input = in;
    node->output = out;
    cm_msg_set(&node->msg, CM_NODE_INPUT);
    cm_msg_set(&node->msg, CM_NODE_OUTPUT);
    become(m, node, schema);
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
}

bool mutate_new_node(struct mutation *m)
{
    if (!m->graphs.count)
        return false;
    struct cm_graph_proto *graph = m->graphs.items[chance_draw(m->chance, m->graphs.count)];
    const struct cm_schema *schema = cm_schema_at(chance_draw(m->chance, cm_schema_count()));
    const struct cm_str result = mutation_new_name(m);
    size_t n_in = (size_t)schema->min_inputs, n_out = (size_t)schema->min_outputs;

    if (schema->deprecated)
        return false;
    while (n_in < (size_t)schema->max_inputs && n_in < 8 && chance_percent(m->chance, 50))
        n_in++;
    while (n_out < (size_t)schema->max_outputs && n_out < 4 && chance_percent(m->chance, 30))
        n_out++;
    const struct cm_strs in = {CM_NEW_ARRAY(m->arena, struct cm_str, n_in), n_in};
    const struct cm_strs out = {CM_NEW_ARRAY(m->arena, struct cm_str, n_out), n_out};
    for (size_t i = 0; i < n_in; i++)
        in.items[i] = mutation_name(m);
    for (size_t o = 0; o < n_out; o++)
        out.items[o] = o ? mutation_new_name(m) : result;
    mutation_add_node(m, graph, schema, in, out);
    give_result(m, graph, result);
    return true;
}
