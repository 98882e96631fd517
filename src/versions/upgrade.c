/* Climbing from an operator's version to the newest, one row at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade.h"

#include "versions/upgrade_step.h"

#include <string.h>

const struct cm_version_table *const cm_version_tables[] = {
    &cm_changes_elementwise, &cm_changes_shape,  &cm_changes_reduce,
    &cm_changes_nn,          &cm_changes_resize, &cm_changes_ml,
};
const size_t cm_version_table_count = CM_COUNT(cm_version_tables);

/* Is op one of the words? They are in order. */
static bool is_listed(const char *ops, struct cm_str op)
{
    for (const char *end; (end = strchr(ops, ' ')); ops = end + 1) {
        const size_t size = (size_t)(end - ops);
        if (size == op.size && memcmp(ops, op.data, size) == 0)
            return true;
        if (*ops > *op.data)
            return false;
    }
    return cm_str_is(op, ops);
}

const struct cm_version_row *cm_version_find_row(struct cm_str domain, struct cm_str op, int to)
{
    domain = cm_domain_plain(domain);
    for (size_t t = 0; t < cm_version_table_count; t++) {
        const struct cm_version_table *table = cm_version_tables[t];
        for (size_t i = 0; i < table->count; i++)
            if (table->rows[i].to == to && is_listed(table->rows[i].ops, op) &&
                cm_str_is(domain, table->domain))
                return &table->rows[i];
    }
    return NULL;
}

bool cm_version_is_unchanged(struct cm_str domain, struct cm_str op, int to)
{
    domain = cm_domain_plain(domain);
    for (size_t i = 0; i < cm_version_unchanged_count; i++) {
        const struct cm_version_same *same = &cm_version_unchanged[i];
        if (same->to == to && cm_str_is(domain, same->domain) && is_listed(same->ops, op))
            return true;
    }
    return false;
}

enum cm_upgrade_kind cm_upgrade_known(struct cm_str domain, struct cm_str op, int to)
{
    const struct cm_version_row *row = cm_version_find_row(domain, op, to);
    return row && row->up_note                       ? CM_UPGRADE_CHANGED
           : cm_version_is_unchanged(domain, op, to) ? CM_UPGRADE_SAME
                                                     : CM_UPGRADE_MISSING;
}

const struct cm_schema *cm_upgrade_schema_at(const struct cm_upgrade *up, int64_t opset)
{
    return cm_registry_schema(cm_module_registry(up->build.graph->module), up->spec->domain,
                              up->spec->op_type, opset);
}

/* The version after the one reached. By halving, as a user's operator may be numbered at will. */
static const struct cm_schema *next_version(const struct cm_upgrade *up)
{
    int64_t below = up->node.schema->since_version, above = up->goal->since_version;
    while (above - below > 1) {
        const int64_t middle = below + (above - below) / 2;
        *(cm_upgrade_schema_at(up, middle) == up->node.schema ? &below : &above) = middle;
    }
    return cm_upgrade_schema_at(up, above);
}

static enum cm_status add_to_graph(struct cm_upgrade *up)
{
    struct cm_node *node;
    up->spec->version = 0;
    up->build.status =
        cm_graph_add_node(up->build.graph, up->build.before, up->spec, &node, up->build.err);
    CM_TRY(up->build.status);
    for (size_t i = 0; i < up->n_outputs; i++)
        up->outputs[i] = i < (size_t)node->n_outputs ? node->outputs[i] : 0;
    return CM_OK;
}

/* What an output of the form is like. Where a step goes on working with it, only its element type
 * is told, as far as that stays. */
static const struct cm_type *form_type(const struct cm_upgrade *up, size_t o)
{
    const cm_value own = o < up->n_outputs ? up->outputs[o] : 0;
    const struct cm_type *type = cm_builder_type(&up->build, own ? own : cm_upgrade_input(up, 0));
    return type && type->kind == CM_KIND_TENSOR && (up->wrapped || !own)
               ? cm_type_tensor(cm_upgrade_arena(up), type->dtype, CM_RANK_UNKNOWN, NULL)
               : type;
}

/* Is the form legal, types included? */
static enum cm_status check_form(struct cm_upgrade *up, const struct cm_version_form *form)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    struct cm_node as_if = up->node;
    cm_value untyped = 0;
    if (up->wrapped) /* what is wrapped may have another type; nobody can tell here */
        untyped = cm_graph_add_input(up->build.graph, CM_STR_NONE, NULL);
    as_if.schema = form->schema;
    as_if.n_inputs = (int)form->spec.n_inputs;
    as_if.inputs = CM_NEW_ARRAY(arena, struct cm_use, form->spec.n_inputs);
    for (size_t i = 0; i < form->spec.n_inputs; i++)
        as_if.inputs[i].value = form->spec.inputs[i];
    as_if.n_outputs = (int)form->spec.n_outputs;
    as_if.outputs = CM_NEW_ARRAY(arena, cm_value, form->spec.n_outputs);
    for (size_t o = 0; o < form->spec.n_outputs; o++)
        as_if.outputs[o] = form->outputs[o] && untyped ? untyped : form->outputs[o];
    up->build.status = cm_node_check_version(&as_if, form->schema, up->build.err);
    return cm_error_context(up->build.err, up->build.status, "%s version %d", form->schema->name,
                            form->schema->since_version);
}

