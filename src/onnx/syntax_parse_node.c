/* Attributes and nodes of the text form. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "onnx/syntax_parse.h"
#include "onnx/wire.h"

/* One value of an attribute, alone or in a list. */
struct item {
    enum cm_attribute_type type;
    const char *at; /* where it began */
    union {
        float f;
        int64_t i;
        struct cm_str s;
        void *message; /* a struct in the arena */
    } value;
};

static enum cm_status parse_number(struct cm_lexer *lex, enum cm_attribute_type wanted,
                                   struct item *out)
{
    struct cm_number_text number;

    CM_TRY(cm_lex_number(lex, &number));
    if (number.whole && wanted != CM_ATTR_FLOAT) {
        out->type = CM_ATTR_INT;
        return cm_number_to_int64(lex, &number, INT64_MIN, INT64_MAX, "int64", &out->value.i);
    }
    out->type = CM_ATTR_FLOAT;
    return cm_number_to_float(lex, &number, &out->value.f);
}

static enum cm_status parse_typed(struct cm_lexer *lex, struct item *out)
{
    struct cm_type_proto *const type = CM_NEW(lex->arena, struct cm_type_proto);

    out->type = CM_ATTR_TYPE_PROTO;
    out->value.message = type;
    CM_TRY(cm_parse_type(lex, type));
    if (!cm_at_tensor_rest(lex))
        return CM_OK;
    out->type = CM_ATTR_TENSOR;
    out->value.message = CM_NEW(lex->arena, struct cm_tensor_proto);
    return cm_parse_tensor_rest(lex, type, out->value.message);
}

static enum cm_status parse_inner_graph(struct cm_lexer *lex, struct item *out)
{
    out->type = CM_ATTR_GRAPH;
    out->value.message = CM_NEW(lex->arena, struct cm_graph_proto);
    return cm_parse_graph(lex, out->value.message);
}

/* wanted settles what a whole number is; CM_ATTR_UNDEFINED leaves it to the number. */
static enum cm_status parse_item(struct cm_lexer *lex, enum cm_attribute_type wanted,
                                 struct item *out)
{
    const int next = cm_lex_peek(lex);

    out->at = lex->at;
    if (next == '"') {
        CM_TRY(cm_lex_string(lex, &out->value.s));
        out->type = CM_ATTR_STRING;
        if (cm_lex_peek(lex) != '(')
            return CM_OK;
        lex->at = out->at; /* a graph with a quoted name */
        return parse_inner_graph(lex, out);
    }
    if (cm_lex_at_number(lex))
        return parse_number(lex, wanted, out);
    if (cm_at_sparse(lex)) {
        out->type = CM_ATTR_SPARSE_TENSOR;
        out->value.message = CM_NEW(lex->arena, struct cm_sparse_proto);
        return cm_parse_sparse(lex, out->value.message);
    }
    const struct cm_str word = cm_lex_peek_word(lex);
    const bool vague = cm_str_is(word, "untyped") || cm_str_is(word, "undefined");
    if (cm_at_type(lex) || (vague && cm_lex_peek_after_word(lex) != '('))
        return parse_typed(lex, out);
    if (next == '<' || word.size)
        return parse_inner_graph(lex, out);
    return cm_lex_expected(lex, "a value");
}

static enum cm_status mismatch(const struct cm_lexer *lex, const struct item *item,
                               enum cm_attribute_type wanted)
{
    return cm_lex_fail_at(lex, item->at, CM_BAD_MODEL, "expected a value of type %s but found %s",
                          cm_attribute_type_name(wanted), cm_attribute_type_name(item->type));
}

static void set_single(struct cm_attribute_proto *out, const struct item *item)
{
    const int place = cm_attribute_value_field(item->type);
    const struct cm_field_info *const field = &cm_attribute_info.fields[place];
    const size_t size = cm_wire_kind(field->kind)->size;

    memcpy(cm_field_at(out, field), &item->value, size ? size : sizeof item->value.message);
    cm_msg_set(&out->msg, place);
}

/* A list of values while it is read; size is that of one in memory. */
struct list {
    CM_ARRAY(char);
    size_t size;
};

static void add_item(struct cm_lexer *lex, struct list *list, const struct item *item)
{
    const int place = cm_attribute_value_field(cm_attribute_type_of_list(item->type));
    const struct cm_field_info *const field = &cm_attribute_info.fields[place];

    list->size = cm_field_item_size(field);
    if (list->count == list->capacity)
        list->items = cm_parse_grow(lex, list->items, &list->capacity, list->size);
    memcpy(list->items + list->count++ * list->size,
           field->kind == CM_FIELD_MESSAGES ? item->value.message : (const void *)&item->value,
           list->size);
}

