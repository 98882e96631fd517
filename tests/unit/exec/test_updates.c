/* Results that take the place of inputs at the end of a run. */
// SPDX-License-Identifier: Apache-2.0
#include "exec_case.h"

#include <math.h>

/* Two moments and a weight as Adam has them, a counter, a value that two inputs take, and a swap:
 * every new value from old ones. */
static const char step_text[] =
    GRAPH_HEAD "main (float[N] w, float[N] m, float[N] g, float[1] n, float[1] a, float[1] b,\n"
               "      float[1] c, float[1] d)\n"
               "=> (float[N] w_next, float[N] m_next, float[1] n_next, float[1] a_next,\n"
               "    float[1] b_next, float[1] both, float[N] sum)\n"
               "<float beta = {0.75}, float rate = {0.5}, float[1] one = {1}> {\n"
               "  kept = Mul(m, beta) m_next = Add(kept, g)\n"
               "  root = Sqrt(m_next) move = Mul(root, rate) w_next = Sub(w, move)\n"
               "  n_next = Add(n, one) a_next = Identity(b) b_next = Identity(a)\n"
               "  both = Add(a, b) sum = Add(w, m) }";
enum { W, M, G, N, A, B, C, D, STEP_INPUTS };
enum { STEP_OUTPUTS = 7 };
static const struct cm_session_update step_updates[] = {
    {W, 0}, {M, 1}, {N, 2}, {A, 3}, {B, 4}, {C, 5}, {D, 5},
};
static const size_t n_step_updates = sizeof step_updates / sizeof step_updates[0];

struct step_state {
    struct cm_datum in[STEP_INPUTS], out[STEP_OUTPUTS];
    const struct cm_datum *feeds[STEP_INPUTS];
};

static void init_state(struct step_state *state, struct cm_arena *arena, int64_t count)
{
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct cm_shape shape = i <= G ? CM_SHAPE(count) : CM_SHAPE(1);
        state->in[i] = *exec_ramp(arena, &shape, i + 1);
        state->feeds[i] = &state->in[i];
    }
    memset(state->out, 0, sizeof state->out);
}

static float value(const struct step_state *state, int input, int64_t at)
{
    return ((const float *)state->in[input].tensor.data)[at];
}

static struct cm_session *open_step(struct cm_arena *arena, const char *text, const char *backend,
                                    int threads, const struct cm_session_update *updates, size_t n)
{
    const struct cm_session_options options = {
        .backend = backend, .threads = threads, .updates = updates, .n_updates = n};
    return exec_open_after(arena, graph_of(arena, text, NULL), NULL, &options);
}

static void drop_outputs(struct step_state *state)
{
    for (int o = 0; o < STEP_OUTPUTS; o++)
        cm_datum_drop(&state->out[o]);
}

/* One run after the other, beside the same arithmetic done here. */
static void check_runs(struct cm_arena *arena, struct cm_session *session, int64_t count,
                       const struct cm_run_options *options)
{
    struct step_state state, before;
    struct cm_error err = {0};
    init_state(&state, arena, count);
    for (int round = 0; round < 3; round++) {
        init_state(&before, arena, count);
        for (int i = 0; i < STEP_INPUTS; i++)
            memcpy(before.in[i].tensor.data, state.in[i].tensor.data,
                   cm_tensor_bytes(&state.in[i].tensor));
        CHECK_OK(cm_session_run(session, state.feeds, STEP_INPUTS, state.out, STEP_OUTPUTS, options,
                                &err),
                 &err);
        for (int64_t i = 0; i < count; i++) {
            const float m = value(&before, M, i) * 0.75f + value(&before, G, i);
            CHECK(value(&state, M, i) == m);
            CHECK(value(&state, W, i) == value(&before, W, i) - sqrtf(m) * 0.5f);
            CHECK(((const float *)state.out[6].tensor.data)[i] ==
                  value(&before, W, i) + value(&before, M, i));
        }
        CHECK(value(&state, N, 0) == value(&before, N, 0) + 1);
        CHECK(value(&state, A, 0) == value(&before, B, 0));
        CHECK(value(&state, B, 0) == value(&before, A, 0));
        CHECK(value(&state, C, 0) == value(&before, A, 0) + value(&before, B, 0));
        CHECK(value(&state, D, 0) == value(&state, C, 0));
        for (int o = 0; o < 6; o++)
            CHECK_INT(state.out[o].kind, CM_KIND_NONE);
        drop_outputs(&state);
    }
}

static void new_from_old(struct cm_arena *arena)
{
    static const char *const backends[] = {NULL, "cpu", "reference"};
    static const int64_t counts[] = {1, 0, 7, 1000, 50000};
    for (size_t b = 0; b < 3; b++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct cm_session *session =
                open_step(arena, step_text, backends[b], threads, step_updates, n_step_updates);
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
                for (int how = 0; how < 4; how++) {
                    const struct cm_run_options options = {.apart = how & 1, .careful = how & 2};
                    check_runs(arena, session, counts[i], &options);
                }
        }
}

void test_updates__new_values_are_computed_from_old_ones(void)
{
    check_in_arena(new_from_old);
}

/* ---- memory ---- */

