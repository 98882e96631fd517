/* Numbers as the strings of a tensor hold them. Not dependent on the process's locale. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CAST_NUMBER_TEXT_H
#define CM_OPS_CAST_NUMBER_TEXT_H

#include "tensor/dtype.h"

enum { CM_NUMBER_TEXT = 40 }; /* bytes that hold any number, and the 0 that snprintf adds */

/* The fewest digits that read back as the same number of that type; returns the length. 2.5, 100.0,
 * 1e+16, nan, -inf. */
size_t cm_number_print_real(enum cm_dtype type, double value, char *text);
size_t cm_number_print_signed(int64_t value, char *text);
size_t cm_number_print_unsigned(uint64_t value, char *text);

/* Decimal or scientific, INF, +INF, -INF and NaN in any case, blanks around; false when text is no
 * number. */
bool cm_number_parse_real(struct cm_str text, double *out);
/* A whole number of either sign as two's complement, exact up to 64 bits; true and false count;
 * anything else is read as a real number and cut off towards zero. */
bool cm_number_parse_whole(struct cm_str text, uint64_t *out);

/* Towards zero. Past 64 bits the nearest that fits, NaN is 0; ONNX leaves both open. */
uint64_t cm_number_cut(double value);

#endif
