/* Models become modules: nested graphs, functions, attribute references, and what is refused. */
// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.h"
#include "graph/import.h"
#include "graph_case.h"
#include "onnx/syntax.h"

static void outer_names(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena,
        GRAPH_HEAD
        "main (float[2] x, bool c) => (float[2] y) {\n"
        "  k = Add(x, x)\n"
        "  y = If (c) <then_branch = yes () => (float[2] r) { t = Add(k, x) r = Neg(t) },\n"
        "              else_branch = no () => (float[2] r) { t = Mul(k, x) r = Abs(t) }>\n"
        "}",
        NULL);
    struct cm_module *module = graph->module;
    const cm_value k = cm_graph_find(graph, CM_STR("k"));

    CHECK_INT(cm_value_get(module, k)->n_uses, 2); /* once in each branch */
    CHECK(cm_value_get(module, k)->uses->graph->parent == graph);
    CHECK_INT(cm_graph_find(graph, CM_STR("t")), 0);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_bool(arena, true)), -3, 6);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_bool(arena, false)), 2, 8);
}

void test_import__branches_read_outer_names_and_share_none_of_their_own(void)
{
    check_in_arena(outer_names);
}

static void shadowed(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float[2] x, bool c) => (float[2] y) {\n"
                          "  t = Add(x, x)\n"
                          "  y = If (c) <then_branch = yes () => (float[2] t) { t = Neg(x) },\n"
                          "              else_branch = no () => (float[2] r) { r = Abs(x) }>\n"
                          "}",
                          NULL, &err),
                CM_BAD_MODEL, &err, "'t' is defined twice");
    CHECK_FAILS(graph_try(arena, GRAPH_HEAD "main (float[2] x) => (float[2] y) { y = Add(x, z) }",
                          NULL, &err),
                CM_BAD_MODEL, &err, "reads 'z', which nothing before it defines");
    CHECK_FAILS(
        graph_try(arena, GRAPH_HEAD "main (float[2] x) => (float[2] y) { z = Neg(x) }", NULL, &err),
        CM_BAD_MODEL, &err, "output 'y' is never computed");
}

void test_import__names_are_defined_once_and_somewhere(void)
{
    check_in_arena(shadowed);
}

static void functions(struct cm_arena *arena)
{
    /* the names inside are those of the caller, and mean something else */
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float[2] a) => (float[2] y) {\n"
                            "  b = local.plus_square(a)\n"
                            "  y = local.square(b)\n"
                            "}\n" GRAPH_LOCAL "square (a) => (b) { b = Mul(a, a) }\n" GRAPH_LOCAL
                            "plus_square (b) => (a) {\n"
                            "  c = local.square(b)\n"
                            "  a = Add(c, b)\n"
                            "}",
                 NULL);

    CHECK_INT(graph->n_nodes, 2);
    CHECK(graph->first->function && !graph->first->schema);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -3)), 4, 36);
}

void test_import__functions_call_functions(void)
{
    check_in_arena(functions);
}

static void references(struct cm_arena *arena)
{
    const char *text = GRAPH_HEAD "main (float[2] x) => (float[2] y) {\n"
                                  "  a = local.scaled <by = 10.0> (x)\n"
                                  "  b = local.scaled(a)\n"
                                  "  y = local.again <by = 2.0> (b)\n"
                                  "}\n" GRAPH_LOCAL "scaled <by: float = 3.0> (x) => (y) {\n"
                                  "  f = Constant <value_float: float = @by> ()\n"
                                  "  y = Mul(x, f)\n"
                                  "}\n" GRAPH_LOCAL "again <by> (x) => (y) {\n"
                                  "  t = local.scaled <by: float = @by> (x)\n"
                                  "  y = local.scaled(t)\n"
                                  "}";

    CHECK_GIVES(arena, graph_of(arena, text, NULL), INPUTS(FLOATS(arena, 1, 2)), 180, 360);
}

