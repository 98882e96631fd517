/* Many threads and one session; many threads inside a run; stopping a run from outside. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "exec/program.h"
#include "exec_case.h"

#include <pthread.h>
#include <time.h>

/* ---- runs at the same time ---- */

static const char model[] = GRAPH_HEAD
    "main (float[N,4] x, int64 n) => (float[N,4] y, int64[2,K] k) {\n"
    "  s = Shape(x) a = Relu(x) t = Transpose <perm = [1, 0]> (a) b = Reshape(t, s)\n"
    "  y = Loop (n, , b) <body = step (int64 i, bool c, float[] v)\n"
    "      => (bool go, float[] w) { go = Identity(c) r = Add(v, x) w = Reshape(r, s) }>\n"
    "  k = NonZero(y) }";

enum { THREADS = 4, RUNS = 100, SIZES = 3 };

struct runner {
    struct cm_session *session;
    const struct cm_datum *in[SIZES][2];
    const struct cm_datum (*expected)[2];
    int wrong;
};

static void *run_many(void *arg)
{
    struct runner *r = arg;
    for (int run = 0; run < RUNS; run++) {
        struct cm_datum out[2] = {0};
        struct cm_error err;
        const int size = run % SIZES;
        if (cm_session_run(r->session, r->in[size], 2, out, 2, NULL, &err) ||
            !exec_same(&out[0], &r->expected[size][0]) ||
            !exec_same(&out[1], &r->expected[size][1]))
            r->wrong++;
        cm_datum_drop(&out[0]);
        cm_datum_drop(&out[1]);
    }
    return NULL;
}

static void together(struct cm_arena *arena)
{
    struct cm_graph *plain = graph_of(arena, model, NULL);
    const struct cm_session_options options = {.threads = 2, .backend = "reference"};
    struct runner runners[THREADS] = {{.session = exec_of(arena, model, &options)}};
    struct cm_datum expected[THREADS][SIZES][2];
    struct cm_error err = {0};
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        runners[t].session = runners[0].session;
        runners[t].expected = (const struct cm_datum(*)[2])expected[t];
        for (int s = 0; s < SIZES; s++) {
            runners[t].in[s][0] = exec_ramp(arena, &CM_SHAPE(t + 2 * s + 1, 4), t - 2 * s);
            runners[t].in[s][1] = graph_int(arena, s);
            CHECK_OK(cm_graph_eval(plain, runners[t].in[s], 2, expected[t][s], NULL, &err), &err);
        }
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, run_many, &runners[t]) == 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK_INT(runners[t].wrong, 0);
        for (int s = 0; s < SIZES; s++)
            for (int o = 0; o < 2; o++)
                cm_datum_drop(&expected[t][s][o]);
    }
}

void test_exec_threads__one_session_runs_in_many_threads_with_different_shapes(void)
{
    check_in_arena(together);
}

/* Layers whose weights are packed, before and after a branch, by whatever kernels there are. */
static const char layers[] = GRAPH_HEAD
    "main (float[N,4,8,8] x, int64 n) => (float[N,16] y, int64[2,K] k)\n"
    "<int64[1] many = {144}, int64[1] more = {4096}, int64 zero = {0}, int64 one = {1},\n"
    " int64[4] wide = {4, 4, 3, 3}, int64[2] flat = {-1, 256}, int64[2] deep = {256, 16}>"
    "{\n"
    "  a = ConstantOfShape <value = float[1] {0.25}> (many) b = CumSum(a, zero) c = Sin(b)\n"
    "  w = Reshape(c, wide) d = ConstantOfShape <value = float[1] {0.5}> (more)\n"
    "  e = CumSum(d, zero) f = Cos(e) v = Reshape(f, deep)\n"
    "  g = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w) h = Relu(g)\n"
    "  q = Greater(n, one)\n"
    "  i = If (q) <then_branch = yes () => (float[P,Q,R,S] p) { p = Neg(h) },\n"
    "      else_branch = no () => (float[P,Q,R,S] o) { o = Identity(h) }>\n"
    "  j = Reshape(i, flat) y = MatMul(j, v) k = NonZero(y) }";

static struct cm_datum *images(struct cm_arena *arena, int64_t count)
{
    struct cm_datum *datum = exec_ramp(arena, &CM_SHAPE(count, 4, 8, 8), 0);
    float *data = datum->tensor.data;
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        data[i] = (float)(i * 31 % 17) / 17.0F - 0.5F;
    return datum;
}

