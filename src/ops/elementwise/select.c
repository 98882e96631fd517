/* Where: elements of one operand or the other. No arithmetic, so it is written per element width.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "graph/node_formula.h"
#include "ops/elementwise/element_loops.h"

/* Shape arithmetic: a known condition chooses, and so does none when both choices agree. */
static void infer_known(struct cm_infer *in)
{
    struct cm_known known[3];
    const enum cm_dtype dtype = cm_infer_type(in, 1)->dtype;
    size_t count = 1;
    int rank = 0;
    if (dtype != CM_INT64 && dtype != CM_INT32)
        return;
    const struct cm_tensor *condition = cm_infer_constant(in, 0);
    for (int i = 0; i < 3; i++) {
        if (!cm_infer_known(in, i, &known[i]) ||
            (count != 1 && known[i].count != 1 && known[i].count != count))
            return;
        count = known[i].count == 1 ? count : known[i].count;
        rank = known[i].rank > rank ? known[i].rank : rank;
    }
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, count);
    for (size_t i = 0; i < count; i++) {
        const size_t at = known[0].count == 1 ? 0 : i;
        struct cm_quantity c = known[0].items[at];
        if (condition && condition->data)
            c = (struct cm_quantity){cm_tensor_int(condition, (int64_t)at), 0, true};
        const struct cm_quantity x = known[1].items[known[1].count == 1 ? 0 : i];
        const struct cm_quantity y = known[2].items[known[2].count == 1 ? 0 : i];
        if (c.is_number)
            items[i] = c.number ? x : y;
        else if (x.is_number == y.is_number && x.number == y.number && x.symbol == y.symbol)
            items[i] = x;
    }
    cm_infer_set_known(in, 0, rank, count, items);
}

static enum cm_status where_infer(struct cm_infer *in)
{
    CM_TRY(cm_infer_broadcast_as(in, cm_infer_type(in, 1)->dtype));
    infer_known(in);
    return CM_OK;
}

struct pair {
    uint64_t halves[2]; /* sixteen bytes: a string's view, a complex128 */
};

#define T         uint8_t
#define FOR(name) select_1_##name
#include "ops/elementwise/select_loop.inc"
#define T         uint16_t
#define FOR(name) select_2_##name
#include "ops/elementwise/select_loop.inc"
#define T         uint32_t
#define FOR(name) select_4_##name
#include "ops/elementwise/select_loop.inc"
#define T         uint64_t
#define FOR(name) select_8_##name
#include "ops/elementwise/select_loop.inc"
#define T         struct pair
#define FOR(name) select_16_##name
#include "ops/elementwise/select_loop.inc"
CM_BUILDS(select_4, (const struct cm_elements *e), (machine, e))

#define SELECT(width, call)                                                                        \
    static void select_##width(const struct cm_element_loop *loop, const struct cm_elements *e)    \
    {                                                                                              \
        (void)loop;                                                                                \
        call;                                                                                      \
    }
SELECT(1, select_1_on(CM_PLAIN, e))
SELECT(2, select_2_on(CM_PLAIN, e))
SELECT(4, select_4_builds[cm_this_machine()](e))
SELECT(8, select_8_on(CM_PLAIN, e))
SELECT(16, select_16_on(CM_PLAIN, e))

static bool select_of_width(size_t width, struct cm_element_loop *loop)
{
    static const struct {
        size_t width;
        void (*run)(const struct cm_element_loop *loop, const struct cm_elements *e);
    } selects[] = {
        {1, select_1}, {2, select_2}, {4, select_4}, {8, select_8}, {16, select_16},
    };
    for (size_t i = 0; i < CM_COUNT(selects); i++) {
        if (selects[i].width == width) {
            *loop = (struct cm_element_loop){.run = selects[i].run};
            return true;
        }
    }
    return false;
}

static bool where_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                              enum cm_dtype out, struct cm_element_loop *loop)
{
    (void)node, (void)in;
    return select_of_width(cm_element_width(out), loop);
}

/* Nothing is computed, so narrow floats need no conversion and strings are moved as views. */
static enum cm_status where_prepare(struct cm_call *call)
{
    struct cm_element_loop loop;
    if (!select_of_width(cm_dtype_size(call->out[0]->type), &loop))
        return cm_elements_refuse(call);
    cm_elements_prepare_stored(call, &loop);
    return CM_OK;
}

static enum cm_status where_run(struct cm_call *call)
{
    const struct cm_tensor *out = call->out[0];
    if (out->type == CM_STRING) {
        CM_TRY(cm_buffer_hold(out->buffer, call->in[1]->buffer, call->err));
        CM_TRY(cm_buffer_hold(out->buffer, call->in[2]->buffer, call->err));
    }
    return cm_elements_run(call);
}

static enum cm_sharing where_share(const struct cm_node *node, int output, int input)
{
    (void)node, (void)output;
    return input > 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

CM_GRADIENT(where_grad, "zero = like(d_output, 0); dX = Where(condition, d_output, zero);"
                        "dY = Where(condition, zero, d_output)")

CM_OP(Where, .infer = where_infer, .prepare = where_prepare, .run = where_run, .grad = where_grad,
      .memory.share = where_share, .elementwise = where_elementwise, .cost.work = cm_work_linear,
      .values.picked_from = 6);
