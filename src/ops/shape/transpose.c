/* Transpose, and DepthToSpace and SpaceToDepth, which are transpositions between two reshapes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/shape/shape_rules.h"

/* ---- Transpose ---- */

/* The permutation: by attribute, else the axes reversed. False when it is none of this rank. */
static bool permutation(const struct cm_node *node, int rank, int *out)
{
    const struct cm_int64s perm = cm_node_ints(node, "perm");
    bool used[CM_MAX_RANK] = {false};

    if (!cm_node_has_attr(node, "perm")) {
        for (int i = 0; i < rank; i++)
            out[i] = rank - 1 - i;
        return true;
    }
    if (perm.count != (size_t)rank)
        return false;
    for (int i = 0; i < rank; i++) {
        if (!cm_axis_fix(perm.items[i], rank, &out[i]) || used[out[i]])
            return false;
        used[out[i]] = true;
    }
    return true;
}

static enum cm_status transpose_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    int perm[CM_MAX_RANK], rank = x->rank;

    if (rank == CM_RANK_UNKNOWN) {
        const size_t count = cm_node_ints(in->node, "perm").count;
        if (!cm_node_has_attr(in->node, "perm") || count > CM_MAX_RANK)
            return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
        rank = (int)count;
    }
    if (!permutation(in->node, rank, perm))
        return cm_infer_fail(in, "perm is not a permutation of the %d axes of its input", rank);
    for (int i = 0; i < rank; i++)
        dims[i] = x->rank == CM_RANK_UNKNOWN ? CM_DIM_ANY : x->dims[perm[i]];
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, rank, dims));
    cm_infer_pass_known(in);
    return CM_OK;
}

/* Plans y = x with its axes in another order. */
static void plan(struct cm_move *move, const struct cm_shape *x, const int *perm)
{
    int64_t strides[CM_MAX_RANK], from[CM_MAX_RANK], to[CM_MAX_RANK];
    struct cm_shape y = {.rank = x->rank};

    cm_shape_strides(x, strides);
    for (int i = 0; i < x->rank; i++) {
        y.dims[i] = x->dims[perm[i]];
        from[i] = strides[perm[i]];
    }
    cm_shape_strides(&y, to);
    cm_move_plan(move, y.rank, y.dims, from, to);
}

static enum cm_status transpose_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    int perm[CM_MAX_RANK];
    if (!permutation(call->node, x->rank, perm))
        return cm_call_fail(call, CM_BAD_MODEL, "perm is not a permutation of %d axes", x->rank);
    plan(cm_call_state(call, sizeof(struct cm_move)), x, perm);
    return CM_OK;
}

static enum cm_status move_run(struct cm_call *call)
{
    cm_move_run(call->state, call->in[0]->type, call->in[0]->data, call->out[0]->data);
    return cm_move_hold(call->out[0], call->in[0], call->err);
}

static enum cm_status transpose_grad(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0);
    const struct cm_int64s attribute = cm_node_ints(g->node, "perm");
    const int rank = (int)attribute.count;
    int perm[CM_MAX_RANK];
    int64_t back[CM_MAX_RANK];

    if (!cm_node_has_attr(g->node, "perm")) /* reversing undoes itself */
        return cm_grad_set(g, 0, cm_emit(g, "Transpose", dy));
    if (attribute.count > CM_MAX_RANK || !permutation(g->node, rank, perm))
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "perm is not a permutation");
    for (int i = 0; i < rank; i++)
        back[perm[i]] = i;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    return cm_grad_set(
        g, 0,
        cm_emit_with(g, "Transpose",
                     CM_ATTRIBUTES(cm_attr_ints(arena, "perm", attribute.count, back)), dy));
}

CM_OP(Transpose, .infer = transpose_infer, .prepare = transpose_prepare, .run = move_run,
      .grad = transpose_grad, .cost.work = cm_work_linear, .values.kept = true);

/* ---- DepthToSpace and SpaceToDepth ---- */

/* Both see six axes: batch, depth, and rows and columns cut into blocks. A factor is one of these.
 */
enum factor { BATCH, DEPTH, BLOCK, ROWS, COLUMNS };

/* The six axes of the input, how they are permuted, in one mode; the output's axes are pairs (or
 * threes) of them. */
struct rearrangement {
    enum factor in[6];
    int perm[6];
};

struct blocks {
    bool to_space;
    struct rearrangement dcr, crd;
};

static const struct blocks depth_to_space = {
    true,
    {{BATCH, BLOCK, BLOCK, DEPTH, ROWS, COLUMNS}, {0, 3, 4, 1, 5, 2}},
    {{BATCH, DEPTH, BLOCK, BLOCK, ROWS, COLUMNS}, {0, 1, 4, 2, 5, 3}},
};
static const struct blocks space_to_depth = {
    false,
    {{BATCH, DEPTH, ROWS, BLOCK, COLUMNS, BLOCK}, {0, 3, 5, 1, 2, 4}},
    {{BATCH, DEPTH, ROWS, BLOCK, COLUMNS, BLOCK}, {0, 1, 3, 5, 2, 4}},
};

static const struct rearrangement *rearrangement_of(const struct cm_node *node)
{
    const struct blocks *blocks = node->op->arg;
    const struct cm_str mode = cm_node_str(node, "mode");
    return cm_str_is(mode, "DCR") ? &blocks->dcr : cm_str_is(mode, "CRD") ? &blocks->crd : NULL;
}

