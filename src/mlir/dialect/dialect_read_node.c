/* Operations of the ONNX dialect as nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_read.h"
#include "onnx/syntax_names.h"

#include <stdlib.h>

enum cm_status cm_dialect_name_of(struct cm_dialect_reader *r, const struct cm_dialect_names *names,
                                  const struct cm_dialect_ssa *ssa, struct cm_str *out)
{
    for (; names; names = names->outer) {
        const uint64_t found = cm_map_get(&names->values, ssa->name, 0);
        const struct cm_strs *const values = (const struct cm_strs *)(uintptr_t)found;

        if (values && ssa->index < values->count) {
            *out = values->items[ssa->index];
            return CM_OK;
        }
    }
    return cm_dialect_refuse(r, ssa->at, CM_BAD_MODEL, "value '%%%.*s' is not defined before",
                             CM_STR_FMT(ssa->name));
}

void cm_dialect_name_values(struct cm_dialect_reader *r, struct cm_dialect_names *names,
                            struct cm_str ssa, struct cm_strs values)
{
    struct cm_strs *const held = CM_NEW(r->arena, struct cm_strs);

    *held = values;
    *cm_map_insert(&names->values, r->arena, ssa, NULL) = (uint64_t)(uintptr_t)held;
}

struct cm_str cm_dialect_new_name(struct cm_dialect_reader *r, const struct cm_dialect_names *names,
                                  struct cm_str ssa, size_t index, size_t count)
{
    const struct cm_str key =
        index ? cm_arena_printf(r->arena, "%.*s#%zu", (int)ssa.size, ssa.data, index) : ssa;
    const uint64_t wanted = cm_map_get(&names->wanted, key, 0);
    struct cm_str name = ssa;
    bool added = false;

    if (wanted)
        return *(const struct cm_str *)(uintptr_t)wanted;
    if (count > 1)
        name = cm_arena_printf(r->arena, "%.*s_%zu", (int)ssa.size, ssa.data, index);
    for (size_t n = 1;; n++) {
        cm_map_insert(&r->taken, r->arena, name, &added);
        if (added)
            return name;
        name = cm_arena_printf(r->arena, "%.*s_%zu_%zu", (int)ssa.size, ssa.data, index, n);
    }
}

/* The field an attribute's value goes to, and its type. */
struct place {
    int field;
    enum cm_attribute_type type;
};

static struct place place_of_list(const struct cm_dialect_attr *attr,
                                  const struct cm_schema_attr *known)
{
    if (!attr->items.count)
        return known && known->kind == CM_SCHEMA_FLOATS
                   ? (struct place){CM_ATTRIBUTE_FLOATS, CM_ATTR_FLOATS}
               : known && known->kind == CM_SCHEMA_STRINGS
                   ? (struct place){CM_ATTRIBUTE_STRINGS, CM_ATTR_STRINGS}
                   : (struct place){CM_ATTRIBUTE_INTS, CM_ATTR_INTS};
    const struct cm_dialect_attr *const first = &attr->items.items[0];
    switch (first->kind) {
    case CM_DIALECT_ATTR_NUMBER:
        return cm_dialect_is_real(first) ? (struct place){CM_ATTRIBUTE_FLOATS, CM_ATTR_FLOATS}
                                         : (struct place){CM_ATTRIBUTE_INTS, CM_ATTR_INTS};
    case CM_DIALECT_ATTR_STRING:
        return (struct place){CM_ATTRIBUTE_STRINGS, CM_ATTR_STRINGS};
    case CM_DIALECT_ATTR_DENSE:
    case CM_DIALECT_ATTR_RESOURCE:
        return (struct place){CM_ATTRIBUTE_TENSORS, CM_ATTR_TENSORS};
    case CM_DIALECT_ATTR_TYPE:
        return (struct place){CM_ATTRIBUTE_TYPE_PROTOS, CM_ATTR_TYPE_PROTOS};
    default:
        return (struct place){-1, CM_ATTR_UNDEFINED};
    }
}

