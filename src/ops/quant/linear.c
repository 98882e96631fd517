/* QuantizeLinear and DequantizeLinear: real numbers to and from few bits by a scale and a zero
 * point for the whole tensor, for each place of an axis, or for each block. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/op.h"
#include "ops/common/reals.h"
#include "ops/index/index.h"
#include "tensor/half.h"
#include "tensor/line.h"
#include "tensor/linear_codes.h"

#include <math.h>

enum { X, SCALE, ZERO };
enum { BLOCK = 256 }; /* elements at a time */

/* ---- which scale belongs to which element ---- */

/* x is outer x length x inner. Every scale counts for `block` neighbours along the axis; whole:
 * there is only one. */
struct grains {
    bool whole, blocked;
    int64_t length, inner;
    int64_t block, groups; /* groups: scales along the axis */
};

/* Has the tensor one element, whatever its rank? */
static bool is_one(const struct cm_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (!cm_dim_known(type->dims[i]) || type->dims[i].value != 1)
            return false;
    return type->rank != CM_RANK_UNKNOWN;
}

static bool may_be_one(const struct cm_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (cm_dim_known(type->dims[i]) && type->dims[i].value != 1)
            return false;
    return true;
}

static enum cm_status check_scales(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X), *s = cm_infer_type(in, SCALE);
    const struct cm_type *z = cm_infer_type(in, ZERO);
    const int64_t block = cm_node_int(in->node, "block_size");
    struct cm_dim both;
    int axis;
    if (block < 0)
        return cm_infer_fail(in, "block_size is %lld, must not be negative", (long long)block);
    if (z && ((is_one(s) && !may_be_one(z)) || (is_one(z) && !may_be_one(s))))
        return cm_infer_fail(in, "zero point and scale have different shapes");
    if (z && z->rank > 0 && s->rank > 0) { /* one number may have rank 0 or 1 */
        if (z->rank != s->rank)
            return cm_infer_fail(in, "the zero point has rank %d, the scale %d", z->rank, s->rank);
        for (int i = 0; i < z->rank; i++)
            if (!cm_dim_unify(z->dims[i], s->dims[i], &both))
                return cm_infer_fail(in, "zero point and scale differ along axis %d", i);
    }
    if (x->rank == CM_RANK_UNKNOWN || s->rank == CM_RANK_UNKNOWN || s->rank == 0)
        return CM_OK;
    if (s->rank == 1 && (s->dims[0].value == 1 || !cm_dim_known(s->dims[0])))
        return CM_OK;
    if (s->rank != (block ? x->rank : 1))
        return cm_infer_fail(in, "the scale has rank %d, needs %d", s->rank, block ? x->rank : 1);
    CM_TRY(
        cm_infer_axis(in, x->rank == 1 ? 0 : cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < s->rank; i++) {
        const int of = block ? i : axis;
        struct cm_dim need = x->dims[of];
        if (block && i == axis && cm_dim_known(need))
            need = CM_DIM(need.value / block + (need.value % block != 0));
        else if (block && i == axis)
            continue;
        if (!cm_dim_unify(s->dims[i], need, &both))
            return cm_infer_fail(in, "the scale has %lld where %lld are needed",
                                 (long long)s->dims[i].value, (long long)need.value);
    }
    return CM_OK;
}

static enum cm_status plan_grains(struct cm_call *call, struct grains *g)
{
    const struct cm_shape *x = &call->in[X]->shape, *s = &call->in[SCALE]->shape;
    const bool has_zero = call->n_in > ZERO && call->in[ZERO];
    const int64_t block = cm_node_int(call->node, "block_size");
    int axis = 0;
    g->whole = cm_shape_elements(s) == 1;
    if (has_zero && (g->whole ? cm_tensor_count(call->in[ZERO]) != 1
                              : !cm_shape_equal(&call->in[ZERO]->shape, s)))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "zero point and scale have different shapes");
    if (g->whole)
        return CM_OK;
    if (x->rank != 1 && !cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    g->blocked = block > 0;
    g->block = block;
    g->length = x->dims[axis];
    g->inner = cm_shape_span(x, axis + 1, x->rank);
    g->groups = g->blocked ? g->length / block + (g->length % block != 0) : g->length;
    bool fits = s->rank == (g->blocked ? x->rank : 1);
    for (int i = 0; fits && i < s->rank; i++)
        fits = s->dims[i] == (!g->blocked || i == axis ? g->groups : x->dims[i]);
    if (!fits)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the scale does not have the shape it needs");
    return CM_OK;
}

