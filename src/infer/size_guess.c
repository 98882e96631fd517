/* What a dimension is for, by its name and its place, and how large such dimensions usually are. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/open_sizes.h"

#include "base/number.h"

#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

bool cm_name_has_word(struct cm_str name, const char *word)
{
    const size_t size = strlen(word);

    for (size_t i = 0; i + size <= name.size; i++) {
        size_t same = 0;

        if (i > 0 && is_letter(name.data[i - 1]))
            continue;
        while (same < size && lower(name.data[i + same]) == word[same])
            same++;
        if (same == size)
            return true;
    }
    return false;
}

/* The whole name, case and all: single letters mean something only in this spelling. */
static const struct {
    const char *name;
    enum cm_size_role role;
} letters[] = {
    {"N", CM_SIZE_BATCH},   {"B", CM_SIZE_BATCH},   {"b", CM_SIZE_BATCH},   {"C", CM_SIZE_CHANNELS},
    {"H", CM_SIZE_SPATIAL}, {"W", CM_SIZE_SPATIAL}, {"h", CM_SIZE_SPATIAL}, {"w", CM_SIZE_SPATIAL},
    {"T", CM_SIZE_LENGTH},  {"S", CM_SIZE_LENGTH},  {"L", CM_SIZE_LENGTH},
};

/* Words of a symbol; the first that is there decides. */
static const struct {
    const char *word;
    enum cm_size_role role;
} words[] = {
    {"batch", CM_SIZE_BATCH},      {"seq", CM_SIZE_LENGTH},     {"past", CM_SIZE_LENGTH},
    {"token", CM_SIZE_LENGTH},     {"time", CM_SIZE_LENGTH},    {"frame", CM_SIZE_LENGTH},
    {"height", CM_SIZE_SPATIAL},   {"width", CM_SIZE_SPATIAL},  {"image", CM_SIZE_SPATIAL},
    {"channel", CM_SIZE_CHANNELS}, {"sample", CM_SIZE_SAMPLES}, {"audio", CM_SIZE_SAMPLES},
    {"len", CM_SIZE_LENGTH},
};

static bool role_of_symbol(struct cm_str symbol, int axis, enum cm_size_role *out)
{
    for (size_t i = 0; i < CM_COUNT(letters); i++) {
        /* N is the batch in front, and just a number elsewhere. */
        if (cm_str_is(symbol, letters[i].name) && (axis == 0 || letters[i].role != CM_SIZE_BATCH)) {
            *out = letters[i].role;
            return true;
        }
    }
    for (size_t i = 0; i < CM_COUNT(words); i++) {
        if (cm_name_has_word(symbol, words[i].word)) {
            *out = words[i].role;
            return true;
        }
    }
    return false;
}

static const char *const sounds[] = {"audio", "wav", "sample", "signal", "speech", "pcm", NULL};
static const char *const states[] = {"state", "hidden", "h0", "c0", "hx", "cx", "hn", "cn", NULL};

static bool has_word_of(struct cm_str name, const char *const *list)
{
    while (*list && !cm_name_has_word(name, *list))
        list++;
    return *list != NULL;
}

static bool is_colour_count(struct cm_dim dim)
{
    return dim.value == 1 || dim.value == 3 || dim.value == 4;
}

/* Images are (batch, channels, height, width), or have their channels last. What has more channels
 * than colours is something else: heads of an attention, features. */
static enum cm_size_role role_in_image(const struct cm_type *type, int axis)
{
    const struct cm_dim second = type->dims[1], last = type->dims[type->rank - 1];

    if (cm_dim_known(second) && !is_colour_count(second))
        return is_colour_count(last) ? CM_SIZE_SPATIAL : CM_SIZE_LENGTH;
    if (!cm_dim_known(second) && is_colour_count(last))
        return CM_SIZE_SPATIAL;
    if (!cm_dim_known(second) && cm_dim_known(last) && last.value < 16)
        return CM_SIZE_LENGTH;
    return axis == 1 ? CM_SIZE_CHANNELS : CM_SIZE_SPATIAL;
}

