/* Text that came from files, with stand-ins for what a terminal would act on. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

size_t cli_utf8_length(const unsigned char *data, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = data[0];
    const size_t length = first < 0x80             ? 1
                          : (first & 0xe0) == 0xc0 ? 2
                          : (first & 0xf0) == 0xe0 ? 3
                          : (first & 0xf8) == 0xf0 ? 4
                                                   : 0;

    if (length == 0 || length > size)
        return 0;
    uint32_t code = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((data[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (data[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return length;
}

/* One character, or a stand-in for its first byte, into room; advances *at and returns the columns.
 * The other bytes of a character alone are no UTF-8, so each of them gets a stand-in too. */
static size_t spell(char room[8], const unsigned char *data, size_t size, size_t *at,
                    size_t *written)
{
    const unsigned char *here = data + *at;
    const struct cameo_text rest = {(const char *)here, size - *at};

    if (!cameo_text_unprintable(rest)) {
        const size_t length = cli_utf8_length(here, size - *at);

        memcpy(room, here, length);
        *at += length;
        *written = length;
        return 1;
    }
    *at += 1;
    if (here[0] == '\n' || here[0] == '\t') {
        memcpy(room, here[0] == '\n' ? "\\n" : "\\t", 2);
        *written = 2;
    } else {
        snprintf(room, 8, "\\x%02x", here[0]);
        *written = 4;
    }
    return *written;
}

/* In pieces: standard error has no buffer, and a write for each character would be slow. */
size_t cli_put_text(FILE *to, const char *data, size_t size)
{
    char piece[512];
    size_t used = 0, columns = 0;

    for (size_t at = 0; at < size;) {
        size_t written;

        columns += spell(piece + used, (const unsigned char *)data, size, &at, &written);
        used += written;
        if (used <= sizeof piece - 8 && at < size)
            continue;
        if (to)
            fwrite(piece, 1, used, to);
        used = 0;
    }
    return columns;
}

void cli_put_line(FILE *to, struct cameo_text text)
{
    cli_put_text(to, text.data, text.size);
    fputc('\n', to);
}

void cli_put_lines(FILE *to, const char *data, size_t size)
{
    for (size_t begin = 0, at = 0; at <= size; at++) {
        if (at < size && data[at] != '\n' && data[at] != '\t')
            continue;
        cli_put_text(to, data + begin, at - begin);
        if (at < size)
            fputc(data[at], to);
        begin = at + 1;
    }
}

size_t cli_text_width(struct cameo_text text)
{
    return cli_put_text(NULL, text.data, text.size);
}

void cli_put_padded(FILE *to, struct cameo_text text, size_t width)
{
    for (size_t columns = cli_put_text(to, text.data, text.size); columns < width; columns++)
        fputc(' ', to);
}

void cli_put_short(FILE *to, struct cameo_text text, size_t limit)
{
    const bool cut = cli_text_width(text) > limit;
    size_t columns = 0, at = 0;

    while (at < text.size && (!cut || columns + 3 < limit)) {
        char room[8];
        size_t written;

        columns += spell(room, (const unsigned char *)text.data, text.size, &at, &written);
        fwrite(room, 1, written, to);
    }
    if (cut)
        fputs("...", to);
}