static void set_list(struct cm_attribute_proto *out, enum cm_attribute_type type,
                     const struct list *list)
{
    const int place = cm_attribute_value_field(type);
    const struct cm_wire_list exact = {list->items, list->count};

    memcpy(cm_field_at(out, &cm_attribute_info.fields[place]), &exact, sizeof exact);
    cm_msg_set(&out->msg, place);
}

/* Returns the list's type in *type; declared may be that, the type of its items, or undefined. */
static enum cm_status parse_list(struct cm_lexer *lex, enum cm_attribute_type declared,
                                 struct cm_attribute_proto *out, enum cm_attribute_type *type)
{
    const char *const start = lex->at;
    const enum cm_attribute_type of = cm_attribute_type_of_items(declared);
    enum cm_attribute_type wanted = of != CM_ATTR_UNDEFINED ? of : declared;
    struct list list = {0};

    CM_TRY(cm_lex_expect(lex, '['));
    if (cm_lex_take(lex, ']')) {
        if (of == CM_ATTR_UNDEFINED)
            return cm_lex_fail_at(
                lex, start, CM_BAD_MODEL,
                "an empty list needs a list type before it, as in 'a: ints = []'");
        *type = declared;
        return CM_OK;
    }
    do {
        struct item item = {0};
        CM_TRY(parse_item(lex, wanted, &item));
        if (wanted != CM_ATTR_UNDEFINED && item.type != wanted)
            return mismatch(lex, &item, wanted);
        wanted = item.type;
        add_item(lex, &list, &item);
    } while (cm_lex_take(lex, ','));
    *type = cm_attribute_type_of_list(wanted);
    set_list(out, *type, &list);
    return cm_lex_expect(lex, ']');
}

static enum cm_status parse_value(struct cm_lexer *lex, enum cm_attribute_type declared,
                                  struct cm_attribute_proto *out, enum cm_attribute_type *type)
{
    struct item item = {0};

    if (cm_lex_take(lex, '@')) {
        CM_TRY(cm_lex_name(lex, "the name of an attribute", &out->ref_attr_name));
        cm_msg_set(&out->msg, CM_ATTRIBUTE_REF_ATTR_NAME);
        *type = declared;
        return CM_OK;
    }
    if (cm_lex_peek(lex) == '[')
        return parse_list(lex, declared, out, type);
    CM_TRY(parse_item(lex, declared, &item));
    if (declared != CM_ATTR_UNDEFINED && item.type != declared)
        return mismatch(lex, &item, declared);
    set_single(out, &item);
    *type = item.type;
    return CM_OK;
}

static enum cm_status parse_declared(struct cm_lexer *lex, enum cm_attribute_type *out)
{
    const struct cm_str word = cm_lex_peek_word(lex);

    for (int i = 0; i < CM_ATTR_TYPE_COUNT; i++) {
        if (cm_str_is(word, cm_attribute_type_name((enum cm_attribute_type)i))) {
            *out = (enum cm_attribute_type)i;
            lex->at += word.size;
            return CM_OK;
        }
    }
    return cm_lex_expected(lex, "the type of an attribute");
}

enum cm_status cm_parse_attribute(struct cm_lexer *lex, struct cm_attribute_proto *out, bool *bare)
{
    enum cm_attribute_type type = CM_ATTR_UNDEFINED;

    CM_TRY(cm_lex_name(lex, "the name of an attribute", &out->name));
    cm_msg_set(&out->msg, CM_ATTRIBUTE_NAME);
    CM_TRY(cm_parse_notes(lex, &cm_attribute_info, out, CM_NOTES_ATTRIBUTE));
    const bool declared = cm_lex_take(lex, ':');
    if (declared)
        CM_TRY(parse_declared(lex, &type));
    const bool typeless = declared && type == CM_ATTR_UNDEFINED;
    const bool valued = cm_lex_take(lex, '=');
    if (valued)
        CM_TRY(parse_value(lex, type, out, &type));
    *bare = !declared && !valued && !cm_msg_has(&out->msg, CM_ATTRIBUTE_DOC_STRING);
    if (typeless || type == CM_ATTR_UNDEFINED)
        return CM_OK;
    out->type = (int32_t)type;
    cm_msg_set(&out->msg, CM_ATTRIBUTE_TYPE);
    return CM_OK;
}

static enum cm_status parse_attributes(struct cm_lexer *lex, struct cm_node_proto *out)
{
    struct {
        CM_ARRAY(struct cm_attribute_proto);
    } list = {0};

