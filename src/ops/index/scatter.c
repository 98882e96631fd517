/* Joining scattered updates, for every element type; what ScatterElements and ScatterND share. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/index/scatter.h"

#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/index/index.h"
#include "tensor/element_types.h"
#include "tensor/half.h"

#include <complex.h>
#include <math.h>

/* Attribute `reduction`; false when it is none of the five. */
static bool joining_of(const struct cm_node *node, enum cm_joining *out)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const struct cm_str name = cm_node_str(node, "reduction");
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        if (cm_str_is(name, names[i])) {
            *out = (enum cm_joining)i;
            return true;
        }
    }
    return false;
}

/* ---- loops: a is what is there, b the update ---- */

#define JOIN_LOOP(name, TAG, ctype, expression)                                                    \
    static void name##_##TAG(int64_t count, const void *from, const int64_t *at, void *to)         \
    {                                                                                              \
        ctype *ys = to;                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const ctype a = ys[at[i]], b = ((const ctype *)from)[i];                               \
            ys[at[i]] = (ctype)(expression);                                                       \
        }                                                                                          \
    }
#define COMPLEX_TYPES(ROW, name, extra)                                                            \
    ROW(COMPLEX64, float complex, name, extra) ROW(COMPLEX128, double complex, name, extra)

/* Integers wrap; bools add as "or" and multiply as "and"; NaN wins over numbers. */
#define ADD_PLAIN(TAG, ctype, name, extra) JOIN_LOOP(name, TAG, ctype, a + b)
#define ADD_WRAP(TAG, ctype, name, extra)  JOIN_LOOP(name, TAG, ctype, (uint64_t)a + (uint64_t)b)
#define MUL_PLAIN(TAG, ctype, name, extra) JOIN_LOOP(name, TAG, ctype, a *b)
#define MUL_WRAP(TAG, ctype, name, extra)  JOIN_LOOP(name, TAG, ctype, (uint64_t)a *(uint64_t)b)
#define MAX_FLOAT(TAG, ctype, name, extra) JOIN_LOOP(name, TAG, ctype, b > a || isnan(b) ? b : a)
#define MIN_FLOAT(TAG, ctype, name, extra) JOIN_LOOP(name, TAG, ctype, b < a || isnan(b) ? b : a)
#define MAX_PLAIN(TAG, ctype, name, extra) JOIN_LOOP(name, TAG, ctype, b > a ? b : a)
#define MIN_PLAIN(TAG, ctype, name, extra) JOIN_LOOP(name, TAG, ctype, b < a ? b : a)

CM_FLOAT_TYPES(ADD_PLAIN, add, ())
COMPLEX_TYPES(ADD_PLAIN, add, ())
CM_INTEGER_TYPES(ADD_WRAP, add, ())
JOIN_LOOP(add, BOOL, uint8_t, (a | b) != 0)
CM_FLOAT_TYPES(MUL_PLAIN, mul, ())
COMPLEX_TYPES(MUL_PLAIN, mul, ())
CM_INTEGER_TYPES(MUL_WRAP, mul, ())
JOIN_LOOP(mul, BOOL, uint8_t, a &&b)
CM_FLOAT_TYPES(MAX_FLOAT, max, ())
CM_INTEGER_TYPES(MAX_PLAIN, max, ())
JOIN_LOOP(max, BOOL, uint8_t, (a | b) != 0)
CM_FLOAT_TYPES(MIN_FLOAT, min, ())
CM_INTEGER_TYPES(MIN_PLAIN, min, ())
JOIN_LOOP(min, BOOL, uint8_t, a &&b)

#define ORDERED_ENTRIES(name)                                                                      \
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, name, ()) CM_BOOL_TYPES(CM_LOOP_ENTRY, name, ())
#define ALL_ENTRIES(name) ORDERED_ENTRIES(name) COMPLEX_TYPES(CM_LOOP_ENTRY, name, ())
static cm_join_fn *const joins[][CM_DTYPE_COUNT] = {
    [CM_JOIN_ADD] = {ALL_ENTRIES(add)},
    [CM_JOIN_MUL] = {ALL_ENTRIES(mul)},
    [CM_JOIN_MAX] = {ORDERED_ENTRIES(max)},
    [CM_JOIN_MIN] = {ORDERED_ENTRIES(min)},
};

static bool is_narrow_float(enum cm_dtype type)
{
    return cm_dtype_is_narrow(type) && cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
}

