/* Pieces of the bodies of quantized operators. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

enum cm_dtype cm_quantized_type(const struct cm_body *b, cm_value x)
{
    const struct cm_type *type = x ? cm_builder_type(&b->build, x) : NULL;
    return type ? type->dtype : CM_UNDEFINED;
}

cm_value cm_quantized_number(struct cm_body *b, int i)
{
    const cm_value given = cm_body_input(b, i);
    if (!given)
        return cm_emit_scalar(b, CM_FLOAT, 0);
    const cm_value real = cm_emit_cast(b, given, CM_FLOAT);
    const struct cm_type *type = real ? cm_builder_type(&b->build, real) : NULL;
    if (!type || type->rank == 0)
        return real;
    return cm_emit(b, "Reshape", real, cm_build_int64s(&b->build, 0, NULL));
}

cm_value cm_quantized_reals(struct cm_body *b, int x, int scale, int zero)
{
    return cm_emit(b, "DequantizeLinear", cm_body_input(b, x), cm_body_input(b, scale),
                   cm_body_input(b, zero));
}

cm_value cm_quantized_codes(struct cm_body *b, cm_value reals, int scale, int zero,
                            enum cm_dtype type)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    return cm_emit_with(b, "QuantizeLinear",
                        CM_ATTRIBUTES(cm_attr_int(arena, "output_dtype", type)), reals,
                        cm_body_input(b, scale), cm_body_input(b, zero));
}

cm_value cm_quantized_finish(struct cm_body *b, cm_value v, cm_value zero,
                             enum cm_quantized_rounding rounding, enum cm_dtype type)
{
    const bool is_signed = type == CM_INT8;
    if (rounding == CM_ROUND_FIRST)
        v = cm_emit(b, "Round", v);
    v = cm_emit(b, "Add", v, zero);
    if (rounding == CM_ROUND_LAST)
        v = cm_emit(b, "Round", v);
    v = cm_emit(b, "Clip", v, cm_emit_scalar(b, CM_FLOAT, is_signed ? -128 : 0),
                cm_emit_scalar(b, CM_FLOAT, is_signed ? 127 : 255));
    return cm_emit_cast(b, v, type);
}

static cm_value permuted(struct cm_body *b, cm_value x, int rank, const int64_t *order)
{
    const struct cm_attribute_proto perm =
        cm_attr_ints(cm_builder_arena(&b->build), "perm", (size_t)rank, order);
    return cm_emit_with(b, "Transpose", CM_ATTRIBUTES(perm), x);
}

cm_value cm_quantized_channels_second(struct cm_body *b, cm_value x, int rank)
{
    int64_t order[CM_MAX_RANK] = {0, rank - 1};
    for (int i = 2; i < rank; i++)
        order[i] = i - 1;
    return permuted(b, x, rank, order);
}

cm_value cm_quantized_channels_last(struct cm_body *b, cm_value x, int rank)
{
    int64_t order[CM_MAX_RANK] = {0};
    for (int i = 1; i < rank - 1; i++)
        order[i] = i + 1;
    order[rank - 1] = 1;
    return permuted(b, x, rank, order);
}

size_t cm_quantized_attributes(const struct cm_body *b, const char *except,
                               struct cm_attribute_proto *out, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < b->node->n_attributes && count < size; i++)
        if (!cm_str_is(b->node->attributes[i].name, except))
            out[count++] = b->node->attributes[i];
    return count;
}
