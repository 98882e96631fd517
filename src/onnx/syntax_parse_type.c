/* Types and typed names of the text form. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "onnx/syntax_parse.h"

static bool is_constructor(struct cm_str word)
{
    static const char *const names[] = {"seq", "map", "optional", "sparse_tensor", "opaque"};

    return CM_STR_AMONG(word, names);
}

static bool starts_name(int c)
{
    return c == '"' || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool cm_at_type(struct cm_lexer *lex)
{
    const struct cm_str word = cm_lex_peek_word(lex);
    enum cm_dtype type;

    if (cm_dtype_parse(word, &type) || is_constructor(word))
        return true;
    /* Names too, so they are types only where a name could not be. */
    if (!cm_str_is(word, "undefined") && !cm_str_is(word, "untyped"))
        return false;
    const int next = cm_lex_peek_after_word(lex);
    return next == '[' || next == ':' || starts_name(next);
}

static enum cm_status parse_element(struct cm_lexer *lex, int32_t *out)
{
    const struct cm_str word = cm_lex_peek_word(lex);
    enum cm_dtype type;

    *out = CM_UNDEFINED;
    if (cm_dtype_parse(word, &type))
        *out = (int32_t)type;
    else if (!cm_str_is(word, "undefined"))
        return cm_lex_expected(lex, "an element type");
    lex->at += word.size;
    return CM_OK;
}

/* An empty denotation is none. */
static enum cm_status parse_denotation(struct cm_lexer *lex, struct cm_msg *msg, int field,
                                       struct cm_str *out)
{
    if (!cm_lex_take(lex, ':'))
        return CM_OK;
    CM_TRY(cm_lex_string(lex, out));
    if (out->size)
        cm_msg_set(msg, field);
    return CM_OK;
}

static enum cm_status parse_dim(struct cm_lexer *lex, struct cm_dim_proto *dim)
{
    if (cm_lex_at_name(lex)) {
        CM_TRY(cm_lex_name(lex, "a dimension", &dim->dim_param));
        cm_msg_set(&dim->msg, CM_DIM_PARAM);
    } else if (!cm_lex_take(lex, '?')) {
        if (!cm_lex_at_number(lex))
            return cm_lex_expected(lex, "a dimension");
        CM_TRY(cm_lex_int64(lex, &dim->dim_value));
        cm_msg_set(&dim->msg, CM_DIM_VALUE);
    }
    return parse_denotation(lex, &dim->msg, CM_DIM_DENOTATION, &dim->denotation);
}

/* Nothing is a scalar; [] leaves the rank unknown. */
static enum cm_status parse_shape(struct cm_lexer *lex, struct cm_tensor_type_proto *out)
{
    const bool brackets = cm_lex_take(lex, '[');
    struct {
        CM_ARRAY(struct cm_dim_proto);
    } dims = {0};

    if (brackets && cm_lex_take(lex, ']'))
        return CM_OK;
    out->shape = CM_NEW(lex->arena, struct cm_shape_proto);
    cm_msg_set(&out->msg, CM_TENSOR_TYPE_SHAPE);
    if (!brackets)
        return CM_OK;
    do {
        CM_TRY(parse_dim(lex, CM_ADD(lex, &dims)));
    } while (cm_lex_take(lex, ','));
    CM_SET_LIST(out->shape, dim, CM_SHAPE_DIM, dims);
    return cm_lex_expect(lex, ']');
}

static enum cm_status parse_tensor_type(struct cm_lexer *lex, struct cm_type_proto *type, int field,
                                        struct cm_tensor_type_proto **member)
{
    struct cm_tensor_type_proto *const out = CM_NEW(lex->arena, struct cm_tensor_type_proto);

    CM_TRY(parse_element(lex, &out->elem_type));
    if (out->elem_type != CM_UNDEFINED)
        cm_msg_set(&out->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    CM_TRY(parse_shape(lex, out));
    *member = out;
    cm_msg_set(&type->msg, field);
    return CM_OK;
}

/* What stands inside seq( ) or optional( ); nothing leaves it open. */
static enum cm_status parse_wrapped(struct cm_lexer *lex, struct cm_type_proto *type, int field,
                                    struct cm_wrap_type_proto **member)
{
    struct cm_wrap_type_proto *const out = CM_NEW(lex->arena, struct cm_wrap_type_proto);

    *member = out;
    cm_msg_set(&type->msg, field);
    if (cm_lex_peek(lex) == ')')
        return CM_OK;
    out->elem_type = CM_NEW(lex->arena, struct cm_type_proto);
    cm_msg_set(&out->msg, CM_WRAP_TYPE_ELEM_TYPE);
    return cm_parse_type(lex, out->elem_type);
}

static enum cm_status parse_map(struct cm_lexer *lex, struct cm_type_proto *type)
{
    struct cm_map_type_proto *const out = CM_NEW(lex->arena, struct cm_map_type_proto);

