/* What cameo.h promises about threads, promise by promise; `make tsan` runs it under the thread
 * sanitizer. Models through functions that take them const, sessions, trainers of one model, a
 * trainer that goes from thread to thread, registries, logs, cancelling, values, checkpoints,
 * curves.
 */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "base/folder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 4, MOST_ROWS = 5 };

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"

/* A product whose weights are packed, a function, a branch; rows are open. */
static const char network[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"l\" : 1]>\n"
    "net (float[N,4] x) => (float[N,3] y)\n"
    "<float[4,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, float[3] b = {1, 2, 3}>\n"
    "{ p = MatMul(x, w)\n q = Add(p, b)\n r = l.twice(q)\n y = Relu(r) }\n"
    "<domain: \"l\", opset_import: [\"\" : 17]>\n"
    "twice (x) => (y) { y = Add(x, x) }\n";

/* y = w x with a random number that keeps the random state busy. */
static const char training[] =
    HEAD "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>\n"
         "{ y = MatMul(x, w) }\n"
         "training {\n"
         "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new, float[1] r_new)\n"
         "  <float rate = {0.01}, float[1] r = {0}>\n"
         "  { d = Sub(y, t)\n    s = Mul(d, d)\n    loss = ReduceSum<keepdims = 0>(s)\n"
         "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = "
         "\"loss\">(w, x, t)\n    m = Mul(g, rate)\n    w_new = Sub(w, m)\n"
         "    r_new = RandomNormal<shape = [1]>() },\n"
         "  update_binding: [\"w\": \"w_new\", \"r\": \"r_new\"]\n}\n";

/* ---- threads ---- */

/* What all threads of a case share, and what each has of its own. */
struct shared {
    struct cameo_model *model, *other;
    struct cameo_session *session;
    struct cameo_trainer *trainer;
    struct cameo_registry *registry;
    struct cameo_cancel *cancel;
    struct cameo_events *events;
    struct cameo_value *value;
    struct cameo_saved *saved;
    const struct folder *folder;
    pthread_mutex_t lock;
    atomic_int heard;
};

struct worker {
    struct shared *shared;
    void (*work)(struct worker *worker, int round);
    pthread_t thread;
    int number;
    int wrong; /* results that were not as expected */
    struct cameo_error err;
};

#define EXPECT(worker, truth) ((worker)->wrong += !(truth))

static void *work_many(void *arg)
{
    struct worker *worker = arg;

    for (int round = 0; round < ROUNDS; round++)
        worker->work(worker, round);
    return NULL;
}

static void together(struct shared *shared, void (*work)(struct worker *, int))
{
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared, .work = work, .number = i};
        CHECK_INT(pthread_create(&workers[i].thread, NULL, work_many, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(workers[i].thread, NULL), 0);
        if (workers[i].wrong)
            fail_msg("thread %d: %d results are wrong; the last message: %s", i, workers[i].wrong,
                     workers[i].err.message);
    }
}

/* ---- one session ---- */

static struct cameo_session *open_session(const struct cameo_model *model, const char *backend,
                                          const struct cameo_registry *registry, int threads)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_error err;

    options.threads = threads;
    options.backend = backend;
    options.registry = registry;
    OK(cameo_session_new(model, &options, &session, &err));
    return session;
}

/* Rows of a number of its own, different in each round: y is 2 (x w + b) where that is positive. */
static void run_network(struct worker *worker, struct cameo_session *session, int round,
                        const struct cameo_run_options *options)
{
    const int64_t rows = 1 + (worker->number + round) % MOST_ROWS, dims[] = {rows, 4};
    const float fill = (float)(worker->number + 1);
    float x[MOST_ROWS * 4];
    struct cameo_fetch fetch = cameo_fetch_value("y");

    for (int64_t i = 0; i < rows * 4; i++)
        x[i] = fill;
    const struct cameo_tensor tensor =
        cameo_tensor_of(CAMEO_FLOAT, 2, dims, x, (size_t)rows * 4 * sizeof *x);
    const struct cameo_feed feed = cameo_feed_tensor("x", &tensor);
    const enum cameo_status status =
        cameo_session_run(session, &feed, 1, &fetch, 1, options, &worker->err);
    EXPECT(worker, status == CAMEO_OK);
    if (status != CAMEO_OK)
        return;
    EXPECT(worker, cameo_value_count(fetch.value) == rows * 3);
    for (int64_t i = 0; i < rows * 3; i++)
        EXPECT(worker,
               (float)cameo_value_real(fetch.value, i) == 2 * (2 * fill + (float)(i % 3 + 1)));
    cameo_value_free(fetch.value);
}

