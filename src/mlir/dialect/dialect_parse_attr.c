/* Types and attributes of MLIR's text. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_tree.h"

const struct cm_dialect_attr *cm_dialect_get(const struct cm_dialect_entries *entries,
                                             const char *key)
{
    for (size_t i = 0; i < entries->count; i++)
        if (cm_str_is(entries->items[i].key, key))
            return &entries->items[i].value;
    return NULL;
}

static enum cm_status enter(struct cm_lexer *lex)
{
    if (lex->depth >= CM_DIALECT_ATTRIBUTE_DEPTH)
        return cm_lex_fail_at(lex, lex->at, CM_LIMIT,
                              "attributes or types are nested more than %d deep",
                              CM_DIALECT_ATTRIBUTE_DEPTH);
    lex->depth++;
    return CM_OK;
}

static enum cm_status parse_dim(struct cm_lexer *lex, struct cm_shape_proto *shape,
                                size_t *capacity)
{
    CM_ARRAY(struct cm_dim_proto) dims = {shape->dim.items, shape->dim.count, *capacity};
    struct cm_dim_proto *const dim = CM_PUSH(lex->arena, &dims);

    *dim = (struct cm_dim_proto){0};
    shape->dim.items = dims.items;
    shape->dim.count = dims.count;
    *capacity = dims.capacity;
    cm_msg_set(&shape->msg, CM_SHAPE_DIM);
    if (!cm_dialect_take(lex, "?")) {
        const char *const start = lex->at;
        while (lex->at < lex->end && *lex->at >= '0' && *lex->at <= '9')
            lex->at++;
        const struct cm_str text = {start, (size_t)(lex->at - start)};
        if (!cm_str_to_int64(text, &dim->dim_value))
            return cm_lex_fail_at(lex, start, CM_BAD_MODEL, "a dimension does not fit in 63 bits");
        cm_msg_set(&dim->msg, CM_DIM_VALUE);
    }
    return cm_dialect_expect(lex, "x");
}

/* "f32", "complex<f32>", "!onnx.String" */
static enum cm_status parse_element(struct cm_lexer *lex, enum cm_dtype *out)
{
    struct cm_str name = cm_lex_peek_word(lex), inside;
    const char *const start = lex->at;

    if (cm_dialect_take(lex, CM_DIALECT_STRING)) {
        *out = CM_STRING;
        return CM_OK;
    }
    lex->at += name.size;
    if (cm_str_is(name, "complex") && cm_dialect_take(lex, "<")) {
        CM_TRY(cm_dialect_skip_to(lex, '<', '>', &inside));
        name = (struct cm_str){start, (size_t)(lex->at - start)};
    }
    if (name.size && cm_dialect_element_parse(name, out))
        return CM_OK;
    lex->at = start;
    return cm_lex_expected(lex, "an element type such as f32");
}

static enum cm_status parse_tensor(struct cm_lexer *lex, struct cm_tensor_type_proto *out)
{
    enum cm_dtype element;
    size_t capacity = 0;
    int next;

    CM_TRY(cm_dialect_expect(lex, "<"));
    if (cm_dialect_take(lex, "*")) {
        CM_TRY(cm_dialect_expect(lex, "x"));
    } else {
        out->shape = CM_NEW(lex->arena, struct cm_shape_proto);
        cm_msg_set(&out->msg, CM_TENSOR_TYPE_SHAPE);
        while ((next = cm_lex_peek(lex)) == '?' || (next >= '0' && next <= '9'))
            CM_TRY(parse_dim(lex, out->shape, &capacity));
    }
    CM_TRY(parse_element(lex, &element));
    out->elem_type = (int32_t)element;
    cm_msg_set(&out->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    if (cm_lex_peek(lex) == ',')
        return cm_lex_fail_at(lex, lex->at, CM_UNSUPPORTED,
                              "encodings of tensor types are not supported");
    return cm_dialect_expect(lex, ">");
}

static enum cm_status parse_inner(struct cm_lexer *lex, struct cm_type_proto **out)
{
    const char *at;
    struct cm_dialect_type type;

