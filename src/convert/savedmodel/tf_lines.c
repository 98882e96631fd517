/* Lines of rows: text to nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/savedmodel/tf_statement.h"

#include "template/template.h"
#include "tensor/half.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum cm_status wrong(struct cm_tf_statement *l, const char *what)
{
    return cm_fail(l->err, CM_UNSUPPORTED, "%s in '%.*s'", what, CM_STR_FMT(l->text));
}

/* ---- words ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
}

static char peek(struct cm_tf_statement *l)
{
    while (l->at < l->text.size && l->text.data[l->at] == ' ')
        l->at++;
    return l->at < l->text.size ? l->text.data[l->at] : '\0';
}

static bool accept(struct cm_tf_statement *l, char c)
{
    if (peek(l) != c)
        return false;
    l->at++;
    return true;
}

static struct cm_str read_word(struct cm_tf_statement *l)
{
    size_t end;

    (void)peek(l);
    for (end = l->at; end < l->text.size && is_word(l->text.data[end]);)
        end++;
    const struct cm_str word = {l->text.data + l->at, end - l->at};
    l->at = end;
    return word;
}

/* "%name", with its sign. */
static struct cm_str read_name(struct cm_tf_statement *l)
{
    const size_t begin = l->at;

    l->at++;
    (void)read_word(l);
    return (struct cm_str){l->text.data + begin, l->at - begin};
}

/* A text in quotes; \xHH is a byte. */
static enum cm_status read_text(struct cm_tf_statement *l, struct cm_str *out)
{
    char *text = CM_NEW_ARRAY(l->arena, char, l->text.size - l->at + 1);
    size_t size = 0;

    for (l->at++; l->at < l->text.size && l->text.data[l->at] != '"'; l->at++) {
        const char *c = &l->text.data[l->at];

        if (*c == '\\' && l->text.size - l->at > 3) {
            text[size++] = (char)(cm_hex_digit(c[2]) << 4 | cm_hex_digit(c[3]));
            l->at += 3;
        } else {
            text[size++] = *c;
        }
    }
    *out = (struct cm_str){text, size};
    return accept(l, '"') ? CM_OK : wrong(l, "a text has no end");
}

/* ---- literals ---- */

