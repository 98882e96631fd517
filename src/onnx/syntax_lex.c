/* The lexer of ONNX's text form. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_lex.h"

#include "onnx/syntax.h"

/* Character classes by hand: those of <ctype.h> follow the locale. */
static bool is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool starts_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_mark_in_word(const struct cm_lex_rules *rules, int c)
{
    const char *mark = rules->in_word;
    while (*mark && *mark != c)
        mark++;
    return *mark != 0;
}

/* The end of the word that p is in. */
static const char *past_word(const struct cm_lex_rules *rules, const char *p, const char *end)
{
    while (p < end && (starts_word(*p) || is_digit(*p) || is_mark_in_word(rules, *p)))
        p++;
    return p;
}

const struct cm_lex_rules cm_lex_onnx = {.comment = "#", .in_word = ""};

enum cm_status cm_lex_fail_at(const struct cm_lexer *lex, const char *at, enum cm_status status,
                              const char *format, ...)
{
    char reason[CM_ERROR_SIZE / 2];
    size_t line = 1, column = 1;
    va_list args;

    for (const char *p = lex->start; p < at; p++) {
        column++;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return cm_fail(lex->err, status, "line %zu, column %zu: %s", line, column, reason);
}

static bool at_comment(const struct cm_lexer *lex)
{
    const struct cm_str rest = {lex->at, (size_t)(lex->end - lex->at)};

    return *lex->at == *lex->rules->comment && cm_str_starts(rest, lex->rules->comment);
}

/* Space and comments begin with a byte before '0' in every language. */
static void skip(struct cm_lexer *lex)
{
    while (lex->at < lex->end && (unsigned char)*lex->at < '0') {
        if (is_space((unsigned char)*lex->at)) {
            lex->at++;
        } else if (at_comment(lex)) {
            const char *line_end = memchr(lex->at, '\n', (size_t)(lex->end - lex->at));
            lex->at = line_end ? line_end : lex->end;
        } else {
            return;
        }
    }
}

int cm_lex_peek(struct cm_lexer *lex)
{
    skip(lex);
    return lex->at < lex->end ? (unsigned char)*lex->at : -1;
}

enum cm_status cm_lex_expected(struct cm_lexer *lex, const char *what)
{
    const int next = cm_lex_peek(lex);

    if (next < 0)
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but the text ends", what);
    const struct cm_str word = cm_lex_peek_word(lex);
    if (word.size)
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but found '%.*s'", what,
                              (int)(word.size < 60 ? word.size : 60), word.data);
    if (next < ' ' || next > '~')
        return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but found byte 0x%02x", what,
                              (unsigned)next);
    return cm_lex_fail_at(lex, lex->at, CM_BAD_MODEL, "expected %s but found '%c'", what, next);
}

bool cm_lex_take(struct cm_lexer *lex, char mark)
{
    if (cm_lex_peek(lex) != (unsigned char)mark)
        return false;
    lex->at++;
    return true;
}

enum cm_status cm_lex_expect(struct cm_lexer *lex, char mark)
{
    const char quoted[] = {'\'', mark, '\'', 0};

    return cm_lex_take(lex, mark) ? CM_OK : cm_lex_expected(lex, quoted);
}

struct cm_str cm_lex_peek_word(struct cm_lexer *lex)
{
    if (!starts_word(cm_lex_peek(lex)))
        return CM_STR_NONE;
    const char *const end = past_word(lex->rules, lex->at, lex->end);
    return (struct cm_str){lex->at, (size_t)(end - lex->at)};
}

bool cm_lex_take_word(struct cm_lexer *lex, const char *word)
{
    const struct cm_str next = cm_lex_peek_word(lex);

    if (!cm_str_is(next, word))
        return false;
    lex->at += next.size;
    return true;
}

int cm_lex_peek_after_word(struct cm_lexer *lex)
{
    const struct cm_str word = cm_lex_peek_word(lex);
    struct cm_lexer ahead = *lex;

    ahead.at += word.size;
    return cm_lex_peek(&ahead);
}

bool cm_lex_is_word(struct cm_str text)
{
    if (text.size == 0 || !starts_word((unsigned char)text.data[0]))
        return false;
    const char *const at = text.data, *const end = at + text.size;
    return past_word(&cm_lex_onnx, at, end) == end;
}

int cm_lex_hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* What an escape stands for, at being behind its backslash; *at moves to its last byte. \x and two
 * digits is a byte, and any other character is itself. */
static char unescape(const char **at, const char *end)
{
    const char *const p = *at;

    if (*p != 'x' || end - p < 3 || cm_lex_hex_digit(p[1]) < 0 || cm_lex_hex_digit(p[2]) < 0)
        return *p;
    *at = p + 2;
    return (char)(cm_lex_hex_digit(p[1]) << 4 | cm_lex_hex_digit(p[2]));
}