    cm_lex_peek(lex);
    at = lex->at;
    CM_TRY(cm_dialect_parse_type(lex, &type));
    if (type.kind == CM_DIALECT_TYPE_UNKNOWN)
        return CM_OK;
    if (type.kind != CM_DIALECT_TYPE_PROTO)
        return cm_lex_fail_at(lex, at, CM_BAD_MODEL, "expected a tensor, sequence or map type");
    *out = type.proto;
    return CM_OK;
}

/* !onnx.Seq<..> and its kin, the mark of which was read. */
static enum cm_status parse_onnx(struct cm_lexer *lex, const char *at, struct cm_type_proto *out)
{
    const struct cm_str word = cm_lex_peek_word(lex);
    enum cm_dtype key;

    lex->at += word.size;
    if (cm_str_is(word, "onnx.Seq") || cm_str_is(word, "onnx.Opt")) {
        const bool sequence = word.data[5] == 'S';
        struct cm_wrap_type_proto *const wrap = CM_NEW(lex->arena, struct cm_wrap_type_proto);

        *(sequence ? &out->sequence_type : &out->optional_type) = wrap;
        cm_msg_set(&out->msg, sequence ? CM_TYPE_SEQUENCE_TYPE : CM_TYPE_OPTIONAL_TYPE);
        CM_TRY(cm_dialect_expect(lex, "<"));
        CM_TRY(parse_inner(lex, &wrap->elem_type));
        if (wrap->elem_type)
            cm_msg_set(&wrap->msg, CM_WRAP_TYPE_ELEM_TYPE);
        return cm_dialect_expect(lex, ">");
    }
    if (cm_str_is(word, "onnx.Map")) {
        struct cm_map_type_proto *const map = CM_NEW(lex->arena, struct cm_map_type_proto);

        out->map_type = map;
        cm_msg_set(&out->msg, CM_TYPE_MAP_TYPE);
        CM_TRY(cm_dialect_expect(lex, "<"));
        CM_TRY(parse_element(lex, &key));
        map->key_type = (int32_t)key;
        cm_msg_set(&map->msg, CM_MAP_TYPE_KEY_TYPE);
        CM_TRY(cm_dialect_expect(lex, ","));
        CM_TRY(parse_inner(lex, &map->value_type));
        if (map->value_type)
            cm_msg_set(&map->msg, CM_MAP_TYPE_VALUE_TYPE);
        return cm_dialect_expect(lex, ">");
    }
    if (cm_str_is(word, "onnx.Sparse")) {
        out->sparse_tensor_type = CM_NEW(lex->arena, struct cm_tensor_type_proto);
        cm_msg_set(&out->msg, CM_TYPE_SPARSE_TENSOR_TYPE);
        CM_TRY(cm_dialect_expect(lex, "<"));
        CM_TRY(cm_dialect_expect(lex, "tensor"));
        CM_TRY(parse_tensor(lex, out->sparse_tensor_type));
        return cm_dialect_expect(lex, ">");
    }
    return cm_lex_fail_at(lex, at, CM_UNSUPPORTED, "type '!%.*s' is not part of the ONNX dialect",
                          CM_STR_FMT(word));
}

/* `(T, ..)` or `T`; where out is NULL, nothing is kept. */
static enum cm_status parse_side(struct cm_lexer *lex, struct cm_dialect_types *out)
{
    const bool many = cm_dialect_take(lex, "(");

    if (many && cm_dialect_take(lex, ")"))
        return CM_OK;
    do {
        struct cm_dialect_type type;
        CM_TRY(cm_dialect_parse_type(lex, &type));
        if (out)
            *CM_PUSH(lex->arena, out) = type;
    } while (many && cm_dialect_take(lex, ","));
    return many ? cm_dialect_expect(lex, ")") : CM_OK;
}

static enum cm_status parse_type(struct cm_lexer *lex, struct cm_dialect_type *out)
{
    const int next = cm_lex_peek(lex);
    const char *const at = lex->at;

