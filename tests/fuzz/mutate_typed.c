/* New parts of models that are mostly legal: nodes whose operands have the types that the schema
 * table allows, functions made of nodes, training info made of graphs. So inference rules, kernels,
 * gradients and rewriting are reached, not only the refusals before them. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate_model.h"

enum { TYPES = 64, MOST_OPERANDS = 6 };

/* A node under construction. */
struct typed {
    struct mutation *m;
    struct cm_graph_proto *graph;
    const struct cm_schema *schema;
    int32_t dtypes[TYPES]; /* chosen for each type variable; 0: none yet */
    enum cm_type_form forms[TYPES];
    int64_t theme[5]; /* the shape that most operands have */
    size_t rank;
};

/* ---- types ---- */

static int32_t choose_element(struct mutation *m, uint64_t elements)
{
    static const int32_t usual[] = {CM_FLOAT, CM_FLOAT, CM_INT64, CM_INT32, CM_UINT8, CM_DOUBLE};

    for (int tries = 0; tries < 64; tries++) {
        const int32_t type = chance_percent(m->chance, 60)
                                 ? usual[chance_draw(m->chance, CM_COUNT(usual))]
                                 : 1 + (int32_t)chance_draw(m->chance, CM_DTYPE_COUNT - 1);
        if (elements >> type & 1)
            return type;
    }
    for (int32_t type = 1; type < CM_DTYPE_COUNT; type++)
        if (elements >> type & 1)
            return type;
    return CM_FLOAT;
}

static int32_t choose_type(struct typed *t, int variable)
{
    const struct cm_type_set *set = &t->schema->types[variable].set;

    if (variable >= TYPES || !set->row_count)
        return CM_FLOAT;
    if (!t->dtypes[variable]) {
        const struct cm_type_row *row = &set->rows[chance_draw(t->m->chance, set->row_count)];
        for (size_t i = 0; i < set->row_count && chance_percent(t->m->chance, 80); i++)
            if (set->rows[i].form == CM_FORM_TENSOR)
                row = &set->rows[i];
        t->dtypes[variable] = choose_element(t->m, row->elements);
        t->forms[variable] = row->form;
    }
    return t->dtypes[variable];
}

static struct cm_type_proto *tensor_type(struct mutation *m, int32_t dtype)
{
    struct cm_type_proto *type = CM_NEW(m->arena, struct cm_type_proto);

    type->tensor_type = CM_NEW(m->arena, struct cm_tensor_type_proto);
    type->tensor_type->elem_type = dtype;
    cm_msg_set(&type->tensor_type->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    cm_msg_set(&type->msg, CM_TYPE_TENSOR_TYPE);
    return type;
}

static void add_shape(struct typed *t, struct cm_tensor_type_proto *type)
{
    struct mutation *m = t->m;

    type->shape = CM_NEW(m->arena, struct cm_shape_proto);
    for (size_t i = 0; i < t->rank; i++) {
        struct cm_dim_proto *dim = CM_LIST_ADD(m->arena, &type->shape->dim);
        if (chance_percent(m->chance, 15)) {
            dim->dim_param = cm_str("N");
            cm_msg_set(&dim->msg, CM_DIM_PARAM);
        } else {
            dim->dim_value = t->theme[i];
            cm_msg_set(&dim->msg, CM_DIM_VALUE);
        }
    }
    cm_msg_set(&type->shape->msg, CM_SHAPE_DIM);
    cm_msg_set(&type->msg, CM_TENSOR_TYPE_SHAPE);
}

static struct cm_type_proto *value_type(struct typed *t, int variable, bool shaped)
{
    const int32_t dtype = choose_type(t, variable);
    const enum cm_type_form form = variable < TYPES ? t->forms[variable] : CM_FORM_TENSOR;
    struct cm_type_proto *type = tensor_type(t->m, dtype);

