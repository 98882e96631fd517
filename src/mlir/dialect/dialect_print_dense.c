/* Elements of tensors as MLIR writes them: one for all where they are equal, a list of a few, the
 * bytes of many. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_print.h"
#include "tensor/bits.h"

enum { LISTED = 100 }; /* elements, as MLIR has it; more are printed as bytes */

/* The bits of a number, or of one half of a complex one. */
static uint64_t bits_of(const struct cm_tensor *t, int64_t i)
{
    const int bits = cm_dtype_info(t->type)->bits;
    const size_t size = (size_t)bits / 8;
    uint64_t out = 0;

    if (bits < 8)
        return cm_packed_get(bits, t->data, i);
    memcpy(&out, (const char *)t->data + (size_t)i * size, size);
    return out;
}

static void put_number(struct cm_dialect_out *o, const struct cm_tensor *t, int64_t i)
{
    switch (cm_dtype_info(t->type)->kind) {
    case CM_CLASS_BOOL:
        cm_put_text(&o->pen, cm_tensor_int(t, i) ? "true" : "false");
        break;
    case CM_CLASS_SIGNED:
        cm_put_int64(&o->pen, cm_tensor_int(t, i));
        break;
    case CM_CLASS_UNSIGNED:
        cm_put_uint64(&o->pen, bits_of(t, i));
        break;
    default:
        cm_dialect_put_real(o, t->type, cm_tensor_real(t, i), bits_of(t, i));
    }
}

/* A complex tensor as its parts, two for each element. */
static struct cm_tensor parts_of(const struct cm_tensor *t)
{
    struct cm_tensor parts = cm_tensor_borrow(t->type == CM_COMPLEX64 ? CM_FLOAT : CM_DOUBLE,
                                              &CM_SHAPE(2 * cm_tensor_count(t)), t->data);
    return parts;
}

static void put_element(struct cm_dialect_out *o, const struct cm_tensor *t, int64_t i)
{
    if (t->type == CM_STRING) {
        cm_dialect_put_quoted(o, ((const struct cm_str *)t->data)[i]);
    } else if (cm_dtype_info(t->type)->kind == CM_CLASS_COMPLEX) {
        const struct cm_tensor parts = parts_of(t);
        cm_put_text(&o->pen, "(");
        put_number(o, &parts, 2 * i);
        cm_put_text(&o->pen, ",");
        put_number(o, &parts, 2 * i + 1);
        cm_put_text(&o->pen, ")");
    } else {
        put_number(o, t, i);
    }
}

static void put_nested(struct cm_dialect_out *o, const struct cm_tensor *t, int axis, int64_t *next)
{
    if (axis == t->shape.rank) {
        put_element(o, t, (*next)++);
        return;
    }
    cm_put_text(&o->pen, "[");
    for (int64_t i = 0; i < t->shape.dims[axis] && o->pen.status == CM_OK; i++) {
        if (i)
            cm_put_text(&o->pen, ", ");
        put_nested(o, t, axis + 1, next);
    }
    cm_put_text(&o->pen, "]");
}

static bool all_equal(const struct cm_tensor *t)
{
    const int64_t count = cm_tensor_count(t);
    const int bits = cm_dtype_info(t->type)->bits;
    const size_t size = (size_t)bits / 8;

    if (t->type == CM_STRING) {
        const struct cm_str *const strings = t->data;
        for (int64_t i = 1; i < count; i++)
            if (!cm_str_equal(strings[0], strings[i]))
                return false;
        return true;
    }
    if (bits < 8) {
        for (int64_t i = 1; i < count; i++)
            if (bits_of(t, i) != bits_of(t, 0))
                return false;
        return true;
    }
    return memcmp(t->data, (const char *)t->data + size, (size_t)(count - 1) * size) == 0;
}

static void put_hex(struct cm_dialect_out *o, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[1024];

    while (size) {
        const size_t part = size < sizeof text / 2 ? size : sizeof text / 2;
        for (size_t i = 0; i < part; i++) {
            text[2 * i] = digits[bytes[i] >> 4];
            text[2 * i + 1] = digits[bytes[i] & 15];
        }
        cm_put(&o->pen, text, 2 * part);
        bytes += part;
        size -= part;
    }
}

/* MLIR keeps numbers of fewer than 8 bits in a byte each, but eight bools to a byte. */
static void put_bytes(struct cm_dialect_out *o, const struct cm_tensor *t)
{
    const int64_t count = cm_tensor_count(t);

    cm_put_text(&o->pen, "\"0x");
    if (t->type == CM_BOOL) {
        for (int64_t i = 0; i < count; i += 8) {
            uint8_t byte = 0;
            for (int b = 0; b < 8 && i + b < count; b++)
                byte |= (uint8_t)(((const uint8_t *)t->data)[i + b] << b);
            put_hex(o, &byte, 1);
        }
    } else if (cm_dtype_info(t->type)->bits < 8) {
        for (int64_t i = 0; i < count; i++) {
            const uint8_t byte = (uint8_t)bits_of(t, i);
            put_hex(o, &byte, 1);
        }
    } else {
        put_hex(o, t->data, cm_tensor_bytes(t));
    }
    cm_put_text(&o->pen, "\"");
}

void cm_dialect_put_dense(struct cm_dialect_out *o, const struct cm_tensor *t)
{
    const int64_t count = cm_tensor_count(t);
    const size_t elide = o->options->elide;
    int64_t next = 0;

    if (elide && (uint64_t)count > elide) {
        cm_put_text(&o->pen, "dense_resource<__elided__");
    } else {
        cm_put_text(&o->pen, "dense<");
        if (count == 0)
            ;
        else if (all_equal(t))
            put_element(o, t, 0);
        else if (count > LISTED && t->type != CM_STRING)
            put_bytes(o, t);
        else
            put_nested(o, t, 0, &next);
    }
    cm_put_text(&o->pen, "> : tensor<");
    for (int i = 0; i < t->shape.rank; i++) {
        cm_put_int64(&o->pen, t->shape.dims[i]);
        cm_put_text(&o->pen, "x");
    }
    cm_put_text(&o->pen, cm_dialect_element(t->type));
    cm_put_text(&o->pen, ">");
}
