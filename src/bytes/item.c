/* Data of other languages as plain values. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/item.h"

#include "bytes/saved_tensor.h"

#include <math.h>
#include <stdarg.h>

const struct cm_item cm_item_none;

/* ---- making them ---- */

struct cm_item *cm_item_new(struct cm_arena *arena, enum cm_item_kind kind)
{
    struct cm_item *item = CM_NEW(arena, struct cm_item);

    item->kind = kind;
    return item;
}

struct cm_item *cm_item_int(struct cm_arena *arena, int64_t value)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_INT);

    item->number = value;
    return item;
}

struct cm_item *cm_item_real(struct cm_arena *arena, double value)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_REAL);

    item->real = value;
    return item;
}

struct cm_item *cm_item_bool(struct cm_arena *arena, bool value)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_BOOL);

    item->truth = value;
    return item;
}

struct cm_item *cm_item_text(struct cm_arena *arena, struct cm_str text)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_TEXT);

    item->text = text;
    return item;
}

struct cm_item *cm_item_printf(struct cm_arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const struct cm_str text = cm_arena_vprintf(arena, format, args);
    va_end(args);
    return cm_item_text(arena, text);
}

struct cm_item *cm_item_tensor(struct cm_arena *arena, struct cm_saved_tensor *tensor)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_TENSOR);

    item->tensor = tensor;
    return item;
}

struct cm_item *cm_item_ints(struct cm_arena *arena, const int64_t *values, size_t count)
{
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t i = 0; i < count; i++)
        cm_item_append(arena, list, cm_item_int(arena, values[i]));
    return list;
}

struct cm_item *cm_item_reals(struct cm_arena *arena, const double *values, size_t count)
{
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t i = 0; i < count; i++)
        cm_item_append(arena, list, cm_item_real(arena, values[i]));
    return list;
}

struct cm_item *cm_item_texts(struct cm_arena *arena, const struct cm_str *texts, size_t count)
{
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t i = 0; i < count; i++)
        cm_item_append(arena, list, cm_item_text(arena, texts[i]));
    return list;
}

void cm_item_append(struct cm_arena *arena, struct cm_item *list, const struct cm_item *value)
{
    *CM_PUSH(arena, &list->entries) = (struct cm_item_entry){NULL, value};
}

void cm_item_set(struct cm_arena *arena, struct cm_item *map, const struct cm_item *key,
                 const struct cm_item *value)
{
    *CM_PUSH(arena, &map->entries) = (struct cm_item_entry){key, value};
}

void cm_item_put(struct cm_arena *arena, struct cm_item *map, const char *key,
                 const struct cm_item *value)
{
    cm_item_set(arena, map, cm_item_text(arena, cm_str(key)), value);
}

/* ---- looking into them ---- */

static const struct cm_item *get(const struct cm_item *item, struct cm_str key)
{
    if (item && item->kind == CM_ITEM_OBJECT)
        item = item->state;
    if (!item || item->kind != CM_ITEM_MAP)
        return NULL;
    for (size_t i = item->entries.count; i > 0; i--) {
        const struct cm_item_entry *entry = &item->entries.items[i - 1];

        if (entry->key && entry->key->kind == CM_ITEM_TEXT && cm_str_equal(entry->key->text, key))
            return entry->value;
    }
    return NULL;
}

const struct cm_item *cm_item_get(const struct cm_item *item, const char *key)
{
    return get(item, cm_str(key));
}

const struct cm_item *cm_item_at(const struct cm_item *list, size_t index)
{
    return index < cm_item_count(list) ? list->entries.items[index].value : NULL;
}

const struct cm_item *cm_item_path(const struct cm_item *item, const char *path)
{
    while (item && *path) {
        const size_t size = strcspn(path, ".");

        item = get(item, (struct cm_str){path, size});
        path += size + (path[size] == '.');
    }
    return item;
}