/* The scales of count elements of x, from element first on. */
static void spread(const struct grains *g, const double *values, int64_t first, int64_t count,
                   double *to)
{
    if (g->whole) {
        for (int64_t k = 0; k < count; k++)
            to[k] = values[0];
        return;
    }
    int64_t j = first % g->inner, i = first / g->inner % g->length;
    int64_t outer = first / g->inner / g->length;
    for (int64_t k = 0; k < count; k++) {
        to[k] = values[g->blocked ? (outer * g->groups + i / g->block) * g->inner + j : i];
        if (++j < g->inner)
            continue;
        j = 0;
        if (++i < g->length)
            continue;
        i = 0;
        outer++;
    }
}

/* ---- what both directions share ---- */

struct linear {
    struct grains grains;
    enum cm_dtype precision; /* of the division */
    double lowest, highest;  /* of an integer result */
    bool integer, saturate;
    int64_t scales;
};

static enum cm_status reserve(struct cm_call *call, struct linear *state)
{
    size_t bytes;
    CM_TRY(plan_grains(call, &state->grains));
    state->scales = cm_tensor_count(call->in[SCALE]);
    if (!cm_size_mul((size_t)state->scales, 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many scales");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* Scales and zero points as doubles, one list after the other. */
static void load_parameters(const struct cm_call *call, const struct linear *state)
{
    double *scales = call->scratch, *zeros = scales + state->scales;
    const bool has_zero = call->n_in > ZERO && call->in[ZERO];
    cm_reals_load(call->in[SCALE]->type, call->in[SCALE]->data, 0, state->scales, scales);
    if (has_zero)
        cm_reals_load(call->in[ZERO]->type, call->in[ZERO]->data, 0, state->scales, zeros);
    for (int64_t i = 0; !has_zero && i < state->scales; i++)
        zeros[i] = 0;
}

static bool is_float8(enum cm_dtype type)
{
    return type >= CM_FLOAT8E4M3FN && type <= CM_FLOAT8E5M2FNUZ;
}

/* ---- element by element, where there is one scale ---- */

/* Is operand i of a node absent, or one number that broadcasts without effect? */
static bool is_single(const struct cm_node *node, int i)
{
    const cm_value value = cm_node_input(node, i);
    if (!value)
        return true;
    const struct cm_type *p = cm_value_get(node->module, value)->fact.type;
    const struct cm_type *x = cm_value_get(node->module, node->inputs[X].value)->fact.type;
    return p->rank == 0 || (p->rank == 1 && p->dims[0].value == 1 && x->rank >= 1);
}

static bool has_one_scale(const struct cm_node *node, const enum cm_dtype *in)
{
    return in[SCALE] == CM_FLOAT && is_single(node, SCALE) && is_single(node, ZERO);
}

/* The zero point of a run of elements, whose codes are of the type that the loop keeps. */
static float run_zero(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const void *zero = e->n_in > ZERO ? e->in[ZERO] : NULL;
    const struct cm_tensor one = {.type = (enum cm_dtype)loop->p[0],
                                  .data = (void *)(uintptr_t)zero};
    return zero ? (float)cm_tensor_real(&one, 0) : 0;
}

/* ---- QuantizeLinear ---- */

static bool is_quantized(enum cm_dtype type)
{
    static const bool yes[CM_DTYPE_COUNT] = {
        [CM_UINT8] = true,          [CM_INT8] = true,       [CM_UINT16] = true,
        [CM_INT16] = true,          [CM_UINT4] = true,      [CM_INT4] = true,
        [CM_UINT2] = true,          [CM_INT2] = true,       [CM_FLOAT8E4M3FN] = true,
        [CM_FLOAT8E4M3FNUZ] = true, [CM_FLOAT8E5M2] = true, [CM_FLOAT8E5M2FNUZ] = true,
        [CM_FLOAT4E2M1] = true,     [CM_FLOAT6E2M3] = true, [CM_FLOAT6E3M2] = true,
    };
    return yes[type];
}

static enum cm_status quantize_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X), *z = cm_infer_type(in, ZERO);
    const int64_t wanted = cm_node_int(in->node, "output_dtype");
    const int64_t precision = cm_node_int(in->node, "precision");
    enum cm_dtype type = CM_UINT8;
    if (wanted && (!cm_dtype_is_valid(wanted) || !is_quantized((enum cm_dtype)wanted)))
        return cm_infer_fail(in, "attribute 'output_dtype' is %lld, which is not a quantized type",
                             (long long)wanted);
    if (precision && precision != CM_FLOAT && precision != CM_FLOAT16 && precision != CM_BFLOAT16)
        return cm_infer_fail(in, "attribute 'precision' is %lld, which is not a float type",
                             (long long)precision);
    if (z && wanted && z->dtype != (enum cm_dtype)wanted)
        return cm_infer_fail(in, "output_dtype and the type of the zero point differ");
    CM_TRY(check_scales(in));
    if (z || wanted)
        type = z ? z->dtype : (enum cm_dtype)wanted;
    return cm_infer_set_tensor(in, 0, type, x->rank, x->dims);
}

static enum cm_status quantize_prepare(struct cm_call *call)
{
    struct linear *state = cm_call_state(call, sizeof *state);
    const enum cm_dtype scale = call->in[SCALE]->type, to = call->out[0]->type;
    const struct cm_dtype_info *info = cm_dtype_info(to);
    state->precision = (enum cm_dtype)cm_node_int(call->node, "precision");
    if (!state->precision) /* float8e8m0 holds powers of two: nothing to divide in */
        state->precision = scale == CM_FLOAT8E8M0 ? call->in[X]->type : scale;
    state->integer = info->kind == CM_CLASS_SIGNED || info->kind == CM_CLASS_UNSIGNED;
    const bool is_signed = info->kind == CM_CLASS_SIGNED;
    state->highest = (double)((INT64_C(1) << (is_signed ? info->bits - 1 : info->bits)) - 1);
    state->lowest = is_signed ? -state->highest - 1 : 0;
    state->saturate = cm_node_int(call->node, "saturate") != 0;
    return reserve(call, state);
}

/* Quotients in the precision asked for. */
static void divide(enum cm_dtype precision, int64_t count, double *x, const double *s)
{
    float quotient[BLOCK], divisor[BLOCK];
    if (precision == CM_INT32) {
        for (int64_t i = 0; i < count; i++)
            x[i] /= s[i];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        quotient[i] = (float)x[i];
        divisor[i] = (float)s[i];
    }
    if (precision != CM_FLOAT) {
        cm_line_round(precision, count, quotient);
        cm_line_round(precision, count, divisor);
    }
    for (int64_t i = 0; i < count; i++)
        quotient[i] /= divisor[i];
    if (precision != CM_FLOAT)
        cm_line_round(precision, count, quotient);
    for (int64_t i = 0; i < count; i++)
        x[i] = (double)quotient[i];
}

static void store_quantized(const struct linear *state, struct cm_tensor *y, int64_t first,
                            int64_t count, double *v)
{
    const enum cm_overflow overflow = state->saturate ? CM_SATURATE : CM_OVERFLOW_TO_NAN;
    if (is_float8(y->type)) {
        uint8_t *to = (uint8_t *)y->data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = cm_minifloat_from_float(y->type, (float)v[i], overflow);
        return;
    }
    for (int64_t i = 0; state->integer && i < count; i++) /* NaN becomes the lowest, too */
        v[i] = !(v[i] > state->lowest) ? state->lowest
               : v[i] > state->highest ? state->highest
                                       : v[i];
    cm_reals_store(y->type, y->data, first, count, v);
}

static enum cm_status quantize_run(struct cm_call *call)
{
    const struct linear *state = call->state;
    const struct cm_tensor *x = call->in[X];
    const double *scales = call->scratch, *zeros = scales + state->scales;
    const int64_t count = cm_tensor_count(x);
    load_parameters(call, state);
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = count - first < BLOCK ? count - first : BLOCK;
        double v[BLOCK], p[BLOCK];
        cm_reals_load(x->type, x->data, first, n, v);
        spread(&state->grains, scales, first, n, p);
        divide(state->precision, n, v, p);
        spread(&state->grains, zeros, first, n, p);
        for (int64_t i = 0; i < n; i++)
            v[i] = (state->integer ? nearbyint(v[i]) : v[i]) + p[i];
        store_quantized(state, call->out[0], first, n, v);
    }
    return CM_OK;
}

