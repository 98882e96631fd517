/* Do the operands of a recurrent operator fit each other? Shapes that are known are compared when
 * the operator is typed. What only a run can tell, the lengths themselves and shapes that were
 * unknown, is left to two operators in its body, which hand their operand on or refuse it. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn/operands.h"

#include "graph/recurrent_form.h"
#include "graph/require.h"
#include "ops/common/move.h"

/* Of X (seq, batch, input), batch first with layout 1. */
static struct cm_dim sequence_dim(const struct cm_type *x, bool batch_first)
{
    return x && x->rank == 3 ? x->dims[batch_first] : CM_DIM_ANY;
}

static struct cm_dim batch_dim(const struct cm_type *x, bool batch_first)
{
    return x && x->rank == 3 ? x->dims[!batch_first] : CM_DIM_ANY;
}

enum cm_status cm_recurrent_check_dims(struct cm_infer *in, int i, const char *name, int rank,
                                       const struct cm_dim *needs)
{
    const struct cm_type *type = cm_infer_type(in, i);
    struct cm_dim both;
    if (!type || type->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (type->rank != rank)
        return cm_infer_fail(in, "input %d '%s' has rank %d, needs %d", i, name, type->rank, rank);
    for (int axis = 0; axis < rank; axis++)
        if (!cm_dim_unify(type->dims[axis], needs[axis], &both))
            return cm_infer_fail(in, "input %d '%s' has size %lld on axis %d, needs %lld", i, name,
                                 (long long)type->dims[axis].value, axis,
                                 (long long)needs[axis].value);
    return CM_OK;
}

static enum cm_status check_known_lengths(struct cm_infer *in, int i, struct cm_dim sequence)
{
    struct cm_known known;
    if (!cm_infer_type(in, i) || !cm_dim_known(sequence) || !cm_infer_known(in, i, &known))
        return CM_OK;
    for (size_t k = 0; k < known.count; k++)
        if (known.items[k].is_number)
            CM_TRY(cm_recurrent_check_length(known.items[k].number, sequence.value, in->err));
    return CM_OK;
}

enum cm_status cm_recurrent_check(struct cm_infer *in, const struct cm_recurrent_sizes *sizes)
{
    const struct cm_type *x = cm_infer_type(in, IN_X);
    const bool first = sizes->batch_first;
    const struct cm_dim batch = batch_dim(x, first), dirs = CM_DIM(sizes->directions);
    const struct cm_dim hidden = sizes->hidden;
    const bool known = cm_dim_known(hidden);
    const struct cm_dim biases = known ? CM_DIM(2 * sizes->gates * hidden.value) : CM_DIM_ANY;
    const struct cm_dim peepholes = known ? CM_DIM(3 * hidden.value) : CM_DIM_ANY;
    const struct cm_dim state[2][3] = {{dirs, batch, hidden}, {batch, dirs, hidden}};
    CM_TRY(cm_infer_rank(in, IN_X, 3, 3));
    const struct cm_dim input = x->rank == 3 ? x->dims[2] : CM_DIM_ANY;
    const struct cm_dim rows = known ? CM_DIM(sizes->gates * hidden.value) : CM_DIM_ANY;
    const struct cm_dim w[2][3] = {{dirs, rows, input}, {dirs, input, rows}};
    const struct cm_dim r[2][3] = {{dirs, rows, hidden}, {dirs, hidden, rows}};
    CM_TRY(cm_recurrent_check_dims(in, IN_W, "W", 3, w[sizes->transposed]));
    CM_TRY(cm_recurrent_check_dims(in, IN_R, "R", 3, r[sizes->transposed]));
    CM_TRY(cm_recurrent_check_dims(in, IN_B, "B", 2, (struct cm_dim[]){dirs, biases}));
    CM_TRY(cm_recurrent_check_dims(in, IN_LENS, "sequence_lens", 1, &batch));
    CM_TRY(cm_recurrent_check_dims(in, IN_H, "initial_h", 3, state[first]));
    CM_TRY(cm_recurrent_check_dims(in, IN_C, "initial_c", 3, state[first]));
    CM_TRY(cm_recurrent_check_dims(in, IN_P, "P", 2, (struct cm_dim[]){dirs, peepholes}));
    return check_known_lengths(in, IN_LENS, sequence_dim(x, first));
}

/* ---- ai.cameo::RecurrentLengths (sequence_lens, X) ---- */

static enum cm_status lengths_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 1);
    const bool first = cm_node_int(in->node, "layout") != 0;
    const struct cm_dim batch = batch_dim(x, first);
    CM_TRY(cm_recurrent_check_dims(in, 0, "sequence_lens", 1, &batch));
    CM_TRY(check_known_lengths(in, 0, sequence_dim(x, first)));
    return cm_infer_set_tensor(in, 0, CM_INT32, 1, &batch);
}

