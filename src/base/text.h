/* Strings as views. Text that comes from a file is not NUL-terminated and may hold any byte, so a
 * struct cm_str carries its length; print it with CM_STR_FMT. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_TEXT_H
#define CM_BASE_TEXT_H

#include "base/compiler.h"

#include <assert.h>
#include <stdbool.h>

struct cm_str {
    const char *data; /* borrowed: lives as long as whatever holds the bytes */
    size_t size;
};

#define CM_STR(literal) ((struct cm_str){"" literal, sizeof(literal) - 1})
#define CM_STR_NONE     ((struct cm_str){NULL, 0})
/* printf("%.*s", CM_STR_FMT(name)): a name in a message is cut at 200 bytes. */
#define CM_STR_FMT(s) ((s).size < 200 ? (int)(s).size : 200), ((s).data ? (s).data : "")
/* The same uncut, for a text that becomes part of another. */
#define CM_STR_ALL(s) (int)(s).size, ((s).data ? (s).data : "")

/* The text of a view as a string. The view must have been made with a zero byte at its end, as
 * cm_arena_str and cm_arena_printf make them; a view of a file has none, and is copied first. */
static inline const char *cm_str_text(struct cm_str text)
{
    assert(!text.data || !text.data[text.size]);
    return text.data;
}

struct cm_str cm_str(const char *text); /* view of a NUL-terminated string; NULL is empty */
bool cm_str_equal(struct cm_str a, struct cm_str b);
bool cm_str_is(struct cm_str a, const char *text);
/* The place of a among the words; -1: it is none of them. */
int cm_str_place(struct cm_str a, const char *const *words, size_t count);
#define CM_STR_AMONG(a, words) (cm_str_place((a), (words), CM_COUNT(words)) >= 0)
int cm_str_compare(struct cm_str a, struct cm_str b); /* bytewise, shorter first */
bool cm_str_starts(struct cm_str a, const char *prefix);
bool cm_str_ends(struct cm_str a, const char *suffix);
bool cm_str_contains(struct cm_str a, const char *part);
/* What stands before the last c, or before the first; empty if there is none. */
struct cm_str cm_str_before_last(struct cm_str a, char c);
struct cm_str cm_str_before_first(struct cm_str a, char c);
/* What stands after the last c; all of a if there is none. */
struct cm_str cm_str_after_last(struct cm_str a, char c);
/* What stands after the first c; empty if there is none. */
struct cm_str cm_str_after_first(struct cm_str a, char c);
/* a without its first `count` bytes; it has at least so many. */
static inline struct cm_str cm_str_from(struct cm_str a, size_t count)
{
    return count ? (struct cm_str){a.data + count, a.size - count} : a;
}
/* How many of its last bytes are digits. */
size_t cm_str_digits_at_end(struct cm_str a);
/* The number that a ends with; -1: none, or one that does not fit. */
int64_t cm_str_number_at_end(struct cm_str a);
bool cm_str_is_utf8(struct cm_str a);
/* Writes a character, at most 4 bytes; returns how many. */
size_t cm_utf8_put(char *to, uint32_t code);
/* The value of a hexadecimal digit; -1: it is none. */
int cm_hex_digit(char c);
/* Bytes of the UTF-8 character that rest, which is not empty, begins with; 0: it is none. */
size_t cm_str_character(struct cm_str rest);

/* The whole of text as a number, decimal with optional minus; false if it is not one or does not
 * fit. */
bool cm_str_to_int64(struct cm_str text, int64_t *out);
/* Same in the C locale's floating point syntax, whatever the process's locale is. */
bool cm_str_to_double(struct cm_str text, double *out);

/* snprintf in the C locale, whatever the process's locale is: a point in 0.5, never a comma. */
int cm_format(char *to, size_t size, const char *format, ...) CM_PRINTF(3, 4);
int cm_vformat(char *to, size_t size, const char *format, va_list args);

/* Edits that turn a into b; used to guess what was meant. Long texts count as far apart. */
size_t cm_str_distance(struct cm_str a, struct cm_str b);

#endif