static bool read_number(struct cm_str word, struct cm_tf_number *out)
{
    *out = (struct cm_tf_number){0};
    if (cm_str_to_int64(word, &out->whole)) {
        out->real = (double)out->whole;
        return true;
    }
    if (cm_str_is(word, "true") || cm_str_is(word, "false")) {
        out->real = (double)(out->whole = cm_str_is(word, "true"));
        return true;
    }
    out->is_real = true;
    if (cm_str_is(word, "inf") || cm_str_is(word, "-inf"))
        out->real = word.data[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (cm_str_is(word, "nan"))
        out->real = (double)NAN;
    else
        return cm_str_to_double(word, &out->real);
    return true;
}

static enum cm_status read_value(struct cm_tf_statement *l, struct cm_tf_numbers *literal,
                                 int depth)
{
    struct cm_tf_number number = {0};

    if (peek(l) == '[') {
        int64_t count = 0;
        if (depth == CM_TF_LITERAL_RANK)
            return wrong(l, "lists lie too deep");
        l->at++;
        literal->rank = literal->rank > depth + 1 ? literal->rank : depth + 1;
        while (!accept(l, ']')) {
            CM_TRY(read_value(l, literal, depth + 1));
            count++;
            if (!accept(l, ',') && peek(l) != ']')
                return wrong(l, "a list has no end");
        }
        literal->dims[depth] = count;
        return CM_OK;
    }
    if (peek(l) == '"') {
        literal->is_text = true;
        CM_TRY(read_text(l, &number.text));
    } else {
        const struct cm_str word = read_word(l);
        if (!read_number(word, &number))
            return wrong(l, "a number is missing");
    }
    *CM_PUSH(l->arena, literal) = number;
    return CM_OK;
}

static enum cm_status check_literal(struct cm_tf_statement *l, const struct cm_tf_numbers *literal)
{
    int64_t count = 1;

    for (int i = 0; i < literal->rank; i++)
        count *= literal->dims[i];
    return count == (int64_t)literal->count ? CM_OK : wrong(l, "rows of a list differ in length");
}

/* "i64 [1, 2]", "f32 0.5", "[1, 2]" */
static enum cm_status read_literal(struct cm_tf_statement *l, struct cm_tf_numbers *literal)
{
    const size_t begin = l->at;

    if (peek(l) != '[' && peek(l) != '"') {
        literal->type = cm_tf_type_named(read_word(l));
        if (!literal->type)
            l->at = begin;
    }
    CM_TRY(read_value(l, literal, 0));
    return check_literal(l, literal);
}

static void put_element(struct cm_bytes *to, enum cm_tf_type type, const struct cm_tf_number *n)
{
    const float f = (float)n->real;

    switch (type) {
    case CM_TF_F32:
        cm_bytes_put(to, &f, sizeof f);
        break;
    case CM_TF_F64:
        cm_bytes_put(to, &n->real, sizeof n->real);
        break;
    case CM_TF_F16:
        cm_bytes_number(to, cm_half_from_float(f), 2);
        break;
    case CM_TF_BF16:
        cm_bytes_number(to, cm_bfloat_from_float(f), 2);
        break;
    case CM_TF_C64:
        cm_bytes_put(to, &f, sizeof f);
        cm_bytes_number(to, 0, 4);
        break;
    case CM_TF_C128:
        cm_bytes_put(to, &n->real, sizeof n->real);
        cm_bytes_number(to, 0, 8);
        break;
    case CM_TF_STRING:
        cm_bytes_field_text(to, 8, n->text);
        break;
    default: {
        const int64_t whole = n->is_real ? cm_template_whole(n->real) : n->whole;
        cm_bytes_number(to, (uint64_t)whole,
                        type == CM_TF_BOOL || type == CM_TF_I8 || type == CM_TF_U8 ? 1
                        : type == CM_TF_I16 || type == CM_TF_U16                   ? 2
                        : type == CM_TF_I32 || type == CM_TF_U32                   ? 4
                                                                                   : 8);
        break;
    }
    }
}

static struct cm_tf_tensor literal_tensor(struct cm_tf_statement *l,
                                          const struct cm_tf_numbers *literal, enum cm_tf_type type)
{
    struct cm_bytes bytes = {.arena = l->arena};

    for (size_t i = 0; i < literal->count; i++)
        put_element(&bytes, type, &literal->items[i]);
    struct cm_tf_tensor made =
        cm_tf_literal(l->scope->graph, type, literal->dims, literal->rank, cm_bytes_str(&bytes));
    return made;
}

/* ---- operands and attributes ---- */

/* Is it a list with a tensor in it? */
static bool lists_tensors(struct cm_tf_statement *l)
{
    bool quoted = false;
    int depth = 0;

    if (peek(l) != '[')
        return false;
    for (size_t i = l->at; i < l->text.size; i++) {
        const char c = l->text.data[i];
        quoted ^= c == '"';
        depth += quoted ? 0 : (c == '[') - (c == ']');
        if (!quoted && c == '%')
            return true;
        if (!depth)
            return false;
    }
    return false;
}

static enum cm_status read_operand(struct cm_tf_statement *l, struct cm_tf_operand *operand,
                                   int depth)
{
    *operand = (struct cm_tf_operand){0};
    if (peek(l) == '%') {
        const struct cm_str name = read_name(l);
        operand->tensor = cm_tf_find(l->scope, name);
        return operand->tensor.node
                   ? CM_OK
                   : cm_fail(l->err, CM_UNSUPPORTED, "'%.*s' is not there in '%.*s'",
                             CM_STR_FMT(name), CM_STR_FMT(l->text));
    }
    if (!lists_tensors(l)) {
        operand->is_literal = true;
        return read_literal(l, &operand->literal);
    }
    if (depth)
        return wrong(l, "a list of tensors lies in another");
    operand->is_list = true;
    l->at++;
    while (!accept(l, ']')) {
        CM_TRY(read_operand(l, CM_PUSH(l->arena, operand), depth + 1));
        if (!accept(l, ',') && peek(l) != ']')
            return wrong(l, "a list has no end");
    }
    return CM_OK;
}

/* The text of a value as it stands, to a ',' or '}' outside of brackets and quotes. */
static struct cm_str read_raw(struct cm_tf_statement *l)
{
    const size_t begin = (peek(l), l->at);
    bool quoted = false;
    int depth = 0;

    for (; l->at < l->text.size; l->at++) {
        const char c = l->text.data[l->at];
        quoted ^= c == '"';
        if (!quoted && !depth && (c == ',' || c == '}'))
            break;
        depth += quoted ? 0 : (c == '[') - (c == ']');
    }
    return (struct cm_str){l->text.data + begin, l->at - begin};
}

static enum cm_status read_line(struct cm_tf_statement *l, struct cm_str *op)
{
    do {
        if (peek(l) != '%')
            return wrong(l, "a result is missing");
        *CM_PUSH(l->arena, &l->results) = read_name(l);
    } while (accept(l, ','));
    if (!accept(l, '='))
        return wrong(l, "'=' is missing");
    if (peek(l) == '%') { /* another name for a tensor */
        *op = CM_STR_NONE;
        return read_operand(l, CM_PUSH(l->arena, &l->operands), 0);
    }
    *op = read_word(l);
    if (!accept(l, '('))
        return wrong(l, "'(' is missing");
    while (!accept(l, ')')) {
        if (l->operands.count == CM_TF_OPERANDS)
            return wrong(l, "too many operands");
        CM_TRY(read_operand(l, CM_PUSH(l->arena, &l->operands), 0));
        if (!accept(l, ',') && peek(l) != ')')
            return wrong(l, "')' is missing");
    }
    if (accept(l, '{'))
        while (!accept(l, '}')) {
            struct cm_tf_said attr = {.name = read_word(l)};
            if (!attr.name.size || !accept(l, ':'))
                return wrong(l, "an attribute is missing");
            attr.value = read_raw(l);
            *CM_PUSH(l->arena, &l->attrs) = attr;
            (void)accept(l, ',');
        }
    return peek(l) ? wrong(l, "something follows the end") : CM_OK;
}

/* ---- from operands to types ---- */

/* The number of an attribute; n_attrs: there is none. */
static size_t attr_place(const struct cm_tf_op *op, struct cm_str name)
{
    size_t i = 0;

    while (i < op->n_attrs && !cm_str_equal(op->attrs[i].name, name))
        i++;
    return i;
}

static enum cm_tf_type operand_type(const struct cm_tf_operand *operand)
{
    for (size_t i = 0; operand->is_list && i < operand->count; i++)
        if (operand->items[i].tensor.node)
            return operand->items[i].tensor.type;
    if (operand->is_literal && operand->literal.is_text)
        return CM_TF_STRING;
    return operand->is_literal ? operand->literal.type : operand->tensor.type;
}

/* What attributes the line itself says. */
static enum cm_status take_attrs(struct cm_tf_statement *l)
{
    for (size_t i = 0; i < l->op->n_attrs; i++)
        l->numbers[i] = -1;
    for (size_t i = 0; i < l->attrs.count; i++) {
        const size_t at = attr_place(l->op, l->attrs.items[i].name);
        struct cm_tf_number number;

        if (at == l->op->n_attrs)
            return wrong(l, "the operator has no such attribute");
        l->is_given[at] = true;
        if (l->op->attrs[at].kind == CM_TF_ATTR_TYPE &&
            !(l->types[at] = cm_tf_type_named(l->attrs.items[i].value)))
            return wrong(l, "a type is not known");
        if (l->op->attrs[at].kind == CM_TF_ATTR_INT &&
            read_number(l->attrs.items[i].value, &number))
            l->numbers[at] = number.whole;
    }
    return CM_OK;
}

/* Types of operands say what attributes are; then literals get those types. */
static enum cm_status take_types(struct cm_tf_statement *l)
{
    const struct cm_tf_op *op = l->op;

    if (l->operands.count != op->n_in)
        return cm_fail(l->err, CM_UNSUPPORTED, "%.*s takes %zu operands, '%.*s' has %zu",
                       CM_STR_FMT(op->name), op->n_in, CM_STR_FMT(l->text), l->operands.count);
    for (size_t i = 0; i < op->n_in; i++) {
        const struct cm_tf_operand *operand = &l->operands.items[i];
        const size_t at = attr_place(op, op->in[i].type_attr);
        const size_t number = attr_place(op, op->in[i].number);

        if (number < op->n_attrs)
            l->numbers[number] = operand->is_list ? (int64_t)operand->count : 1;
        if (at < op->n_attrs && !op->in[i].is_list && !l->types[at])
            l->types[at] = operand_type(operand);
    }
    for (size_t i = 0; i < op->n_attrs; i++) {
        const struct cm_tf_attr_fact *fact = &op->attrs[i];
        bool is_of_operand = false;

        if (fact->kind != CM_TF_ATTR_TYPE)
            continue;
        for (size_t k = 0; k < op->n_in; k++)
            is_of_operand |= cm_str_equal(op->in[k].type_attr, fact->name);
        if (!l->types[i] && !is_of_operand)
            l->types[i] = fact->preset;
        /* A literal alone, such as sizes. */
        if (!l->types[i] && is_of_operand)
            l->types[i] = fact->types >> CM_TF_I32 & 1 ? CM_TF_I32 : CM_TF_F32;
        if (l->types[i] && !l->is_given[i])
            l->wide[i] = cm_tf_type_widened(l->types[i], fact->types);
        else
            l->wide[i] = l->types[i];
        if (l->types[i] && !l->wide[i])
            return cm_fail(l->err, CM_UNSUPPORTED, "TensorFlow's %.*s has no kernel for type %s",
                           CM_STR_FMT(op->name), cm_tf_type_name(l->types[i]));
    }
    return CM_OK;
}

static struct cm_tf_tensor cast(struct cm_tf_statement *l, struct cm_tf_tensor from,
                                enum cm_tf_type to, struct cm_str name)
{
    if (from.type == to)
        return from;
    struct cm_tf_node *node = cm_tf_add(l->scope->graph, "Cast", name);
    node->is_pure = true;
    cm_tf_input(l->scope->graph, node, from);
    cm_tf_attr_type(node, CM_STR("SrcT"), from.type);
    cm_tf_attr_type(node, CM_STR("DstT"), to);
    return cm_tf_output(l->scope->graph, node, "y", to);
}

/* The name of the node: that of the ONNX node for its result, else "conv1/sum". */
static struct cm_str node_name(struct cm_tf_statement *l)
{
    const struct cm_str first = l->results.items[0];
    struct cm_str own = cm_str_after_first(first, '_');
    const struct cm_tf_scope *scope = l->scope;

    /* Of a macro: "m2_sum". */
    while (own.size > 1 && own.data[0] == 'm' && own.data[1] >= '0' && own.data[1] <= '9' &&
           memchr(own.data, '_', own.size))
        own = cm_str_after_first(own, '_');

    if (!own.size)
        return cm_arena_printf(l->arena, "%.*s%.*s", CM_STR_ALL(scope->label),
                               CM_STR_ALL(scope->at));
    return cm_arena_printf(l->arena, "%.*s%.*s/%.*s", CM_STR_ALL(scope->label),
                           CM_STR_ALL(scope->at), CM_STR_ALL(own));
}

static struct cm_tf_tensor operand_tensor(struct cm_tf_statement *l,
                                          const struct cm_tf_operand *operand, enum cm_tf_type type,
                                          enum cm_tf_type wide)
{
    if (operand->is_literal)
        return literal_tensor(l, &operand->literal, wide);
    if (operand->tensor.type != type)
        return operand->tensor; /* told below */
    return cast(l, operand->tensor, wide,
                cm_arena_printf(l->arena, "%.*s/wide", CM_STR_ALL(node_name(l))));
}

static enum cm_status put_operand(struct cm_tf_statement *l, struct cm_tf_node *node, size_t i)
{
    const struct cm_tf_arg *arg = &l->op->in[i];
    const struct cm_tf_operand *operand = &l->operands.items[i];
    const size_t at = attr_place(l->op, arg->type_attr);
    const enum cm_tf_type type = arg->type ? arg->type : l->types[at];
    const enum cm_tf_type wide = arg->type ? arg->type : l->wide[at];
    const size_t count = operand->is_list ? operand->count : 1;

    if (operand->is_list && !arg->is_list && !arg->number.size)
        return wrong(l, "a list stands for one operand");
    for (size_t k = 0; k < count; k++) {
        const struct cm_tf_operand *one = operand->is_list ? &operand->items[k] : operand;
        const struct cm_tf_tensor tensor =
            arg->is_list ? one->tensor : operand_tensor(l, one, type, wide);

        if (!tensor.node)
            return wrong(l, "a literal stands among tensors of any type");
        if (!arg->is_list && tensor.type != wide)
            return cm_fail(l->err, CM_UNSUPPORTED, "operand '%.*s' is %s, not %s, in '%.*s'",
                           CM_STR_FMT(arg->name), cm_tf_type_name(tensor.type),
                           cm_tf_type_name(type), CM_STR_FMT(l->text));
        cm_tf_input(l->scope->graph, node, tensor);
    }
    return CM_OK;
}

static enum cm_status put_ints(struct cm_tf_statement *l, struct cm_tf_node *node,
                               struct cm_str name, struct cm_str value)
{
    struct cm_tf_statement inner = {
        .scope = l->scope, .arena = l->arena, .err = l->err, .text = value};
    struct cm_tf_numbers list = {0};

    CM_TRY(read_literal(&inner, &list));
    int64_t *items = CM_NEW_ARRAY(l->arena, int64_t, list.count + 1);
    for (size_t i = 0; i < list.count; i++)
        items[i] = list.items[i].whole;
    if (list.rank == 1)
        cm_tf_attr_ints(node, name, items, list.count);
    return list.rank == 1 ? CM_OK : wrong(l, "a list is missing");
}

static enum cm_status put_attr(struct cm_tf_statement *l, struct cm_tf_node *node,
                               const struct cm_tf_attr_fact *fact, struct cm_str value)
{
    struct cm_tf_statement inner = {
        .scope = l->scope, .arena = l->arena, .err = l->err, .text = value};
    struct cm_tf_number number = {0};
    struct cm_str text;

    switch (fact->kind) {
    case CM_TF_ATTR_TEXT:
        if (peek(&inner) != '"')
            return wrong(l, "a text is missing");
        CM_TRY(read_text(&inner, &text));
        cm_tf_attr_text(node, fact->name, text);
        return CM_OK;
    case CM_TF_ATTR_INTS:
        return put_ints(l, node, fact->name, value);
    case CM_TF_ATTR_SHAPE: /* unknown */
        cm_tf_attr_shape(node, fact->name, NULL, -1);
        return CM_OK;
    case CM_TF_ATTR_TYPE:
        return CM_OK; /* with the other types */
    default:
        break;
    }
    if (!read_number(read_word(&inner), &number))
        return wrong(l, "a number is missing");
    if (fact->kind == CM_TF_ATTR_FLOAT)
        cm_tf_attr_float(node, fact->name, (float)number.real);
    else if (fact->kind == CM_TF_ATTR_BOOL)
        cm_tf_attr_bool(node, fact->name, number.whole);
    else if (fact->kind == CM_TF_ATTR_INT)
        cm_tf_attr_int(node, fact->name, number.whole);
    else
        return wrong(l, "attributes of this kind are not written by rows");
    return CM_OK;
}

static enum cm_status put_attrs(struct cm_tf_statement *l, struct cm_tf_node *node)
{
    const struct cm_tf_op *op = l->op;

    for (size_t i = 0; i < l->attrs.count; i++)
        CM_TRY(put_attr(l, node, &op->attrs[attr_place(op, l->attrs.items[i].name)],
                        l->attrs.items[i].value));
    for (size_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].kind == CM_TF_ATTR_TYPE && l->wide[i])
            cm_tf_attr_type(node, op->attrs[i].name, l->wide[i]);
    for (size_t i = 0; i < op->n_in; i++) {
        const size_t number = attr_place(op, op->in[i].number);

        if (number < op->n_attrs)
            cm_tf_attr_int(node, op->in[i].number, l->numbers[number]);
        if (!op->in[i].is_list)
            continue;
        const struct cm_tf_operand *list = &l->operands.items[i];
        const size_t count = list->is_list ? list->count : 1;
        enum cm_tf_type *all = CM_NEW_ARRAY(l->arena, enum cm_tf_type, count + 1);
        for (size_t k = 0; k < count; k++)
            all[k] = (list->is_list ? &list->items[k] : list)->tensor.type;
        cm_tf_attr_types(node, op->in[i].type_attr, all, count);
    }
    return CM_OK;
}

