/* Polynomials over symbols, quotients and maxima, as symbols. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/dims/dim_math.h"

#include "base/number.h"
#include "graph/dims/dim_symbols.h"

/* Past these a sum is unknown: nobody writes such a shape, and a file shall not make arithmetic on
 * shapes slow or its text long. */
enum { TERMS_MAX = 16, WEIGHT_MAX = 48, STEPS_MAX = 64, DEPTH_MAX = 12 };

/* A number times atoms, in ascending order. */
struct term {
    int64_t number;
    int degree;
    uint32_t atoms[CM_ATOMS_MAX];
};

/* Terms in descending degree, then by atoms; none has the number 0. Lost: too large, or unknown. */
struct sum {
    bool lost;
    int count;
    struct term terms[TERMS_MAX];
};

static const struct cm_quantity unknown;

static struct cm_quantity of_number(int64_t number)
{
    return (struct cm_quantity){number, 0, true};
}

static struct cm_quantity of_symbol(uint32_t symbol)
{
    return (struct cm_quantity){0, symbol, false};
}

bool cm_quantity_is_some(struct cm_quantity quantity)
{
    return quantity.is_number || quantity.symbol;
}

bool cm_quantity_same(struct cm_quantity a, struct cm_quantity b)
{
    return a.is_number == b.is_number &&
           (a.is_number ? a.number == b.number : a.symbol && a.symbol == b.symbol);
}

struct cm_dim cm_quantity_dim(struct cm_quantity quantity)
{
    if (quantity.is_number)
        return quantity.number >= 0 ? CM_DIM(quantity.number) : CM_DIM_ANY;
    return (struct cm_dim){CM_DIM_UNKNOWN, quantity.symbol};
}

struct cm_quantity cm_dim_quantity(struct cm_dim dim)
{
    return cm_dim_known(dim) ? of_number(dim.value) : of_symbol(dim.symbol);
}

static int64_t floor_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

static int64_t gcd(int64_t a, int64_t b) /* of what is neither INT64_MIN; 0 counts as nothing */
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- sums ---- */

static int compare_atoms(const struct term *a, const struct term *b)
{
    if (a->degree != b->degree)
        return a->degree > b->degree ? -1 : 1;
    for (int i = 0; i < a->degree; i++)
        if (a->atoms[i] != b->atoms[i])
            return a->atoms[i] < b->atoms[i] ? -1 : 1;
    return 0;
}

static void add_term(struct sum *sum, const struct term *term)
{
    int at = 0;
    while (at < sum->count && compare_atoms(&sum->terms[at], term) < 0)
        at++;
    struct term *here = &sum->terms[at];
    if (at < sum->count && compare_atoms(here, term) == 0) {
        if (!cm_int64_add(here->number, term->number, &here->number) || here->number == INT64_MIN) {
            sum->lost = true;
        } else if (here->number == 0) {
            sum->count--;
            memmove(here, here + 1, (size_t)(sum->count - at) * sizeof *here);
        }
    } else if (sum->count == TERMS_MAX || term->number == INT64_MIN) {
        sum->lost = true;
    } else if (term->number) {
        memmove(here + 1, here, (size_t)(sum->count - at) * sizeof *here);
        *here = *term;
        sum->count++;
    }
}

static void add_number(struct sum *sum, int64_t number)
{
    add_term(sum, &(struct term){.number = number});
}

/* A product of terms; false: too large. */
static bool multiply_terms(const struct term *a, const struct term *b, struct term *out)
{
    int i = 0, j = 0;
    if (a->degree + b->degree > CM_ATOMS_MAX || !cm_int64_mul(a->number, b->number, &out->number))
        return false;
    out->degree = a->degree + b->degree;
    for (int k = 0; k < out->degree; k++)
        out->atoms[k] = j == b->degree || (i < a->degree && a->atoms[i] <= b->atoms[j])
                            ? a->atoms[i++]
                            : b->atoms[j++];
    return true;
}

/* Adds b, multiplied by a term. */
static void add_times(struct sum *sum, const struct sum *b, const struct term *by)
{
    struct term product;
    sum->lost = sum->lost || b->lost;
    for (int i = 0; i < b->count && !sum->lost; i++) {
        if (multiply_terms(&b->terms[i], by, &product))
            add_term(sum, &product);
        else
            sum->lost = true;
    }
}

static void add_multiple(struct sum *sum, const struct sum *b, int64_t number)
{
    add_times(sum, b, &(struct term){.number = number});
}

