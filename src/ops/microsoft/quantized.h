/* What the bodies of com.microsoft's quantized operators share. A quantized tensor is codes, a
 * scale and a zero point: real = (code - zero point) * scale. Results are those of ONNX Runtime,
 * which rounds half to even, but does so before the zero point is added in some operators and after
 * it in others: with an odd zero point they differ at exact ties. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MICROSOFT_QUANTIZED_H
#define CM_OPS_MICROSOFT_QUANTIZED_H

#include "graph/node_formula.h"

enum cm_dtype cm_quantized_type(const struct cm_body *b, cm_value x);

/* Operand i, one number of rank 0 or 1, as a float scalar; an absent one is 0. */
cm_value cm_quantized_number(struct cm_body *b, int i);

/* The real numbers of operand x, whose scale and zero point (maybe absent) are operands too. */
cm_value cm_quantized_reals(struct cm_body *b, int x, int scale, int zero);
/* The codes of real numbers: rounded, then the zero point added. */
cm_value cm_quantized_codes(struct cm_body *b, cm_value reals, int scale, int zero,
                            enum cm_dtype type);

/* Float numbers of codes: the zero point is added, before or after rounding, and the sum brought
 * into the range of the type. */
enum cm_quantized_rounding { CM_ROUND_FIRST, CM_ROUND_LAST };
cm_value cm_quantized_finish(struct cm_body *b, cm_value v, cm_value zero,
                             enum cm_quantized_rounding rounding, enum cm_dtype type);

/* Operand x with its channels moved from the last axis to axis 1, or back; the rank must be known.
 */
cm_value cm_quantized_channels_second(struct cm_body *b, cm_value x, int rank);
cm_value cm_quantized_channels_last(struct cm_body *b, cm_value x, int rank);
/* The attributes of the call that its schema shares with ai.onnx's operator, but for `except`. */
size_t cm_quantized_attributes(const struct cm_body *b, const char *except,
                               struct cm_attribute_proto *out, size_t size);

#endif
