/* A growing text of C. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/glue_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char *make_room(struct cm_glue_text *text, size_t size)
{
    if (text->room - text->size <= size) {
        const size_t room = (text->size + size + 1) * 2;
        char *grown = cm_arena_alloc(text->arena, room);

        if (text->size)
            memcpy(grown, text->data, text->size);
        text->data = grown;
        text->room = room;
    }
    return text->data + text->size;
}

static void put_bytes(struct cm_glue_text *text, const char *bytes, size_t size)
{
    if (size)
        memcpy(make_room(text, size), bytes, size);
    text->size += size;
}

void cm_glue_put_bytes(struct cm_glue_text *text, struct cm_str bytes)
{
    put_bytes(text, bytes.data, bytes.size);
}

void cm_glue_put(struct cm_glue_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size <= 0)
        return;
    char *to = make_room(text, (size_t)size + 1);
    va_start(args, format);
    vsnprintf(to, (size_t)size + 1, format, args);
    va_end(args);
    text->size += (size_t)size;
}

void cm_glue_put_literal(struct cm_glue_text *text, struct cm_str value)
{
    put_bytes(text, "\"", 1);
    for (size_t i = 0; i < value.size; i++) {
        const unsigned char c = (unsigned char)value.data[i];

        if (c < 32 || c > 126 || c == '"' || c == '\\' || c == '?')
            cm_glue_put(text, "\\%03o", c);
        else
            put_bytes(text, (const char *)&c, 1);
    }
    put_bytes(text, "\"", 1);
}

void cm_glue_put_comment(struct cm_glue_text *text, struct cm_str value)
{
    for (size_t i = 0; i < value.size && i < 200; i++) {
        const unsigned char c = (unsigned char)value.data[i];
        const bool ends = c == '*' && i + 1 < value.size && value.data[i + 1] == '/';
        const bool begins = c == '/' && i + 1 < value.size && value.data[i + 1] == '*';

        put_bytes(text, c < 32 || c == 127 || c == '\\' || ends || begins ? "?" : (const char *)&c,
                  1);
    }
}

void cm_glue_put_source(struct cm_glue_text *text, const char *name)
{
    const struct cm_mlir_source *source = cm_mlir_source_find(name);

    if (source)
        put_bytes(text, source->text, source->size);
    put_bytes(text, "\n", 1);
}
