/* JSON, read strictly. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/json_read.h"

void cm_json_init(struct cm_json *json, struct cm_arena *arena, struct cm_str text,
                  struct cm_error *err)
{
    const char *begin = text.data ? text.data : ""; /* an empty file has no memory */

    *json = (struct cm_json){arena, begin, begin, begin + text.size, err};
}

static enum cm_status broken(const struct cm_json *json, const char *what)
{
    return cm_fail(json->err, CM_BAD_MODEL, "its JSON %s at byte %zu", what,
                   (size_t)(json->at - json->begin));
}

static void skip_blanks(struct cm_json *json)
{
    while (json->at < json->end && memchr(" \t\n\r", *json->at, 4))
        json->at++;
}

static bool take(struct cm_json *json, char wanted)
{
    skip_blanks(json);
    if (json->at == json->end || *json->at != wanted)
        return false;
    json->at++;
    return true;
}

enum cm_status cm_json_open(struct cm_json *json, char bracket)
{
    if (take(json, bracket))
        return CM_OK;
    return broken(json, bracket == '{' ? "lacks an object" : "lacks a list");
}

enum cm_status cm_json_more(struct cm_json *json, char closing, bool first, bool *more)
{
    *more = false;
    if (take(json, closing))
        return CM_OK;
    if (!first && !take(json, ','))
        return broken(json, "lacks a comma or an end");
    *more = true;
    return CM_OK;
}

static bool hex4(const char *at, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = cm_hex_digit(at[i]);

        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* \uXXXX, two of them for characters past 16 bits; at is behind the 'u'. */
static enum cm_status unicode_escape(struct cm_json *json, uint32_t *code)
{
    uint32_t low = 0;

    if (json->end - json->at < 4 || !hex4(json->at, code))
        return broken(json, "has a broken escape");
    json->at += 4;
    if (*code < 0xd800 || *code >= 0xe000)
        return CM_OK;
    if (*code >= 0xdc00 || json->end - json->at < 6 || json->at[0] != '\\' || json->at[1] != 'u' ||
        !hex4(json->at + 2, &low) || low < 0xdc00 || low >= 0xe000)
        return broken(json, "has half a character");
    json->at += 6;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return CM_OK;
}

static enum cm_status escape(struct cm_json *json, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    uint32_t code = 0;

    if (json->at == json->end)
        return broken(json, "ends in an escape");
    const char c = *json->at++;
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        *(*to)++ = into[found - from];
        return CM_OK;
    }
    if (c != 'u')
        return broken(json, "has an unknown escape");
    CM_TRY(unicode_escape(json, &code));
    *to += cm_utf8_put(*to, code);
    return CM_OK;
}

enum cm_status cm_json_string(struct cm_json *json, struct cm_str *out)
{
    if (!take(json, '"'))
        return broken(json, "lacks a string");
    const char *begin = json->at;
    while (json->at < json->end && *json->at != '"' && *json->at != '\\' &&
           (unsigned char)*json->at >= 32)
        json->at++;
    if (json->at == json->end || (unsigned char)*json->at < 32)
        return broken(json, "has a string without an end");
    *out = (struct cm_str){begin, (size_t)(json->at - begin)};
    if (*json->at == '\\') { /* what an escape stands for is never longer than it */
        const char *end = json->at;
        while (end < json->end && *end != '"')
            end += *end == '\\' && end + 1 < json->end ? 2 : 1;
        char *room = cm_arena_alloc(json->arena, (size_t)(end - begin) + 1), *to = room;
        memcpy(to, begin, out->size);
        to += out->size;
        while (json->at < json->end && *json->at != '"') {
            if ((unsigned char)*json->at < 32)
                return broken(json, "has a string without an end");
            if (*json->at != '\\') {
                *to++ = *json->at++;
                continue;
            }
            json->at++;
            CM_TRY(escape(json, &to));
        }
        if (json->at == json->end)
            return broken(json, "has a string without an end");
        *out = (struct cm_str){room, (size_t)(to - room)};
    }
    json->at++;
    return cm_str_is_utf8(*out) ? CM_OK : broken(json, "has a string that is not UTF-8");
}

enum cm_status cm_json_key(struct cm_json *json, struct cm_str *out)
{
    CM_TRY(cm_json_string(json, out));
    return take(json, ':') ? CM_OK : broken(json, "lacks a colon");
}

enum cm_status cm_json_count(struct cm_json *json, uint64_t *out)
{
    skip_blanks(json);
    const char *begin = json->at;
    *out = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++) {
        const uint64_t digit = (uint64_t)(*json->at - '0');
        if (*out > (UINT64_MAX - digit) / 10)
            return broken(json, "has a number that is too large");
        *out = *out * 10 + digit;
    }
    if (json->at == begin || (json->at - begin > 1 && *begin == '0'))
        return broken(json, "lacks a whole number");
    return CM_OK;
}

enum cm_status cm_json_end(struct cm_json *json)
{
    skip_blanks(json);
    return json->at == json->end ? CM_OK : broken(json, "goes on after its end");
}

struct cm_str cm_json_quote(struct cm_arena *arena, struct cm_str text)
{
    char *room = cm_arena_alloc_array(arena, text.size + 1, 6), *to = room;

    *to++ = '"';
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\')
            *to++ = '\\';
        if (c >= 32) {
            *to++ = (char)c;
            continue;
        }
        to += snprintf(to, 7, "\\u%04x", c);
    }
    *to++ = '"';
    return (struct cm_str){room, (size_t)(to - room)};
}
