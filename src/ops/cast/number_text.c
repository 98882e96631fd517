/* Printing and reading the numbers of string tensors. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/cast/number_text.h"

#include "tensor/half.h"

#include <inttypes.h>
#include <math.h>

/* ---- printing ---- */

/* Does the number read back from so many digits be the same once rounded to its type? */
static bool same_in(enum cm_dtype type, double a, double b)
{
    if (type == CM_DOUBLE)
        return a == b;
    if (type == CM_FLOAT)
        return (float)a == (float)b;
    unsigned char codes[2][4] = {{0}};
    const float pair[2] = {(float)a, (float)b};
    cm_narrow_store(type, codes[0], 0, 1, &pair[0]);
    cm_narrow_store(type, codes[1], 0, 1, &pair[1]);
    return memcmp(codes[0], codes[1], sizeof codes[0]) == 0;
}

/* value = 0.d0d1d2.. * 10^(point); the digits without trailing zeros. */
struct digits {
    char items[20];
    int count, point;
};

/* Takes "d.ddde[+-]xx" apart without relying on what the locale's decimal point is. */
static void take_apart(const char *text, struct digits *out)
{
    const char *at = text;
    out->count = 0;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9' && out->count < (int)sizeof out->items)
            out->items[out->count++] = *at;
    out->point = (*at ? (int)strtol(at + 1, NULL, 10) : 0) + 1;
    while (out->count > 1 && out->items[out->count - 1] == '0')
        out->count--;
}

static double put_together(const struct digits *digits)
{
    char text[CM_NUMBER_TEXT];
    double value = 0;
    const int size = snprintf(text, sizeof text, "%.*se%d", digits->count, digits->items,
                              digits->point - digits->count);
    return size > 0 && cm_str_to_double((struct cm_str){text, (size_t)size}, &value) ? value : 0;
}

static void shortest(enum cm_dtype type, double magnitude, struct digits *out)
{
    char text[CM_NUMBER_TEXT];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, magnitude);
        take_apart(text, out);
        if (same_in(type, put_together(out), magnitude))
            return;
    }
}

/* Plain between 1e-4 and 1e16, as Python writes numbers, else with an exponent. */
static size_t lay_out(const struct digits *digits, char *text)
{
    const int n = digits->count, point = digits->point;
    char *to = text;

    if (point > 16 || point < -3) {
        *to++ = digits->items[0];
        if (n > 1) {
            *to++ = '.';
            memcpy(to, digits->items + 1, (size_t)(n - 1));
            to += n - 1;
        }
        return (size_t)(to - text) +
               (size_t)snprintf(to, 8, "e%c%02d", point > 0 ? '+' : '-', abs(point - 1));
    }
    if (point <= 0) {
        *to++ = '0';
        *to++ = '.';
    }
    for (int i = point < 0 ? point : 0; i < n || i <= point; i++) {
        if (i == point && point > 0)
            *to++ = '.';
        *to++ = i >= 0 && i < n ? digits->items[i] : '0';
    }
    return (size_t)(to - text);
}

size_t cm_number_print_real(enum cm_dtype type, double value, char *text)
{
    struct digits digits = {.count = 1, .point = 1, .items = "0"};
    char *to = text;

    if (isnan(value)) {
        memcpy(text, "nan", 3);
        return 3;
    }
    if (signbit(value))
        *to++ = '-';
    if (isinf(value)) {
        memcpy(to, "inf", 3);
        return (size_t)(to - text) + 3;
    }
    if (value != 0)
        shortest(type, fabs(value), &digits);
    return (size_t)(to - text) + lay_out(&digits, to);
}

size_t cm_number_print_signed(int64_t value, char *text)
{
    return (size_t)snprintf(text, CM_NUMBER_TEXT, "%" PRId64, value);
}

size_t cm_number_print_unsigned(uint64_t value, char *text)
{
    return (size_t)snprintf(text, CM_NUMBER_TEXT, "%" PRIu64, value);
}

/* ---- reading ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct cm_str trimmed(struct cm_str text)
{
    while (text.size > 0 && is_blank(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Equal but for the case of letters; word is in lower case. */
static bool is_word(struct cm_str text, const char *word)
{
    if (text.size != strlen(word))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != word[i])
            return false;
    }
    return true;
}

bool cm_number_parse_real(struct cm_str text, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"inf", INFINITY}, {"+inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};

    text = trimmed(text);
    for (size_t i = 0; i < CM_COUNT(words); i++) {
        if (is_word(text, words[i].word)) {
            *out = words[i].value;
            return true;
        }
    }
    /* No hexadecimal numbers and no other names. */
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (!((c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-' || c == 'e' || c == 'E'))
            return false;
    }
    return cm_str_to_double(text, out);
}

uint64_t cm_number_cut(double value)
{
    if (!(value == value))
        return 0;
    if (value >= 0x1p64)
        return UINT64_MAX;
    if (value >= 0x1p63)
        return (uint64_t)value;
    return value < -0x1p63 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)value;
}

/* Digits only, at most 64 bits. */
static bool parse_digits(struct cm_str text, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        const unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return text.size > 0;
}

bool cm_number_parse_whole(struct cm_str text, uint64_t *out)
{
    struct cm_str rest = text = trimmed(text);
    const bool negative = text.size > 0 && text.data[0] == '-';
    double real;

    if (is_word(text, "true") || is_word(text, "false")) {
        *out = text.size == 4;
        return true;
    }
    if (negative || (text.size > 0 && text.data[0] == '+')) {
        rest.data++;
        rest.size--;
    }
    if (parse_digits(rest, out)) {
        *out = negative ? 0 - *out : *out;
        return true;
    }
    if (!cm_number_parse_real(text, &real))
        return false;
    *out = cm_number_cut(real);
    return true;
}
