/* Words, marks, strings and numbers of MLIR's text. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_tree.h"

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool starts_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool continues_word(int c)
{
    return starts_word(c) || is_digit(c) || c == '$' || c == '.';
}

int cm_dialect_hex_digit(int c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int cm_dialect_peek(struct cm_lexer *lex)
{
    while (lex->at < lex->end) {
        const char c = *lex->at;

        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            lex->at++;
        } else if (c == '/' && lex->end - lex->at > 1 && lex->at[1] == '/') {
            const char *const line_end = memchr(lex->at, '\n', (size_t)(lex->end - lex->at));
            lex->at = line_end ? line_end : lex->end;
        } else {
            return (unsigned char)c;
        }
    }
    return -1;
}

enum cm_status cm_dialect_expected(struct cm_lexer *lex, const char *what)
{
    const int next = cm_dialect_peek(lex);
    const struct cm_str word = cm_dialect_peek_word(lex);

    if (next < 0)
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but the text ends", what);
    if (word.size)
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but found '%.*s'", what,
                              CM_STR_FMT(word));
    if (next < ' ' || next > '~')
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but found byte 0x%02x", what,
                              (unsigned)next);
    return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but found '%c'", what, next);
}

bool cm_dialect_take(struct cm_lexer *lex, const char *mark)
{
    const size_t size = strlen(mark);

    cm_dialect_peek(lex);
    if ((size_t)(lex->end - lex->at) < size || memcmp(lex->at, mark, size) != 0)
        return false;
    lex->at += size;
    return true;
}

enum cm_status cm_dialect_expect(struct cm_lexer *lex, const char *mark)
{
    char quoted[16];

    if (cm_dialect_take(lex, mark))
        return CM_OK;
    snprintf(quoted, sizeof quoted, "'%s'", mark);
    return cm_dialect_expected(lex, quoted);
}

struct cm_str cm_dialect_peek_word(struct cm_lexer *lex)
{
    if (!starts_word(cm_dialect_peek(lex)))
        return CM_STR_NONE;
    const char *p = lex->at;
    while (p < lex->end && continues_word((unsigned char)*p))
        p++;
    return (struct cm_str){lex->at, (size_t)(p - lex->at)};
}

bool cm_dialect_take_word(struct cm_lexer *lex, const char *word)
{
    const struct cm_str next = cm_dialect_peek_word(lex);

    if (!cm_str_is(next, word))
        return false;
    lex->at += next.size;
    return true;
}

/* What the escape whose backslash is at p stands for; *size is how many bytes it takes, 0: it does
 * not exist. */
static char unescape(const char *p, const char *end, size_t *size)
{
    *size = 0;
    if (end - p < 2)
        return 0;
    *size = 2;
    switch (p[1]) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '"':
    case '\\':
        return p[1];
    default:
        break;
    }
    *size = 0;
    if (end - p < 3 || cm_dialect_hex_digit(p[1]) < 0 || cm_dialect_hex_digit(p[2]) < 0)
        return 0;
    *size = 3;
    return (char)(cm_dialect_hex_digit(p[1]) << 4 | cm_dialect_hex_digit(p[2]));
}

/* The quote that ends a string whose first byte is at p, if nothing is escaped before; weights are
 * long strings. NULL: look at every byte. */
static const char *end_of_plain(const char *p, const char *end)
{
    const char *const quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;

    return quote && !memchr(p, '\\', (size_t)(quote - p)) && !memchr(p, '\n', (size_t)(quote - p))
               ? quote
               : NULL;
}

enum cm_status cm_dialect_string(struct cm_lexer *lex, struct cm_str *out)
{
    if (cm_dialect_peek(lex) != '"')
        return cm_dialect_expected(lex, "a string in quotes");
    const char *const open = lex->at;
    const char *const plain = end_of_plain(open + 1, lex->end);
    const char *p = plain ? plain : open + 1;
    size_t escapes = 0, size;

