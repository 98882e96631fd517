/* NegativeLogLikelihoodLoss, and the parts of it that the loss from raw scores uses too. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/nll.h"

#include "graph/require.h"

#include "tensor/line.h"

bool cm_loss_reduction(const struct cm_node *node, enum cm_loss_reduction *out)
{
    static const char *const names[] = {
        [CM_REDUCE_NONE] = "none", [CM_REDUCE_SUM] = "sum", [CM_REDUCE_MEAN] = "mean"};
    const struct cm_str name = cm_node_str(node, "reduction");
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        *out = (enum cm_loss_reduction)i;
        if (cm_str_is(name, names[i]))
            return true;
    }
    return false;
}

/* The classes' shape is that of the scores without axis 1; dims receives it. */
static enum cm_status unify_dims(struct cm_infer *in, const struct cm_type *scores,
                                 const struct cm_type *classes, struct cm_dim *dims)
{
    if (scores->rank < 2)
        return cm_infer_fail(in, "input 0 has rank %d, needs 2 or more", scores->rank);
    if (classes->rank != scores->rank - 1)
        return cm_infer_fail(in, "input 1 has rank %d, needs one less than the %d of input 0",
                             classes->rank, scores->rank);
    for (int i = 0; i < classes->rank; i++) {
        const struct cm_dim need = scores->dims[i == 0 ? 0 : i + 1];
        if (!cm_dim_unify(need, classes->dims[i], &dims[i]))
            return cm_infer_fail(in, "axis %d of input 1 has %lld where input 0 has %lld", i,
                                 (long long)classes->dims[i].value, (long long)need.value);
    }
    return CM_OK;
}

static enum cm_status check_weights(struct cm_infer *in, const struct cm_type *scores)
{
    const struct cm_type *w = cm_infer_type(in, 2);
    struct cm_dim both;
    if (!w || w->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, 2, 1, 1));
    if (scores->rank >= 2 && !cm_dim_unify(w->dims[0], scores->dims[1], &both))
        return cm_infer_fail(in, "input 2 has %lld weights for %lld classes",
                             (long long)w->dims[0].value, (long long)scores->dims[1].value);
    return CM_OK;
}

void cm_loss_require(struct cm_require *r)
{
    const struct cm_type *classes = cm_require_type(r, 1);
    for (int i = 0; classes && i < classes->rank; i++)
        cm_require_same(r, 1, i, 0, i == 0 ? 0 : i + 1,
                        "the labels do not have one element for each position of the scores");
    cm_require_same(r, 2, 0, 0, 1, "the weights do not have one element for each class");
}

enum cm_status cm_loss_infer(struct cm_infer *in)
{
    const struct cm_type *scores = cm_infer_type(in, 0), *classes = cm_infer_type(in, 1);
    const struct cm_str name = cm_node_str(in->node, "reduction");
    struct cm_dim dims[CM_MAX_RANK];
    enum cm_loss_reduction reduction;
    if (!cm_loss_reduction(in->node, &reduction))
        return cm_infer_fail(in,
                             "attribute 'reduction' is '%.*s', expected 'none', 'sum' or 'mean'",
                             CM_STR_FMT(name));
    const bool known = scores->rank != CM_RANK_UNKNOWN && classes->rank != CM_RANK_UNKNOWN;
    if (known)
        CM_TRY(unify_dims(in, scores, classes, dims));
    CM_TRY(check_weights(in, scores));
    CM_TRY(cm_infer_set(in, 1, scores)); /* log_prob, where there is one */
    if (reduction != CM_REDUCE_NONE)
        return cm_infer_set_tensor(in, 0, scores->dtype, 0, NULL);
    return cm_infer_set_tensor(in, 0, scores->dtype, classes->rank, known ? dims : classes->dims);
}

