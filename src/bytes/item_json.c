/* Items as JSON and back. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/item.h"

#include "bytes/byte_buffer.h"
#include "bytes/json_read.h"
#include "bytes/saved_tensor.h"

#include <math.h>

/* ---- printing ---- */

struct printer {
    struct cm_arena *scratch; /* holds a piece of text until it is put */
    struct cm_bytes text;
    size_t most, visited;
};

enum { PRINT_MAX = 256 << 20, KEY_MAX = 200, CUT_MIN = 40 };

static bool is_full(const struct printer *p)
{
    return p->text.count >= p->most || p->visited > CM_ITEM_WALK_MAX;
}

static void put(struct printer *p, struct cm_str text)
{
    cm_bytes_text(&p->text, text);
    cm_arena_reset(p->scratch);
}

static void put_quoted(struct printer *p, struct cm_str text)
{
    const size_t left = p->most - p->text.count;

    if (text.size > left) { /* it will be cut anyway */
        text.size = left;
        while (text.size && ((unsigned char)text.data[text.size] & 0xc0) == 0x80)
            text.size--;
    }
    if (!cm_str_is_utf8(text))
        text = cm_arena_printf(p->scratch, "(%zu bytes)", text.size);
    put(p, cm_json_quote(p->scratch, text));
}

static void print(struct printer *p, const struct cm_item *item, int depth);

/* The text from begin on, cut after `most` bytes where there are clearly more. */
static struct cm_str cut(struct printer *p, size_t begin, size_t most)
{
    size_t size = p->text.count - begin;

    put(p, CM_STR("\0"));
    char *text = p->text.items + begin;
    if (size > most + CUT_MIN) {
        size = most;
        while (size && ((unsigned char)text[size] & 0xc0) == 0x80)
            size--;
        memcpy(text + size, "...", 4);
        size += 3;
    }
    return (struct cm_str){text, size};
}

/* Prints the key after the text so far, cuts it and puts it there as one text. A key that is no
 * text may hold the map that it is a key of, so it counts towards the same depth and the same
 * walk. */
static void print_key(struct printer *p, const struct cm_item *key, int depth)
{
    const size_t begin = p->text.count, most = p->most;
    char text[KEY_MAX + CUT_MIN + 1];

    if (key && key->kind == CM_ITEM_TEXT) {
        put_quoted(p, key->text);
    } else {
        p->most = begin + KEY_MAX;
        print(p, key, depth + 1);
        p->most = most;
        const struct cm_str printed = cut(p, begin, KEY_MAX);
        memcpy(text, printed.data, printed.size);
        p->text.count = begin;
        put_quoted(p, (struct cm_str){text, printed.size});
    }
    put(p, CM_STR(": "));
}

static void print_entries(struct printer *p, const struct cm_item *item, bool keys, int depth)
{
    put(p, keys ? CM_STR("{") : CM_STR("["));
    for (size_t i = 0; i < item->entries.count && !is_full(p); i++) {
        if (i)
            put(p, CM_STR(", "));
        if (keys)
            print_key(p, item->entries.items[i].key, depth);
        print(p, item->entries.items[i].value, depth + 1);
    }
    put(p, keys ? CM_STR("}") : CM_STR("]"));
}

static void print_real(struct printer *p, double real)
{
    if (isfinite(real)) {
        /* The shortest that reads back the same. */
        for (int digits = 1; digits <= 17; digits++) {
            const struct cm_str text = cm_arena_printf(p->scratch, "%.*g", digits, real);
            double back;
            if (digits == 17 || (cm_str_to_double(text, &back) && back == real)) {
                const bool whole =
                    !memchr(text.data, '.', text.size) && !memchr(text.data, 'e', text.size);
                put(p, text);
                put(p, whole ? CM_STR(".0") : CM_STR(""));
                return;
            }
        }
    }
    put(p, isnan(real) ? CM_STR("NaN") : real > 0 ? CM_STR("Infinity") : CM_STR("-Infinity"));
}

static void print_tensor(struct printer *p, const struct cm_saved_tensor *tensor)
{
    put(p, cm_arena_printf(p->scratch, "{\"tensor\": \"%s\", \"shape\": [",
                           cm_dtype_name(tensor->dtype)));
    for (int i = 0; i < tensor->shape.rank; i++)
        put(p,
            cm_arena_printf(p->scratch, "%s%lld", i ? ", " : "", (long long)tensor->shape.dims[i]));
    put(p, CM_STR("]}"));
}

static void print_object(struct printer *p, const struct cm_item *item, int depth)
{
    put(p, CM_STR("{\"class\": "));
    put_quoted(p, item->text);
    if (item->entries.count) {
        put(p, CM_STR(", \"called with\": "));
        print_entries(p, item, false, depth);
    }
    if (item->state) {
        put(p, CM_STR(", \"state\": "));
        print(p, item->state, depth + 1);
    }
    put(p, CM_STR("}"));
}

