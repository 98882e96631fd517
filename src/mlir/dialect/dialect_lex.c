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

const struct cm_lex_rules cm_dialect_lex = {.comment = "//", .in_word = "$."};

bool cm_dialect_take(struct cm_lexer *lex, const char *mark)
{
    const size_t size = strlen(mark);

    cm_lex_peek(lex);
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
    return cm_lex_expected(lex, quoted);
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
    if (end - p < 3 || cm_lex_hex_digit(p[1]) < 0 || cm_lex_hex_digit(p[2]) < 0)
        return 0;
    *size = 3;
    return (char)(cm_lex_hex_digit(p[1]) << 4 | cm_lex_hex_digit(p[2]));
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
    if (cm_lex_peek(lex) != '"')
        return cm_lex_expected(lex, "a string in quotes");
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
        return cm_lex_expected(lex, "a symbol such as @main_graph");
    if (lex->at < lex->end && *lex->at == '"')
        return cm_dialect_string(lex, out);
    *out = lex->at < lex->end && starts_word((unsigned char)*lex->at) ? cm_lex_peek_word(lex)
                                                                      : CM_STR_NONE;
    if (!out->size)
        return cm_lex_expected(lex, "a name after '@'");
    lex->at += out->size;
    return CM_OK;
}

bool cm_dialect_at_number(struct cm_lexer *lex)
{
    const int next = cm_lex_peek(lex);

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
        return cm_lex_expected(lex, "a number");
    const char *const start = lex->at;
    const char *p = start + (*start == '-');

    out->whole = true;
    if (lex->end - p > 2 && p[0] == '0' && p[1] == 'x' &&
        cm_lex_hex_digit((unsigned char)p[2]) >= 0) {
        for (p += 2; p < lex->end && cm_lex_hex_digit((unsigned char)*p) >= 0; p++)
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