static enum cm_status keep_form(struct cm_upgrade *up)
{
    struct cm_version_form *form = up->form;
    form->spec = *up->spec;
    form->schema = up->node.schema;
    form->after = up->build.graph->last;
    while (form->spec.n_inputs > (size_t)form->schema->min_inputs &&
           !form->spec.inputs[form->spec.n_inputs - 1])
        form->spec.n_inputs--;
    form->outputs = CM_NEW_ARRAY(cm_upgrade_arena(up), cm_value, form->spec.n_outputs);
    for (size_t o = 0; o < form->spec.n_outputs; o++)
        if (cm_upgrade_wants(up, o))
            form->outputs[o] = cm_graph_add_input(up->build.graph, CM_STR_NONE, form_type(up, o));
    CM_TRY(check_form(up, form));
    for (size_t o = 0; o < up->n_outputs; o++)
        up->outputs[o] = o < form->spec.n_outputs ? form->outputs[o] : 0;
    return CM_OK;
}

enum cm_status cm_upgrade_add(struct cm_upgrade *up)
{
    CM_TRY(up->build.status);
    CM_TRY(up->form ? keep_form(up) : add_to_graph(up));
    up->done = true;
    return CM_OK;
}

enum cm_status cm_upgrade_check_tensors(struct cm_upgrade *up)
{
    for (size_t i = 0; i < up->spec->n_inputs; i++)
        if (up->spec->inputs[i] && cm_upgrade_type(up, i)->kind != CM_KIND_TENSOR)
            return cm_upgrade_fail(up, CM_BAD_MODEL, "input %zu is not a tensor", i);
    return CM_OK;
}

void cm_upgrade_note_row(struct cm_upgrade *up, const char *note)
{
    if (up->form && note)
        up->form->notes =
            cm_arena_printf(cm_upgrade_arena(up), "%.*s%s%s", CM_STR_FMT(up->form->notes),
                            up->form->notes.size ? "; " : "", note);
}

static void move_to_input(struct cm_upgrade *up, const struct cm_moved *moved)
{
    const char *name = moved->attribute;
    const bool given = cm_upgrade_given(up, name);
    const struct cm_int64s list = cm_node_ints(&up->node, name);
    const int64_t count = cm_node_int(&up->node, name);
    const double real = (double)cm_node_float(&up->node, name);
    cm_value value = 0;
    switch (moved->form) {
    case CM_MOVED_LIST:
        value = given ? cm_upgrade_int64s(up, list.count, list.items) : 0;
        break;
    case CM_MOVED_LIST_OR_ALL: /* an older step may have put it there */
        value = list.count && !cm_upgrade_input(up, moved->operand)
                    ? cm_upgrade_int64s(up, list.count, list.items)
                    : 0;
        break;
    case CM_MOVED_COUNT:
        value = cm_upgrade_int64s(up, 1, &count);
        break;
    case CM_MOVED_REAL:
    case CM_MOVED_REAL_OR_0:
        if (given && (real != 0 || moved->form == CM_MOVED_REAL))
            value = cm_emit_scalar_like(up, cm_upgrade_input(up, 0), real);
    }
    cm_upgrade_drop(up, name);
    if (value)
        cm_upgrade_set_input(up, moved->operand, value);
}

/* A change on the way up. */
static enum cm_status take_row(struct cm_upgrade *up, const struct cm_version_row *row)
{
    cm_upgrade_note_row(up, row->up_note);
    CM_TRY(cm_upgrade_check_tensors(up));
    if (row->gone)
        cm_upgrade_drop(up, row->gone);
    for (size_t i = 0; i < CM_COUNT(row->moved) && row->moved[i].attribute; i++)
        move_to_input(up, &row->moved[i]);
    if (row->up)
        CM_TRY(row->up(up));
    return up->build.status;
}

static enum cm_status climb(struct cm_upgrade *up)
{
    while (!up->done && up->node.schema != up->goal) {
        up->next = next_version(up);
        const int from = up->node.schema->since_version, to = up->next->since_version;
        const struct cm_version_row *row =
            cm_version_find_row(up->spec->domain, up->spec->op_type, to);
        if (row && row->up_note)
            CM_TRY(take_row(up, row));
        else if (!cm_version_is_unchanged(up->spec->domain, up->spec->op_type, to))
            return cm_upgrade_fail(
                up, CM_UNSUPPORTED,
                "%s version %d is not supported: it cannot be upgraded to version %d",
                up->node.schema->name, from, to);
        up->node.schema = up->next;
    }
    return up->done ? CM_OK : cm_upgrade_add(up);
}

