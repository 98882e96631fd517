/* Nodes as operations of the ONNX dialect. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_print.h"
#include "onnx/syntax_names.h"
#include "onnx/tensor_data.h"

#include <stdlib.h>

enum entry_kind { TEXT, FIELD, ATTRIBUTE, NOTES, ORDER, REGIONS };

/* An entry of an operation's dictionary. */
struct entry {
    struct cm_str key;
    enum entry_kind kind;
    int field;                                  /* of the node, for FIELD */
    struct cm_str text;                         /* for TEXT */
    const struct cm_attribute_proto *attribute; /* for ATTRIBUTE and NOTES */
    struct cm_tensor *values;                   /* of an attribute that is a tensor */
};

/* An attribute with its place in the node. */
struct placed {
    const struct cm_attribute_proto *attribute;
    size_t index;
    bool is_region;
};

/* What is known of a node before anything is printed. */
struct operation {
    struct cm_dialect_out *o;
    const struct cm_node_proto *node, *typed;
    struct cm_dialect_operator form;
    bool is_custom;
    const struct cm_schema *schema; /* NULL: none */
    struct placed *attributes;      /* as they stand in the text: by name, regions last */
    size_t n_attributes;            /* 0: they are told as messages, or there are none */
    CM_ARRAY(struct entry) entries;
};

static struct entry *add_entry(struct operation *op, const char *key, enum entry_kind kind)
{
    struct entry *const entry = CM_PUSH(op->o->arena, &op->entries);

    *entry = (struct entry){.key = cm_str(key), .kind = kind};
    return entry;
}

static void add_field(struct operation *op, const char *key, int field)
{
    if (cm_msg_has(&op->node->msg, field))
        add_entry(op, key, FIELD)->field = field;
}

static void add_text(struct operation *op, const char *key, int field, struct cm_str text)
{
    if (cm_msg_has(&op->node->msg, field))
        add_entry(op, key, TEXT)->text = text;
}

/* Names that mean something else in the dictionary. */
static bool is_reserved(const struct operation *op, struct cm_str name)
{
    return cm_str_starts(name, "onnx.") || cm_str_is(name, "onnx_node_name") ||
           (op->is_custom && (cm_str_is(name, "domain_name") || cm_str_is(name, "function_name")));
}

static int value_field(int32_t type)
{
    static const int fields[CM_ATTR_TYPE_COUNT] = {
        [CM_ATTR_FLOAT] = CM_ATTRIBUTE_F,       [CM_ATTR_INT] = CM_ATTRIBUTE_I,
        [CM_ATTR_STRING] = CM_ATTRIBUTE_S,      [CM_ATTR_TENSOR] = CM_ATTRIBUTE_T,
        [CM_ATTR_GRAPH] = CM_ATTRIBUTE_G,       [CM_ATTR_FLOATS] = CM_ATTRIBUTE_FLOATS,
        [CM_ATTR_INTS] = CM_ATTRIBUTE_INTS,     [CM_ATTR_STRINGS] = CM_ATTRIBUTE_STRINGS,
        [CM_ATTR_GRAPHS] = CM_ATTRIBUTE_GRAPHS, [CM_ATTR_TYPE_PROTO] = CM_ATTRIBUTE_TP,
    };
    return type > 0 && type < CM_ATTR_TYPE_COUNT && fields[type] ? fields[type] : -1;
}

static bool is_list(int32_t type)
{
    return type == CM_ATTR_FLOATS || type == CM_ATTR_INTS || type == CM_ATTR_STRINGS;
}

/* Does a value in MLIR's own form say all of the attribute? What says more is told field by field.
 */
static bool is_plain(const struct operation *op, const struct cm_attribute_proto *attribute)
{
    const uint32_t head = CM_BIT(CM_ATTRIBUTE_NAME) | CM_BIT(CM_ATTRIBUTE_TYPE);
    const int field = value_field(attribute->type);

    if (field < 0)
        return false;
    if (attribute->msg.has == head && is_list(attribute->type)) {
        const struct cm_schema_attr *known =
            op->schema ? cm_schema_find_attr(op->schema, attribute->name) : NULL;
        return known && (int32_t)known->kind == attribute->type;
    }
    if (attribute->msg.has != (head | CM_BIT(field)))
        return false;
    if (attribute->type == CM_ATTR_TYPE_PROTO)
        return cm_dialect_type_is_whole(attribute->tp) &&
               cm_dialect_dim_params(op->o, attribute->tp).size == 0;
    return !is_list(attribute->type) ||
           attribute->floats.count + attribute->ints.count + attribute->strings.count > 0;
}