void test_import__attribute_references_take_the_call_then_the_default(void)
{
    check_in_arena(references);
}

static void absent(struct cm_arena *arena)
{
    const char *text =
        GRAPH_HEAD "main (float[3] x, float low, float high) => (float[3] a, float[3] b) {\n"
                   "  a = local.bounded(x, low, high)\n"
                   "  b = local.bounded(x, , high)\n"
                   "}\n" GRAPH_LOCAL "bounded (x, low, high) => (y) { y = Clip(x, low, high) }";
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_datum *low = FLOATS(arena, -1), *high = FLOATS(arena, 1);
    low->tensor.shape = high->tensor.shape = CM_SCALAR;
    const struct cm_datum *const in[] = {FLOATS(arena, -5, 0.5F, 5), low, high};

    CHECK_GIVES(arena, graph, in, -1, 0.5F, 1);
    const cm_value second = graph->outputs[1].value;
    cm_graph_set_outputs(graph, &second, 1);
    CHECK_GIVES(arena, graph, in, -5, 0.5F, 1);
}

void test_import__an_operand_the_call_leaves_out_is_absent_in_the_function(void)
{
    check_in_arena(absent);
}

static void unknown(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float[2] x, bool c) => (float[2] y) {\n"
                          "  a = Frobnicate(x)\n"
                          "  b = local.unheard(a)\n"
                          "  d = Frobnicate(b)\n"
                          "  y = If (c) <then_branch = yes () => (float[2] r) { r = Twiddle(d) },\n"
                          "              else_branch = no () => (float[2] r) { r = Neg(d) }>\n"
                          "}",
                          NULL, &err),
                CM_UNSUPPORTED, &err, "for 4 reasons");
    CHECK(strstr(err.text, "node making 'a' (Frobnicate): opset "));
    CHECK(strstr(
        err.text,
        "node making 'b' (local.unheard): operator 'unheard' of domain 'local' is not supported"));
    CHECK(strstr(err.text, "node making 'd' (Frobnicate)"));
    CHECK(strstr(err.text, "body 'then_branch': node making 'r' (Twiddle)"));
}

void test_import__all_unknown_operators_are_named_at_once(void)
{
    check_in_arena(unknown);
}

/* The reasons that importing a text gives, by place; "" past the last. */
static const struct cm_finding *finding_at(const struct cm_findings *list, size_t i)
{
    static const struct cm_finding none = {.place = {"", 0}, .reason = {"", 0}};
    return i < list->count ? &list->items[i] : &none;
}

static void import_all(struct cm_arena *arena, const char *text, struct cm_findings *list)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    const struct cm_import_options options = {.findings = list};
    struct cm_graph *graph;
    struct cm_error err = {0};
    *list = (struct cm_findings){.arena = arena};
    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, &err), &err);
    CHECK(cm_module_import(cm_module_new(arena, NULL), model, &options, &graph, &err) != CM_OK);
    CHECK_INT(list->total, list->count);
}

#define CHECK_OBSTACLE(list, i, where, why)                                                        \
    do {                                                                                           \
        CHECK_STRING(finding_at(&(list), (i))->place.data, (where));                               \
        if (!strstr(finding_at(&(list), (i))->reason.data, (why)))                                 \
            fail_msg("'%s' should say '%s'", finding_at(&(list), (i))->reason.data, (why));        \
    } while (0)