enum cm_size_role cm_size_role(struct cm_str symbol, struct cm_str input,
                               const struct cm_type *type, int axis)
{
    enum cm_size_role role;

    if (role_of_symbol(symbol, axis, &role))
        return role;
    if (has_word_of(input, sounds) && axis == type->rank - 1)
        return CM_SIZE_SAMPLES;
    /* The state of a recurrent network: (layers, batch, units). */
    if (has_word_of(input, states) && type->rank == 3 && axis == 1 && cm_dim_known(type->dims[0]))
        return CM_SIZE_BATCH;
    if (type->rank > 1 && axis == 0)
        return CM_SIZE_BATCH;
    if (type->rank >= 4)
        return role_in_image(type, axis);
    return type->rank == 3 && axis == 1 ? CM_SIZE_LENGTH : CM_SIZE_OTHER;
}

int64_t cm_size_guess(enum cm_size_role role, int rank, int64_t batch)
{
    switch (role) {
    case CM_SIZE_BATCH:
        return batch;
    case CM_SIZE_CHANNELS:
        return 3;
    case CM_SIZE_SPATIAL:
        return rank > 4 ? 32 : 224;
    case CM_SIZE_SAMPLES:
        return 16000;
    default:
        return 16;
    }
}

/* ---- symbols that are expressions ---- */

enum { DEPTH_MAX = 16 };

struct formula {
    const struct cm_open_sizes *sizes;
    size_t index; /* of the symbol that is read: it cannot be part of itself */
    struct cm_str text;
    size_t at;
    int depth, terms; /* terms: names in it */
    bool wrong;
};

static char next(struct formula *f)
{
    while (f->at < f->text.size && f->text.data[f->at] == ' ')
        f->at++;
    return f->at < f->text.size ? f->text.data[f->at] : 0;
}

static bool in_name(char c)
{
    return is_letter(c) || c == '_' || (c >= '0' && c <= '9');
}

static int64_t read_word(struct formula *f)
{
    const size_t begin = f->at;
    int64_t number;

    while (f->at < f->text.size && in_name(f->text.data[f->at]))
        f->at++;
    const struct cm_str word = {f->text.data + begin, f->at - begin};
    if (word.size && cm_str_to_int64(word, &number))
        return number;
    f->terms++;
    for (size_t i = 0; i < f->sizes->count; i++)
        if (word.size && i != f->index && !f->sizes->items[i].is_formula &&
            cm_str_equal(f->sizes->items[i].symbol, word))
            return f->sizes->items[i].size;
    f->wrong = true;
    return 0;
}

static int64_t read_sum(struct formula *f);

static int64_t read_factor(struct formula *f)
{
    if (next(f) != '(')
        return read_word(f);
    if (++f->depth > DEPTH_MAX) {
        f->wrong = true;
        return 0;
    }
    f->at++;
    const int64_t value = read_sum(f);
    f->wrong = f->wrong || next(f) != ')';
    f->at++;
    f->depth--;
    return value;
}

static int64_t read_product(struct formula *f)
{
    int64_t value = read_factor(f);

    while (!f->wrong && (next(f) == '*' || next(f) == '/')) {
        const bool divides = f->text.data[f->at++] == '/';

        while (next(f) == '/') /* "//" */
            f->at++;
        const int64_t right = read_factor(f);
        if (divides ? right <= 0 : !cm_int64_mul(value, right, &value))
            f->wrong = true;
        else if (divides)
            value /= right;
    }
    return value;
}

static int64_t read_sum(struct formula *f)
{
    int64_t value = read_product(f);

    while (!f->wrong && (next(f) == '+' || next(f) == '-')) {
        const bool adds = f->text.data[f->at++] == '+';
        const int64_t right = read_product(f);

        if (!(adds ? cm_int64_add : cm_int64_sub)(value, right, &value))
            f->wrong = true;
    }
    return value;
}

bool cm_size_formula(const struct cm_open_sizes *sizes, size_t index, int64_t *out)
{
    struct formula f = {.sizes = sizes, .index = index, .text = sizes->items[index].symbol};
    const int64_t value = read_sum(&f);

    if (f.wrong || next(&f) || f.terms == 0 || value < 1)
        return false;
    *out = value;
    return true;
}
