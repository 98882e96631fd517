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
    if (w->rank != 1)
        return cm_infer_fail(in, "input 2 has rank %d, needs 1", w->rank);
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

/* 0, 1, .. C - 1 in the type of the classes, along axis 1 of a tensor with one axis more than
 * these. */
static cm_value all_classes(struct cm_loss_parts *p)
{
    struct cm_arena *arena = cm_builder_arena(&p->build);
    const cm_value classes = p->classes;
    const enum cm_dtype dtype = cm_builder_type(&p->build, classes)->dtype;
    const int rank = cm_builder_type(&p->build, classes)->rank;
    int64_t axes[CM_MAX_RANK];
    const cm_value count = cm_emit_with(
        p, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", 1), cm_attr_int(arena, "end", 2)),
        p->scores);
    const cm_value end = cm_emit_cast(p, cm_emit(p, "Squeeze", count), dtype);
    const cm_value range =
        cm_emit(p, "Range", cm_emit_scalar(p, dtype, 0), end, cm_emit_scalar(p, dtype, 1));
    if (rank == CM_RANK_UNKNOWN) {
        const cm_value one = cm_build_int64(&p->build, 1);
        const cm_value number = cm_emit(p, "Size", cm_emit(p, "Shape", classes));
        return cm_emit(p, "Unsqueeze", range, cm_emit(p, "Range", one, number, one));
    }
    for (int i = 1; i < rank; i++)
        axes[i - 1] = i;
    return rank > 1 ? cm_emit(p, "Unsqueeze", range,
                              cm_build_int64s(&p->build, (size_t)(rank - 1), axes))
                    : range;
}

/* What each position weighs: 0 when every position weighs 1. */
static cm_value position_weights(struct cm_loss_parts *p, enum cm_dtype wide)
{
    const cm_value classes = p->classes, weights = p->weights;
    const bool ignores = cm_node_has_attr(p->node, "ignore_index");
    if (!ignores)
        return weights ? cm_emit(p, "Gather", cm_emit_cast(p, weights, wide), classes) : 0;
    const double ignored = (double)cm_node_int(p->node, "ignore_index");
    const cm_value mask = cm_emit(p, "Equal", classes, cm_emit_scalar_like(p, classes, ignored));
    cm_value weight = cm_emit_scalar(p, wide, 1);
    if (weights) { /* the ignored class need not be one */
        const cm_value safe =
            cm_emit(p, "Where", mask, cm_emit_scalar_like(p, classes, 0), classes);
        weight = cm_emit(p, "Gather", cm_emit_cast(p, weights, wide), safe);
    }
    return cm_emit(p, "Where", mask, cm_emit_scalar(p, wide, 0), weight);
}

enum cm_status cm_loss_slopes(struct cm_loss_parts *p, cm_value *slopes, cm_value *chosen)
{
    const enum cm_dtype wide =
        cm_builder_type(&p->build, p->scores)->dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
    const cm_value classes = p->classes, axis = cm_emit_int64s(p, 1);
    struct cm_arena *arena = cm_builder_arena(&p->build);
    enum cm_loss_reduction reduction;
    if (!cm_loss_reduction(p->node, &reduction))
        return cm_builder_fail(&p->build, CM_BAD_MODEL, "its reduction is not known");
    cm_value slope = cm_emit_cast(p, p->gradient, wide);
    const cm_value weights = position_weights(p, wide);
    if (reduction == CM_REDUCE_MEAN) {
        const cm_value total =
            weights ? cm_emit_with(p, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)),
                                   weights)
                    : cm_emit_cast(p, cm_emit(p, "Size", classes), wide);
        slope = cm_emit(p, "Div", slope, total);
    }
    if (weights)
        slope = cm_emit(p, "Mul", slope, weights);
    else if (reduction != CM_REDUCE_NONE)
        slope = cm_emit(p, "Expand", slope, cm_emit(p, "Shape", classes));
    *slopes = cm_emit(p, "Unsqueeze", slope, axis);
    *chosen = cm_emit(p, "Equal", cm_emit(p, "Unsqueeze", classes, axis), all_classes(p));
    return p->build.status;
}