static void hear_step(void *arg, const struct cameo_step *step)
{
    *(int *)arg += step->kernel != NULL;
}

static void run_shared(struct worker *worker, int round)
{
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    int steps = 0; /* of this run alone: step is called on the calling thread */

    options.step = hear_step;
    options.step_arg = &steps;
    options.cancel = worker->shared->cancel; /* serves any number of runs */
    run_network(worker, worker->shared->session, round, &options);
    EXPECT(worker, steps > 0);
}

void test_shared__one_session_runs_in_many_threads_with_any_shapes(void)
{
    static const char *const backends[] = {NULL, "reference", "plain"};
    struct shared shared = {.model = load_text(network)};
    struct cameo_error err;

    OK(cameo_cancel_new(&shared.cancel, &err));
    for (size_t b = 0; b < CM_COUNT(backends); b++)
        for (int threads = 1; threads <= 2; threads++) {
            shared.session = open_session(shared.model, backends[b], NULL, threads);
            together(&shared, run_shared);
            cameo_session_free(shared.session);
        }
    cameo_cancel_free(shared.cancel);
    cameo_model_free(shared.model);
}

/* ---- many sessions of one model, a log, a registry ---- */

static void hear(void *arg, enum cameo_log_level level, const char *message)
{
    (void)level;
    atomic_fetch_add((atomic_int *)arg, message[0] != 0);
}

static void open_and_run(struct worker *worker, int round)
{
    struct cameo_session *session =
        open_session(worker->shared->model, worker->number % 2 ? "reference" : NULL, NULL, 1);

    EXPECT(worker, cameo_session_input_count(session) == 1);
    run_network(worker, session, round, NULL);
    run_network(worker, worker->shared->session, round, NULL);
    cameo_session_free(session);
}

void test_shared__sessions_of_one_model_open_while_others_run(void)
{
    struct shared shared = {.model = load_text(network)};

    cameo_model_set_log(shared.model, hear, &shared.heard);
    shared.session = open_session(shared.model, NULL, NULL, 1);
    together(&shared, open_and_run);
    cameo_session_free(shared.session);
    cameo_model_free(shared.model);
    CHECK(atomic_load(&shared.heard) > 0);
}

static enum cameo_status add_one(struct cameo_call *call, void *arg)
{
    struct cameo_tensor x = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    atomic_fetch_add((atomic_int *)arg, 1); /* any thread may call it */
    if (!cameo_call_input(call, 0, &x) || !cameo_call_output(call, 0, &y))
        return CAMEO_OK;
    for (int64_t i = 0; i < cameo_tensor_count(&x); i++)
        ((float *)y.data)[i] = ((const float *)x.data)[i] + 1;
    return CAMEO_OK;
}

static enum cameo_status infer_like(struct cameo_infer *in, void *arg)
{
    (void)arg;
    return cameo_infer_set_like(in, 0, 0);
}

static void run_custom(struct worker *worker, int round)
{
    static const int64_t dims[] = {2};
    const float x[] = {(float)worker->number, (float)round};
    struct cameo_session *session =
        open_session(worker->shared->model, NULL, worker->shared->registry, 1);
    const struct cameo_tensor tensor = cameo_tensor_of(CAMEO_FLOAT, 1, dims, x, sizeof x);
    const struct cameo_feed feed = cameo_feed_tensor("x", &tensor);
    struct cameo_fetch fetch = cameo_fetch_value("y");

    EXPECT(worker, cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &worker->err) == CAMEO_OK);
    EXPECT(worker, fetch.value && cameo_value_real(fetch.value, 1) == round + 2);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
}

