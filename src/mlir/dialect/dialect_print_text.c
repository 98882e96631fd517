/* Strings, numbers, keys and types of the ONNX dialect. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_print.h"
#include "onnx/syntax_names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void cm_dialect_put_quoted(struct cm_dialect_out *o, struct cm_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t done = 0;

    cm_put(&o->pen, "\"", 1);
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        char escape[3] = {'\\', digits[c >> 4], digits[c & 15]};

        if (c >= ' ' && c < 127 && c != '"' && c != '\\')
            continue;
        cm_put(&o->pen, text.data + done, i - done);
        if (c == '\\')
            cm_put(&o->pen, "\\\\", 2);
        else
            cm_put(&o->pen, escape, 3);
        done = i + 1;
    }
    if (text.size)
        cm_put(&o->pen, text.data + done, text.size - done);
    cm_put(&o->pen, "\"", 1);
}

static bool is_bare_key(struct cm_str key)
{
    for (size_t i = 0; i < key.size; i++) {
        const char c = key.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.' || c == '$')))
            return false;
    }
    return key.size > 0;
}

void cm_dialect_put_key_str(struct cm_dialect_dict *dict, struct cm_str key)
{
    struct cm_printer *pen = &dict->out->pen;

    cm_put_text(pen, dict->any ? ", " : "{");
    dict->any = true;
    if (dict->prefix[0])
        key = cm_arena_printf(dict->out->arena, "%s%.*s", dict->prefix, (int)key.size, key.data);
    if (is_bare_key(key))
        cm_put_str(pen, key);
    else
        cm_dialect_put_quoted(dict->out, key);
}

void cm_dialect_put_key(struct cm_dialect_dict *dict, const char *key)
{
    cm_dialect_put_key_str(dict, cm_str(key));
    cm_put_text(&dict->out->pen, " = ");
}

void cm_dialect_put_symbol(struct cm_dialect_out *o, struct cm_str name)
{
    if (is_bare_key(name))
        cm_put_str(&o->pen, name);
    else
        cm_dialect_put_quoted(o, name);
}

void cm_dialect_end(struct cm_dialect_dict *dict)
{
    cm_put_text(&dict->out->pen, dict->any ? "}" : "{}");
}

/* A number of so many digits, d.ddd times ten to the exponent; without a point, which would follow
 * the locale. */
struct digits {
    char text[24];
    int count, exponent;
};

static struct digits digits_of(double value, int count)
{
    struct digits out = {.count = 0};
    char text[64];

    snprintf(text, sizeof text, "%.*e", count - 1, fabs(value));
    const char *const e = strchr(text, 'e');
    for (const char *p = text; p < e && out.count < count; p++)
        if (*p >= '0' && *p <= '9')
            out.text[out.count++] = *p;
    out.exponent = (int)strtol(e + 1, NULL, 10);
    return out;
}

/* Does an element of this type that reads these digits have the size of value? */
static bool reads_back(enum cm_dtype type, const struct digits *d, double value)
{
    char text[64];
    double element = 0;

    snprintf(text, sizeof text, "%.*se%d", d->count, d->text, d->exponent - d->count + 1);
    if (type == CM_FLOAT)
        return (double)strtof(text, NULL) == fabs(value);
    if (type == CM_DOUBLE)
        return strtod(text, NULL) == fabs(value);
    const struct cm_tensor one = cm_tensor_borrow(type, &CM_SCALAR, &element);
    cm_tensor_set_real(&one, 0, copysign(strtod(text, NULL), value));
    return cm_tensor_real(&one, 0) == value;
}

/* "d.dddddde-05", or "d.dddE-5" in which zeros at the end are left out. */
static void put_scientific(struct cm_printer *pen, const struct digits *d, const char *exponent)
{
    char text[16];

    cm_put(pen, d->text, 1);
    cm_put(pen, ".", 1);
    cm_put(pen, d->count > 1 ? d->text + 1 : "0", d->count > 1 ? (size_t)d->count - 1 : 1);
    snprintf(text, sizeof text, exponent[0] == 'e' ? "e%+03d" : "E%+d", d->exponent);
    cm_put_text(pen, text);
}

