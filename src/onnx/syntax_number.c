/* Numbers of ONNX's text form to values. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_lex.h"

#include <errno.h>
#include <math.h>

/* Longer than any float or double written out in full. */
enum { LONGEST_DIGITS = 2000 };

static enum cm_status no_fit(const struct cm_lexer *lex, const struct cm_number_text *number,
                             const char *type)
{
    const int shown = number->text.size < 60 ? (int)number->text.size : 60;

    return cm_lex_fail_at(lex, number->text.data, CM_BAD_MODEL, "%.*s does not fit in %s", shown,
                          number->text.data, type);
}

/* The digits of a whole number, which may be too many. */
static bool magnitude(struct cm_str digits, uint64_t *out)
{
    uint64_t value = 0;

    for (size_t i = 0; i < digits.size; i++) {
        const unsigned digit = (unsigned)(digits.data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static struct cm_str without_sign(struct cm_str text, bool *negative)
{
    *negative = text.data[0] == '-';
    return (struct cm_str){text.data + *negative, text.size - *negative};
}

static enum cm_status not_whole(const struct cm_lexer *lex, const struct cm_number_text *number)
{
    const int shown = number->text.size < 60 ? (int)number->text.size : 60;

    return cm_lex_fail_at(lex, number->text.data, CM_BAD_MODEL,
                          "expected a whole number but found %.*s", shown, number->text.data);
}

enum cm_status cm_number_to_int64(const struct cm_lexer *lex, const struct cm_number_text *number,
                                  int64_t min, int64_t max, const char *type, int64_t *out)
{
    bool negative;
    uint64_t size;

    if (!number->whole)
        return not_whole(lex, number);
    if (!magnitude(without_sign(number->text, &negative), &size) ||
        size > (uint64_t)INT64_MAX + negative)
        return no_fit(lex, number, type);
    *out = negative ? (int64_t)(0 - size) : (int64_t)size;
    return *out < min || *out > max ? no_fit(lex, number, type) : CM_OK;
}

enum cm_status cm_number_to_uint64(const struct cm_lexer *lex, const struct cm_number_text *number,
                                   uint64_t max, const char *type, uint64_t *out)
{
    bool negative;

    if (!number->whole)
        return not_whole(lex, number);
    if (!magnitude(without_sign(number->text, &negative), out) || *out > max ||
        (negative && *out != 0))
        return no_fit(lex, number, type);
    return CM_OK;
}

/* 12.50e3 as 1250e1: strtod then sees no decimal point, whose look is a matter of the locale. */
static bool without_point(struct cm_str text, char *out, size_t size)
{
    size_t i = 0, n = 0;
    long fraction = 0, exponent = 0;
    bool after_point = false;

    if (text.size > LONGEST_DIGITS)
        return false;
    for (; i < text.size && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        if (text.data[i] == '.') {
            after_point = true;
            continue;
        }
        fraction += after_point;
        out[n++] = text.data[i];
    }
    if (i < text.size) {
        const bool minus = text.data[++i] == '-';
        i += minus || text.data[i] == '+';
        for (; i < text.size; i++)
            if (exponent < 100000)
                exponent = exponent * 10 + (text.data[i] - '0');
        exponent = minus ? -exponent : exponent;
    }
    const int wrote = snprintf(out + n, size - n, "e%ld", exponent - fraction);
    return wrote > 0 && (size_t)wrote < size - n;
}

/* Is text inf or nan in some spelling? digits is what stands between the parentheses. */
static bool is_named(struct cm_str text, bool *negative, bool *nan, struct cm_str *digits)
{
    const struct cm_str name = without_sign(text, negative);

    *digits = CM_STR_NONE;
    if ((name.data[0] | 0x20) != 'i' && (name.data[0] | 0x20) != 'n')
        return false;
    *nan = (name.data[0] | 0x20) == 'n';
    if (*nan && name.size > 3)
        *digits = (struct cm_str){name.data + 4, name.size - 5};
    return true;
}

/* The bits of an infinity or a NaN of an IEEE type with this many bits, so many of them below the
 * exponent; *named is false where the text is another number. */
static enum cm_status named_bits(const struct cm_lexer *lex, const struct cm_number_text *number,
                                 int bits, int mantissa_bits, uint64_t *out, bool *named)
{
    const uint64_t exponent = (UINT64_C(1) << (bits - 1 - mantissa_bits)) - 1;
    bool negative, nan;
    struct cm_str digits;

    *named = is_named(number->text, &negative, &nan, &digits);
    if (!*named)
        return CM_OK;
    uint64_t low = nan ? UINT64_C(1) << (mantissa_bits - 1) : 0;
    if (digits.size && (!magnitude(digits, &low) || low == 0 || low >> mantissa_bits != 0))
        return no_fit(lex, number, bits == 32 ? "float" : "double");
    *out = (uint64_t)negative << (bits - 1) | exponent << mantissa_bits | low;
    return CM_OK;
}

enum cm_status cm_number_to_float(const struct cm_lexer *lex, const struct cm_number_text *number,
                                  float *out)
{
    char plain[LONGEST_DIGITS + 32];
    uint64_t bits;
    bool named;

    CM_TRY(named_bits(lex, number, 32, 23, &bits, &named));
    if (named) {
        const uint32_t narrow = (uint32_t)bits;
        memcpy(out, &narrow, sizeof narrow);
        return CM_OK;
    }
    if (!without_point(number->text, plain, sizeof plain))
        return no_fit(lex, number, "float");
    const int before = errno;
    *out = strtof(plain, NULL);
    errno = before;
    return isinf(*out) ? no_fit(lex, number, "float") : CM_OK;
}

enum cm_status cm_number_to_double(const struct cm_lexer *lex, const struct cm_number_text *number,
                                   double *out)
{
    char plain[LONGEST_DIGITS + 32];
    uint64_t bits;
    bool named;

    CM_TRY(named_bits(lex, number, 64, 52, &bits, &named));
    if (named) {
        memcpy(out, &bits, sizeof bits);
        return CM_OK;
    }
    if (!without_point(number->text, plain, sizeof plain))
        return no_fit(lex, number, "double");
    const int before = errno;
    *out = strtod(plain, NULL);
    errno = before;
    return isinf(*out) ? no_fit(lex, number, "double") : CM_OK;
}
