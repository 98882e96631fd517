/* The one place where texts of a model become text of a program. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

enum { IDENTIFIER_MAX = 60, COMMENT_MAX = 200 };

static const char *const keywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield",
};

const char *const cm_code_builtins[] = {"match", "case", "type", "print", "self", NULL};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool cm_code_is_identifier(struct cm_str text)
{
    if (!text.size || text.size > IDENTIFIER_MAX || !is_letter(text.data[0]))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!is_letter(text.data[i]) && !is_digit(text.data[i]))
            return false;
    return !(text.size > 1 && text.data[0] == '_' && text.data[1] == '_') &&
           !CM_STR_AMONG(text, keywords);
}

bool cm_code_is_number(struct cm_str text)
{
    if (!text.size || text.size > 6 || (text.size > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!is_digit(text.data[i]))
            return false;
    return true;
}

struct cm_str cm_code_identifier(struct cm_arena *arena, struct cm_str text)
{
    char out[IDENTIFIER_MAX + 4];
    size_t size = 0;

    for (size_t i = 0; i < text.size && size < IDENTIFIER_MAX; i++) {
        const char c = text.data[i];
        const bool fits = is_letter(c) || is_digit(c);

        if (!size && is_digit(c))
            out[size++] = '_';
        if (fits && !(c == '_' && size == 1 && out[0] == '_'))
            out[size++] = c;
        else if (!fits && size && out[size - 1] != '_')
            out[size++] = '_';
    }
    while (size > 1 && out[size - 1] == '_')
        size--;
    if (!size || (size == 1 && out[0] == '_')) {
        out[0] = 'x';
        size = 1;
    }
    const struct cm_str made = {out, size};
    if (CM_STR_AMONG(made, keywords))
        out[size++] = '_';
    return cm_arena_str(arena, (struct cm_str){out, size});
}

struct cm_str cm_code_string(struct cm_arena *arena, struct cm_str text, bool is_bytes)
{
    static const char hex[] = "0123456789abcdef";
    char *out = CM_NEW_ARRAY(arena, char, text.size * 10 + 4);
    size_t at = 0;

    if (is_bytes)
        out[at++] = 'b';
    out[at++] = '"';
    for (size_t i = 0; i < text.size;) {
        const unsigned char c = (unsigned char)text.data[i];
        const struct cm_str rest = {text.data + i, text.size - i};
        const size_t size = c < 0x80 ? 1 : cm_str_character(rest);
        uint32_t code = c;

        if (c == '"' || c == '\\') {
            out[at++] = '\\';
            out[at++] = (char)c;
            i++;
            continue;
        }
        if (c >= 0x20 && c < 0x7f) {
            out[at++] = (char)c;
            i++;
            continue;
        }
        if (size > 1 && !is_bytes) {
            code = c & (0xffu >> (size + 1));
            for (size_t k = 1; k < size; k++)
                code = code << 6 | ((unsigned char)text.data[i + k] & 0x3f);
        }
        const bool is_wide = code > 0xff;
        const int digits = is_wide ? 8 : 2;
        out[at++] = '\\';
        out[at++] = is_wide ? 'U' : 'x';
        for (int d = digits - 1; d >= 0; d--)
            out[at++] = hex[code >> (4 * d) & 15];
        i += size > 1 && !is_bytes ? size : 1;
    }
    out[at++] = '"';
    return (struct cm_str){out, at};
}

struct cm_str cm_code_float(struct cm_arena *arena, double value, bool is_single)
{
    char text[64];

    if (isnan(value))
        return CM_STR("float(\"nan\")");
    if (isinf(value))
        return value < 0 ? CM_STR("float(\"-inf\")") : CM_STR("float(\"inf\")");
    /* The shortest text that reads back as the same number. */
    for (int digits = 1; digits <= 17; digits++) {
        double back = 0;

        cm_format(text, sizeof text, "%.*g", digits, value);
        if (!cm_str_to_double(cm_str(text), &back))
            continue;
        /* PyTorch refuses what is beyond the largest float, although it would be rounded to it. */
        if (is_single ? (float)back == (float)value && fabs(back) <= (double)FLT_MAX
                      : back == value)
            break;
    }
    char *plus = strchr(text, '+');
    if (plus) /* formatters of Python write 1e38 */
        memmove(plus, plus + 1, strlen(plus));
    if (!strpbrk(text, ".e"))
        return cm_arena_printf(arena, "%s.0", text);
    return cm_arena_printf(arena, "%s", text);
}

struct cm_str cm_code_element(struct cm_arena *arena, const struct cm_tensor *tensor, int64_t i)
{
    const enum cm_dtype_class kind = cm_dtype_info(tensor->type)->kind;

    if (tensor->type == CM_STRING)
        return cm_code_string(arena, ((const struct cm_str *)tensor->data)[i], false);
    if (kind == CM_CLASS_BOOL)
        return cm_tensor_int(tensor, i) ? CM_STR("True") : CM_STR("False");
    if (kind == CM_CLASS_FLOAT)
        return cm_code_float(arena, cm_tensor_real(tensor, i), tensor->type != CM_DOUBLE);
    if (kind == CM_CLASS_COMPLEX) {
        const bool is_single = tensor->type == CM_COMPLEX64;
        const double re = is_single ? (double)((const float *)tensor->data)[2 * i]
                                    : ((const double *)tensor->data)[2 * i];
        const double im = is_single ? (double)((const float *)tensor->data)[2 * i + 1]
                                    : ((const double *)tensor->data)[2 * i + 1];
        const struct cm_str a = cm_code_float(arena, re, is_single),
                            b = cm_code_float(arena, im, is_single);
        return cm_arena_printf(arena, "complex(%.*s, %.*s)", CM_STR_FMT(a), CM_STR_FMT(b));
    }
    if (tensor->type == CM_UINT64)
        return cm_arena_printf(arena, "%llu",
                               (unsigned long long)(uint64_t)cm_tensor_int(tensor, i));
    const int64_t number = cm_tensor_int(tensor, i);
    if (number == INT64_MIN)
        return CM_STR("-(2**63)");
    return cm_arena_printf(arena, "%lld", (long long)number);
}

struct list_text {
    CM_ARRAY(char);
};

static void put(struct cm_arena *arena, struct list_text *out, struct cm_str text)
{
    CM_PUSH_ALL(arena, out, text.data, text.size);
}

static void put_axis(struct cm_arena *arena, struct list_text *out, const struct cm_tensor *tensor,
                     int axis, int64_t *next)
{
    if (axis == tensor->shape.rank) {
        put(arena, out, cm_code_element(arena, tensor, (*next)++));
        return;
    }
    put(arena, out, CM_STR("["));
    for (int64_t i = 0; i < tensor->shape.dims[axis]; i++) {
        if (i)
            put(arena, out, CM_STR(", "));
        put_axis(arena, out, tensor, axis + 1, next);
    }
    put(arena, out, CM_STR("]"));
}

struct cm_str cm_code_nested(struct cm_arena *arena, const struct cm_tensor *tensor)
{
    struct list_text out = {0};
    int64_t next = 0;

    put_axis(arena, &out, tensor, 0, &next);
    return (struct cm_str){out.items, out.count};
}

struct cm_str cm_code_comment(struct cm_arena *arena, struct cm_str text)
{
    char out[COMMENT_MAX];
    size_t size = 0;

    for (size_t i = 0; i < text.size && size < sizeof out; i++) {
        const char c = text.data[i];
        out[size++] = c >= 0x20 && c < 0x7f && c != '"' && c != '\\' ? c : '?';
    }
    return cm_arena_str(arena, (struct cm_str){out, size});
}