    if (shaped)
        add_shape(t, type->tensor_type);
    if (form == CM_FORM_SEQ || form == CM_FORM_OPTIONAL || form == CM_FORM_OPTIONAL_SEQ) {
        struct cm_wrap_type_proto *wrap = CM_NEW(t->m->arena, struct cm_wrap_type_proto);
        struct cm_type_proto *outer = CM_NEW(t->m->arena, struct cm_type_proto);
        wrap->elem_type = type;
        cm_msg_set(&wrap->msg, CM_WRAP_TYPE_ELEM_TYPE);
        *(form == CM_FORM_SEQ ? &outer->sequence_type : &outer->optional_type) = wrap;
        cm_msg_set(&outer->msg,
                   form == CM_FORM_SEQ ? CM_TYPE_SEQUENCE_TYPE : CM_TYPE_OPTIONAL_TYPE);
        return outer;
    }
    return type;
}

/* ---- operands ---- */

/* A value of the graph that is declared to be a tensor of this type; empty: none was met. */
static struct cm_str find_value(struct typed *t, int32_t dtype)
{
    struct mutation *m = t->m;

    for (int tries = 0; tries < 8 && m->infos.count; tries++) {
        const struct cm_value_info_proto *info =
            m->infos.items[chance_draw(m->chance, m->infos.count)];
        if (info->type && info->type->tensor_type && info->type->tensor_type->elem_type == dtype)
            return info->name;
    }
    return CM_STR_NONE;
}

/* A constant: of the theme's shape, of one axis of it, or a single number. */
static struct cm_str new_constant(struct typed *t, int32_t dtype)
{
    struct mutation *m = t->m;
    struct cm_tensor_proto *tensor = CM_LIST_ADD(m->arena, &t->graph->initializer);
    const bool whole = dtype != CM_INT64 && chance_percent(m->chance, 60);

    tensor->name = mutation_new_name(m);
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    tensor->dims.count = whole ? t->rank : chance_draw(m->chance, 2);
    tensor->dims.items = CM_NEW_ARRAY(m->arena, int64_t, tensor->dims.count);
    for (size_t i = 0; i < tensor->dims.count; i++)
        tensor->dims.items[i] = whole ? t->theme[i]
                                : t->rank && chance_percent(m->chance, 50)
                                    ? t->theme[chance_draw(m->chance, t->rank)]
                                    : (int64_t)chance_draw(m->chance, 5);
    cm_msg_set(&tensor->msg, CM_TENSOR_DIMS);
    mutation_fill_tensor(m, tensor, dtype, true);
    cm_msg_set(&t->graph->msg, CM_GRAPH_INITIALIZER);
    return tensor->name;
}

static struct cm_str new_input(struct typed *t, int variable)
{
    struct mutation *m = t->m;
    struct cm_value_info_proto *info = CM_LIST_ADD(m->arena, &t->graph->input);

    info->name = mutation_new_name(m);
    info->type = value_type(t, variable, true);
    cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
    cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
    cm_msg_set(&t->graph->msg, CM_GRAPH_INPUT);
    return info->name;
}

static struct cm_str operand(struct typed *t, const struct cm_schema_param *param)
{
    const int32_t dtype = choose_type(t, param->type);
    const bool tensor = param->type >= TYPES || t->forms[param->type] == CM_FORM_TENSOR;
    struct cm_str name = CM_STR_NONE;