    *out = (struct cm_dialect_type){.kind = CM_DIALECT_TYPE_OTHER};
    if (next == '(') {
        CM_TRY(parse_side(lex, NULL));
        CM_TRY(cm_dialect_expect(lex, "->"));
        return parse_side(lex, &out->results);
    }
    if (cm_lex_take_word(lex, "index"))
        return CM_OK;
    if (cm_lex_take_word(lex, "none")) {
        out->kind = CM_DIALECT_TYPE_NONE;
        return CM_OK;
    }
    if (cm_dialect_take(lex, CM_DIALECT_UNKNOWN)) {
        out->kind = CM_DIALECT_TYPE_UNKNOWN;
        return CM_OK;
    }
    out->kind = CM_DIALECT_TYPE_PROTO;
    if (cm_lex_take_word(lex, "tensor")) {
        out->proto = CM_NEW(lex->arena, struct cm_type_proto);
        out->proto->tensor_type = CM_NEW(lex->arena, struct cm_tensor_type_proto);
        cm_msg_set(&out->proto->msg, CM_TYPE_TENSOR_TYPE);
        return parse_tensor(lex, out->proto->tensor_type);
    }
    if (next == '!' &&
        !cm_str_starts((struct cm_str){at, (size_t)(lex->end - at)}, CM_DIALECT_STRING)) {
        out->proto = CM_NEW(lex->arena, struct cm_type_proto);
        lex->at++;
        return parse_onnx(lex, at, out->proto);
    }
    out->kind = CM_DIALECT_TYPE_ELEMENT;
    return parse_element(lex, &out->element);
}

enum cm_status cm_dialect_parse_type(struct cm_lexer *lex, struct cm_dialect_type *out)
{
    CM_TRY(enter(lex));
    const enum cm_status status = parse_type(lex, out);
    lex->depth--;
    return status;
}

static enum cm_status parse_array(struct cm_lexer *lex, struct cm_dialect_attr *out)
{
    out->kind = CM_DIALECT_ATTR_ARRAY;
    while (!cm_dialect_take(lex, "]")) {
        struct cm_dialect_attr item;
        CM_TRY(cm_dialect_parse_attr(lex, &item));
        *CM_PUSH(lex->arena, &out->items) = item;
        if (cm_lex_peek(lex) != ']')
            CM_TRY(cm_dialect_expect(lex, ","));
    }
    return CM_OK;
}

/* array<i64: 1, 2> */
static enum cm_status parse_dense_array(struct cm_lexer *lex, struct cm_dialect_attr *out)
{
    struct cm_dialect_type type;

    out->kind = CM_DIALECT_ATTR_ARRAY;
    CM_TRY(cm_dialect_expect(lex, "<"));
    CM_TRY(cm_dialect_parse_type(lex, &type));
    if (cm_dialect_take(lex, ">"))
        return CM_OK;
    CM_TRY(cm_dialect_expect(lex, ":"));
    do {
        struct cm_dialect_attr item;
        CM_TRY(cm_dialect_parse_attr(lex, &item));
        item.type = type;
        *CM_PUSH(lex->arena, &out->items) = item;
    } while (cm_dialect_take(lex, ","));
    return cm_dialect_expect(lex, ">");
}

static enum cm_status parse_dense(struct cm_lexer *lex, enum cm_dialect_attr_kind kind,
                                  struct cm_dialect_attr *out)
{
    out->kind = kind;
    CM_TRY(cm_dialect_expect(lex, "<"));
    CM_TRY(cm_dialect_skip_to(lex, '<', '>', &out->text));
    CM_TRY(cm_dialect_expect(lex, ":"));
    cm_lex_peek(lex);
    const char *const at = lex->at;
    CM_TRY(cm_dialect_parse_type(lex, &out->type));
    if (out->type.kind == CM_DIALECT_TYPE_PROTO && out->type.proto->tensor_type)
        return CM_OK;
    return cm_lex_fail_at(lex, at, CM_BAD_MODEL, "expected the tensor type of the values");
}

static enum cm_status parse_number(struct cm_lexer *lex, struct cm_dialect_attr *out)
{
    struct cm_number_text number;

