/* Trainings whose data is in memory: arrays, batches of a function, models that go to no file. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/api_case.h"
#include "api/lend.h"
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <unistd.h>

static const char line[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 1}>\n"
    "{ y = MatMul(x, w) }\n"
    "training {\n"
    "  algorithm: step (float[N,1] t) => (float loss, float[2,1] w_new)\n"
    "  <float rate = {0.1}, float half = {0.5}>\n"
    "  { d = Sub(y, t)\n    s = Mul(d, d)\n    h = Mul(s, half)\n"
    "    loss = ReduceSum<keepdims = 0>(h)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
    "(w, x, t)\n"
    "    m = Mul(g, rate)\n    w_new = Sub(w, m) },\n  update_binding: [\"w\": \"w_new\"]\n}\n";

enum { ROWS = 12, BATCH = 3, BATCHES = ROWS / BATCH };

static float xs[ROWS][2], ts[ROWS][1];

static void fill_data(void)
{
    for (int i = 0; i < ROWS; i++) {
        xs[i][0] = (float)i * 0.05f - 0.3f;
        xs[i][1] = (float)(i * i % 7) * 0.1f;
        ts[i][0] = 2 * xs[i][0] - xs[i][1];
    }
}

static struct cameo_trainer *open_trainer(struct cameo_model *model)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    struct cameo_error err;

    options.threads = 1;
    OK(cameo_trainer_new(model, &options, &trainer, &err));
    return trainer;
}

struct weights {
    float w[2];
};

static struct weights weights_of(const struct cameo_trainer *trainer)
{
    struct weights weights;
    struct cameo_error err;

    OK(cameo_trainer_read_parameters(trainer, &weights, sizeof weights, &err));
    return weights;
}

#define SAME(a, b) CHECK(memcmp(&(a), &(b), sizeof(a)) == 0)

/* ---- arrays ---- */

static void count_deletion(void *arg)
{
    ++*(int *)arg;
}

/* What training for two epochs on the arrays gives. */
static struct weights train_on(const struct cameo_tensor *tensors)
{
    static const char *const names[] = {"x", "t"};
    struct cameo_batches_options batching = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    struct cameo_dataset *data;
    struct cameo_batches *batches;
    struct cameo_error err;

    OK(cameo_dataset_from_arrays(names, tensors, 2, &data, &err));
    CHECK_INT(cameo_dataset_samples(data), ROWS);
    batching.batch_size = BATCH;
    batching.prefetch = true;
    OK(cameo_batches_new(data, trainer, &batching, &batches, &err));
    options.epochs = 2;
    OK(cameo_trainer_run(trainer, batches, &options, NULL, &err));
    CHECK_INT(cameo_trainer_steps(trainer), 2 * BATCHES);
    const struct weights weights = weights_of(trainer);
    cameo_batches_free(batches);
    cameo_dataset_free(data);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    return weights;
}

void test_training_memory__arrays_of_any_layout_train_alike(void)
{
    static const int64_t x_dims[] = {ROWS, 2}, t_dims[] = {ROWS, 1};
    static const int64_t padded[] = {5, 1}, columns[] = {1, ROWS}, apart[] = {6, 3};
    float wide[ROWS * 5] = {0}, turned[2 * ROWS], loose[ROWS * 6] = {0};
    struct cameo_tensor tensors[2];
    int deleted = 0;

    fill_data();
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 2; k++)
            wide[i * 5 + k] = turned[k * ROWS + i] = loose[i * 6 + 3 * k] = xs[i][k];
    tensors[0] = cameo_tensor_of(CAMEO_FLOAT, 2, x_dims, xs, sizeof xs);
    tensors[1] = cameo_tensor_of(CAMEO_FLOAT, 2, t_dims, ts, sizeof ts);
    const struct weights dense = train_on(tensors);
    const struct {
        const int64_t *strides;
        float *data;
        size_t bytes;
    } layouts[] = {{padded, wide, sizeof wide},
                   {columns, turned, sizeof turned},
                   {apart, loose, sizeof loose}};
    for (size_t i = 0; i < 3; i++) {
        tensors[0].strides = layouts[i].strides;
        tensors[0].data = layouts[i].data;
        tensors[0].bytes = layouts[i].bytes;
        tensors[0].deleter = count_deletion;
        tensors[0].deleter_arg = &deleted;
        const struct weights other = train_on(tensors);
        SAME(dense, other);
        CHECK_INT(deleted, (int)i + 1);
    }
}