static struct place place_of(const struct cm_dialect_attr *attr, const struct cm_schema_attr *known)
{
    switch (attr->kind) {
    case CM_DIALECT_ATTR_NUMBER:
        return cm_dialect_is_real(attr) ? (struct place){CM_ATTRIBUTE_F, CM_ATTR_FLOAT}
                                        : (struct place){CM_ATTRIBUTE_I, CM_ATTR_INT};
    case CM_DIALECT_ATTR_STRING:
        return (struct place){CM_ATTRIBUTE_S, CM_ATTR_STRING};
    case CM_DIALECT_ATTR_DENSE:
    case CM_DIALECT_ATTR_RESOURCE:
        return (struct place){CM_ATTRIBUTE_T, CM_ATTR_TENSOR};
    case CM_DIALECT_ATTR_TYPE:
        return (struct place){CM_ATTRIBUTE_TP, CM_ATTR_TYPE_PROTO};
    case CM_DIALECT_ATTR_ARRAY:
        return place_of_list(attr, known);
    default:
        return (struct place){-1, CM_ATTR_UNDEFINED};
    }
}

/* An operation while it becomes a node. */
struct reading {
    struct cm_dialect_reader *r;
    const struct cm_dialect_op *op;
    struct cm_node_proto *out;
    bool is_custom;
    const struct cm_schema *schema; /* the newest; NULL: none is known */
    CM_ARRAY(struct cm_attribute_proto) attributes;
};

static enum cm_status read_attribute(struct reading *n, struct cm_str name,
                                     const struct cm_dialect_entry *entry)
{
    struct cm_dialect_reader *const r = n->r;
    const struct cm_dialect_attr *const attr = &entry->value;
    struct cm_attribute_proto *const out = CM_PUSH(r->arena, &n->attributes);

    *out = (struct cm_attribute_proto){.name = name};
    cm_msg_set(&out->msg, CM_ATTRIBUTE_NAME);
    if (attr->kind == CM_DIALECT_ATTR_DICT)
        return cm_dialect_read_fields(r, &cm_attribute_info, &attr->entries, "",
                                      ~CM_BIT(CM_ATTRIBUTE_NAME), NULL, out);
    const struct place place =
        place_of(attr, n->schema ? cm_schema_find_attr(n->schema, name) : NULL);
    if (place.field < 0)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL,
                                 "attribute '%.*s' has a value that ONNX has no type for",
                                 CM_STR_FMT(name));
    out->type = (int32_t)place.type;
    cm_msg_set(&out->msg, CM_ATTRIBUTE_TYPE);
    if (attr->kind == CM_DIALECT_ATTR_TYPE && attr->type.kind == CM_DIALECT_TYPE_ELEMENT) {
        out->type = CM_ATTR_INT;
        out->i = attr->type.element;
        cm_msg_set(&out->msg, CM_ATTRIBUTE_I);
        return CM_OK;
    }
    if (attr->kind == CM_DIALECT_ATTR_ARRAY && !attr->items.count)
        return CM_OK;
    return cm_dialect_read_field(r, &cm_attribute_info, place.field, attr, out);
}

static int by_name(const void *a, const void *b)
{
    return cm_str_compare(((const struct cm_attribute_proto *)a)->name,
                          ((const struct cm_attribute_proto *)b)->name);
}

static enum cm_status apply_notes(struct reading *n, struct cm_str name,
                                  const struct cm_dialect_entry *entry)
{
    struct cm_dialect_reader *const r = n->r;
    const struct cm_dialect_attr *const attr = &entry->value;

    if (attr->kind != CM_DIALECT_ATTR_DICT)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected fields in braces");
    for (size_t i = 0; i < n->attributes.count; i++) {
        struct cm_attribute_proto *const one = &n->attributes.items[i];
        if (!cm_str_equal(one->name, name) || !one->t)
            continue;
        const struct cm_dialect_attr *dense = NULL;
        for (size_t k = 0; k < n->op->attrs.count; k++) {
            const struct cm_dialect_entry *const other = &n->op->attrs.items[k];
            const bool same =
                cm_str_equal(other->key, name) ||
                (cm_str_starts(other->key, "onnx.attribute.") &&
                 cm_str_equal((struct cm_str){other->key.data + 15, other->key.size - 15}, name));
            if (same)
                dense = &other->value;
        }
        *one->t = (struct cm_tensor_proto){0};
        return cm_dialect_read_tensor(r, dense, &attr->entries, one->t);
    }
    return cm_dialect_refuse(r, entry->at, CM_BAD_MODEL, "attribute '%.*s' is not a tensor",
                             CM_STR_FMT(name));
}

static struct cm_str after(struct cm_str key, const char *prefix)
{
    const size_t size = strlen(prefix);

    return cm_str_starts(key, prefix) ? (struct cm_str){key.data + size, key.size - size}
                                      : CM_STR_NONE;
}

