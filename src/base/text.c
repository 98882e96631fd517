/* String views: comparing, UTF-8, numbers, likeness. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/text.h"

#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdatomic.h>

enum {
    LONGEST_NUMBER = 2047,  /* any double written out in full has fewer characters */
    LONGEST_COMPARABLE = 64 /* for cm_str_distance */
};

struct cm_str cm_str(const char *text)
{
    return text ? (struct cm_str){text, strlen(text)} : CM_STR_NONE;
}

bool cm_str_equal(struct cm_str a, struct cm_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Names of operators are compared all the time and mostly differ in the first character: not worth
 * finding out how long the text is. */
bool cm_str_is(struct cm_str a, const char *text)
{
    if (!text)
        return a.size == 0;
    for (size_t i = 0; i < a.size; i++)
        if (!text[i] || a.data[i] != text[i])
            return false;
    return !text[a.size];
}

int cm_str_place(struct cm_str a, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cm_str_is(a, words[i]))
            return (int)i;
    return -1;
}

int cm_str_compare(struct cm_str a, struct cm_str b)
{
    const size_t common = cm_min_size(a.size, b.size);
    const int order = common ? memcmp(a.data, b.data, common) : 0;

    return order ? order : (a.size > b.size) - (a.size < b.size);
}

bool cm_str_starts(struct cm_str a, const char *prefix)
{
    const size_t size = strlen(prefix);

    return size == 0 || (a.size >= size && memcmp(a.data, prefix, size) == 0);
}

bool cm_str_ends(struct cm_str a, const char *suffix)
{
    const size_t size = strlen(suffix);

    return size == 0 || (a.size >= size && memcmp(a.data + a.size - size, suffix, size) == 0);
}

bool cm_str_contains(struct cm_str a, const char *part)
{
    const size_t size = strlen(part);

    for (size_t i = 0; i + size <= a.size; i++)
        if (memcmp(a.data + i, part, size) == 0)
            return true;
    return false;
}

struct cm_str cm_str_before_last(struct cm_str a, char c)
{
    while (a.size && a.data[a.size - 1] != c)
        a.size--;
    return (struct cm_str){a.data, a.size ? a.size - 1 : 0};
}

struct cm_str cm_str_before_first(struct cm_str a, char c)
{
    const char *at = a.size ? memchr(a.data, c, a.size) : NULL;

    return (struct cm_str){a.data, at ? (size_t)(at - a.data) : 0};
}

struct cm_str cm_str_after_last(struct cm_str a, char c)
{
    size_t at = a.size;

    while (at && a.data[at - 1] != c)
        at--;
    return cm_str_from(a, at);
}

struct cm_str cm_str_after_first(struct cm_str a, char c)
{
    const char *at = a.size ? memchr(a.data, c, a.size) : NULL;

    return at ? cm_str_from(a, (size_t)(at - a.data) + 1) : CM_STR_NONE;
}

size_t cm_str_digits_at_end(struct cm_str a)
{
    size_t count = 0;

    while (count < a.size && a.data[a.size - count - 1] >= '0' && a.data[a.size - count - 1] <= '9')
        count++;
    return count;
}

int64_t cm_str_number_at_end(struct cm_str a)
{
    int64_t number;

    return cm_str_to_int64(cm_str_from(a, a.size - cm_str_digits_at_end(a)), &number) ? number : -1;
}

size_t cm_utf8_put(char *to, uint32_t code)
{
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

    to[0] = (char)(heads[more] | code >> 6 * more);
    for (int i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return (size_t)more + 1;
}

int cm_hex_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* Bytes of the well-formed character at the start of text, 0 when there is none. The second byte's
 * range keeps out overlong forms, surrogates and what lies past U+10FFFF. */
size_t cm_str_character(struct cm_str rest)
{
    const uint8_t *const text = (const uint8_t *)rest.data;
    const size_t size = rest.size;
    const uint8_t first = text[0];
    const size_t length = first < 0x80                     ? 1
                          : first >= 0xc2 && first <= 0xdf ? 2
                          : first >= 0xe0 && first <= 0xef ? 3
                          : first >= 0xf0 && first <= 0xf4 ? 4
                                                           : 0;
    if (length > size)
        return 0;
    if (length < 2)
        return length;
    const uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

bool cm_str_is_utf8(struct cm_str a)
{
    for (size_t i = 0; i < a.size;) {
        const size_t length = cm_str_character((struct cm_str){a.data + i, a.size - i});

        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

bool cm_str_to_int64(struct cm_str text, int64_t *out)
{
    const bool negative = text.size > 0 && text.data[0] == '-';
    const uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t value = 0;

    if (text.size == (size_t)negative)
        return false;
    for (size_t i = negative; i < text.size; i++) {
        const unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

        if (digit > 9 || value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    /* The most negative number has no positive counterpart. */
    *out = !negative ? (int64_t)value : value == 0 ? 0 : -(int64_t)(value - 1) - 1;
    return true;
}

/* One locale for the process, made on first use; it is never freed. */
static locale_t c_locale(void)
{
    static _Atomic(locale_t) shared;
    locale_t have = atomic_load(&shared);

    if (have)
        return have;
    const locale_t fresh = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!fresh || atomic_compare_exchange_strong(&shared, &have, fresh))
        return fresh;
    freelocale(fresh);
    return have;
}

bool cm_str_to_double(struct cm_str text, double *out)
{
    char copy[LONGEST_NUMBER + 1];
    const locale_t locale = c_locale();

    /* strtod would skip leading space; all that may start a number is a sign, digit, point or
     * letter. */
    if (!locale || text.size == 0 || text.size > LONGEST_NUMBER || text.data[0] <= ' ')
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    const int before = errno;
    char *end;
    errno = 0;
    const double value = strtod_l(copy, &end, locale);
    const bool overflow = errno == ERANGE && isinf(value);
    errno = before;
    if (end != copy + text.size || overflow)
        return false;
    *out = value;
    return true;
}

int cm_vformat(char *to, size_t size, const char *format, va_list args)
{
    const locale_t locale = c_locale();
    const locale_t before = locale ? uselocale(locale) : (locale_t)0;
    const int length = vsnprintf(to, size, format, args);

    if (before)
        uselocale(before);
    return length;
}

int cm_format(char *to, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int length = cm_vformat(to, size, format, args);
    va_end(args);
    return length;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    return cm_min_size(cm_min_size(a, b), c);
}

/* Insertions, deletions, substitutions and swaps of neighbours, each costing 1, no part edited
 * twice. Row i holds the distances from the first i bytes of a to each beginning of b; a swap looks
 * two rows back. */
size_t cm_str_distance(struct cm_str a, struct cm_str b)
{
    size_t rows[3][LONGEST_COMPARABLE + 1];

    if (a.size > LONGEST_COMPARABLE || b.size > LONGEST_COMPARABLE)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        const size_t *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];

        row[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            const size_t differs = a.data[i - 1] != b.data[j - 1];

            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                row[j] = cm_min_size(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[a.size % 3][b.size];
}
