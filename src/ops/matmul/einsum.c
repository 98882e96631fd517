/* Einsum: sums of products over named axes. Two operands are matrix products as far as their axes
 * allow; everything else is summed element by element. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/einsum.h"

#include "base/number.h"
#include "ops/common/gemm.h"
#include "tensor/element_types.h"
#include "tensor/half.h"

enum { LABELS = CM_EINSUM_LABELS };

static enum cm_status einsum_infer(struct cm_infer *in)
{
    const size_t n = (size_t)in->n_in;
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    struct cm_einsum_term *terms = CM_NEW_ARRAY(in->arena, struct cm_einsum_term, n + 1);
    int *ranks = CM_NEW_ARRAY(in->arena, int, n);
    struct cm_dim of_label[LABELS], dims[CM_MAX_RANK];
    bool vague;
    for (size_t i = 0; i < n; i++)
        ranks[i] = cm_infer_type(in, (int)i)->rank;
    CM_TRY(cm_einsum_parse(cm_node_str(in->node, "equation"), n, ranks, terms, &vague, in->err));
    for (int label = 0; label < LABELS; label++)
        of_label[label] = CM_DIM(1);
    for (size_t i = 0; i < n; i++) {
        for (int axis = 0; axis < terms[i].rank; axis++) {
            const struct cm_dim dim =
                ranks[i] == CM_RANK_UNKNOWN ? CM_DIM_ANY : cm_infer_type(in, (int)i)->dims[axis];
            struct cm_dim *known = &of_label[terms[i].labels[axis]];
            const struct cm_dim before = *known;
            if (!cm_dim_broadcast(before, dim, known))
                return cm_infer_fail(in, "axis %d of input %zu has %lld where another has %lld",
                                     axis, i, (long long)dim.value, (long long)before.value);
        }
    }
    if (vague) /* what the dots stand for may be in the result */
        return cm_infer_set_tensor(in, 0, dtype, CM_RANK_UNKNOWN, NULL);
    for (int axis = 0; axis < terms[n].rank; axis++)
        dims[axis] = of_label[terms[n].labels[axis]];
    return cm_infer_set_tensor(in, 0, dtype, terms[n].rank, dims);
}

/* An axis that is walked: its length and, per operand, how far one step goes. The result's step
 * comes last. */
struct axis {
    int64_t count;
    int64_t *steps;
};

struct einsum {
    int n_operands;
    int n_outer;  /* axes of the result, in its order */
    int n_summed; /* axes that are summed; they follow in axes */
    bool empty_sum;
    bool as_gemm;
    int gemm_m, gemm_n, gemm_k; /* which axes the matrix product covers; -1: none, of length 1 */
    int64_t outer_count, summed_count;
    struct axis axes[LABELS];
};

/* Where a run is. */
struct cursor {
    const struct einsum *e;
    const void **data; /* of the operands */
    int64_t *at;       /* positions in the operands, then in the result */
};

static int64_t axis_count(const struct einsum *e, int axis)
{
    return axis < 0 ? 1 : e->axes[axis].count;
}

static int64_t axis_step(const struct einsum *e, int axis, int operand)
{
    return axis < 0 ? 0 : e->axes[axis].steps[operand];
}

/* Adds a label as an axis: the steps of a label that an operand has twice add up, which walks its
 * diagonal. */
static void add_axis(struct cm_call *call, struct einsum *e, int index,
                     const struct cm_einsum_term *terms, int label)
{
    struct axis *axis = &e->axes[index];
    axis->count = 1;
    for (int i = 0; i <= e->n_operands; i++) {
        const struct cm_tensor *tensor = i < e->n_operands ? call->in[i] : call->out[0];
        int64_t strides[CM_MAX_RANK];
        cm_shape_strides(&tensor->shape, strides);
        axis->steps[i] = 0;
        for (int d = 0; d < terms[i].rank; d++) {
            if (terms[i].labels[d] != label)
                continue;
            if (axis->count == 1)
                axis->count = tensor->shape.dims[d];
            if (tensor->shape.dims[d] != 1)
                axis->steps[i] += strides[d];
        }
    }
}

