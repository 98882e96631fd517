/* Text of a stranger on its way to a terminal, a log or a message: which characters may not go as
 * they are. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_PRINTABLE_H
#define CM_BASE_PRINTABLE_H

#include "base/text.h"

/* Bytes of the first character of rest, which is not empty, if a terminal would act on it or not
 * show it: control characters (U+0080 to U+009F too), those that turn the direction of writing,
 * those without width, and 1 for a byte that is no UTF-8. 0: it shows as it is. */
size_t cm_str_unprintable(struct cm_str rest);

/* Spells such characters of a string in place as \xNN, byte by byte; size is the room for it. Ends
 * of lines and tabs stay. What does not fit any more is cut. */
void cm_make_printable(char *text, size_t size);

#endif
