/* Products with coded weights as graphs: codes become floats, then comes MatMul. Gradients and
 * other runtimes use them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/nbits_form.h"
#include "ops/microsoft/quantized.h"
#include "ops/microsoft/quantized_weights.h"

/* Bytes of shape (rows, columns) as codes (rows, columns * 8 / bits), of which the first `count`
 * are kept. */
static cm_value unpacked(struct cm_body *b, cm_value bytes, int64_t rows, int64_t columns,
                         int64_t bits, bool high_first, int64_t count)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const int64_t parts = 8 / bits;
    cm_value codes = bytes;
    if (parts > 1) {
        uint8_t shifts[8];
        for (int64_t i = 0; i < parts; i++)
            shifts[i] = (uint8_t)(bits * (high_first ? parts - 1 - i : i));
        const struct cm_tensor by = {
            .type = CM_UINT8, .shape = {.rank = 1, .dims = {parts}}, .data = shifts};
        codes = cm_emit(b, "Reshape", bytes, cm_emit_int64s(b, rows, columns, 1));
        codes = cm_emit_with(b, "BitShift",
                             CM_ATTRIBUTES(cm_attr_str(arena, "direction", CM_STR("RIGHT"))), codes,
                             cm_build_tensor(&b->build, &by));
        codes = cm_emit(b, "Mod", codes, cm_emit_scalar(b, CM_UINT8, (double)(1 << bits)));
    }
    codes = cm_emit(b, "Reshape", codes, cm_emit_int64s(b, rows, columns * parts));
    if (count == columns * parts)
        return codes;
    return cm_emit(b, "Slice", codes, cm_emit_int64s(b, 0), cm_emit_int64s(b, count),
                   cm_emit_int64s(b, 1));
}

/* `a`, floats, as cm_nbits_round gives it. */
static cm_value rounded(struct cm_body *b, cm_value a, const struct cm_coded_weights *w)
{
    const int64_t columns = w->blocks * w->block;
    const cm_value most_code = cm_emit_scalar(b, CM_FLOAT, 127);
    const cm_value zero = cm_emit_scalar(b, CM_FLOAT, 0);
    cm_value rows = cm_emit(b, "Reshape", a, cm_emit_int64s(b, -1, w->k));
    if (columns != w->k)
        rows = cm_emit(b, "Pad", rows, cm_emit_int64s(b, 0, 0, 0, columns - w->k));
    const cm_value x = cm_emit(b, "Reshape", rows, cm_emit_int64s(b, -1, w->blocks, w->block));
    const cm_value most = cm_emit(b, "ReduceMax", cm_emit(b, "Abs", x), cm_emit_int64s(b, 2));
    const cm_value inverse = cm_emit(b, "Where", cm_emit(b, "Equal", most, zero), zero,
                                     cm_emit(b, "Div", most_code, most));
    const cm_value codes = cm_emit(b, "Round", cm_emit(b, "Mul", x, inverse));
    const cm_value y = cm_emit(b, "Mul", codes, cm_emit(b, "Div", most, most_code));
    rows = cm_emit(b, "Reshape", y, cm_emit_int64s(b, -1, columns));
    if (columns != w->k)
        rows = cm_emit(b, "Slice", rows, cm_emit_int64s(b, 0), cm_emit_int64s(b, w->k),
                       cm_emit_int64s(b, 1));
    return cm_emit(b, "Reshape", rows, cm_emit(b, "Shape", a));
}

/* Floats `a` times the transpose of weights (n, k), plus bias, in the type of the left operand. */
static enum cm_status return_product(struct cm_body *b, cm_value a, cm_value weights,
                                     bool transposed, cm_value bias)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const struct cm_attribute_proto perm = cm_attr_ints(arena, "perm", 2, (const int64_t[]){1, 0});
    if (transposed)
        weights = cm_emit_with(b, "Transpose", CM_ATTRIBUTES(perm), weights);
    cm_value y = cm_emit(b, "MatMul", a, weights);
    if (bias)
        y = cm_emit(b, "Add", y, cm_emit_cast(b, bias, CM_FLOAT));
    return cm_body_return(b, 0, cm_emit_cast(b, y, cm_quantized_type(b, cm_body_input(b, 0))));
}