static void together_fast(struct cm_arena *arena)
{
    const struct cm_session_options options = {.threads = 1};
    struct cm_session *alone = exec_of(arena, layers, &options);
    struct cm_session *shared = exec_of(arena, layers, &options);
    struct runner runners[THREADS];
    struct cm_datum expected[SIZES][2];
    struct cm_error err = {0};
    pthread_t threads[THREADS];
    for (int s = 0; s < SIZES; s++) {
        runners[0].in[s][0] = images(arena, s + 1);
        runners[0].in[s][1] = graph_int(arena, s);
        memset(expected[s], 0, sizeof expected[s]);
        CHECK_OK(cm_session_run(alone, runners[0].in[s], 2, expected[s], 2, NULL, &err), &err);
    }
    for (int t = 0; t < THREADS; t++) {
        memcpy(runners[t].in, runners[0].in, sizeof runners[t].in);
        runners[t].session = shared;
        runners[t].wrong = 0;
        runners[t].expected = (const struct cm_datum(*)[2])expected;
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, run_many, &runners[t]) == 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK_INT(runners[t].wrong, 0);
    }
    /* However many contexts and shapes, weights are packed once for each layout. */
    CHECK(cm_packed_bytes(shared) <= cm_packed_bytes(alone));
    for (int s = 0; s < SIZES; s++)
        for (int o = 0; o < 2; o++)
            cm_datum_drop(&expected[s][o]);
}

void test_exec_threads__the_fastest_kernels_give_every_thread_the_same_bits(void)
{
    check_in_arena(together_fast);
}

static void packed_once(struct cm_arena *arena)
{
    const struct cm_session_options options = {.threads = 1};
    struct cm_session *session = exec_of(arena, layers, &options);
    struct cm_error err = {0};
    size_t first = 0;
    for (int64_t run = 0; run < 6; run++) {
        struct cm_datum out[2] = {0};
        CHECK_OK(cm_session_run(session, INPUTS(images(arena, run % 3 + 4), graph_int(arena, 0)), 2,
                                out, 2, NULL, &err),
                 &err);
        cm_datum_drop(&out[0]);
        cm_datum_drop(&out[1]);
        if (run == 0)
            continue; /* it may read some of them as they are */
        if (run == 1)
            first = cm_packed_bytes(session);
        CHECK_INT(cm_packed_bytes(session), first);
    }
    struct cm_session_memory memory;
    CHECK_OK(cm_session_measure(session, INPUTS(images(arena, 4), graph_int(arena, 0)), 2, NULL,
                                &memory, &err),
             &err);
    CHECK_INT(memory.packed, first);
}

void test_exec_threads__weights_are_packed_once_for_all_shapes(void)
{
    check_in_arena(packed_once);
}

/* As many layers as there are weights, all of one size. */
static void many_packed(struct cm_arena *arena)
{
    enum { LAYERS = 200, CHANNELS = 16 };
    struct cm_str text = cm_str(GRAPH_HEAD "main (float[1,16,4,4] v0) => (float[1,16,4,4] y)\n"
                                           "<int64[4] size = {16, 16, 1, 1}> {\n");
    for (int i = 0; i < LAYERS; i++)
        text = cm_arena_printf(arena,
                               "%s  w%d = ConstantOfShape <value = float[1] {%d.0}> (size)\n"
                               "  v%d = Conv(v%d, w%d)\n",
                               text.data, i, i, i + 1, i, i);
    text = cm_arena_printf(arena, "%s  y = Identity(v%d) }", text.data, LAYERS);
    const struct cm_session_options options = {.threads = 1};
    struct cm_session *session = exec_of(arena, text.data, &options);
    struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(1, CHANNELS, 4, 4), 0), out = {0};
    struct cm_session_memory memory;
    struct cm_error err = {0};
    CHECK_OK(cm_session_measure(session, INPUTS(x), 1, NULL, &memory, &err), &err);
    /* Each is packed, or none: there may be no kernel that wants it. */
    CHECK_INT(memory.packed % LAYERS, 0);
    CHECK_OK(cm_session_run(session, INPUTS(x), 1, &out, 1, NULL, &err), &err);
    CHECK_INT(cm_packed_bytes(session), memory.packed);
    cm_datum_drop(&out);
}

void test_exec_threads__each_of_many_weights_is_packed(void)
{
    check_in_arena(many_packed);
}

/* ---- the same bits ---- */