static enum cm_status read_entry(struct reading *n, const struct cm_dialect_entry *entry)
{
    struct cm_dialect_reader *const r = n->r;
    const struct cm_str key = entry->key, rest = after(key, "onnx.");
    const struct cm_str escaped = after(key, "onnx.attribute.");
    int field = -1;

    if (cm_str_is(key, "onnx_node_name"))
        field = CM_NODE_NAME;
    else if (n->is_custom && cm_str_is(key, "domain_name"))
        field = CM_NODE_DOMAIN;
    else if (n->is_custom && cm_str_is(key, "function_name"))
        field = CM_NODE_OP_TYPE;
    else if (!cm_str_starts(key, "onnx."))
        return read_attribute(n, key, entry);
    else if (escaped.size)
        return read_attribute(n, escaped, entry);
    else if (cm_str_is(rest, "order") || cm_str_is(rest, "regions") ||
             cm_str_starts(rest, "tensor."))
        return CM_OK; /* when all attributes are there */
    else
        field = cm_message_field_named(&cm_node_info, rest);
    if (field < 0 || field == CM_NODE_INPUT || (field == CM_NODE_OP_TYPE && !n->is_custom) ||
        (field == CM_NODE_NAME && rest.size))
        return cm_dialect_refuse(r, entry->at, CM_BAD_MODEL, "attribute '%.*s' means nothing here",
                                 CM_STR_FMT(key));
    n->out->msg.has &= ~CM_BIT(field);
    return cm_dialect_read_field(r, &cm_node_info, field, &entry->value, n->out);
}

/* Attributes of type graph: a region each. */
static enum cm_status read_region(struct reading *n, const struct cm_dialect_names *names,
                                  const struct cm_dialect_region *region, struct cm_str name,
                                  const struct cm_dialect_entries *notes)
{
    static const struct cm_dialect_entries nothing;
    struct cm_dialect_reader *const r = n->r;
    const struct cm_dialect_attr *const doc =
        notes ? cm_dialect_get(notes, "attribute_doc_string") : NULL;
    const bool is_list = notes && cm_dialect_get(notes, "graphs");
    struct cm_attribute_proto *out =
        n->attributes.count ? &n->attributes.items[n->attributes.count - 1] : NULL;

    if (!is_list || !out || out->type != CM_ATTR_GRAPHS || !cm_str_equal(out->name, name)) {
        for (size_t i = 0; i < n->attributes.count; i++)
            if (cm_str_equal(n->attributes.items[i].name, name))
                return cm_dialect_refuse(r, region->at, CM_BAD_MODEL,
                                         "attribute '%.*s' appears twice", CM_STR_FMT(name));
        out = CM_PUSH(r->arena, &n->attributes);
        *out = (struct cm_attribute_proto){.name = name,
                                           .type = is_list ? CM_ATTR_GRAPHS : CM_ATTR_GRAPH};
        cm_msg_set(&out->msg, CM_ATTRIBUTE_NAME);
        cm_msg_set(&out->msg, CM_ATTRIBUTE_TYPE);
        cm_msg_set(&out->msg, is_list ? CM_ATTRIBUTE_GRAPHS : CM_ATTRIBUTE_G);
        if (doc) {
            CM_TRY(cm_dialect_read_str(r, doc, &out->doc_string));
            cm_msg_set(&out->msg, CM_ATTRIBUTE_DOC_STRING);
        }
    }
    struct cm_graph_proto *graph;
    if (is_list)
        graph = CM_LIST_ADD(r->arena, &out->graphs);
    else
        graph = out->g = CM_NEW(r->arena, struct cm_graph_proto);
    CM_TRY(cm_dialect_read_graph(r, names, region, NULL, notes ? notes : &nothing, "", graph));
    if (r->foreign && !cm_msg_has(&graph->msg, CM_GRAPH_NAME)) {
        graph->name = name;
        cm_msg_set(&graph->msg, CM_GRAPH_NAME);
    }
    return CM_OK;
}

/* The name of the i-th region of an operator, where the text has none: then_branch stands before
 * else_branch, so it goes from the last name to the first. */
static struct cm_str schema_region(const struct cm_schema *schema, size_t i)
{
    for (size_t a = schema ? schema->attr_count : 0; a-- > 0;)
        if (schema->attrs[a].kind == CM_SCHEMA_GRAPH && i-- == 0)
            return cm_str(schema->attrs[a].name);
    return CM_STR_NONE;
}

static enum cm_status read_regions(struct reading *n, const struct cm_dialect_names *names)
{
    struct cm_dialect_reader *const r = n->r;
    const struct cm_dialect_attr *const notes = cm_dialect_get(&n->op->attrs, "onnx.regions");
    const size_t count = n->op->regions.count;

