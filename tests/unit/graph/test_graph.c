/* Building and editing graphs: use lists, replacing, moving, retyping, removing. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_case.h"

#include <time.h>

static size_t count_uses(const struct cm_module *module, cm_value value)
{
    size_t count = 0;
    const struct cm_use *prev = NULL;
    for (const struct cm_use *use = cm_value_get(module, value)->uses; use; use = use->next) {
        CHECK_INT(use->value, value);
        CHECK(use->prev == prev);
        prev = use;
        count++;
    }
    CHECK_INT(cm_value_get(module, value)->n_uses, count);
    return count;
}

static void build(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 3));
    const cm_value a = GRAPH_ADD(graph, "Relu", x), b = GRAPH_ADD(graph, "Add", a, x);
    struct cm_module *module = graph->module;
    cm_graph_set_outputs(graph, &b, 1);

    CHECK_INT(graph->n_nodes, 2);
    CHECK_INT(count_uses(module, x), 2);
    CHECK_INT(count_uses(module, a), 1);
    CHECK_INT(count_uses(module, b), 1);
    CHECK(cm_value_get(module, b)->uses->node == NULL);
    CHECK_INT(cm_graph_find(graph, CM_STR("x")), x);
    CHECK_INT(cm_graph_find(graph, CM_STR("y")), 0);
    CHECK_STR(cm_type_print(arena, cm_module_symbols(module), cm_value_get(module, b)->fact.type),
              "float[3]");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, -1, 0, 2)), -1, 0, 4);
}

void test_graph__values_know_their_makers_and_users(void)
{
    check_in_arena(build);
}

static void replace(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_module *module = graph->module;
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 2));
    const cm_value a = GRAPH_ADD(graph, "Relu", x), b = GRAPH_ADD(graph, "Neg", x);
    const cm_value c = GRAPH_ADD(graph, "Add", a, a);
    cm_graph_set_outputs(graph, (const cm_value[]){c, a}, 2);

    cm_value_replace(module, a, b);
    CHECK_INT(count_uses(module, a), 0);
    CHECK_INT(count_uses(module, b), 3);
    CHECK_INT(graph->outputs[1].value, b);
    CHECK(!cm_value_get(module, c)->node->stale); /* both are float[2] */
    cm_graph_remove_node(cm_value_get(module, a)->node);
    CHECK_INT(graph->n_nodes, 2);
    CHECK_INT(count_uses(module, x), 1);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), -2, 4);
}

void test_graph__a_replaced_value_is_read_nowhere(void)
{
    check_in_arena(replace);
}

static void move(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_module *module = graph->module;
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 2));
    const cm_value a = GRAPH_ADD(graph, "Relu", x), b = GRAPH_ADD(graph, "Neg", x);
    struct cm_node *first = cm_value_get(module, a)->node, *second = cm_value_get(module, b)->node;

    cm_node_move(second, first);
    CHECK(graph->first == second && graph->last == first && second->next == first);
    CHECK(first->prev == second && !second->prev && !first->next);
    cm_node_move(second, NULL);
    CHECK(graph->first == first && graph->last == second);
    cm_node_move(second, second);
    CHECK(graph->first == first && graph->last == second && graph->n_nodes == 2);
    const cm_value c = graph_add(graph, second, "Abs", &x, 1);
    CHECK(first->next == cm_value_get(module, c)->node && second->prev == first->next);
}

void test_graph__nodes_can_be_put_anywhere(void)
{
    check_in_arena(move);
}

