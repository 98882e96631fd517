/* Products of dimensions, and the symbols that stand for them. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "graph/dim_product.h"

static struct cm_dim named(struct cm_symbols *symbols, const char *name)
{
    return (struct cm_dim){CM_DIM_UNKNOWN, cm_symbol_named(symbols, cm_str(name))};
}

static struct cm_dim times(struct cm_symbols *symbols, struct cm_dim a, struct cm_dim b)
{
    struct cm_product product = CM_PRODUCT_ONE;
    cm_product_times(&product, symbols, a);
    cm_product_times(&product, symbols, b);
    return cm_product_dim(symbols, &product);
}

static void products(struct cm_arena *arena)
{
    struct cm_symbols *symbols = cm_symbols_new(arena);
    const struct cm_dim n = named(symbols, "N"), m = named(symbols, "M");
    const struct cm_dim a = times(symbols, times(symbols, n, CM_DIM(2)), m),
                        b = times(symbols, m, times(symbols, CM_DIM(2), n));
    CHECK(!cm_dim_known(a) && a.symbol && cm_dim_same(a, b));
    CHECK(!cm_dim_same(a, times(symbols, n, m)));
    CHECK(!cm_dim_same(times(symbols, n, n), n));
    CHECK(cm_dim_same(times(symbols, n, CM_DIM(1)), n));
    CHECK_INT(times(symbols, CM_DIM(6), CM_DIM(7)).value, 42);
    CHECK_INT(times(symbols, n, CM_DIM(0)).value, 0);
    CHECK_INT(times(symbols, CM_DIM(0), CM_DIM_ANY).value, 0);
    CHECK_INT(times(symbols, n, CM_DIM_ANY).symbol, 0);
    CHECK_INT(cm_symbol_name(symbols, a.symbol).size, 0); /* no name that a file could have */
    CHECK_INT(times(symbols, times(symbols, CM_DIM(INT64_MAX / 2), n), CM_DIM(4)).symbol, 0);
}

void test_product__is_the_same_in_any_order(void)
{
    check_in_arena(products);
}

static void many(struct cm_arena *arena)
{
    struct cm_symbols *symbols = cm_symbols_new(arena);
    struct cm_product product = CM_PRODUCT_ONE;
    for (int i = 0; i < 2 * CM_MAX_RANK; i++)
        cm_product_times(&product, symbols, named(symbols, "N"));
    CHECK(!product.known);
    CHECK_INT(cm_product_dim(symbols, &product).symbol, 0);
}

void test_product__of_very_many_factors_is_unknown(void)
{
    check_in_arena(many);
}

static void compared(struct cm_arena *arena)
{
    struct cm_symbols *symbols = cm_symbols_new(arena);
    const struct cm_dim n = named(symbols, "N"), m = named(symbols, "M");
    const struct cm_dim dims[] = {n, CM_DIM(3), m, times(symbols, n, CM_DIM(3))};
    const struct cm_type *type = cm_type_tensor(arena, CM_FLOAT, 4, dims);
    CHECK(cm_product_same(cm_product_of(symbols, type, 0, 2), cm_product_of(symbols, type, 3, 4)));
    CHECK(!cm_product_same(cm_product_of(symbols, type, 0, 3), cm_product_of(symbols, type, 3, 4)));
    CHECK(cm_product_same(cm_product_of(symbols, type, 2, 2), CM_PRODUCT_ONE));
}

void test_product__can_be_compared(void)
{
    check_in_arena(compared);
}