static struct sum load(const struct cm_symbols *symbols, struct cm_quantity quantity)
{
    struct sum sum = {.lost = !cm_quantity_is_some(quantity)};
    struct cm_symbol_view view;
    if (quantity.is_number) {
        add_number(&sum, quantity.number);
        return sum;
    }
    cm_symbol_look(symbols, quantity.symbol, &view);
    if (view.kind != CM_SYMBOL_SUM) {
        add_term(&sum, &(struct term){1, 1, {quantity.symbol}});
        return sum;
    }
    struct term term = {0};
    for (size_t at = 0; cm_symbol_term(&view, &at, &term.number, &term.degree, term.atoms);)
        add_term(&sum, &term);
    return sum;
}

static struct cm_quantity store(struct cm_symbols *symbols, const struct sum *sum)
{
    const struct term *first = &sum->terms[0];
    struct cm_sum_key key = {0};
    size_t weight = 0;
    if (sum->lost)
        return unknown;
    if (sum->count == 0)
        return of_number(0);
    if (sum->count == 1 && first->degree == 0)
        return of_number(first->number);
    if (sum->count == 1 && first->degree == 1 && first->number == 1)
        return of_symbol(first->atoms[0]);
    for (int i = 0; i < sum->count; i++) {
        const struct term *term = &sum->terms[i];
        weight++;
        for (int k = 0; k < term->degree; k++)
            weight += cm_symbol_weight(symbols, term->atoms[k]);
        cm_sum_key_add(&key, term->number, term->degree, term->atoms);
    }
    return weight > WEIGHT_MAX ? unknown : of_symbol(cm_symbol_sum(symbols, &key, weight));
}

/* ---- how small a sum can be ---- */

static bool sum_least(struct cm_symbols *symbols, const struct sum *sum, int depth, int64_t *least);

static bool atom_least(struct cm_symbols *symbols, uint32_t atom, int depth, int64_t *least)
{
    struct cm_symbol_view view;
    *least = 0;
    cm_symbol_look(symbols, atom, &view);
    if (view.kind == CM_SYMBOL_PLAIN)
        return true;
    const struct sum inside = load(symbols, view.a);
    int64_t low;
    const bool known = sum_least(symbols, &inside, depth - 1, &low);
    if (view.kind == CM_SYMBOL_POSITIVE) {
        *least = known && low > 0 ? low : 0;
        return true;
    }
    if (view.b.is_number) /* floor(a / b), b above 0 */
        *least = known ? floor_div(low, view.b.number) : 0;
    return known && (view.b.is_number || low >= 0);
}

/* The term of degree 1 that stands for max(.., 0), or for a quotient by a number and is taken away;
 * -1: none. */
static int bounded_term(const struct cm_symbols *symbols, const struct sum *sum,
                        enum cm_symbol_kind kind, struct cm_symbol_view *view)
{
    for (int i = 0; i < sum->count; i++) {
        const struct term *term = &sum->terms[i];
        if (term->degree != 1)
            continue;
        cm_symbol_look(symbols, term->atoms[0], view);
        if (view->kind == kind &&
            (kind == CM_SYMBOL_POSITIVE ? term->number == 1 || term->number == -1
                                        : term->number < 0 && view->b.is_number))
            return i;
    }
    return -1;
}

static bool sum_least(struct cm_symbols *symbols, const struct sum *sum, int depth, int64_t *least)
{
    struct cm_symbol_view view;
    if (sum->lost || depth <= 0)
        return false;
    /* s + max(r, 0) is the larger one of s and s + r, s - max(r, 0) the smaller one of s and s - r.
     */
    int i = bounded_term(symbols, sum, CM_SYMBOL_POSITIVE, &view);
    if (i >= 0) {
        const int64_t sign = sum->terms[i].number;
        struct sum without = *sum, with;
        int64_t low[2];
        add_term(&without, &(struct term){-sign, 1, {sum->terms[i].atoms[0]}});
        with = without;
        const struct sum inside = load(symbols, view.a);
        add_multiple(&with, &inside, sign);
        const bool known[2] = {sum_least(symbols, &without, depth - 1, &low[0]),
                               sum_least(symbols, &with, depth - 1, &low[1])};
        const bool second = !known[0] || (known[1] && (sign > 0) == (low[1] > low[0]));
        *least = low[second];
        return sign > 0 ? known[0] || known[1] : known[0] && known[1];
    }
    /* floor(x / d) is at most x / d: d * (s - k * floor(x / d)) is at least d * s - k * x. */
    i = bounded_term(symbols, sum, CM_SYMBOL_QUOTIENT, &view);
    if (i >= 0) {
        const int64_t k = sum->terms[i].number;
        struct sum without = *sum, scaled = {0};
        int64_t low;
        add_term(&without, &(struct term){-k, 1, {sum->terms[i].atoms[0]}});
        const struct sum inside = load(symbols, view.a);
        add_multiple(&scaled, &without, view.b.number);
        add_multiple(&scaled, &inside, k);
        if (!sum_least(symbols, &scaled, depth - 1, &low) || low == INT64_MIN)
            return false;
        *least = -floor_div(-low, view.b.number);
        return true;
    }
    int64_t total = 0;
    for (i = 0; i < sum->count; i++) {
        const struct term *term = &sum->terms[i];
        int64_t low = term->number, one;
        if (term->degree && term->number < 0)
            return false;
        for (int k = 0; k < term->degree; k++)
            if (!atom_least(symbols, term->atoms[k], depth, &one) || one < 0 ||
                !cm_int64_mul(low, one, &low))
                return false;
        if (!cm_int64_add(total, low, &total))
            return false;
    }
    *least = total;
    return true;
}

