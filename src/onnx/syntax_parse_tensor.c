/* Tensors of the text form. Values go to the typed field of their element type, already packed as
 * in a file. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "base/number.h"
#include "onnx/syntax_parse.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"

struct bytes {
    CM_ARRAY(uint8_t);
};

static void add_bytes(struct cm_lexer *lex, struct bytes *to, const void *from, size_t size)
{
    CM_PUSH_ALL(lex->arena, to, from, size);
}

static void add_varint(struct cm_lexer *lex, struct bytes *to, uint64_t value)
{
    uint8_t coded[10];

    add_bytes(lex, to, coded, cm_varint_put(coded, value));
}

/* The number of one element. Floats narrower than 32 bits are written as their bit patterns. */
static enum cm_status parse_integer(struct cm_lexer *lex, enum cm_dtype type, int64_t *out)
{
    const struct cm_dtype_info *const info = cm_dtype_info(type);
    const int64_t span = INT64_C(1) << (info->bits - (info->kind == CM_CLASS_SIGNED));
    struct cm_number_text number;

    CM_TRY(cm_lex_number(lex, &number));
    return cm_number_to_int64(lex, &number, info->kind == CM_CLASS_SIGNED ? -span : 0, span - 1,
                              info->name, out);
}

/* One element into its field's bytes. */
static enum cm_status parse_element(struct cm_lexer *lex, enum cm_dtype type, struct bytes *to)
{
    const struct cm_dtype_info *const info = cm_dtype_info(type);
    struct cm_number_text number;
    uint64_t whole;
    int64_t integer;
    float single;
    double real;

    if (info->field == CM_TYPED_INT32 || info->field == CM_TYPED_INT64) {
        CM_TRY(info->field == CM_TYPED_INT32 ? parse_integer(lex, type, &integer)
                                             : cm_lex_int64(lex, &integer));
        add_varint(lex, to, (uint64_t)integer);
        return CM_OK;
    }
    CM_TRY(cm_lex_number(lex, &number));
    switch (info->field) {
    case CM_TYPED_FLOAT:
        CM_TRY(cm_number_to_float(lex, &number, &single));
        add_bytes(lex, to, &single, sizeof single);
        return CM_OK;
    case CM_TYPED_DOUBLE:
        CM_TRY(cm_number_to_double(lex, &number, &real));
        add_bytes(lex, to, &real, sizeof real);
        return CM_OK;
    default:
        CM_TRY(cm_number_to_uint64(lex, &number, type == CM_UINT32 ? UINT32_MAX : UINT64_MAX,
                                   info->name, &whole));
        add_varint(lex, to, whole);
        return CM_OK;
    }
}

static enum cm_status parse_strings(struct cm_lexer *lex, struct cm_tensor_proto *out)
{
    struct {
        CM_ARRAY(struct cm_str);
    } strings = {0};

    do {
        CM_TRY(cm_lex_string(lex, CM_ADD(lex, &strings)));
    } while (cm_lex_take(lex, ','));
    CM_SET_LIST(out, string_data, CM_TENSOR_STRING_DATA, strings);
    return CM_OK;
}

/* Types of 4 and 2 bits: elements share the bytes of int32_data, the first in the lowest bits.
 * Unlike the other types their number must fit the shape, as the bytes alone do not tell it. */
static enum cm_status parse_packed(struct cm_lexer *lex, struct cm_tensor_proto *out,
                                   struct bytes *to)
{
    const enum cm_dtype type = (enum cm_dtype)out->data_type;
    const int bits = cm_dtype_info(type)->bits;
    const char *const start = lex->at;
    int64_t count = 0, wanted;
    unsigned byte = 0;
    int used = 0;

    if (cm_lex_peek(lex) != '}') {
        do {
            int64_t value;
            CM_TRY(parse_integer(lex, type, &value));
            byte |= ((unsigned)value & ((1u << bits) - 1)) << used;
            used += bits;
            count++;
            if (used == 8) {
                add_varint(lex, to, byte);
                byte = 0;
                used = 0;
            }
        } while (cm_lex_take(lex, ','));
    }
    if (used)
        add_varint(lex, to, byte);
    if (!cm_syntax_element_count(out, &wanted) || wanted != count)
        return cm_lex_fail_at(lex, start, CM_BAD_MODEL,
                              "%lld elements do not fill the shape of this %s tensor",
                              (long long)count, cm_dtype_name(type));
    return CM_OK;
}

static enum cm_status parse_elements(struct cm_lexer *lex, struct cm_tensor_proto *out)
{
    const enum cm_dtype type = (enum cm_dtype)out->data_type;
    const int bits = cm_dtype_info(type)->bits;
    struct bytes data = {0};

    CM_TRY(cm_lex_expect(lex, '{'));
    if (type == CM_UNDEFINED) /* nothing to hold */
        return cm_lex_expect(lex, '}');
    if (bits == 4 || bits == 2) {
        CM_TRY(parse_packed(lex, out, &data));
    } else if (cm_lex_peek(lex) != '}') {
        if (type == CM_STRING) {
            CM_TRY(parse_strings(lex, out));
        } else {
            do {
                CM_TRY(parse_element(lex, type, &data));
            } while (cm_lex_take(lex, ','));
        }
    }
    if (data.count) {
        const int field = cm_tensor_values_field(type);
        *cm_tensor_proto_packed(out, field) = (struct cm_packed){data.items, data.count};
        cm_msg_set(&out->msg, field);
    }
    return cm_lex_expect(lex, '}');
}