enum cm_status cm_join_init(struct cm_call *call, struct cm_join *join)
{
    join->type = call->in[0]->type;
    if (!joining_of(call->node, &join->how))
        return cm_call_fail(
            call, CM_BAD_MODEL,
            "attribute 'reduction' is '%.*s', expected 'none', 'add', 'mul', 'max' or 'min'",
            CM_STR_FMT(cm_node_str(call->node, "reduction")));
    if (cm_dtype_size(join->type) == 0)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(join->type));
    if (join->how == CM_JOIN_NONE)
        return CM_OK;
    join->loop = joins[join->how][is_narrow_float(join->type) ? CM_FLOAT : join->type];
    if (!join->loop)
        return cm_call_fail(
            call, CM_UNSUPPORTED,
            "attribute 'reduction' is '%.*s', which is not defined for elements of type %s",
            CM_STR_FMT(cm_node_str(call->node, "reduction")), cm_dtype_name(join->type));
    return CM_OK;
}

void cm_join_at(const struct cm_join *join, int64_t count, const void *from, int64_t first,
                const int64_t *at, void *to)
{
    const size_t width = cm_dtype_size(join->type);
    const void *updates = (const char *)from + (size_t)first * width;
    if (!join->loop) {
        cm_index_scatter(width, count, updates, at, to);
    } else if (!is_narrow_float(join->type)) {
        join->loop(count, updates, at, to);
    } else {
        const int64_t here = 0;
        for (int64_t i = 0; i < count; i++) {
            float a, b;
            cm_narrow_load(join->type, to, at[i], 1, &a);
            cm_narrow_load(join->type, from, first + i, 1, &b);
            join->loop(1, &b, &here, &a);
            cm_narrow_store(join->type, to, at[i], 1, &a);
        }
    }
}

enum cm_status cm_scatter_infer(struct cm_infer *in)
{
    return cm_infer_set(in, 0, cm_infer_type(in, 0));
}

enum cm_status cm_scatter_begin(struct cm_call *call)
{
    const struct cm_tensor *data = call->in[0], *out = call->out[0];
    CM_TRY(cm_index_movable(call, data));
    CM_TRY(cm_index_movable(call, call->in[2]));
    if (out->data != data->data)
        cm_move_bytes(out->data, data->data, cm_tensor_bytes(data));
    return CM_OK;
}

/* ---- gradient ---- */

/* A rule in which read(t) reads at the places that the forward node wrote, and put, add and mul are
 * the forward operator with another reduction. */
static enum cm_status written_grad(struct cm_grad *g, const char *text)
{
    return cm_grad_formula(
        g,
        cm_node_has_attr(g->node, "axis")
            ? "read(t) = GatherElements<axis>(t, indices);"
              "put(t, u) = ScatterElements<reduction='none', axis>(t, indices, u);"
              "add(t, u) = ScatterElements<reduction='add', axis>(t, indices, u);"
              "mul(t, u) = ScatterElements<reduction='mul', axis>(t, indices, u); %s"
            : "read(t) = GatherND(t, indices);"
              "put(t, u) = ScatterND<reduction='none'>(t, indices, u);"
              "add(t, u) = ScatterND<reduction='add'>(t, indices, u);"
              "mul(t, u) = ScatterND<reduction='mul'>(t, indices, u); %s",
        text);
}

/* y = data times all updates of the place: each factor's slope is y over that factor. The data's is
 * computed as the product of the updates, since data is often 0 or 1. That of an update which is
 * the only 0 of its place is the product of the rest; next to another 0 there is none. */
static const char product_grad[] =
    "zero = like(data, 0); one = like(data, 1); ones = Expand(one, Shape(data));"
    "d_data = d_output * mul(ones, updates); is_zero = Equal(updates, zero);"
    "safe = Where(is_zero, one, updates); hits = Where(is_zero, one, zero);"
    "zeros = read(add(Expand(like(data, 0), Shape(data)), hits)); rest = read(data * mul(ones, "
    "safe));"
    "at_zero = Where(Equal(zeros, one), rest, zero);"
    "slope = Where(is_zero, at_zero, read(output) / safe); d_updates = read(d_output) * slope";

/* All that equal the extreme share the gradient evenly, as in a Reduce. */
static const char extreme_grad[] =
    "zero = like(data, 0); one = like(data, 1); data_hits = Where(Equal(data, output), one, zero);"
    "update_hits = Where(Equal(updates, read(output)), one, zero);"
    "share = d_output / add(data_hits, update_hits); d_data = data_hits * share;"
    "d_updates = update_hits * read(share)";

enum cm_status cm_scatter_grad(struct cm_grad *g)
{
    enum cm_joining how;
    if (!joining_of(g->node, &how))
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "reduction is not known");
    if (how == CM_JOIN_MUL)
        return written_grad(g, product_grad);
    if (how == CM_JOIN_MAX || how == CM_JOIN_MIN)
        return written_grad(g, extreme_grad);
    return written_grad(
        g, how == CM_JOIN_ADD ? "d_updates = read(d_output); d_data = d_output"
                              : "d_updates = read(d_output);"
                                "d_data = put(d_output, Expand(like(updates, 0), Shape(updates)))");
}
