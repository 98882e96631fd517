/* Attributes and nodes as text. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_lex.h"
#include "onnx/syntax_names.h"
#include "onnx/syntax_print.h"
#include "onnx/wire.h"

/* A value at its place in memory, of a type that is no list. */
static void print_item(struct cm_printer *p, enum cm_attribute_type type, const void *at)
{
    switch (type) {
    case CM_ATTR_FLOAT:
        cm_put_float(p, *(const float *)at);
        break;
    case CM_ATTR_INT:
        cm_put_int64(p, *(const int64_t *)at);
        break;
    case CM_ATTR_STRING:
        cm_put_quoted(p, *(const struct cm_str *)at);
        break;
    case CM_ATTR_TENSOR:
        cm_print_tensor(p, at, false);
        break;
    case CM_ATTR_GRAPH:
        cm_print_graph(p, at);
        break;
    case CM_ATTR_SPARSE_TENSOR:
        cm_print_sparse(p, at);
        break;
    default:
        cm_print_type(p, at);
    }
}

static void print_list(struct cm_printer *p, const struct cm_field_info *field,
                       const struct cm_attribute_proto *a, enum cm_attribute_type item)
{
    const struct cm_wire_list list = cm_field_list(a, field);
    const size_t size = cm_field_item_size(field);

    /* ONNX's printer drops the bracket of an empty list of strings. */
    if (!p->upstream || list.count || item != CM_ATTR_STRING)
        cm_put(p, "[", 1);
    for (size_t i = 0; cm_put_next(p, i, list.count); i++)
        print_item(p, item, (const char *)list.items + i * size);
    cm_put(p, "]", 1);
}

static void print_single(struct cm_printer *p, const struct cm_field_info *field,
                         const struct cm_attribute_proto *a, enum cm_attribute_type type)
{
    static const struct cm_tensor_proto no_tensor;
    static const struct cm_graph_proto no_graph;
    const void *at =
        field->kind == CM_FIELD_MESSAGE ? cm_field_message(a, field) : cm_field_of(a, field);

    if (!at && type == CM_ATTR_TENSOR)
        at = &no_tensor;
    if (!at && type == CM_ATTR_GRAPH)
        at = &no_graph;
    if (at)
        print_item(p, type, at);
}

static void print_value(struct cm_printer *p, const struct cm_attribute_proto *a,
                        enum cm_attribute_type type)
{
    const int place = cm_attribute_value_field(type);
    const enum cm_attribute_type item = cm_attribute_type_of_items(type);

    /* ONNX's printer drops sparse tensors. */
    if (place < 0 ||
        (p->upstream && (type == CM_ATTR_SPARSE_TENSOR || type == CM_ATTR_SPARSE_TENSORS)))
        return;
    if (item != CM_ATTR_UNDEFINED)
        print_list(p, &cm_attribute_info.fields[place], a, item);
    else
        print_single(p, &cm_attribute_info.fields[place], a, type);
}

static enum cm_attribute_type type_of(const struct cm_attribute_proto *a)
{
    return a->type >= 0 && a->type < CM_ATTR_TYPE_COUNT ? (enum cm_attribute_type)a->type
                                                        : CM_ATTR_UNDEFINED;
}

static void print_upstream_attribute(struct cm_printer *p, const struct cm_attribute_proto *a)
{
    cm_put_str(p, a->name);
    cm_put_text(p, ": ");
    cm_put_text(p, cm_attribute_type_name(type_of(a)));
    cm_put_text(p, " = ");
    if (cm_msg_has(&a->msg, CM_ATTRIBUTE_REF_ATTR_NAME)) {
        cm_put_text(p, "@");
        cm_put_str(p, a->ref_attr_name);
    } else {
        print_value(p, a, type_of(a));
    }
}

/* The type of the value that is there, undefined for none. An attribute with several cannot be
 * said. */
static enum cm_attribute_type held(struct cm_printer *p, const struct cm_attribute_proto *a)
{
    enum cm_attribute_type found = CM_ATTR_UNDEFINED;
    int count = cm_msg_has(&a->msg, CM_ATTRIBUTE_REF_ATTR_NAME);

    for (int i = 1; i < CM_ATTR_TYPE_COUNT; i++) {
        if (cm_msg_has(&a->msg, cm_attribute_value_field((enum cm_attribute_type)i))) {
            found = (enum cm_attribute_type)i;
            count++;
        }
    }
    if (count > 1)
        cm_print_fail(p, CM_BAD_MODEL, "attribute '%.*s' has no text form: it holds %d values",
                      CM_STR_FMT(a->name), count);
    else if (a->type < 0 || a->type >= CM_ATTR_TYPE_COUNT)
        cm_print_fail(p, CM_BAD_MODEL, "attribute '%.*s' has no text form: its type is %d",
                      CM_STR_FMT(a->name), (int)a->type);
    else if (a->type != CM_ATTR_UNDEFINED && found != CM_ATTR_UNDEFINED && found != type_of(a))
        cm_print_fail(p, CM_BAD_MODEL, "attribute '%.*s' of type %s holds a value of type %s",
                      CM_STR_FMT(a->name), cm_attribute_type_name(type_of(a)),
                      cm_attribute_type_name(found));
    return found;
}

