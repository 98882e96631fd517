/* The table of symbols. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/dims/dim_symbols.h"

#include "base/array.h"
#include "base/map.h"

enum { EXPRESSIONS_MAX = 1 << 20 }; /* that a file may have computed */

struct symbol {
    struct cm_str key;  /* its name; else a NUL byte, a letter and what it is made of */
    struct cm_str text; /* of an expression, once somebody asked */
    uint32_t weight;
    bool has_text;
};

struct cm_symbols {
    struct cm_arena *arena;
    struct cm_map numbers;
    CM_ARRAY(struct symbol);
    size_t n_expressions;
    size_t n_fresh; /* names made up */
};

struct cm_symbols *cm_symbols_new(struct cm_arena *arena)
{
    struct cm_symbols *symbols = CM_NEW(arena, struct cm_symbols);
    symbols->arena = arena;
    *CM_PUSH(arena, symbols) = (struct symbol){.key = CM_STR_NONE}; /* number 0 is no symbol */
    return symbols;
}

static uint32_t interned(struct cm_symbols *symbols, struct cm_str key, size_t weight)
{
    const uint64_t *found = cm_map_find(&symbols->numbers, key);
    if (found)
        return (uint32_t)*found;
    if (weight > 1 && symbols->n_expressions++ >= EXPRESSIONS_MAX)
        return 0;
    const struct cm_str kept = cm_arena_str(symbols->arena, key);
    const uint64_t number = symbols->count;
    *CM_PUSH(symbols->arena, symbols) = (struct symbol){.key = kept, .weight = (uint32_t)weight};
    *cm_map_insert(&symbols->numbers, symbols->arena, kept, NULL) = number;
    return (uint32_t)number;
}

uint32_t cm_symbol_named(struct cm_symbols *symbols, struct cm_str name)
{
    return name.size ? interned(symbols, name, 1) : 0;
}

/* A NUL byte in front keeps the keys of unnamed symbols apart from the names of a file. */
uint32_t cm_symbol_unnamed(struct cm_symbols *symbols, uint32_t value, int axis)
{
    char key[2 + sizeof value + sizeof axis] = {0, '#'};
    memcpy(key + 2, &value, sizeof value);
    memcpy(key + 2 + sizeof value, &axis, sizeof axis);
    return interned(symbols, (struct cm_str){key, sizeof key}, 1);
}

/* ---- expressions ---- */

