/* Operators that ONNX has too, in the form that ONNX Runtime gave them first: GridSample,
 * Pad, Range, Trilu. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

/* An operand of one element, of any rank, as a scalar; 0 stays 0. */
static cm_value as_scalar(struct cm_body *b, cm_value x)
{
    if (!x || cm_compose_rank(b, x) == 0)
        return x;
    return cm_emit(b, "Reshape", x, cm_build_int64s(&b->build, 0, NULL));
}

/* Paddings may be a matrix of one row. */
static enum cm_status pad_body(struct cm_body *b)
{
    const cm_value value = as_scalar(b, cm_body_input(b, 2));
    const cm_value pads = CM_COMPOSE_RESHAPE(b, cm_body_input(b, 1), -1);
    return cm_body_return(b, 0, CM_COMPOSE_AS_CALLED(b, "Pad", cm_body_input(b, 0), pads, value));
}

static enum cm_status range_body(struct cm_body *b)
{
    const cm_value start = as_scalar(b, cm_body_input(b, 0));
    const cm_value delta = as_scalar(b, cm_body_input(b, 2));
    return cm_body_return(b, 0,
                          cm_emit(b, "Range", start, as_scalar(b, cm_body_input(b, 1)),
                                  delta ? delta : cm_emit_scalar_like(b, start, 1)));
}

static enum cm_status trilu_body(struct cm_body *b)
{
    return cm_body_return(
        b, 0,
        CM_COMPOSE_AS_CALLED(b, "Trilu", cm_body_input(b, 0), as_scalar(b, cm_body_input(b, 1))));
}

/* Its modes had other names. */
static enum cm_status grid_sample_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const struct cm_str mode = cm_node_str(b->node, "mode");
    const struct cm_str newer = cm_str_is(mode, "bilinear")  ? CM_STR("linear")
                                : cm_str_is(mode, "bicubic") ? CM_STR("cubic")
                                                             : mode;
    return cm_body_return(
        b, 0,
        cm_emit_with(b, "GridSample",
                     CM_ATTRIBUTES(
                         cm_attr_int(arena, "align_corners", cm_node_int(b->node, "align_corners")),
                         cm_attr_str(arena, "mode", newer),
                         cm_attr_str(arena, "padding_mode", cm_node_str(b->node, "padding_mode"))),
                     cm_body_input(b, 0), cm_body_input(b, 1)));
}

CM_OP_IN(microsoft, "com.microsoft", GridSample, .body = grid_sample_body);
CM_OP_IN(microsoft, "com.microsoft", Pad, .body = pad_body);
CM_OP_IN(microsoft, "com.microsoft", Range, .body = range_body);
CM_OP_IN(microsoft, "com.microsoft", Trilu, .body = trilu_body);
