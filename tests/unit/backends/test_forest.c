/* Compiled forests against a plain walk of their description. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ml/forest_engine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "check.h"

#include <math.h>

enum { DEFERRED = 4, MEMBERS = 6 };

/* ---- an engine for one call ---- */

struct bench {
    struct cm_call call;
    struct cm_node node;
    struct cm_tensor x;
    const struct cm_tensor *in[1];
    struct cm_error err;
    struct cm_kept_state *own, **session; /* states of the session */
    struct cm_forest *forest;
    size_t scratch;
    cm_cleanup_fn *fn[DEFERRED];
    void *what[DEFERRED];
    int deferred;
};

static void want_scratch(struct cm_call *call, size_t size)
{
    ((struct bench *)call->engine_data)->scratch = size;
}

static void keep_for_later(struct cm_call *call, cm_cleanup_fn *fn, void *what)
{
    struct bench *b = call->engine_data;
    CHECK(b->deferred < DEFERRED);
    b->fn[b->deferred] = fn;
    b->what[b->deferred++] = what;
}

static void *find_state(struct cm_call *call, const struct cm_session_state *kind)
{
    return cm_kept_state_get(((struct bench *)call->engine_data)->session, kind);
}

static const struct cm_engine engine = {
    .scratch = want_scratch, .defer = keep_for_later, .session_state = find_state};

static void begin(struct bench *b, enum cm_dtype type, int64_t rows, int64_t features, void *data)
{
    *b = (struct bench){.x = cm_tensor_borrow(type, &CM_SHAPE(rows, features), data)};
    b->in[0] = &b->x;
    b->session = &b->own;
    b->call = (struct cm_call){.node = &b->node,
                               .n_in = 1,
                               .in = b->in,
                               .engine = &engine,
                               .engine_data = b,
                               .err = &b->err};
}

static void end(struct bench *b)
{
    while (b->deferred > 0) {
        b->deferred--;
        b->fn[b->deferred](b->what[b->deferred]);
    }
    cm_kept_states_free(&b->own);
}

/* Hands over the description in arg, and counts how often it was asked. */
struct description {
    struct cm_trees *trees;
    int *asked;
};

static enum cm_status take(struct cm_call *call, const void *arg, struct cm_trees *out)
{
    const struct description *d = arg;
    const struct cm_trees *from = d->trees;
    CM_TRY(cm_trees_init(out, from->n_nodes, from->n_weights, from->n_members, from->n_roots,
                         call->err));
    memcpy(out->nodes, from->nodes, from->n_nodes * sizeof *out->nodes);
    memcpy(out->weights, from->weights, from->n_weights * sizeof *out->weights);
    memcpy(out->members, from->members, from->n_members * sizeof *out->members);
    memcpy(out->roots, from->roots, from->n_roots * sizeof *out->roots);
    out->n_targets = from->n_targets;
    out->join = from->join;
    ++*d->asked;
    return CM_OK;
}

static enum cm_status compile(struct bench *b, struct cm_trees *trees)
{
    int asked = 0;
    const struct description description = {trees, &asked};
    return cm_forest_prepare(&b->call, take, &description, &b->forest);
}

struct scores {
    double *items;
    int32_t targets;
};

static void store(void *arg, int64_t row, double *scores, const bool *has_score)
{
    const struct scores *to = arg;
    for (int32_t t = 0; t < to->targets; t++)
        to->items[row * to->targets + t] = has_score[t] ? scores[t] : (double)NAN;
}

/* The scores of all rows, with this many threads; NaN where no leaf has a weight for a target. */
static double *run(struct bench *b, const struct cm_trees *trees, int threads)
{
    const int64_t rows = b->x.shape.dims[0];
    struct scores scores = {cm_calloc((size_t)(rows * trees->n_targets + 1), sizeof(double)),
                            trees->n_targets};
    struct cm_team *team = cm_team_new(threads);
    struct cm_team *before = cm_team_enter(team);
    b->call.scratch = cm_malloc_aligned(64, b->scratch + 64);
    CHECK(team && scores.items && b->call.scratch);
    cm_forest_run(&b->call, b->forest, store, &scores);
    cm_free(b->call.scratch);
    cm_team_enter(before);
    cm_team_free(team);
    return scores.items;
}

/* ---- the plain walk ---- */

static bool passes(const struct cm_trees *trees, const struct cm_tree_node *node, double x)
{
    if (isnan(x) && node->missing_is_true)
        return true;
    switch (node->test) {
    case CM_TREE_LEQ:
        return x <= node->value;
    case CM_TREE_LT:
        return x < node->value;
    case CM_TREE_GTE:
        return x >= node->value;
    case CM_TREE_GT:
        return x > node->value;
    case CM_TREE_EQ:
        return x == node->value;
    case CM_TREE_NEQ:
        return x != node->value;
    default:
        for (uint32_t i = 0; i < node->count; i++)
            if (trees->members[node->first + i] == x)
                return true;
        return false;
    }
}