static void remove_dead(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_module *module = graph->module;
    struct cm_graph *other = cm_graph_new(module, NULL, CM_STR("other"));
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 2));
    const cm_value y = cm_graph_add_input(other, CM_STR("y"), graph_float_type(arena, 2));
    const cm_value a = GRAPH_ADD(graph, "Relu", x), b = GRAPH_ADD(graph, "Neg", a);
    const cm_value c = GRAPH_ADD(graph, "Abs", b), unread = GRAPH_ADD(graph, "Exp", a);
    const cm_value elsewhere = GRAPH_ADD(other, "Exp", y);
    cm_graph_set_outputs(graph, &c, 1);

    cm_graph_remove_dead(graph);
    CHECK(!cm_value_get(module, unread)->node);
    CHECK_INT(graph->n_nodes, 3);
    CHECK_INT(other->n_nodes, 1); /* not asked for */
    cm_graph_remove_dead(graph);
    CHECK_INT(graph->n_nodes, 3);
    /* What fed a reader that went away goes too. */
    cm_use_redirect(graph->module, &graph->outputs[0], x);
    cm_graph_remove_dead(graph);
    CHECK_INT(graph->n_nodes, 0);
    CHECK_INT(count_uses(module, x), 1);
    CHECK(cm_value_get(module, elsewhere)->node);
    cm_graph_remove_dead(other);
    CHECK_INT(other->n_nodes, 0);
}

void test_graph__what_nobody_reads_can_be_removed(void)
{
    check_in_arena(remove_dead);
}

static void remove_dead_in_bodies(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "g (bool c, float[2] x) => (float[2] y) {\n"
                            "  outer = Neg (x)\n"
                            "  y = If (c) <then_branch = t () => (float[2] a) { a = Abs (x) "
                            "unread = Exp (outer) },\n"
                            "    else_branch = e () => (float[2] b) { b = Relu (x) }>\n}",
                 NULL);
    CHECK_INT(graph->n_nodes, 2);
    cm_graph_remove_dead(graph);
    CHECK_INT(graph->n_nodes, 1);
    CHECK_INT(graph->first->bodies[0].graph->n_nodes, 1);
    CHECK_GIVES(arena, graph, INPUTS(graph_bool(arena, true), FLOATS(arena, -1, 2)), 1, 2);
}

void test_graph__what_only_dead_nodes_of_a_body_read_is_dead(void)
{
    check_in_arena(remove_dead_in_bodies);
}

static void retype(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_module *module = graph->module;
    struct cm_error err = {0};
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 3));
    const cm_value one = cm_graph_add_input(graph, CM_STR("one"), graph_float_type(arena, 1));
    const cm_value a = GRAPH_ADD(graph, "Relu", one), b = GRAPH_ADD(graph, "Neg", a);
    CHECK_INT(cm_value_get(module, b)->fact.type->dims[0].value, 1);

    cm_node_set_input(cm_value_get(module, a)->node, 0, x);
    CHECK(graph->has_stale && cm_value_get(module, a)->node->stale);
    CHECK_OK(cm_graph_retype(graph, &err), &err);
    CHECK_INT(cm_value_get(module, b)->fact.type->dims[0].value, 3);
    CHECK(!graph->has_stale && !cm_value_get(module, b)->node->stale);

    const struct cm_fact fact = {.type = graph_float_type(arena, 7)};
    cm_value_set_fact(module, x, &fact);
    CHECK_OK(cm_graph_retype(graph, &err), &err);
    CHECK_INT(cm_value_get(module, b)->fact.type->dims[0].value, 7);
    cm_value_set_fact(module, x, &fact);
    CHECK(!graph->has_stale); /* no change */
}

void test_graph__a_change_reaches_all_that_depends_on_it(void)
{
    check_in_arena(retype);
}

static void refuse(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_module *module = graph->module;
    struct cm_error err = {0};
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 3));
    const cm_value y = cm_graph_add_input(graph, CM_STR("y"), graph_float_type(arena, 2));
    const cm_value both[] = {x, y};
    const struct cm_node_spec spec = {
        .op_type = CM_STR("Add"), .inputs = both, .n_inputs = 2, .n_outputs = 1};
    const struct cm_node_spec unknown = {
        .op_type = CM_STR("Nonesuch"), .inputs = both, .n_inputs = 2, .n_outputs = 1};

    CHECK_FAILS(cm_graph_add_node(graph, NULL, &spec, NULL, &err), CM_BAD_MODEL, &err, "Add");
    CHECK_INT(graph->n_nodes, 0);
    CHECK(!graph->first && !graph->last);
    CHECK_INT(count_uses(module, x), 0);
    CHECK_INT(count_uses(module, y), 0);
    CHECK(cm_graph_add_node(graph, NULL, &unknown, NULL, &err) != CM_OK);
    CHECK(strstr(err.text, "Nonesuch"));
    CHECK_INT(graph->n_nodes, 0);
}

