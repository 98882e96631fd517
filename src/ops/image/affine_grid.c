/* AffineGrid: the places of an image's pixels, from -1 to 1, moved by a matrix. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "graph/require.h"
#include "tensor/line.h"

enum { THETA, SIZE };

/* theta is (N, axes, axes + 1); size is (N, C, sizes of the axes). */
static enum cm_status affine_infer(struct cm_infer *in)
{
    const struct cm_type *theta = cm_infer_type(in, THETA);
    struct cm_dim dims[5], both;
    struct cm_known known;
    const bool have = cm_infer_known(in, SIZE, &known);
    CM_TRY(cm_infer_rank(in, THETA, 3, 3));
    CM_TRY(cm_infer_rank(in, SIZE, 1, 1));
    const struct cm_dim rows = theta->rank == 3 ? theta->dims[1] : CM_DIM_ANY;
    const int64_t axes = have ? (int64_t)known.count - 2 : rows.value;
    if ((have || cm_dim_known(rows)) && axes != 2 && axes != 3)
        return cm_infer_fail(in, "it supports 2 or 3 spatial axes, not %lld", (long long)axes);
    if (axes < 0)
        return cm_infer_set_tensor(in, 0, theta->dtype, CM_RANK_UNKNOWN, NULL);
    if (theta->rank == 3 && (!cm_dim_unify(rows, CM_DIM(axes), &both) ||
                             !cm_dim_unify(theta->dims[2], CM_DIM(axes + 1), &both)))
        return cm_infer_fail(in, "theta does not have the shape that %lld spatial axes need",
                             (long long)axes);
    dims[0] = theta->rank == 3 ? theta->dims[0] : CM_DIM_ANY;
    for (int i = 0; i < axes; i++)
        dims[i + 1] = have ? cm_quantity_dim(known.items[i + 2]) : CM_DIM_ANY;
    for (size_t i = 2; have && i < known.count; i++)
        if (known.items[i].is_number && known.items[i].number < 0)
            return cm_infer_fail(in, "size contains %lld, must not be negative",
                                 (long long)known.items[i].number);
    dims[axes + 1] = CM_DIM(axes);
    return cm_infer_set_tensor(in, 0, theta->dtype, (int)axes + 2, dims);
}

static double place(int64_t i, int64_t length, bool align)
{
    if (!align)
        return ((double)i * 2 + 1) / (double)length - 1;
    return length > 1 ? (double)i * 2 / (double)(length - 1) - 1 : -1;
}

static enum cm_status affine_run(struct cm_call *call)
{
    const struct cm_tensor *theta = call->in[THETA];
    const struct cm_shape *y = &call->out[0]->shape;
    const int axes = y->rank - 2;
    const int64_t places = cm_shape_span(y, 1, axes + 1);
    const bool align = cm_node_int(call->node, "align_corners") != 0;
    double m[3][4];
    for (int64_t n = 0; n < y->dims[0]; n++) {
        for (int i = 0; i < axes * (axes + 1); i++)
            m[i / (axes + 1)][i % (axes + 1)] = cm_tensor_real(theta, n * axes * (axes + 1) + i);
        for (int64_t p = 0; p < places; p++) {
            double at[3], moved[3];
            int64_t rest = p;
            for (int a = axes - 1; a >= 0; a--) { /* the last axis is x, the first coordinate */
                at[axes - 1 - a] = place(rest % y->dims[a + 1], y->dims[a + 1], align);
                rest /= y->dims[a + 1];
            }
            for (int i = 0; i < axes; i++) {
                moved[i] = m[i][axes];
                for (int j = 0; j < axes; j++)
                    moved[i] += m[i][j] * at[j];
            }
            cm_line_save(cm_line_at(call->out[0], (n * places + p) * axes), 1, axes, CM_DOUBLE,
                         moved);
        }
    }
    return CM_OK;
}

/* dtheta = dgrid' (x, y, .., 1), the places being what the identity gives. */
static enum cm_status affine_grad(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0);
    const struct cm_type *type = cm_builder_type(&g->build, dy);
    struct cm_arena *arena = cm_builder_arena(&g->build);
    if (!type || type->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED, "the gradient needs to know the axes");
    const int axes = type->rank - 2;
    float ones[12] = {0};
    for (int i = 0; i < axes; i++)
        ones[i * (axes + 1) + i] = 1;
    struct cm_tensor identity = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1, axes, axes + 1), ones);
    const struct cm_attribute_proto to = cm_attr_int(arena, "to", type->dtype);
    const cm_value still =
        cm_emit_with(g, "Cast", CM_ATTRIBUTES(to), cm_build_tensor(&g->build, &identity));
    const struct cm_attribute_proto align =
        cm_attr_int(arena, "align_corners", cm_node_int(g->node, "align_corners"));
    const cm_value base =
        cm_emit_with(g, "AffineGrid", CM_ATTRIBUTES(align), still, cm_grad_input(g, SIZE));
    const cm_value places = cm_emit(g, "Reshape", base, cm_emit_int64s(g, -1, axes));
    const int64_t pads[4] = {0, 0, 0, 1};
    const cm_value full = cm_emit(g, "Pad", places, cm_build_int64s(&g->build, 4, pads),
                                  cm_build_scalar_like(&g->build, places, 1));
    const int64_t perm[3] = {0, 2, 1};
    const cm_value flat = cm_emit(g, "Reshape", dy, cm_emit_int64s(g, 0, -1, axes));
    const cm_value across =
        cm_emit_with(g, "Transpose", CM_ATTRIBUTES(cm_attr_ints(arena, "perm", 3, perm)), flat);
    return cm_grad_set(g, THETA, cm_emit(g, "MatMul", across, full));
}

static void affine_require(struct cm_require *r)
{
    const struct cm_type *size = cm_require_type(r, SIZE), *theta = cm_require_type(r, THETA);
    const char *reason = "theta does not have the shape that its spatial axes need";
    if (!size || !theta || size->rank != 1 || theta->rank != 3)
        return;
    if (cm_dim_known(size->dims[0])) {
        cm_require_size(r, THETA, 1, size->dims[0].value - 2, reason);
        cm_require_size(r, THETA, 2, size->dims[0].value - 1, reason);
    } else if (cm_dim_known(theta->dims[1])) {
        cm_require_size(r, THETA, 2, theta->dims[1].value + 1, reason);
        cm_require_size(r, SIZE, 0, theta->dims[1].value + 2, reason);
    }
}

CM_OP(AffineGrid, .require = affine_require, .infer = affine_infer, .run = affine_run,
      .grad = affine_grad);
