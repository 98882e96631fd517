/* Whole runs with a caller who is told, stopped, cancelled and resumed. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/api_case.h"
#include "api/lend.h"
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const char line[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>\n"
    "{ y = MatMul(x, w) }\n"
    "training {\n"
    "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new)\n"
    "  <float rate = {0.1}, float half = {0.5}>\n"
    "  { d = Sub(y, t)\n    s = Mul(d, d)\n    h = Mul(s, half)\n"
    "    loss = ReduceSum<keepdims = 0>(h)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
    "(w, x, t)\n"
    "    m = Mul(g, rate)\n    w_new = Sub(w, m) },\n  update_binding: [\"w\": \"w_new\"]\n}\n";

static struct cameo_trainer *open_trainer(struct cameo_model *model)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    struct cameo_error err;

    options.threads = 1;
    options.seed = 5;
    OK(cameo_trainer_new(model, &options, &trainer, &err));
    return trainer;
}

static const int64_t pair[] = {2, 1};

static struct cameo_feed feed(const char *name, const float *values)
{
    return cameo_feed_tensor(name, lend(CAMEO_FLOAT, 2, pair, values, 2 * sizeof *values));
}

struct seen {
    int steps, epochs, checkpoints, stop_at;
    double loss;
};

static bool watch(void *arg, const struct cameo_progress *progress)
{
    struct seen *seen = arg;

    seen->steps += progress->moment == CAMEO_AFTER_STEP;
    seen->checkpoints += progress->moment == CAMEO_AFTER_CHECKPOINT;
    if (progress->moment == CAMEO_AFTER_CHECKPOINT)
        CHECK(access(progress->checkpoint, R_OK) == 0);
    if (progress->moment == CAMEO_AFTER_EPOCH) {
        seen->epochs++;
        CHECK(progress->measure && progress->measure->compared == 24);
        CHECK_INT(progress->epoch, seen->epochs);
        CHECK_INT(progress->step, 4 * seen->epochs);
    }
    CHECK_INT(progress->steps, 12);
    seen->loss = progress->loss;
    return !seen->stop_at || seen->steps < seen->stop_at;
}

/* 24 rows of t = 2 x as CSV. */
static void write_data(const char *path)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    fputs("x,t\n", file);
    for (int i = 0; i < 24; i++)
        fprintf(file, "%.3f,%.3f\n", i * 0.01 - 0.1, i * 0.02 - 0.2);
    fclose(file);
}

struct run {
    struct cameo_model *model;
    struct cameo_trainer *trainer;
    struct cameo_dataset *data, *more;
    struct cameo_batches *batches, *validation;
};

static void open_run(struct run *run, const char *data)
{
    struct cameo_batches_options options = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_dataset_options columns = CAMEO_DATASET_OPTIONS_INIT;
    struct cameo_error err;

    columns.columns = "x=x t:float=t";
    run->model = load_text(line);
    run->trainer = open_trainer(run->model);
    OK(cameo_dataset_open(data, &columns, &run->data, &err));
    OK(cameo_dataset_open(data, &columns, &run->more, &err));
    options.batch_size = 6;
    OK(cameo_batches_new(run->more, run->trainer, &options, &run->validation, &err));
    options.shuffle = true;
    options.seed = 3;
    OK(cameo_batches_new(run->data, run->trainer, &options, &run->batches, &err));
}

static float close_run(struct run *run)
{
    struct cameo_error err;
    float w;

    OK(cameo_trainer_read_parameters(run->trainer, &w, sizeof w, &err));
    cameo_batches_free(run->batches);
    cameo_batches_free(run->validation);
    cameo_dataset_free(run->data);
    cameo_dataset_free(run->more);
    cameo_trainer_free(run->trainer);
    cameo_model_free(run->model);
    return w;
}

void test_training_run__a_run_tells_what_happens_and_may_be_stopped_and_resumed(void)
{
    struct folder folder;
    char data[FOLDER_PATH_SIZE], checkpoint[FOLDER_PATH_SIZE];
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_loop_result result = CAMEO_LOOP_RESULT_INIT;
    struct cameo_error err;
    struct seen seen = {0};
    struct run run;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    folder_path(&folder, "checkpoints", checkpoint);
    write_data(data);
    open_run(&run, data);
    options.epochs = 3;
    options.validation = run.validation;
    options.progress = watch;
    options.progress_arg = &seen;
    OK(cameo_trainer_run(run.trainer, run.batches, &options, &result, &err));
    CHECK_INT(seen.steps, 12);
    CHECK_INT(seen.epochs, 3);
    CHECK(!result.stopped && !result.out_of_patience && result.loss == seen.loss);
    CHECK(result.best_loss < 1);
    const float never_stopped = close_run(&run);

    options.checkpoint = checkpoint;
    options.checkpoint_every = 2;
    options.resume = true;
    for (int stop = 5; stop >= 0; stop -= 5) {
        open_run(&run, data);
        seen = (struct seen){.stop_at = stop, .epochs = stop ? 0 : 1};
        options.validation = run.validation;
        OK(cameo_trainer_run(run.trainer, run.batches, &options, &result, &err));
        CHECK(result.stopped == (stop > 0));
        CHECK_INT(seen.steps, stop ? 5 : 7);
        CHECK_INT(seen.checkpoints, stop ? 3 : 4); /* the last one too, and once */
        CHECK_INT(cameo_trainer_steps(run.trainer), stop ? 5 : 12);
        const float w = close_run(&run);
        CHECK(stop || w == never_stopped);
    }
    options.steps = 4;
    open_run(&run, data);
    options.validation = run.validation;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "epochs and steps both say when to stop"));
    close_run(&run);
    folder_remove(&folder);
}

