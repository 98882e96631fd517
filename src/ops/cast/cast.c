/* Cast, CastLike and BitCast: elements of one type as another. A block of elements is loaded into
 * one of four wide forms that hold it exactly, and stored from there, so n types need n ways in and
 * n out. */
// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"
#include "ops/cast/cast_rows.h"
#include "ops/cast/number_text.h"
#include "ops/common/move.h"
#include "ops/elementwise/element_loops.h"
#include "tensor/bits.h"
#include "tensor/element_types.h"
#include "tensor/half.h"

#include <float.h>
#include <math.h>

enum { BLOCK = 512 }; /* elements at a time: all that is touched stays in the first-level cache */

enum form { AS_FLOAT, AS_DOUBLE, AS_SIGNED, AS_UNSIGNED };

struct block {
    enum form form;
    union {
        float f[BLOCK];
        double d[BLOCK];
        int64_t i[BLOCK];
        uint64_t u[BLOCK]; /* a signed number read here is its two's complement */
    };
};

enum rounding { ROUND_UP, ROUND_DOWN, ROUND_NEAREST };

struct cast {
    enum cm_dtype from, to;
    enum cm_overflow overflow;
    enum rounding rounding; /* to float8e8m0 */
};

/* ---- loading ---- */

typedef void load_fn(const void *data, int64_t at, int64_t count, struct block *block);

#define LOAD(TAG, ctype, member, kind)                                                             \
    static void member##_##TAG(const void *data, int64_t at, int64_t count, struct block *block)   \
    {                                                                                              \
        const ctype *x = (const ctype *)data + at;                                                 \
        block->form = kind;                                                                        \
        for (int64_t k = 0; k < count; k++)                                                        \
            block->member[k] = x[k];                                                               \
    }
LOAD(FLOAT, float, f, AS_FLOAT)
LOAD(DOUBLE, double, d, AS_DOUBLE)
CM_SIGNED_TYPES(LOAD, i, AS_SIGNED)
CM_UNSIGNED_TYPES(LOAD, u, AS_UNSIGNED)

static load_fn *const loaders[CM_DTYPE_COUNT] = {[CM_FLOAT] = f_FLOAT,
                                                 [CM_DOUBLE] = d_DOUBLE,
                                                 CM_SIGNED_TYPES(CM_LOOP_ENTRY, i, ())
                                                     CM_UNSIGNED_TYPES(CM_LOOP_ENTRY, u, ())};

/* Any byte that is not 0 counts as true. */
static void load_bool(const void *data, int64_t at, int64_t count, struct block *block)
{
    const uint8_t *x = (const uint8_t *)data + at;
    block->form = AS_UNSIGNED;
    for (int64_t k = 0; k < count; k++)
        block->u[k] = x[k] != 0;
}

static void load_packed(enum cm_dtype type, const void *data, int64_t at, int64_t count,
                        struct block *block)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    const int64_t sign = info->kind == CM_CLASS_SIGNED ? INT64_C(1) << (info->bits - 1) : 0;
    block->form = AS_SIGNED;
    for (int64_t k = 0; k < count; k++)
        block->i[k] = (cm_packed_get(info->bits, data, at + k) ^ sign) - sign;
}

/* Read as what they are to become: through double for a float, else as whole numbers. */
static enum cm_status load_strings(struct cm_call *call, const struct cast *cast, int64_t at,
                                   int64_t count, struct block *block)
{
    const struct cm_str *x = (const struct cm_str *)call->in[0]->data + at;
    const enum cm_dtype_class kind = cm_dtype_info(cast->to)->kind;
    block->form = kind == CM_CLASS_FLOAT    ? AS_DOUBLE
                  : kind == CM_CLASS_SIGNED ? AS_SIGNED
                                            : AS_UNSIGNED;
    for (int64_t k = 0; k < count; k++) {
        if (block->form == AS_DOUBLE ? !cm_number_parse_real(x[k], &block->d[k])
                                     : !cm_number_parse_whole(x[k], &block->u[k]))
            return cm_call_fail(call, CM_BAD_ARGUMENT, "element %lld, '%.*s', is not a number",
                                (long long)(at + k), CM_STR_FMT(x[k]));
    }
    return CM_OK;
}