bool cm_quantity_least(struct cm_symbols *symbols, struct cm_quantity quantity, int64_t *least)
{
    *least = quantity.number;
    if (quantity.is_number || !quantity.symbol || !symbols)
        return quantity.is_number;
    const struct sum sum = load(symbols, quantity);
    return sum_least(symbols, &sum, DEPTH_MAX, least);
}

static bool is_never_negative(struct cm_symbols *symbols, const struct sum *sum)
{
    int64_t least;
    return sum_least(symbols, sum, DEPTH_MAX, &least) && least >= 0;
}

/* ---- max(sum, 0) ---- */

static struct sum negative(const struct sum *sum)
{
    struct sum out = {0};
    add_multiple(&out, sum, -1);
    return out;
}

static struct sum positive(struct cm_symbols *symbols, const struct sum *sum)
{
    const struct sum minus = negative(sum);
    struct sum out = {0};
    if (sum->lost || is_never_negative(symbols, sum))
        return *sum;
    if (is_never_negative(symbols, &minus))
        return out;
    const int64_t sign = sum->terms[0].number < 0 ? -1 : 1;
    struct sum inside = sign < 0 ? minus : *sum;
    int64_t common = 0;
    for (int i = 0; i < inside.count; i++)
        common = gcd(common, inside.terms[i].number);
    for (int i = 0; i < inside.count; i++)
        inside.terms[i].number /= common;
    const struct cm_quantity stored = store(symbols, &inside);
    if (!stored.symbol)
        return (struct sum){.lost = true};
    const uint32_t atom = cm_symbol_positive(symbols, stored.symbol);
    add_term(&out, &(struct term){common, 1, {atom}});
    if (sign < 0)
        add_multiple(&out, sum, 1); /* max(-r, 0) is max(r, 0) - r */
    return out;
}

/* ---- quotients ---- */

/* Of a sum by a number above 0, rounded down. Multiples of the number are taken out, so that what
 * remains has coefficients from 0 to below it. */
static struct sum divide_by_number(struct cm_symbols *symbols, struct sum a, int64_t by)
{
    struct sum whole = {.lost = a.lost};
    for (int steps = 0; !whole.lost; steps++) {
        struct sum rest = {0};
        struct cm_symbol_view view;
        int64_t common = by, number = 0;
        for (int i = 0; i < a.count; i++) {
            struct term term = a.terms[i];
            term.number = floor_div(a.terms[i].number, by);
            add_term(&whole, &term);
            term.number = a.terms[i].number - term.number * by;
            if (term.degree)
                common = gcd(common, term.number);
            else
                number = term.number;
            if (term.degree)
                add_term(&rest, &term);
        }
        if (rest.count == 0 || rest.lost || steps == STEPS_MAX) {
            whole.lost = whole.lost || rest.lost || steps == STEPS_MAX;
            break;
        }
        for (int i = 0; i < rest.count; i++)
            rest.terms[i].number /= common;
        by /= common;
        number /= common;
        if (by == 1) {
            add_multiple(&whole, &rest, 1);
            break;
        }
        /* floor((floor(x / c) + n) / d) is floor((x + c * n) / (c * d)). */
        cm_symbol_look(symbols, rest.terms[0].atoms[0], &view);
        if (rest.count == 1 && rest.terms[0].degree == 1 && rest.terms[0].number == 1 &&
            view.kind == CM_SYMBOL_QUOTIENT && view.b.is_number &&
            cm_int64_mul(view.b.number, by, &by)) {
            a = load(symbols, view.a);
            if (!cm_int64_mul(number, view.b.number, &number))
                whole.lost = true;
            add_number(&a, number);
            continue;
        }
        add_number(&rest, number);
        const struct cm_quantity stored = store(symbols, &rest);
        const uint32_t atom =
            stored.symbol ? cm_symbol_quotient(symbols, stored, of_number(by)) : 0;
        if (atom)
            add_term(&whole, &(struct term){1, 1, {atom}});
        whole.lost = whole.lost || !atom;
        break;
    }
    return whole;
}