/* Joins neighbours that every operand walks as one; first and *n say which axes. */
static void merge_axes(struct einsum *e, int first, int *n)
{
    int kept = 0;
    for (int i = first; i < first + *n; i++) {
        struct axis *axis = &e->axes[i];
        if (axis->count == 1)
            continue;
        bool same = kept > 0;
        for (int o = 0; same && o <= e->n_operands; o++)
            same = e->axes[first + kept - 1].steps[o] == axis->steps[o] * axis->count;
        const int to = same ? first + kept - 1 : first + kept++;
        const int64_t count = same ? e->axes[to].count * axis->count : axis->count;
        int64_t *const steps = e->axes[to].steps;
        e->axes[to] = (struct axis){count, axis->steps};
        axis->steps = to == i ? axis->steps : steps;
    }
    *n = kept;
}

/* The longest axis in [first, last) that operand a walks and operand b does (or does not); -1 when
 * there is none. */
static int longest(const struct einsum *e, int first, int last, bool in_a, bool in_b)
{
    int best = -1;
    for (int i = first; i < last; i++) {
        const bool a = e->axes[i].steps[0] != 0, b = e->axes[i].steps[1] != 0;
        if (a == in_a && b == in_b && (best < 0 || e->axes[i].count > e->axes[best].count))
            best = i;
    }
    return best;
}

/* A matrix product fits when all sums go over one axis that both operands have. */
static void choose_gemm(struct einsum *e, enum cm_dtype type)
{
    const int summed = e->n_outer;
    if (e->n_operands != 2 || e->n_summed > 1 || !cm_gemm_has(type) || e->empty_sum)
        return;
    e->gemm_k = e->n_summed ? longest(e, summed, summed + 1, true, true) : -1;
    if (e->n_summed && e->gemm_k < 0)
        return;
    e->gemm_m = longest(e, 0, summed, true, false);
    e->gemm_n = longest(e, 0, summed, false, true);
    e->as_gemm = e->gemm_m >= 0 || e->gemm_n >= 0;
}

static enum cm_status collect_axes(struct cm_call *call, struct einsum *e,
                                   const struct cm_einsum_term *terms)
{
    bool taken[LABELS] = {false};
    int n = 0;
    for (int i = 0; i < terms[e->n_operands].rank; i++) {
        const int label = terms[e->n_operands].labels[i];
        taken[label] = true;
        add_axis(call, e, n++, terms, label);
    }
    e->n_outer = n;
    for (int i = 0; i < e->n_operands; i++) {
        for (int d = 0; d < terms[i].rank; d++) {
            const int label = terms[i].labels[d];
            if (taken[label])
                continue;
            taken[label] = true;
            add_axis(call, e, n++, terms, label);
            e->empty_sum = e->empty_sum || e->axes[n - 1].count == 0;
        }
    }
    e->n_summed = n - e->n_outer;
    return CM_OK;
}

static size_t cursor_size(size_t n_operands)
{
    return cm_round_up(n_operands * sizeof(void *) + (n_operands + 1) * sizeof(int64_t),
                       CM_TENSOR_ALIGNMENT);
}

static enum cm_status einsum_prepare(struct cm_call *call)
{
    const size_t n = (size_t)call->n_in;
    const size_t steps = (n + 1) * LABELS;
    struct einsum *e = cm_call_state(call, sizeof *e + steps * sizeof(int64_t) + n * sizeof(int) +
                                               (n + 1) * sizeof(struct cm_einsum_term));
    int64_t *numbers = (int64_t *)(void *)(e + 1);
    bool vague;
    e->n_operands = call->n_in;
    for (size_t i = 0; i < LABELS; i++)
        e->axes[i].steps = numbers + i * (n + 1);
    int *ranks = (int *)(void *)(numbers + steps);
    struct cm_einsum_term *terms = (struct cm_einsum_term *)(void *)(ranks + n);
    for (size_t i = 0; i < n; i++)
        ranks[i] = call->in[i]->shape.rank;
    CM_TRY(
        cm_einsum_parse(cm_node_str(call->node, "equation"), n, ranks, terms, &vague, call->err));
    CM_TRY(collect_axes(call, e, terms));

