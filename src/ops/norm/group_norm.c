/* InstanceNormalization and GroupNormalization: each image's channels normalized one by one, or in
 * groups. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "ops/norm/norm_grad.h"
#include "tensor/line.h"

#include <math.h>

/* 0: every channel is a group of its own. */
static int64_t groups_of(const struct cm_node *node)
{
    return node->op->arg ? cm_node_int(node, "num_groups") : 0;
}

static enum cm_status group_norm_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t groups = groups_of(in->node);
    if (in->node->op->arg && groups < 1)
        return cm_infer_fail(in, "num_groups is %lld, must be 1 or more", (long long)groups);
    CM_TRY(cm_infer_set(in, 0, x));
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, 0, 2, CM_MAX_RANK));
    if (groups && cm_dim_known(x->dims[1]) && x->dims[1].value % groups != 0)
        return cm_infer_fail(in, "num_groups is %lld, which does not divide %lld channels",
                             (long long)groups, (long long)x->dims[1].value);
    for (int i = 1; i < 3; i++) {
        const struct cm_type *p = cm_infer_type(in, i);
        struct cm_dim both;
        if (p->rank != CM_RANK_UNKNOWN &&
            (p->rank != 1 || !cm_dim_unify(p->dims[0], x->dims[1], &both)))
            return cm_infer_fail(in, "input %d does not have one number per channel", i);
    }
    return CM_OK;
}

struct groups {
    int64_t images, channels, per_group, area;
    double epsilon;
};

static enum cm_status group_norm_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct groups *groups = cm_call_state(call, sizeof *groups);
    const int64_t count = groups_of(call->node);
    *groups = (struct groups){.images = x->dims[0],
                              .channels = x->dims[1],
                              .per_group = count ? x->dims[1] / count : 1,
                              .area = cm_shape_span(x, 2, x->rank),
                              .epsilon = (double)cm_node_float(call->node, "epsilon")};
    return CM_OK;
}

static enum cm_status group_norm_run(struct cm_call *call)
{
    const struct groups *groups = call->state;
    const struct cm_tensor *x = call->in[0];
    const int64_t size = groups->per_group * groups->area;
    if (cm_tensor_count(x) == 0)
        return CM_OK;
    for (int64_t first = 0; first < groups->images * groups->channels; first += groups->per_group) {
        const struct cm_line whole = cm_line_at(x, first * groups->area);
        const double mean = cm_line_sum(whole, size) / (double)size;
        const double variance = cm_line_square_sum(whole, size, mean) / (double)size;
        const double inverse = 1 / sqrt(variance + groups->epsilon);
        for (int64_t i = first; i < first + groups->per_group; i++) {
            const int64_t c = i % groups->channels, at = i * groups->area;
            cm_line_affine(cm_line_at(x, at), cm_line_at(call->out[0], at), groups->area, mean,
                           inverse * cm_tensor_real(call->in[1], c),
                           cm_tensor_real(call->in[2], c));
        }
    }
    return CM_OK;
}

/* In the shape (N, groups, rest), where a group is one axis; instances keep theirs. */
static cm_value grouped(struct cm_grad *g, cm_value x)
{
    const int64_t groups = groups_of(g->node);
    return groups ? cm_emit(g, "Reshape", x, cm_emit_int64s(g, 0, groups, -1)) : x;
}

static cm_value shaped_like(struct cm_grad *g, cm_value x, cm_value like)
{
    return cm_emit(g, "Reshape", x, cm_emit(g, "Shape", like));
}

static cm_value ungrouped(struct cm_grad *g, cm_value x, cm_value like)
{
    return groups_of(g->node) ? shaped_like(g, x, like) : x;
}

static enum cm_status group_norm_grad(struct cm_grad *g)
{
    const int known = cm_builder_type(&g->build, cm_grad_input(g, 0))->rank;
    const bool rankless = known == CM_RANK_UNKNOWN;
    const int rank = rankless ? 3 : known;
    cm_value x = cm_norm_widen(g, cm_grad_input(g, 0));
    cm_value dy = cm_norm_widen(g, cm_grad_incoming(g, 0));
    if (rankless) { /* all spatial axes in one */
        const cm_value shape = cm_emit_int64s(g, 0, 0, -1);
        x = cm_emit(g, "Reshape", x, shape);
        dy = cm_emit(g, "Reshape", dy, shape);
    }
    const cm_value scale = cm_norm_widen(g, cm_grad_input(g, 1));
    const cm_value inner = cm_norm_axes(g, 2, groups_of(g->node) ? 3 : rank, -1);
    const cm_value others = cm_norm_axes(g, 0, rank, 1);
    const struct cm_normalized n = cm_norm_forward(g, grouped(g, x), inner, true,
                                                   (double)cm_node_float(g->node, "epsilon"), 0, 0);
    const cm_value dxhat = cm_emit(g, "Mul", dy, cm_norm_per_channel(g, scale, rank - 2));
    const cm_value dx = ungrouped(g, cm_norm_backward(g, &n, grouped(g, dxhat)), x);
    CM_TRY(cm_norm_set(g, 0, rankless ? shaped_like(g, dx, cm_grad_input(g, 0)) : dx));
    const cm_value product = cm_emit(g, "Mul", dy, ungrouped(g, n.xhat, x));
    CM_TRY(cm_norm_set(g, 1, cm_norm_sum(g, product, others, false)));
    return cm_norm_set(g, 2, cm_norm_sum(g, dy, others, false));
}

/* Groups as one axis, normalized in the stash type; then each channel scaled in its own. */
static enum cm_status group_norm_body(struct cm_body *b)
{
    const int rank = cm_builder_type(&b->build, cm_body_input(b, 0))->rank;
    if (rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of input 0 is not known");
    return cm_body_formula(
        b,
        "axes = [2]; grouped = Reshape(Cast<to=stash_type>(X), [0, num_groups, -1]);"
        "off = grouped - ReduceMean(grouped, axes); variance = ReduceMean(off * off, axes);"
        "flat = CastLike(off / Sqrt(variance + epsilon), X); y = Reshape(flat, Shape(X));"
        "list = [1 to %d]; laid(p) = %s; factor = laid(scale); shift = laid(bias);"
        "Y = y * factor + shift",
        rank - 2, rank > 2 ? "Unsqueeze(p, list)" : "p");
}

static const bool has_groups = true;

/* All spatial axes as one, so that no rank need be known. */
static enum cm_status instance_norm_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const char *const wide = cm_dtype_name(cm_line_wide(type));
    return cm_body_formula(
        b,
        "x = %s(input); flat = Reshape(x, [0, 0, -1]); axes = [2];"
        "off = flat - ReduceMean(flat, axes); variance = ReduceMean(off * off, axes);"
        "root = Sqrt(variance + epsilon); laid(p) = Reshape(%s(p), [-1, 1]);"
        "factor = laid(scale); shift = laid(B);"
        "output = %s(Reshape<allowzero=1>(off / root * factor + shift, Shape(x)))",
        wide, wide, cm_dtype_name(type));
}

CM_OP(InstanceNormalization, .infer = group_norm_infer, .prepare = group_norm_prepare,
      .run = group_norm_run, .grad = group_norm_grad, .body = instance_norm_body,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2), .layer.entry = CM_ENTERS_AFTER_NORM);
CM_OP(GroupNormalization, .infer = group_norm_infer, .prepare = group_norm_prepare,
      .run = group_norm_run, .grad = group_norm_grad, .body = group_norm_body, .arg = &has_groups,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2), .layer.entry = CM_ENTERS_AFTER_NORM);
