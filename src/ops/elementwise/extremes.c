/* Max, Min, Sum and Mean of any number of operands, and Clip. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/walk.h"
#include "tensor/half.h"

#include <math.h>

/* NaN wins over numbers. */
#define MAX_FLOAT(TAG, ctype, name, extra)                                                         \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, a > b || isnan(a) ? a : b)
#define MIN_FLOAT(TAG, ctype, name, extra)                                                         \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, a < b || isnan(a) ? a : b)
#define MAX_INTEGER(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a > b ? a : b)
#define MIN_INTEGER(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a < b ? a : b)
CM_FLOAT_TYPES(MAX_FLOAT, max, ())
CM_INTEGER_TYPES(MAX_INTEGER, max, ())
CM_FLOAT_TYPES(MIN_FLOAT, min, ())
CM_INTEGER_TYPES(MIN_INTEGER, min, ())
CM_BINARY_LOOPS(sum, CM_FLOAT_TYPES, a + b)

static cm_binary_fn *const max_loops[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, max, ())};
static cm_binary_fn *const min_loops[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, min, ())};

struct variadic {
    cm_binary_fn *const *loops;
    bool is_mean;
};

static const struct variadic max = {max_loops, false};
static const struct variadic min = {min_loops, false};
static const struct variadic sum = {sum_loops, false};
static const struct variadic mean = {sum_loops, true};

enum { BLOCK = 512, WIDEST = 8 };

/* Operands are joined in a block of their own, which is then written: so the output may be any
 * operand's memory, and narrow types are rounded once. */
union block {
    double align;
    char bytes[BLOCK * WIDEST];
};

/* n elements of a tensor, repeated where step is 0; narrow types become float. Returns where they
 * are. */
static const void *load(const struct cm_tensor *x, bool narrow, int64_t at, int64_t step, int64_t n,
                        union block *block)
{
    if (!narrow)
        return (const char *)x->data + (size_t)at * cm_dtype_size(x->type);
    cm_narrow_load(x->type, x->data, at, step ? n : 1, (float *)(void *)block);
    return block;
}

static void store(const struct cm_tensor *y, bool narrow, int64_t at, int64_t n,
                  const union block *block)
{
    const size_t width = cm_dtype_size(y->type);
    if (narrow)
        cm_narrow_store(y->type, y->data, at, n, (const float *)(const void *)block);
    else
        memcpy((char *)y->data + (size_t)at * width, block, (size_t)n * width);
}

static void divide(bool is_double, int64_t n, int divisor, union block *block)
{
    float *floats = (float *)(void *)block;
    double *doubles = (double *)(void *)block;
    for (int64_t i = 0; i < n; i++) {
        if (is_double)
            doubles[i] /= divisor;
        else
            floats[i] /= (float)divisor;
    }
}

/* One operand's elements, repeated if need be, as the beginning of a join. */
static void begin(const void *from, size_t width, int64_t step, int64_t n, union block *to)
{
    if (step) {
        memcpy(to, from, (size_t)n * width);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to->bytes + (size_t)i * width, from, width);
}

static enum cm_status variadic_prepare(struct cm_call *call)
{
    cm_walk_plan(call);
    cm_call_scratch(call, (size_t)call->n_in * sizeof(int64_t));
    return CM_OK;
}

static enum cm_status variadic_run(struct cm_call *call)
{
    const struct variadic *what = call->op->arg;
    const struct cm_walk *walk = call->state;
    const struct cm_tensor *y = call->out[0];
    const bool narrow = cm_dtype_is_narrow(y->type);
    const size_t width = narrow ? sizeof(float) : cm_dtype_size(y->type);
    cm_binary_fn *loop = what->loops[narrow ? CM_FLOAT : y->type];
    int64_t index[CM_MAX_RANK] = {0}, *at = call->scratch;

    if (!loop)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(y->type));
    memset(at, 0, (size_t)call->n_in * sizeof *at);
    for (int64_t run = 0; run < walk->count; run += walk->run) {
        for (int64_t done = 0; done < walk->run; done += BLOCK) {
            const int64_t n = walk->run - done < BLOCK ? walk->run - done : BLOCK;
            union block joined, other;
            for (int i = 0; i < call->n_in; i++) {
                const int64_t step = walk->operands[i].step;
                const void *x = load(call->in[i], narrow, at[i] + done * step, step, n, &other);
                if (i == 0)
                    begin(x, width, step, n, &joined);
                else
                    loop(n, &joined, 1, x, step, &joined);
            }
            if (what->is_mean)
                divide(y->type == CM_DOUBLE, n, call->n_in, &joined);
            store(y, narrow, run + done, n, &joined);
        }
        cm_walk_next(walk, index, at);
    }
    return CM_OK;
}

/* Operands that equal the result share the gradient evenly. */
static enum cm_status extreme_grad(struct cm_grad *g)
{
    const int n = g->node->n_inputs;
    const cm_value y = cm_grad_output(g, 0), dy = cm_grad_incoming(g, 0);
    if (n == 1)
        return cm_grad_set(g, 0, dy);
    const cm_value zero = cm_emit_scalar_like(g, y, 0), one = cm_emit_scalar_like(g, y, 1);
    cm_value *hits = CM_NEW_ARRAY(cm_builder_arena(&g->build), cm_value, (size_t)n);
    cm_value all = 0;
    for (int i = 0; i < n; i++) {
        const cm_value equal = cm_emit(g, "Equal", cm_grad_input(g, i), y);
        hits[i] = cm_emit(g, "Where", equal, one, zero);
        all = i == 0 ? hits[0] : cm_emit(g, "Add", all, hits[i]);
    }
    const cm_value share = cm_emit(g, "Div", dy, all);
    for (int i = 0; i < n; i++)
        CM_TRY(cm_grad_set(g, i, cm_emit(g, "Mul", share, hits[i])));
    return CM_OK;
}

