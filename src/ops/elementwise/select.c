/* Where: elements of one operand or the other. No arithmetic, so it is written per element width.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/walk.h"

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

struct choice {
    int64_t count;
    const uint8_t *condition;
    int64_t step_condition;
    const void *x, *y;
    int64_t step_x, step_y;
    void *to;
};

struct pair {
    uint64_t halves[2]; /* sixteen bytes: a string's view, a complex128 */
};

#define SELECT(Name, ctype)                                                                        \
    static void Name(const struct choice *c)                                                       \
    {                                                                                              \
        const ctype *x = c->x, *y = c->y;                                                          \
        ctype *to = c->to;                                                                         \
        if (c->step_condition && c->step_x && c->step_y) {                                         \
            for (int64_t i = 0; i < c->count; i++)                                                 \
                to[i] = c->condition[i] ? x[i] : y[i];                                             \
        } else {                                                                                   \
            for (int64_t i = 0; i < c->count; i++)                                                 \
                to[i] = c->condition[i * c->step_condition] ? x[i * c->step_x] : y[i * c->step_y]; \
        }                                                                                          \
    }
SELECT(select_1, uint8_t)
SELECT(select_2, uint16_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)
SELECT(select_16, struct pair)

typedef void select_fn(const struct choice *c);

static select_fn *select_of_width(size_t width)
{
    switch (width) {
    case 1:
        return select_1;
    case 2:
        return select_2;
    case 4:
        return select_4;
    case 8:
        return select_8;
    default:
        return select_16;
    }
}

static enum cm_status where_prepare(struct cm_call *call)
{
    cm_walk_plan(call);
    return CM_OK;
}

static enum cm_status where_run(struct cm_call *call)
{
    const struct cm_walk *walk = call->state;
    const struct cm_tensor *out = call->out[0];
    const size_t width = cm_dtype_size(out->type);
    if (width == 0)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(out->type));
    if (out->type == CM_STRING) {
        CM_TRY(cm_buffer_hold(out->buffer, call->in[1]->buffer, call->err));
        CM_TRY(cm_buffer_hold(out->buffer, call->in[2]->buffer, call->err));
    }
    select_fn *select = select_of_width(width);
    const char *x = call->in[1]->data, *y = call->in[2]->data;
    const uint8_t *condition = call->in[0]->data;
    int64_t index[CM_MAX_RANK] = {0}, at[3] = {0};
    for (int64_t done = 0; done < walk->count; done += walk->run) {
        const struct choice choice = {.count = walk->run,
                                      .condition = condition + at[0],
                                      .step_condition = walk->operands[0].step,
                                      .x = x + (size_t)at[1] * width,
                                      .y = y + (size_t)at[2] * width,
                                      .step_x = walk->operands[1].step,
                                      .step_y = walk->operands[2].step,
                                      .to = (char *)out->data + (size_t)done * width};
        select(&choice);
        cm_walk_next(walk, index, at);
    }
    return CM_OK;
}

static enum cm_sharing where_share(const struct cm_node *node, int output, int input)
{
    (void)node, (void)output;
    return input > 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

/* dx = dy where the condition holds, dy's = dy where it does not. */
static enum cm_status where_grad(struct cm_grad *g)
{
    const cm_value condition = cm_grad_input(g, 0), dy = cm_grad_incoming(g, 0);
    const cm_value zero = cm_emit_scalar_like(g, dy, 0.0);
    CM_TRY(cm_grad_set(g, 1, cm_emit(g, "Where", condition, dy, zero)));
    return cm_grad_set(g, 2, cm_emit(g, "Where", condition, zero, dy));
}

CM_OP(Where, .infer = where_infer, .prepare = where_prepare, .run = where_run, .grad = where_grad,
      .share = where_share, .work = cm_work_linear);