static enum cm_status load(struct cm_call *call, const struct cast *cast, int64_t at, int64_t count,
                           struct block *block)
{
    const enum cm_dtype type = cast->from;
    const void *data = call->in[0]->data;
    if (type == CM_STRING)
        return load_strings(call, cast, at, count, block);
    if (type == CM_BOOL) {
        load_bool(data, at, count, block);
    } else if (loaders[type]) {
        loaders[type](data, at, count, block);
    } else if (cm_dtype_info(type)->kind == CM_CLASS_FLOAT) {
        block->form = AS_FLOAT;
        cm_narrow_load(type, data, at, count, block->f);
    } else {
        load_packed(type, data, at, count, block);
    }
    return CM_OK;
}

/* ---- storing ---- */

typedef void store_fn(const struct block *block, void *data, int64_t at, int64_t count);

/* One loop per form; each is a single expression over element k. */
#define STORE_FORM(has, expression)                                                                \
    for (int64_t k = 0; block->form == has && k < count; k++)                                      \
        y[k] = (T)(expression);
#define STORE(TAG, ctype, of_float, of_double, of_signed, of_unsigned)                             \
    static void store_##TAG(const struct block *block, void *data, int64_t at, int64_t count)      \
    {                                                                                              \
        typedef ctype T;                                                                           \
        T *y = (T *)data + at;                                                                     \
        STORE_FORM(AS_FLOAT, of_float)                                                             \
        STORE_FORM(AS_DOUBLE, of_double)                                                           \
        STORE_FORM(AS_SIGNED, of_signed)                                                           \
        STORE_FORM(AS_UNSIGNED, of_unsigned)                                                       \
    }
/* Whole numbers keep their low bits. */
#define STORE_WHOLE(TAG, ctype, name, extra)                                                       \
    STORE(TAG, ctype, cm_number_cut((double)block->f[k]), cm_number_cut(block->d[k]), block->u[k], \
          block->u[k])
STORE(FLOAT, float, block->f[k], block->d[k], block->i[k], block->u[k])
STORE(DOUBLE, double, block->f[k], block->d[k], block->i[k], block->u[k])
STORE(BOOL, uint8_t, block->f[k] != 0, block->d[k] != 0, block->u[k] != 0, block->u[k] != 0)
CM_INTEGER_TYPES(STORE_WHOLE, store, ())

static store_fn *const savers[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, store, ())
                                                     CM_BOOL_TYPES(CM_LOOP_ENTRY, store, ())};

/* The last bit of a float made 1 when something was lost: then rounding once more, to a narrower
 * type, comes out as rounding once would have. */
static float odd_from_double(double value)
{
    const float near = (float)value;
    if ((double)near == value || isnan(value))
        return near;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    if (fabs((double)near) > fabs(value)) /* infinity too becomes the largest number */
        bits--;
    bits |= 1;
    float odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

static float odd_from_magnitude(uint64_t value)
{
    int shift = 0;
    bool lost = false;
    while (value >> 24) {
        lost = lost || (value & 1);
        value >>= 1;
        shift++;
    }
    return ldexpf((float)(value | lost), shift);
}

static void narrowed_floats(const struct block *block, int64_t count, float *out)
{
    for (int64_t k = 0; k < count; k++) {
        switch (block->form) {
        case AS_FLOAT:
            out[k] = block->f[k];
            break;
        case AS_DOUBLE:
            out[k] = odd_from_double(block->d[k]);
            break;
        case AS_SIGNED:
            out[k] = block->i[k] < 0 ? -odd_from_magnitude(0 - block->u[k])
                                     : odd_from_magnitude(block->u[k]);
            break;
        case AS_UNSIGNED:
            out[k] = odd_from_magnitude(block->u[k]);
            break;
        }
    }
}

/* An exponent alone: 2^(code - 127), 255 is NaN. The sign is dropped, and what is below the least
 * power, zero included, becomes that. */
static uint8_t to_e8m0(float value, const struct cast *cast)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xFF, mantissa = bits & 0x7FFFFF;
    /* Floats below 2^-126 lack the implicit bit: among them 2^-127 is a mantissa of 0x400000. */
    const uint32_t power = exponent == 0 ? 0x400000 : 0,
                   middle = exponent == 0 ? 0x600000 : 0x400000;
    if (exponent == 0xFF)
        return 0xFF;
    const bool up = cast->rounding == ROUND_UP        ? mantissa > power
                    : cast->rounding == ROUND_NEAREST ? mantissa >= middle
                                                      : false;
    if (up && exponent == 0xFE)
        return cast->overflow == CM_SATURATE ? 0xFE : 0xFF;
    return (uint8_t)(exponent + up);
}