void cm_loss_read(struct cm_call *call, struct cm_loss *out)
{
    const struct cm_shape *x = &call->in[0]->shape;
    *out = (struct cm_loss){.images = x->dims[0],
                            .classes = x->dims[1],
                            .area = cm_shape_span(x, 2, x->rank),
                            .ignores = cm_node_has_attr(call->node, "ignore_index"),
                            .ignored = cm_node_int(call->node, "ignore_index")};
    cm_loss_reduction(call->node, &out->reduction);
}

enum cm_status cm_loss_run(struct cm_call *call, const struct cm_loss *loss, cm_loss_fn *of_class)
{
    const struct cm_tensor *weights = call->n_in > 2 ? call->in[2] : NULL;
    double sum = 0, total_weight = 0;
    for (int64_t at = 0; at < loss->images * loss->area; at++) {
        const int64_t c = cm_tensor_int(call->in[1], at);
        const bool ignored = loss->ignores && c == loss->ignored;
        if (!ignored && (c < 0 || c >= loss->classes))
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "class %lld at position %lld is outside the %lld classes",
                                (long long)c, (long long)at, (long long)loss->classes);
        const double weight = ignored ? 0 : weights ? cm_tensor_real(weights, c) : 1;
        const double minus_log =
            of_class(call, loss, at / loss->area, at % loss->area, ignored ? -1 : c);
        const double value = ignored ? 0 : weight * minus_log;
        if (loss->reduction == CM_REDUCE_NONE)
            cm_line_store(cm_line_at(call->out[0], at), value);
        sum += value;
        total_weight += weight;
    }
    if (loss->reduction != CM_REDUCE_NONE)
        cm_line_store(cm_line_at(call->out[0], 0),
                      loss->reduction == CM_REDUCE_MEAN ? sum / total_weight : sum);
    return CM_OK;
}

static enum cm_status nll_prepare(struct cm_call *call)
{
    cm_loss_read(call, cm_call_state(call, sizeof(struct cm_loss)));
    return CM_OK;
}

static double given_log(const struct cm_call *call, const struct cm_loss *loss, int64_t image,
                        int64_t i, int64_t c)
{
    return c < 0 ? 0 : -cm_tensor_real(call->in[0], (image * loss->classes + c) * loss->area + i);
}

static enum cm_status nll_run(struct cm_call *call)
{
    return cm_loss_run(call, call->state, given_log);
}

CM_GRADIENT(
    nll_grad,
    CM_LOSS_SLOPES("d_loss", "input", "target",
                   "weight") "d_input = cast(Where(chosen, -slopes, like(slopes, 0)), input)")

/* The ignored class need not be one. GatherElements counts from the end below 0; no class does. */
static enum cm_status nll_body(struct cm_body *b)
{
    enum cm_loss_reduction reduction;
    if (!cm_loss_reduction(b->node, &reduction))
        return cm_body_decline(b, "its reduction is not known");
    return cm_body_formula(
        b, "axis = [1]; zero = like(input, 0); total(t) = ReduceSum<keepdims=0>(t);"
           "mask = given(ignore_index) ? Equal(target, ignore_index) : none;"
           "known = mask ? Where(mask, like(target, 0), target) : target;"
           "safe = Where(Less(known, 0), like(target, 2147483647), known);"
           "each = -Squeeze(GatherElements<axis=1>(input, Unsqueeze(safe, axis)), axis);"
           "w = weight ? Gather(weight, safe) : none; each = w ? each * w : each;"
           "w = mask ? Where(mask, zero, w ? w : like(input, 1)) : w;"
           "each = mask ? Where(mask, zero, each) : each;"
           "all(t) = t ? total(t) : CastLike(Size(target), input);"
           "loss = reduction == 'none' ? each"
           "  : reduction == 'sum' ? total(each) : total(each) / all(w)");
}

const struct cm_class_labels cm_loss_labels = {
    .scores = 0, .labels = 1, .class_axis = 1, .ignored = "ignore_index"};

CM_OP(NegativeLogLikelihoodLoss, .infer = cm_loss_infer, .prepare = nll_prepare, .run = nll_run,
      .grad = nll_grad, .body = nll_body, .require = cm_loss_require,
      .scores.labels = &cm_loss_labels);
