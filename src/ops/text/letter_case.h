/* Letters of UTF-8 text: reading one, and changing their case. Bytes that are no UTF-8 count as a
 * letter each, and are never changed. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_TEXT_LETTER_CASE_H
#define CM_OPS_TEXT_LETTER_CASE_H

#include "base/text.h"

enum cm_letter_case { CM_CASE_KEEP, CM_CASE_LOWER, CM_CASE_UPPER };

/* The first letter of text, which is not empty, and its size in bytes. */
size_t cm_utf8_get(struct cm_str text, uint32_t *letter);
/* Writes text with its case changed and returns how many bytes that are; out may be NULL. */
size_t cm_letter_case(struct cm_str text, enum cm_letter_case to, char *out);

#endif