/* Where Cast asks for something else than tensor/half.h gives: infinity is beyond the largest
 * number like any other in the FNUZ types, and a NaN becomes a zero of the other sign in types
 * without one, as in ONNX's reference. */
static float special_value(const struct cast *cast, float value)
{
    const bool fnuz = cast->to == CM_FLOAT8E4M3FNUZ || cast->to == CM_FLOAT8E5M2FNUZ;
    if (isinf(value) && fnuz)
        return value > 0 ? FLT_MAX : -FLT_MAX;
    if (isnan(value) && cm_dtype_info(cast->to)->bits < 8)
        return signbit(value) ? 0.0F : -0.0F;
    return value;
}

static void store_narrow(const struct cast *cast, const struct block *block, void *data, int64_t at,
                         int64_t count)
{
    float floats[BLOCK];
    const int bits = cm_dtype_info(cast->to)->bits;
    narrowed_floats(block, count, floats);
    for (int64_t k = 0; k < count && bits < 16; k++)
        floats[k] = special_value(cast, floats[k]);
    if (bits != 8) {
        cm_narrow_store(cast->to, data, at, count, floats);
        return;
    }
    uint8_t *y = (uint8_t *)data + at;
    for (int64_t k = 0; k < count; k++)
        y[k] = cast->to == CM_FLOAT8E8M0
                   ? to_e8m0(floats[k], cast)
                   : cm_minifloat_from_float(cast->to, floats[k], cast->overflow);
}

static void store_packed(enum cm_dtype type, const struct block *block, void *data, int64_t at,
                         int64_t count)
{
    int64_t whole[BLOCK];
    const int bits = cm_dtype_info(type)->bits;
    store_INT64(block, whole, 0, count);
    for (int64_t k = 0; k < count; k++)
        cm_packed_set(bits, data, at + k, (uint8_t)((uint64_t)whole[k] & 0xFF));
}

static size_t print_number(const struct cast *cast, const struct block *block, int64_t k,
                           char *text)
{
    if (cast->from == CM_BOOL) {
        memcpy(text, block->u[k] ? "True" : "False", block->u[k] ? 4 : 5);
        return block->u[k] ? 4 : 5;
    }
    switch (block->form) {
    case AS_FLOAT:
        return cm_number_print_real(cast->from, (double)block->f[k], text);
    case AS_DOUBLE:
        return cm_number_print_real(cast->from, block->d[k], text);
    case AS_SIGNED:
        return cm_number_print_signed(block->i[k], text);
    case AS_UNSIGNED:
        return cm_number_print_unsigned(block->u[k], text);
    }
    return 0;
}

