/* The matcher: what the parts of a pattern's text mean. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"
#include "graph/registry.h"
#include "rewrite/pattern_match.h"

#define HEAD                                                                                       \
    GRAPH_HEAD                                                                                     \
    "main (float[2] x, float[2] z) => (y)\n<float two = {2}, float nearly = {2.0000001},"          \
    " float[1,1] wide = {2}, float third = {0.333}>\n{"

/* Does the pattern match the graph's last node? *out is good as long as arena. */
static bool matches(struct cm_arena *arena, const char *pattern, const char *nodes,
                    struct cm_group *out)
{
    const struct cm_str text = cm_arena_printf(arena, HEAD "%s}", nodes);
    struct cm_graph *graph = graph_of(arena, text.data, NULL);
    struct cm_pattern_row *row = CM_NEW(arena, struct cm_pattern_row);
    *row = (struct cm_pattern_row){"test", pattern, NULL, NULL};
    const struct cm_registry *registry = cm_registry_builtin();
    const struct cm_pattern *compiled = cm_pattern_new(arena, registry, row);
    CHECK(compiled != NULL);
    return cm_pattern_last(registry, row) == graph->last->op &&
           cm_pattern_match(compiled, graph->last, out);
}

static bool is(struct cm_arena *arena, const char *pattern, const char *nodes)
{
    struct cm_group match;
    return matches(arena, pattern, nodes, &match);
}

static void order(struct cm_arena *arena)
{
    CHECK(is(arena, "(Sub a (Neg b))", "n = Neg(x) y = Sub(z, n)"));
    CHECK(!is(arena, "(Sub a (Neg b))", "n = Neg(x) y = Sub(n, z)"));
    CHECK(is(arena, "(Add a (Neg b))", "n = Neg(x) y = Add(n, z)"));
    /* both orders of both sums are needed */
    CHECK(is(arena, "(Add (Add (Neg a) b) (Exp a))",
             "e = Exp(x) n = Neg(x) s = Add(z, n) y = Add(e, s)"));
    CHECK(!is(arena, "(Add a (Neg b))", "n = Exp(x) y = Add(n, z)"));
}

void test_pattern_match__operands_in_order_but_for_sums_and_products(void)
{
    check_in_arena(order);
}

static void names(struct cm_arena *arena)
{
    struct cm_group match;
    CHECK(is(arena, "(Add a (Neg a))", "n = Neg(x) y = Add(n, x)"));
    CHECK(!is(arena, "(Add a (Neg a))", "n = Neg(z) y = Add(n, x)"));
    CHECK(matches(arena, "(Mul (Neg@n a) (Exp n))", "n = Neg(x) e = Exp(n) y = Mul(e, n)", &match));
    CHECK_STR(cm_value_get(match.graph->module, cm_group_value(&match, "a"))->name, "x");
    CHECK_STR(cm_value_get(match.graph->module, cm_group_value(&match, "n"))->name, "n");
    CHECK_INT(cm_group_value(&match, "other"), 0);
    CHECK_INT(match.n_nodes, 3);
}

void test_pattern_match__a_name_is_one_value(void)
{
    check_in_arena(names);
}

static void numbers(struct cm_arena *arena)
{
    CHECK(is(arena, "(Mul a 2)", "y = Mul(x, two)"));
    CHECK(is(arena, "(Mul a 2)", "y = Mul(nearly, x)"));
    CHECK(!is(arena, "(Mul a 2)", "y = Mul(x, third)"));
    CHECK(!is(arena, "(Mul a 2)", "y = Mul(x, z)"));
    CHECK(!is(arena, "(Mul a 2)", "y = Mul(x, wide)")); /* the result has an axis more */
}

void test_pattern_match__numbers_are_constants_of_one_element(void)
{
    check_in_arena(numbers);
}

static void choices(struct cm_arena *arena)
{
    const char *pattern = "(Mul [(Neg a) (Exp a) b] (Abs a))";
    struct cm_group match;
    CHECK(matches(arena, pattern, "n = Exp(x) m = Abs(x) y = Mul(n, m)", &match));
    CHECK_INT(cm_group_value(&match, "b"), 0);
    CHECK(matches(arena, pattern, "n = Exp(z) m = Abs(x) y = Mul(n, m)", &match));
    CHECK(cm_group_value(&match, "b") != 0);
    CHECK_INT(match.n_nodes, 2);
}

void test_pattern_match__brackets_are_alternatives(void)
{
    check_in_arena(choices);
}

static void outside(struct cm_arena *arena)
{
    CHECK(!is(arena, "(Neg (Exp a))", "e = Exp(x) u = Abs(e) y = Neg(e)"));
    CHECK(is(arena, "(Neg (Exp!e a))", "e = Exp(x) u = Abs(e) y = Neg(e)"));
    CHECK(is(arena, "(Mul (Exp@e a) e)", "e = Exp(x) y = Mul(e, e)"));
}

void test_pattern_match__inner_results_are_read_inside_only(void)
{
    check_in_arena(outside);
}

static void attributes(struct cm_arena *arena)
{
    CHECK(is(arena, "(ReduceMean keepdims=1 a axes?)", "y = ReduceMean(x)"));
    CHECK(!is(arena, "(ReduceMean keepdims=0 a axes?)", "y = ReduceMean(x)"));
    CHECK(!is(arena, "(ReduceMean keepdims=1 a axes)", "y = ReduceMean(x)"));
    CHECK(is(arena, "(Softmax axis=-1 a)", "y = Softmax(x)"));
}

void test_pattern_match__attributes_and_absent_operands(void)
{
    check_in_arena(attributes);
}

/* A sum of sums can be read in exponentially many ways; the search gives up. */
static void budget(struct cm_arena *arena)
{
    CHECK(!is(arena,
              "(Add (Add (Add (Add (Add (Add (Add (Add (Add (Add (Add (Neg b) a) a) a) a) a) a) a)"
              " a) a) a) a)",
              "a = Add(x, x) b = Add(a, x) c = Add(b, x) d = Add(c, x) e = Add(d, x) f = Add(e, x)"
              "g = Add(f, x) h = Add(g, x) i = Add(h, x) j = Add(i, x) y = Add(j, x)"));
}

void test_pattern_match__the_search_is_bounded(void)
{
    check_in_arena(budget);
}

static double number_of(struct cm_arena *arena, const char *nodes)
{
    const struct cm_str text = cm_arena_printf(arena, HEAD "%s}", nodes);
    const struct cm_graph *graph = graph_of(arena, text.data, NULL);
    double number;
    return cm_constant_number(graph->module, graph->last->outputs[0], &number) ? number : -1;
}

static void arithmetic(struct cm_arena *arena)
{
    CHECK(number_of(arena, "s = Shape(x) l = Squeeze(s) f = Cast<to = 1>(l) q = Mul(f, two)"
                           "r = Sqrt(q) y = Div(two, r)") == 1);
    CHECK(number_of(arena, "k = Constant<value_float = -2.0>() y = Pow(two, k)") == 0.25);
    CHECK(number_of(arena, "y = Mul(x, two)") == -1);
    CHECK(number_of(arena, "m = Sub(two, two) y = Div(two, m)") == -1);
}

void test_pattern_match__numbers_by_arithmetic(void)
{
    check_in_arena(arithmetic);
}
