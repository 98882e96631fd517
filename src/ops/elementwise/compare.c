/* Comparisons: Greater, Less, Equal and their kin, IsNaN and IsInf. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

#include <math.h>

CM_COMPARE_LOOPS(greater, CM_NUMBER_TYPES, a > b)
CM_COMPARE_LOOPS(less, CM_NUMBER_TYPES, a < b)
CM_COMPARE_LOOPS(greater_or_equal, CM_NUMBER_TYPES, a >= b)
CM_COMPARE_LOOPS(less_or_equal, CM_NUMBER_TYPES, a <= b)

/* Any byte but 0 is true, whatever a file holds. */
CM_BINARY_LOOP(equal, BOOL, uint8_t, uint8_t, !a == !b)
#define EQUAL_ROW(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, uint8_t, a == b)
CM_NUMBER_TYPES(EQUAL_ROW, equal, ())
#define EQUAL_TYPES(ROW, name, extra)                                                              \
    CM_NUMBER_TYPES(ROW, name, extra)                                                              \
    CM_BOOL_TYPES(ROW, name, extra)
static cm_binary_fn *const equal_loops[CM_DTYPE_COUNT] = {EQUAL_TYPES(CM_LOOP_ENTRY, equal, ())};

/* Bools that shape arithmetic decides are known as 0 and 1. */
static struct cm_quantity decide(bool sure, bool verdict)
{
    return (struct cm_quantity){sure && verdict, 0, sure};
}

/* Is a - b surely at least that much? */
static bool exceeds(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                    int64_t by)
{
    const struct cm_quantity difference = cm_quantity_difference(symbols, a, b);
    int64_t least;
    return cm_quantity_least(symbols, difference, &least) && least >= by;
}

static struct cm_quantity equal_numbers(struct cm_symbols *symbols, struct cm_quantity a,
                                        struct cm_quantity b)
{
    if (a.is_number && b.is_number)
        return decide(true, a.number == b.number);
    const bool same = cm_quantity_same(a, b);
    return decide(same || exceeds(symbols, a, b, 1) || exceeds(symbols, b, a, 1), same);
}

static struct cm_quantity greater_numbers(struct cm_symbols *symbols, struct cm_quantity a,
                                          struct cm_quantity b)
{
    if (a.is_number && b.is_number)
        return decide(true, a.number > b.number);
    const bool is_greater = exceeds(symbols, a, b, 1);
    return decide(is_greater || exceeds(symbols, b, a, 0), is_greater);
}

static struct cm_quantity less_numbers(struct cm_symbols *symbols, struct cm_quantity a,
                                       struct cm_quantity b)
{
    return greater_numbers(symbols, b, a);
}

static struct cm_quantity inverse(struct cm_quantity truth)
{
    return decide(truth.is_number, !truth.number);
}

static struct cm_quantity greater_or_equal_numbers(struct cm_symbols *symbols, struct cm_quantity a,
                                                   struct cm_quantity b)
{
    return inverse(greater_numbers(symbols, b, a));
}

static struct cm_quantity less_or_equal_numbers(struct cm_symbols *symbols, struct cm_quantity a,
                                                struct cm_quantity b)
{
    return inverse(greater_numbers(symbols, a, b));
}

static const struct cm_binary greater = {.loops = greater_loops, .of_numbers = greater_numbers};
static const struct cm_binary less = {.loops = less_loops, .of_numbers = less_numbers};
static const struct cm_binary greater_or_equal = {.loops = greater_or_equal_loops,
                                                  .of_numbers = greater_or_equal_numbers};
static const struct cm_binary less_or_equal = {.loops = less_or_equal_loops,
                                               .of_numbers = less_or_equal_numbers};
static const struct cm_binary equal = {.loops = equal_loops, .of_numbers = equal_numbers};

CM_OP(Greater, CM_COMPARE(greater), .grad = cm_grad_none);
CM_OP(Less, CM_COMPARE(less), .grad = cm_grad_none);
CM_OP(GreaterOrEqual, CM_COMPARE(greater_or_equal), .grad = cm_grad_none);
CM_OP(LessOrEqual, CM_COMPARE(less_or_equal), .grad = cm_grad_none);

/* Strings are compared too, but are nobody's numbers: not in `elementwise`. */
CM_BINARY_LOOP(equal, STRING, struct cm_str, uint8_t, cm_str_equal(a, b))
static cm_binary_fn *const equal_string_loops[CM_DTYPE_COUNT] = {[CM_STRING] = equal_STRING};

static enum cm_status equal_prepare(struct cm_call *call)
{
    struct cm_element_loop loop;
    if (!cm_binary_loop(equal_string_loops, call->in[0]->type, &loop))
        return cm_elements_prepare(call);
    cm_elements_prepare_stored(call, &loop);
    return CM_OK;
}

CM_OP(Equal, .infer = cm_binary_infer_bool, .prepare = equal_prepare, .run = cm_elements_run,
      .grad = cm_grad_none, .elementwise = cm_binary_elementwise, .arg = &equal);

/* ---- questions about one number ---- */

CM_ASK_LOOPS(is_nan, CM_FLOAT_TYPES, isnan(x))
CM_ASK_LOOPS(is_inf, CM_FLOAT_TYPES,
             (p[0] != 0 && x == -(T)INFINITY) || (p[1] != 0 && x == (T)INFINITY))

static enum cm_status ask_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    return cm_infer_set_tensor(in, 0, CM_BOOL, x->rank, x->dims);
}

static bool is_inf_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                               enum cm_dtype out, struct cm_element_loop *loop)
{
    (void)out;
    if (!cm_unary_loop(is_inf_loops, in[0], loop))
        return false;
    loop->p[0] = cm_node_int(node, "detect_negative") != 0;
    loop->p[1] = cm_node_int(node, "detect_positive") != 0;
    return true;
}

static const struct cm_unary is_nan = {.loops = is_nan_loops};

CM_OP(IsNaN, .infer = ask_infer, .prepare = cm_elements_prepare, .run = cm_elements_run,
      .grad = cm_grad_none, .elementwise = cm_unary_elementwise, .arg = &is_nan);
CM_OP(IsInf, .infer = ask_infer, .prepare = cm_elements_prepare, .run = cm_elements_run,
      .grad = cm_grad_none, .elementwise = is_inf_elementwise);