void test_shared__a_registry_serves_sessions_of_many_threads(void)
{
    static const struct cameo_operand x = {sizeof(struct cameo_operand), "x", "T",
                                           CAMEO_TYPE_BIT(CAMEO_FLOAT), CAMEO_OPERAND_SINGLE};
    static const struct cameo_operand y = {sizeof(struct cameo_operand), "y", "T",
                                           CAMEO_TYPE_BIT(CAMEO_FLOAT), CAMEO_OPERAND_SINGLE};
    struct shared shared = {
        .model = load_text("<ir_version: 8, opset_import: [\"\" : 17, \"ex\" : 1]>\n"
                           "g (float[2] x) => (float[2] y) { t = ex.AddOne(x) y = ex.AddOne(t) }")};
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;
    struct cameo_error err;

    op.domain = "ex";
    op.name = "AddOne";
    op.inputs = &x;
    op.outputs = &y;
    op.input_count = op.output_count = 1;
    op.infer = infer_like;
    op.run = add_one;
    op.arg = &shared.heard;
    OK(cameo_registry_new(&shared.registry, &err));
    OK(cameo_registry_add(shared.registry, &op, &err));
    together(&shared, run_custom); /* the first session of any thread freezes it */
    CHECK_INT(atomic_load(&shared.heard), 2 * THREADS * ROUNDS);
    cameo_model_free(shared.model);
    cameo_registry_free(shared.registry);
}

/* ---- one model, through every function that takes it const ---- */

static int count_bytes(void *to, const void *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)to += size;
    return 0;
}

static void describe(struct worker *worker, const struct cameo_model *model)
{
    const struct cameo_graph *graph = NULL;
    const struct cameo_costs *costs = NULL;
    size_t index = 0;

    EXPECT(worker, cameo_model_summary(model)->node_count == 4);
    EXPECT(worker, cameo_model_find_initializer(model, "b", &index));
    EXPECT(worker, cameo_model_initializer(model, index)->elements == 3);
    EXPECT(worker, !cameo_model_note(model, 0));
    EXPECT(worker, cameo_model_graph(model, CAMEO_GRAPH_MAIN, 0, &graph, &worker->err) == CAMEO_OK);
    EXPECT(worker, graph && cameo_graph_node_count(graph) == 4);
    EXPECT(worker, cameo_model_costs(model, NULL, 0, &costs, &worker->err) == CAMEO_OK);
}

static void read_values(struct worker *worker, const struct cameo_model *model)
{
    struct cameo_difference difference = CAMEO_DIFFERENCE_INIT;
    const struct cameo_model *other = worker->shared->other;
    const bool turned = worker->number % 2; /* the two models in either order */
    struct cameo_value *value = NULL;
    float values[3] = {0};
    size_t index = 0;

    EXPECT(worker, cameo_model_find_initializer(model, "b", &index));
    EXPECT(worker, cameo_model_read_initializer(model, index, values, sizeof values,
                                                &worker->err) == CAMEO_OK &&
                       values[2] == 3);
    EXPECT(worker, cameo_model_view_initializer(model, index, &value, &worker->err) == CAMEO_OK);
    cameo_value_free(value);
    EXPECT(worker,
           cameo_initializer_difference(turned ? model : other, index, turned ? other : model,
                                        index, 0, 0, &difference, &worker->err) == CAMEO_OK);
}

static void judge(struct worker *worker, const struct cameo_model *model)
{
    struct cameo_findings *findings = NULL;
    size_t written = 0;
    char name[32], path[FOLDER_PATH_SIZE];

    EXPECT(worker, cameo_model_check(model, NULL, &findings, &worker->err) == CAMEO_OK &&
                       cameo_findings_violations(findings) == 0);
    cameo_findings_free(findings);
    findings = NULL;
    EXPECT(worker, cameo_model_blockers(model, NULL, &findings, &worker->err) == CAMEO_OK);
    cameo_findings_free(findings);
    EXPECT(worker, cameo_model_write(model, NULL, count_bytes, &written, &worker->err) == CAMEO_OK);
    snprintf(name, sizeof name, "copy%d.onnx", worker->number);
    EXPECT(worker, cameo_model_save(model, folder_path(worker->shared->folder, name, path), NULL,
                                    NULL, &worker->err) == CAMEO_OK);
}