static void no_second_copy(struct cm_arena *arena)
{
    struct cm_session *session =
        open_step(arena, step_text, "cpu", 1, step_updates, n_step_updates);
    struct cm_session_memory memory;
    struct step_state state;
    struct cm_error err = {0};
    init_state(&state, arena, 10000);
    CHECK_OK(cm_session_measure(session, state.feeds, STEP_INPUTS, NULL, &memory, &err), &err);
    CHECK(memory.block < 10000); /* five single elements, each on lines of its own */
    CHECK_INT(memory.results, 10000 * sizeof(float)); /* sum */
}

void test_updates__what_works_in_place_takes_no_memory(void)
{
    check_in_arena(no_second_copy);
}

/* ---- before anything is written ---- */

struct seen {
    size_t n_reads;
    bool all_finite, refuse;
    const float *w; /* as it was when asked */
    float w_then;
};

static enum cm_status look(void *arg, const struct cm_update_read *reads, size_t n_reads,
                           struct cm_error *err)
{
    struct seen *seen = arg;
    seen->n_reads = n_reads;
    seen->all_finite = true;
    for (size_t i = 0; i < n_reads; i++)
        seen->all_finite = seen->all_finite && isfinite(*(float *)reads[i].tensor->data);
    seen->w_then = *seen->w;
    return seen->refuse ? cm_fail(err, CM_BAD_MODEL, "refused") : CM_OK;
}

static const char line_text[] =
    GRAPH_HEAD "main (float[2] w, float[2] x) => (float[2] w_next, float[2] y)\n"
               "<float rate = {0.5}> { y = Neg(x) g = Softmax(y)\n"
               "  move = Mul(g, rate) w_next = Sub(w, move) }";
static const struct cm_session_update line_updates[] = {{0, 0}};

static void all_or_nothing(struct cm_arena *arena)
{
    struct cm_session *session = open_step(arena, line_text, "cpu", 1, line_updates, 1);
    float w[] = {1, 2}, x[] = {3, 3};
    const struct cm_datum in[] = {
        {.kind = CM_KIND_TENSOR, .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), w)},
        {.kind = CM_KIND_TENSOR, .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), x)}};
    const struct cm_datum *feeds[] = {&in[0], &in[1]};
    struct seen seen = {.refuse = true, .w = w};
    bool finite = false;
    struct cm_run_options options = {.ready = look, .ready_arg = &seen, .finite = &finite};
    struct cm_datum out[2] = {{0}};
    struct cm_error err = {0};

    CHECK_FAILS(cm_session_run(session, feeds, 2, out, 2, &options, &err), CM_BAD_MODEL, &err,
                "refused");
    CHECK(w[0] == 1 && w[1] == 2);
    CHECK_INT(out[1].kind, CM_KIND_NONE);
    CHECK(seen.n_reads == 1 && seen.all_finite);
    seen.refuse = false;
    options.no_updates = true;
    CHECK_OK(cm_session_run(session, feeds, 2, out, 2, &options, &err), &err);
    CHECK(w[0] == 1 && w[1] == 2);
    cm_datum_drop(&out[1]);
    options.no_updates = false;
    CHECK_OK(cm_session_run(session, feeds, 2, out, 2, &options, &err), &err);
    CHECK(seen.w_then == 1 && w[0] == 0.75f && w[1] == 1.75f && finite);
    CHECK(*(const float *)out[1].tensor.data == -3);
    cm_datum_drop(&out[1]);
    w[0] = INFINITY; /* as an update may make it */
    CHECK_OK(cm_session_run(session, feeds, 2, out, 2, &options, &err), &err);
    CHECK(seen.all_finite && !finite);
    cm_datum_drop(&out[1]);
    x[0] = NAN;
    seen.refuse = false;
    CHECK_OK(cm_session_run(session, feeds, 2, out, 2, &options, &err), &err);
    CHECK(!seen.all_finite);
    cm_datum_drop(&out[1]);
}

void test_updates__all_is_seen_before_anything_is_written(void)
{
    check_in_arena(all_or_nothing);
}

/* ---- inputs that others read too ---- */

static void shared_input(struct cm_arena *arena)
{
    /* Each step reads what the other one updates. */
    static const char text[] =
        GRAPH_HEAD "main (float[3] a, float[3] b) => (float[3] a_next, float[3] b_next)\n"
                   "<float half = {0.5}> {\n"
                   "  p = Mul(b, half) a_next = Add(a, p) q = Mul(a, half) b_next = Sub(b, q) }";
    static const struct cm_session_update updates[] = {{0, 0}, {1, 1}};
    struct cm_session *session = open_step(arena, text, NULL, 1, updates, 2);
    float a[] = {1, 2, 3}, b[] = {4, 8, 16};
    const struct cm_datum in[] = {
        {.kind = CM_KIND_TENSOR, .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(3), a)},
        {.kind = CM_KIND_TENSOR, .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(3), b)}};
    const struct cm_datum *feeds[] = {&in[0], &in[1]};
    struct cm_datum out[2] = {{0}};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, feeds, 2, out, 2, NULL, &err), &err);
    CHECK(a[0] == 3 && a[1] == 6 && a[2] == 11);
    CHECK(b[0] == 3.5f && b[1] == 7 && b[2] == 14.5f);
}

void test_updates__an_input_that_another_update_reads_keeps_its_value_until_the_end(void)
{
    check_in_arena(shared_input);
}