static void put(struct cm_sum_key *key, const void *bytes, size_t size)
{
    if (size > sizeof key->bytes - key->size)
        return; /* cannot be: what is too large was refused before */
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

void cm_sum_key_add(struct cm_sum_key *key, int64_t number, int degree, const uint32_t *atoms)
{
    const char count = (char)degree;
    if (!key->size)
        put(key, (const char[]){0, '+'}, 2);
    put(key, &number, sizeof number);
    put(key, &count, 1);
    put(key, atoms, (size_t)degree * sizeof *atoms);
}

uint32_t cm_symbol_sum(struct cm_symbols *symbols, const struct cm_sum_key *key, size_t weight)
{
    return interned(symbols, (struct cm_str){key->bytes, key->size}, weight + 1);
}

static size_t weight_of(const struct cm_symbols *symbols, struct cm_quantity quantity)
{
    return quantity.is_number ? 1 : cm_symbol_weight(symbols, quantity.symbol);
}

static void put_quantity(struct cm_sum_key *key, struct cm_quantity quantity)
{
    put(key, &quantity.number, sizeof quantity.number);
    put(key, &quantity.symbol, sizeof quantity.symbol);
    put(key, quantity.is_number ? "n" : "s", 1);
}

uint32_t cm_symbol_quotient(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b)
{
    struct cm_sum_key key = {0};
    put(&key, (const char[]){0, '/'}, 2);
    put_quantity(&key, a);
    put_quantity(&key, b);
    return interned(symbols, (struct cm_str){key.bytes, key.size},
                    weight_of(symbols, a) + weight_of(symbols, b) + 1);
}

uint32_t cm_symbol_positive(struct cm_symbols *symbols, uint32_t a)
{
    struct cm_sum_key key = {0};
    put(&key, (const char[]){0, '>'}, 2);
    put_quantity(&key, (struct cm_quantity){.symbol = a});
    return interned(symbols, (struct cm_str){key.bytes, key.size},
                    cm_symbol_weight(symbols, a) + 1);
}

static struct cm_quantity take_quantity(const char *bytes)
{
    struct cm_quantity out = {0};
    memcpy(&out.number, bytes, sizeof out.number);
    memcpy(&out.symbol, bytes + sizeof out.number, sizeof out.symbol);
    out.is_number = bytes[sizeof out.number + sizeof out.symbol] == 'n';
    return out;
}

static struct cm_str key_of(const struct cm_symbols *symbols, uint32_t symbol)
{
    return symbols && symbol < symbols->count ? symbols->items[symbol].key : CM_STR_NONE;
}

void cm_symbol_look(const struct cm_symbols *symbols, uint32_t symbol, struct cm_symbol_view *out)
{
    enum { QUANTITY = sizeof(int64_t) + sizeof(uint32_t) + 1 };
    const struct cm_str key = key_of(symbols, symbol);
    *out = (struct cm_symbol_view){.kind = CM_SYMBOL_PLAIN};
    if (key.size < 2 || key.data[0])
        return;
    if (key.data[1] == '+') {
        out->kind = CM_SYMBOL_SUM;
        out->terms = (struct cm_str){key.data + 2, key.size - 2};
    } else if (key.data[1] != '#') {
        out->kind = key.data[1] == '/' ? CM_SYMBOL_QUOTIENT : CM_SYMBOL_POSITIVE;
        out->a = take_quantity(key.data + 2);
        if (out->kind == CM_SYMBOL_QUOTIENT)
            out->b = take_quantity(key.data + 2 + QUANTITY);
    }
}

bool cm_symbol_term(const struct cm_symbol_view *sum, size_t *at, int64_t *number, int *degree,
                    uint32_t *atoms)
{
    if (*at >= sum->terms.size)
        return false;
    const char *bytes = sum->terms.data + *at;
    memcpy(number, bytes, sizeof *number);
    *degree = bytes[sizeof *number];
    memcpy(atoms, bytes + sizeof *number + 1, (size_t)*degree * sizeof *atoms);
    *at += sizeof *number + 1 + (size_t)*degree * sizeof *atoms;
    return true;
}

size_t cm_symbol_weight(const struct cm_symbols *symbols, uint32_t symbol)
{
    return symbols && symbol < symbols->count ? symbols->items[symbol].weight : 1;
}

bool cm_symbol_is_expression(const struct cm_symbols *symbols, uint32_t symbol)
{
    return cm_symbol_weight(symbols, symbol) > 1;
}

struct cm_str cm_symbol_name(const struct cm_symbols *symbols, uint32_t symbol)
{
    const struct cm_str key = key_of(symbols, symbol);
    if (!key.size || key.data[0])
        return key;
    /* Sums are taken apart for it, which may make symbols: the table moves, the result does not. */
    struct cm_symbols *table = (struct cm_symbols *)(uintptr_t)symbols;
    if (table->items[symbol].weight > 1 && !table->items[symbol].has_text) {
        table->items[symbol].has_text = true;
        char bytes[CM_SYMBOL_TEXT];
        const size_t size = cm_symbol_text(table, symbol, bytes);
        if (size)
            table->items[symbol].text = cm_arena_str(table->arena, (struct cm_str){bytes, size});
    }
    return table->items[symbol].text;
}

/* ---- unnamed symbols ---- */

/* Calls fn for each that the expression is made of; true ends it. Expressions are small. */
typedef bool visit_fn(struct cm_symbols *symbols, uint32_t symbol, const void *arg);

static bool visit_unnamed(struct cm_symbols *symbols, uint32_t symbol, visit_fn *fn,
                          const void *arg)
{
    const struct cm_str key = key_of(symbols, symbol);
    struct cm_symbol_view view;
    int64_t number;
    int degree;
    uint32_t atoms[CM_ATOMS_MAX];
    if (!key.size || key.data[0])
        return false;
    cm_symbol_look(symbols, symbol, &view);
    if (view.kind == CM_SYMBOL_PLAIN)
        return fn(symbols, symbol, arg);
    for (size_t at = 0; cm_symbol_term(&view, &at, &number, &degree, atoms);)
        for (int k = 0; k < degree; k++)
            if (visit_unnamed(symbols, atoms[k], fn, arg))
                return true;
    return visit_unnamed(symbols, view.a.symbol, fn, arg) ||
           visit_unnamed(symbols, view.b.symbol, fn, arg);
}

static bool is_one(struct cm_symbols *symbols, uint32_t symbol, const void *arg)
{
    (void)symbols;
    (void)symbol;
    (void)arg;
    return true;
}

bool cm_symbol_is_fresh(const struct cm_symbols *symbols, uint32_t symbol)
{
    return visit_unnamed((struct cm_symbols *)(uintptr_t)symbols, symbol, is_one, NULL);
}

static bool name_one(struct cm_symbols *symbols, uint32_t symbol, const void *prefix)
{
    struct symbol *entry = &symbols->items[symbol];
    while (!entry->has_text) {
        const struct cm_str name =
            cm_arena_printf(symbols->arena, "%s%zu", (const char *)prefix, symbols->n_fresh++);
        entry->has_text = !cm_map_find(&symbols->numbers, name);
        entry->text = name;
    }
    return false;
}

void cm_symbol_name_fresh(struct cm_symbols *symbols, uint32_t symbol, const char *prefix)
{
    visit_unnamed(symbols, symbol, name_one, prefix);
    if (symbol < symbols->count && symbols->items[symbol].weight > 1)
        symbols->items[symbol].has_text = false; /* it may have one now */
}
