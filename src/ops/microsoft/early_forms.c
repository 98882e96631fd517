/* Operators that ONNX has too, in the form that ONNX Runtime gave them first: GridSample,
 * Pad, Range, Trilu. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

/* An operand of one element, of any rank, as a scalar; an absent one stays absent. */
#define SCALAR "scalar(t) = t ? rank(t) == 0 ? t : Reshape(t, []) : t;"

/* Paddings may be a matrix of one row. */
CM_BODY(pad_body, SCALAR "v = scalar(value); output = Pad<*>(data, Reshape(pads, [-1]), v)")
CM_BODY(range_body, SCALAR "first = scalar(start); step = scalar(delta);"
                           "Y = Range(first, scalar(limit), step ? step : 1)")
CM_BODY(trilu_body, SCALAR "Y = Trilu<*>(X, scalar(k))")
/* Its modes had other names. */
CM_BODY(grid_sample_body,
        "Y = mode == 'bilinear' ? GridSample<align_corners, mode='linear', padding_mode>(X, Grid)"
        "  : mode == 'bicubic' ? GridSample<align_corners, mode='cubic', padding_mode>(X, Grid)"
        "  : GridSample<align_corners, mode, padding_mode>(X, Grid)")

CM_OP_IN(microsoft, "com.microsoft", GridSample, .body = grid_sample_body);
CM_OP_IN(microsoft, "com.microsoft", Pad, .body = pad_body);
CM_OP_IN(microsoft, "com.microsoft", Range, .body = range_body);
CM_OP_IN(microsoft, "com.microsoft", Trilu, .body = trilu_body);