static double joined(enum cm_tree_join join, double a, double b)
{
    return join == CM_TREE_MIN ? fmin(a, b) : join == CM_TREE_MAX ? fmax(a, b) : a + b;
}

static void walk(const struct cm_trees *trees, const struct cm_tensor *x, int64_t row, double *out)
{
    for (int32_t t = 0; t < trees->n_targets; t++)
        out[t] = (double)NAN;
    for (size_t r = 0; r < trees->n_roots; r++) {
        const struct cm_tree_node *node = &trees->nodes[trees->roots[r]];
        while (node->test != CM_TREE_LEAF)
            node = &trees->nodes[node->next[passes(
                trees, node, cm_tensor_real(x, row * x->shape.dims[1] + node->feature))]];
        for (uint32_t i = node->first; i < node->first + node->count; i++) {
            double *sum = &out[trees->weights[i].target];
            const double w = trees->weights[i].weight;
            *sum = isnan(*sum) ? w : joined(trees->join, *sum, w);
        }
    }
    for (int32_t t = 0; t < trees->n_targets && trees->join == CM_TREE_AVERAGE; t++)
        out[t] /= (double)trees->n_roots;
}

static bool is_close(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b) + 1);
}

static void check_forest(struct bench *b, struct cm_trees *trees)
{
    CHECK_OK(compile(b, trees), &b->err);
    double *one = run(b, trees, 1), *many = run(b, trees, 3), expected[8];
    CHECK(trees->n_targets <= 8);
    for (int64_t row = 0; row < b->x.shape.dims[0]; row++) {
        walk(trees, &b->x, row, expected);
        for (int32_t t = 0; t < trees->n_targets; t++)
            CHECK(is_close(one[row * trees->n_targets + t], expected[t]));
    }
    CHECK(memcmp(one, many, (size_t)(b->x.shape.dims[0] * trees->n_targets) * sizeof *one) == 0);
    cm_free(one);
    cm_free(many);
}

/* ---- random forests ---- */

struct chance {
    uint64_t state;
};

static uint32_t draw(struct chance *c, uint32_t below)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33) % below;
}

/* Small numbers that often meet, among them what is special. */
static double draw_value(struct chance *c)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.1, 1.0 / 3, -0.0, 1e300, 1e-300};
    return draw(c, 8) == 0 ? special[draw(c, CM_COUNT(special))] : (double)draw(c, 9) - 4;
}

/* A node for each place of the list, which leads to nodes after it: half of them to the two that
 * follow, others to any, so that nodes are shared. The last ones are leaves. */
static void fill_tree(struct chance *c, struct cm_trees *trees, uint32_t first, uint32_t count,
                      uint32_t tests, int features)
{
    const uint32_t leaves = count / 2 + 1;
    for (uint32_t i = 0; i < count; i++) {
        struct cm_tree_node *node = &trees->nodes[first + i];
        node->first = draw(c, (uint32_t)trees->n_weights - 2);
        if (i + leaves >= count) {
            node->test = CM_TREE_LEAF;
            node->count = tests & 128 ? draw(c, 3) : 1;
            continue;
        }
        node->test = (uint8_t)draw(c, 7);
        if (!(tests >> node->test & 1))
            node->test = CM_TREE_LEQ;
        node->feature = (int32_t)draw(c, (uint32_t)features);
        node->value = draw_value(c);
        node->missing_is_true = tests & 256 && draw(c, 2);
        node->first = (first + i) * MEMBERS;
        node->count = draw(c, MEMBERS + 1);
        for (int side = 0; side < 2; side++)
            node->next[side] =
                first + (draw(c, 2) && 2 * i + 2 < count ? 2 * i + 1 + (uint32_t)side
                                                         : i + 1 + draw(c, count - i - 1));
    }
}

/* tests: bits of enum cm_tree_test, 128 for leaves with any number of weights, 256 for missing
 * values. */