/* dim / by, which must be whole. */
static enum cm_status divide(struct cm_infer *in, int axis, struct cm_dim dim, int64_t by,
                             struct cm_dim *out)
{
    *out = cm_dim_floor(in->symbols, dim, 0, by);
    if (!cm_dim_known(dim))
        return CM_OK;
    if (dim.value % by != 0)
        return cm_infer_fail(in, "axis %d is %lld long, which is not a multiple of %lld", axis,
                             (long long)dim.value, (long long)by);
    *out = CM_DIM(dim.value / by);
    return CM_OK;
}

static enum cm_status blocks_infer(struct cm_infer *in)
{
    const struct blocks *blocks = in->node->op->arg;
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t size = cm_node_int(in->node, "blocksize");
    struct cm_dim dims[4] = {CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY};
    int64_t area;

    if (size < 1 || !cm_dim_mul(size, size, &area))
        return cm_infer_fail(in, "attribute 'blocksize' is %lld, expected 1 or more",
                             (long long)size);
    if (!rearrangement_of(in->node))
        return cm_infer_fail(in, "attribute 'mode' is '%.*s', expected 'DCR' or 'CRD'",
                             CM_STR_FMT(cm_node_str(in->node, "mode")));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, 4, dims);
    CM_TRY(cm_infer_rank(in, 0, 4, 4));
    dims[0] = x->dims[0];
    if (blocks->to_space) {
        CM_TRY(divide(in, 1, x->dims[1], area, &dims[1]));
        dims[2] = cm_dim_product(in->symbols, x->dims[2], CM_DIM(size));
        dims[3] = cm_dim_product(in->symbols, x->dims[3], CM_DIM(size));
    } else {
        dims[1] = cm_dim_product(in->symbols, x->dims[1], CM_DIM(area));
        CM_TRY(divide(in, 2, x->dims[2], size, &dims[2]));
        CM_TRY(divide(in, 3, x->dims[3], size, &dims[3]));
    }
    return cm_infer_set_tensor(in, 0, x->dtype, 4, dims);
}

static enum cm_status blocks_prepare(struct cm_call *call)
{
    const struct blocks *blocks = call->op->arg;
    const struct rearrangement *how = rearrangement_of(call->node);
    const int64_t *deep = blocks->to_space ? call->out[0]->shape.dims : call->in[0]->shape.dims;
    const int64_t *flat = blocks->to_space ? call->in[0]->shape.dims : call->out[0]->shape.dims;
    const int64_t sizes[] = {[BATCH] = deep[0],
                             [DEPTH] = deep[1],
                             [BLOCK] = cm_node_int(call->node, "blocksize"),
                             [ROWS] = flat[2],
                             [COLUMNS] = flat[3]};
    struct cm_shape x = {.rank = 6};
    for (int i = 0; i < 6; i++)
        x.dims[i] = sizes[how->in[i]];
    plan(cm_call_state(call, sizeof(struct cm_move)), &x, how->perm);
    return CM_OK;
}

/* Reshape to six axes, Transpose, Reshape to four: the definition ONNX gives. */
static enum cm_status blocks_body(struct cm_body *b)
{
    static const char *const names[] = {[BATCH] = "batch",
                                        [DEPTH] = "depth",
                                        [BLOCK] = "block",
                                        [ROWS] = "rows",
                                        [COLUMNS] = "columns"};
    const struct blocks *blocks = b->node->op->arg;
    const struct rearrangement *how = rearrangement_of(b->node);
    const enum factor *in = how->in;
    const int *perm = how->perm;
    return cm_body_formula(
        b,
        "area = blocksize * blocksize; length(a) = Shape<start=a, end=a + 1>(input); %s"
        "shape = Concat<axis=0>(%s, %s, %s, %s, %s, %s);"
        "cut = Reshape<allowzero=1>(input, shape);"
        "moved = Transpose<perm=[%d, %d, %d, %d, %d, %d]>(cut); %s"
        "output = Reshape<allowzero=1>(moved, Concat<axis=0>(batch, channels, height, width))",
        blocks->to_space
            ? "batch = length(0) * [1]; block = [blocksize]; depth = length(1) / [area];"
              "rows = length(2) * [1]; columns = length(3) * [1];"
            : "batch = length(0) * [1]; block = [blocksize]; depth = length(1) * [1];"
              "rows = length(2) / [blocksize]; columns = length(3) / [blocksize];",
        names[in[0]], names[in[1]], names[in[2]], names[in[3]], names[in[4]], names[in[5]], perm[0],
        perm[1], perm[2], perm[3], perm[4], perm[5],
        blocks->to_space ? "height = length(2) * [blocksize]; width = length(3) * [blocksize];"
                           "channels = length(1) / [area];"
                         : "height = length(2) / [blocksize]; width = length(3) / [blocksize];"
                           "channels = length(1) * [area];");
}

/* Their gradients are those of their bodies. */
CM_OP(DepthToSpace, .infer = blocks_infer, .prepare = blocks_prepare, .run = move_run,
      .body = blocks_body, .arg = &depth_to_space);
CM_OP(SpaceToDepth, .infer = blocks_infer, .prepare = blocks_prepare, .run = move_run,
      .body = blocks_body, .arg = &space_to_depth);
