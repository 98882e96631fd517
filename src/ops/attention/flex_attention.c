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

/* Queries that share a head of keys are more rows of one matrix; queries and keys are both
 * multiplied by the root of the scale. */
static enum cm_status flex_body(struct cm_body *b)
{
    const struct pieces p = {b, cm_builder_arena(&b->build)};
    const cm_value q = cm_body_input(b, Q), k = cm_body_input(b, K), v = cm_body_input(b, V);
    const struct cm_type *type = cm_builder_type(&b->build, q);
    const char *const inner = cm_dtype_name(precision(b->node, type->dtype));
    cm_value *captured, pieces[3];
    if (cm_node_captured(b->node, p.arena, &captured) > 0)
        return cm_body_decline(b, "its graphs read values of the graph around them");
    const struct cm_str scores = cm_arena_printf(
        p.arena,
        "q, k: size(t) = %s(Squeeze(Shape<start=3, end=4>(t), [0]));"
        "root = given(scale) ? like(q, %.17g) : cast(Reciprocal(Sqrt(Sqrt(size(q)))), q);"
        "keys = Concat<axis=0>(Shape<start=0, end=2>(k), [-1]);"
        "rows = Reshape(q * root, Concat<axis=0>(keys, Shape<start=3, end=4>(q)));"
        "product = MatMul(rows, Transpose<perm=[0, 1, 3, 2]>(k * root));"
        "queries = Shape<start=0, end=3>(q);"
        "scores = %s(Reshape(product, Concat<axis=0>(queries, Shape<start=2, end=3>(k))))"
        "-> scores, keys, queries",
        type->dtype == CM_DOUBLE ? "double" : "float",
        sqrt((double)cm_node_float(b->node, "scale")), inner);
    cm_emit_formulas(b, pieces, cm_str_text(scores), q, k);
    const cm_value seen = through(&p, "score_mod", pieces[0]);
    const cm_value weights =
        through(&p, "prob_mod", cm_emit_formula(b, "t: Softmax<axis=-1>(t)", seen));
    const struct cm_str sums =
        cm_arena_printf(p.arena,
                        "w, k, v, keys, queries:"
                        "rows = Reshape(w, Concat<axis=0>(keys, Shape<start=2, end=3>(k))); y = "
                        "MatMul(rows, %s(v));"
                        "cast(Reshape(y, Concat<axis=0>(queries, Shape<start=3, end=4>(v))), v)",
                        inner);
    return cm_body_return(
        b, 0, cm_emit_formula(b, cm_str_text(sums), weights, k, v, pieces[1], pieces[2]));
}

CM_OP_IN(ai_onnx_preview, "ai.onnx.preview", FlexAttention, .infer = flex_infer, .body = flex_body);
