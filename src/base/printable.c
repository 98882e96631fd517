/* Table of characters that a terminal obeys or does not show. */
// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

/* First and last of each range: controls, format characters (category Cf of Unicode 16), separators
 * of lines, fillers and variation selectors. */
static const uint32_t hidden[][2] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
    {0x0600, 0x0605},   {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},
    {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

size_t cm_str_unprintable(struct cm_str rest)
{
    const unsigned char *bytes = (const unsigned char *)rest.data;
    const size_t length = cm_str_character(rest);
    uint32_t code = length > 1 ? bytes[0] & (0x7fu >> length) : bytes[0];

    if (length == 0)
        return 1;
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (bytes[i] & 0x3fu);
    for (size_t i = 0; i < CM_COUNT(hidden) && code >= hidden[i][0]; i++)
        if (code <= hidden[i][1])
            return length;
    return 0;
}

static bool is_plain(char c)
{
    return (c >= ' ' && c < 127) || c == '\n' || c == '\t';
}

void cm_make_printable(char *text, size_t size)
{
    const size_t length = strlen(text);
    size_t at = 0, to = 0;
    char copy[2048];

    while (is_plain(text[at]))
        at++;
    if (!text[at])
        return;
    for (at = 0; at < length;) {
        const struct cm_str rest = {text + at, length - at};
        const size_t n = is_plain(text[at]) ? 0 : cm_str_unprintable(rest);
        const size_t step = n ? n : cm_str_character(rest);
        const size_t wide = n ? 4 * n : step;

        if (to + wide >= size || to + wide >= sizeof copy)
            break;
        for (size_t i = 0; i < n; i++)
            snprintf(copy + to + 4 * i, 5, "\\x%02x", (unsigned)(unsigned char)text[at + i]);
        if (!n)
            memcpy(copy + to, text + at, step);
        at += step;
        to += wide;
    }
    memcpy(text, copy, to);
    text[to] = 0;
}
