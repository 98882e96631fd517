/* Sums, products and quotients of dimensions, and the symbols that stand for them. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "graph/dims/dim_math.h"

static struct cm_symbols *table;
static struct cm_quantity n, m;

static void begin(struct cm_arena *arena)
{
    table = cm_symbols_new(arena);
    n = (struct cm_quantity){.symbol = cm_symbol_named(table, cm_str("N"))};
    m = (struct cm_quantity){.symbol = cm_symbol_named(table, cm_str("M"))};
}

static struct cm_quantity number(int64_t value)
{
    return (struct cm_quantity){value, 0, true};
}

static struct cm_quantity plus(struct cm_quantity a, int64_t b)
{
    return cm_quantity_sum(table, a, number(b));
}

static struct cm_quantity times(struct cm_quantity a, int64_t b)
{
    return cm_quantity_product(table, a, number(b));
}

static struct cm_quantity over(struct cm_quantity a, int64_t b)
{
    return cm_quantity_floor(table, a, number(b));
}

static void check_text(struct cm_quantity quantity, const char *text)
{
    const struct cm_str name = cm_symbol_name(table, quantity.symbol);
    CHECK(!quantity.is_number);
    CHECK_STR(name, text);
}

static void check_number(struct cm_quantity quantity, int64_t value)
{
    CHECK(quantity.is_number);
    CHECK_INT(quantity.number, value);
}

static void products(struct cm_arena *arena)
{
    begin(arena);
    const struct cm_quantity nm = cm_quantity_product(table, n, m);
    CHECK(cm_quantity_same(times(nm, 2), cm_quantity_product(table, m, times(n, 2))));
    CHECK(!cm_quantity_same(times(nm, 2), nm));
    CHECK(!cm_quantity_same(cm_quantity_product(table, n, n), n));
    CHECK(cm_quantity_same(times(n, 1), n));
    check_text(times(nm, 2), "2*N*M");
    check_number(times(n, 0), 0);
    check_number(cm_quantity_product(table, number(0), (struct cm_quantity){0}), 0);
    check_number(cm_quantity_product(NULL, number(6), number(7)), 42);
    CHECK(!cm_quantity_is_some(cm_quantity_product(NULL, n, m)));
    CHECK(!cm_quantity_is_some(times(times(n, INT64_MAX / 2), 4)));
}

void test_dim_math__a_product_is_the_same_in_any_order(void)
{
    check_in_arena(products);
}

static void sums(struct cm_arena *arena)
{
    begin(arena);
    const struct cm_quantity sum = cm_quantity_sum(table, n, m);
    CHECK(cm_quantity_same(sum, cm_quantity_sum(table, m, n)));
    CHECK(cm_quantity_same(cm_quantity_difference(table, sum, m), n));
    check_number(cm_quantity_difference(table, sum, sum), 0);
    check_text(plus(times(n, 2), 3), "2*N + 3");
    check_text(plus(n, -1), "N - 1");
    check_text(cm_quantity_difference(table, number(4), n), "-N + 4");
    /* (N + 1) (N - 1) + 1 is N N */
    CHECK(cm_quantity_same(plus(cm_quantity_product(table, plus(n, 1), plus(n, -1)), 1),
                           cm_quantity_product(table, n, n)));
}

void test_dim_math__sums_are_polynomials(void)
{
    check_in_arena(sums);
}

static void quotients(struct cm_arena *arena)
{
    begin(arena);
    /* Two windows with stride 2, and one with stride 4. */
    const struct cm_quantity half = plus(over(plus(n, -1), 2), 1);
    check_text(half, "floor((N + 1)/2)");
    CHECK(cm_quantity_same(over(plus(half, 1), 2), over(plus(n, 3), 4)));
    CHECK(cm_quantity_same(over(plus(times(n, 6), 5), 3), plus(times(n, 2), 1)));
    CHECK(cm_quantity_same(over(plus(times(n, 2), 1), 4), over(n, 2)));
    /* What is multiplied first is divided exactly, by symbols too. */
    const struct cm_quantity all = cm_quantity_product(table, plus(n, 1), times(m, 4));
    CHECK(cm_quantity_same(cm_quantity_floor(table, all, times(m, 2)), times(plus(n, 1), 2)));
    check_text(cm_quantity_floor(table, n, m), "floor(N/M)");
    CHECK(!cm_quantity_is_some(over(n, 0)));
    check_number(cm_quantity_floor(NULL, number(-7), number(2)), -4);
    check_number(cm_quantity_quotient(NULL, number(-7), number(2)), -3);
    check_number(cm_quantity_modulus(NULL, number(-7), number(2)), 1);
    check_number(cm_quantity_remainder(NULL, number(-7), number(2)), -1);
}