/* The digits that always suffice, in the plain or the scientific form, as LLVM chooses. */
static void put_all_digits(struct cm_printer *pen, struct digits d)
{
    while (d.count > 1 && d.text[d.count - 1] == '0')
        d.count--;
    if (d.exponent > d.count + 2 || d.exponent < -3) {
        put_scientific(pen, &d, "E");
        return;
    }
    if (d.exponent < 0) {
        cm_put(pen, "0.000", (size_t)(1 - d.exponent));
        cm_put(pen, d.text, (size_t)d.count);
        return;
    }
    for (int i = 0; i <= d.exponent; i++)
        cm_put(pen, i < d.count ? &d.text[i] : "0", 1);
    cm_put(pen, ".", 1);
    if (d.count > d.exponent + 1)
        cm_put(pen, d.text + d.exponent + 1, (size_t)(d.count - d.exponent - 1));
    else
        cm_put(pen, "0", 1);
}

void cm_dialect_put_real(struct cm_dialect_out *o, enum cm_dtype type, double value, uint64_t bits)
{
    const int width = cm_dtype_info(type)->bits;
    struct digits d;
    char text[32];

    if (isfinite(value)) {
        d = digits_of(value, 7);
        const bool few = reads_back(type, &d, value);
        if (few || type == CM_FLOAT || type == CM_DOUBLE) {
            cm_put_text(&o->pen, signbit(value) ? "-" : "");
            if (few)
                put_scientific(&o->pen, &d, "e");
            else
                put_all_digits(&o->pen, digits_of(value, type == CM_FLOAT ? 9 : 17));
            return;
        }
    }
    snprintf(text, sizeof text, "0x%0*" PRIX64, (width + 3) / 4, bits);
    cm_put_text(&o->pen, text);
}

void cm_dialect_put_f32(struct cm_dialect_out *o, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    cm_dialect_put_real(o, CM_FLOAT, (double)value, bits);
    cm_put_text(&o->pen, " : f32");
}

struct type_text {
    struct cm_arena *arena;
    CM_ARRAY(char);
};

static void add(struct type_text *text, const char *more)
{
    for (; *more; more++)
        *CM_PUSH(text->arena, text) = *more;
}

static void add_dim(struct type_text *text, int64_t dim)
{
    char number[32];

    snprintf(number, sizeof number, "%" PRId64 "x", dim);
    add(text, number);
}

static void add_tensor(struct type_text *text, const struct cm_tensor_type_proto *type)
{
    const char *const element = cm_dialect_element(type->elem_type);

    if (!element) {
        add(text, CM_DIALECT_UNKNOWN);
        return;
    }
    add(text, "tensor<");
    if (!type->shape)
        add(text, "*x");
    for (size_t i = 0; type->shape && i < type->shape->dim.count; i++) {
        const struct cm_dim_proto *const dim = &type->shape->dim.items[i];
        if (cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value >= 0)
            add_dim(text, dim->dim_value);
        else
            add(text, "?x");
    }
    add(text, element);
    add(text, ">");
}

static void add_type(struct type_text *text, const struct cm_type_proto *type, int depth);

static void add_wrapped(struct type_text *text, const char *word, const struct cm_type_proto *type,
                        int depth)
{
    add(text, word);
    add_type(text, type, depth);
    add(text, ">");
}

static void add_type(struct type_text *text, const struct cm_type_proto *type, int depth)
{
    if (!type || depth > CM_SYNTAX_DEPTH) {
        add(text, CM_DIALECT_UNKNOWN);
    } else if (type->tensor_type) {
        add_tensor(text, type->tensor_type);
    } else if (type->sequence_type) {
        add_wrapped(text, "!onnx.Seq<", type->sequence_type->elem_type, depth + 1);
    } else if (type->optional_type) {
        add_wrapped(text, "!onnx.Opt<", type->optional_type->elem_type, depth + 1);
    } else if (type->sparse_tensor_type) {
        add(text, "!onnx.Sparse<");
        add_tensor(text, type->sparse_tensor_type);
        add(text, ">");
    } else if (type->map_type && cm_dialect_element(type->map_type->key_type)) {
        add(text, "!onnx.Map<");
        add(text, cm_dialect_element(type->map_type->key_type));
        add_wrapped(text, ", ", type->map_type->value_type, depth + 1);
    } else {
        add(text, CM_DIALECT_UNKNOWN);
    }
}