static void check_random(uint64_t seed, uint32_t tests, enum cm_dtype type, int64_t rows,
                         uint32_t n_trees)
{
    struct chance c = {seed};
    const uint32_t size = 1 + draw(&c, 60);
    const int features = 1 + (int)draw(&c, 5);
    struct cm_trees trees;
    struct bench b;
    double *reals = cm_calloc((size_t)(rows * features) + 1, sizeof *reals);
    float *floats = cm_calloc((size_t)(rows * features) + 1, sizeof *floats);
    CHECK(reals && floats);
    for (int64_t i = 0; i < rows * features; i++) {
        reals[i] = draw_value(&c);
        floats[i] = (float)reals[i];
    }
    begin(&b, type, rows, features, type == CM_FLOAT ? (void *)floats : (void *)reals);
    const size_t nodes = (size_t)size * n_trees;
    CHECK_OK(cm_trees_init(&trees, nodes, 50, nodes * MEMBERS, n_trees, &b.err), &b.err);
    trees.n_targets = 1 + (int32_t)draw(&c, 4);
    trees.join = (enum cm_tree_join)draw(&c, 4);
    for (size_t i = 0; i < trees.n_weights; i++)
        trees.weights[i] = (struct cm_tree_weight){(double)draw(&c, 1000) / 64 - 5,
                                                   (int32_t)draw(&c, (uint32_t)trees.n_targets)};
    for (size_t i = 0; i < trees.n_members; i++)
        trees.members[i] = (double)draw(&c, 9) - 4;
    for (uint32_t t = 0; t < n_trees; t++) {
        trees.roots[t] = t * size;
        fill_tree(&c, &trees, t * size, size, tests, features);
    }
    check_forest(&b, &trees);
    cm_trees_release(&trees);
    end(&b);
    cm_free(reals);
    cm_free(floats);
}

void test_forest__every_kind_of_test_agrees_with_a_plain_walk(void)
{
    static const int64_t rows[] = {1, 3, 8, 9, 40};
    for (uint32_t test = 0; test <= CM_TREE_MEMBER; test++)
        for (uint32_t more = 0; more < 4; more++)
            for (size_t r = 0; r < CM_COUNT(rows); r++) {
                check_random(test * 100 + r, 1u << test | more << 7, CM_FLOAT, rows[r], 3);
                check_random(test * 100 + r, 1u << test | more << 7, CM_DOUBLE, rows[r], 3);
            }
}

void test_forest__mixed_tests_agree_with_a_plain_walk(void)
{
    for (uint64_t seed = 0; seed < 300; seed++)
        check_random(seed, (uint32_t)seed * 37 | 1, seed % 3 ? CM_FLOAT : CM_DOUBLE,
                     1 + (int64_t)seed % 30, 1 + (uint32_t)seed % 12);
}

void test_forest__many_rows_and_trees_give_the_same_sums_with_any_threads(void)
{
    check_random(1, 511, CM_FLOAT, 3000, 200);
    check_random(2, 1, CM_FLOAT, 20000, 40);
    check_random(3, 1 | 128, CM_DOUBLE, 2001, 100);
    check_random(4, 511, CM_FLOAT, 5, 2000);
}

void test_forest__no_rows_and_no_trees_are_fine(void)
{
    check_random(1, 1, CM_FLOAT, 0, 3);
    check_random(2, 1, CM_FLOAT, 10, 0);
}

/* Numbers of columns and entries that do not fit in 32 bits together, and a depth that would
 * overflow a stack. */
void test_forest__a_chain_of_many_features_is_walked_to_its_end(void)
{
    enum { LENGTH = 70000, ROWS = 9 };
    struct cm_trees trees;
    struct bench b;
    float *x = cm_calloc((size_t)LENGTH * ROWS, sizeof *x);
    CHECK(x != NULL);
    begin(&b, CM_FLOAT, ROWS, LENGTH, x);
    CHECK_OK(cm_trees_init(&trees, LENGTH + 2, 2, 0, 1, &b.err), &b.err);
    trees.n_targets = 1;
    trees.join = CM_TREE_SUM;
    trees.weights[0].weight = 1;
    trees.weights[1].weight = 2;
    for (uint32_t i = 0; i < LENGTH; i++)
        trees.nodes[i] = (struct cm_tree_node){
            .test = CM_TREE_LEQ, .feature = (int32_t)i, .value = 0.5, .next = {LENGTH, i + 1}};
    trees.nodes[LENGTH - 1].next[1] = LENGTH + 1;
    trees.nodes[LENGTH] = (struct cm_tree_node){.test = CM_TREE_LEAF, .count = 1};
    trees.nodes[LENGTH + 1] = (struct cm_tree_node){.test = CM_TREE_LEAF, .first = 1, .count = 1};
    x[3 * LENGTH + 69999] = 1;
    x[7 * LENGTH + 5] = 1;
    check_forest(&b, &trees);
    cm_trees_release(&trees);
    end(&b);
    cm_free(x);
}

