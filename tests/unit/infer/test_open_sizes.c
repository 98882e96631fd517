/* Sizes for dimensions that a model leaves open. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"
#include "infer/open_sizes.h"

/* Finds the sizes of all inputs of a model; settings may be NULL. */
static void find(struct cm_arena *arena, const char *text, const struct cm_size_setting *setting,
                 struct cm_open_sizes *out)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_size_input *inputs = CM_NEW_ARRAY(arena, struct cm_size_input, graph->n_inputs);
    const struct cm_size_options options = {
        .inputs = inputs, .settings = setting, .n_settings = setting ? 1 : 0, .batch = 1};
    struct cm_error err = {0};

    for (size_t i = 0; i < graph->n_inputs; i++)
        inputs[i].is_open = true;
    CHECK_OK(cm_open_sizes_find(graph, &options, out, &err), &err);
}

static int64_t size_of(const struct cm_open_sizes *sizes, const char *symbol)
{
    for (size_t i = 0; i < sizes->count; i++)
        if (cm_str_is(sizes->items[i].symbol, symbol))
            return sizes->items[i].size;
    fail_msg("there is no size '%s'", symbol);
    return 0;
}

static void names(struct cm_arena *arena)
{
    struct cm_open_sizes sizes;

    find(arena,
         GRAPH_HEAD "g (float[batch_size,C,height,W] x, int64[N,seq_len] ids, float[N,K] wav)\n"
                    " => (float[batch_size,C,height,W] y) { y = Neg(x) }",
         NULL, &sizes);
    CHECK(sizes.fits);
    CHECK_INT(size_of(&sizes, "batch_size"), 1);
    CHECK_INT(size_of(&sizes, "C"), 3);
    CHECK_INT(size_of(&sizes, "height"), 224);
    CHECK_INT(size_of(&sizes, "W"), 224);
    CHECK_INT(size_of(&sizes, "seq_len"), 16);
    CHECK_INT(size_of(&sizes, "K"), 16000);
}

void test_open_sizes__are_guessed_from_names_and_places(void)
{
    check_in_arena(names);
}

static void weights(struct cm_arena *arena)
{
    struct cm_open_sizes sizes;

    find(arena,
         GRAPH_HEAD "g (float[N,D] x, float[7,D2] w) => (float[N,D2] y)\n"
                    "{ y = MatMul(x, w) }",
         NULL, &sizes);
    CHECK(sizes.fits);
    CHECK_INT(size_of(&sizes, "D"), 7);
}

void test_open_sizes__follow_what_a_refused_node_mentions(void)
{
    check_in_arena(weights);
}

/* 3 * side * side elements become rows of 3072. */
static void flattened(struct cm_arena *arena)
{
    struct cm_open_sizes sizes;

    find(arena,
         GRAPH_HEAD "g (float[N,C,H,W] x, float[3072,10] w) => (float[N,10] y)\n"
                    "{ f = Flatten(x) y = MatMul(f, w) }",
         NULL, &sizes);
    CHECK(sizes.fits);
    CHECK_INT(size_of(&sizes, "C") * size_of(&sizes, "H") * size_of(&sizes, "W"), 3072);
}

void test_open_sizes__of_an_image_change_together(void)
{
    check_in_arena(flattened);
}

static void formulas(struct cm_arena *arena)
{
    struct cm_open_sizes sizes;
    const struct cm_size_setting past = {CM_STR("past"), 5};

    find(arena,
         GRAPH_HEAD
         "g (float[N,past] a, float[N,seq] b, float[N,\"past + 2*seq\"] c) => (float[N,M] y)\n"
         "{ y = Concat<axis = 1>(a, b, b) z = Add(y, c) }",
         &past, &sizes);
    CHECK(sizes.fits);
    CHECK_INT(size_of(&sizes, "past"), 5);
    CHECK_INT(size_of(&sizes, "past + 2*seq"), 5 + 2 * size_of(&sizes, "seq"));
}

void test_open_sizes__may_be_expressions_of_others(void)
{
    check_in_arena(formulas);
}

static void unknown_rank(struct cm_arena *arena)
{
    struct cm_open_sizes sizes;

    find(arena, GRAPH_HEAD "g (float[] x, float[8,3,5,5] w) => (float[] y) { y = Conv(x, w) }",
         NULL, &sizes);
    CHECK(sizes.fits);
    CHECK_INT(sizes.types[0]->rank, 4);
    CHECK_INT(sizes.types[0]->dims[1].value, 3);
}

void test_open_sizes__include_the_rank(void)
{
    check_in_arena(unknown_rank);
}

static void impossible(struct cm_arena *arena)
{
    struct cm_open_sizes sizes;

    find(arena,
         GRAPH_HEAD "g (float[2,N] x, float[3,2] a, float[4,2] b) => (float[2,2] y)\n"
                    "{ p = MatMul(x, a) q = MatMul(x, b) y = Add(p, q) }",
         NULL, &sizes);
    CHECK(!sizes.fits);
    CHECK(strstr(sizes.refusal, "MatMul"));
}

void test_open_sizes__that_do_not_exist_are_told(void)
{
    check_in_arena(impossible);
}

static void wrong(struct cm_arena *arena)
{
    const char *text = GRAPH_HEAD "g (float[N,4] x) => (float[N,4] y) { y = Neg(x) }";
    struct cm_graph *graph = graph_of(arena, text, NULL);
    const struct cm_shape shape = {.rank = 2, .dims = {2, 5}};
    struct cm_size_input input = {.is_open = true};
    struct cm_size_setting setting = {CM_STR("M"), 3};
    struct cm_size_options options = {
        .inputs = &input, .settings = &setting, .n_settings = 1, .batch = 1};
    struct cm_open_sizes sizes;
    struct cm_error err = {0};

    CHECK_FAILS(cm_open_sizes_find(graph, &options, &sizes, &err), CM_NOT_FOUND, &err,
                "no open dimension is called 'M'; of the inputs that are made up there are N");
    input.shape = &shape;
    options.n_settings = 0;
    CHECK_FAILS(cm_open_sizes_find(graph_of(arena, text, NULL), &options, &sizes, &err),
                CM_BAD_ARGUMENT, &err, "dimension 1 is 4 in the model, the shape given has 5");
    setting.symbol = CM_STR("N");
    options.n_settings = 1;
    input.shape = &(const struct cm_shape){.rank = 2, .dims = {2, 4}};
    CHECK_FAILS(cm_open_sizes_find(graph_of(arena, text, NULL), &options, &sizes, &err),
                CM_BAD_ARGUMENT, &err, "which is 2 elsewhere");
}

void test_open_sizes__that_are_given_must_be_possible(void)
{
    check_in_arena(wrong);
}
