/* Attributes and nodes as text. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_lex.h"
#include "onnx/syntax_names.h"
#include "onnx/syntax_print.h"

/* The field that holds the value of each type. */
static const int value_fields[CM_ATTR_TYPE_COUNT] = {
    [CM_ATTR_UNDEFINED] = -1,
    [CM_ATTR_FLOAT] = CM_ATTRIBUTE_F,
    [CM_ATTR_INT] = CM_ATTRIBUTE_I,
    [CM_ATTR_STRING] = CM_ATTRIBUTE_S,
    [CM_ATTR_TENSOR] = CM_ATTRIBUTE_T,
    [CM_ATTR_GRAPH] = CM_ATTRIBUTE_G,
    [CM_ATTR_FLOATS] = CM_ATTRIBUTE_FLOATS,
    [CM_ATTR_INTS] = CM_ATTRIBUTE_INTS,
    [CM_ATTR_STRINGS] = CM_ATTRIBUTE_STRINGS,
    [CM_ATTR_TENSORS] = CM_ATTRIBUTE_TENSORS,
    [CM_ATTR_GRAPHS] = CM_ATTRIBUTE_GRAPHS,
    [CM_ATTR_SPARSE_TENSOR] = CM_ATTRIBUTE_SPARSE_TENSOR,
    [CM_ATTR_SPARSE_TENSORS] = CM_ATTRIBUTE_SPARSE_TENSORS,
    [CM_ATTR_TYPE_PROTO] = CM_ATTRIBUTE_TP,
    [CM_ATTR_TYPE_PROTOS] = CM_ATTRIBUTE_TYPE_PROTOS,
};

static size_t list_count(const struct cm_attribute_proto *a, enum cm_attribute_type type)
{
    switch (type) {
    case CM_ATTR_FLOATS:
        return a->floats.count;
    case CM_ATTR_INTS:
        return a->ints.count;
    case CM_ATTR_STRINGS:
        return a->strings.count;
    case CM_ATTR_TENSORS:
        return a->tensors.count;
    case CM_ATTR_GRAPHS:
        return a->graphs.count;
    case CM_ATTR_SPARSE_TENSORS:
        return a->sparse_tensors.count;
    default:
        return a->type_protos.count;
    }
}

static void print_list_item(struct cm_printer *p, const struct cm_attribute_proto *a,
                            enum cm_attribute_type type, size_t i)
{
    switch (type) {
    case CM_ATTR_FLOATS:
        cm_put_float(p, a->floats.items[i]);
        break;
    case CM_ATTR_INTS:
        cm_put_int64(p, a->ints.items[i]);
        break;
    case CM_ATTR_STRINGS:
        cm_put_quoted(p, a->strings.items[i]);
        break;
    case CM_ATTR_TENSORS:
        cm_print_tensor(p, &a->tensors.items[i], false);
        break;
    case CM_ATTR_GRAPHS:
        cm_print_graph(p, &a->graphs.items[i]);
        break;
    case CM_ATTR_SPARSE_TENSORS:
        cm_print_sparse(p, &a->sparse_tensors.items[i]);
        break;
    default:
        cm_print_type(p, &a->type_protos.items[i]);
    }
}

static void print_list(struct cm_printer *p, const struct cm_attribute_proto *a,
                       enum cm_attribute_type type)
{
    const size_t count = list_count(a, type);

    /* ONNX's printer drops sparse tensors, and the bracket of an empty list of strings. */
    if (p->upstream && type == CM_ATTR_SPARSE_TENSORS)
        return;
    if (!p->upstream || count || type != CM_ATTR_STRINGS)
        cm_put(p, "[", 1);
    for (size_t i = 0; i < count && p->status == CM_OK; i++) {
        if (i)
            cm_put(p, ", ", 2);
        print_list_item(p, a, type, i);
    }
    cm_put(p, "]", 1);
}

static void print_single(struct cm_printer *p, const struct cm_attribute_proto *a,
                         enum cm_attribute_type type)
{
    static const struct cm_tensor_proto no_tensor;
    static const struct cm_graph_proto no_graph;

    switch (type) {
    case CM_ATTR_FLOAT:
        cm_put_float(p, a->f);
        break;
    case CM_ATTR_INT:
        cm_put_int64(p, a->i);
        break;
    case CM_ATTR_STRING:
        cm_put_quoted(p, a->s);
        break;
    case CM_ATTR_TENSOR:
        cm_print_tensor(p, a->t ? a->t : &no_tensor, false);
        break;
    case CM_ATTR_GRAPH:
        cm_print_graph(p, a->g ? a->g : &no_graph);
        break;
    case CM_ATTR_TYPE_PROTO:
        if (a->tp)
            cm_print_type(p, a->tp);
        break;
    case CM_ATTR_SPARSE_TENSOR:
        if (a->sparse_tensor && !p->upstream)
            cm_print_sparse(p, a->sparse_tensor);
        break;
    default:
        break;
    }
}

static void print_value(struct cm_printer *p, const struct cm_attribute_proto *a,
                        enum cm_attribute_type type)
{
    if (cm_attribute_type_of_items(type) != CM_ATTR_UNDEFINED)
        print_list(p, a, type);
    else
        print_single(p, a, type);
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
        if (cm_msg_has(&a->msg, value_fields[i])) {
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
    for (size_t i = 0; i < node->attribute.count && p->status == CM_OK; i++) {
        if (i)
            cm_put(p, ", ", 2);
        cm_print_attribute(p, &node->attribute.items[i]);
    }
    cm_put(p, ">", 1);
}

static void print_operands(struct cm_printer *p, const struct cm_strs *names)
{
    for (size_t i = 0; i < names->count && p->status == CM_OK; i++) {
        if (i)
            cm_put(p, ", ", 2);
        cm_put_word(p, names->items[i]);
    }
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