void test_forest__prepared_nodes_share_a_forest_until_the_last_is_gone(void)
{
    float x[6] = {0};
    int asked = 0;
    struct cm_trees trees;
    struct bench a, b, wider, elsewhere;
    struct cm_kept_state *session = NULL;
    begin(&a, CM_FLOAT, 1, 2, x);
    begin(&b, CM_FLOAT, 3, 2, x);
    begin(&wider, CM_FLOAT, 1, 3, x);
    begin(&elsewhere, CM_FLOAT, 1, 2, x); /* in a session of its own */
    elsewhere.call.node = b.call.node = wider.call.node = a.call.node;
    a.session = b.session = wider.session = &session;
    CHECK_OK(cm_trees_init(&trees, 1, 1, 0, 1, &a.err), &a.err);
    trees.n_targets = 1;
    trees.nodes[0] = (struct cm_tree_node){.test = CM_TREE_LEAF, .count = 1};
    const struct description d = {&trees, &asked};
    CHECK_OK(cm_forest_prepare(&a.call, take, &d, &a.forest), &a.err);
    CHECK_OK(cm_forest_prepare(&b.call, take, &d, &b.forest), &b.err);
    CHECK(a.forest == b.forest);
    CHECK_INT(asked, 1);
    CHECK_OK(cm_forest_prepare(&wider.call, take, &d, &wider.forest), &wider.err);
    CHECK(wider.forest != a.forest);
    CHECK_INT(asked, 2);
    CHECK_OK(cm_forest_prepare(&elsewhere.call, take, &d, &elsewhere.forest), &elsewhere.err);
    CHECK(elsewhere.forest != a.forest);
    CHECK_INT(asked, 3);
    end(&elsewhere);
    end(&a);
    cm_free(run(&b, &trees, 1));
    end(&b);
    end(&wider);
    CHECK_OK(cm_forest_prepare(&a.call, take, &d, &a.forest), &a.err);
    CHECK_INT(asked, 4);
    end(&a);
    cm_kept_states_free(&session);
    cm_trees_release(&trees);
}

void test_forest__every_allocation_may_fail(void)
{
    float x[2] = {0};
    struct cm_trees trees;
    struct bench b;
    enum cm_status status = CM_NO_MEMORY;
    begin(&b, CM_FLOAT, 1, 2, x);
    CHECK_OK(cm_trees_init(&trees, 2, 4, 0, 2, &b.err), &b.err);
    trees.n_targets = 2;
    trees.weights[1].target = 1;
    trees.nodes[0] = (struct cm_tree_node){.test = CM_TREE_EQ, .next = {1, 1}};
    trees.nodes[1] = (struct cm_tree_node){.test = CM_TREE_LEAF, .count = 2};
    for (uint64_t n = 1; status; n++) {
        CHECK(n < 100);
        cm_memory_fail_after(n);
        status = compile(&b, &trees);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || status == CM_NO_MEMORY);
        end(&b);
    }
    cm_trees_release(&trees);
}

/* ---- refusals: what no operator's lists can say, but a description can ---- */

void test_forest__indices_of_a_description_are_checked(void)
{
    static const struct {
        struct cm_tree_node node;
        const char *says;
    } rows[] = {
        {{.test = CM_TREE_LEQ, .next = {0, 1}}, "the tree has a cycle"},
        {{.test = CM_TREE_LEQ, .next = {1, 2}}, "leads to node 2 of 2"},
        {{.test = CM_TREE_LEQ, .feature = 1, .next = {1, 1}}, "reads feature 1"},
        {{.test = CM_TREE_LEQ, .feature = -1, .next = {1, 1}}, "reads feature -1"},
        {{.test = CM_TREE_MEMBER, .next = {1, 1}, .first = 2}, "past the 1 there are"},
        {{.test = CM_TREE_MEMBER, .next = {1, 1}, .count = 2}, "past the 1 there are"},
        {{.test = CM_TREE_LEAF, .first = 1, .count = 1}, "past the 1 there are"},
        {{.test = CM_TREE_LEAF + 1}, "has mode 8"},
    };
    float x = 0;
    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cm_trees trees;
        struct bench b;
        begin(&b, CM_FLOAT, 1, 1, &x);
        CHECK_OK(cm_trees_init(&trees, 2, 1, 1, 1, &b.err), &b.err);
        trees.n_targets = 1;
        trees.nodes[0] = rows[i].node;
        trees.nodes[1] = (struct cm_tree_node){.test = CM_TREE_LEAF, .count = 1};
        CHECK_FAILS(compile(&b, &trees), CM_BAD_MODEL, &b.err, rows[i].says);
        cm_trees_release(&trees);
        end(&b);
    }
}