enum cm_status cm_lex_string(struct cm_lexer *lex, struct cm_str *out)
{
    if (cm_lex_peek(lex) != '"')
        return cm_lex_expected(lex, "a string in quotes");
    const char *const open = lex->at++;
    const char *p = lex->at;
    size_t escapes = 0;
    while (p < lex->end && *p != '"') {
        if (*p == '\\') {
            escapes++;
            p++;
        }
        p++;
    }
    if (p >= lex->end)
        return cm_lex_fail_at(lex, open, CM_BAD_MODEL, "string without a closing quote");
    *out = (struct cm_str){lex->at, (size_t)(p - lex->at)};
    lex->at = p + 1;
    if (!escapes)
        return CM_OK;
    char *const copy = cm_arena_alloc(lex->arena, out->size - escapes + 1);
    size_t n = 0;
    for (const char *from = out->data; from < p; from++) {
        if (*from != '\\') {
            copy[n++] = *from;
            continue;
        }
        from++;
        copy[n++] = unescape(&from, p);
    }
    *out = (struct cm_str){copy, n};
    return CM_OK;
}

bool cm_lex_at_name(struct cm_lexer *lex)
{
    const int next = cm_lex_peek(lex);

    return next == '"' || starts_word(next);
}

enum cm_status cm_lex_name(struct cm_lexer *lex, const char *what, struct cm_str *out)
{
    if (cm_lex_peek(lex) == '"')
        return cm_lex_string(lex, out);
    *out = cm_lex_peek_word(lex);
    if (out->size == 0)
        return cm_lex_expected(lex, what);
    lex->at += out->size;
    return CM_OK;
}

enum cm_status cm_lex_enter(struct cm_lexer *lex)
{
    if (lex->depth >= CM_SYNTAX_DEPTH)
        return cm_lex_fail_at(lex, lex->at, CM_LIMIT, "nested more than %d deep", CM_SYNTAX_DEPTH);
    lex->depth++;
    return CM_OK;
}

bool cm_lex_is_number_word(struct cm_str word)
{
    static const char *const names[] = {"inf", "infinity", "nan"};

    for (size_t i = 0; i < CM_COUNT(names); i++) {
        size_t n = 0;
        while (n < word.size && names[i][n] && (word.data[n] | 0x20) == names[i][n])
            n++;
        if (n == word.size && !names[i][n])
            return true;
    }
    return false;
}

bool cm_lex_at_number(struct cm_lexer *lex)
{
    const int next = cm_lex_peek(lex);

    return next == '-' || is_digit(next) || cm_lex_is_number_word(cm_lex_peek_word(lex));
}

static const char *past_digits(const struct cm_lexer *lex, const char *p)
{
    while (p < lex->end && is_digit((unsigned char)*p))
        p++;
    return p;
}

/* nan(5): the bits below the exponent, for those that are not the usual ones. */
static const char *past_payload(const struct cm_lexer *lex, const char *p)
{
    if (lex->end - p < 3 || *p != '(' || !is_digit((unsigned char)p[1]))
        return p;
    const char *const digits_end = past_digits(lex, p + 1);
    return digits_end < lex->end && *digits_end == ')' ? digits_end + 1 : p;
}

enum cm_status cm_lex_number(struct cm_lexer *lex, struct cm_number_text *out)
{
    if (!cm_lex_at_number(lex))
        return cm_lex_expected(lex, "a number");
    const char *const start = lex->at;
    const char *p = start + (*start == '-');
    struct cm_lexer ahead = *lex;

    ahead.at = p;
    if (p < lex->end && starts_word((unsigned char)*p)) {
        const struct cm_str word = cm_lex_peek_word(&ahead);
        if (!cm_lex_is_number_word(word))
            return cm_lex_expected(&ahead, "a number");
        p += word.size;
        if (word.size == 3 && (word.data[0] | 0x20) == 'n')
            p = past_payload(lex, p);
        *out = (struct cm_number_text){{start, (size_t)(p - start)}, false};
        lex->at = p;
        return CM_OK;
    }
    if (p == lex->end || !is_digit((unsigned char)*p))
        return cm_lex_expected(&ahead, "digits after '-'");
    p = past_digits(lex, p);
    out->whole = true;
    if (p < lex->end && *p == '.') {
        out->whole = false;
        p = past_digits(lex, p + 1);
    }
    if (p < lex->end && (*p == 'e' || *p == 'E')) {
        out->whole = false;
        p++;
        if (p < lex->end && (*p == '+' || *p == '-'))
            p++;
        ahead.at = p;
        if (p == lex->end || !is_digit((unsigned char)*p))
            return cm_lex_expected(&ahead, "an exponent");
        p = past_digits(lex, p);
    }
    out->text = (struct cm_str){start, (size_t)(p - start)};
    lex->at = p;
    return CM_OK;
}

enum cm_status cm_lex_int64(struct cm_lexer *lex, int64_t *out)
{
    struct cm_number_text number;

    if (!cm_lex_at_number(lex))
        return cm_lex_expected(lex, "a whole number");
    CM_TRY(cm_lex_number(lex, &number));
    return cm_number_to_int64(lex, &number, INT64_MIN, INT64_MAX, "int64", out);
}
