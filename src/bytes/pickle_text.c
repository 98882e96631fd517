/* Texts and long numbers as pickles write them. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/pickle.h"

/* Decimal digits of a two's complement number of many bytes: divided by ten again and again. */
struct cm_str cm_pickle_digits(struct cm_arena *arena, struct cm_str bytes)
{
    uint8_t value[CM_PICKLE_LONG_MAX];
    char *text = cm_arena_alloc(arena, CM_PICKLE_LONG_MAX * 5 / 2 + 3);
    char *at = text + CM_PICKLE_LONG_MAX * 5 / 2 + 2;
    const bool negative = bytes.data[bytes.size - 1] & 0x80;
    unsigned carry = negative;
    bool left = true;

    for (size_t i = 0; i < bytes.size; i++) {
        const unsigned byte = (uint8_t)(negative ? ~bytes.data[i] : bytes.data[i]) + carry;
        value[i] = (uint8_t)byte;
        carry = byte >> 8;
    }
    const char *end = at;
    while (left) {
        unsigned rest = 0;
        left = false;
        for (size_t i = bytes.size; i-- > 0;) {
            rest = rest << 8 | value[i];
            value[i] = (uint8_t)(rest / 10);
            rest %= 10;
            left |= value[i] != 0;
        }
        *--at = (char)('0' + rest);
    }
    if (negative)
        *--at = '-';
    return (struct cm_str){at, (size_t)(end - at)};
}

enum cm_status cm_pickle_unescape(struct cm_arena *arena, struct cm_str in, bool is_string,
                                  struct cm_str *out, struct cm_error *err)
{
    static const char letters[] = "n\nt\tr\r\\\\'\'\"\"a\ab\bf\fv\v";
    char *text = cm_arena_alloc(arena, in.size * 2 + 1), *to = text;

    for (size_t i = 0; i < in.size; i++) {
        const char letter = in.data[i] == '\\' && i + 1 < in.size ? in.data[i + 1] : 0;
        const char *known = letters;
        const int digits = is_string       ? (letter == 'x' ? 2 : 0)
                           : letter == 'u' ? 4
                           : letter == 'U' ? 8
                                           : 0;
        uint32_t c = (uint8_t)in.data[i];

        while (letter && *known && *known != letter)
            known += 2;
        if (digits) {
            c = 0;
            i++;
            for (int k = 0; k < digits; k++, i++) {
                const int digit = i + 1 < in.size ? cm_hex_digit(in.data[i + 1]) : -1;
                if (digit < 0 || c > 0x10ffff)
                    return cm_fail(err, CM_BAD_MODEL, "an escape in a text is broken");
                c = c << 4 | (uint32_t)digit;
            }
        } else if (is_string && letter && *known) {
            c = (uint8_t)known[1];
            i++;
        }
        if (c > 0x10ffff)
            return cm_fail(err, CM_BAD_MODEL, "an escape in a text is broken");
        if (is_string)
            *to++ = (char)c;
        else
            to += cm_utf8_put(to, c);
    }
    *out = (struct cm_str){text, (size_t)(to - text)};
    return CM_OK;
}
