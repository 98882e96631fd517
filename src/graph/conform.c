/* Does a node keep its schema's rules? Checked when it is added, so that inference rules, kernels
 * and gradients may rely on operand counts, element types and attribute kinds. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/module.h"

#include "graph/registry.h"

/* A type as the schema's constraints see it. */
struct signature {
    bool bound;
    enum cm_type_form form;
    enum cm_dtype key, element;
    int input; /* that has it */
};

static bool sign_wrapped(const struct cm_type *type, enum cm_type_form tensor_form,
                         struct signature *out)
{
    if (!type || type->kind != CM_KIND_TENSOR)
        return false;
    *out = (struct signature){true, tensor_form, CM_UNDEFINED, type->dtype, 0};
    return true;
}

/* False for types no constraint can name (deeper nesting); those are left to the operator's own
 * rule. */
static bool sign(const struct cm_type *type, struct signature *out)
{
    const struct cm_type *elem = type->elem;

    switch (type->kind) {
    case CM_KIND_TENSOR:
        return sign_wrapped(type, CM_FORM_TENSOR, out);
    case CM_KIND_SPARSE:
        *out = (struct signature){true, CM_FORM_SPARSE_TENSOR, CM_UNDEFINED, type->dtype, 0};
        return true;
    case CM_KIND_SEQUENCE:
        if (elem && elem->kind == CM_KIND_MAP && elem->elem) {
            *out = (struct signature){true, CM_FORM_SEQ_MAP, elem->dtype, elem->elem->dtype, 0};
            return true;
        }
        return sign_wrapped(elem, CM_FORM_SEQ, out);
    case CM_KIND_OPTIONAL:
        if (elem && elem->kind == CM_KIND_SEQUENCE)
            return sign_wrapped(elem->elem, CM_FORM_OPTIONAL_SEQ, out);
        return sign_wrapped(elem, CM_FORM_OPTIONAL, out);
    case CM_KIND_MAP:
        if (!elem)
            return false;
        *out = (struct signature){true, CM_FORM_MAP, type->dtype, elem->dtype, 0};
        return true;
    case CM_KIND_NONE:
    case CM_KIND_OPAQUE:
        break;
    }
    return false;
}

enum { MAX_TYPE_VARIABLES = 64 };

static bool allows(const struct cm_module *module, const struct cm_type_set *set,
                   const struct signature *type)
{
    return cm_type_set_allows(set, type->form, type->key, type->element) ||
           (module->is_widened && type->element == CM_DOUBLE &&
            cm_type_set_allows(set, type->form, type->key, CM_FLOAT));
}

/* "input 1 'w' (B)": the value that the node reads and what the operator calls it. */
static const char *input_text(const struct cm_node *node, int i)
{
    const struct cm_str name = cm_value_get(node->module, node->inputs[i].value)->name;
    const char *formal = cm_schema_input(node->schema, (size_t)i)->name;

    if (!name.size)
        return cm_arena_printf(node->module->arena, "input %d (%s)", i, formal).data;
    return cm_arena_printf(node->module->arena, "input %d '%.*s' (%s)", i, CM_STR_FMT(name), formal)
        .data;
}

