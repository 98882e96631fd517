/* What a generator needs to read text files line by line and word by word: errors that name file
 * and line and end the program, words, numbers, growing text. For tools only, hence all of it
 * inline. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TOOLS_GEN_READER_H
#define CM_TOOLS_GEN_READER_H

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *data; /* always ends with a NUL that is not counted */
    size_t size, room;
};

/* Where the parser is: errors name the file and line, and the rest of the line is at `at`. */
struct reader {
    const char *path;
    size_t line;
    const char *at;
};

static inline void die(const struct reader *r, const char *format, ...)
{
    va_list args;

    if (r && r->line)
        fprintf(stderr, "%s:%zu: ", r->path, r->line);
    else
        fprintf(stderr, "%s: ", r ? r->path : "gen_schema");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static inline void *grow(void *block, size_t size)
{
    void *const grown = realloc(block, size);

    if (!grown)
        die(NULL, "out of memory");
    return grown;
}

static inline void text_add(struct text *text, const char *bytes, size_t size)
{
    if (text->size + size + 1 > text->room) {
        text->room = (text->size + size + 1) * 2;
        text->data = grow(text->data, text->room);
    }
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

static inline void text_print(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size < 0)
        die(NULL, "cannot format text");
    char *const piece = grow(NULL, (size_t)size + 1);
    va_start(args, format);
    vsnprintf(piece, (size_t)size + 1, format, args);
    va_end(args);
    text_add(text, piece, (size_t)size);
    free(piece);
}

static inline char *copy(const char *bytes, size_t size)
{
    char *const out = grow(NULL, size + 1);

    memcpy(out, bytes, size);
    out[size] = '\0';
    return out;
}

static inline void skip_spaces(struct reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static inline bool at_end(struct reader *r)
{
    skip_spaces(r);
    return *r->at == '\0';
}

static inline bool accept(struct reader *r, char c)
{
    skip_spaces(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static inline void expect(struct reader *r, char c)
{
    if (!accept(r, c))
        die(r, "expected '%c' before '%.40s'", c, r->at);
}

static inline void expect_end(struct reader *r)
{
    if (!at_end(r))
        die(r, "nothing may follow, found '%.40s'", r->at);
}

/* Letters, digits, underscore, dot; the caller frees it or keeps it. */
static inline char *word(struct reader *r)
{
    skip_spaces(r);
    const char *const start = r->at;

    while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.')
        r->at++;
    if (r->at == start)
        die(r, "expected a word before '%.40s'", start);
    return copy(start, (size_t)(r->at - start));
}

static inline bool accept_word(struct reader *r, const char *wanted)
{
    const size_t size = strlen(wanted);

    skip_spaces(r);
    if (strncmp(r->at, wanted, size) != 0 || (r->at[size] != ' ' && r->at[size] != '\0'))
        return false;
    r->at += size;
    return true;
}

static inline long long integer(struct reader *r, long long least, long long most)
{
    char *end;

    skip_spaces(r);
    errno = 0;
    const long long value = strtoll(r->at, &end, 10);
    if (end == r->at || errno || value < least || value > most)
        die(r, "expected a number from %lld to %lld before '%.40s'", least, most, r->at);
    r->at = end;
    return value;
}

#endif