void test_training_run__what_a_run_cannot_do_is_refused_before_it_begins(void)
{
    struct cameo_batches_options endless = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_loop_result unmade = {0};
    char data[FOLDER_PATH_SIZE], checkpoint[FOLDER_PATH_SIZE];
    struct cameo_batches *validation;
    struct folder folder;
    struct cameo_error err;
    struct run run;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    folder_path(&folder, "checkpoints", checkpoint);
    write_data(data);
    open_run(&run, data);
    endless.endless = true;
    OK(cameo_batches_new(run.more, run.trainer, &endless, &validation, &err));
    options.validation = validation;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the validation batches are endless");
    options.validation = NULL;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, &unmade, &err) ==
          CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "_INIT macro"));
    /* A checkpoint that is there but cannot be opened is not a first run. */
    CHECK(symlink(checkpoint, checkpoint) == 0);
    options.checkpoint = checkpoint;
    options.resume = true;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_IO);
    CHECK(strstr(err.message, checkpoint));
    CHECK_INT(cameo_trainer_steps(run.trainer), 0);
    cameo_batches_free(validation);
    close_run(&run);
    folder_remove(&folder);
}

static bool finds(const struct cameo_findings *findings, const char *reason)
{
    const struct cameo_finding *finding;

    for (size_t i = 0; (finding = cameo_findings_at(findings, i)) != NULL; i++)
        if (strcmp(finding->reason.data, reason) == 0)
            return strcmp(finding->rule.data, "train") == 0;
    return false;
}

static void check_wrong(struct cameo_findings *findings, size_t count)
{
    CHECK_INT(cameo_findings_violations(findings), count);
    CHECK(finds(findings, "epochs and steps both say when to stop: give one of them"));
    CHECK(finds(findings, "resume needs a folder for checkpoints (checkpoint)"));
    CHECK(finds(findings, "checkpoint_every needs a folder for checkpoints (checkpoint)"));
    CHECK(finds(findings, "patience needs validation data (validate)"));
    cameo_findings_free(findings);
}

void test_training_run__all_that_is_wrong_with_its_options_is_listed_with_and_without_a_trainer(
    void)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_findings *findings = NULL;
    char data[FOLDER_PATH_SIZE];
    struct folder folder;
    struct cameo_error err;
    struct run run;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    write_data(data);
    open_run(&run, data);
    OK(cameo_loop_check(NULL, false, &findings, &err));
    CHECK(!findings);
    options.epochs = options.steps = options.checkpoint_every = options.patience = 1;
    options.resume = true;
    options.best = "best.onnx";
    CHECK(cameo_loop_check(&options, false, &findings, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "the training cannot begin, for 5 reasons"));
    check_wrong(findings, 5);
    options.best = NULL;
    options.findings = &findings;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    check_wrong(findings, 4);
    options.patience = 0;
    options.validation = run.validation;
    options.checkpoint = "nowhere";
    CHECK(cameo_loop_check(&options, false, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "epochs and steps both say when to stop: give one of them");
    options.steps = 0;
    OK(cameo_loop_check(&options, false, &findings, &err));
    CHECK_INT(cameo_trainer_steps(run.trainer), 0);
    close_run(&run);
    folder_remove(&folder);
}

struct ends {
    uint64_t at[8], steps;
    size_t count;
    int64_t compared;
    struct cameo_cancel *cancel;
    uint64_t cancel_at;
    int checkpoints;
    bool only_one;
};

static bool note_ends(void *arg, const struct cameo_progress *progress)
{
    struct ends *ends = arg;

    ends->steps = progress->steps;
    ends->checkpoints += progress->moment == CAMEO_AFTER_CHECKPOINT;
    if (ends->cancel && progress->step == ends->cancel_at)
        cameo_cancel_set(ends->cancel);
    if (progress->moment == CAMEO_AFTER_EPOCH && ends->count < 8) {
        ends->at[ends->count++] = progress->step;
        ends->compared += progress->measure ? progress->measure->compared : 0;
    }
    return !ends->only_one || progress->moment == CAMEO_AT_START;
}