static enum cm_status check_input(const struct cm_node *node, int i, struct signature *bound,
                                  struct cm_error *err)
{
    const struct cm_schema *schema = node->schema;
    const struct cm_schema_param *param = cm_schema_input(schema, (size_t)i);
    if (!node->inputs[i].value) {
        if (param->kind != CM_PARAM_OPTIONAL)
            return cm_fail(err, CM_BAD_MODEL, "input %d '%s' is required", i, param->name);
        return CM_OK;
    }
    const struct cm_type *type = cm_value_get(node->module, node->inputs[i].value)->fact.type;
    struct signature mine;
    if (!sign(type, &mine))
        return CM_OK;
    mine.input = i;
    const struct cm_schema_type *variable = &schema->types[param->type];
    if (!allows(node->module, &variable->set, &mine)) {
        char allowed[150]; /* a message holds little more */
        cm_type_set_print(&variable->set, allowed, sizeof allowed);
        return cm_fail(err, CM_BAD_MODEL, "%s is %s, must be one of %s", input_text(node, i),
                       cm_type_print(node->module->arena, node->module->symbols, type).data,
                       allowed);
    }
    if (variable->fixed || param->mixed || param->type >= MAX_TYPE_VARIABLES)
        return CM_OK;
    struct signature *first = &bound[param->type];
    if (!first->bound)
        *first = mine;
    else if (first->form != mine.form || first->element != mine.element || first->key != mine.key)
        return cm_fail(err, CM_BAD_MODEL, "%s is %s, but %s is %s", input_text(node, i),
                       cm_dtype_name(mine.element), input_text(node, first->input),
                       cm_dtype_name(first->element));
    return CM_OK;
}

/* Kernels write every output that the schema does not call optional. */
static enum cm_status check_outputs(const struct cm_node *node, struct cm_error *err)
{
    const struct cm_schema *schema = node->schema;
    if (node->n_outputs < schema->min_outputs || node->n_outputs > schema->max_outputs)
        return cm_fail(err, CM_BAD_MODEL, "has %d outputs, needs %d to %d", node->n_outputs,
                       schema->min_outputs, schema->max_outputs);
    for (int o = 0; o < node->n_outputs; o++) {
        const struct cm_schema_param *param = cm_schema_output(schema, (size_t)o);
        if (!node->outputs[o] && param->kind == CM_PARAM_SINGLE)
            return cm_fail(err, CM_BAD_MODEL, "output %d '%s' is required", o, param->name);
    }
    return CM_OK;
}

static enum cm_status check_attribute(const struct cm_node *node, struct cm_str name, int type,
                                      struct cm_error *err)
{
    const struct cm_schema_attr *attr = cm_schema_find_attr(node->schema, name);
    if (!attr) {
        /* Names with two underscores are reserved for tools and mean nothing to operators. */
        if (cm_str_starts(name, "__"))
            return CM_OK;
        return cm_fail(err, CM_BAD_MODEL, "attribute '%.*s' is not defined in %s version %d",
                       CM_STR_FMT(name), node->schema->name, node->schema->since_version);
    }
    if (type != (int)attr->kind)
        return cm_fail(err, CM_BAD_MODEL, "attribute '%.*s' has type %d, must have %d",
                       CM_STR_FMT(name), type, (int)attr->kind);
    return CM_OK;
}

/* Messages may be absent whatever the type says. Graphs became bodies, so a type of graph here is
 * one without. */
static bool lacks_contents(const struct cm_attribute_proto *attr)
{
    return (attr->type == CM_ATTR_TENSOR && !attr->t) ||
           (attr->type == CM_ATTR_SPARSE_TENSOR && !attr->sparse_tensor) ||
           (attr->type == CM_ATTR_TYPE_PROTO && !attr->tp) || attr->type == CM_ATTR_GRAPH;
}

static enum cm_status check_attributes(const struct cm_node *node, struct cm_error *err)
{
    const struct cm_schema *schema = node->schema;