    if (notes && (notes->kind != CM_DIALECT_ATTR_ARRAY || notes->items.count != count))
        return cm_dialect_refuse(r, notes->at, CM_BAD_MODEL, "expected a list of %zu regions",
                                 count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_dialect_attr *const one = notes ? &notes->items.items[i] : NULL;
        const struct cm_dialect_attr *const key =
            one ? cm_dialect_get(&one->entries, "attribute") : NULL;
        struct cm_str name = schema_region(n->schema, i);

        if (key)
            CM_TRY(cm_dialect_read_str(r, key, &name));
        if (!name.size)
            return cm_dialect_refuse(r, n->op->regions.items[i].at, CM_BAD_MODEL,
                                     "operator '%.*s' has no region number %zu",
                                     CM_STR_FMT(n->op->name), i);
        CM_TRY(read_region(n, names, &n->op->regions.items[i], name, one ? &one->entries : NULL));
    }
    return CM_OK;
}

/* Brings attributes, which stand by name, into the order that the list says. */
static enum cm_status put_in_order(struct reading *n)
{
    struct cm_dialect_reader *const r = n->r;
    const struct cm_dialect_attr *const order = cm_dialect_get(&n->op->attrs, "onnx.order");
    const size_t count = n->attributes.count;
    struct cm_attribute_proto *items = n->attributes.items;

    if (order) {
        struct cm_attribute_proto *const sorted =
            CM_NEW_ARRAY(r->arena, struct cm_attribute_proto, count);
        if (order->kind != CM_DIALECT_ATTR_ARRAY || order->items.count != count)
            return cm_dialect_refuse(r, order->at, CM_BAD_MODEL,
                                     "expected the places of %zu attributes", count);
        for (size_t i = 0; i < count; i++) {
            int64_t to;
            CM_TRY(cm_dialect_read_int(r, &order->items.items[i], &to));
            if (to < 0 || (uint64_t)to >= count || sorted[to].msg.has)
                return cm_dialect_refuse(r, order->items.items[i].at, CM_BAD_MODEL,
                                         "%lld is not a free place among %zu attributes",
                                         (long long)to, count);
            sorted[to] = items[i];
        }
        items = sorted;
    }
    if (count) {
        n->out->attribute.items = items;
        n->out->attribute.count = count;
        cm_msg_set(&n->out->msg, CM_NODE_ATTRIBUTE);
    }
    return CM_OK;
}

static enum cm_status read_attributes(struct reading *n, const struct cm_dialect_names *names)
{
    struct cm_dialect_reader *const r = n->r;

    for (size_t i = 0; i < n->op->attrs.count; i++)
        CM_TRY(read_entry(n, &n->op->attrs.items[i]));
    if (n->attributes.count)
        qsort(n->attributes.items, n->attributes.count, sizeof *n->attributes.items, by_name);
    for (size_t i = 1; i < n->attributes.count; i++) {
        const struct cm_str name = n->attributes.items[i].name;
        if (cm_str_equal(n->attributes.items[i - 1].name, name))
            return cm_dialect_refuse(r, n->op->at, CM_BAD_MODEL, "attribute '%.*s' appears twice",
                                     CM_STR_FMT(name));
    }
    for (size_t i = 0; i < n->op->attrs.count; i++) {
        const struct cm_dialect_entry *const entry = &n->op->attrs.items[i];
        const struct cm_str name = after(entry->key, "onnx.tensor.");
        if (name.size)
            CM_TRY(apply_notes(n, name, entry));
    }
    CM_TRY(read_regions(n, names));
    if (n->attributes.count && n->out->attribute.count)
        return cm_dialect_refuse(r, n->op->at, CM_BAD_MODEL,
                                 "attributes beside those of 'onnx.attribute'");
    return put_in_order(n);
}

static enum cm_status read_names(struct reading *n, struct cm_dialect_names *names)
{
    struct cm_dialect_reader *const r = n->r;
    const struct cm_dialect_op *const op = n->op;
    struct cm_strs *const inputs = &n->out->input, *const outputs = &n->out->output;
    const size_t results = op->result_types.count;
    size_t at = 0;