    type->map_type = out;
    cm_msg_set(&type->msg, CM_TYPE_MAP_TYPE);
    CM_TRY(parse_element(lex, &out->key_type));
    if (out->key_type != CM_UNDEFINED)
        cm_msg_set(&out->msg, CM_MAP_TYPE_KEY_TYPE);
    if (!cm_lex_take(lex, ','))
        return CM_OK;
    out->value_type = CM_NEW(lex->arena, struct cm_type_proto);
    cm_msg_set(&out->msg, CM_MAP_TYPE_VALUE_TYPE);
    return cm_parse_type(lex, out->value_type);
}

/* a.b.c, or a string in quotes. Dotted names are one view: nothing may stand between the words. */
static enum cm_status parse_dotted(struct cm_lexer *lex, struct cm_str *out)
{
    if (cm_lex_peek(lex) == '"')
        return cm_lex_string(lex, out);
    CM_TRY(cm_lex_name(lex, "a name", out));
    while (lex->at < lex->end && *lex->at == '.') {
        struct cm_lexer ahead = *lex;
        struct cm_str word;
        ahead.at++;
        CM_TRY(cm_lex_name(&ahead, "a name", &word));
        if (word.data != lex->at + 1)
            return cm_lex_expected(lex, "a name without spaces");
        lex->at = ahead.at;
        out->size = (size_t)(lex->at - out->data);
    }
    return CM_OK;
}

static enum cm_status parse_opaque(struct cm_lexer *lex, struct cm_type_proto *type)
{
    struct cm_opaque_type_proto *const out = CM_NEW(lex->arena, struct cm_opaque_type_proto);

    type->opaque_type = out;
    cm_msg_set(&type->msg, CM_TYPE_OPAQUE_TYPE);
    if (cm_lex_peek(lex) == ')')
        return CM_OK;
    CM_TRY(parse_dotted(lex, &out->name));
    if (cm_lex_take(lex, ',')) {
        out->domain = out->name;
        CM_TRY(parse_dotted(lex, &out->name));
    }
    if (out->domain.size)
        cm_msg_set(&out->msg, CM_OPAQUE_TYPE_DOMAIN);
    if (out->name.size)
        cm_msg_set(&out->msg, CM_OPAQUE_TYPE_NAME);
    return CM_OK;
}

static enum cm_status parse_constructed(struct cm_lexer *lex, struct cm_str word,
                                        struct cm_type_proto *out)
{
    lex->at += word.size;
    CM_TRY(cm_lex_expect(lex, '('));
    if (cm_str_is(word, "seq"))
        CM_TRY(parse_wrapped(lex, out, CM_TYPE_SEQUENCE_TYPE, &out->sequence_type));
    else if (cm_str_is(word, "optional"))
        CM_TRY(parse_wrapped(lex, out, CM_TYPE_OPTIONAL_TYPE, &out->optional_type));
    else if (cm_str_is(word, "map"))
        CM_TRY(parse_map(lex, out));
    else if (cm_str_is(word, "opaque"))
        CM_TRY(parse_opaque(lex, out));
    else
        CM_TRY(parse_tensor_type(lex, out, CM_TYPE_SPARSE_TENSOR_TYPE, &out->sparse_tensor_type));
    return cm_lex_expect(lex, ')');
}

enum cm_status cm_parse_type(struct cm_lexer *lex, struct cm_type_proto *out)
{
    const struct cm_str word = cm_lex_peek_word(lex);

    CM_TRY(cm_lex_enter(lex));
    if (is_constructor(word))
        CM_TRY(parse_constructed(lex, word, out));
    else if (cm_str_is(word, "untyped"))
        lex->at += word.size;
    else
        CM_TRY(parse_tensor_type(lex, out, CM_TYPE_TENSOR_TYPE, &out->tensor_type));
    CM_TRY(parse_denotation(lex, &out->msg, CM_TYPE_DENOTATION, &out->denotation));
    lex->depth--;
    return CM_OK;
}

enum cm_status cm_parse_value(struct cm_lexer *lex, struct cm_value_info_proto *out)
{
    if (cm_at_type(lex)) {
        out->type = CM_NEW(lex->arena, struct cm_type_proto);
        cm_msg_set(&out->msg, CM_VALUE_INFO_TYPE);
        CM_TRY(cm_parse_type(lex, out->type));
    }
    CM_TRY(cm_lex_name(lex, "a name", &out->name));
    cm_msg_set(&out->msg, CM_VALUE_INFO_NAME);
    return cm_parse_notes(lex, &cm_value_info_info, out, CM_NOTES_VALUE);
}
