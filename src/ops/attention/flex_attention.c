/* FlexAttention: attention whose scores and weights go through graphs of the model's own. It has no
 * kernel: its body puts those graphs where they belong. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "graph/node_formula.h"
#include "graph/op.h"

#include <math.h>

enum { Q, K, V };

static enum cm_dtype precision(const struct cm_node *node, enum cm_dtype type)
{
    if (cm_node_has_attr(node, "softmax_precision"))
        return (enum cm_dtype)cm_node_int(node, "softmax_precision");
    return type == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
}

/* A graph of the node: one tensor to another of the same type. */
static enum cm_status check_graph(struct cm_infer *in, const char *name, const struct cm_type *type)
{
    const struct cm_fact arg = {.type = type};
    struct cm_fact out = {0};
    if (cm_node_body_index(in->node, name) < 0)
        return CM_OK;
    CM_TRY(cm_infer_body(in, name, &arg, 1, &out, 1));
    if (!cm_type_meet(in->arena, out.type, type))
        return cm_infer_fail(in, "%s gives %s, must give %s", name,
                             cm_type_print(in->arena, in->symbols, out.type).data,
                             cm_type_print(in->arena, in->symbols, type).data);
    return CM_OK;
}

static enum cm_status flex_infer(struct cm_infer *in)
{
    const struct cm_type *type[3];
    struct cm_dim dims[3][4], both;
    for (int i = Q; i <= V; i++) {
        type[i] = cm_infer_type(in, i);
        if (type[i]->rank != CM_RANK_UNKNOWN && type[i]->rank != 4)
            return cm_infer_fail(in, "input %d has rank %d, needs 4", i, type[i]->rank);
        for (int d = 0; d < 4; d++)
            dims[i][d] = type[i]->rank == 4 ? type[i]->dims[d] : CM_DIM_ANY;
    }
    if (!cm_dim_unify(dims[Q][0], dims[K][0], &both) ||
        !cm_dim_unify(dims[K][0], dims[V][0], &both))
        return cm_infer_fail(in, "its operands have different batches");
    if (!cm_dim_unify(dims[K][1], dims[V][1], &both) ||
        !cm_dim_unify(dims[K][2], dims[V][2], &both))
        return cm_infer_fail(in, "keys and values do not have the same heads and lengths");
    if (!cm_dim_unify(dims[Q][3], dims[K][3], &both))
        return cm_infer_fail(in, "queries and keys have different head sizes");
    if (cm_dim_known(dims[Q][1]) && cm_dim_known(dims[K][1]) &&
        (dims[K][1].value < 1 || dims[Q][1].value % dims[K][1].value != 0))
        return cm_infer_fail(in, "%lld heads of keys do not divide %lld heads of queries",
                             (long long)dims[K][1].value, (long long)dims[Q][1].value);
    const enum cm_dtype in_between = precision(in->node, type[Q]->dtype);
    if (in_between != CM_FLOAT && in_between != CM_DOUBLE && in_between != CM_FLOAT16 &&
        in_between != CM_BFLOAT16)
        return cm_infer_fail(in, "attribute 'softmax_precision' is %d, which is not a float type",
                             in_between);
    const struct cm_dim scores[4] = {dims[Q][0], dims[Q][1], dims[Q][2], dims[K][2]};
    const struct cm_dim y[4] = {dims[Q][0], dims[Q][1], dims[Q][2], dims[V][3]};
    const struct cm_type *inner = cm_type_tensor(in->arena, in_between, 4, scores);
    CM_TRY(check_graph(in, "score_mod", inner));
    CM_TRY(check_graph(in, "prob_mod", inner));
    return cm_infer_set_tensor(in, 0, type[V]->dtype, 4, y);
}

struct pieces {
    struct cm_body *b;
    struct cm_arena *arena;
};

static cm_value join(const struct pieces *p, cm_value a, cm_value b)
{
    return cm_emit_with(p->b, "Concat", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 0)), a, b);
}