size_t cm_item_count(const struct cm_item *item)
{
    return item && (item->kind == CM_ITEM_LIST || item->kind == CM_ITEM_MAP) ? item->entries.count
                                                                             : 0;
}

bool cm_item_is_real(const struct cm_item *item, double *out)
{
    if (!item)
        return false;
    switch (item->kind) {
    case CM_ITEM_BOOL:
        *out = item->truth;
        return true;
    case CM_ITEM_INT:
        *out = (double)item->number;
        return true;
    case CM_ITEM_REAL:
        *out = item->real;
        return true;
    case CM_ITEM_TENSOR:
        return cm_saved_tensor_number(item->tensor, out);
    default:
        return false;
    }
}

bool cm_item_is_int(const struct cm_item *item, int64_t *out)
{
    double real;

    if (item && item->kind == CM_ITEM_INT) {
        *out = item->number;
        return true;
    }
    if (!cm_item_is_real(item, &real) || !(fabs(real) < 9e15) || real != floor(real))
        return false;
    *out = (int64_t)real;
    return true;
}

bool cm_item_is_bool(const struct cm_item *item, bool *out)
{
    if (!item || item->kind != CM_ITEM_BOOL)
        return false;
    *out = item->truth;
    return true;
}

bool cm_item_is_text(const struct cm_item *item, struct cm_str *out)
{
    if (!item || item->kind != CM_ITEM_TEXT)
        return false;
    *out = item->text;
    return true;
}

double cm_item_real_or(const struct cm_item *item, double otherwise)
{
    double real;

    return cm_item_is_real(item, &real) ? real : otherwise;
}

double cm_item_get_real(const struct cm_item *item, const char *key, double otherwise)
{
    return cm_item_real_or(cm_item_get(item, key), otherwise);
}

struct cm_str cm_item_text_or_none(const struct cm_item *item)
{
    return item && item->kind == CM_ITEM_TEXT ? item->text : CM_STR("");
}

struct cm_str cm_item_get_text(const struct cm_item *item, const char *key)
{
    return cm_item_text_or_none(cm_item_get(item, key));
}

struct cm_str cm_item_key(struct cm_arena *arena, const struct cm_item *item, size_t index)
{
    const struct cm_item *key = item->entries.items[index].key;
    struct cm_str text;

    if (!key)
        return cm_arena_printf(arena, "%zu", index);
    return cm_item_is_text(key, &text) ? text : cm_item_json(arena, key, 100);
}

const struct cm_item *cm_item_nth(const struct cm_item *list, size_t index)
{
    const struct cm_item_entry *entry =
        index < cm_item_count(list) ? &list->entries.items[index] : NULL;
    char key[24];

    snprintf(key, sizeof key, "%zu", index);
    return !entry ? NULL
           : !entry->key || cm_str_is(cm_item_text_or_none(entry->key), key)
               ? entry->value
               : cm_item_get(list, key);
}

bool cm_item_is_shape(const struct cm_item *item, struct cm_shape *out)
{
    const size_t rank = cm_item_count(item);
    int64_t count;

    if (!item || (item->kind != CM_ITEM_LIST && item->kind != CM_ITEM_MAP) || rank > CM_MAX_RANK)
        return false;
    out->rank = (int)rank;
    for (size_t d = 0; d < rank; d++)
        if (!cm_item_is_int(cm_item_nth(item, d), &out->dims[d]) || out->dims[d] < 0 ||
            out->dims[d] > CM_MAX_DIM)
            return false;
    return cm_shape_count(out, &count);
}

bool cm_item_is_a(const struct cm_item *item, const char *class_name)
{
    if (!item || item->kind != CM_ITEM_OBJECT)
        return false;
    const struct cm_str wanted = cm_str(class_name), is = item->text;
    return cm_str_equal(is, wanted) || (is.size > wanted.size && cm_str_ends(is, class_name) &&
                                        is.data[is.size - wanted.size - 1] == '.');
}
