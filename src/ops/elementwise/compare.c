/* Comparisons: Greater, Less, Equal and their kin, IsNaN and IsInf. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"
#include "tensor/half.h"

#include <math.h>

struct comparison {
    cm_binary_fn *const *loops;
    cm_quantity_fn *of_numbers;
};

CM_COMPARE_LOOPS(greater, CM_NUMBER_TYPES, a > b)
CM_COMPARE_LOOPS(less, CM_NUMBER_TYPES, a < b)
CM_COMPARE_LOOPS(greater_or_equal, CM_NUMBER_TYPES, a >= b)
CM_COMPARE_LOOPS(less_or_equal, CM_NUMBER_TYPES, a <= b)

/* Any byte but 0 is true, whatever a file holds. */
CM_BINARY_LOOP(equal, BOOL, uint8_t, uint8_t, !a == !b)
CM_BINARY_LOOP(equal, STRING, struct cm_str, uint8_t, cm_str_equal(a, b))
#define EQUAL_ROW(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, uint8_t, a == b)
CM_NUMBER_TYPES(EQUAL_ROW, equal, ())
#define EQUAL_TYPES(ROW, name, extra)                                                              \
    CM_NUMBER_TYPES(ROW, name, extra)                                                              \
    CM_BOOL_TYPES(ROW, name, extra)                                                                \
    ROW(STRING, struct cm_str, name, extra)
static cm_binary_fn *const equal_loops[CM_DTYPE_COUNT] = {EQUAL_TYPES(CM_LOOP_ENTRY, equal, ())};

/* Bools that shape arithmetic decides are known as 0 and 1. */
static bool decide(bool sure, bool verdict, struct cm_quantity *out)
{
    *out = (struct cm_quantity){sure && verdict, 0, sure};
    return sure;
}

/* A symbol stands for a size, so it is equal to itself and to no negative number. */
static bool equal_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    if (a.is_number && b.is_number)
        return decide(true, a.number == b.number, out);
    if ((a.is_number && a.number < 0 && b.symbol) || (b.is_number && b.number < 0 && a.symbol))
        return decide(true, false, out);
    return decide(!a.is_number && !b.is_number && a.symbol && a.symbol == b.symbol, true, out);
}

static bool greater_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    return decide(a.is_number && b.is_number, a.number > b.number, out);
}

static bool less_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    return greater_numbers(b, a, out);
}

static enum cm_status compare_infer(struct cm_infer *in)
{
    const struct comparison *what = in->node->op->arg;
    CM_TRY(cm_infer_broadcast_bool(in));
    if (what->of_numbers)
        cm_infer_quantities(in, what->of_numbers);
    return CM_OK;
}

static enum cm_status compare_run(struct cm_call *call)
{
    const struct comparison *what = call->op->arg;
    return cm_run_binary(call, what->loops);
}

static const struct comparison greater = {greater_loops, greater_numbers};
static const struct comparison less = {less_loops, less_numbers};
static const struct comparison greater_or_equal = {greater_or_equal_loops, NULL};
static const struct comparison less_or_equal = {less_or_equal_loops, NULL};
static const struct comparison equal = {equal_loops, equal_numbers};

#define COMPARISON(row)                                                                            \
    .infer = compare_infer, .prepare = cm_prepare_binary, .run = compare_run,                      \
    .grad = cm_grad_none, .arg = &(row)

CM_OP(Greater, COMPARISON(greater));
CM_OP(Less, COMPARISON(less));
CM_OP(GreaterOrEqual, COMPARISON(greater_or_equal));
CM_OP(LessOrEqual, COMPARISON(less_or_equal));
CM_OP(Equal, COMPARISON(equal));

/* ---- questions about one number ---- */

enum { ASK_NAN = 1, ASK_MINUS_INF = 2, ASK_PLUS_INF = 4 };

/* Asks of count elements; what is a set of ASK_ bits. */
typedef void ask_fn(int64_t count, const void *x, unsigned what, uint8_t *y);

#define ASK_ROW(TAG, ctype, name, extra)                                                           \
    static void ask_##TAG(int64_t count, const void *from, unsigned what, uint8_t *y)              \
    {                                                                                              \
        const ctype *x = from;                                                                     \
        const bool nan = what & ASK_NAN, minus = what & ASK_MINUS_INF, plus = what & ASK_PLUS_INF; \
        const ctype infinity = (ctype)INFINITY;                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = (nan && isnan(x[i])) || (minus && x[i] == -infinity) ||                         \
                   (plus && x[i] == infinity);                                                     \
    }
CM_FLOAT_TYPES(ASK_ROW, ask, ())

static enum cm_status ask_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    return cm_infer_set_tensor(in, 0, CM_BOOL, x->rank, x->dims);
}

static enum cm_status is_nan_prepare(struct cm_call *call)
{
    unsigned *what = cm_call_state(call, sizeof *what);
    *what = ASK_NAN;
    return CM_OK;
}

static enum cm_status is_inf_prepare(struct cm_call *call)
{
    unsigned *what = cm_call_state(call, sizeof *what);
    *what = (cm_node_int(call->node, "detect_negative") ? ASK_MINUS_INF : 0U) |
            (cm_node_int(call->node, "detect_positive") ? ASK_PLUS_INF : 0U);
    return CM_OK;
}

enum { BLOCK = 1024 };

static enum cm_status ask_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const unsigned what = *(const unsigned *)call->state;
    const int64_t count = cm_tensor_count(x);
    uint8_t *y = call->out[0]->data;

    if (x->type == CM_FLOAT || x->type == CM_DOUBLE) {
        (x->type == CM_FLOAT ? ask_FLOAT : ask_DOUBLE)(count, x->data, what, y);
        return CM_OK;
    }
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float block[BLOCK];
        cm_narrow_load(x->type, x->data, at, n, block);
        ask_FLOAT(n, block, what, y + at);
    }
    return CM_OK;
}

CM_OP(IsNaN, .infer = ask_infer, .prepare = is_nan_prepare, .run = ask_run, .grad = cm_grad_none);
CM_OP(IsInf, .infer = ask_infer, .prepare = is_inf_prepare, .run = ask_run, .grad = cm_grad_none);