    *inputs = (struct cm_strs){CM_NEW_ARRAY(r->arena, struct cm_str, op->operands.count),
                               op->operands.count};
    for (size_t i = 0; i < op->operands.count; i++)
        CM_TRY(cm_dialect_name_of(r, names, &op->operands.items[i], &inputs->items[i]));
    if (op->operands.count)
        cm_msg_set(&n->out->msg, CM_NODE_INPUT);
    const bool named = cm_msg_has(&n->out->msg, CM_NODE_OUTPUT);
    if (named && outputs->count != results)
        return cm_dialect_refuse(r, op->at, CM_BAD_MODEL, "%zu names for %zu results",
                                 outputs->count, results);
    if (!named) {
        *outputs = (struct cm_strs){CM_NEW_ARRAY(r->arena, struct cm_str, results), results};
        if (results)
            cm_msg_set(&n->out->msg, CM_NODE_OUTPUT);
    }
    for (size_t i = 0; i < op->results.count; i++) {
        const struct cm_dialect_ssa *const ssa = &op->results.items[i];
        const struct cm_strs part = {outputs->items + at, ssa->index};
        for (size_t k = 0; !named && k < ssa->index; k++) {
            const bool absent = op->result_types.items[at + k].kind == CM_DIALECT_TYPE_NONE;
            part.items[k] =
                absent ? CM_STR("") : cm_dialect_new_name(r, names, ssa->name, k, ssa->index);
        }
        cm_dialect_name_values(r, names, ssa->name, part);
        at += ssa->index;
    }
    return CM_OK;
}

static void narrow(struct cm_dialect_reader *r, const struct cm_dialect_operator *form)
{
    struct cm_dialect_range *range = NULL;

    for (size_t i = 0; i < r->ranges.count; i++)
        if (cm_str_equal(r->ranges.items[i].domain, form->domain))
            range = &r->ranges.items[i];
    if (!range) {
        range = CM_PUSH(r->arena, &r->ranges);
        *range = (struct cm_dialect_range){.domain = form->domain, .first = 1, .last = INT64_MAX};
    }
    if (form->first > range->first) {
        range->first = form->first;
        range->needs_first = form->name;
    }
    if (form->last < range->last) {
        range->last = form->last;
        range->needs_last = form->name;
    }
}

/* Is the form that the text names the one that the opset has? */
static enum cm_status check_version(struct reading *n, const struct cm_dialect_operator *form)
{
    const struct cm_opsets *const opsets = n->r->opsets;

    for (size_t i = 0; opsets && i < opsets->count; i++) {
        const struct cm_opset_proto *const opset = &opsets->items[i];
        const bool same = form->domain.size
                              ? cm_str_equal(opset->domain, form->domain)
                              : !opset->domain.size || cm_str_is(opset->domain, "ai.onnx");
        if (!same)
            continue;
        if (opset->version >= form->first && opset->version <= form->last)
            return CM_OK;
        return cm_dialect_refuse(
            n->r, n->op->at, CM_BAD_MODEL, "'%.*s' is not the form that %.*s has in opset %lld",
            CM_STR_FMT(n->op->name), CM_STR_FMT(form->name), (long long)opset->version);
    }
    narrow(n->r, form);
    return CM_OK;
}

static enum cm_status find_operator(struct reading *n)
{
    const struct cm_str name = after(n->op->name, "onnx.");
    struct cm_node_proto *const out = n->out;
    struct cm_dialect_operator form;

    if (cm_str_is(name, "Custom")) {
        n->is_custom = true;
        return CM_OK;
    }
    if (!name.size || !cm_dialect_operator_named(name, &form))
        return cm_dialect_refuse(n->r, n->op->at, CM_UNSUPPORTED,
                                 "operation '%.*s' is not part of the ONNX dialect",
                                 CM_STR_FMT(n->op->name));
    n->schema = cm_schema_newest(form.domain, form.name);
    out->op_type = form.name;
    cm_msg_set(&out->msg, CM_NODE_OP_TYPE);
    if (form.domain.size) {
        out->domain = form.domain;
        cm_msg_set(&out->msg, CM_NODE_DOMAIN);
    }
    return check_version(n, &form);
}

enum cm_status cm_dialect_read_node(struct cm_dialect_reader *r, struct cm_dialect_names *names,
                                    const struct cm_dialect_op *op, struct cm_node_proto *out)
{
    struct reading n = {.r = r, .op = op, .out = out};

    CM_TRY(find_operator(&n));
    CM_TRY(read_attributes(&n, names));
    if (n.is_custom && r->foreign) /* whatever version: nobody says */
        narrow(r, &(struct cm_dialect_operator){.domain = out->domain, .last = INT64_MAX});
    return read_names(&n, names);
}