static const char heavy[] =
    GRAPH_HEAD "main (float[2,8,64,64] x, float[8,8,3,3] w, float[4096,64] m)\n"
               "    => (float[2,8,64,64] y, float[16,64] z, float[16,4096] p, float[2,8] g,\n"
               "        float[64] r, float[4096] s, float[4096,64] u)\n"
               "<int64[2] rows = {16, 4096}, int64[1] first = {0}, int64[1] second = {1},\n"
               " int64[2] tail = {2, 3}, float half = {0.5}> {\n"
               "  a = Sigmoid(x) b = Add(a, x) d = Mul(b, half)\n"
               "  e = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (d, w)\n"
               "  y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (e)\n"
               "  f = Reshape(y, rows) p = Softmax(f) z = MatMul(p, m)\n"
               "  q = GlobalAveragePool(e) g = Squeeze(q, tail)\n"
               "  t = Exp(m) r = ReduceSum <keepdims = 0> (t, first) u = Sub(t, r)\n"
               "  s = ReduceSum <keepdims = 0> (u, second) }";

static void equal_bits(struct cm_arena *arena)
{
    enum { OUTPUTS = 7 };
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(2, 8, 64, 64), 0),
                                   exec_ramp(arena, &CM_SHAPE(8, 8, 3, 3), 0),
                                   exec_ramp(arena, &CM_SHAPE(4096, 64), 0)};
    for (int i = 0; i < 3; i++) { /* small numbers with all their digits */
        float *data = in[i]->tensor.data;
        for (int64_t k = 0; k < cm_tensor_count(&in[i]->tensor); k++)
            data[k] = (float)((k * 2654435761 + i) % 1000003) / 1000003.0F - 0.5F;
    }
    struct cm_datum out[3][OUTPUTS] = {0};
    struct cm_error err = {0};
    for (int t = 0; t < 3; t++) {
        const struct cm_session_options options = {.threads = 1 << t, .backend = "reference"};
        struct cm_session *session = exec_of(arena, heavy, &options);
        CHECK_OK(cm_session_run(session, in, 3, out[t], OUTPUTS, NULL, &err), &err);
    }
    for (int o = 0; o < OUTPUTS; o++)
        for (int t = 2; t >= 0; t--) {
            CHECK(exec_same(&out[0][o], &out[t][o]));
            cm_datum_drop(&out[t][o]);
        }
}

void test_exec_threads__every_number_of_threads_gives_the_same_bits(void)
{
    check_in_arena(equal_bits);
}

/* ---- stopping ---- */

static void *stop_soon(void *arg)
{
    const struct timespec while_ = {0, 20000000};
    nanosleep(&while_, NULL);
    atomic_store((atomic_bool *)arg, true);
    return NULL;
}

static void cancel(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[N] x, int64 n) => (float[N] y) {\n"
                           "  y = Loop (n, , x) <body = step (int64 i, bool c, float[] s)\n"
                           "      => (bool go, float[] t) { go = Identity(c) t = Neg(s) }>\n"
                           "}",
                NULL);
    const struct cm_datum *in[] = {FLOATS(arena, 1, 2), graph_int(arena, INT64_MAX)};
    for (int run = 0; run < 2; run++) {
        atomic_bool stop = false;
        const struct cm_run_options options = {.cancel = &stop};
        struct cm_datum out = {0};
        struct cm_error err = {0};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, stop_soon, &stop) == 0);
        CHECK_FAILS(cm_session_run(session, in, 2, &out, 1, &options, &err), CM_CANCELLED, &err,
                    "cancelled");
        pthread_join(thread, NULL);
        CHECK(!out.tensor.data);
    }
    in[1] = graph_int(arena, 3);
    CHECK_RUNS(session, in, 1, -1, -2);
}

void test_exec_threads__an_endless_run_is_stopped_from_outside(void)
{
    check_in_arena(cancel);
}

static void cancel_empty(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[N] x, int64 n) => (float[N] y) {\n"
                           "  y = Loop (n, , x) <body = step (int64 i, bool c, float[] s)\n"
                           "      => (bool c, float[] s) {}> }",
                NULL);
    const struct cm_datum *in[] = {FLOATS(arena, 1, 2), graph_int(arena, INT64_MAX)};
    atomic_bool stop = false;
    const struct cm_run_options options = {.cancel = &stop};
    struct cm_datum out = {0};
    struct cm_error err = {0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stop_soon, &stop) == 0);
    CHECK_FAILS(cm_session_run(session, in, 2, &out, 1, &options, &err), CM_CANCELLED, &err,
                "cancelled");
    pthread_join(thread, NULL);
}

void test_exec_threads__a_body_without_steps_can_be_stopped_too(void)
{
    check_in_arena(cancel_empty);
}