void test_dim_math__quotients_have_one_form(void)
{
    check_in_arena(quotients);
}

static void extremes(struct cm_arena *arena)
{
    begin(arena);
    const struct cm_quantity head = cm_quantity_smaller(table, n, number(1)),
                             tail = cm_quantity_larger(table, plus(n, -1), number(0));
    check_text(head, "min(N, 1)");
    check_text(tail, "max(N - 1, 0)");
    CHECK(cm_quantity_same(cm_quantity_sum(table, head, tail), n));
    check_text(cm_quantity_smaller(table, number(512), n), "min(N, 512)");
    CHECK(cm_quantity_same(cm_quantity_larger(table, n, number(0)), n));
    CHECK(cm_quantity_same(cm_quantity_larger(table, n, plus(n, 2)), plus(n, 2)));
    CHECK(cm_quantity_same(cm_quantity_smaller(table, over(n, 2), n), over(n, 2)));
}

void test_dim_math__the_parts_of_a_size_make_it_whole(void)
{
    check_in_arena(extremes);
}

static void bounds(struct cm_arena *arena)
{
    begin(arena);
    int64_t least;
    CHECK(cm_quantity_least(table, plus(times(n, 3), 2), &least));
    CHECK_INT(least, 2);
    CHECK(!cm_quantity_least(table, cm_quantity_difference(table, n, m), &least));
    CHECK(cm_quantity_least(table, plus(n, -4), &least));
    CHECK_INT(least, -4);
    CHECK(cm_quantity_least(table, cm_quantity_modulus(table, n, number(8)), &least));
    CHECK_INT(least, 0);
    CHECK(cm_quantity_least(table, cm_quantity_smaller(table, plus(n, 3), number(5)), &least));
    CHECK_INT(least, 3);
    /* -1 in a shape is no size. */
    const struct cm_quantity quotient = cm_quantity_quotient(table, plus(n, -1), number(2));
    CHECK(cm_quantity_least(table, quotient, &least));
    CHECK(least <= 0);
    CHECK(!cm_quantity_same(quotient, over(plus(n, -1), 2)));
}

void test_dim_math__says_what_a_size_is_never_below(void)
{
    check_in_arena(bounds);
}

static void large(struct cm_arena *arena)
{
    begin(arena);
    struct cm_quantity power = n, chain = n, sum = n;
    for (int i = 0; i < 2 * CM_MAX_RANK; i++) {
        char name[16];
        snprintf(name, sizeof name, "S%d", i);
        const struct cm_quantity other = {.symbol = cm_symbol_named(table, cm_str(name))};
        power = cm_quantity_product(table, power, n);
        sum = cm_quantity_sum(table, sum, other);
        chain = cm_quantity_smaller(table, plus(over(chain, 3), 1), other);
    }
    CHECK(!cm_quantity_is_some(power));
    CHECK(!cm_quantity_is_some(sum));
    CHECK(!cm_quantity_is_some(chain));
}

void test_dim_math__what_is_large_is_unknown(void)
{
    check_in_arena(large);
}

static void names(struct cm_arena *arena)
{
    begin(arena);
    const struct cm_quantity odd = {.symbol = cm_symbol_named(table, cm_str("batch size + 1"))},
                             nameless = {.symbol = cm_symbol_unnamed(table, 7, 0)};
    check_text(times(odd, 2), "2*(batch size + 1)");
    check_text(times(nameless, 2), "");
    check_text(odd, "batch size + 1");
}

void test_dim_math__a_text_has_parts_with_names_only(void)
{
    check_in_arena(names);
}