    if (!cm_lex_take(lex, '<'))
        return CM_OK;
    do {
        bool bare;
        CM_TRY(cm_parse_attribute(lex, CM_ADD(lex, &list), &bare));
        if (bare)
            return cm_lex_expected(lex, "':' or '='");
    } while (cm_lex_take(lex, ','));
    CM_SET_LIST(out, attribute, CM_NODE_ATTRIBUTE, list);
    return cm_lex_expect(lex, '>');
}

/* Names with commas between them, each of which may be left out: `x, , y`. A comma at the end adds
 * nothing. */
static enum cm_status parse_operands(struct cm_lexer *lex, struct cm_strs *out)
{
    struct {
        CM_ARRAY(struct cm_str);
    } names = {0};

    for (;;) {
        if (cm_lex_at_name(lex)) {
            CM_TRY(cm_lex_name(lex, "a name", CM_ADD(lex, &names)));
            if (!cm_lex_take(lex, ','))
                break;
        } else if (cm_lex_take(lex, ',')) {
            *CM_ADD(lex, &names) = CM_STR("");
        } else {
            break;
        }
    }
    *out = (struct cm_strs){names.items, names.count};
    return CM_OK;
}

/* a.b.Op: all words but the last are the domain. */
static enum cm_status parse_operator(struct cm_lexer *lex, struct cm_node_proto *out)
{
    struct {
        CM_ARRAY(struct cm_str);
    } words = {0};
    size_t size = 0, n = 0;

    cm_lex_take(lex, '.');
    do {
        struct cm_str *const word = CM_ADD(lex, &words);
        CM_TRY(cm_lex_name(lex, "an operator", word));
        size += word->size + 1;
    } while (cm_lex_take(lex, '.'));
    const size_t last = words.count - 1;
    out->op_type = words.items[last];
    cm_msg_set(&out->msg, CM_NODE_OP_TYPE);
    cm_msg_set(&out->msg, CM_NODE_DOMAIN);
    if (last == 1) {
        out->domain = words.items[0];
    } else if (last > 1) {
        char *const domain = cm_arena_alloc(lex->arena, size);
        for (size_t i = 0; i < last; i++) {
            if (i)
                domain[n++] = '.';
            if (words.items[i].size)
                memcpy(domain + n, words.items[i].data, words.items[i].size);
            n += words.items[i].size;
        }
        out->domain = (struct cm_str){domain, n};
    }
    if (!cm_lex_take(lex, ':'))
        return CM_OK;
    CM_TRY(cm_lex_name(lex, "the name of an overload", &out->overload));
    if (out->overload.size)
        cm_msg_set(&out->msg, CM_NODE_OVERLOAD);
    return CM_OK;
}

/* [name <notes>]: a label without notes is a name even when nothing stands in it. */
static enum cm_status parse_label(struct cm_lexer *lex, struct cm_node_proto *out)
{
    if (!cm_lex_take(lex, '['))
        return CM_OK;
    if (cm_lex_peek(lex) != '<')
        cm_msg_set(&out->msg, CM_NODE_NAME);
    if (cm_lex_at_name(lex))
        CM_TRY(cm_lex_name(lex, "a name", &out->name));
    CM_TRY(cm_parse_notes(lex, &cm_node_info, out, CM_NOTES_NODE));
    return cm_lex_expect(lex, ']');
}

enum cm_status cm_parse_node(struct cm_lexer *lex, struct cm_node_proto *out)
{
    CM_TRY(parse_label(lex, out));
    CM_TRY(parse_operands(lex, &out->output));
    if (out->output.count)
        cm_msg_set(&out->msg, CM_NODE_OUTPUT);
    CM_TRY(cm_lex_expect(lex, '='));
    CM_TRY(parse_operator(lex, out));
    CM_TRY(parse_attributes(lex, out));
    CM_TRY(cm_lex_expect(lex, '('));
    CM_TRY(parse_operands(lex, &out->input));
    if (out->input.count)
        cm_msg_set(&out->msg, CM_NODE_INPUT);
    CM_TRY(cm_lex_expect(lex, ')'));
    return out->attribute.count ? CM_OK : parse_attributes(lex, out);
}

enum cm_status cm_parse_nodes(struct cm_lexer *lex, struct cm_nodes *out)
{
    struct {
        CM_ARRAY(struct cm_node_proto);
    } nodes = {0};

    CM_TRY(cm_lex_expect(lex, '{'));
    while (!cm_lex_take(lex, '}'))
        CM_TRY(cm_parse_node(lex, CM_ADD(lex, &nodes)));
    *out = (struct cm_nodes){nodes.items, nodes.count};
    return CM_OK;
}