    int n_summed = e->n_summed;
    const int first_summed = e->n_outer;
    merge_axes(e, 0, &e->n_outer);
    merge_axes(e, first_summed, &n_summed);
    for (int i = 0; i < n_summed; i++) { /* close the gap between the two groups */
        const struct axis axis = e->axes[e->n_outer + i];
        e->axes[e->n_outer + i] = e->axes[first_summed + i];
        e->axes[first_summed + i] = axis;
    }
    e->n_summed = n_summed;
    e->outer_count = cm_tensor_count(call->out[0]);
    e->summed_count = 1;
    for (int i = e->n_outer; !e->empty_sum && i < e->n_outer + n_summed; i++)
        if (!cm_dim_mul(e->summed_count, e->axes[i].count, &e->summed_count))
            return cm_call_fail(call, CM_LIMIT, "the sum for one element has too many terms");
    choose_gemm(e, call->in[0]->type);
    size_t scratch = cursor_size(n);
    if (e->as_gemm)
        scratch += cm_gemm_scratch(call->in[0]->type, axis_count(e, e->gemm_m),
                                   axis_count(e, e->gemm_n), axis_count(e, e->gemm_k));
    cm_call_scratch(call, scratch);
    return CM_OK;
}

/* Goes to the next index of axes [first, last), the last fastest, those of the matrix product left
 * alone; false at the end. */
static bool step(struct cursor *c, int64_t *index, int first, int last)
{
    const struct einsum *e = c->e;
    for (int i = last - 1; i >= first; i--) {
        if (e->as_gemm && (i == e->gemm_m || i == e->gemm_n || i == e->gemm_k))
            continue;
        const struct axis *axis = &e->axes[i];
        const bool wraps = ++index[i] == axis->count;
        for (int o = 0; o <= e->n_operands; o++)
            c->at[o] += wraps ? axis->steps[o] - axis->steps[o] * axis->count : axis->steps[o];
        if (!wraps)
            return true;
        index[i] = 0;
    }
    return false;
}

static void run_gemm(struct cm_call *call, struct cursor *c)
{
    const struct einsum *e = c->e;
    int64_t index[LABELS] = {0};
    const int m = e->gemm_m, n = e->gemm_n, k = e->gemm_k;
    struct cm_gemm g = {.type = call->in[0]->type,
                        .m = axis_count(e, m),
                        .n = axis_count(e, n),
                        .k = axis_count(e, k),
                        .a = {call->in[0]->data, 0, axis_step(e, m, 0), axis_step(e, k, 0)},
                        .b = {call->in[1]->data, 0, axis_step(e, k, 1), axis_step(e, n, 1)},
                        .alpha = 1,
                        .c = call->out[0]->data,
                        .c_row = axis_step(e, m, 2),
                        .c_column = axis_step(e, n, 2)};
    do {
        g.a.first = c->at[0];
        g.b.first = c->at[1];
        g.c_first = c->at[2];
        cm_gemm(&g, (char *)call->scratch + cursor_size(2));
    } while (step(c, index, 0, e->n_outer));
}

/* The sum of products along one axis, from the positions in at. */
typedef void sum_fn(const struct cursor *c, enum cm_dtype type, int64_t count, const int64_t *steps,
                    void *total);

#define SUM_PARAMETERS                                                                             \
    const struct cursor *c, enum cm_dtype type, int64_t count, const int64_t *steps, void *total
#define DEFINE_TERM(TAG, ctype, wide)                                                              \
    static wide term_##TAG(const struct cursor *c, int64_t i, const int64_t *steps)                \
    {                                                                                              \
        wide product = 1;                                                                          \
        for (int o = 0; o < c->e->n_operands; o++)                                                 \
            product *= (wide)((const ctype *)c->data[o])[c->at[o] + i * steps[o]];                 \
        return product;                                                                            \
    }
