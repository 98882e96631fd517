/* Climbing from an operator's version to the newest, one row at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/upgrade.h"

#include "rewrite/upgrade_step.h"

#include <stdlib.h>
#include <string.h>

static const struct cm_upgrade_table *const tables[] = {
    &cm_upgrade_elementwise, &cm_upgrade_shape,  &cm_upgrade_reduce,
    &cm_upgrade_nn,          &cm_upgrade_resize, &cm_upgrade_ml,
};
enum { TABLE_COUNT = sizeof tables / sizeof tables[0] };

struct key {
    struct cm_str op;
    int to;
};

static int compare_name(struct cm_str a, const char *b)
{
    const size_t size = strlen(b), common = a.size < size ? a.size : size;
    const int order = common ? memcmp(a.data, b, common) : 0;
    return order ? order : (a.size > size) - (a.size < size);
}

static int compare_row(const void *a, const void *b)
{
    const struct key *key = a;
    const struct cm_upgrade_row *row = b;
    const int order = compare_name(key->op, row->op);
    return order ? order : (key->to > row->to) - (key->to < row->to);
}

static int compare_same(const void *a, const void *b)
{
    return compare_name(((const struct key *)a)->op, ((const struct cm_upgrade_same *)b)->op);
}

static enum cm_upgrade_kind find_step(struct cm_str domain, struct cm_str op, int to,
                                      cm_upgrade_step_fn **step)
{
    const struct key key = {op, to};
    domain = cm_domain_plain(domain);
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        if (!cm_str_is(domain, tables[t]->domain))
            continue;
        const struct cm_upgrade_row *row =
            bsearch(&key, tables[t]->rows, tables[t]->count, sizeof *tables[t]->rows, compare_row);
        if (!row)
            continue;
        *step = row->step;
        return row->step ? CM_UPGRADE_CHANGED : CM_UPGRADE_SAME;
    }
    *step = NULL;
    if (domain.size)
        return CM_UPGRADE_MISSING;
    const struct cm_upgrade_same *same =
        bsearch(&key, cm_upgrade_unchanged, cm_upgrade_unchanged_count,
                sizeof *cm_upgrade_unchanged, compare_same);
    for (size_t i = 0; same && i < sizeof same->to / sizeof same->to[0]; i++)
        if (same->to[i] == to)
            return CM_UPGRADE_SAME;
    return CM_UPGRADE_MISSING;
}

enum cm_upgrade_kind cm_upgrade_known(struct cm_str domain, struct cm_str op, int to)
{
    cm_upgrade_step_fn *step;
    return find_step(domain, op, to, &step);
}

bool cm_upgrade_list(size_t i, struct cm_upgrade_note *out)
{
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        if (i < tables[t]->count) {
            const struct cm_upgrade_row *row = &tables[t]->rows[i];
            *out = (struct cm_upgrade_note){tables[t]->domain, row->op, row->note, row->to};
            return true;
        }
        i -= tables[t]->count;
    }
    for (size_t s = 0; s < cm_upgrade_unchanged_count; s++) {
        const struct cm_upgrade_same *same = &cm_upgrade_unchanged[s];
        for (size_t v = 0; v < sizeof same->to / sizeof same->to[0] && same->to[v]; v++)
            if (i-- == 0) {
                *out = (struct cm_upgrade_note){"", same->op, NULL, same->to[v]};
                return true;
            }
    }
    return false;
}

static const struct cm_schema *schema_at(const struct cm_upgrade *up, int64_t opset)
{
    return cm_registry_schema(cm_module_registry(up->build.graph->module), up->spec->domain,
                              up->spec->op_type, opset);
}

/* The version after the one reached. By halving, as a user's operator may be numbered at will. */
static const struct cm_schema *next_version(const struct cm_upgrade *up)
{
    int64_t below = up->node.schema->since_version, above = up->newest->since_version;
    while (above - below > 1) {
        const int64_t middle = below + (above - below) / 2;
        *(schema_at(up, middle) == up->node.schema ? &below : &above) = middle;
    }
    return schema_at(up, above);
}

static enum cm_status add(struct cm_upgrade *up)
{
    struct cm_node *node;
    CM_TRY(up->build.status);
    up->spec->version = 0;
    up->build.status =
        cm_graph_add_node(up->build.graph, up->build.before, up->spec, &node, up->build.err);
    CM_TRY(up->build.status);
    for (size_t i = 0; i < up->n_outputs; i++)
        up->outputs[i] = i < (size_t)node->n_outputs ? node->outputs[i] : 0;
    up->done = true;
    return CM_OK;
}

/* Steps look at element types and dimensions. Operators that take anything else have rows without
 * steps. */
static enum cm_status check_tensors(struct cm_upgrade *up)
{
    for (size_t i = 0; i < up->spec->n_inputs; i++)
        if (up->spec->inputs[i] && cm_upgrade_type(up, i)->kind != CM_KIND_TENSOR)
            return cm_upgrade_fail(up, CM_BAD_MODEL, "input %zu is not a tensor", i);
    return CM_OK;
}

static enum cm_status take_step(struct cm_upgrade *up, cm_upgrade_step_fn *step)
{
    CM_TRY(check_tensors(up));
    CM_TRY(step(up));
    return up->build.status;
}

static enum cm_status climb(struct cm_upgrade *up)
{
    while (!up->done && up->node.schema != up->newest) {
        cm_upgrade_step_fn *step;
        up->next = next_version(up);
        const int from = up->node.schema->since_version, to = up->next->since_version;
        if (find_step(up->spec->domain, up->spec->op_type, to, &step) == CM_UPGRADE_MISSING)
            return cm_upgrade_fail(
                up, CM_UNSUPPORTED,
                "%s version %d is not supported: it cannot be upgraded to version %d",
                up->node.schema->name, from, to);
        if (step)
            CM_TRY(take_step(up, step));
        up->node.schema = up->next;
    }
    return up->done ? CM_OK : add(up);
}

enum cm_status cm_upgrade_rest(struct cm_upgrade *up)
{
    up->node.schema = up->next;
    return climb(up);
}

enum cm_status cm_upgrade_become(struct cm_upgrade *up, const char *op, int version)
{
    up->spec->op_type = cm_arena_str(cm_upgrade_arena(up), cm_str(op));
    up->next = schema_at(up, version);
    up->newest = schema_at(up, 0);
    if (!up->next || !up->newest)
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

enum cm_status cm_upgrade_node(struct cm_builder *builder, struct cm_node_spec *spec,
                               const struct cm_schema *from, cm_value *outputs)
{
    struct cm_upgrade up = {
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
    };

    enum cm_status status;
    if (from) {
        up.newest = schema_at(&up, 0);
        status = check_given(&up, from);
        if (!status)
            status = climb(&up);
    } else {
        status = cm_upgrade_adopt(&up);
    }
    builder->status = status;
    return status;
}