    for (; p < lex->end && *p != '"'; p++) {
        if (*p == '\n')
            return cm_lex_fail_at(lex, open, CM_BAD_MODEL, "the line ends inside a string");
        if (*p != '\\')
            continue;
        unescape(p, lex->end, &size);
        if (!size)
            return cm_lex_fail_at(lex, p, CM_BAD_MODEL,
                                  "expected \\n, \\t, \\\", \\\\ or two hexadecimal digits after "
                                  "the backslash");
        escapes += size - 1;
        p += size - 1;
    }
    if (p >= lex->end)
        return cm_lex_fail_at(lex, open, CM_BAD_MODEL, "string without a closing quote");
    *out = (struct cm_str){open + 1, (size_t)(p - open - 1)};
    lex->at = p + 1;
    if (!escapes)
        return CM_OK;
    char *const copy = cm_arena_alloc(lex->arena, out->size - escapes + 1);
    size_t n = 0;
    for (const char *from = open + 1; from < p; n++) {
        size = 1;
        copy[n] = *from == '\\' ? unescape(from, p, &size) : *from;
        from += size;
    }
    *out = (struct cm_str){copy, n};
    return CM_OK;
}

enum cm_status cm_dialect_symbol(struct cm_lexer *lex, struct cm_str *out)
{
    if (!cm_dialect_take(lex, "@"))
        return cm_dialect_expected(lex, "a symbol such as @main_graph");
    if (lex->at < lex->end && *lex->at == '"')
        return cm_dialect_string(lex, out);
    *out = lex->at < lex->end && starts_word((unsigned char)*lex->at) ? cm_dialect_peek_word(lex)
                                                                      : CM_STR_NONE;
    if (!out->size)
        return cm_dialect_expected(lex, "a name after '@'");
    lex->at += out->size;
    return CM_OK;
}

bool cm_dialect_at_number(struct cm_lexer *lex)
{
    const int next = cm_dialect_peek(lex);

    return is_digit(next) ||
           (next == '-' && lex->end - lex->at > 1 && is_digit((unsigned char)lex->at[1]));
}

static const char *past_digits(const struct cm_lexer *lex, const char *p)
{
    while (p < lex->end && is_digit((unsigned char)*p))
        p++;
    return p;
}

enum cm_status cm_dialect_number(struct cm_lexer *lex, struct cm_number_text *out)
{
    if (!cm_dialect_at_number(lex))
        return cm_dialect_expected(lex, "a number");
    const char *const start = lex->at;
    const char *p = start + (*start == '-');

    out->whole = true;
    if (lex->end - p > 2 && p[0] == '0' && p[1] == 'x' &&
        cm_dialect_hex_digit((unsigned char)p[2]) >= 0) {
        for (p += 2; p < lex->end && cm_dialect_hex_digit((unsigned char)*p) >= 0; p++)
            ;
    } else {
        p = past_digits(lex, p);
        if (p < lex->end && *p == '.') {
            out->whole = false;
            p = past_digits(lex, p + 1);
            const char *e = p;
            if (e < lex->end && (*e == 'e' || *e == 'E')) {
                e++;
                e += e < lex->end && (*e == '+' || *e == '-');
                if (e < lex->end && is_digit((unsigned char)*e))
                    p = past_digits(lex, e);
            }
        }
    }
    out->text = (struct cm_str){start, (size_t)(p - start)};
    lex->at = p;
    return CM_OK;
}

enum cm_status cm_dialect_skip_to(struct cm_lexer *lex, char open, char close, struct cm_str *out)
{
    const char *const start = lex->at;
    size_t depth = 1;

    for (const char *p = start; p < lex->end; p++) {
        if (*p == '"') {
            const char *const plain = end_of_plain(p + 1, lex->end);
            for (p = plain ? plain : p + 1; p < lex->end && *p != '"'; p++)
                p += *p == '\\';
        } else if (*p == open) {
            depth++;
        } else if (*p == close && --depth == 0) {
            *out = (struct cm_str){start, (size_t)(p - start)};
            lex->at = p + 1;
            return CM_OK;
        }
    }
    return cm_lex_fail_at(lex, start, CM_BAD_MODEL, "'%c' is missing", close);
}