static enum cm_status sum_grad(struct cm_grad *g)
{
    const struct variadic *what = g->node->op->arg;
    cm_value dx = cm_grad_incoming(g, 0);
    if (what->is_mean)
        dx = cm_emit(g, "Mul", dx, cm_emit_scalar_like(g, dx, 1.0 / g->node->n_inputs));
    for (int i = 0; i < g->node->n_inputs; i++)
        CM_TRY(cm_grad_set(g, i, dx));
    return CM_OK;
}

#define VARIADIC(row, grad_)                                                                       \
    .infer = cm_infer_broadcast, .prepare = variadic_prepare, .run = variadic_run,                 \
    .grad = (grad_), .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME, .arg = &(row)

CM_OP(Max, VARIADIC(max, extreme_grad));
CM_OP(Min, VARIADIC(min, extreme_grad));
CM_OP(Sum, VARIADIC(sum, sum_grad));
CM_OP(Mean, VARIADIC(mean, sum_grad));

/* ---- Clip: Min(max, Max(x, min)), either bound may be absent ---- */

static enum cm_status clip_infer(struct cm_infer *in)
{
    for (int i = 1; i <= 2; i++) {
        const struct cm_type *bound = cm_infer_type(in, i);
        for (int d = 0; bound && d < bound->rank; d++)
            if (cm_dim_known(bound->dims[d]) && bound->dims[d].value != 1)
                return cm_infer_fail(in, "input %d is not a scalar", i);
    }
    return cm_infer_set(in, 0, cm_infer_type(in, 0));
}

/* Joins n elements with one bound, in place. */
static void bound_block(const struct cm_tensor *bound, cm_binary_fn *const *loops, bool narrow,
                        int64_t n, union block *block)
{
    union block one;
    if (bound)
        loops[narrow ? CM_FLOAT : bound->type](n, block, 1, load(bound, narrow, 0, 0, 1, &one), 0,
                                               block);
}

static enum cm_status clip_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0], *y = call->out[0];
    const struct cm_tensor *least = call->n_in > 1 ? call->in[1] : NULL;
    const struct cm_tensor *most = call->n_in > 2 ? call->in[2] : NULL;
    const bool narrow = cm_dtype_is_narrow(x->type);
    const size_t width = narrow ? sizeof(float) : cm_dtype_size(x->type);
    const int64_t count = cm_tensor_count(x);

    if (!max_loops[narrow ? CM_FLOAT : x->type])
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        union block block;
        const void *from = load(x, narrow, at, 1, n, &block);
        if (!narrow)
            memcpy(&block, from, (size_t)n * width);
        bound_block(least, max_loops, narrow, n, &block);
        bound_block(most, min_loops, narrow, n, &block);
        store(y, narrow, at, n, &block);
    }
    return CM_OK;
}

static enum cm_sharing clip_share(const struct cm_node *node, int output, int input)
{
    (void)node, (void)output;
    return input == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

/* Inside, ends included, the gradient goes to x; what a bound replaced goes to that bound, to max
 * where it is below min. */
static enum cm_status clip_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0), least = cm_grad_input(g, 1), most = cm_grad_input(g, 2);
    cm_value dx = cm_grad_incoming(g, 0);
    const cm_value zero = cm_emit_scalar_like(g, dx, 0);
    if (most) {
        const cm_value raised = least ? cm_emit(g, "Max", x, least) : x;
        const cm_value cut = cm_emit(g, "Greater", raised, most);
        CM_TRY(cm_grad_set(g, 2, cm_emit(g, "Where", cut, dx, zero)));
        dx = cm_emit(g, "Where", cut, zero, dx);
    }
    if (least) {
        const cm_value cut = cm_emit(g, "Less", x, least);
        CM_TRY(cm_grad_set(g, 1, cm_emit(g, "Where", cut, dx, zero)));
        dx = cm_emit(g, "Where", cut, zero, dx);
    }
    return cm_grad_set(g, 0, dx);
}

static bool may_have_rank(struct cm_body *b, cm_value bound)
{
    const struct cm_type *type = bound ? cm_builder_type(&b->build, bound) : NULL;
    return type && type->rank != 0;
}

static enum cm_status clip_body(struct cm_body *b)
{
    const cm_value least = cm_body_input(b, 1), most = cm_body_input(b, 2);
    const cm_value x = cm_body_input(b, 0);
    cm_value y = x;
    if (least)
        y = cm_emit(b, "Max", y, least);
    if (most)
        y = cm_emit(b, "Min", y, most);
    if (y == x)
        y = cm_emit(b, "Identity", x);
    else if (may_have_rank(b, least) || may_have_rank(b, most)) /* a scalar x would get one */
        y = cm_emit(b, "Reshape", y, cm_emit(b, "Shape", x));
    return cm_body_return(b, 0, y);
}

CM_OP(Clip, .infer = clip_infer, .run = clip_run, .grad = clip_grad, .body = clip_body,
      .share = clip_share, .layouts = CM_LAYOUT_SAME);
