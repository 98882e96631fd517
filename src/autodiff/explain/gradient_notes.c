/* Reads the packed facts about gradients. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/explain/gradient_notes.h"

#include <string.h>

static char *unpack(unsigned char byte, char *out)
{
    if (byte < 128) {
        *out = (char)byte;
        return out + 1;
    }
    out = unpack(cm_gradient_pairs[byte - 128][0], out);
    return unpack(cm_gradient_pairs[byte - 128][1], out);
}

static size_t unpacked_size(unsigned char byte)
{
    return byte < 128 ? 1
                      : unpacked_size(cm_gradient_pairs[byte - 128][0]) +
                            unpacked_size(cm_gradient_pairs[byte - 128][1]);
}

static struct cm_str all_notes(struct cm_arena *arena)
{
    size_t size = 0;

    for (size_t i = 0; i < cm_gradient_notes_size; i++)
        size += unpacked_size(cm_gradient_notes[i]);
    char *text = cm_arena_alloc(arena, size + 1), *end = text;
    for (size_t i = 0; i < cm_gradient_notes_size; i++)
        end = unpack(cm_gradient_notes[i], end);
    return (struct cm_str){text, size};
}

/* The text up to a mark, which goes too. */
static struct cm_str cut(struct cm_str *text, char mark)
{
    const char *found = text->size ? memchr(text->data, mark, text->size) : NULL;
    const size_t size = found ? (size_t)(found - text->data) : text->size;
    const struct cm_str part = {text->data, size};

    text->data += size + (found != NULL);
    text->size -= size + (found != NULL);
    return part;
}

static bool names(struct cm_str head, struct cm_str name)
{
    while (head.size)
        if (cm_str_equal(cut(&head, ' '), name))
            return true;
    return false;
}

/* A line "@domain" is before the entries of a domain, an empty one after each entry. */
struct cm_str cm_gradient_entry(struct cm_arena *arena, struct cm_str domain, struct cm_str name)
{
    struct cm_str rest = all_notes(arena);
    bool here = false;

    while (rest.size) {
        const struct cm_str line = cut(&rest, '\n');
        if (cm_str_starts(line, "@")) {
            here = cm_str_equal((struct cm_str){line.data + 1, line.size - 1}, domain);
            continue;
        }
        const char *from = rest.data;
        while (rest.size && cut(&rest, '\n').size)
            ;
        if (here && names(line, name))
            return (struct cm_str){from, (size_t)(rest.data - from)};
    }
    return CM_STR_NONE;
}

bool cm_gradient_line(struct cm_str *lines, const char *keyword, struct cm_str *out)
{
    const size_t size = strlen(keyword);

    while (lines->size) {
        struct cm_str line = cut(lines, '\n');
        if (line.size >= size && memcmp(line.data, keyword, size) == 0 &&
            (line.size == size || line.data[size] == ' ')) {
            const size_t skip = size + (line.size > size);
            *out = (struct cm_str){line.data + skip, line.size - skip};
            return true;
        }
    }
    return false;
}