static void goes_on(struct cm_arena *arena)
{
    struct cm_findings list;
    import_all(arena,
               GRAPH_HEAD "main (float[2] x, bool[2] b, string[2] s, bool c) => (float[2] y) {\n"
                          "  [add] p = Add(b, b)\n"
                          "  q = Relu(p)\n" /* follows from the first */
                          "  r = Add(q, s)\n"
                          "  [root] t = Sqrt(s)\n"
                          "  u = Softmax<axis = 5>(x)\n"
                          "  v = Concat<axis = \"one\">(x, x)\n"
                          "  w = Neg(nobody)\n"
                          "  y = Neg(q)\n"
                          "}",
               &list);
    CHECK_INT(list.count, 5);
    CHECK_OBSTACLE(list, 0, "node 'add' (Add)", "is bool[2], must be one of");
    CHECK_OBSTACLE(list, 1, "node 'root' (Sqrt)", "is string[2], must be one of");
    CHECK_OBSTACLE(list, 2, "node making 'u' (Softmax)", "axis 5");
    CHECK_OBSTACLE(list, 3, "node making 'v' (Concat)", "axis");
    CHECK_OBSTACLE(list, 4, "node making 'w' (Neg)", "nothing before it defines");
}

void test_import__a_node_that_fails_does_not_hide_the_others(void)
{
    check_in_arena(goes_on);
}

static void goes_on_inside(struct cm_arena *arena)
{
    struct cm_findings list;
    import_all(
        arena,
        GRAPH_HEAD
        "main (float[2] x, bool[2] b, bool c) => (float[2] y, float[2] z, float[2] w) {\n"
        "  [if] y = If (c) <then_branch = yes () => (float[2] r) { d = Add(b, b) r = Neg(d) },\n"
        "              else_branch = no () => (float[2] r) { d = Neg(x) r = Add(d, b) }>\n"
        "  z = Abs(y)\n"
        "  w = local.twice(x, b)\n"
        "  v = local.twice(x, b)\n"
        "}\n" GRAPH_LOCAL "twice (p, q) => (s) { [in] t = Sqrt(q) u = Exp(q) s = Add(t, u) }",
        &list);
    CHECK_INT(list.count, 4);
    CHECK_OBSTACLE(list, 0, "node 'if' (If): body 'then_branch': node making 'd' (Add)", "bool[2]");
    CHECK_OBSTACLE(list, 1, "node 'if' (If): body 'else_branch': node making 'r' (Add)", "bool[2]");
    CHECK_OBSTACLE(list, 2, "function 'twice': node 'in' (Sqrt)", "bool[2]");
    CHECK_OBSTACLE(list, 3, "function 'twice': node making 'u' (Exp)", "bool[2]");
}

void test_import__bodies_and_functions_go_on_too_and_each_place_counts_once(void)
{
    check_in_arena(goes_on_inside);
}

/* A graph that a function has as default of an attribute is built like any other. */
static void default_graphs(struct cm_arena *arena)
{
    struct cm_findings list;
    import_all(arena,
               GRAPH_HEAD "main (bool c) => (float[1] y) { y = local.f(c) }\n" GRAPH_LOCAL
                          "f <t: graph = th () => (float[1] a) { a = Nonsense() }>(c) => (y) {\n"
                          "  y = If <then_branch: graph = @t, else_branch: graph = @t> (c) }",
               &list);
    CHECK_INT(list.count, 1);
    CHECK_OBSTACLE(list, 0, "function 'f': node making 'a' (Nonsense)",
                   "does not have this operator");
}

void test_import__a_default_graph_that_cannot_be_built_is_told(void)
{
    check_in_arena(default_graphs);
}

/* What was told of one branch is no word on what comes after it. */
static void after_a_branch(struct cm_arena *arena)
{
    struct cm_findings list;
    import_all(
        arena,
        GRAPH_HEAD
        "main (float[2] c) => (float[2] never, float[2] y) {\n"
        "  y = If (nobody) <then_branch = t () => (float[2] a) { a = Nonsense(c) },\n"
        "      else_branch = e () => (float[2] b) <float[2] w = {1, 2}, float[2] w = {3, 4}>\n"
        "        { b = Add(c, w) }> }",
        &list);
    CHECK_INT(list.count, 4);
    CHECK_OBSTACLE(list, 0, "node making 'y' (If): body 'then_branch': node making 'a' (Nonsense)",
                   "does not have this operator");
    CHECK_OBSTACLE(list, 1, "node making 'y' (If)", "nothing before it defines");
    CHECK_OBSTACLE(list, 2, "node making 'y' (If): body 'else_branch': initializer 'w'",
                   "defined twice");
    CHECK_OBSTACLE(list, 3, "", "output 'never' is never computed");
}