static void derive(struct worker *worker, const struct cameo_model *model)
{
    static const char *const wrt[] = {"w"};
    struct cameo_model *made[4] = {0};

    EXPECT(worker, cameo_model_copy(model, &made[0], &worker->err) == CAMEO_OK);
    EXPECT(worker, cameo_model_expand(model, NULL, &made[1], NULL, &worker->err) == CAMEO_OK);
    EXPECT(worker, cameo_model_optimize(model, NULL, &made[2], NULL, &worker->err) == CAMEO_OK);
    EXPECT(worker,
           cameo_model_gradient(model, "y", wrt, 1, false, &made[3], &worker->err) == CAMEO_OK);
    for (size_t i = 0; i < CM_COUNT(made); i++) {
        if (made[i]) /* those that were made belong to this thread */
            EXPECT(worker, cameo_model_strip(made[i], &worker->err) == CAMEO_OK);
        cameo_model_free(made[i]);
    }
}

static void compile_text(struct worker *worker, const struct cameo_model *model)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    size_t written = 0;

    options.emit = CAMEO_EMIT_ONNX;
    options.write = count_bytes;
    options.write_to = &written;
    EXPECT(worker, cameo_model_compile(model, &options, NULL, &worker->err) == CAMEO_OK);
    EXPECT(worker, written > 0);
}

static void run_new_session(struct worker *worker, const struct cameo_model *model)
{
    struct cameo_session *session = open_session(model, "reference", NULL, 1);

    run_network(worker, session, worker->number, NULL);
    cameo_session_free(session);
}

/* Threads begin at different places, so that each pair of functions meets. */
static void use_model(struct worker *worker, int round)
{
    static void (*const uses[])(struct worker *, const struct cameo_model *) = {
        describe, read_values, judge, derive, compile_text, run_new_session,
    };

    for (size_t i = 0; i < CM_COUNT(uses); i++)
        uses[(i + (size_t)(worker->number + round)) % CM_COUNT(uses)](worker,
                                                                      worker->shared->model);
}

void test_shared__one_model_through_all_functions_that_take_it_const(void)
{
    struct shared shared = {.model = load_text(network), .other = load_text(network)};
    struct folder folder;

    folder_make(&folder);
    shared.folder = &folder;
    together(&shared, use_model);
    cameo_model_free(shared.model);
    cameo_model_free(shared.other);
    folder_remove(&folder);
}

/* ---- trainers ---- */

static struct cameo_trainer *open_trainer(struct cameo_model *model, int threads)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer = NULL;
    struct cameo_error err;

    options.threads = threads;
    OK(cameo_trainer_new(model, &options, &trainer, &err));
    return trainer;
}

static enum cameo_status step_once(struct cameo_trainer *trainer, struct cameo_error *err)
{
    static const int64_t dims[] = {2, 1};
    static const float xs[] = {1, 2}, ts[] = {3, 6};
    const struct cameo_tensor x = cameo_tensor_of(CAMEO_FLOAT, 2, dims, xs, sizeof xs);
    const struct cameo_tensor t = cameo_tensor_of(CAMEO_FLOAT, 2, dims, ts, sizeof ts);
    const struct cameo_feed feeds[] = {cameo_feed_tensor("x", &x), cameo_feed_tensor("t", &t)};
    double scalars[4];

    return cameo_trainer_step(trainer, feeds, 2, scalars, err);
}

static float weight_of(struct cameo_trainer *trainer)
{
    float weight = 0;

    (void)cameo_trainer_read_variable(trainer, cameo_trainer_find_variable(trainer, "w"), &weight,
                                      sizeof weight, NULL);
    return weight;
}