/* ---- results ---- */

static enum cm_status put_results(struct cm_tf_statement *l, struct cm_tf_node *node,
                                  const struct cm_tf_order *order)
{
    const struct cm_tf_op *op = l->op;
    size_t used = 0;

    for (size_t i = 0; i < op->n_out; i++) {
        const struct cm_tf_arg *arg = &op->out[i];
        const size_t at = attr_place(op, arg->type_attr), number = attr_place(op, arg->number);
        const char *name = cm_arena_str(l->arena, arg->name).data;

        if (arg->is_list)
            return wrong(l, "lists of results are not written by rows");
        const int64_t count = number < op->n_attrs ? l->numbers[number] : 1;
        if (count < 0 || (!arg->type && (at == op->n_attrs || !l->wide[at])))
            return wrong(l, "a result has no type or number");
        for (int64_t k = 0; k < count; k++) {
            struct cm_tf_tensor tensor =
                cm_tf_output(l->scope->graph, node, name, arg->type ? arg->type : l->wide[at]);
            if (used >= l->results.count)
                continue;
            if (!arg->type)
                tensor = cast(l, tensor, l->types[at],
                              cm_arena_printf(l->arena, "%.*s/narrow", CM_STR_ALL(node->name)));
            if (order->perm)
                tensor = cm_tf_transposed(
                    l->scope->graph, tensor, order,
                    cm_arena_printf(l->arena, "%.*s/turned", CM_STR_ALL(node->name)));
            cm_tf_define(l->scope, l->results.items[used++], tensor);
        }
    }
    return used == l->results.count ? CM_OK : wrong(l, "there are more names than results");
}