    out->kind = CM_DIALECT_ATTR_NUMBER;
    if (cm_lex_take_word(lex, "true") || cm_lex_take_word(lex, "false")) {
        out->text = cm_str(lex->at[-2] == 'u' ? "1" : "0");
        out->whole = true;
        return CM_OK;
    }
    CM_TRY(cm_dialect_number(lex, &number));
    out->text = number.text;
    out->whole = number.whole;
    return cm_dialect_take(lex, ":") ? cm_dialect_parse_type(lex, &out->type) : CM_OK;
}

static enum cm_status parse_attr(struct cm_lexer *lex, struct cm_dialect_attr *out)
{
    const int next = cm_lex_peek(lex);
    const struct cm_str word = cm_lex_peek_word(lex);

    *out = (struct cm_dialect_attr){.at = lex->at};
    if (next == '"') {
        out->kind = CM_DIALECT_ATTR_STRING;
        return cm_dialect_string(lex, &out->text);
    }
    if (next == '[') {
        lex->at++;
        return parse_array(lex, out);
    }
    if (next == '{') {
        out->kind = CM_DIALECT_ATTR_DICT;
        return cm_dialect_parse_dict(lex, &out->entries);
    }
    if (next == '@') {
        out->kind = CM_DIALECT_ATTR_SYMBOL;
        return cm_dialect_symbol(lex, &out->text);
    }
    if (next == '#')
        return cm_lex_fail_at(lex, lex->at, CM_UNSUPPORTED,
                              "attributes of other dialects and names of attributes are not "
                              "supported");
    if (cm_dialect_at_number(lex) || cm_str_is(word, "true") || cm_str_is(word, "false"))
        return parse_number(lex, out);
    if (cm_lex_take_word(lex, "unit")) {
        out->kind = CM_DIALECT_ATTR_UNIT;
        return CM_OK;
    }
    if (cm_lex_take_word(lex, "dense"))
        return parse_dense(lex, CM_DIALECT_ATTR_DENSE, out);
    if (cm_lex_take_word(lex, "dense_resource"))
        return parse_dense(lex, CM_DIALECT_ATTR_RESOURCE, out);
    if (cm_lex_take_word(lex, "array"))
        return parse_dense_array(lex, out);
    if (cm_str_is(word, "sparse"))
        return cm_lex_fail_at(lex, lex->at, CM_UNSUPPORTED,
                              "sparse<..> is not supported: a sparse tensor is {dims = .., indices "
                              "= .., values = ..}");
    if (!word.size && next != '!' && next != '(')
        return cm_lex_expected(lex, "an attribute");
    out->kind = CM_DIALECT_ATTR_TYPE;
    return cm_dialect_parse_type(lex, &out->type);
}

enum cm_status cm_dialect_parse_attr(struct cm_lexer *lex, struct cm_dialect_attr *out)
{
    CM_TRY(enter(lex));
    const enum cm_status status = parse_attr(lex, out);
    lex->depth--;
    return status;
}

enum cm_status cm_dialect_parse_dict(struct cm_lexer *lex, struct cm_dialect_entries *out)
{
    CM_TRY(cm_dialect_expect(lex, "{"));
    while (!cm_dialect_take(lex, "}")) {
        struct cm_dialect_entry entry = {.value = {.kind = CM_DIALECT_ATTR_UNIT}};

        entry.key = cm_lex_peek_word(lex);
        entry.at = entry.value.at = lex->at;
        if (entry.key.size)
            lex->at += entry.key.size;
        else
            CM_TRY(cm_dialect_string(lex, &entry.key));
        if (cm_dialect_take(lex, "="))
            CM_TRY(cm_dialect_parse_attr(lex, &entry.value));
        *CM_PUSH(lex->arena, out) = entry;
        if (cm_lex_peek(lex) != '}')
            CM_TRY(cm_dialect_expect(lex, ","));
    }
    return CM_OK;
}
