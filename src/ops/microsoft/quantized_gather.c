/* GatherBlockQuantized and QEmbedLayerNormalization: rows of tables that hold codes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

struct table {
    struct cm_body *b;
    int gather, axis; /* of the data; blocks of neighbours along `axis` share a scale */
    int64_t block;    /* 0: all of the axis is one */
    int64_t bits;     /* of codes that are packed in bytes along the last axis; else 0 */
    int place;        /* of `axis` after gathering, from the end where that is known */
    cm_value indices;
};

static enum cm_status read_table(struct cm_body *b, struct table *out)
{
    const struct cm_type *data = cm_builder_type(&b->build, cm_body_input(b, 0));
    struct table t = {
        .b = b, .block = cm_node_int(b->node, "block_size"), .indices = cm_body_input(b, 1)};
    if (data->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of the data is not known");
    if (!cm_axis_fix(cm_node_int(b->node, "gather_axis"), data->rank, &t.gather) ||
        !cm_axis_fix(cm_node_int(b->node, "quantize_axis"), data->rank, &t.axis))
        return cm_builder_fail(&b->build, CM_BAD_MODEL, "an axis is out of range for rank %d",
                               data->rank);
    if (t.block < 0)
        return cm_builder_fail(&b->build, CM_BAD_MODEL,
                               "attribute 'block_size' is %lld, must not be negative",
                               (long long)t.block);
    t.place = t.axis > t.gather ? t.axis - data->rank : t.axis;
    if (data->dtype == CM_UINT8) {
        t.bits = cm_node_int(b->node, "bits");
        if (t.bits != 2 && t.bits != 4 && t.bits != 8)
            return cm_builder_fail(&b->build, CM_BAD_MODEL,
                                   "attribute 'bits' is %lld, expected 2, 4 or 8",
                                   (long long)t.bits);
        if (t.gather != 0 || t.axis != data->rank - 1 || t.axis == t.gather)
            return cm_builder_fail(&b->build, CM_BAD_MODEL,
                                   "data of uint8 is gathered along its first axis and has blocks "
                                   "along its last one");
    }
    *out = t;
    return CM_OK;
}

/* Bytes as codes: the last axis is longer then. */
static cm_value unpacked(const struct table *t, cm_value bytes)
{
    const int64_t parts = t->bits ? 8 / t->bits : 1;
    uint8_t shifts[8];
    if (parts == 1)
        return bytes;
    for (int64_t i = 0; i < parts; i++)
        shifts[i] = (uint8_t)(t->bits * i);
    const struct cm_tensor by = {
        .type = CM_UINT8, .shape = {.rank = 1, .dims = {parts}}, .data = shifts};
    return cm_emit_formula(
        t->b,
        "bytes, shifts: apart = BitShift<direction='RIGHT'>(Unsqueeze(bytes, [-1]), shifts);"
        "codes = Mod(apart, bits == 2 ? 4 : 16);"
        "Reshape(codes, Concat<axis=0>(Shape<end=-1>(bytes), Shape<start=-1>(bytes) * [8 / bits]))",
        bytes, cm_build_tensor(&t->b->build, &by));
}

static cm_value gathered(const struct table *t, cm_value x)
{
    return cm_emit_formula(t->b, "x, indices: Gather<axis=gather_axis>(x, indices)", x, t->indices);
}

/* What belongs to blocks, for each element of codes along their axis. */
static cm_value spread(const struct table *t, cm_value per_block, cm_value codes, int place)
{
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&t->b->build),
        "t, codes: place = %d; count = Gather(Shape(codes), int64(place));"
        "block = Range(int64(0), count, int64(1)) / block_size; Gather<axis=place>(t, block)",
        place);
    return t->block ? cm_emit_formula(t->b, cm_str_text(text), per_block, codes) : per_block;
}

/* Codes, scales and zero points of the same rows as floats. */
static cm_value reals(const struct table *t, cm_value codes, cm_value scales, cm_value zeros,
                      int place)
{
    struct cm_body *b = t->b;
    cm_value v = cm_emit_cast(b, codes, CM_FLOAT);
    if (zeros)
        v = cm_emit(b, "Sub", v, spread(t, cm_emit_cast(b, zeros, CM_FLOAT), codes, place));
    else if (t->bits)
        v = cm_emit(b, "Sub", v, cm_emit_scalar(b, CM_FLOAT, (double)(1 << (t->bits - 1))));
    return cm_emit(b, "Mul", v, spread(t, cm_emit_cast(b, scales, CM_FLOAT), codes, place));
}

/* The same numbers in a type that Gather takes. */
static cm_value whole_bytes(struct cm_body *b, cm_value x)
{
    return cm_emit_formula(
        b,
        "x: x ? dtype(x) == uint8 ? x : dtype(x) == uint4 ? uint8(x) : dtype(x) == int4 ? "
        "int8(x) : float16(x) : x",
        x);
}

/* Rows are picked first and then decoded, unless blocks go along the same axis. Scales of length 1
 * along the gathered axis count for all of it. */
static enum cm_status gather_body(struct cm_body *b)
{
    const cm_value data = whole_bytes(b, cm_body_input(b, 0)), scales = cm_body_input(b, 2);
    const cm_value zeros = whole_bytes(b, cm_body_input(b, 3));
    const struct cm_type *type = cm_builder_type(&b->build, scales);
    struct table t;
    CM_TRY(read_table(b, &t));
    cm_value y;
    if (t.gather == t.axis || type->rank == CM_RANK_UNKNOWN || type->rank <= t.gather ||
        type->dims[t.gather].value == 1) {
        y = gathered(
            &t, reals(&t, unpacked(&t, data), scales, zeros ? unpacked(&t, zeros) : 0, t.axis));
    } else {
        y = reals(&t, unpacked(&t, gathered(&t, data)), gathered(&t, scales),
                  zeros ? unpacked(&t, gathered(&t, zeros)) : 0, t.place);
    }
    return cm_body_return(b, 0, cm_emit_cast(b, y, type->dtype));
}

CM_OP_IN(microsoft, "com.microsoft", GatherBlockQuantized, .values.is_quantized = true,
         .body = gather_body);

CM_BODY(embed_body,
        "words = DequantizeLinear(word_embedding_quant, word_embedding_scale,"
        "                         word_embedding_zero_point);"
        "positions = DequantizeLinear(position_embedding_quant, position_embedding_scale,"
        "                             position_embedding_zero_point);"
        "segments = segment_embedding"
        "  ? DequantizeLinear(segment_embedding, segment_embedding_scale,"
        "                     segment_embedding_zero_point)"
        "  : none;"
        "gamma = DequantizeLinear(gamma_quant, gamma_scale, gamma_zero_point);"
        "beta = DequantizeLinear(beta_quant, beta_scale, beta_zero_point);"
        "layernorm_out, mask_index_out = com.microsoft::EmbedLayerNormalization<epsilon>("
        "    input_ids, segment_ids, words, positions, segments, gamma, beta, mask)")

CM_OP_IN(microsoft, "com.microsoft", QEmbedLayerNormalization, .values.is_quantized = true,
         .body = embed_body);