    if (param->kind == CM_PARAM_OPTIONAL && chance_percent(t->m->chance, 40))
        return CM_STR_NONE;
    if (tensor && chance_percent(t->m->chance, 50))
        name = find_value(t, dtype);
    if (name.size)
        return name;
    return tensor && chance_percent(t->m->chance, 60) ? new_constant(t, dtype)
                                                      : new_input(t, param->type);
}

/* ---- nodes ---- */

static int64_t opset_of(const struct cm_model_proto *model, struct cm_str domain)
{
    for (size_t i = 0; i < model->opset_import.count; i++)
        if (cm_str_equal(model->opset_import.items[i].domain, domain))
            return model->opset_import.items[i].version;
    return cm_schema_newest_opset(domain);
}

static const struct cm_schema *choose_schema(struct mutation *m)
{
    for (int tries = 0; tries < 16; tries++) {
        const struct cm_schema *any = cm_schema_at(chance_draw(m->chance, cm_schema_count()));
        const struct cm_str domain = cm_str(any->domain);
        const struct cm_schema *schema =
            cm_schema_find(domain, cm_str(any->name), opset_of(m->model, domain));
        if (schema && !schema->deprecated && schema->type_count <= TYPES)
            return schema;
    }
    return NULL;
}

static void choose_theme(struct typed *t)
{
    static const int64_t themes[][5] = {{2, 3}, {4}, {1, 2, 4, 4}, {2, 3, 4}, {3, 3}, {1, 4, 8, 8}};
    const size_t which = chance_draw(t->m->chance, CM_COUNT(themes) + 1);

    for (t->rank = 0; which < CM_COUNT(themes) && t->rank < 5 && themes[which][t->rank]; t->rank++)
        t->theme[t->rank] = themes[which][t->rank];
}

static struct cm_strs new_operands(struct typed *t)
{
    const size_t least = (size_t)t->schema->min_inputs, most = (size_t)t->schema->max_inputs;
    struct cm_strs list = {CM_NEW_ARRAY(t->m->arena, struct cm_str, MOST_OPERANDS + least), least};

    while (list.count < most && list.count < MOST_OPERANDS && chance_percent(t->m->chance, 50))
        list.count++;
    for (size_t i = 0; i < list.count; i++) {
        const struct cm_schema_param *param = cm_schema_input(t->schema, i);
        list.items[i] = param ? operand(t, param) : CM_STR_NONE;
    }
    return list;
}

bool mutate_typed_node(struct mutation *m)
{
    if (!m->graphs.count)
        return false;
    struct typed t = {.m = m, .schema = choose_schema(m)};
    if (!t.schema)
        return false;
    t.graph = m->graphs.items[chance_draw(m->chance, m->graphs.count)];
    choose_theme(&t);
    const struct cm_strs in = new_operands(&t);
    const size_t n_out = t.schema->min_outputs > 0 ? (size_t)t.schema->min_outputs : 1;
    struct cm_strs out = {CM_NEW_ARRAY(m->arena, struct cm_str, n_out), n_out};

    for (size_t o = 0; o < n_out; o++) {
        const struct cm_schema_param *param = cm_schema_output(t.schema, o);
        struct cm_value_info_proto *info = CM_LIST_ADD(m->arena, &t.graph->output);

        out.items[o] = info->name = mutation_new_name(m);
        info->type = param ? value_type(&t, param->type, false) : tensor_type(m, CM_FLOAT);
        cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
        cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
    }
    cm_msg_set(&t.graph->msg, CM_GRAPH_OUTPUT);
    mutation_add_node(m, t.graph, t.schema, in, out);
    return true;
}

/* ---- functions and training ---- */

static void add_entry(struct mutation *m, struct cm_entries *entries, struct cm_str key,
                      struct cm_str value)
{
    struct cm_entry_proto *entry = CM_LIST_ADD(m->arena, entries);

