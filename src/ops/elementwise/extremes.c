/* Max, Min, Sum and Mean of any number of operands, and Clip. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

#include <math.h>

#define MAX_INTEGER(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a > b ? a : b)
#define MIN_INTEGER(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a < b ? a : b)
/* NaN wins over numbers. */
CM_BINARY_FLOATS(max, a > b || isnan(a) ? a : b)
CM_INTEGER_TYPES(MAX_INTEGER, max, ())
CM_BINARY_FLOATS(min, a < b || isnan(a) ? a : b)
CM_INTEGER_TYPES(MIN_INTEGER, min, ())
CM_BINARY_LOOPS(sum, CM_FLOAT_TYPES, a + b)
CM_UNARY_LOOPS(mean, CM_FLOAT_TYPES, x / (T)p[1])

static cm_binary_fn *const max_loops[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, max, ())};
static cm_binary_fn *const min_loops[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, min, ())};

struct variadic {
    cm_binary_fn *const *loops;
    cm_unary_fn *const *finish;      /* of what was joined; may be NULL */
    cm_quantity_pair_fn *of_numbers; /* may be NULL */
};

static const struct variadic max = {max_loops, NULL, cm_quantity_larger};
static const struct variadic min = {min_loops, NULL, cm_quantity_smaller};
static const struct variadic sum = {sum_loops, NULL, NULL};
static const struct variadic mean = {sum_loops, mean_loops, NULL};

enum { BLOCK = 512, WIDEST = 8 };

/* Several operands are joined in a block of their own, and the last join writes the output: so that
 * may be any operand's memory. */
union block {
    double align;
    char bytes[BLOCK * WIDEST];
};

/* Operand i of a run from element `at` on; NULL when absent. */
static const void *operand(const struct cm_elements *e, int i, int64_t at, size_t width)
{
    if (i >= e->n_in || !e->in[i])
        return NULL;
    return (const char *)e->in[i] + (size_t)(at * e->step[i]) * width;
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (to != from)
        memcpy(to, from, bytes);
}

static void join(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const struct variadic *what = loop->arg;
    const enum cm_dtype type = (enum cm_dtype)loop->p[0];
    const size_t width = cm_dtype_size(type);
    for (int64_t at = 0; at < e->count; at += BLOCK) {
        const int64_t n = e->count - at < BLOCK ? e->count - at : BLOCK;
        char *out = (char *)e->out + (size_t)at * width;
        union block block;
        const void *joined = operand(e, 0, at, width);
        for (int i = 1; i < e->n_in; i++) {
            void *to = i + 1 == e->n_in ? (void *)out : &block;
            what->loops[type](n, joined, i == 1 ? e->step[0] : 1, operand(e, i, at, width),
                              e->step[i], to, loop->p);
            joined = to;
        }
        copy(out, joined, (size_t)n * width);
        if (what->finish)
            what->finish[type](n, out, out, loop->p);
    }
}

static bool variadic_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                                 enum cm_dtype out, struct cm_element_loop *loop)
{
    const struct variadic *what = node->op->arg;
    const enum cm_dtype type = cm_element_type(out);
    (void)in;
    *loop = (struct cm_element_loop){
        .run = join, .arg = what, .p = {(double)type, (double)node->n_inputs}};
    return what->loops[type];
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
    if (what->finish)
        dx = cm_emit(g, "Mul", dx, cm_emit_scalar_like(g, dx, 1.0 / g->node->n_inputs));
    for (int i = 0; i < g->node->n_inputs; i++)
        CM_TRY(cm_grad_set(g, i, dx));
    return CM_OK;
}

static enum cm_status variadic_infer(struct cm_infer *in)
{
    const struct variadic *what = in->node->op->arg;
    CM_TRY(cm_infer_broadcast(in));
    if (what->of_numbers)
        cm_infer_quantities(in, what->of_numbers);
    return CM_OK;
}

#define VARIADIC(row, grad_)                                                                       \
    .infer = variadic_infer, .prepare = cm_elements_prepare, .run = cm_elements_run,               \
    .grad = (grad_), .memory.share = cm_share_elementwise, .memory.layouts = CM_LAYOUT_SAME,       \
    .elementwise = variadic_elementwise, .arg = &(row)

/* One after the other; the mean is divided at the end. */
static cm_value add_all(struct cm_body *b)
{
    cm_value total = cm_body_input(b, 0);
    for (int i = 1; i < b->node->n_inputs; i++)
        total = cm_emit(b, "Add", total, cm_body_input(b, i));
    return b->node->n_inputs > 1 ? total : cm_emit(b, "Identity", total);
}

