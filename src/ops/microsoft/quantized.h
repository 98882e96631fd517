/* What the bodies of com.microsoft's quantized operators share: functions of formulas. A quantized
 * tensor is codes, a scale and a zero point: real = (code - zero point) * scale. Results are those
 * of ONNX Runtime, which rounds half to even, but does so before the zero point is added in some
 * operators and after it in others: with an odd zero point they differ at exact ties. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MICROSOFT_QUANTIZED_H
#define CM_OPS_MICROSOFT_QUANTIZED_H

#include "graph/node_formula.h"

/* number(t): one number of rank 0 or 1, as a float scalar; an absent one is 0.
 * codes(t, x): numbers brought into the range of the type of x, int8 or uint8, and cast to it;
 * rounded(t, zero, x): the same, rounded before the zero point is added. */
#define CM_QUANTIZED                                                                               \
    "scalar(t) = rank(t) == 0 ? t : Reshape(t, []); number(t) = t ? scalar(float(t)) : float(0);"  \
    "codes(t, x) = cast(Clip(t, dtype(x) == int8 ? -128 : 0, dtype(x) == int8 ? 127 : 255), x);"   \
    "rounded(t, zero, x) = codes(Round(t) + zero, x);"

#endif