#define DEFINE_SUM(TAG, ctype, wide)                                                               \
    DEFINE_TERM(TAG, ctype, wide)                                                                  \
    static void sum_##TAG(SUM_PARAMETERS)                                                          \
    {                                                                                              \
        wide sum = 0;                                                                              \
        (void)type;                                                                                \
        for (int64_t i = 0; i < count; i++)                                                        \
            sum += term_##TAG(c, i, steps);                                                        \
        *(wide *)total += sum;                                                                     \
    }
#define FLOAT_SUM(TAG, ctype, name, extra)   DEFINE_SUM(TAG, ctype, double)
#define INTEGER_SUM(TAG, ctype, name, extra) DEFINE_SUM(TAG, ctype, uint64_t)
CM_FLOAT_TYPES(FLOAT_SUM, sum, ())
CM_INTEGER_TYPES(INTEGER_SUM, sum, ())

static void sum_narrow(SUM_PARAMETERS)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double product = 1;
        for (int o = 0; o < c->e->n_operands; o++) {
            float x;
            cm_narrow_load(type, c->data[o], c->at[o] + i * steps[o], 1, &x);
            product *= (double)x;
        }
        sum += product;
    }
    *(double *)total += sum;
}

static sum_fn *const sums[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, sum, ())[CM_FLOAT16] = sum_narrow,
    [CM_BFLOAT16] = sum_narrow,
};

/* The low bytes of a sum modulo 2^64 are the sum modulo any smaller power. */
static void store_sum(struct cm_tensor *y, int64_t at, double real, uint64_t whole)
{
    const size_t size = cm_dtype_size(y->type);
    const float narrow = (float)real;
    if (y->type == CM_DOUBLE)
        ((double *)y->data)[at] = real;
    else if (y->type == CM_FLOAT)
        ((float *)y->data)[at] = narrow;
    else if (cm_dtype_info(y->type)->kind == CM_CLASS_FLOAT)
        cm_narrow_store(y->type, y->data, at, 1, &narrow);
    else
        memcpy((char *)y->data + (size_t)at * size, &whole, size);
}

static void run_sums(struct cm_call *call, struct cursor *c)
{
    const struct einsum *e = c->e;
    const enum cm_dtype type = call->in[0]->type;
    const bool real = cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
    const int inner = e->n_outer + e->n_summed - 1; /* the axis that sum_fn walks */
    int64_t index[LABELS] = {0};
    const struct axis one = {1, e->axes[LABELS - 1].steps};
    const struct axis *axis = e->n_summed ? &e->axes[inner] : &one;
    do {
        double real_total = 0;
        uint64_t whole_total = 0;
        void *total = real ? (void *)&real_total : (void *)&whole_total;
        if (!e->empty_sum)
            do {
                sums[type](c, type, axis->count, axis->steps, total);
            } while (e->n_summed && step(c, index, e->n_outer, inner));
        store_sum(call->out[0], c->at[e->n_operands], real_total, whole_total);
    } while (step(c, index, 0, e->n_outer));
}

static enum cm_status einsum_run(struct cm_call *call)
{
    const struct einsum *e = call->state;
    const enum cm_dtype type = call->in[0]->type;
    const size_t n = (size_t)e->n_operands;
    if (!sums[type])
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(type));
    if (e->outer_count == 0)
        return CM_OK;
    struct cursor cursor = {.e = e, .data = call->scratch};
    cursor.at = (int64_t *)(void *)(cursor.data + n);
    for (size_t i = 0; i < n; i++)
        cursor.data[i] = call->in[i]->data;
    memset(cursor.at, 0, (n + 1) * sizeof cursor.at[0]);
    (e->as_gemm ? run_gemm : run_sums)(call, &cursor);
    return CM_OK;
}

CM_OP(Einsum, .infer = einsum_infer, .prepare = einsum_prepare, .run = einsum_run,
      .grad = cm_einsum_grad, .layer.weights = ~0u);