static bool holds_graphs(const struct cm_attribute_proto *attribute)
{
    return (attribute->type == CM_ATTR_GRAPH && attribute->g && !attribute->graphs.count) ||
           (attribute->type == CM_ATTR_GRAPHS && attribute->graphs.count && !attribute->g);
}

/* By name, and regions after all others from the last name to the first: then_branch stands before
 * else_branch. */
static int by_place(const void *a, const void *b)
{
    const struct placed *const x = a, *const y = b;

    if (x->is_region != y->is_region)
        return x->is_region ? 1 : -1;
    const int order = cm_str_compare(x->attribute->name, y->attribute->name);
    return x->is_region ? -order : order;
}

static void add_attribute(struct operation *op, const struct cm_attribute_proto *attribute)
{
    struct cm_arena *const arena = op->o->arena;
    const struct cm_str name = attribute->name;
    struct cm_tensor *values = NULL;
    bool notes = false;

    if (attribute->type == CM_ATTR_TENSOR && is_plain(op, attribute)) {
        const enum cm_dialect_tensor_form form =
            cm_dialect_tensor_form(op->o, attribute->t, &values);
        notes = values && cm_dialect_has_tensor_notes(attribute->t, form, 0);
    }
    struct entry *const entry = add_entry(op, "", ATTRIBUTE);
    entry->attribute = attribute;
    entry->values = values;
    entry->key = is_reserved(op, name)
                     ? cm_arena_printf(arena, "onnx.attribute.%.*s", (int)name.size, name.data)
                     : name;
    if (notes) {
        struct entry *const more = add_entry(op, "", NOTES);
        more->attribute = attribute;
        more->key = cm_arena_printf(arena, "onnx.tensor.%.*s", (int)name.size, name.data);
    }
}

/* False: a dictionary cannot hold them. */
static bool sort_attributes(struct operation *op)
{
    const size_t count = op->node->attribute.count;

    op->attributes = CM_NEW_ARRAY(op->o->arena, struct placed, count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_attribute_proto *const one = &op->node->attribute.items[i];
        op->attributes[i] = (struct placed){one, i, holds_graphs(one)};
        if (!one->name.size || one->name.size > INT_MAX / 2)
            return false;
    }
    if (count)
        qsort(op->attributes, count, sizeof *op->attributes, by_place);
    for (size_t i = 1; i < count; i++) {
        if (cm_str_equal(op->attributes[i - 1].attribute->name, op->attributes[i].attribute->name))
            return false;
    }
    op->n_attributes = count;
    return true;
}

static void add_attributes(struct operation *op)
{
    bool moved = false, regions = false;

    if (!sort_attributes(op)) {
        add_field(op, "onnx.attribute", CM_NODE_ATTRIBUTE);
        return;
    }
    for (size_t i = 0; i < op->n_attributes; i++) {
        moved = moved || op->attributes[i].index != i;
        regions = regions || op->attributes[i].is_region;
        if (!op->attributes[i].is_region)
            add_attribute(op, op->attributes[i].attribute);
    }
    if (moved)
        add_entry(op, "onnx.order", ORDER);
    if (regions)
        add_entry(op, "onnx.regions", REGIONS);
}