static enum cm_status nll_grad(struct cm_grad *g)
{
    struct cm_loss_parts p = {.node = g->node,
                              .scores = cm_grad_input(g, 0),
                              .classes = cm_grad_input(g, 1),
                              .weights = cm_grad_input(g, 2),
                              .gradient = cm_grad_incoming(g, 0)};
    cm_value slopes, chosen;
    p.build = g->build;
    CM_TRY(cm_loss_slopes(&p, &slopes, &chosen));
    const cm_value zero = cm_emit_scalar_like(&p, slopes, 0);
    const cm_value gradient = cm_emit(&p, "Where", chosen, cm_emit(&p, "Neg", slopes), zero);
    const cm_value narrow = cm_emit_cast(&p, gradient, cm_builder_type(&p.build, p.scores)->dtype);
    g->build = p.build;
    return cm_grad_set(g, 0, narrow);
}

/* The sum of all elements, as a scalar. */
static cm_value whole_sum(struct cm_body *b, cm_value x)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    return cm_emit_with(b, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), x);
}

static enum cm_status nll_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value input = cm_body_input(b, 0), target = cm_body_input(b, 1);
    const cm_value axis = cm_emit_int64s(b, 1), zero = cm_emit_scalar_like(b, input, 0);
    const bool ignores = cm_node_has_attr(b->node, "ignore_index");
    cm_value mask = 0, safe = target, weights = cm_body_input(b, 2);
    enum cm_loss_reduction reduction;
    if (!cm_loss_reduction(b->node, &reduction))
        return cm_body_decline(b, "its reduction is not known");
    if (ignores) { /* the ignored class need not be one */
        const double ignored = (double)cm_node_int(b->node, "ignore_index");
        mask = cm_emit(b, "Equal", target, cm_emit_scalar_like(b, target, ignored));
        safe = cm_emit(b, "Where", mask, cm_emit_scalar_like(b, target, 0), target);
    }
    /* GatherElements counts from the end below 0; no class does. */
    const cm_value below = cm_emit(b, "Less", safe, cm_emit_scalar_like(b, target, 0));
    safe = cm_emit(b, "Where", below, cm_emit_scalar_like(b, target, INT32_MAX), safe);
    const cm_value picked =
        cm_emit_with(b, "GatherElements", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), input,
                     cm_emit(b, "Unsqueeze", safe, axis));
    cm_value loss = cm_emit(b, "Neg", cm_emit(b, "Squeeze", picked, axis));
    if (weights) {
        weights = cm_emit(b, "Gather", weights, safe);
        loss = cm_emit(b, "Mul", loss, weights);
    }
    if (ignores) {
        weights =
            cm_emit(b, "Where", mask, zero, weights ? weights : cm_emit_scalar_like(b, input, 1));
        loss = cm_emit(b, "Where", mask, zero, loss);
    }
    if (reduction == CM_REDUCE_NONE)
        return cm_body_return(b, 0, loss);
    const cm_value sum = whole_sum(b, loss);
    if (reduction == CM_REDUCE_SUM)
        return cm_body_return(b, 0, sum);
    const cm_value total =
        weights ? whole_sum(b, weights) : cm_emit(b, "CastLike", cm_emit(b, "Size", target), input);
    return cm_body_return(b, 0, cm_emit(b, "Div", sum, total));
}

const struct cm_class_labels cm_loss_labels = {
    .scores = 0, .labels = 1, .class_axis = 1, .ignored = "ignore_index"};

CM_OP(NegativeLogLikelihoodLoss, .infer = cm_loss_infer, .prepare = nll_prepare, .run = nll_run,
      .grad = nll_grad, .body = nll_body, .require = cm_loss_require,
      .scores.labels = &cm_loss_labels);