void test_graph__a_node_that_is_refused_leaves_no_trace(void)
{
    check_in_arena(refuse);
}

static void names(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_graph *inner = cm_graph_new(graph->module, graph, CM_STR("inner"));
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 3));

    CHECK_INT(cm_graph_find(inner, CM_STR("x")), x);
    const cm_value hidden = cm_graph_add_input(inner, CM_STR("h"), graph_float_type(arena, 3));
    CHECK_INT(cm_graph_find(inner, CM_STR("h")), hidden);
    CHECK_INT(cm_graph_find(graph, CM_STR("h")), 0);
    cm_value_set_name(graph->module, x, CM_STR("z"));
    CHECK_INT(cm_graph_find(graph, CM_STR("x")), 0);
    CHECK_INT(cm_graph_find(inner, CM_STR("z")), x);
    cm_value_set_name(graph->module, x, CM_STR_NONE);
    CHECK_INT(cm_graph_find(graph, CM_STR("z")), 0);
    CHECK_INT(cm_graph_find(graph, CM_STR_NONE), 0);
}

void test_graph__names_are_seen_from_inside_only(void)
{
    check_in_arena(names);
}

static void want_output(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_module *module = graph->module;
    struct cm_error err = {0};
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 3));
    const cm_value y = GRAPH_ADD(graph, "Dropout", x);
    struct cm_node *node = cm_value_get(module, y)->node;
    cm_value mask = 0, again = 0;

    CHECK_OK(cm_node_want_output(node, 1, &mask, &err), &err);
    CHECK(mask != 0 && mask != y);
    CHECK_INT(cm_value_get(module, mask)->fact.type->dtype, CM_BOOL);
    CHECK_OK(cm_node_want_output(node, 1, &again, &err), &err);
    CHECK_INT(again, mask);
    CHECK_FAILS(cm_node_want_output(node, 2, &again, &err), CM_BAD_ARGUMENT, &err, "no output 2");
}

void test_graph__an_optional_output_can_be_asked_for_later(void)
{
    check_in_arena(want_output);
}

static void many(struct cm_arena *arena)
{
    enum { NODES = 100000 };
    const clock_t start = clock();
    struct cm_graph *graph = graph_new(arena);
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 4));
    cm_value last = x;
    size_t seen = 0;

    for (int i = 0; i < NODES; i++)
        last = i % 2 ? GRAPH_ADD(graph, "Add", last, x) : GRAPH_ADD(graph, "Relu", last);
    cm_graph_set_outputs(graph, &last, 1);
    for (const struct cm_node *node = graph->first; node; node = node->next)
        seen += cm_value_get(graph->module, node->outputs[0])->n_uses;
    CHECK_INT(graph->n_nodes, NODES);
    CHECK_INT(seen, NODES);
    CHECK_INT(count_uses(graph->module, x), NODES / 2 + 1);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 1);
}

void test_graph__a_hundred_thousand_nodes_take_less_than_a_second(void)
{
    check_in_arena(many);
}

static void drop_outputs(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena,
                                      GRAPH_HEAD "g (float[2,4] x, float[4] s) => (y) {\n"
                                                 "  y, m, d = LayerNormalization(x, s)\n"
                                                 "  p, q = Split<num_outputs = 2>(x)\n}",
                                      NULL);
    struct cm_node *norm = graph->first, *split = norm->next;
    const cm_value mean = norm->outputs[1];
    CHECK(!cm_node_drop_output(norm, 0)); /* read, and not optional */
    CHECK(cm_node_drop_output(norm, 1));
    CHECK(!cm_node_drop_output(norm, 1));
    CHECK_INT(norm->n_outputs, 3); /* the third is there */
    CHECK_INT(cm_graph_find(graph, CM_STR("m")), 0);
    CHECK(!cm_value_get(graph->module, mean)->node);
    CHECK(cm_node_drop_output(norm, 2));
    CHECK_INT(norm->n_outputs, 1);
    CHECK(!cm_node_drop_output(split, 1));
    CHECK_INT(split->n_outputs, 2);
}