/* The bytes of a block of strings lie in a buffer of their own, which the tensor's keeps alive. */
static enum cm_status store_strings(struct cm_call *call, const struct cast *cast,
                                    const struct block *block, int64_t at, int64_t count)
{
    struct cm_str *y = (struct cm_str *)call->out[0]->data + at;
    char texts[BLOCK * CM_NUMBER_TEXT];
    size_t sizes[BLOCK], total = 0;
    struct cm_buffer *buffer;

    for (int64_t k = 0; k < count; k++) {
        sizes[k] = print_number(cast, block, k, texts + total);
        total += sizes[k];
    }
    CM_TRY(cm_buffer_new(total, &buffer, call->err));
    memcpy(cm_buffer_data(buffer), texts, total);
    const enum cm_status status = cm_buffer_hold(call->out[0]->buffer, buffer, call->err);
    const char *bytes = cm_buffer_data(buffer);
    for (int64_t k = 0; k < count && !status; bytes += sizes[k], k++)
        y[k] = (struct cm_str){bytes, sizes[k]};
    cm_buffer_drop(buffer);
    return status;
}

static enum cm_status store(struct cm_call *call, const struct cast *cast,
                            const struct block *block, int64_t at, int64_t count)
{
    void *data = call->out[0]->data;
    if (cast->to == CM_STRING)
        return store_strings(call, cast, block, at, count);
    cm_cast_fn *direct = block->form == AS_FLOAT ? cm_cast_direct(CM_FLOAT, cast->to) : NULL;
    if (direct)
        direct(count, block->f, (char *)data + (size_t)at * cm_dtype_size(cast->to));
    else if (savers[cast->to])
        savers[cast->to](block, data, at, count);
    else if (cm_dtype_info(cast->to)->kind == CM_CLASS_FLOAT)
        store_narrow(cast, block, data, at, count);
    else
        store_packed(cast->to, block, data, at, count);
    return CM_OK;
}

/* ---- the operators ---- */

static bool castable(enum cm_dtype type)
{
    const enum cm_dtype_class kind = cm_dtype_info(type)->kind;
    return kind != CM_CLASS_COMPLEX && (kind != CM_CLASS_NONE || type == CM_STRING);
}

/* What is known of whole numbers, where the new type holds them. */
static void pass_known(struct cm_infer *in, enum cm_dtype to)
{
    struct cm_known known;
    const enum cm_dtype from = cm_infer_type(in, 0)->dtype;
    if ((from != CM_INT64 && from != CM_INT32) || (to != CM_INT64 && to != CM_INT32) ||
        !cm_infer_known(in, 0, &known))
        return;
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, known.count);
    bool any = known.count == 0;
    for (size_t k = 0; k < known.count; k++) {
        items[k] = known.items[k];
        if (items[k].is_number && to == CM_INT32 && items[k].number != (int32_t)items[k].number)
            items[k] = (struct cm_quantity){0};
        any = any || items[k].is_number || items[k].symbol;
    }
    if (any)
        cm_infer_set_known(in, 0, known.rank, known.count, items);
}

static enum cm_status set_result(struct cm_infer *in, enum cm_dtype to)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    CM_TRY(cm_infer_set_tensor(in, 0, to, x->rank, x->dims));
    pass_known(in, to);
    return CM_OK;
}

/* Attribute `to` as an element type. */
static enum cm_status asked_type(struct cm_infer *in, enum cm_dtype *out)
{
    const int64_t to = cm_node_int(in->node, "to");
    if (!cm_dtype_is_valid(to))
        return cm_infer_fail(in, "attribute 'to' is %lld, which is not an element type",
                             (long long)to);
    *out = (enum cm_dtype)to;
    return CM_OK;
}

static const struct {
    const char *name;
    enum rounding rounding;
} roundings[] = {{"up", ROUND_UP}, {"down", ROUND_DOWN}, {"nearest", ROUND_NEAREST}};

static bool find_rounding(const struct cm_node *node, enum rounding *out)
{
    const struct cm_str mode = cm_node_str(node, "round_mode");
    for (size_t i = 0; i < CM_COUNT(roundings); i++) {
        if (cm_str_is(mode, roundings[i].name)) {
            *out = roundings[i].rounding;
            return true;
        }
    }
    return false;
}