static void print(struct printer *p, const struct cm_item *item, int depth)
{
    p->visited++;
    if (depth > CM_ITEM_DEPTH_MAX || is_full(p)) {
        put(p, CM_STR("\"...\""));
        return;
    }
    switch (item ? item->kind : CM_ITEM_NONE) {
    case CM_ITEM_NONE:
        put(p, CM_STR("null"));
        break;
    case CM_ITEM_BOOL:
        put(p, item->truth ? CM_STR("true") : CM_STR("false"));
        break;
    case CM_ITEM_INT:
        put(p, cm_arena_printf(p->scratch, "%lld", (long long)item->number));
        break;
    case CM_ITEM_REAL:
        print_real(p, item->real);
        break;
    case CM_ITEM_TEXT:
        put_quoted(p, item->text);
        break;
    case CM_ITEM_BYTES:
        put(p, cm_arena_printf(p->scratch, "{\"bytes\": %zu}", item->text.size));
        break;
    case CM_ITEM_LIST:
    case CM_ITEM_MAP:
        print_entries(p, item, item->kind == CM_ITEM_MAP, depth);
        break;
    case CM_ITEM_TENSOR:
        print_tensor(p, item->tensor);
        break;
    case CM_ITEM_OBJECT:
        print_object(p, item, depth);
        break;
    }
}

struct cm_str cm_item_json(struct cm_arena *arena, const struct cm_item *item, size_t most)
{
    struct cm_arena scratch;
    struct printer p = {.scratch = &scratch, .text.arena = arena, .most = most ? most : PRINT_MAX};

    cm_arena_init(&scratch, arena->guard);
    print(&p, item, 0);
    const struct cm_str text = cut(&p, 0, p.most);
    cm_arena_release(&scratch);
    return text;
}

/* ---- reading ---- */

static enum cm_status read_value(struct cm_json *json, int depth, struct cm_item **out);

static char next_byte(struct cm_json *json)
{
    while (json->at < json->end && memchr(" \t\n\r", *json->at, 4))
        json->at++;
    return json->at < json->end ? *json->at : '\0';
}

static enum cm_status read_entries(struct cm_json *json, int depth, struct cm_item *item)
{
    const bool keys = item->kind == CM_ITEM_MAP;
    bool more;

    if (depth >= CM_ITEM_DEPTH_MAX)
        return cm_fail(json->err, CM_LIMIT, "its JSON is nested deeper than %d", CM_ITEM_DEPTH_MAX);
    CM_TRY(cm_json_open(json, keys ? '{' : '['));
    for (bool first = true;; first = false) {
        struct cm_str key;
        struct cm_item *value;

        CM_TRY(cm_json_more(json, keys ? '}' : ']', first, &more));
        if (!more)
            return CM_OK;
        if (keys)
            CM_TRY(cm_json_key(json, &key));
        CM_TRY(read_value(json, depth + 1, &value));
        cm_item_set(json->arena, item, keys ? cm_item_text(json->arena, key) : NULL, value);
    }
}

static const struct {
    const char *word;
    struct cm_item item;
} words[] = {
    {"null", {.kind = CM_ITEM_NONE}},
    {"true", {.kind = CM_ITEM_BOOL, .truth = true}},
    {"false", {.kind = CM_ITEM_BOOL}},
    {"NaN", {.kind = CM_ITEM_REAL, .real = NAN}},
    {"Infinity", {.kind = CM_ITEM_REAL, .real = INFINITY}},
    {"-Infinity", {.kind = CM_ITEM_REAL, .real = -INFINITY}},
};

/* A word or a number. */
static enum cm_status read_plain(struct cm_json *json, struct cm_item *item)
{
    const char *begin = json->at;

    while (json->at < json->end &&
           (memchr("+-.", *json->at, 3) || (*json->at >= '0' && *json->at <= '9') ||
            (*json->at >= 'a' && *json->at <= 'z') || (*json->at >= 'A' && *json->at <= 'Z')))
        json->at++;
    const struct cm_str text = {begin, (size_t)(json->at - begin)};
    for (size_t i = 0; i < CM_COUNT(words); i++)
        if (cm_str_is(text, words[i].word)) {
            *item = words[i].item;
            return CM_OK;
        }
    item->kind = CM_ITEM_INT;
    if (cm_str_to_int64(text, &item->number))
        return CM_OK;
    item->kind = CM_ITEM_REAL;
    if (text.size && (*begin == '-' || (*begin >= '0' && *begin <= '9')) &&
        cm_str_to_double(text, &item->real))
        return CM_OK;
    return cm_fail(json->err, CM_BAD_MODEL, "its JSON lacks a value at byte %zu",
                   (size_t)(begin - json->begin));
}

static enum cm_status read_value(struct cm_json *json, int depth, struct cm_item **out)
{
    struct cm_item *item = *out = cm_item_new(json->arena, CM_ITEM_NONE);
    const char c = next_byte(json);

    if (c == '{' || c == '[') {
        item->kind = c == '{' ? CM_ITEM_MAP : CM_ITEM_LIST;
        return read_entries(json, depth, item);
    }
    if (c != '"')
        return read_plain(json, item);
    item->kind = CM_ITEM_TEXT;
    return cm_json_string(json, &item->text);
}

enum cm_status cm_item_parse_json(struct cm_arena *arena, struct cm_str text, struct cm_item **out,
                                  struct cm_error *err)
{
    struct cm_json json;

    cm_json_init(&json, arena, text, err);
    CM_TRY(read_value(&json, 0, out));
    return cm_json_end(&json);
}