/* Whatever came before the run: a step, a batch, half of the validation data. */
void test_training_run__epochs_end_where_the_data_does(void)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    static const float xs[] = {1, 2}, ts[] = {2, 4};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    const struct cameo_feed *unused;
    char data[FOLDER_PATH_SIZE];
    struct ends ends = {0};
    struct folder folder;
    struct cameo_error err;
    struct run run;
    int64_t rows;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    write_data(data);
    open_run(&run, data);
    OK(cameo_trainer_step(run.trainer, feeds, 2, NULL, &err));
    OK(cameo_batches_next(run.validation, &unused, &rows, &err));
    options.epochs = 3;
    options.validation = run.validation;
    options.progress = note_ends;
    options.progress_arg = &ends;
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    CHECK_INT(ends.count, 2);
    CHECK_INT(ends.at[0], 5);
    CHECK_INT(ends.at[1], 9);
    CHECK_INT(ends.compared, 2 * 24);
    close_run(&run);

    /* 2^62 epochs of 4 steps are not none. */
    open_run(&run, data);
    ends = (struct ends){.only_one = true};
    options.epochs = UINT64_C(1) << 62;
    options.validation = NULL;
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    CHECK_INT(cameo_trainer_steps(run.trainer), 1);
    CHECK(ends.steps == UINT64_MAX);
    close_run(&run);
    folder_remove(&folder);
}

void test_training_run__a_run_that_is_cancelled_leaves_a_checkpoint_of_its_last_step(void)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    char data[FOLDER_PATH_SIZE], checkpoint[FOLDER_PATH_SIZE];
    struct cameo_cancel *cancel;
    struct ends ends = {0};
    struct folder folder;
    struct cameo_error err;
    struct run run;

    OK(cameo_cancel_new(&cancel, &err));
    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    folder_path(&folder, "checkpoints", checkpoint);
    write_data(data);
    options.epochs = 2;
    options.progress = note_ends;
    options.progress_arg = &ends;
    open_run(&run, data);
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    const float never_stopped = close_run(&run);

    options.checkpoint = checkpoint;
    options.resume = true;
    open_run(&run, data);
    ends = (struct ends){.cancel = cancel, .cancel_at = 3};
    cameo_trainer_set_cancel(run.trainer, cancel);
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_CANCELLED);
    CHECK(err.status == CAMEO_CANCELLED);
    CHECK_INT(ends.checkpoints, 1);
    CHECK_INT(cameo_trainer_steps(run.trainer), 3);
    close_run(&run);
    open_run(&run, data);
    ends = (struct ends){0};
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    CHECK_INT(cameo_trainer_steps(run.trainer), 8);
    CHECK_INT(ends.checkpoints, 1);
    CHECK(close_run(&run) == never_stopped);
    cameo_cancel_free(cancel);
    folder_remove(&folder);
}

/* The rate of a prepared training whose validation loss does not fall. */
void test_training_run__a_rate_on_a_plateau_falls_after_validations(void)
{
    static const char plain[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>\n"
                                "{ y = MatMul(x, w) }\n";
    struct cameo_prepare_options prepare = CAMEO_PREPARE_OPTIONS_INIT;
    const float x[] = {1, 2};
    const struct cameo_feed feeds[] = {feed("x", x), feed("target", x)};
    struct cameo_error err;
    double scalars[8];
    size_t lr = 0;

    prepare.loss = "mse";
    prepare.optimizer = "sgd";
    prepare.lr = 0.5;
    prepare.schedule = CAMEO_SCHEDULE_PLATEAU;
    prepare.schedule_patience = 1;
    prepare.schedule_min_lr = 0.04;
    struct cameo_model *model = load_text(plain);
    OK(cameo_model_prepare(model, &prepare, NULL, &err));
    struct cameo_trainer *trainer = open_trainer(model);
    while (strcmp(cameo_trainer_scalar_name(trainer, lr), "lr") != 0)
        lr++;
    const double losses[] = {1, 0.9, 0.9, NAN, 0.8, 0.9, 0.9, 2, 2};
    const double rates[] = {0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.04, 0.04, 0.04};
    for (size_t i = 0; i < 9; i++) {
        OK(cameo_trainer_add_validation(trainer, losses[i], &err));
        OK(cameo_trainer_step(trainer, feeds, 2, scalars, &err));
        CHECK(fabs(scalars[lr] - rates[i]) < 1e-12);
    }
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    model = load_text(line);
    trainer = open_trainer(model);
    CHECK(cameo_trainer_add_validation(trainer, 1, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "schedule 'plateau'") != NULL);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}
