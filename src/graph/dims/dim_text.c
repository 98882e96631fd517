/* Expressions of dimensions as text: 2*N + 1, floor((N + 1)/2), min(N, 512). */
// SPDX-License-Identifier: Apache-2.0
#include "graph/dims/dim_math.h"
#include "graph/dims/dim_symbols.h"

struct text {
    char bytes[CM_SYMBOL_TEXT];
    size_t size;
    bool bad; /* too long, or something in it has no name */
};

static void say(struct text *text, struct cm_str what)
{
    text->bad = text->bad || what.size == 0 || what.size > sizeof text->bytes - text->size;
    if (text->bad)
        return;
    memcpy(text->bytes + text->size, what.data, what.size);
    text->size += what.size;
}

static void say_number(struct text *text, int64_t number)
{
    char digits[24];
    const int size = snprintf(digits, sizeof digits, "%lld", (long long)number);
    say(text, (struct cm_str){digits, (size_t)size});
}

static bool is_word(struct cm_str name)
{
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return name.size > 0;
}

static void say_symbol(struct cm_symbols *symbols, struct text *text, uint32_t symbol);

static void say_quantity(struct cm_symbols *symbols, struct text *text, struct cm_quantity quantity)
{
    if (quantity.is_number)
        say_number(text, quantity.number);
    else
        say_symbol(symbols, text, quantity.symbol);
}

/* Inside something else: a sum, or a name that looks like one, in parentheses. */
static void say_part(struct cm_symbols *symbols, struct text *text, struct cm_quantity quantity)
{
    struct cm_symbol_view view;
    cm_symbol_look(symbols, quantity.symbol, &view);
    const bool bare =
        quantity.is_number || view.kind == CM_SYMBOL_QUOTIENT || view.kind == CM_SYMBOL_POSITIVE ||
        (view.kind == CM_SYMBOL_PLAIN && is_word(cm_symbol_name(symbols, quantity.symbol)));
    if (!bare)
        say(text, CM_STR("("));
    say_quantity(symbols, text, quantity);
    if (!bare)
        say(text, CM_STR(")"));
}

/* A sum with max(r, 0) in it is the larger or the smaller one of two sums; false: it has none. */
static bool say_extreme(struct cm_symbols *symbols, struct text *text, uint32_t symbol,
                        const struct cm_symbol_view *sum)
{
    int64_t number;
    int degree;
    uint32_t atoms[CM_ATOMS_MAX];
    for (size_t at = 0; cm_symbol_term(sum, &at, &number, &degree, atoms);) {
        struct cm_symbol_view view;
        if (degree != 1 || (number != 1 && number != -1))
            continue;
        cm_symbol_look(symbols, atoms[0], &view);
        if (view.kind != CM_SYMBOL_POSITIVE)
            continue;
        const struct cm_quantity whole = {.symbol = symbol}, part = {.symbol = atoms[0]};
        cm_quantity_pair_fn *const without = number > 0 ? cm_quantity_difference : cm_quantity_sum;
        cm_quantity_pair_fn *const with = number > 0 ? cm_quantity_sum : cm_quantity_difference;
        const struct cm_quantity rest = without(symbols, whole, part);
        const struct cm_quantity other = with(symbols, rest, view.a);
        say(text, number > 0 ? CM_STR("max(") : CM_STR("min("));
        say_quantity(symbols, text, number > 0 ? other : rest);
        say(text, CM_STR(", "));
        say_quantity(symbols, text, number > 0 ? rest : other);
        say(text, CM_STR(")"));
        return true;
    }
    return false;
}

static void say_sum(struct cm_symbols *symbols, struct text *text, const struct cm_symbol_view *sum)
{
    int64_t number;
    int degree;
    uint32_t atoms[CM_ATOMS_MAX];
    for (size_t at = 0, i = 0; cm_symbol_term(sum, &at, &number, &degree, atoms); i++) {
        const int64_t size = number < 0 ? -number : number; /* never INT64_MIN */
        if (i == 0 && number < 0)
            say(text, CM_STR("-"));
        else if (i > 0)
            say(text, number < 0 ? CM_STR(" - ") : CM_STR(" + "));
        if (size != 1 || degree == 0)
            say_number(text, size);
        for (int k = 0; k < degree; k++) {
            if (k > 0 || size != 1)
                say(text, CM_STR("*"));
            say_part(symbols, text, (struct cm_quantity){.symbol = atoms[k]});
        }
    }
}

static void say_symbol(struct cm_symbols *symbols, struct text *text, uint32_t symbol)
{
    struct cm_symbol_view view;
    if (text->bad) /* said before all else, since a file decides how much there is */
        return;
    cm_symbol_look(symbols, symbol, &view);
    switch (view.kind) {
    case CM_SYMBOL_PLAIN:
        say(text, cm_symbol_name(symbols, symbol));
        break;
    case CM_SYMBOL_SUM:
        if (!say_extreme(symbols, text, symbol, &view))
            say_sum(symbols, text, &view);
        break;
    case CM_SYMBOL_QUOTIENT:
        say(text, CM_STR("floor("));
        say_part(symbols, text, view.a);
        say(text, CM_STR("/"));
        say_part(symbols, text, view.b);
        say(text, CM_STR(")"));
        break;
    case CM_SYMBOL_POSITIVE:
        say(text, CM_STR("max("));
        say_quantity(symbols, text, view.a);
        say(text, CM_STR(", 0)"));
        break;
    }
}

size_t cm_symbol_text(struct cm_symbols *symbols, uint32_t symbol, char *out)
{
    struct text text = {.size = 0};
    say_symbol(symbols, &text, symbol);
    if (text.bad)
        return 0;
    memcpy(out, text.bytes, text.size);
    return text.size;
}