enum cm_status cm_upgrade_rest(struct cm_upgrade *up)
{
    up->node.schema = up->next;
    up->wrapped = true;
    return up->walk(up);
}

enum cm_status cm_upgrade_become(struct cm_upgrade *up, const char *op, int version)
{
    up->spec->op_type = up->node.op_type = cm_arena_str(cm_upgrade_arena(up), cm_str(op));
    up->next = cm_upgrade_schema_at(up, version);
    up->goal = cm_upgrade_schema_at(up, up->opset);
    if (!up->next || !up->goal)
        return cm_upgrade_fail(up, CM_UNSUPPORTED, "%s version %d is not known", op, version);
    return CM_OK;
}

/* Steps rely on what the old version says of attributes and operands, so that is checked before
 * the first; the newest version is checked when the node is added. */
static enum cm_status check_given(struct cm_upgrade *up, const struct cm_schema *from)
{
    const struct cm_node_spec *spec = up->spec;
    for (size_t i = 0; i < spec->n_attributes; i++) {
        const struct cm_attribute_proto *given = &spec->attributes[i];
        const struct cm_schema_attr *attr = cm_schema_find_attr(from, given->name);
        if (!attr && cm_str_starts(given->name, "__"))
            continue; /* reserved for tools */
        if (!attr)
            return cm_upgrade_fail(up, CM_BAD_MODEL,
                                   "attribute '%.*s' is not defined in %s version %d",
                                   CM_STR_FMT(given->name), from->name, from->since_version);
        if ((int)given->type != (int)attr->kind)
            return cm_upgrade_fail(up, CM_BAD_MODEL, "attribute '%s' has type %d, must have %d",
                                   attr->name, (int)given->type, (int)attr->kind);
    }
    for (size_t i = 0; i < from->attr_count; i++)
        if (from->attrs[i].required && !cm_upgrade_given(up, from->attrs[i].name) &&
            cm_node_body_index(&up->node, from->attrs[i].name) < 0)
            return cm_upgrade_fail(up, CM_BAD_MODEL, "attribute '%s' is required by %s version %d",
                                   from->attrs[i].name, from->name, from->since_version);
    size_t count = spec->n_inputs;
    while (count > (size_t)from->min_inputs && !spec->inputs[count - 1])
        count--;
    if (!cm_schema_allows_inputs(from, count))
        return cm_upgrade_fail(up, CM_BAD_MODEL, "has %zu inputs, %s version %d needs %d to %d",
                               count, from->name, from->since_version, from->min_inputs,
                               from->max_inputs);
    for (size_t i = 0; i < count; i++)
        if (!spec->inputs[i] && cm_schema_input(from, i)->kind == CM_PARAM_SINGLE)
            return cm_upgrade_fail(up, CM_BAD_MODEL, "input %zu '%s' is required", i,
                                   cm_schema_input(from, i)->name);
    if (spec->n_outputs > (size_t)from->max_outputs)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "has %zu outputs, %s version %d can have %d",
                               spec->n_outputs, from->name, from->since_version, from->max_outputs);
    return CM_OK;
}

static struct cm_upgrade begin(struct cm_builder *builder, struct cm_node_spec *spec,
                               const struct cm_schema *from, cm_value *outputs)
{
    return (struct cm_upgrade){
        .build = *builder,
        .spec = spec,
        .node = {.module = builder->graph->module,
                 .graph = builder->graph,
                 .name = spec->name,
                 .domain = spec->domain,
                 .op_type = spec->op_type,
                 .schema = from,
                 .attributes = spec->attributes,
                 .n_attributes = spec->n_attributes,
                 .bodies = spec->bodies,
                 .n_bodies = (uint32_t)spec->n_bodies},
        .outputs = outputs,
        .n_outputs = spec->n_outputs,
        .walk = climb,
    };
}

/* Takes all steps and tells the builder how it went. */
static enum cm_status finish(struct cm_upgrade *up, struct cm_builder *builder)
{
    up->goal = cm_upgrade_schema_at(up, up->opset);
    builder->status = check_given(up, up->node.schema);
    if (!builder->status)
        builder->status = up->walk(up);
    return builder->status;
}

enum cm_status cm_upgrade_node(struct cm_builder *builder, struct cm_node_spec *spec,
                               const struct cm_schema *from, cm_value *outputs)
{
    struct cm_upgrade up = begin(builder, spec, from, outputs);
    return from ? finish(&up, builder) : (builder->status = cm_upgrade_adopt(&up));
}

enum cm_status cm_convert_node(struct cm_builder *builder, struct cm_node_spec *spec,
                               const struct cm_schema *from, int64_t opset, cm_value *outputs,
                               struct cm_version_form *form)
{
    struct cm_upgrade up = begin(builder, spec, from, outputs);
    up.opset = opset;
    up.form = form;
    if (from->since_version > opset)
        up.walk = cm_downgrade_walk;
    return finish(&up, builder);
}