/* What a term must be multiplied with to be another; false: no whole term. */
static bool divide_terms(const struct term *a, const struct term *b, struct term *out)
{
    int j = 0;
    if (a->number % b->number || a->degree < b->degree)
        return false;
    *out = (struct term){.number = a->number / b->number};
    for (int i = 0; i < a->degree; i++) {
        if (j < b->degree && a->atoms[i] == b->atoms[j])
            j++;
        else
            out->atoms[out->degree++] = a->atoms[i];
    }
    return j == b->degree;
}

/* Long division that leaves nothing. */
static bool divide_exactly(struct sum a, const struct sum *b, struct sum *out)
{
    struct term term;
    *out = (struct sum){0};
    if (b->count == 0)
        return false;
    for (int steps = 0; a.count && steps < STEPS_MAX; steps++) {
        if (a.lost || out->lost || !divide_terms(&a.terms[0], &b->terms[0], &term))
            return false;
        add_term(out, &term);
        term.number = -term.number;
        add_times(&a, b, &term);
    }
    return a.count == 0 && !a.lost && !out->lost;
}

static struct sum floor_sum(struct cm_symbols *symbols, const struct sum *a, const struct sum *b)
{
    struct sum out = {.lost = a->lost || b->lost || b->count == 0};
    if (out.lost || divide_exactly(*a, b, &out))
        return out;
    if (b->count == 1 && b->terms[0].degree == 0) {
        const int64_t by = b->terms[0].number;
        return by > 0 ? divide_by_number(symbols, *a, by)
                      : divide_by_number(symbols, negative(a), -by);
    }
    out = (struct sum){.lost = true};
    if (!is_never_negative(symbols, b))
        return out;
    const struct cm_quantity over = store(symbols, a), under = store(symbols, b);
    const uint32_t atom =
        cm_quantity_is_some(over) && under.symbol ? cm_symbol_quotient(symbols, over, under) : 0;
    out.lost = !atom;
    if (atom)
        add_term(&out, &(struct term){1, 1, {atom}});
    return out;
}

/* ---- operations ---- */

/* Numbers, or an operation that leaves one side as it is: no table is needed. */
enum operation { SUM, DIFFERENCE, PRODUCT, FLOOR, QUOTIENT, MODULUS, REMAINDER, LARGER, SMALLER };

static struct cm_quantity of_numbers(enum operation what, int64_t a, int64_t b)
{
    const bool divides = b != 0 && b != -1; /* INT64_MIN / -1 overflows */
    int64_t out = 0;
    bool ok = true;
    switch (what) {
    case SUM:
        ok = cm_int64_add(a, b, &out);
        break;
    case DIFFERENCE:
        ok = cm_int64_sub(a, b, &out);
        break;
    case PRODUCT:
        ok = cm_int64_mul(a, b, &out);
        break;
    case FLOOR:
        ok = divides;
        out = ok ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
        break;
    case QUOTIENT:
        ok = divides;
        out = ok ? a / b : 0;
        break;
    case MODULUS:
        ok = divides;
        out = ok ? a % b : 0;
        out += out != 0 && (out < 0) != (b < 0) ? b : 0;
        break;
    case REMAINDER:
        ok = divides;
        out = ok ? a % b : 0;
        break;
    case LARGER:
        out = a > b ? a : b;
        break;
    case SMALLER:
        out = a < b ? a : b;
        break;
    }
    return ok ? of_number(out) : unknown;
}

static bool leaves_first(enum operation what, struct cm_quantity a, struct cm_quantity b)
{
    if (what == LARGER || what == SMALLER)
        return cm_quantity_same(a, b);
    if (!b.is_number)
        return false;
    return what == SUM || what == DIFFERENCE                      ? b.number == 0
           : what == PRODUCT || what == QUOTIENT || what == FLOOR ? b.number == 1
                                                                  : false;
}