struct cm_str cm_dialect_type_text(struct cm_dialect_out *o, const struct cm_type_proto *type)
{
    struct type_text text = {.arena = o->arena};

    add_type(&text, type, 0);
    return (struct cm_str){text.items, text.count};
}

struct cm_str cm_dialect_tensor_type(struct cm_dialect_out *o, const struct cm_tensor_proto *tensor)
{
    const char *const element = cm_dialect_element(tensor->data_type);
    struct type_text text = {.arena = o->arena};

    if (!element)
        return CM_STR(CM_DIALECT_UNKNOWN);
    add(&text, "tensor<");
    for (size_t i = 0; i < tensor->dims.count; i++) {
        if (tensor->dims.items[i] < 0)
            return CM_STR(CM_DIALECT_UNKNOWN);
        add_dim(&text, tensor->dims.items[i]);
    }
    add(&text, element);
    add(&text, ">");
    return (struct cm_str){text.items, text.count};
}

static bool dim_is_whole(const struct cm_dim_proto *dim, bool may_have_names)
{
    const uint32_t has = dim->msg.has;

    if (has == 0)
        return true;
    if (has == CM_BIT(CM_DIM_VALUE))
        return dim->dim_value >= 0;
    return may_have_names && has == CM_BIT(CM_DIM_PARAM) && dim->dim_param.size &&
           !memchr(dim->dim_param.data, ',', dim->dim_param.size);
}

static bool tensor_is_whole(const struct cm_tensor_type_proto *type, bool may_have_names)
{
    if (!type || !cm_msg_has(&type->msg, CM_TENSOR_TYPE_ELEM_TYPE) ||
        !cm_dialect_element(type->elem_type))
        return false;
    for (size_t i = 0; type->shape && i < type->shape->dim.count; i++) {
        if (!dim_is_whole(&type->shape->dim.items[i], may_have_names))
            return false;
    }
    return true;
}

static bool type_is_whole(const struct cm_type_proto *type, bool may_have_names, int depth)
{
    if (!type || depth > CM_SYNTAX_DEPTH)
        return false;
    switch (type->msg.has) {
    case CM_BIT(CM_TYPE_TENSOR_TYPE):
        return tensor_is_whole(type->tensor_type, may_have_names);
    case CM_BIT(CM_TYPE_SPARSE_TENSOR_TYPE):
        return tensor_is_whole(type->sparse_tensor_type, false);
    case CM_BIT(CM_TYPE_SEQUENCE_TYPE):
        return type_is_whole(type->sequence_type->elem_type, false, depth + 1);
    case CM_BIT(CM_TYPE_OPTIONAL_TYPE):
        return type_is_whole(type->optional_type->elem_type, false, depth + 1);
    case CM_BIT(CM_TYPE_MAP_TYPE):
        return cm_dialect_element(type->map_type->key_type) &&
               type_is_whole(type->map_type->value_type, false, depth + 1);
    default:
        return false;
    }
}

bool cm_dialect_type_is_whole(const struct cm_type_proto *type)
{
    return type_is_whole(type, true, 0);
}

struct cm_str cm_dialect_dim_params(struct cm_dialect_out *o, const struct cm_type_proto *type)
{
    const struct cm_shape_proto *const shape =
        type && type->tensor_type ? type->tensor_type->shape : NULL;
    struct type_text text = {.arena = o->arena};

    for (size_t i = 0; shape && i < shape->dim.count; i++) {
        const struct cm_dim_proto *const dim = &shape->dim.items[i];
        char number[32];

        if (!cm_msg_has(&dim->msg, CM_DIM_PARAM))
            continue;
        snprintf(number, sizeof number, "%s%zu:", text.count ? "," : "", i);
        add(&text, number);
        for (size_t c = 0; c < dim->dim_param.size; c++)
            *CM_PUSH(o->arena, &text) = dim->dim_param.data[c];
    }
    return (struct cm_str){text.items, text.count};
}