/* What belongs to blocks, (n, blocks), for each of the k columns: by place, or by g_idx. */
static cm_value by_column(struct cm_body *b, cm_value per_block, const struct cm_coded_weights *w,
                          cm_value g_idx)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    if (g_idx) {
        const cm_value columns = cm_emit(b, "Slice", g_idx, cm_emit_int64s(b, 0),
                                         cm_emit_int64s(b, w->k), cm_emit_int64s(b, 0));
        return cm_emit_with(b, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), per_block,
                            columns);
    }
    const cm_value apart = cm_emit(b, "Reshape", per_block, cm_emit_int64s(b, w->n, w->blocks, 1));
    const cm_value spread =
        cm_emit(b, "Expand", apart, cm_emit_int64s(b, w->n, w->blocks, w->block));
    const cm_value rows =
        cm_emit(b, "Reshape", spread, cm_emit_int64s(b, w->n, w->blocks * w->block));
    if (w->blocks * w->block == w->k)
        return rows;
    return cm_emit(b, "Slice", rows, cm_emit_int64s(b, 0), cm_emit_int64s(b, w->k),
                   cm_emit_int64s(b, 1));
}

enum cm_status cm_matmulnbits_body(struct cm_body *b)
{
    enum { A, B, SCALES, ZEROS, G_IDX, BIAS };
    struct cm_coded_weights w;
    CM_TRY(cm_coded_weights_read(b->node, &w, b->build.err));
    const cm_value given = cm_body_input(b, ZEROS), g_idx = cm_body_input(b, G_IDX);
    const cm_value sizes = cm_emit_int64s(b, w.n, w.blocks);
    cm_value zeros = cm_emit_scalar(b, CM_FLOAT, (double)(1 << (w.bits - 1)));
    if (given) {
        zeros = cm_quantized_type(b, given) == CM_UINT8
                    ? unpacked(b, given, w.n, w.zero_bytes, w.bits, false, w.blocks)
                    : cm_emit(b, "Reshape", given, sizes);
        zeros = by_column(b, cm_emit_cast(b, zeros, CM_FLOAT), &w, g_idx);
    }
    const cm_value scales = by_column(
        b, cm_emit(b, "Reshape", cm_emit_cast(b, cm_body_input(b, SCALES), CM_FLOAT), sizes), &w,
        g_idx);
    const cm_value codes = unpacked(b, cm_body_input(b, B), w.n, w.row_bytes, w.bits, false, w.k);
    const cm_value weights =
        cm_emit(b, "Mul", cm_emit(b, "Sub", cm_emit_cast(b, codes, CM_FLOAT), zeros), scales);
    const cm_value a = cm_emit_cast(b, cm_body_input(b, A), CM_FLOAT);
    return return_product(b, cm_nbits_rounds(b->node) ? rounded(b, a, &w) : a, weights, true,
                          cm_body_input(b, BIAS));
}

/* absmax for each of the n * k numbers, in a row. */
static cm_value absmax_of_each(struct cm_body *b, const struct cm_coded_weights *w)
{
    const cm_value absmax = cm_emit_cast(b, cm_body_input(b, 2), CM_FLOAT);
    const int64_t count = w->n * w->k;
    const cm_value apart = cm_emit(b, "Reshape", absmax, cm_emit_int64s(b, w->blocks, 1));
    const cm_value spread = cm_emit(b, "Expand", apart, cm_emit_int64s(b, w->blocks, w->block));
    const cm_value all = cm_emit(b, "Reshape", spread, cm_emit_int64s(b, w->blocks * w->block));
    if (w->blocks * w->block == count)
        return all;
    return cm_emit(b, "Slice", all, cm_emit_int64s(b, 0), cm_emit_int64s(b, count),
                   cm_emit_int64s(b, 0));
}

enum cm_status cm_matmulbnb4_body(struct cm_body *b)
{
    struct cm_coded_weights w;
    CM_TRY(cm_coded_weights_read(b->node, &w, b->build.err));
    const int64_t count = w.n * w.k;
    float numbers[16];
    memcpy(numbers, cm_bnb4_numbers[cm_node_int(b->node, "quant_type")], sizeof numbers);
    const struct cm_tensor table = {
        .type = CM_FLOAT, .shape = {.rank = 1, .dims = {16}}, .data = numbers};
    const cm_value codes = unpacked(b, cm_body_input(b, 1), 1, w.bytes, 4, true, count);
    const cm_value flat = cm_emit(b, "Reshape", codes, cm_emit_int64s(b, count));
    const cm_value values =
        cm_emit(b, "Gather", cm_build_tensor(&b->build, &table), cm_emit_cast(b, flat, CM_INT32));
    const cm_value scaled = cm_emit(b, "Mul", values, absmax_of_each(b, &w));
    return return_product(b, cm_emit_cast(b, cm_body_input(b, 0), CM_FLOAT),
                          cm_emit(b, "Reshape", scaled, cm_emit_int64s(b, w.n, w.k)),
                          cm_node_int(b->node, "transB") != 0, 0);
}