void test_training_memory__arrays_that_do_not_go_together_are_refused(void)
{
    static const int64_t x_dims[] = {ROWS, 2}, fewer[] = {ROWS - 1, 1}, none[] = {0, 2};
    static const char *const names[] = {"x", "t"}, *const twice[] = {"x", "x"};
    struct cameo_dataset *data;
    struct cameo_error err;
    int deleted = 0;
    struct cameo_tensor tensors[2] = {
        cameo_tensor_of(CAMEO_FLOAT, 2, x_dims, xs, sizeof xs),
        cameo_tensor_of(CAMEO_FLOAT, 2, fewer, ts, sizeof ts - sizeof *ts)};

    tensors[0].deleter = count_deletion;
    tensors[0].deleter_arg = &deleted;
    REFUSED(cameo_dataset_from_arrays(names, tensors, 2, &data, &err), CAMEO_BAD_MODEL,
            "array 'x' has 12 samples, array 't' has 11");
    REFUSED(cameo_dataset_from_arrays(twice, tensors, 2, &data, &err), CAMEO_BAD_ARGUMENT,
            "two arrays are called 'x'");
    tensors[1] = cameo_tensor_of(CAMEO_FLOAT, 2, none, ts, 0);
    REFUSED(cameo_dataset_from_arrays(names, tensors, 2, &data, &err), CAMEO_BAD_MODEL,
            "array 't': it has no samples");
    tensors[1] = cameo_tensor_of(CAMEO_FLOAT, 2, x_dims, ts, 3);
    REFUSED(cameo_dataset_from_arrays(names, tensors, 2, &data, &err), CAMEO_BAD_ARGUMENT,
            "array 't': its memory has 3 bytes");
    REFUSED(cameo_dataset_from_arrays(names, tensors, 0, &data, &err), CAMEO_BAD_MODEL,
            "no arrays");
    CHECK(data == NULL);
    CHECK_INT(deleted, 0);
}

/* ---- batches of a function ---- */

struct source {
    uint64_t epoch;
    int64_t at, begun, skipped, fail_at;
    bool once; /* there is a first epoch only */
    struct cameo_feed feeds[2];
    struct cameo_tensor tensors[2];
};

static enum cameo_status begin(void *arg, uint64_t epoch, int64_t skip, struct cameo_error *err)
{
    struct source *s = arg;

    (void)err;
    s->epoch = epoch;
    s->at = skip;
    s->begun++;
    s->skipped += skip;
    return CAMEO_OK;
}

/* Epochs go through the batches in turns of their own. */
static enum cameo_status next(void *arg, const struct cameo_feed **feeds, size_t *count,
                              int64_t *rows, struct cameo_error *err)
{
    static const int64_t x_dims[] = {BATCH, 2}, t_dims[] = {BATCH, 1};
    struct source *s = arg;
    const int64_t row = (s->at + (int64_t)s->epoch) % BATCHES * BATCH;

    if (s->fail_at && s->fail_at == (int64_t)s->epoch * BATCHES + s->at) {
        snprintf(err->message, sizeof err->message, "the reader was told to stop");
        return CAMEO_CANCELLED;
    }
    if (s->at == BATCHES || (s->once && s->epoch)) {
        *rows = 0;
        return CAMEO_OK;
    }
    s->tensors[0] = cameo_tensor_of(CAMEO_FLOAT, 2, x_dims, xs[row], BATCH * sizeof *xs);
    s->tensors[1] = cameo_tensor_of(CAMEO_FLOAT, 2, t_dims, ts[row], BATCH * sizeof *ts);
    s->feeds[0] = cameo_feed_tensor("x", &s->tensors[0]);
    s->feeds[1] = cameo_feed_tensor("t", &s->tensors[1]);
    s->at++;
    *feeds = s->feeds;
    *count = 2;
    *rows = BATCH;
    return CAMEO_OK;
}

struct seen {
    int steps, epochs, best, stop_at;
    uint64_t told;
    double measures[8];
};