/* x through a graph of the node, if there is one. */
static cm_value through(const struct pieces *p, const char *name, cm_value x)
{
    const struct cm_graph *graph = cm_node_body(p->b->node, name);
    struct cm_clone clone;
    if (!graph || p->b->build.status)
        return x;
    cm_clone_init(&clone, p->b->node->module);
    cm_clone_map(&clone, graph->inputs[0], x);
    p->b->build.status = cm_clone_graph(&clone, &p->b->build, graph);
    return p->b->build.status ? 0 : cm_clone_of(&clone, graph->outputs[0].value);
}

/* The root of the scale, which queries and keys are both multiplied by. */
static cm_value root_of_scale(const struct pieces *p, cm_value q)
{
    const enum cm_dtype type = cm_builder_type(&p->b->build, q)->dtype;
    const enum cm_dtype wide = type == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
    if (cm_node_has_attr(p->b->node, "scale"))
        return cm_emit_scalar(p->b, type, sqrt((double)cm_node_float(p->b->node, "scale")));
    const cm_value size = cm_emit_cast(
        p->b, cm_emit(p->b, "Squeeze", cm_emit_dims(p->b, q, 3, 4), cm_emit_int64s(p->b, 0)), wide);
    const cm_value root = cm_emit(p->b, "Sqrt", cm_emit(p->b, "Sqrt", size));
    return cm_emit_cast(p->b, cm_emit(p->b, "Reciprocal", root), type);
}

/* Queries that share a head of keys are more rows of one matrix. */
static enum cm_status flex_body(struct cm_body *b)
{
    const struct pieces p = {b, cm_builder_arena(&b->build)};
    const cm_value q = cm_body_input(b, Q), k = cm_body_input(b, K), v = cm_body_input(b, V);
    const struct cm_type *type = cm_builder_type(&b->build, q);
    const enum cm_dtype inner = precision(b->node, type->dtype);
    const int64_t swap[] = {0, 1, 3, 2};
    cm_value *captured;
    if (cm_node_captured(b->node, p.arena, &captured) > 0)
        return cm_body_decline(b, "its graphs read values of the graph around them");
    const cm_value root = root_of_scale(&p, q);
    const cm_value by_keys = join(&p, cm_emit_dims(b, k, 0, 2), cm_emit_int64s(b, -1));
    const cm_value rows = cm_emit(b, "Reshape", cm_emit(b, "Mul", q, root),
                                  join(&p, by_keys, cm_emit_dims(b, q, 3, 4)));
    const cm_value across =
        cm_emit_with(b, "Transpose", CM_ATTRIBUTES(cm_attr_ints(p.arena, "perm", 4, swap)),
                     cm_emit(b, "Mul", k, root));
    const cm_value product = cm_emit(b, "MatMul", rows, across);
    const cm_value by_queries = cm_emit_dims(b, q, 0, 3);
    cm_value scores =
        cm_emit(b, "Reshape", product, join(&p, by_queries, cm_emit_dims(b, k, 2, 3)));
    scores = through(&p, "score_mod", cm_emit_cast(b, scores, inner));
    cm_value weights =
        cm_emit_with(b, "Softmax", CM_ATTRIBUTES(cm_attr_int(p.arena, "axis", -1)), scores);
    weights = through(&p, "prob_mod", weights);
    weights = cm_emit(b, "Reshape", weights, join(&p, by_keys, cm_emit_dims(b, k, 2, 3)));
    const cm_value y = cm_emit(b, "MatMul", weights, cm_emit_cast(b, v, inner));
    const cm_value shaped =
        cm_emit(b, "Reshape", y, join(&p, by_queries, cm_emit_dims(b, v, 3, 4)));
    CM_TRY(b->build.status);
    return cm_body_return(b, 0, cm_emit_cast(b, shaped, cm_builder_type(&b->build, v)->dtype));
}

CM_OP_IN(ai_onnx_preview, "ai.onnx.preview", FlexAttention, .infer = flex_infer, .body = flex_body);