    entry->key = key;
    entry->value = value;
    cm_msg_set(&entry->msg, CM_ENTRY_KEY);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
}

/* A node becomes a call of a function that holds it. */
static bool make_function(struct mutation *m)
{
    struct cm_model_proto *model = m->model;

    if (!m->nodes.count)
        return false;
    struct cm_node_proto *node = m->nodes.items[chance_draw(m->chance, m->nodes.count)];
    const struct cm_node_proto *copy = mutation_copy(m, &cm_node_info, node);
    if (!copy)
        return false;
    struct cm_function_proto *function = CM_LIST_ADD(m->arena, &model->functions);
    function->name = mutation_new_name(m);
    function->domain = cm_str("local");
    function->input = copy->input;
    function->output = copy->output;
    *CM_LIST_ADD(m->arena, &function->node) = *copy;
    for (size_t i = 0; i < model->opset_import.count; i++)
        *CM_LIST_ADD(m->arena, &function->opset_import) = model->opset_import.items[i];
    static const int fields[] = {CM_FUNCTION_NAME,   CM_FUNCTION_DOMAIN, CM_FUNCTION_INPUT,
                                 CM_FUNCTION_OUTPUT, CM_FUNCTION_NODE,   CM_FUNCTION_OPSET_IMPORT};
    for (size_t i = 0; i < CM_COUNT(fields); i++)
        cm_msg_set(&function->msg, fields[i]);
    cm_msg_set(&model->msg, CM_MODEL_FUNCTIONS);
    node->op_type = function->name;
    node->domain = function->domain;
    node->attribute.count = 0;
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node->msg, CM_NODE_DOMAIN);
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
    if (opset_of(model, function->domain) <= 0) {
        struct cm_opset_proto *opset = CM_LIST_ADD(m->arena, &model->opset_import);
        opset->domain = function->domain;
        opset->version = 1;
        cm_msg_set(&opset->msg, CM_OPSET_DOMAIN);
        cm_msg_set(&opset->msg, CM_OPSET_VERSION);
        cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
    }
    return true;
}

/* An entry of training info whose graphs are copies, and whose bindings lead from their outputs to
 * values of the model. */
static bool make_training(struct mutation *m)
{
    struct cm_model_proto *model = m->model;

    if (!m->graphs.count || model->training_info.count > 3)
        return false;
    struct cm_graph_proto *from = m->graphs.items[chance_draw(m->chance, m->graphs.count)];
    struct cm_graph_proto *copy = mutation_copy(m, &cm_graph_info, from);
    if (!copy)
        return false;
    struct cm_training_proto *training = CM_LIST_ADD(m->arena, &model->training_info);
    const bool first = chance_percent(m->chance, 40);
    struct cm_entries *bindings =
        first ? &training->initialization_binding : &training->update_binding;

    *(first ? &training->initialization : &training->algorithm) = copy;
    cm_msg_set(&training->msg, first ? CM_TRAINING_INITIALIZATION : CM_TRAINING_ALGORITHM);
    for (size_t i = 0; i < copy->output.count && i < 4; i++)
        add_entry(m, bindings, mutation_name(m), copy->output.items[i].name);
    cm_msg_set(&training->msg,
               first ? CM_TRAINING_INITIALIZATION_BINDING : CM_TRAINING_UPDATE_BINDING);
    cm_msg_set(&model->msg, CM_MODEL_TRAINING_INFO);
    return true;
}

/* A tensor whose data is in another file. */
static bool make_external(struct mutation *m)
{
    static const char *const keys[] = {"location", "offset", "length", "checksum"};
    static const char *const places[] = {"data.bin", "../x",   "/etc/passwd", "",
                                         ".",        "a/../b", "\n"};

    if (!m->tensors.count)
        return false;
    struct cm_tensor_proto *tensor = m->tensors.items[chance_draw(m->chance, m->tensors.count)];
    for (size_t i = 0; i < CM_COUNT(keys); i++)
        if (!i || chance_percent(m->chance, 60))
            add_entry(m, &tensor->external_data, cm_str(keys[i]),
                      i ? cm_arena_printf(m->arena, "%lld", (long long)chance_number(m->chance))
                        : cm_str(places[chance_draw(m->chance, CM_COUNT(places))]));
    tensor->data_location = CM_LOCATION_EXTERNAL;
    cm_msg_set(&tensor->msg, CM_TENSOR_EXTERNAL_DATA);
    cm_msg_set(&tensor->msg, CM_TENSOR_DATA_LOCATION);
    return true;
}

bool mutate_outline(struct mutation *m)
{
    switch (chance_draw(m->chance, 5)) {
    case 0:
        return make_external(m);
    case 1:
        return make_training(m);
    default:
        return make_function(m);
    }
}