/* Each thread has a trainer; the model is one. */
static void train_apart(struct worker *worker, int round)
{
    struct cameo_trainer *trainer = open_trainer(worker->shared->model, 1);
    struct cameo_model *copy = NULL;
    char name[32], path[FOLDER_PATH_SIZE];

    EXPECT(worker, weight_of(trainer) == 1); /* nobody else's steps show */
    for (int i = 0; i <= round; i++)
        EXPECT(worker, step_once(trainer, &worker->err) == CAMEO_OK);
    EXPECT(worker, weight_of(trainer) > 1);
    EXPECT(worker, cameo_trainer_copy_model(trainer, &copy, &worker->err) == CAMEO_OK);
    cameo_model_free(copy);
    snprintf(name, sizeof name, "model%d.onnx", worker->number);
    EXPECT(worker, cameo_trainer_save(trainer, folder_path(worker->shared->folder, name, path),
                                      NULL, NULL, &worker->err) == CAMEO_OK);
    EXPECT(worker, cameo_trainer_initialize(trainer, &worker->err) == CAMEO_OK);
    EXPECT(worker, weight_of(trainer) == 1); /* nobody else's weights while they are saved */
    for (int i = 0; i <= round; i++)
        EXPECT(worker, step_once(trainer, &worker->err) == CAMEO_OK);
    snprintf(name, sizeof name, "state%d.safetensors", worker->number);
    folder_path(worker->shared->folder, name, path);
    EXPECT(worker, cameo_checkpoint_save(trainer, path, NULL, 0, &worker->err) == CAMEO_OK);
    EXPECT(worker, cameo_trainer_initialize(trainer, &worker->err) == CAMEO_OK);
    EXPECT(worker, cameo_checkpoint_resume(trainer, path, NULL, &worker->err) == CAMEO_OK);
    EXPECT(worker, cameo_trainer_steps(trainer) == (uint64_t)round + 1);
    EXPECT(worker, cameo_model_summary(worker->shared->model)->training_count == 1);
    cameo_trainer_free(trainer);
}

void test_shared__trainers_of_one_model_are_independent(void)
{
    struct shared shared = {.model = load_text(training)};
    struct folder folder;

    folder_make(&folder);
    shared.folder = &folder;
    together(&shared, train_apart);
    cameo_model_free(shared.model);
    folder_remove(&folder);
}

/* One thread at a time: steps by some, parameters and saved files by others. */
static void take_turns(struct worker *worker, int round)
{
    struct cameo_trainer *trainer = worker->shared->trainer;
    char name[32], path[FOLDER_PATH_SIZE];
    float weight = 0;

    pthread_mutex_lock(&worker->shared->lock);
    if (worker->number % 2) {
        EXPECT(worker, step_once(trainer, &worker->err) == CAMEO_OK);
    } else {
        EXPECT(worker, cameo_trainer_read_parameters(trainer, &weight, sizeof weight,
                                                     &worker->err) == CAMEO_OK);
        EXPECT(worker, weight == weight_of(trainer));
        snprintf(name, sizeof name, "turn%d_%d.onnx", worker->number, round);
        EXPECT(worker, cameo_trainer_save(trainer, folder_path(worker->shared->folder, name, path),
                                          NULL, NULL, &worker->err) == CAMEO_OK);
    }
    pthread_mutex_unlock(&worker->shared->lock);
}

void test_shared__a_trainer_goes_from_thread_to_thread(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct shared shared = {.model = load_text(training)};
        struct folder folder;

        folder_make(&folder);
        shared.folder = &folder;
        CHECK_INT(pthread_mutex_init(&shared.lock, NULL), 0);
        shared.trainer = open_trainer(shared.model, threads);
        together(&shared, take_turns);
        CHECK_INT((int)cameo_trainer_steps(shared.trainer), THREADS / 2 * ROUNDS);
        cameo_trainer_free(shared.trainer);
        cameo_model_free(shared.model);
        pthread_mutex_destroy(&shared.lock);
        folder_remove(&folder);
    }
}

/* ---- cancelling ---- */

static void run_until_cancelled(struct worker *worker, int round)
{
    static const int64_t dims[] = {1};
    const int64_t turns = INT64_MAX;
    const float x = 1;
    const struct cameo_tensor n = cameo_tensor_of(CAMEO_INT64, 0, NULL, &turns, sizeof turns);
    const struct cameo_tensor v = cameo_tensor_of(CAMEO_FLOAT, 1, dims, &x, sizeof x);
    const struct cameo_feed feeds[] = {cameo_feed_tensor("n", &n), cameo_feed_tensor("x", &v)};
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;

    if (round)
        return;
    options.cancel = worker->shared->cancel;
    atomic_fetch_add(&worker->shared->heard, 1);
    EXPECT(worker, cameo_session_run(worker->shared->session, feeds, 2, NULL, 0, &options,
                                     &worker->err) == CAMEO_CANCELLED);
}

