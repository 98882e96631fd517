/* Elements of tensors out of MLIR's text: dense<..>, whether a list, bytes or one for all. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_read.h"
#include "onnx/tensor_data.h"
#include "tensor/bits.h"

#include <stdlib.h>

/* Tensors that a single element stands for may take so much in one file; a file of ONNX could not
 * be larger either. */
#define FILL_LIMIT ((UINT64_C(1) << 31) - 1)

struct elements {
    struct cm_dialect_reader *r;
    struct cm_lexer lex; /* over the literal */
    struct cm_tensor tensor;
    int64_t next;
};

static enum cm_status fail(struct elements *e, enum cm_status status, const char *reason)
{
    cm_lex_peek(&e->lex);
    return cm_lex_fail_at(&e->lex, e->lex.at, status, "%s", reason);
}

static void set_bits(const struct cm_tensor *t, int64_t i, uint64_t bits)
{
    const int width = cm_dtype_info(t->type)->bits;

    if (width < 8)
        cm_packed_set(width, t->data, i, (uint8_t)bits);
    else
        memcpy((char *)t->data + (size_t)i * ((size_t)width / 8), &bits, (size_t)width / 8);
}

static enum cm_status read_real(struct elements *e, const struct cm_tensor *t, int64_t i)
{
    const int width = cm_dtype_info(t->type)->bits;
    struct cm_number_text number;
    double value;
    float single;

    CM_TRY(cm_dialect_number(&e->lex, &number));
    if (cm_str_starts(number.text, "0x")) {
        const struct cm_str text = cm_arena_str(e->r->arena, number.text);
        const unsigned long long bits = text.size > 18 ? 0 : strtoull(cm_str_text(text), NULL, 16);
        if (text.size > 18 || (width < 64 && bits >> width))
            return fail(e, CM_BAD_MODEL, "more bits than the element type has");
        set_bits(t, i, bits);
        return CM_OK;
    }
    if (t->type == CM_FLOAT) {
        CM_TRY(cm_number_to_float(&e->lex, &number, &single));
        ((float *)t->data)[i] = single;
        return CM_OK;
    }
    CM_TRY(cm_number_to_double(&e->lex, &number, &value));
    if (t->type == CM_DOUBLE)
        ((double *)t->data)[i] = value;
    else
        cm_tensor_set_real(t, i, value);
    return CM_OK;
}

static enum cm_status read_whole(struct elements *e, int64_t i)
{
    const struct cm_tensor *const t = &e->tensor;
    const struct cm_dtype_info *const info = cm_dtype_info(t->type);
    const bool is_signed = info->kind == CM_CLASS_SIGNED;
    const int width = t->type == CM_BOOL ? 1 : info->bits;
    struct cm_number_text number;
    int64_t value;
    uint64_t bits;

    if (t->type == CM_BOOL &&
        (cm_lex_take_word(&e->lex, "true") || cm_lex_take_word(&e->lex, "false"))) {
        ((uint8_t *)t->data)[i] = e->lex.at[-2] == 'u';
        return CM_OK;
    }
    CM_TRY(cm_dialect_number(&e->lex, &number));
    if (is_signed) {
        const int64_t most = (int64_t)(UINT64_MAX >> (65 - width));
        CM_TRY(cm_number_to_int64(&e->lex, &number, -most - 1, most, info->name, &value));
        bits = (uint64_t)value & UINT64_MAX >> (64 - width);
    } else {
        CM_TRY(
            cm_number_to_uint64(&e->lex, &number, UINT64_MAX >> (64 - width), info->name, &bits));
    }
    set_bits(t, i, bits);
    return CM_OK;
}

static enum cm_status read_complex(struct elements *e, int64_t i)
{
    const struct cm_tensor parts =
        cm_tensor_borrow(e->tensor.type == CM_COMPLEX64 ? CM_FLOAT : CM_DOUBLE,
                         &CM_SHAPE(2 * cm_tensor_count(&e->tensor)), e->tensor.data);

    CM_TRY(cm_dialect_expect(&e->lex, "("));
    CM_TRY(read_real(e, &parts, 2 * i));
    CM_TRY(cm_dialect_expect(&e->lex, ","));
    CM_TRY(read_real(e, &parts, 2 * i + 1));
    return cm_dialect_expect(&e->lex, ")");
}

static enum cm_status read_element(struct elements *e, int64_t i)
{
    if (e->tensor.type == CM_STRING)
        return cm_dialect_string(&e->lex, &((struct cm_str *)e->tensor.data)[i]);
    switch (cm_dtype_info(e->tensor.type)->kind) {
    case CM_CLASS_COMPLEX:
        return read_complex(e, i);
    case CM_CLASS_FLOAT:
        return read_real(e, &e->tensor, i);
    default:
        return read_whole(e, i);
    }
}

static enum cm_status read_nested(struct elements *e, int axis)
{
    const struct cm_shape *const shape = &e->tensor.shape;