static struct sum of_sums(struct cm_symbols *symbols, enum operation what, const struct sum *a,
                          const struct sum *b)
{
    struct sum out = {.lost = a->lost || b->lost}, other;
    switch (what) {
    case SUM:
    case DIFFERENCE:
        add_multiple(&out, a, 1);
        add_multiple(&out, b, what == SUM ? 1 : -1);
        break;
    case PRODUCT:
        for (int i = 0; i < b->count; i++)
            add_times(&out, a, &b->terms[i]);
        break;
    case FLOOR:
        return floor_sum(symbols, a, b);
    case QUOTIENT:
        if (divide_exactly(*a, b, &out) || out.lost)
            return out;
        /* Rounded towards 0: the part above 0 rounded down, less that below. */
        other = positive(symbols, a);
        out = floor_sum(symbols, &other, b);
        if (is_never_negative(symbols, a))
            return out;
        add_multiple(&other, a, -1);
        other = floor_sum(symbols, &other, b);
        add_multiple(&out, &other, -1);
        break;
    case MODULUS:
    case REMAINDER:
        other = of_sums(symbols, what == MODULUS ? FLOOR : QUOTIENT, a, b);
        other = of_sums(symbols, PRODUCT, &other, b);
        return of_sums(symbols, DIFFERENCE, a, &other);
    case LARGER:
    case SMALLER:
        add_multiple(&out, what == LARGER ? b : a, 1);
        add_multiple(&out, what == LARGER ? a : b, -1);
        other = positive(symbols, &out);
        return of_sums(symbols, what == LARGER ? SUM : DIFFERENCE, a, &other);
    }
    return out;
}

static struct cm_quantity operate(struct cm_symbols *symbols, enum operation what,
                                  struct cm_quantity a, struct cm_quantity b)
{
    if (a.is_number && b.is_number)
        return of_numbers(what, a.number, b.number);
    if (leaves_first(what, a, b))
        return a;
    if ((what == SUM || what == PRODUCT) && leaves_first(what, b, a))
        return b;
    if (what == PRODUCT && ((a.is_number && a.number == 0) || (b.is_number && b.number == 0)))
        return of_number(0);
    if (!symbols || !cm_quantity_is_some(a) || !cm_quantity_is_some(b))
        return unknown;
    const struct sum first = load(symbols, a), second = load(symbols, b);
    const struct sum out = of_sums(symbols, what, &first, &second);
    return store(symbols, &out);
}

#define OPERATION(name, what)                                                                      \
    struct cm_quantity name(struct cm_symbols *symbols, struct cm_quantity a,                      \
                            struct cm_quantity b)                                                  \
    {                                                                                              \
        return operate(symbols, what, a, b);                                                       \
    }
OPERATION(cm_quantity_sum, SUM)
OPERATION(cm_quantity_difference, DIFFERENCE)
OPERATION(cm_quantity_product, PRODUCT)
OPERATION(cm_quantity_floor, FLOOR)
OPERATION(cm_quantity_quotient, QUOTIENT)
OPERATION(cm_quantity_modulus, MODULUS)
OPERATION(cm_quantity_remainder, REMAINDER)
OPERATION(cm_quantity_larger, LARGER)
OPERATION(cm_quantity_smaller, SMALLER)

struct cm_dim cm_dim_product(struct cm_symbols *symbols, struct cm_dim a, struct cm_dim b)
{
    return cm_quantity_dim(cm_quantity_product(symbols, cm_dim_quantity(a), cm_dim_quantity(b)));
}

struct cm_dim cm_dim_sum(struct cm_symbols *symbols, struct cm_dim a, struct cm_dim b)
{
    return cm_quantity_dim(cm_quantity_sum(symbols, cm_dim_quantity(a), cm_dim_quantity(b)));
}

struct cm_dim cm_dim_floor(struct cm_symbols *symbols, struct cm_dim dim, int64_t plus, int64_t by)
{
    const struct cm_quantity sum = cm_quantity_sum(symbols, cm_dim_quantity(dim), of_number(plus));
    return cm_quantity_dim(cm_quantity_floor(symbols, sum, of_number(by)));
}

struct cm_quantity cm_type_product(struct cm_symbols *symbols, const struct cm_type *type, int from,
                                   int to)
{
    struct cm_quantity product = of_number(1);
    for (int i = from; i < to; i++)
        product = cm_quantity_product(symbols, product, cm_dim_quantity(type->dims[i]));
    return product;
}