void test_graph__outputs_nobody_reads_can_be_dropped_where_optional(void)
{
    check_in_arena(drop_outputs);
}

static void declare(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena,
                                      GRAPH_HEAD "g (float[N,4] x, int64[2] s) => (z)\n"
                                                 "<float[2,6] y> {\n"
                                                 "  y = Reshape(x, s)\n  z = Neg(y)\n}",
                                      NULL);
    struct cm_module *module = graph->module;
    struct cm_error err = {0};
    const cm_value y = graph->first->outputs[0], z = graph->last->outputs[0];
    const struct cm_type *declared = cm_value_get(module, y)->declared;
    CHECK(cm_type_is_concrete(cm_value_get(module, z)->fact.type));
    cm_value_declare(module, y, NULL);
    CHECK(graph->first->stale && !graph->last->stale);
    CHECK_OK(cm_node_retype(graph->first, &err), &err);
    CHECK(!graph->first->stale && graph->last->stale);
    CHECK_OK(cm_graph_retype(graph, &err), &err);
    CHECK(!cm_type_is_concrete(cm_value_get(module, z)->fact.type));
    cm_value_declare(module, y, declared);
    CHECK_OK(cm_graph_retype(graph, &err), &err);
    CHECK(cm_type_is_concrete(cm_value_get(module, z)->fact.type));
}

void test_graph__a_declared_type_can_be_taken_back(void)
{
    check_in_arena(declare);
}

static void tensor_attributes(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (int64[1] s) => (int64[N] y, float[N] z) {\n"
                            "  y = ConstantOfShape <value = int64[1] {7}> (s)\n"
                            "  z = ConstantOfShape (s) }",
                 NULL);
    struct cm_tensor tensor;
    struct cm_error err;

    CHECK_OK(cm_node_tensor(graph->first, "value", &tensor, &err), &err);
    CHECK_INT(cm_tensor_count(&tensor), 1);
    CHECK_INT(cm_tensor_int(&tensor, 0), 7);
    cm_tensor_drop(&tensor);
    CHECK_OK(cm_node_tensor(graph->last, "value", &tensor, &err), &err);
    CHECK_INT(cm_tensor_count(&tensor), 0);
    CHECK(tensor.data != NULL);
    cm_tensor_drop(&tensor);
}

void test_node__an_absent_tensor_counts_as_empty(void)
{
    check_in_arena(tensor_attributes);
}

/* A rule may take the element type of a result from an attribute; the schema has the last word. */
static void result_types(struct cm_arena *arena)
{
    struct cm_error err = {0};

    CHECK_FAILS(graph_try(arena, GRAPH_HEAD "m () => (y) { y = SequenceEmpty <dtype = 20> () }",
                          NULL, &err),
                CM_BAD_MODEL, &err,
                "output 0 'output' would be seq(float8e5m2fnuz[]), must be one of");
}

void test_node__a_result_that_the_schema_does_not_allow_is_refused(void)
{
    check_in_arena(result_types);
}

/* 60 functions that each call the one before twice: refused before anything is made. */
static void chain_of_functions(struct cm_arena *arena)
{
    struct cm_str text = cm_arena_printf(
        arena, GRAPH_HEAD "main (float[1] x) => (float[1] y) { y = local.f60(x) }\n" GRAPH_LOCAL
                          "f0 (x) => (y) { y = Neg(x) }\n");
    struct cm_error err = {0};

    for (int i = 1; i <= 60; i++)
        text = cm_arena_printf(
            arena, "%s" GRAPH_LOCAL "f%d (x) => (y) { a = local.f%d(x) y = local.f%d(a) }\n",
            text.data, i, i - 1, i - 1);
    const size_t held = arena->held;
    CHECK_FAILS(graph_try(arena, text.data, NULL, &err), CM_LIMIT, &err,
                "expanding its functions would make more than 1000000 nodes");
    CHECK(arena->held - held < 10 << 20);
}

void test_function__expansion_is_measured_before_it_is_made(void)
{
    check_in_arena(chain_of_functions);
}