static bool watch(void *arg, const struct cameo_progress *progress)
{
    struct seen *seen = arg;

    seen->steps += progress->moment == CAMEO_AFTER_STEP;
    seen->told = progress->steps;
    if (progress->moment == CAMEO_AFTER_EPOCH) {
        CHECK(progress->measure && progress->measure->samples == ROWS);
        CHECK(progress->epoch >= 1 && progress->epoch < 8);
        seen->measures[progress->epoch] = progress->measure->loss;
        seen->best += progress->best;
        seen->epochs++;
    }
    return !seen->stop_at || seen->steps < seen->stop_at;
}

struct run {
    struct cameo_model *model;
    struct cameo_trainer *trainer;
    struct source source, judge;
    struct cameo_batches *batches, *validation;
    struct cameo_loop_options options;
    struct seen seen;
};

static void open_run(struct run *run, bool counted, const char *checkpoint)
{
    struct cameo_batch_source source = CAMEO_BATCH_SOURCE_INIT;
    struct cameo_error err;

    fill_data();
    *run = (struct run){.model = load_text(line), .options = CAMEO_LOOP_OPTIONS_INIT};
    run->trainer = open_trainer(run->model);
    source.begin = begin;
    source.next = next;
    source.batches = counted ? BATCHES : 0;
    source.arg = &run->judge;
    OK(cameo_batches_from_function(run->trainer, &source, &run->validation, &err));
    source.arg = &run->source;
    OK(cameo_batches_from_function(run->trainer, &source, &run->batches, &err));
    run->options.epochs = 3;
    run->options.validation = run->validation;
    run->options.progress = watch;
    run->options.progress_arg = &run->seen;
    run->options.checkpoint = checkpoint;
    run->options.resume = checkpoint != NULL;
}

static struct weights close_run(struct run *run)
{
    const struct weights weights = weights_of(run->trainer);

    cameo_batches_free(run->batches);
    cameo_batches_free(run->validation);
    cameo_trainer_free(run->trainer);
    cameo_model_free(run->model);
    return weights;
}

static enum cameo_status go(struct run *run, struct cameo_error *err)
{
    return cameo_trainer_run(run->trainer, run->batches, &run->options, NULL, err);
}

void test_training_memory__a_function_gives_batches_and_ends_epochs(void)
{
    for (int counted = 0; counted < 2; counted++) {
        struct cameo_error err;
        struct run run;

        open_run(&run, counted, NULL);
        CHECK_INT(cameo_batches_per_epoch(run.batches), counted ? BATCHES : 0);
        CHECK(cameo_batches_shapes(run.batches) == NULL);
        OK(go(&run, &err));
        CHECK_INT(run.seen.steps, 3 * BATCHES);
        CHECK_INT(run.seen.epochs, 3);
        CHECK_INT(run.seen.told, counted ? 3 * BATCHES : 0);
        CHECK_INT(run.source.begun, 3);
        CHECK_INT(run.judge.begun, 3);
        CHECK(run.seen.measures[3] < run.seen.measures[1]);
        (void)close_run(&run);
    }
}

void test_training_memory__steps_end_a_run_and_its_epoch_where_it_is_known(void)
{
    struct cameo_error err;
    struct run run;

    for (int counted = 0; counted < 2; counted++) {
        open_run(&run, counted, NULL);
        run.options.epochs = 0;
        run.options.steps = 2 * BATCHES;
        OK(go(&run, &err));
        CHECK_INT(run.seen.steps, 2 * BATCHES);
        CHECK_INT(run.seen.epochs, 1 + counted);
        (void)close_run(&run);
    }
}