static enum cm_status lengths_run(struct cm_call *call)
{
    const struct cm_tensor *lengths = call->in[0];
    const int64_t most = call->in[1]->shape.dims[cm_node_int(call->node, "layout") != 0];
    for (int64_t i = 0; i < cm_tensor_count(lengths); i++)
        CM_TRY(cm_recurrent_check_length(cm_tensor_int(lengths, i), most, call->err));
    return cm_run_copy(call);
}

static enum cm_status pass_on(struct cm_body *b)
{
    return cm_body_return(b, 0, cm_emit(b, "Identity", cm_body_input(b, 0)));
}

CM_OP_IN(cameo, "ai.cameo", RecurrentLengths, .infer = lengths_infer, .run = lengths_run,
         .body = pass_on, .grad = cm_grad_none, .cost.work = cm_work_linear);

/* ---- ai.cameo::RecurrentState (state, X): its shape, which inference rules learn at the latest
 * when it is run, is all there is to check ---- */

static enum cm_status state_infer(struct cm_infer *in)
{
    const bool first = cm_node_int(in->node, "layout") != 0;
    const struct cm_dim batch = batch_dim(cm_infer_type(in, 1), first);
    const struct cm_dim dirs = CM_DIM(cm_node_int(in->node, "directions"));
    const struct cm_dim hidden = CM_DIM(cm_node_int(in->node, "hidden_size"));
    const struct cm_dim dims[2][3] = {{dirs, batch, hidden}, {batch, dirs, hidden}};
    CM_TRY(cm_recurrent_check_dims(in, 0, "state", 3, dims[first]));
    return cm_infer_set_tensor(in, 0, cm_infer_type(in, 0)->dtype, 3, dims[first]);
}

static enum cm_status state_grad(struct cm_grad *g)
{
    return cm_grad_set(g, 0, cm_grad_incoming(g, 0));
}

CM_OP_IN(cameo, "ai.cameo", RecurrentState, .infer = state_infer, .run = cm_run_copy,
         .memory.share = cm_share_view, .body = pass_on, .grad = state_grad,
         .cost.work = cm_work_linear);

/* ---- what the weights must be; lengths and states are checked in the body ---- */

static void require_dims(struct cm_require *r, int operand, const int64_t *sizes,
                         const char *reason)
{
    const struct cm_type *type = cm_require_type(r, operand);
    for (int i = 0; type && i < type->rank; i++)
        if (sizes[i] > 0)
            cm_require_size(r, operand, i, sizes[i], reason);
}

void cm_recurrent_require_weights(struct cm_require *r, const struct cm_recurrent_sizes *sizes)
{
    const int64_t dirs = sizes->directions, hidden = sizes->hidden.value;
    const int64_t rows = sizes->gates * hidden;
    if (!cm_dim_known(sizes->hidden))
        return;
    const int64_t w[2][3] = {{dirs, rows, 0}, {dirs, 0, rows}};
    const int64_t h[2][3] = {{dirs, rows, hidden}, {dirs, hidden, rows}};
    require_dims(r, IN_W, w[sizes->transposed], "W does not have the shape it needs");
    cm_require_same(r, IN_W, sizes->transposed ? 1 : 2, IN_X, 2,
                    "W and X have different input sizes");
    require_dims(r, IN_R, h[sizes->transposed], "R does not have the shape it needs");
    require_dims(r, IN_B, (int64_t[]){dirs, 2 * rows}, "B does not have the shape it needs");
    require_dims(r, IN_P, (int64_t[]){dirs, 3 * hidden}, "P does not have the shape it needs");
}

/* ---- in the body of a recurrent operator ---- */

static const struct cm_type *type_of(const struct cm_body *b, cm_value value)
{
    return value ? cm_builder_type((struct cm_builder *)&b->build, value) : NULL;
}

cm_value cm_recurrent_lengths(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value given = cm_body_input(b, IN_LENS);
    if (!given)
        return 0;
    return cm_emit_with(b, "ai.cameo::RecurrentLengths",
                        CM_ATTRIBUTES(cm_attr_int(arena, "layout", cm_node_int(b->node, "layout"))),
                        given, cm_body_input(b, IN_X));
}

cm_value cm_recurrent_state(struct cm_body *b, int operand, int directions, int64_t hidden)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const bool first = cm_node_int(b->node, "layout") != 0;
    const cm_value given = cm_body_input(b, operand);
    const struct cm_type *type = type_of(b, given);
    const struct cm_dim batch = batch_dim(type_of(b, cm_body_input(b, IN_X)), first);
    if (!given || (type->rank == 3 && cm_dim_same(type->dims[!first], batch) &&
                   cm_dim_known(type->dims[first]) && cm_dim_known(type->dims[2])))
        return given; /* it fits: what is known was checked before */
    return cm_emit_with(b, "ai.cameo::RecurrentState",
                        CM_ATTRIBUTES(cm_attr_int(arena, "directions", directions),
                                      cm_attr_int(arena, "hidden_size", hidden),
                                      cm_attr_int(arena, "layout", first)),
                        given, cm_body_input(b, IN_X));
}