static int64_t *whole_numbers(struct cm_tf_statement *l, const struct cm_tf_numbers *from)
{
    int64_t *out = CM_NEW_ARRAY(l->arena, int64_t, from->count + 1);

    for (size_t i = 0; i < from->count; i++)
        out[i] = from->items[i].whole;
    return out;
}

/* A Transpose in an order that the line says. */
static bool put_transpose(struct cm_tf_statement *l)
{
    const struct cm_tf_operand *x = &l->operands.items[0];

    if (!cm_str_is(l->op->name, "Transpose") || !x->tensor.node || !l->operands.items[1].is_literal)
        return false;
    const struct cm_tf_numbers *list = &l->operands.items[1].literal;
    const struct cm_tf_order order = {whole_numbers(l, list), (int)list->count};
    cm_tf_define(l->scope, l->results.items[0],
                 cm_tf_transposed(l->scope->graph, x->tensor, &order, node_name(l)));
    return true;
}

/* What a Reshape to known sizes gives. */
static void note_sizes(struct cm_tf_statement *l, struct cm_tf_node *node)
{
    if (!cm_str_is(l->op->name, "Reshape") || !l->operands.items[1].is_literal)
        return;
    node->dims = whole_numbers(l, &l->operands.items[1].literal);
    node->rank = (int)l->operands.items[1].literal.count;
}

