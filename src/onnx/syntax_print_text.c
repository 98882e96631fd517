/* The printer's pen: buffered text, names, strings and whole numbers. */
// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"
#include "onnx/syntax_lex.h"
#include "onnx/syntax_names.h"
#include "onnx/syntax_print.h"

#include <inttypes.h>

static void flush(struct cm_printer *p)
{
    if (p->status == CM_OK && p->n_pending)
        p->status = p->write(p->to, p->pending, p->n_pending, p->err);
    p->n_pending = 0;
}

void cm_put(struct cm_printer *p, const char *bytes, size_t size)
{
    while (size) {
        const size_t room = sizeof p->pending - p->n_pending;
        const size_t part = size < room ? size : room;
        memcpy(p->pending + p->n_pending, bytes, part);
        p->n_pending += part;
        bytes += part;
        size -= part;
        if (p->n_pending == sizeof p->pending)
            flush(p);
        if (p->status != CM_OK)
            return;
    }
}

enum cm_status cm_print_end(struct cm_printer *p)
{
    flush(p);
    return p->status;
}

void cm_print_fail(struct cm_printer *p, enum cm_status status, const char *format, ...)
{
    char reason[CM_ERROR_SIZE / 2];
    va_list args;

    if (p->status != CM_OK)
        return;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    p->status = cm_fail(p->err, status, "%s", reason);
}

bool cm_print_enter(struct cm_printer *p)
{
    if (p->depth >= CM_SYNTAX_DEPTH) {
        cm_print_fail(p, CM_LIMIT, "graphs or types are nested more than %d deep", CM_SYNTAX_DEPTH);
        return false;
    }
    p->depth++;
    return true;
}

void cm_put_text(struct cm_printer *p, const char *text)
{
    cm_put(p, text, strlen(text));
}

void cm_put_str(struct cm_printer *p, struct cm_str text)
{
    cm_put(p, text.data, text.size);
}

void cm_put_format(struct cm_printer *p, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    const int length = cm_vformat(text, sizeof text, format, args);
    va_end(args);
    assert(length >= 0 && (size_t)length < sizeof text);
    cm_put(p, text, (size_t)length);
}

void cm_put_spaces(struct cm_printer *p, int count)
{
    for (int i = 0; i < count; i++)
        cm_put(p, " ", 1);
}

bool cm_put_next(struct cm_printer *p, size_t i, size_t count)
{
    if (i == count || p->status != CM_OK)
        return false;
    if (i)
        cm_put(p, ", ", 2);
    return true;
}

/* Ends of lines and tabs stay: the text is read by people too. */
static size_t unprintable(struct cm_str rest)
{
    return rest.data[0] == '\n' || rest.data[0] == '\t' ? 0 : cm_str_unprintable(rest);
}

static void put_bytes(struct cm_printer *p, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char escape[8];
        snprintf(escape, sizeof escape, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
        cm_put(p, escape, 4);
    }
}

void cm_put_quoted(struct cm_printer *p, struct cm_str text)
{
    const char *const data = text.data ? text.data : "";
    size_t done = 0;

    cm_put(p, "\"", 1);
    for (size_t i = 0; i < text.size;) {
        const struct cm_str rest = {data + i, text.size - i};
        const bool quoted = data[i] == '"' || data[i] == '\\';
        const size_t hidden = p->upstream || quoted ? 0 : unprintable(rest);
        if (!quoted && !hidden) {
            const size_t length = cm_str_character(rest);
            i += length ? length : 1;
            continue;
        }
        cm_put(p, data + done, i - done);
        if (quoted)
            cm_put(p, "\\", 1);
        put_bytes(p, data + i, hidden);
        done = i + hidden;
        i += quoted ? 1 : hidden;
    }
    cm_put(p, data + done, text.size - done);
    cm_put(p, "\"", 1);
}

void cm_put_word(struct cm_printer *p, struct cm_str name)
{
    if (cm_lex_is_word(name))
        cm_put_str(p, name);
    else
        cm_put_quoted(p, name);
}

void cm_put_name(struct cm_printer *p, struct cm_str name)
{
    if (!p->upstream && cm_syntax_is_reserved(name))
        cm_put_quoted(p, name);
    else
        cm_put_word(p, name);
}

void cm_put_int64(struct cm_printer *p, int64_t value)
{
    char text[32];

    cm_put(p, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void cm_put_uint64(struct cm_printer *p, uint64_t value)
{
    char text[32];

    cm_put(p, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, value));
}