static enum cm_status sum_body(struct cm_body *b)
{
    return cm_body_return(b, 0, add_all(b));
}

static enum cm_status mean_body(struct cm_body *b)
{
    const cm_value total = add_all(b);
    const cm_value count = cm_emit_scalar_like(b, cm_body_input(b, 0), b->node->n_inputs);
    return cm_body_return(b, 0, cm_emit(b, "Div", total, count));
}

CM_OP(Max, VARIADIC(max, extreme_grad));
CM_OP(Min, VARIADIC(min, extreme_grad));
CM_OP(Sum, VARIADIC(sum, sum_grad), .body = sum_body, .layer.weights = ~0u,
      .layer.entry = CM_ENTERS_AS_SHIFT);
CM_OP(Mean, VARIADIC(mean, sum_grad), .body = mean_body);

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

/* Floats between two numbers, neither of which is NaN: by far the most frequent form. */
static CM_ALWAYS_INLINE void clip_floats_on(enum cm_machine machine, int64_t count, const float *x,
                                            float least, float most, float *y)
{
    (void)machine;
    CM_ANY_ORDER
    for (int64_t i = 0; i < count; i++) {
        const float v = x[i], raised = v <= least ? least : v; /* NaN stays */
        y[i] = raised >= most ? most : raised;
    }
}
CM_TWO_BUILDS(clip_floats, (int64_t count, const float *x, float least, float most, float *y),
              (machine, count, x, least, most, y))

/* Says whether the run is of that form, and clips it then. */
static bool clip_between(const struct cm_elements *e)
{
    const float *least = e->n_in > 2 ? e->in[1] : NULL, *most = e->n_in > 2 ? e->in[2] : NULL;
    if (!least || !most || e->step[1] || e->step[2] || !e->step[0] || isnan(*least) || isnan(*most))
        return false;
    clip_floats_builds[cm_this_machine()](e->count, e->in[0], *least, *most, e->out);
    return true;
}

static void clip(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const enum cm_dtype type = (enum cm_dtype)loop->p[0];
    if (type == CM_FLOAT && clip_between(e))
        return;
    const size_t width = cm_dtype_size(type);
    for (int64_t at = 0; at < e->count; at += BLOCK) {
        const int64_t n = e->count - at < BLOCK ? e->count - at : BLOCK;
        const void *x = operand(e, 0, at, width), *least = operand(e, 1, at, width);
        const void *most = operand(e, 2, at, width);
        char *out = (char *)e->out + (size_t)at * width;
        union block raised;
        if (least)
            max_loops[type](n, x, e->step[0], least, e->step[1], most ? (void *)&raised : out,
                            loop->p);
        if (most)
            min_loops[type](n, least ? &raised : x, least ? 1 : e->step[0], most, e->step[2], out,
                            loop->p);
        if (!least && !most)
            copy(out, x, (size_t)n * width);
    }
}

static bool clip_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                             struct cm_element_loop *loop)
{
    const enum cm_dtype type = cm_element_type(out);
    (void)node, (void)in;
    *loop = (struct cm_element_loop){.run = clip, .p = {(double)type}};
    return max_loops[type];
}

/* Inside, ends included, the gradient goes to x; what a bound replaced goes to that bound, to max
 * where it is below min. */
static enum cm_status clip_grad(struct cm_grad *g)
{
    const bool least = cm_grad_input(g, 1) != 0, most = cm_grad_input(g, 2) != 0;
    return cm_grad_formula(g, "d = d_output; zero = like(d, 0); %s %s %s d_input = d",
                           !most   ? ""
                           : least ? "raised = Max(input, min);"
                                   : "raised = input;",
                           most ? "cut = Greater(raised, max); d_max = Where(cut, d, zero);"
                                  "d = Where(cut, zero, d);"
                                : "",
                           least ? "low = Less(input, min); d_min = Where(low, d, zero);"
                                   "d = Where(low, zero, d);"
                                 : "");
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

CM_OP(Clip, .infer = clip_infer, .prepare = cm_elements_prepare, .run = cm_elements_run,
      .grad = clip_grad, .body = clip_body, .memory.share = cm_share_first,
      .memory.layouts = CM_LAYOUT_SAME, .elementwise = clip_elementwise);