static void quantize_elements(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    cm_quantize_loop((enum cm_dtype)loop->p[0])(e->count, e->in[X], *(const float *)e->in[SCALE],
                                                run_zero(loop, e), e->out);
}

static bool quantize_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                                 enum cm_dtype out, struct cm_element_loop *loop)
{
    const int64_t precision = cm_node_int(node, "precision");
    *loop = (struct cm_element_loop){.run = quantize_elements, .p = {out}};
    return in[X] == CM_FLOAT && has_one_scale(node, in) && cm_quantize_loop(out) &&
           (!precision || precision == CM_FLOAT);
}

CM_OP(QuantizeLinear, .values.is_quantized = true, .infer = quantize_infer,
      .prepare = quantize_prepare, .run = quantize_run, .grad = cm_grad_none,
      .elementwise = quantize_elementwise, .cost.work = cm_work_linear);

/* ---- DequantizeLinear ---- */

static enum cm_status dequantize_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X);
    const int64_t wanted = cm_node_int(in->node, "output_dtype");
    const enum cm_dtype scale = cm_infer_type(in, SCALE)->dtype;
    if (wanted && wanted != CM_FLOAT && wanted != CM_FLOAT16 && wanted != CM_BFLOAT16)
        return cm_infer_fail(in, "attribute 'output_dtype' is %lld, expected a float type",
                             (long long)wanted);
    if (!wanted && scale == CM_FLOAT8E8M0)
        return cm_infer_fail(in, "a scale of float8e8m0 needs output_dtype");
    CM_TRY(check_scales(in));
    return cm_infer_set_tensor(in, 0, wanted ? (enum cm_dtype)wanted : scale, x->rank, x->dims);
}