void cm_print_attribute(struct cm_printer *p, const struct cm_attribute_proto *a)
{
    if (p->upstream) {
        print_upstream_attribute(p, a);
        return;
    }
    const enum cm_attribute_type value = held(p, a);
    const bool is_list = cm_attribute_type_of_items(type_of(a)) != CM_ATTR_UNDEFINED;
    cm_put_word(p, a->name);
    if (a->msg.has & CM_NOTES_ATTRIBUTE)
        cm_put(p, " ", 1);
    cm_print_notes(p, &cm_attribute_info, a, CM_NOTES_ATTRIBUTE);
    cm_put_text(p, ": ");
    cm_put_text(p, cm_attribute_type_name(type_of(a)));
    if (cm_msg_has(&a->msg, CM_ATTRIBUTE_REF_ATTR_NAME)) {
        cm_put_text(p, " = @");
        cm_put_word(p, a->ref_attr_name);
    } else if (value != CM_ATTR_UNDEFINED || is_list) {
        cm_put_text(p, " = ");
        p->marks_floats =
            type_of(a) == CM_ATTR_UNDEFINED && (value == CM_ATTR_FLOAT || value == CM_ATTR_FLOATS);
        print_value(p, a, is_list ? type_of(a) : value);
        p->marks_floats = false;
    }
}

static bool has_graph(const struct cm_node_proto *node)
{
    for (size_t i = 0; i < node->attribute.count; i++)
        if (node->attribute.items[i].g || node->attribute.items[i].graphs.count)
            return true;
    return false;
}

static void print_attributes(struct cm_printer *p, const struct cm_node_proto *node)
{
    if (node->attribute.count == 0)
        return;
    cm_put_text(p, " <");
    for (size_t i = 0; cm_put_next(p, i, node->attribute.count); i++)
        cm_print_attribute(p, &node->attribute.items[i]);
    cm_put(p, ">", 1);
}

static void print_operands(struct cm_printer *p, const struct cm_strs *names)
{
    for (size_t i = 0; cm_put_next(p, i, names->count); i++)
        cm_put_word(p, names->items[i]);
}

/* Domains are words with dots between them as a rule, and stay so; any other goes into quotes as a
 * whole. */
static void put_domain(struct cm_printer *p, struct cm_str domain)
{
    size_t start = 0;
    bool words = true;

    for (size_t i = 0; i <= domain.size; i++) {
        if (i == domain.size || domain.data[i] == '.') {
            words &= cm_lex_is_word((struct cm_str){domain.data + start, i - start});
            start = i + 1;
        }
    }
    if (words || p->upstream)
        cm_put_str(p, domain);
    else
        cm_put_quoted(p, domain);
}

static void print_operator(struct cm_printer *p, const struct cm_node_proto *node)
{
    if (node->domain.size) {
        put_domain(p, node->domain);
        cm_put(p, ".", 1);
    }
    if (p->upstream)
        cm_put_str(p, node->op_type);
    else
        cm_put_word(p, node->op_type);
    if (node->overload.size == 0)
        return;
    cm_put(p, ":", 1);
    if (p->upstream)
        cm_put_str(p, node->overload);
    else
        cm_put_word(p, node->overload);
}

static void print_label(struct cm_printer *p, const struct cm_node_proto *node)
{
    const bool named = cm_msg_has(&node->msg, CM_NODE_NAME);
    const bool notes = !p->upstream && (node->msg.has & CM_NOTES_NODE);

    if (!named && !notes)
        return;
    cm_put(p, "[", 1);
    if (named)
        cm_put_word(p, node->name);
    if (named && notes)
        cm_put(p, " ", 1);
    if (notes)
        cm_print_notes(p, &cm_node_info, node, CM_NOTES_NODE);
    cm_put_text(p, "] ");
}

void cm_print_node(struct cm_printer *p, const struct cm_node_proto *node)
{
    const bool attributes_last = has_graph(node);

    cm_put_spaces(p, p->indent);
    print_label(p, node);
    print_operands(p, &node->output);
    cm_put_text(p, node->output.count || p->upstream ? " = " : "= ");
    print_operator(p, node);
    if (!attributes_last)
        print_attributes(p, node);
    cm_put_text(p, " (");
    print_operands(p, &node->input);
    cm_put_text(p, ")");
    if (attributes_last)
        print_attributes(p, node);
    cm_put_text(p, "\n");
}

void cm_print_nodes(struct cm_printer *p, const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count && p->status == CM_OK; i++)
        cm_print_node(p, &nodes->items[i]);
}