static int by_key(const void *a, const void *b)
{
    return cm_str_compare(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static void collect_entries(struct operation *op)
{
    const struct cm_node_proto *const node = op->node;
    const bool has_domain = cm_msg_has(&node->msg, CM_NODE_DOMAIN);

    add_text(op, "onnx_node_name", CM_NODE_NAME, node->name);
    if (op->is_custom) {
        add_text(op, "domain_name", CM_NODE_DOMAIN, node->domain);
        add_text(op, "function_name", CM_NODE_OP_TYPE, node->op_type);
    } else if (op->form.domain.size ? !cm_str_equal(op->form.domain, node->domain) : has_domain) {
        add_text(op, "onnx.domain", CM_NODE_DOMAIN, node->domain);
    }
    add_field(op, "onnx.output", CM_NODE_OUTPUT);
    add_field(op, "onnx.doc_string", CM_NODE_DOC_STRING);
    add_field(op, "onnx.overload", CM_NODE_OVERLOAD);
    add_field(op, "onnx.metadata_props", CM_NODE_METADATA_PROPS);
    add_field(op, "onnx.device_configurations", CM_NODE_DEVICE_CONFIGURATIONS);
    add_attributes(op);
    if (op->entries.count)
        qsort(op->entries.items, op->entries.count, sizeof *op->entries.items, by_key);
}

/* Cast says a type with a number, for which ONNX-MLIR prints the type. */
static bool is_type_number(const struct operation *op, const struct cm_attribute_proto *attribute)
{
    return attribute->type == CM_ATTR_INT && cm_dialect_element(attribute->i) &&
           cm_str_is(op->form.name, "Cast") && cm_str_is(attribute->name, "to");
}

static void put_attribute(struct operation *op, const struct entry *entry)
{
    const struct cm_attribute_proto *const attribute = entry->attribute;
    struct cm_dialect_dict dict = {op->o, "", false};

    if (entry->values) {
        cm_dialect_put_dense(op->o, entry->values);
    } else if (attribute->type == CM_ATTR_TENSOR || !is_plain(op, attribute)) {
        cm_dialect_put_fields(&dict, &cm_attribute_info, attribute, CM_BIT(CM_ATTRIBUTE_NAME));
        cm_dialect_end(&dict);
    } else if (is_type_number(op, attribute)) {
        cm_put_text(&op->o->pen, cm_dialect_element(attribute->i));
    } else {
        cm_dialect_put_field(op->o, &cm_attribute_info.fields[value_field(attribute->type)],
                             attribute);
    }
}

static void put_order(struct operation *op)
{
    cm_put_text(&op->o->pen, "[");
    for (size_t i = 0; i < op->n_attributes; i++) {
        cm_put_text(&op->o->pen, i ? ", " : "");
        cm_put_uint64(&op->o->pen, op->attributes[i].index);
    }
    cm_put_text(&op->o->pen, "]");
}

static void put_region_notes(struct operation *op)
{
    struct cm_dialect_out *const o = op->o;
    bool any = false;

    cm_put_text(&o->pen, "[");
    for (size_t i = 0; i < op->n_attributes; i++) {
        const struct cm_attribute_proto *const one = op->attributes[i].attribute;
        for (size_t g = 0; op->attributes[i].is_region && g < (one->g ? 1 : one->graphs.count);
             g++) {
            struct cm_dialect_dict dict = {o, "", false};
            cm_put_text(&o->pen, any ? ", " : "");
            any = true;
            cm_dialect_put_key(&dict, "attribute");
            cm_dialect_put_quoted(o, one->name);
            if (!one->g)
                cm_dialect_put_key_str(&dict, CM_STR("graphs"));
            if (cm_msg_has(&one->msg, CM_ATTRIBUTE_DOC_STRING)) {
                cm_dialect_put_key(&dict, "attribute_doc_string");
                cm_dialect_put_quoted(o, one->doc_string);
            }
            cm_dialect_put_region_notes(&dict, one->g ? one->g : &one->graphs.items[g]);
            cm_dialect_end(&dict);
        }
    }
    cm_put_text(&o->pen, "]");
}

static void put_entry(struct operation *op, const struct entry *entry)
{
    struct cm_dialect_dict dict = {op->o, "", false};

    switch (entry->kind) {
    case TEXT:
        cm_dialect_put_quoted(op->o, entry->text);
        break;
    case FIELD:
        cm_dialect_put_field(op->o, &cm_node_info.fields[entry->field], op->node);
        break;
    case ATTRIBUTE:
        put_attribute(op, entry);
        break;
    case NOTES:
        cm_dialect_put_tensor_notes(&dict, entry->attribute->t, CM_DIALECT_DENSE, 0);
        cm_dialect_end(&dict);
        break;
    case ORDER:
        put_order(op);
        break;
    case REGIONS:
        put_region_notes(op);
        break;
    }
}

static void put_dictionary(struct operation *op)
{
    struct cm_dialect_dict dict = {op->o, "", false};

    for (size_t i = 0; i < op->entries.count && op->o->pen.status == CM_OK; i++) {
        cm_dialect_put_key_str(&dict, op->entries.items[i].key);
        cm_put_text(&op->o->pen, " = ");
        put_entry(op, &op->entries.items[i]);
        cm_dialect_drop(op->o, op->entries.items[i].values);
    }
    if (dict.any)
        cm_dialect_end(&dict);
}

static const struct cm_graph_proto *typed_graph(const struct operation *op, size_t index, size_t g)
{
    if (!op->typed || index >= op->typed->attribute.count)
        return NULL;
    const struct cm_attribute_proto *const one = &op->typed->attribute.items[index];
    return one->g ? one->g : g < one->graphs.count ? &one->graphs.items[g] : NULL;
}

static void put_regions(struct operation *op, const struct cm_dialect_scope *scope)
{
    struct cm_dialect_out *const o = op->o;
    bool any = false;

    for (size_t i = 0; i < op->n_attributes; i++) {
        const struct cm_attribute_proto *const one = op->attributes[i].attribute;
        for (size_t g = 0; op->attributes[i].is_region && g < (one->g ? 1 : one->graphs.count);
             g++) {
            cm_put_text(&o->pen, any ? ", " : " (");
            any = true;
            cm_dialect_put_region(o, scope, one->g ? one->g : &one->graphs.items[g],
                                  typed_graph(op, op->attributes[i].index, g));
        }
    }
    if (any)
        cm_put_text(&o->pen, ")");
}

/* Says `-> T`, and makes the results known to what follows. */
static void put_results(struct operation *op, struct cm_dialect_scope *scope, size_t number,
                        const char *arrow)
{
    struct cm_dialect_out *const o = op->o;
    const struct cm_strs *const names = &op->node->output;

    cm_put_text(&o->pen, arrow);
    cm_put_text(&o->pen, names->count == 1 ? "" : "(");
    for (size_t i = 0; i < names->count && o->pen.status == CM_OK; i++) {
        const struct cm_str type =
            names->items[i].size ? cm_dialect_type_of(o, scope, names->items[i]) : CM_STR("none");
        cm_put_text(&o->pen, i ? ", " : "");
        cm_put_str(&o->pen, type);
        if (names->items[i].size)
            cm_dialect_define(o, scope, names->items[i],
                              names->count == 1 ? cm_arena_printf(o->arena, "%%%zu", number)
                                                : cm_arena_printf(o->arena, "%%%zu#%zu", number, i),
                              type);
    }
    cm_put_text(&o->pen, names->count == 1 ? "" : ")");
}

static void find_operator(struct operation *op)
{
    const struct cm_node_proto *const node = op->node;
    const bool plain = !node->domain.size || cm_str_is(node->domain, "ai.onnx");

    op->is_custom = true;
    for (size_t i = 0; i < op->o->opsets->count; i++) {
        const struct cm_opset_proto *const opset = &op->o->opsets->items[i];
        const bool same = plain ? !opset->domain.size || cm_str_is(opset->domain, "ai.onnx")
                                : cm_str_equal(opset->domain, node->domain);
        if (!same)
            continue;
        op->schema = cm_schema_find(node->domain, node->op_type, opset->version);
        op->is_custom =
            !cm_dialect_operator_of(node->domain, node->op_type, opset->version, &op->form);
        return;
    }
}

static void put_name(const struct operation *op)
{
    struct cm_printer *const pen = &op->o->pen;

    cm_put_text(pen, "\"onnx.");
    cm_put_str(pen, op->is_custom ? CM_STR("Custom") : op->form.name);
    if (!op->is_custom && op->form.version) {
        cm_put_text(pen, "V");
        cm_put_int64(pen, op->form.version);
    }
    cm_put_text(pen, "\"");
}

void cm_dialect_put_node(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                         const struct cm_node_proto *node, const struct cm_node_proto *typed)
{
    struct operation op = {.o = o, .node = node, .typed = typed};
    const size_t number = o->next_result, count = node->output.count;

    find_operator(&op);
    collect_entries(&op);
    cm_dialect_put_line(o);
    if (count) {
        o->next_result++;
        cm_put_text(&o->pen, cm_arena_printf(o->arena, "%%%zu", number).data);
        if (count > 1)
            cm_put_text(&o->pen, cm_arena_printf(o->arena, ":%zu", count).data);
        cm_put_text(&o->pen, " = ");
    }
    const bool short_form = !o->options->generic && !op.is_custom && count == 1 &&
                            !node->input.count && cm_str_is(op.form.name, "Constant") &&
                            op.form.version == 0;
    if (short_form) {
        cm_put_text(&o->pen, "onnx.Constant ");
        put_dictionary(&op);
        put_results(&op, scope, number, " : ");
        return;
    }
    put_name(&op);
    cm_dialect_put_operands(o, scope, &node->input);
    put_regions(&op, scope);
    if (op.entries.count)
        cm_put_text(&o->pen, " ");
    put_dictionary(&op);
    cm_put_text(&o->pen, " : ");
    cm_dialect_put_types(o, scope, &node->input);
    put_results(&op, scope, number, " -> ");
}