static enum cm_status dequantize_prepare(struct cm_call *call)
{
    struct linear *state = cm_call_state(call, sizeof *state);
    return reserve(call, state);
}

static enum cm_status dequantize_run(struct cm_call *call)
{
    const struct linear *state = call->state;
    const struct cm_tensor *x = call->in[X];
    struct cm_tensor *y = call->out[0];
    const double *scales = call->scratch, *zeros = scales + state->scales;
    const int64_t count = cm_tensor_count(x);
    load_parameters(call, state);
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = count - first < BLOCK ? count - first : BLOCK;
        double v[BLOCK], s[BLOCK], z[BLOCK];
        cm_reals_load(x->type, x->data, first, n, v);
        spread(&state->grains, scales, first, n, s);
        spread(&state->grains, zeros, first, n, z);
        for (int64_t i = 0; i < n; i++)
            v[i] = (double)((float)(v[i] - z[i]) * (float)s[i]);
        cm_reals_store(y->type, y->data, first, n, v);
    }
    return CM_OK;
}

static void dequantize_elements(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    cm_dequantize_loop((enum cm_dtype)loop->p[0])(e->count, e->in[X], *(const float *)e->in[SCALE],
                                                  run_zero(loop, e), e->out);
}

static bool dequantize_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                                   enum cm_dtype out, struct cm_element_loop *loop)
{
    *loop = (struct cm_element_loop){.run = dequantize_elements, .p = {in[X]}};
    return out == CM_FLOAT && has_one_scale(node, in) && cm_dequantize_loop(in[X]);
}