static enum cm_status check_rounding(struct cm_infer *in)
{
    enum rounding rounding;
    if (find_rounding(in->node, &rounding))
        return CM_OK;
    return cm_infer_fail(in, "attribute 'round_mode' is '%.*s', expected 'up', 'down' or 'nearest'",
                         CM_STR_FMT(cm_node_str(in->node, "round_mode")));
}

static enum cm_status cast_infer(struct cm_infer *in)
{
    enum cm_dtype to = CM_UNDEFINED;
    CM_TRY(asked_type(in, &to));
    CM_TRY(check_rounding(in));
    if (!castable(to))
        return cm_infer_fail(in, "nothing can be cast to %s", cm_dtype_name(to));
    return set_result(in, to);
}

static enum cm_status cast_prepare(struct cm_call *call)
{
    struct cast *cast = cm_call_state(call, sizeof *cast);
    *cast = (struct cast){.from = call->in[0]->type,
                          .to = call->out[0]->type,
                          .overflow = cm_node_int(call->node, "saturate") ? CM_SATURATE
                                                                          : CM_OVERFLOW_TO_NAN};
    (void)find_rounding(call->node, &cast->rounding);
    return CM_OK;
}

struct job {
    struct cm_call *call;
    cm_cast_fn *direct;
};

/* Blocks [begin, end). Strings may fail, and are cast by one thread. */
static enum cm_status cast_blocks(struct cm_call *call, int64_t begin, int64_t end)
{
    const struct cast *cast = call->state;
    const int64_t count = cm_tensor_count(call->in[0]);
    struct block block;
    for (int64_t at = begin * BLOCK; at < count && at < end * BLOCK; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        CM_TRY(load(call, cast, at, n, &block));
        CM_TRY(store(call, cast, &block, at, n));
    }
    return CM_OK;
}

static void cast_some(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct cast *cast = job->call->state;
    const int64_t at = begin * BLOCK, count = cm_tensor_count(job->call->in[0]) - at;
    const int64_t most = (end - begin) * BLOCK;
    if (job->direct)
        job->direct(count < most ? count : most,
                    (const char *)job->call->in[0]->data + (size_t)at * cm_dtype_size(cast->from),
                    (char *)job->call->out[0]->data + (size_t)at * cm_dtype_size(cast->to));
    else if (cast_blocks(job->call, begin, end)) /* numbers do not fail */
        return;
}

enum { GRAIN = 128 }; /* blocks worth a thread; each is whole bytes of every type */

static enum cm_status cast_run(struct cm_call *call)
{
    const struct cast *cast = call->state;
    const int64_t count = cm_tensor_count(call->in[0]),
                  blocks = count / BLOCK + (count % BLOCK != 0);
    struct job job = {call, cm_cast_direct(cast->from, cast->to)};

    if (cast->from == cast->to)
        return cm_run_copy(call);
    if (cast->from == CM_STRING || cast->to == CM_STRING)
        return cast_blocks(call, 0, blocks);
    cm_parallel(blocks, GRAIN, cast_some, &job);
    return CM_OK;
}

/* The same ways in and out for elements that come and leave as others compute with them: narrow
 * floats as float, which whoever walks the tensors rounds. */
static void cast_elements(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const enum cm_dtype from = (enum cm_dtype)loop->p[0], to = (enum cm_dtype)loop->p[1];
    cm_cast_fn *direct = savers[to] ? cm_cast_direct(from, to) : NULL;
    struct block block;
    if (direct) {
        direct(e->count, e->in[0], e->out);
        return;
    }
    if (from == CM_FLOAT && cm_element_type(to) == CM_FLOAT) {
        memmove(e->out, e->in[0], (size_t)e->count * sizeof(float));
        return;
    }
    for (int64_t at = 0; at < e->count; at += BLOCK) {
        const int64_t n = e->count - at < BLOCK ? e->count - at : BLOCK;
        if (from == CM_BOOL)
            load_bool(e->in[0], at, n, &block);
        else
            loaders[from](e->in[0], at, n, &block);
        if (savers[to])
            savers[to](&block, e->out, at, n);
        else
            narrowed_floats(&block, n, (float *)e->out + at);
    }
}