static void *cancel_when_all_run(void *arg)
{
    struct shared *shared = arg;

    while (atomic_load(&shared->heard) < THREADS)
        continue;
    cameo_cancel_set(shared->cancel);
    return NULL;
}

void test_shared__one_flag_stops_runs_of_all_threads(void)
{
    struct shared shared = {
        .model = load_text(
            "<ir_version: 8, opset_import: [\"\" : 17]>\n"
            "g (int64 n, float[1] x) => (float[1] y) {\n"
            "  y = Loop (n, , x) <body = b (int64 i, bool c, float[1] v) => (bool go, float[1] w)\n"
            "      { go = Identity(c) w = Neg(v) }> }")};
    struct cameo_error err;
    pthread_t thread;

    OK(cameo_cancel_new(&shared.cancel, &err));
    shared.session = open_session(shared.model, NULL, NULL, 1);
    CHECK_INT(pthread_create(&thread, NULL, cancel_when_all_run, &shared), 0);
    together(&shared, run_until_cancelled);
    pthread_join(thread, NULL);
    cameo_session_free(shared.session);
    cameo_cancel_free(shared.cancel);
    cameo_model_free(shared.model);
}

/* ---- a checkpoint of another framework ---- */

static void read_saved(struct worker *worker, int round)
{
    const struct cameo_saved *saved = worker->shared->saved;
    const struct cameo_saved_tensor *tensor;
    size_t bytes = 0;

    (void)round;
    for (size_t i = 0; (tensor = cameo_saved_tensor(saved, i)) != NULL; i++) {
        struct cameo_value *value = NULL;
        EXPECT(worker, cameo_saved_read(saved, i, &value, &worker->err) == CAMEO_OK);
        bytes += value ? cameo_value_bytes(value) : 0;
        cameo_value_free(value);
    }
    EXPECT(worker, bytes > 0);
}

void test_shared__a_checkpoint_of_another_framework_is_read_by_many_threads(void)
{
    static const char *const paths[] = {TESTS_DIR "/checkpoints/keras-adamw.weights.h5",
                                        TESTS_DIR "/checkpoints/jax-orbax-sharded-mlp-adamw",
                                        TESTS_DIR "/checkpoints/deepspeed-zero2"};
    struct cameo_error err;

    for (size_t i = 0; i < CM_COUNT(paths); i++) {
        struct shared shared = {0};
        OK(cameo_saved_open(paths[i], &shared.saved, &err));
        together(&shared, read_saved);
        cameo_saved_free(shared.saved);
    }
}

/* ---- values and curves ---- */

static void feed_shared_value(struct worker *worker, int round)
{
    const struct cameo_feed feed = cameo_feed_value("x", worker->shared->value);
    struct cameo_fetch fetch = cameo_fetch_value("y");
    char tag[32];

    EXPECT(worker, cameo_session_run(worker->shared->session, &feed, 1, &fetch, 1, NULL,
                                     &worker->err) == CAMEO_OK);
    EXPECT(worker, fetch.value && cameo_value_real(fetch.value, 0) == 10);
    cameo_value_free(fetch.value);
    snprintf(tag, sizeof tag, "thread/%d", worker->number);
    EXPECT(worker, cameo_events_add_scalar(worker->shared->events, tag, round, 1, 2,
                                           &worker->err) == CAMEO_OK);
}

void test_shared__a_value_feeds_many_runs_and_any_thread_adds_to_curves(void)
{
    static const int64_t dims[] = {1, 4};
    static const float x[] = {2, 2, 2, 2};
    const struct cameo_tensor tensor = cameo_tensor_of(CAMEO_FLOAT, 2, dims, x, sizeof x);
    struct shared shared = {.model = load_text(network)};
    struct cameo_error err;
    struct folder folder;

    folder_make(&folder);
    OK(cameo_events_new(folder.path, &shared.events, &err));
    OK(cameo_value_from_tensor(&tensor, &shared.value, &err));
    shared.session = open_session(shared.model, NULL, NULL, 1);
    together(&shared, feed_shared_value);
    cameo_value_free(shared.value);
    cameo_session_free(shared.session);
    cameo_events_free(shared.events);
    cameo_model_free(shared.model);
    folder_remove(&folder);
}