/* A scale or zero point shaped to lie along the axis of x. */
static cm_value along_axis(struct cm_grad *g, cm_value p, int axis, int rank)
{
    int64_t axes[CM_MAX_RANK];
    for (int i = 0; i < rank - 1 - axis; i++)
        axes[i] = i + 1;
    if (axis == rank - 1)
        return p;
    return cm_emit(g, "Unsqueeze", p, cm_build_int64s(&g->build, (size_t)(rank - 1 - axis), axes));
}

/* With blocks along an axis: which of them each of its elements is in. */
static cm_value block_numbers(struct cm_grad *g, cm_value x, int axis)
{
    const cm_value length =
        cm_emit(g, "Gather", cm_emit(g, "Shape", x), cm_build_int64(&g->build, axis));
    const cm_value place =
        cm_emit(g, "Range", cm_build_int64(&g->build, 0), length, cm_build_int64(&g->build, 1));
    return cm_emit(g, "Div", place, cm_build_int64(&g->build, cm_node_int(g->node, "block_size")));
}

static enum cm_status block_scale_grad(struct cm_grad *g, cm_value v, cm_value zero, cm_value dy,
                                       int axis)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value scale = cm_grad_input(g, SCALE), block = block_numbers(g, v, axis);
    const cm_value wide =
        cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", CM_FLOAT)), scale);
    if (zero)
        v = cm_emit(g, "Sub", v,
                    cm_emit_with(g, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), zero,
                                 block));
    const cm_value sums = cm_index_put_slices(g, wide, axis, block, cm_emit(g, "Mul", dy, v));
    return cm_grad_set(g, SCALE, cm_emit(g, "CastLike", sums, scale));
}

/* The scale's: the sum of dy * (x - zero point) over what it counts for. */
static enum cm_status dequantize_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, X), scale = cm_grad_input(g, SCALE);
    cm_value zero = cm_grad_input(g, ZERO);
    const struct cm_type *type = cm_builder_type(&g->build, x);
    const struct cm_type *scales = cm_builder_type(&g->build, scale);
    struct cm_arena *arena = cm_builder_arena(&g->build);
    int axis = 0;
    if (!cm_grad_wants(g, SCALE))
        return CM_OK;
    const bool blocks = cm_node_int(g->node, "block_size") != 0 && scales->rank == type->rank;
    if (type->rank == CM_RANK_UNKNOWN || scales->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient by a scale needs known ranks");
    const bool whole = !blocks && (scales->rank == 0 || scales->dims[0].value == 1);
    if (!whole && type->rank != 1 && !cm_axis_fix(cm_node_int(g->node, "axis"), type->rank, &axis))
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "its axis is out of range");
    const struct cm_attribute_proto to_float = cm_attr_int(arena, "to", CM_FLOAT);
    cm_value v = cm_emit_with(g, "Cast", CM_ATTRIBUTES(to_float), x);
    const cm_value dy = cm_emit_with(g, "Cast", CM_ATTRIBUTES(to_float), cm_grad_incoming(g, 0));
    if (zero)
        zero = cm_emit_with(g, "Cast", CM_ATTRIBUTES(to_float), zero);
    if (blocks)
        return block_scale_grad(g, v, zero, dy, axis);
    if (zero)
        v = cm_emit(g, "Sub", v, whole ? zero : along_axis(g, zero, axis, type->rank));
    cm_value d = cm_emit(g, "Mul", dy, v);
    int64_t axes[CM_MAX_RANK];
    int n_axes = 0;
    for (int i = 0; i < type->rank; i++)
        if (whole || i != axis)
            axes[n_axes++] = i;
    if (n_axes > 0) /* a scale of rank 1 keeps an axis, which cm_grad_set cannot add */
        d = cm_emit_with(g, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), d,
                         cm_build_int64s(&g->build, (size_t)n_axes, axes));
    if (whole && scales->rank == 1)
        d = cm_emit(g, "Unsqueeze", d, cm_emit_int64s(g, 0));
    d = cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", scales->dtype)), d);
    return cm_grad_set(g, SCALE, d);
}

CM_OP(DequantizeLinear, .values.is_quantized = true, .infer = dequantize_infer,
      .prepare = dequantize_prepare, .run = dequantize_run, .grad = dequantize_grad,
      .elementwise = dequantize_elementwise, .cost.work = cm_work_linear);