enum cm_status cm_tf_line(struct cm_tf_scope *scope, struct cm_str line, struct cm_error *err)
{
    struct cm_tf_statement l = {
        .scope = scope, .arena = scope->graph->arena, .err = err, .text = line};
    struct cm_str op;

    CM_TRY(read_line(&l, &op));
    if (!op.size) {
        cm_tf_define(scope, l.results.items[0], l.operands.items[0].tensor);
        return CM_OK;
    }
    l.op = cm_tf_operator(scope->writer, op);
    if (!l.op)
        return cm_fail(err, CM_UNSUPPORTED, "'%.*s' is not in the table of TensorFlow's operators",
                       CM_STR_FMT(op));
    CM_TRY(take_attrs(&l));
    CM_TRY(take_types(&l));
    if (put_transpose(&l))
        return CM_OK;
    struct cm_tf_order order;
    cm_tf_sink(&l, &order);
    struct cm_tf_node *node = CM_NEW(l.arena, struct cm_tf_node);
    *node =
        (struct cm_tf_node){.op = l.op->name, .attributes = {.arena = l.arena}, .is_pure = true};
    for (size_t i = 0; i < l.op->n_in; i++)
        CM_TRY(put_operand(&l, node, i));
    CM_TRY(put_attrs(&l, node));
    node->name = cm_tf_safe_name(l.arena, &scope->graph->names, node_name(&l));
    *CM_PUSH(l.arena, &scope->graph->nodes) = node;
    note_sizes(&l, node);
    return put_results(&l, node, &order);
}

void cm_tf_linef(struct cm_tf_scope *scope, enum cm_status *status, struct cm_error *err,
                 const char *format, ...)
{
    va_list args;

    if (*status != CM_OK)
        return;
    va_start(args, format);
    const struct cm_str line = cm_arena_vprintf(scope->graph->arena, format, args);
    va_end(args);
    *status = cm_tf_line(scope, line, err);
}