void test_training_memory__a_run_that_was_stopped_anywhere_ends_in_the_same_bits(void)
{
    struct cameo_error err;
    struct run run;

    open_run(&run, true, NULL);
    OK(go(&run, &err));
    const struct seen whole = run.seen;
    const struct weights wanted = close_run(&run);
    for (int stop = 1; stop < 3 * BATCHES; stop++) {
        char checkpoint[FOLDER_PATH_SIZE];
        struct folder folder;

        folder_make(&folder);
        folder_path(&folder, "checkpoints", checkpoint);
        open_run(&run, stop % 2, checkpoint);
        run.seen.stop_at = stop;
        OK(go(&run, &err));
        const int epochs = run.seen.epochs;
        (void)close_run(&run);
        open_run(&run, stop % 2, checkpoint);
        OK(go(&run, &err));
        CHECK_INT(run.seen.steps, 3 * BATCHES - stop);
        CHECK_INT(epochs + run.seen.epochs, 3);
        CHECK_INT(run.source.skipped, stop % BATCHES ? stop % BATCHES : BATCHES);
        for (int i = epochs + 1; i <= 3; i++)
            SAME(run.seen.measures[i], whole.measures[i]);
        const struct weights got = close_run(&run);
        SAME(got, wanted);
        folder_remove(&folder);
    }
}

/* Cancelled while a batch is read, or in the validation, which then comes again. */
void test_training_memory__what_is_cancelled_leaves_a_checkpoint(void)
{
    struct cameo_error err;
    struct run run;

    open_run(&run, false, NULL);
    OK(go(&run, &err));
    const struct seen whole = run.seen;
    const struct weights wanted = close_run(&run);
    for (int in_validation = 0; in_validation < 2; in_validation++) {
        char checkpoint[FOLDER_PATH_SIZE];
        struct folder folder;

        folder_make(&folder);
        folder_path(&folder, "checkpoints", checkpoint);
        open_run(&run, false, checkpoint);
        *(in_validation ? &run.judge : &run.source) = (struct source){.fail_at = 2};
        REFUSED(go(&run, &err), CAMEO_CANCELLED, "the reader was told to stop");
        CHECK_INT(run.seen.steps, in_validation ? BATCHES : 2);
        CHECK_INT(run.seen.epochs, 0);
        run.judge.fail_at = run.source.fail_at = 0;
        run.options.resume = true;
        OK(go(&run, &err)); /* the same trainer goes on, too */
        CHECK_INT(run.seen.epochs, 3);
        CHECK_INT(run.seen.best, whole.best);
        const struct weights same = close_run(&run);
        SAME(same, wanted);
        folder_remove(&folder);
    }
}

void test_training_memory__the_validation_of_a_set_that_was_cut_off_comes_again(void)
{
    static const int64_t x_dims[] = {ROWS, 2}, t_dims[] = {ROWS, 1};
    static const char *const names[] = {"x", "t"};
    struct cameo_batches_options batching = CAMEO_BATCHES_OPTIONS_INIT;
    char checkpoint[FOLDER_PATH_SIZE];
    struct cameo_dataset *data;
    struct folder folder;
    struct cameo_error err;
    struct weights wanted = {{0}};
    struct seen whole = {0};

    fill_data();
    const struct cameo_tensor tensors[] = {cameo_tensor_of(CAMEO_FLOAT, 2, x_dims, xs, sizeof xs),
                                           cameo_tensor_of(CAMEO_FLOAT, 2, t_dims, ts, sizeof ts)};
    batching.batch_size = BATCH;
    folder_make(&folder);
    folder_path(&folder, "checkpoints", checkpoint);
    for (int cut = 0; cut < 2; cut++) {
        struct run run;

        open_run(&run, false, cut ? checkpoint : NULL);
        cameo_batches_free(run.batches);
        OK(cameo_dataset_from_arrays(names, tensors, 2, &data, &err));
        OK(cameo_batches_new(data, run.trainer, &batching, &run.batches, &err));
        run.judge.fail_at = cut ? 1 : 0;
        if (cut) {
            REFUSED(go(&run, &err), CAMEO_CANCELLED, "told to stop");
            CHECK_INT(run.seen.steps, BATCHES);
            run.judge.fail_at = 0;
        }
        OK(go(&run, &err));
        CHECK_INT(run.seen.steps, 3 * BATCHES);
        CHECK_INT(run.seen.epochs, 3);
        if (cut)
            CHECK_INT(run.seen.best, whole.best);
        whole = run.seen;
        const struct weights got = close_run(&run);
        if (cut)
            SAME(got, wanted);
        wanted = got;
        cameo_dataset_free(data);
    }
    folder_remove(&folder);
}

