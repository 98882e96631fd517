/* GatherBlockQuantized and QEmbedLayerNormalization: rows of tables that hold codes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

struct table {
    struct cm_body *b;
    struct cm_arena *arena;
    int gather, axis; /* of the data; blocks of neighbours along `axis` share a scale */
    int64_t block;    /* 0: all of the axis is one */
    int64_t bits;     /* of codes that are packed in bytes along the last axis; else 0 */
    int place;        /* of `axis` after gathering, from the end where that is known */
    cm_value indices;
};

static enum cm_status read_table(struct cm_body *b, struct table *out)
{
    const struct cm_type *data = cm_builder_type(&b->build, cm_body_input(b, 0));
    struct table t = {.b = b,
                      .arena = cm_builder_arena(&b->build),
                      .block = cm_node_int(b->node, "block_size"),
                      .indices = cm_body_input(b, 1)};
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
    struct cm_body *b = t->b;
    const int64_t parts = t->bits ? 8 / t->bits : 1;
    uint8_t shifts[8];
    if (parts == 1)
        return bytes;
    for (int64_t i = 0; i < parts; i++)
        shifts[i] = (uint8_t)(t->bits * i);
    const struct cm_tensor by = {
        .type = CM_UINT8, .shape = {.rank = 1, .dims = {parts}}, .data = shifts};
    const struct cm_attribute_proto right = cm_attr_str(t->arena, "direction", CM_STR("RIGHT"));
    const struct cm_attribute_proto flat = cm_attr_int(t->arena, "axis", 0);
    const struct cm_attribute_proto but_last = cm_attr_int(t->arena, "end", -1);
    const struct cm_attribute_proto last = cm_attr_int(t->arena, "start", -1);
    const cm_value apart = cm_emit_with(b, "BitShift", CM_ATTRIBUTES(right),
                                        cm_emit(b, "Unsqueeze", bytes, cm_emit_int64s(b, -1)),
                                        cm_build_tensor(&b->build, &by));
    const cm_value codes =
        cm_emit(b, "Mod", apart, cm_emit_scalar(b, CM_UINT8, (double)(1 << t->bits)));
    const cm_value shape = cm_emit_with(
        b, "Concat", CM_ATTRIBUTES(flat), cm_emit_with(b, "Shape", CM_ATTRIBUTES(but_last), bytes),
        cm_emit(b, "Mul", cm_emit_with(b, "Shape", CM_ATTRIBUTES(last), bytes),
                cm_emit_int64s(b, parts)));
    return cm_emit(b, "Reshape", codes, shape);
}

static cm_value gathered(const struct table *t, cm_value x)
{
    const struct cm_attribute_proto axis = cm_attr_int(t->arena, "axis", t->gather);
    return cm_emit_with(t->b, "Gather", CM_ATTRIBUTES(axis), x, t->indices);
}

/* What belongs to blocks, for each element of codes along their axis. */
static cm_value spread(const struct table *t, cm_value per_block, cm_value codes, int place)
{
    struct cm_body *b = t->b;
    if (!t->block)
        return per_block;
    const cm_value count =
        cm_emit(b, "Gather", cm_emit(b, "Shape", codes), cm_build_int64(&b->build, place));
    const cm_value blocks = cm_emit(
        b, "Div",
        cm_emit(b, "Range", cm_build_int64(&b->build, 0), count, cm_build_int64(&b->build, 1)),
        cm_build_int64(&b->build, t->block));
    const struct cm_attribute_proto axis = cm_attr_int(t->arena, "axis", place);
    return cm_emit_with(b, "Gather", CM_ATTRIBUTES(axis), per_block, blocks);
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
    const enum cm_dtype type = cm_quantized_type(b, x);
    if (!x || type == CM_UINT8)
        return x;
    return cm_emit_cast(b, x, type == CM_UINT4 ? CM_UINT8 : type == CM_INT4 ? CM_INT8 : CM_FLOAT16);
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
    return cm_body_return(b, 0, cm_emit_cast(b, y, cm_quantized_type(b, scales)));
}

CM_OP_IN(microsoft, "com.microsoft", GatherBlockQuantized, .values.is_quantized = true,
         .body = gather_body);

static enum cm_status embed_body(struct cm_body *b)
{
    enum { IDS, SEGMENTS, WORD, POSITION, SEGMENT, GAMMA, BETA, MASK, FIRST_SCALE };
    enum { FIRST_ZERO = FIRST_SCALE + 5 };
    struct cm_arena *arena = cm_builder_arena(&b->build);
    cm_value inputs[FIRST_SCALE], outputs[2] = {0};
    for (int i = 0; i < FIRST_SCALE; i++)
        inputs[i] = cm_body_input(b, i);
    for (int i = WORD; i <= BETA; i++)
        if (inputs[i])
            inputs[i] = cm_quantized_reals(b, i, FIRST_SCALE + i - WORD, FIRST_ZERO + i - WORD);
    const struct cm_attribute_proto epsilon =
        cm_attr_float(arena, "epsilon", cm_node_float(b->node, "epsilon"));
    cm_build(&b->build, &(struct cm_emission){.op = "com.microsoft::EmbedLayerNormalization",
                                              .inputs = inputs,
                                              .n_inputs = CM_COUNT(inputs),
                                              .attributes = &epsilon,
                                              .n_attributes = 1,
                                              .n_outputs = 2,
                                              .outputs = outputs});
    CM_TRY(cm_body_return(b, 0, outputs[0]));
    return cm_body_return(b, 1, outputs[1]);
}

CM_OP_IN(microsoft, "com.microsoft", QEmbedLayerNormalization, .values.is_quantized = true,
         .body = embed_body);