/* What is computed with: strings, complex numbers and types below 16 bits that are not whole bytes
 * of a number are only converted by Cast itself. */
static bool is_common(enum cm_dtype type)
{
    return savers[type] || type == CM_FLOAT16 || type == CM_BFLOAT16;
}

static bool cast_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                             struct cm_element_loop *loop)
{
    if (!is_common(in[0]) || !is_common(out))
        return false;
    if (in[0] == out)
        return cm_copy_elementwise(node, in, out, loop);
    *loop = (struct cm_element_loop){.run = cast_elements,
                                     .p = {(double)cm_element_type(in[0]), (double)out}};
    return true;
}

/* The same bytes only when the type stays. */
static enum cm_sharing cast_share(const struct cm_node *node, int output, int input)
{
    const struct cm_type *x = cm_value_get(node->module, cm_node_input(node, 0))->fact.type;
    const struct cm_type *y = cm_value_get(node->module, cm_node_output(node, 0))->fact.type;
    return output == 0 && input == 0 && x->dtype == y->dtype ? CM_SHARE_VIEW : CM_SHARE_NOTHING;
}

/* A float cast to another float passes its gradient; whole numbers and strings stop it. */
static enum cm_status cast_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const struct cm_type *x = cm_builder_type(&g->build, cm_grad_input(g, 0));
    const struct cm_type *y = cm_builder_type(&g->build, cm_grad_output(g, 0));

    if (!cm_grad_wants(g, 0) || cm_dtype_info(y->dtype)->kind != CM_CLASS_FLOAT)
        return CM_OK;
    const cm_value dx =
        cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", (int64_t)x->dtype)),
                     cm_grad_incoming(g, 0));
    return cm_grad_set(g, 0, dx);
}

CM_OP(Cast, .infer = cast_infer, .prepare = cast_prepare, .run = cast_run, .grad = cast_grad,
      .memory.share = cast_share, .elementwise = cast_elementwise, .values.kept = true);

static enum cm_status cast_like_infer(struct cm_infer *in)
{
    CM_TRY(check_rounding(in));
    return set_result(in, cm_infer_type(in, 1)->dtype);
}

/* Cast with the target's type written down, and only those attributes that differ from what an
 * older Cast does. */
static enum cm_status cast_like_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value like = cm_body_input(b, 1);
    const struct cm_str mode = cm_node_str(b->node, "round_mode");
    struct cm_attribute_proto attributes[3];
    size_t count = 0;

    attributes[count++] =
        cm_attr_int(arena, "to", (int64_t)cm_builder_type(&b->build, like)->dtype);
    if (!cm_node_int(b->node, "saturate"))
        attributes[count++] = cm_attr_int(arena, "saturate", 0);
    if (!cm_str_is(mode, "up"))
        attributes[count++] = cm_attr_str(arena, "round_mode", mode);
    return cm_body_return(
        b, 0,
        cm_build(&b->build, &(struct cm_emission){.op = "Cast",
                                                  .attributes = attributes,
                                                  .n_attributes = count,
                                                  CM_INPUTS(cm_body_input(b, 0))}));
}

CM_OP(CastLike, .infer = cast_like_infer, .prepare = cast_prepare, .run = cast_run,
      .grad = cast_grad, .body = cast_like_body, .memory.share = cast_share);

static enum cm_status bit_cast_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    enum cm_dtype to = CM_UNDEFINED;
    CM_TRY(asked_type(in, &to));
    if (cm_dtype_info(to)->bits != cm_dtype_info(x->dtype)->bits || to == CM_STRING)
        return cm_infer_fail(in, "%s and %s do not have the same number of bits",
                             cm_dtype_name(x->dtype), cm_dtype_name(to));
    return cm_infer_set_tensor(in, 0, to, x->rank, x->dims);
}

CM_OP(BitCast, .infer = bit_cast_infer, .run = cm_run_copy, .grad = cm_grad_none,
      .memory.share = cm_share_view);
