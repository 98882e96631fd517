/* Products with coded weights as graphs: codes become floats, then comes MatMul. Gradients and
 * other runtimes use them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/nbits_form.h"
#include "graph/node_formula.h"
#include "ops/microsoft/quantized_weights.h"

/* Bytes of shape (rows, columns) as codes (rows, columns * 8 / bits), of which the first `count`
 * are kept. */
static cm_value unpacked(struct cm_body *b, cm_value bytes, int64_t rows, int64_t columns,
                         int64_t bits, bool high_first, int64_t count)
{
    const int64_t parts = 8 / bits;
    uint8_t shifts[8];
    for (int64_t i = 0; i < parts; i++)
        shifts[i] = (uint8_t)(bits * (high_first ? parts - 1 - i : i));
    const struct cm_tensor by = {
        .type = CM_UINT8, .shape = {.rank = 1, .dims = {parts}}, .data = shifts};
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "bytes, shifts: rows = %lld; columns = %lld; parts = %lld; count = %lld;"
        "codes = parts == 1 ? bytes"
        "  : Mod(BitShift<direction='RIGHT'>(Reshape(bytes, [rows, columns, 1]), shifts), %d);"
        "all = Reshape(codes, [rows, columns * parts]);"
        "count == columns * parts ? all : Slice(all, [0], [count], [1])",
        (long long)rows, (long long)columns, (long long)parts, (long long)count, 1 << bits);
    return cm_emit_formula(b, cm_str_text(text), bytes,
                           parts > 1 ? cm_build_tensor(&b->build, &by) : 0);
}

/* A formula that knows how many blocks there are; K, N and block_size are attributes. */
static const char *with_blocks(struct cm_body *b, const char *names,
                               const struct cm_coded_weights *w, const char *text)
{
    return cm_str_text(cm_arena_printf(cm_builder_arena(&b->build), "%s: blocks = %lld; %s", names,
                                       (long long)w->blocks, text));
}

/* `a`, floats, as cm_nbits_round gives it. */
static cm_value rounded(struct cm_body *b, cm_value a, const struct cm_coded_weights *w)
{
    return cm_emit_formula(
        b,
        with_blocks(b, "a", w,
                    "columns = blocks * block_size; top = float(127); zero = float(0);"
                    "rows = Reshape(a, [-1, K]);"
                    "padded = columns == K ? rows : Pad(rows, [0, 0, 0, columns - K]);"
                    "x = Reshape(padded, [-1, blocks, block_size]); most = ReduceMax(Abs(x), [2]);"
                    "inverse = Where(Equal(most, zero), zero, top / most);"
                    "codes = Round(x * inverse); y = Reshape(codes * (most / top), [-1, columns]);"
                    "Reshape(columns == K ? y : Slice(y, [0], [K], [1]), Shape(a))"),
        a);
}

/* Floats `a` times weights, or their transpose, plus bias, in the type of the left operand. */
static enum cm_status return_product(struct cm_body *b, cm_value a, cm_value weights,
                                     bool transposed, cm_value bias)
{
    return cm_body_return(
        b, 0,
        cm_emit_formula(b,
                        transposed ? "a, w, bias, like: y = MatMul(a, Transpose<perm=[1, 0]>(w));"
                                     "cast(y + float(bias), like)"
                                   : "a, w, bias, like: cast(MatMul(a, w) + float(bias), like)",
                        a, weights, bias, cm_body_input(b, 0)));
}

/* What belongs to blocks, (n, blocks), for each of the k columns: by place, or by g_idx. */
static cm_value by_column(struct cm_body *b, cm_value per_block, const struct cm_coded_weights *w,
                          cm_value g_idx)
{
    return cm_emit_formula(
        b,
        with_blocks(b, "t, g_idx", w,
                    "columns = blocks * block_size;"
                    "spread(t) = Reshape(Expand(Reshape(t, [N, blocks, 1]),"
                    "                           [N, blocks, block_size]), [N, columns]);"
                    "g_idx ? Gather<axis=1>(t, Slice(g_idx, [0], [K], [0]))"
                    "  : columns == K ? spread(t) : Slice(spread(t), [0], [K], [1])"),
        per_block, g_idx);
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
        zeros = cm_builder_type(&b->build, given)->dtype == CM_UINT8
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

/* Each of the n * k numbers, in a row, is one of 16 times the absmax of its block. */
enum cm_status cm_matmulbnb4_body(struct cm_body *b)
{
    struct cm_coded_weights w;
    CM_TRY(cm_coded_weights_read(b->node, &w, b->build.err));
    float numbers[16];
    memcpy(numbers, cm_bnb4_numbers[cm_node_int(b->node, "quant_type")], sizeof numbers);
    const struct cm_tensor table = {
        .type = CM_FLOAT, .shape = {.rank = 1, .dims = {16}}, .data = numbers};
    const cm_value codes = unpacked(b, cm_body_input(b, 1), 1, w.bytes, 4, true, w.n * w.k);
    const cm_value weights = cm_emit_formula(
        b,
        with_blocks(
            b, "codes, absmax, table", &w,
            "count = N * K; all = blocks * block_size; flat = int32(Reshape(codes, [count]));"
            "values = Gather(table, flat); scale = Reshape(float(absmax), [blocks, 1]);"
            "spread = Reshape(Expand(scale, [blocks, block_size]), [all]);"
            "scaled = values * (all == count ? spread : Slice(spread, [0], [count], [0]));"
            "Reshape(scaled, [N, K])"),
        codes, cm_body_input(b, 2), cm_build_tensor(&b->build, &table));
    return return_product(b, cm_emit_cast(b, cm_body_input(b, 0), CM_FLOAT), weights,
                          cm_node_int(b->node, "transB") != 0, 0);
}