    if (axis == shape->rank)
        return read_element(e, e->next++);
    CM_TRY(cm_dialect_expect(&e->lex, "["));
    for (int64_t i = 0; i < shape->dims[axis]; i++) {
        if (i)
            CM_TRY(cm_dialect_expect(&e->lex, ","));
        CM_TRY(read_nested(e, axis + 1));
    }
    return cm_dialect_expect(&e->lex, "]");
}

/* Gives all elements the value of the first. */
static void fill(const struct cm_tensor *t)
{
    const int64_t count = cm_tensor_count(t);

    for (int64_t done = 1; done < count;) {
        const int64_t part = done < count - done ? done : count - done;
        const size_t size = cm_dtype_size(t->type);
        if (size) {
            memcpy((char *)t->data + (size_t)done * size, t->data, (size_t)part * size);
            done += part;
        } else {
            cm_elements_copy(t->type, t->data, done++, t->data, 0, 1);
        }
    }
}

/* Digits without the quotes and "0x" into bytes of arena. */
static bool read_hex(struct cm_arena *arena, struct cm_str digits, struct cm_str *out)
{
    char *const bytes = cm_arena_alloc(arena, digits.size / 2 + 1);

    if (digits.size % 2)
        return false;
    for (size_t i = 0; i < digits.size / 2; i++) {
        const int high = cm_lex_hex_digit(digits.data[2 * i]),
                  low = cm_lex_hex_digit(digits.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (char)(high << 4 | low);
    }
    *out = (struct cm_str){bytes, digits.size / 2};
    return true;
}

/* The room that bytes of one element take in MLIR: of fewer than 8 bits a byte, but of bools a bit.
 */
static uint64_t bytes_there(enum cm_dtype type, int64_t count)
{
    const int bits = cm_dtype_info(type)->bits;

    return type == CM_BOOL ? ((uint64_t)count + 7) / 8
           : bits < 8      ? (uint64_t)count
                           : (uint64_t)count * ((uint64_t)bits / 8);
}

static void unpack(const struct cm_tensor *t, struct cm_str bytes)
{
    const int bits = cm_dtype_info(t->type)->bits;
    const int64_t count = cm_tensor_count(t);

    if (bits >= 8 && t->type != CM_BOOL) {
        memcpy(t->data, bytes.data, bytes.size); /* of one */
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint8_t byte = (uint8_t)bytes.data[t->type == CM_BOOL ? i / 8 : i];
        set_bits(t, i, t->type == CM_BOOL ? byte >> i % 8 & 1 : byte & ((1U << bits) - 1));
    }
}

/* How the values are written. */
enum form { NOTHING, LIST, BYTES, ONE };

static enum form form_of(struct elements *e)
{
    const int next = cm_lex_peek(&e->lex);
    const struct cm_str rest = {e->lex.at, (size_t)(e->lex.end - e->lex.at)};

    if (next < 0)
        return NOTHING;
    if (next == '[')
        return LIST;
    return cm_str_starts(rest, "\"0x") && e->tensor.type != CM_STRING ? BYTES : ONE;
}

/* Sizes come from the type, and must go with the text before memory is taken for them. */
static enum cm_status make_room(struct elements *e, uint64_t written, bool one)
{
    const int64_t count = cm_tensor_count(&e->tensor);
    size_t bytes;

    if (!cm_dtype_bytes(e->tensor.type, count, &bytes))
        return fail(e, CM_LIMIT, "the tensor has too many elements");
    if (one && (e->r->filled += bytes) > FILL_LIMIT)
        return fail(e, CM_LIMIT, "tensors of one repeated element take more than 2 GiB");
    if (!one && (uint64_t)count > written)
        return fail(e, CM_BAD_MODEL, "the type has more elements than there are values");
    e->tensor.data = cm_arena_alloc(e->r->arena, bytes + 8);
    return CM_OK;
}

static enum cm_status read_bytes(struct elements *e, struct cm_str hex)
{
    const int64_t count = cm_tensor_count(&e->tensor);
    struct cm_str bytes;

    if (!read_hex(e->r->arena, hex, &bytes))
        return fail(e, CM_BAD_MODEL, "expected pairs of hexadecimal digits after 0x");
    const bool all = bytes.size == bytes_there(e->tensor.type, count);
    const bool one = !all && count > 1 && bytes.size == bytes_there(e->tensor.type, 1);
    if (all && cm_dtype_info(e->tensor.type)->bits >= 8 && e->tensor.type != CM_BOOL) {
        e->tensor.data = (char *)(uintptr_t)bytes.data; /* they are the elements as they are */
        return CM_OK;
    }
    if (!all && !one)
        return cm_lex_fail_at(&e->lex, e->lex.at, CM_BAD_MODEL,
                              "%zu bytes of values, but the type needs %llu", bytes.size,
                              (unsigned long long)bytes_there(e->tensor.type, count));
    CM_TRY(make_room(e, bytes.size * 8, one));
    if (one) {
        struct cm_tensor first = e->tensor;
        first.shape = CM_SCALAR;
        unpack(&first, bytes);
        fill(&e->tensor);
    } else {
        unpack(&e->tensor, bytes);
    }
    return CM_OK;
}

static enum cm_status read_literal(struct elements *e)
{
    const uint64_t size = (uint64_t)(e->lex.end - e->lex.at);
    const enum form form = form_of(e);
    struct cm_str text;

    switch (form) {
    case NOTHING:
        if (cm_tensor_count(&e->tensor) != 0)
            return fail(e, CM_BAD_MODEL, "values are missing");
        return make_room(e, 0, false);
    case LIST:
        CM_TRY(make_room(e, size, false));
        CM_TRY(read_nested(e, 0));
        break;
    case BYTES:
        CM_TRY(cm_dialect_string(&e->lex, &text));
        CM_TRY(read_bytes(e, (struct cm_str){text.data + 2, text.size - 2}));
        break;
    case ONE:
        CM_TRY(make_room(e, 1, true));
        if (cm_tensor_count(&e->tensor) == 0)
            return fail(e, CM_BAD_MODEL, "a value for a tensor without elements");
        CM_TRY(read_element(e, 0));
        fill(&e->tensor);
        break;
    }
    return cm_lex_peek(&e->lex) < 0 ? CM_OK : cm_lex_expected(&e->lex, "'>'");
}

/* dense_resource<name>: the bytes begin with four that say how they are aligned. */
static enum cm_status read_resource(struct elements *e, const struct cm_dialect_attr *attr)
{
    const uint64_t found = cm_map_get(&e->r->tree.resources, attr->text, 0);
    const struct cm_str *const hex = (const struct cm_str *)(uintptr_t)found;

    e->lex.at = e->lex.end = attr->at;
    if (!hex)
        return cm_dialect_refuse(e->r, attr->at, CM_BAD_MODEL,
                                 "the values of resource '%.*s' are not in the file",
                                 CM_STR_FMT(attr->text));
    if (e->tensor.type == CM_STRING || !cm_str_starts(*hex, "0x") || hex->size < 10)
        return cm_dialect_refuse(e->r, attr->at, CM_BAD_MODEL,
                                 "resource '%.*s' does not hold values", CM_STR_FMT(attr->text));
    return read_bytes(e, (struct cm_str){hex->data + 10, hex->size - 10});
}

static enum cm_status store(struct elements *e, struct cm_str storage, struct cm_tensor_proto *out)
{
    static const uint8_t one;
    struct cm_dialect_reader *const r = e->r;
    size_t room;

    if (!storage.size || e->tensor.type == CM_STRING)
        return cm_tensor_proto_store(out, r->arena, &e->tensor, r->tree.lex.err);
    if (cm_str_is(storage, "none") && cm_tensor_count(&e->tensor) == 0)
        return CM_OK;
    if (!cm_str_is(storage, "typed"))
        return fail(e, CM_BAD_MODEL, "storage is \"typed\", or \"none\" for an empty tensor");
    for (int f = 0; f < cm_tensor_info.n_fields; f++) {
        static const char *const names[] = {[CM_TYPED_NONE] = "",
                                            [CM_TYPED_FLOAT] = "float_data",
                                            [CM_TYPED_INT32] = "int32_data",
                                            [CM_TYPED_STRING] = "",
                                            [CM_TYPED_INT64] = "int64_data",
                                            [CM_TYPED_DOUBLE] = "double_data",
                                            [CM_TYPED_UINT64] = "uint64_data"};
        if (strcmp(cm_tensor_info.fields[f].name, names[cm_dtype_info(e->tensor.type)->field]) == 0)
            *cm_tensor_proto_packed(out, f) = (struct cm_packed){&one, 1};
    }
    if (!cm_tensor_proto_room(out, &e->tensor, &room))
        return fail(e, CM_LIMIT, "the tensor has too many elements");
    cm_tensor_proto_replace(out, &e->tensor, cm_arena_alloc(r->arena, room + 1));
    return CM_OK;
}

enum cm_status cm_dialect_read_dense(struct cm_dialect_reader *r,
                                     const struct cm_dialect_attr *attr, struct cm_str storage,
                                     struct cm_tensor_proto *out)
{
    struct elements *const e = CM_NEW(r->arena, struct elements);
    struct cm_shape shape;

    if (attr->kind != CM_DIALECT_ATTR_DENSE && attr->kind != CM_DIALECT_ATTR_RESOURCE)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected dense values");
    CM_TRY(cm_dialect_read_tensor_type(r, attr->at, &attr->type, out));
    if (cm_tensor_proto_shape(out, &shape, NULL) != CM_OK)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "the shape of the values is too large");
    e->r = r;
    e->lex = r->tree.lex;
    e->lex.at = attr->text.data;
    e->lex.end = attr->text.data + attr->text.size;
    e->tensor = cm_tensor_borrow((enum cm_dtype)out->data_type, &shape, NULL);
    CM_TRY(attr->kind == CM_DIALECT_ATTR_RESOURCE ? read_resource(e, attr) : read_literal(e));
    return store(e, storage, out);
}
