/* The executor against the plain interpreter: thousands of random models, several shapes each, the
 * same bits or the same refusal. */
// SPDX-License-Identifier: Apache-2.0
#include "exec_case.h"
#include "random_graph.h"

enum { SETS = 4, INPUTS_ = 4, MOST = 8 };

struct set {
    const struct cm_datum *in[INPUTS_];
    struct cm_datum expected[MOST];
    enum cm_status status;
};

struct trial {
    struct random_graph graph;
    uint64_t state;
    struct set sets[SETS];
    size_t agreed, refused;
};

static struct cm_datum *random_floats(struct cm_arena *arena, struct trial *t,
                                      const struct cm_shape *shape)
{
    struct cm_datum *datum = exec_ramp(arena, shape, 0);
    float *data = datum->tensor.data;
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        data[i] = (float)random_below(&t->state, 33) / 8 - 2;
    return datum;
}

/* Sets 0 and 1 have the same shapes and other data. */
static void make_set(struct cm_arena *arena, struct trial *t, size_t i)
{
    const int64_t a = i < 2 ? 2 : 1 + (int64_t)random_below(&t->state, 4);
    const int64_t b = i < 2 ? 3 : 1 + (int64_t)random_below(&t->state, 4);
    struct set *set = &t->sets[i];
    memset(set, 0, sizeof *set);
    set->in[0] = random_floats(arena, t, &CM_SHAPE(a, b));
    set->in[1] = random_floats(arena, t, &CM_SHAPE(a, b));
    set->in[2] = random_floats(arena, t, &CM_SHAPE(b));
    set->in[3] = graph_int(arena, (int64_t)random_below(&t->state, 4));
}

/* For some outputs the caller brings memory, filled with something else. */
static void bring_memory(struct trial *t, const struct set *set, struct cm_datum *out)
{
    for (size_t o = 0; o < t->graph.n_outputs; o++) {
        struct cm_error err = {0};
        out[o] = (struct cm_datum){0};
        if (set->status || random_below(&t->state, 3))
            continue;
        const struct cm_tensor *like = &set->expected[o].tensor;
        CHECK_OK(cm_tensor_new(like->type, &like->shape, &out[o].tensor, &err), &err);
        memset(out[o].tensor.data, 0xa5, cm_tensor_bytes(like));
        out[o].kind = CM_KIND_TENSOR;
    }
}

static void run_once(struct trial *t, struct cm_session *session, const struct set *set)
{
    struct cm_datum out[MOST];
    struct cm_error err = {0};
    bring_memory(t, set, out);
    const enum cm_status status =
        cm_session_run(session, set->in, INPUTS_, out, t->graph.n_outputs, NULL, &err);
    if ((status != CM_OK) != (set->status != CM_OK))
        fail_msg("the session says %s, the interpreter %s: %s\n%s", cm_status_name(status),
                 cm_status_name(set->status), err.text, t->graph.text);
    for (size_t o = 0; o < t->graph.n_outputs; o++) {
        if (!status && !exec_same(&out[o], &set->expected[o]))
            fail_msg("output %zu, '%s', differs\n%s", o, t->graph.outputs[o], t->graph.text);
        cm_datum_drop(&out[o]);
    }
    t->agreed += !status;
    t->refused += status != CM_OK;
}

static void try_model(struct cm_arena *arena, struct trial *t, uint64_t seed)
{
    static const size_t order[] = {0, 1, 0, 2, 3, 1, 2, 0};
    t->state = seed * 2 + 1;
    random_graph_make(&t->graph, seed);
    struct cm_graph *graph = random_graph_import(arena, &t->graph);
    for (size_t i = 0; i < SETS; i++) {
        struct cm_error err = {0};
        make_set(arena, t, i);
        t->sets[i].status =
            cm_graph_eval(graph, t->sets[i].in, INPUTS_, t->sets[i].expected, NULL, &err);
    }
    /* Passes that may not change a bit; the others may round another way. */
    static const char *const passes[] = {"fold", "simplify,fold,merge,regions", "regions", ""};
    static const char *const backends[] = {"reference", "cpu"};
    const struct cm_session_options options = {.threads = 1 + (int)(seed % 2),
                                               .backend = backends[seed / 8 % 2]};
    struct cm_session *session = exec_open_after(arena, graph, passes[seed / 2 % 4], &options);
    for (size_t i = 0; i < SETS; i++) /* a node that failed may be one that nobody needs */
        if (t->sets[i].status)
            t->sets[i].status =
                cm_graph_eval(graph, t->sets[i].in, INPUTS_, t->sets[i].expected, NULL, NULL);
    for (size_t i = 0; i < CM_COUNT(order); i++)
        run_once(t, session, &t->sets[order[i]]);
    for (size_t i = 0; i < SETS; i++)
        for (size_t o = 0; o < t->graph.n_outputs && !t->sets[i].status; o++)
            cm_datum_drop(&t->sets[i].expected[o]);
}

static uint64_t first_seed, seeds;
static struct trial trial;

static void try_model_in(struct cm_arena *arena)
{
    try_model(arena, &trial, first_seed++);
}

/* CAMEO_TEST_SEED and CAMEO_TEST_SEEDS look further, or at one model again. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

void test_differential__random_models_give_the_interpreters_bits(void)
{
    first_seed = setting("CAMEO_TEST_SEED", 1);
    seeds = setting("CAMEO_TEST_SEEDS", 3000);
    trial.agreed = trial.refused = 0;
    for (uint64_t i = 0; i < seeds; i++)
        check_in_arena(try_model_in);
    if (seeds > 100) /* else the generator makes nothing worth running */
        CHECK(trial.agreed > 9 * trial.refused);
}