/* The type of a tensor must be complete, with its dimensions. */
static enum cm_status set_type(struct cm_lexer *lex, const struct cm_type_proto *type,
                               struct cm_tensor_proto *out)
{
    const struct cm_tensor_type_proto *const tensor = type ? type->tensor_type : NULL;

    if (!tensor || type->denotation.size)
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL,
                              "data needs a plain tensor type before it");
    if (!tensor->shape)
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL,
                              "data needs a tensor type with its dimensions before it");
    const size_t rank = tensor->shape->dim.count;
    if (rank) {
        out->dims.items = CM_NEW_ARRAY(lex->arena, int64_t, rank);
        out->dims.count = rank;
        cm_msg_set(&out->msg, CM_TENSOR_DIMS);
    }
    for (size_t i = 0; i < rank; i++) {
        const struct cm_dim_proto *const dim = &tensor->shape->dim.items[i];
        if (!cm_msg_has(&dim->msg, CM_DIM_VALUE) || dim->denotation.size)
            return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL,
                                  "dimension %zu of a tensor with data is not a number", i);
        out->dims.items[i] = dim->dim_value;
    }
    out->data_type = tensor->elem_type;
    if (out->data_type != CM_UNDEFINED)
        cm_msg_set(&out->msg, CM_TENSOR_DATA_TYPE);
    return CM_OK;
}

enum cm_status cm_parse_tensor_data(struct cm_lexer *lex, const struct cm_type_proto *type,
                                    struct cm_tensor_proto *out)
{
    CM_TRY(set_type(lex, type, out));
    if (cm_lex_peek(lex) != '[')
        return parse_elements(lex, out);
    CM_TRY(cm_parse_entries(lex, &out->external_data));
    if (out->external_data.count)
        cm_msg_set(&out->msg, CM_TENSOR_EXTERNAL_DATA);
    out->data_location = CM_LOCATION_EXTERNAL;
    cm_msg_set(&out->msg, CM_TENSOR_DATA_LOCATION);
    return CM_OK;
}

bool cm_at_tensor_rest(struct cm_lexer *lex)
{
    const int next = cm_lex_peek(lex);

    return next == '{' || next == '=' || next == '<' || cm_lex_at_name(lex);
}

enum cm_status cm_parse_tensor_rest(struct cm_lexer *lex, const struct cm_type_proto *type,
                                    struct cm_tensor_proto *out)
{
    if (cm_lex_at_name(lex))
        CM_TRY(cm_lex_name(lex, "a name", &out->name));
    cm_msg_set(&out->msg, CM_TENSOR_NAME);
    CM_TRY(cm_parse_notes(lex, &cm_tensor_info, out, CM_NOTES_TENSOR));
    cm_lex_take(lex, '=');
    return cm_parse_tensor_data(lex, type, out);
}

bool cm_at_sparse(struct cm_lexer *lex)
{
    return cm_str_is(cm_lex_peek_word(lex), "sparse_tensor") && cm_lex_peek_after_word(lex) == '[';
}

static enum cm_status parse_part(struct cm_lexer *lex, struct cm_sparse_proto *sparse, int field,
                                 struct cm_tensor_proto **member)
{
    struct cm_type_proto *const type = CM_NEW(lex->arena, struct cm_type_proto);
    struct cm_tensor_proto *const out = CM_NEW(lex->arena, struct cm_tensor_proto);

    CM_TRY(cm_parse_type(lex, type));
    CM_TRY(cm_parse_tensor_rest(lex, type, out));
    *member = out;
    cm_msg_set(&sparse->msg, field);
    return CM_OK;
}

/* sparse_tensor[dims] {values, indices} */
enum cm_status cm_parse_sparse(struct cm_lexer *lex, struct cm_sparse_proto *out)
{
    struct {
        CM_ARRAY(int64_t);
    } dims = {0};

    cm_lex_take_word(lex, "sparse_tensor");
    CM_TRY(cm_lex_expect(lex, '['));
    if (cm_lex_peek(lex) != ']') {
        do {
            CM_TRY(cm_lex_int64(lex, CM_ADD(lex, &dims)));
        } while (cm_lex_take(lex, ','));
        CM_SET_LIST(out, dims, CM_SPARSE_DIMS, dims);
    }
    CM_TRY(cm_lex_expect(lex, ']'));
    CM_TRY(cm_lex_expect(lex, '{'));
    if (cm_lex_peek(lex) != ',' && cm_lex_peek(lex) != '}')
        CM_TRY(parse_part(lex, out, CM_SPARSE_VALUES, &out->values));
    if (cm_lex_take(lex, ','))
        CM_TRY(parse_part(lex, out, CM_SPARSE_INDICES, &out->indices));
    return cm_lex_expect(lex, '}');
}