void test_import__a_branch_that_fails_does_not_hide_what_follows(void)
{
    check_in_arena(after_a_branch);
}

/* Ten levels of functions, each calling the next twenty times; the last one fails. */
static void fails_for_ever(struct cm_arena *arena)
{
    enum { LEVELS = 10, CALLS = 20 };
    char text[16000];
    struct cm_error err = {0};
    size_t used = (size_t)snprintf(text, sizeof text, "%s%s", GRAPH_HEAD,
                                   "main (bool[2] x) => (bool[2] y) { y = local.f0(x) }\n");
    for (int level = 0; level < LEVELS; level++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%sf%d (a) => (b) {", GRAPH_LOCAL,
                                 level);
        for (int call = 0; call < CALLS; call++)
            used += (size_t)snprintf(text + used, sizeof text - used, " c%d = local.f%d(a)", call,
                                     level + 1);
        used += (size_t)snprintf(text + used, sizeof text - used, " b = And(c0, c1) }\n");
    }
    snprintf(text + used, sizeof text - used, "%sf%d (a) => (b) { b = Sqrt(a) }", GRAPH_LOCAL,
             LEVELS);
    /* Without a budget of nodes, which would refuse it at once. */
    const struct cm_module_options options = {.node_budget = SIZE_MAX / 2};
    CHECK_FAILS(graph_try(arena, text, &options, &err), CM_BAD_MODEL, &err, "is bool[2], must be");
    CHECK_FAILS(graph_try(arena, text, NULL, &err), CM_LIMIT, &err, "would make more than");
}

void test_import__going_on_has_an_end(void)
{
    check_in_arena(fails_for_ever);
}

static void long_list(struct cm_arena *arena)
{
    struct cm_findings list = {.arena = arena};
    struct cm_error err = {0};
    CHECK_OK(cm_findings_fail(&list, &err), &err);
    for (int i = 0; i < CM_FINDINGS_MAX + 5; i++)
        cm_findings_add(&list, CM_BAD_MODEL, cm_arena_printf(arena, "node %d", i), "it is bad");
    CHECK_INT(list.count, CM_FINDINGS_MAX);
    CHECK_INT(list.total, CM_FINDINGS_MAX + 5);
    CHECK_FAILS(cm_findings_fail(&list, &err), CM_BAD_MODEL, &err,
                "for 10005 reasons: node 0: it is bad; node 1: it is bad; ");
    CHECK(strstr(err.text, "; and 99"));
}

void test_obstacles__the_list_is_limited_and_the_message_says_how_many(void)
{
    check_in_arena(long_list);
}

static void cycles(struct cm_arena *arena)
{
    struct cm_error err = {0};
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD
                          "main (float[2] x) => (float[2] y) { y = local.ping(x) }\n" GRAPH_LOCAL
                          "ping (a) => (b) { b = local.pong(a) }\n" GRAPH_LOCAL
                          "pong (a) => (b) { b = local.ping(a) }",
                          NULL, &err),
                CM_LIMIT, &err, "functions call each other more than 100 deep");
}

void test_import__functions_that_call_each_other_in_a_circle_are_refused(void)
{
    check_in_arena(cycles);
}