    for (size_t i = 0; i < node->n_attributes; i++) {
        const struct cm_attribute_proto *attr = &node->attributes[i];
        CM_TRY(check_attribute(node, attr->name, attr->type, err));
        if (lacks_contents(attr))
            return cm_fail(err, CM_BAD_MODEL, "attribute '%.*s' has a type but no contents",
                           CM_STR_FMT(attr->name));
        for (size_t j = 0; j < i; j++)
            if (cm_str_equal(node->attributes[j].name, attr->name))
                return cm_fail(err, CM_BAD_MODEL, "attribute '%.*s' appears twice",
                               CM_STR_FMT(attr->name));
    }
    for (size_t i = 0; i < node->n_bodies; i++)
        CM_TRY(check_attribute(node, node->bodies[i].attribute, CM_ATTR_GRAPH, err));
    for (size_t i = 0; i < schema->attr_count; i++) {
        const struct cm_schema_attr *attr = &schema->attrs[i];
        if (!attr->required || cm_node_attr(node, attr->name))
            continue;
        bool found = false;
        for (size_t j = 0; j < node->n_bodies; j++)
            found = found || cm_str_is(node->bodies[j].attribute, attr->name);
        if (!found)
            return cm_fail(err, CM_BAD_MODEL, "attribute '%s' is required", attr->name);
    }
    return CM_OK;
}

enum cm_status cm_node_conforms(const struct cm_node *node, struct cm_error *err)
{
    const struct cm_schema *schema = node->schema;

    if (node->function)
        return CM_OK; /* functions are untyped: their body decides */
    if (!schema) {
        const struct cm_schema *guess = cm_schema_suggest(node->domain, node->op_type);
        return cm_fail(err, CM_UNSUPPORTED, "no operator of that name is known%s%s%s",
                       guess ? "; did you mean " : "", guess ? guess->name : "", guess ? "?" : "");
    }
    /* A node of an older version may have come here by upgrades that change nothing. */
    if (schema->deprecated && node->original_version >= schema->since_version)
        return cm_fail(err, CM_UNSUPPORTED, "version %d of the operator is deprecated",
                       schema->since_version);
    if (!cm_schema_allows_inputs(schema, (size_t)node->n_inputs))
        return cm_fail(err, CM_BAD_MODEL, "has %d inputs, needs %d to %d", node->n_inputs,
                       schema->min_inputs, schema->max_inputs);
    CM_TRY(check_outputs(node, err));
    struct signature bound[MAX_TYPE_VARIABLES] = {0};
    for (int i = 0; i < node->n_inputs; i++)
        CM_TRY(check_input(node, i, bound, err));
    return check_attributes(node, err);
}

static bool type_fits(const struct cm_module *module, const struct cm_schema *schema,
                      const struct cm_schema_param *param, const struct cm_type *type)
{
    struct signature mine;
    return !type || !sign(type, &mine) || allows(module, cm_schema_types_of(schema, param), &mine);
}

enum cm_status cm_node_check_result(const struct cm_node *node, int o, const struct cm_type *type,
                                    struct cm_error *err)
{
    const struct cm_schema_param *param =
        node->function || !node->schema ? NULL : cm_schema_output(node->schema, (size_t)o);
    char allowed[150]; /* a message holds little more */

    if (!param || type_fits(node->module, node->schema, param, type))
        return CM_OK;
    cm_type_set_print(cm_schema_types_of(node->schema, param), allowed, sizeof allowed);
    return cm_fail(err, CM_BAD_MODEL, "output %d '%s' would be %s, must be one of %s", o,
                   param->name,
                   cm_type_print(node->module->arena, node->module->symbols, type).data, allowed);
}

enum cm_status cm_node_check_version(const struct cm_node *node, const struct cm_schema *schema,
                                     struct cm_error *err)
{
    struct cm_node as_if = *node;
    as_if.schema = schema;
    CM_TRY(cm_node_conforms(&as_if, err));
    if (!cm_schema_allows_outputs(schema, (size_t)node->n_outputs))
        return cm_fail(err, CM_BAD_MODEL, "has %d outputs, which version %d cannot have",
                       node->n_outputs, schema->since_version);
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            CM_TRY(cm_node_check_result(
                &as_if, o, cm_value_get(node->module, node->outputs[o])->fact.type, err));
    return CM_OK;
}

bool cm_node_fits(const struct cm_node *node, const struct cm_schema *schema)
{
    struct cm_error ignored = {0};
    return cm_node_check_version(node, schema, &ignored) == CM_OK;
}