void test_training_memory__sources_without_functions_or_batches_are_refused(void)
{
    struct cameo_batch_source none = CAMEO_BATCH_SOURCE_INIT;
    struct cameo_batches *batches;
    struct cameo_error err;
    struct run run;

    open_run(&run, false, NULL);
    REFUSED(cameo_batches_from_function(run.trainer, &none, &batches, &err), CAMEO_BAD_ARGUMENT,
            "no function 'begin'");
    none.begin = begin;
    REFUSED(cameo_batches_from_function(run.trainer, &none, &batches, &err), CAMEO_BAD_ARGUMENT,
            "no function 'next'");
    none.next = next;
    none.batches = -1;
    REFUSED(cameo_batches_from_function(run.trainer, &none, &batches, &err), CAMEO_BAD_ARGUMENT,
            "-1 batches");
    CHECK(batches == NULL);
    run.source.once = true;
    REFUSED(go(&run, &err), CAMEO_BAD_ARGUMENT, "epoch 2 has no batches");
    CHECK_INT(run.seen.steps, BATCHES);
    (void)close_run(&run);
}

/* ---- counting ---- */

void test_training_memory__a_further_run_counts_its_own_steps(void)
{
    char checkpoint[FOLDER_PATH_SIZE];
    struct folder folder;
    struct cameo_error err;
    struct run run;

    folder_make(&folder);
    folder_path(&folder, "checkpoints", checkpoint);
    open_run(&run, true, NULL);
    OK(go(&run, &err));
    run.options.epochs = 0;
    run.options.steps = 5;
    OK(go(&run, &err)); /* counted from the first step ever, there is nothing to do */
    CHECK_INT(run.seen.steps, 3 * BATCHES);
    run.options.further = true;
    run.options.checkpoint = checkpoint;
    run.seen.stop_at = 3 * BATCHES + 2;
    OK(cameo_batches_seek(run.batches, NULL, &err));
    OK(go(&run, &err));
    CHECK_INT(run.seen.steps, 3 * BATCHES + 2);
    run.seen.stop_at = 0;
    run.options.resume = true;
    OK(go(&run, &err));
    CHECK_INT(run.seen.steps, 3 * BATCHES + 5);
    CHECK_INT(run.seen.told, 3 * BATCHES + 5);
    (void)close_run(&run);
    folder_remove(&folder);
}

/* ---- what comes out ---- */

static void take_output(void *arg, struct cameo_text name, struct cameo_value *value)
{
    CHECK_INT(name.size, 1);
    *(struct cameo_value **)arg = value;
}

void test_training_memory__the_trained_model_is_there_without_a_file(void)
{
    static const int64_t x_dims[] = {ROWS, 2};
    static const char *const names[] = {"x"};
    struct cameo_prediction report = CAMEO_PREDICTION_INIT;
    struct cameo_dataset *data;
    struct cameo_model *trained;
    struct cameo_value *y = NULL;
    struct cameo_error err;
    struct weights in_model;
    struct run run;

    open_run(&run, true, NULL);
    OK(go(&run, &err));
    OK(cameo_trainer_copy_model(run.trainer, &trained, &err));
    OK(cameo_model_read_initializer(run.model, 0, &in_model, sizeof in_model, &err));
    CHECK(in_model.w[0] == 1 && in_model.w[1] == 1);
    OK(cameo_model_read_initializer(trained, 0, &in_model, sizeof in_model, &err));
    const struct weights now = weights_of(run.trainer);
    SAME(now, in_model);
    const struct cameo_tensor tensor = cameo_tensor_of(CAMEO_FLOAT, 2, x_dims, xs, sizeof xs);
    OK(cameo_dataset_from_arrays(names, &tensor, 1, &data, &err));
    OK(cameo_model_predict_values(trained, data, NULL, take_output, &y, &report, &err));
    CHECK_INT(report.samples, ROWS);
    CHECK_INT(cameo_value_count(y), ROWS);
    for (int i = 0; i < ROWS; i++) {
        const double wanted = xs[i][0] * now.w[0] + xs[i][1] * now.w[1];
        CHECK(cameo_value_real(y, i) - wanted < 1e-6 && wanted - cameo_value_real(y, i) < 1e-6);
    }
    cameo_value_free(y);
    cameo_dataset_free(data);
    cameo_model_free(trained);
    (void)close_run(&run);
}