/* Twenty functions, each calling the one before it ten times: 10^20 nodes. */
static void laughs(struct cm_arena *arena)
{
    struct cm_str text = cm_arena_printf(
        arena, "%s",
        GRAPH_HEAD "main (float[2] x) => (float[2] y) { y = local.f19(x) }\n" GRAPH_LOCAL
                   "f0 (a) => (b) { b = Neg(a) }\n");
    struct cm_error err = {0};

    for (int i = 1; i < 20; i++) {
        struct cm_str body = cm_arena_printf(arena, "t0 = Neg(a)");
        for (int k = 0; k < 10; k++)
            body = cm_arena_printf(arena, "%s t%d = local.f%d(t%d)", body.data, k + 1, i - 1, k);
        text = cm_arena_printf(arena, "%s" GRAPH_LOCAL "f%d (a) => (b) { %s b = Neg(t10) }\n",
                               text.data, i, body.data);
    }
    CHECK_FAILS(graph_try(arena, text.data, &(struct cm_module_options){.node_budget = 5000}, &err),
                CM_LIMIT, &err, "more than 5000 nodes");
}

void test_import__functions_that_multiply_beyond_the_budget_are_refused(void)
{
    check_in_arena(laughs);
}

static void nesting(struct cm_arena *arena)
{
    struct cm_str body = CM_STR("r = Neg(x)");
    struct cm_error err = {0};

    for (int i = 0; i < 12; i++)
        body = cm_arena_printf(arena,
                               "%s = If (c) <then_branch = t () => (float[2] r) { %s }, "
                               "else_branch = e () => (float[2] r) { r = Abs(x) }>",
                               i < 11 ? "r" : "y", body.data);
    const struct cm_str text = cm_arena_printf(
        arena, GRAPH_HEAD "main (float[2] x, bool c) => (float[2] y) { %s }", body.data);
    CHECK_OK(graph_try(arena, text.data, NULL, &err), &err);
}

void test_import__a_dozen_nested_branches_are_fine(void)
{
    check_in_arena(nesting);
}

static void absent_condition(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float x, int64 n) => (float[k] y) {\n"
                            "  y = Loop (n, \"\") <body = b (int64 i, bool c) => (bool d, float s) "
                            "{ d = Identity(c) s = Neg(x) }>\n"
                            "}",
                 NULL);
    struct cm_datum *x = graph_floats(arena, 1, (const float[]){3});
    x->tensor.shape = CM_SCALAR;
    CHECK_INT(graph->first->n_inputs, 2); /* as many as the schema asks for */
    CHECK_GIVES(arena, graph, INPUTS(x, graph_int(arena, 2)), -3, -3);
}

void test_import__operands_left_out_at_the_end_count_where_the_schema_asks_for_them(void)
{
    check_in_arena(absent_condition);
}

static void unknown_sizes(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena, GRAPH_HEAD "main (float[-1] x) => (float[-1] y) { y = Neg(x) }", NULL);
    const struct cm_type *x = cm_value_get(graph->module, graph->inputs[0])->fact.type;
    CHECK_INT(x->rank, 1);
    CHECK(!cm_dim_known(x->dims[0]));
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 3)), -1, -2, -3);
}

void test_import__a_dimension_of_minus_1_is_unknown(void)
{
    check_in_arena(unknown_sizes);
}

static void sparse(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float[4] x) => (float[4] y)\n"
                            "<sparse_tensor[4] {float[2] s {5, 7}, int64[2] {1, 3}}>\n"
                            "{ y = Add(x, s) }",
                 NULL);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 3, 4)), 1, 7, 3, 11);
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD "main (float[4] x) => (float[4] y)\n"
                                     "<sparse_tensor[4] {float[1] s {5}, int64[1] {4}}>\n"
                                     "{ y = Add(x, s) }",
                          NULL, &err),
                CM_BAD_MODEL, &err,
                "sparse initializer 's': Constant: index 0 of sparse_value is outside");
    CHECK_FAILS(graph_try(arena,
                          GRAPH_HEAD "main (float[4] s) => (float[4] y)\n"
                                     "<sparse_tensor[4] {float[1] s {5}, int64[1] {3}}>\n"
                                     "{ y = Neg(s) }",
                          NULL, &err),
                CM_BAD_MODEL, &err, "'s' is defined twice");
}

void test_import__sparse_initializers_are_dense_constants(void)
{
    check_in_arena(sparse);
}
