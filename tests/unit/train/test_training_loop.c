/* Whole runs: the same bits however often they are stopped, validation, checkpoints that come and
 * go, conditions that must be the same. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train/training_loop.h"

#include "io/arrays.h"
#include "onnx/model_case.h"
#include "train/checkpoint.h"
#include "train/checkpoint_folder.h"
#include "train_case.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* t = 2 x learned with momentum, and noise, so that random numbers count. Initialization begins at
 * w = 5. */
#define MODEL(rate)                                                                                \
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"                                                 \
    "g (float[N] x) => (float[N] y) <float w = {0}>\n"                                             \
    "{ y = Mul(x, w) }\n"                                                                          \
    "training { initialization: begin () => (float w_first)\n"                                     \
    "{ w_first = Constant<value_float = 5.0>() },\n"                                               \
    "algorithm: step (float[N] t) => (float loss, float drawn, float w_new, float m_new)\n"        \
    "<float m = {0}, float rate = {" rate "}, float keep = {0.9}>\n"                               \
    "{ d = Sub(y, t)\n s = Mul(d, d)\n loss = ReduceMean<keepdims = 0>(s)\n"                       \
    "p = Mul(d, x)\n slope = ReduceMean<keepdims = 0>(p)\n"                                        \
    "r = RandomNormal<shape = [1], scale = 0.01>()\n drawn = ReduceSum<keepdims = 0>(r)\n"         \
    "k = Mul(m, keep)\n g = Add(slope, drawn)\n m_new = Add(k, g)\n"                               \
    "c = Mul(m_new, rate)\n w_new = Sub(w, c) },\n"                                                \
    "initialization_binding: [\"w\": \"w_first\"],\n"                                              \
    "update_binding: [\"w\": \"w_new\", \"m\": \"m_new\"] }\n"

static const char gentle[] = MODEL("0.02");
static const char wild[] = MODEL("3.0"); /* validation gets worse and worse */

enum { EPOCHS_MAX = 64, PATHS_MAX = 400 };

/* A run with all that it needs, and what was heard of it. */
struct whole {
    struct cm_arena *arena;
    struct cm_trainer *trainer;
    struct cm_feeder *feeder, *validation;
    struct cm_loop_options options;
    struct cm_loop_result result;
    uint64_t stop_at; /* step; 0: none */
    atomic_bool *set; /* by stop_at, instead of saying false */
    uint64_t steps, checkpoints, epochs, began_at;
    uint64_t ends, unwritten;
    bool resumed, no_room;
    double means[EPOCHS_MAX]; /* of the loss, by epoch */
    struct {
        double w;
        int count;
    } saved; /* the best */
    char differences[PATHS_MAX];
    struct cm_error err;
};

static bool hear(void *arg, const struct cm_loop_progress *at)
{
    struct whole *run = arg;

    if (at->moment == CM_AT_START) {
        run->began_at = at->step;
        run->resumed = at->checkpoint != NULL;
    }
    run->steps += at->moment == CM_AFTER_STEP;
    run->ends += at->moment == CM_AT_END;
    CHECK(at->moment != CM_AT_END || at->measure);
    run->unwritten += at->moment == CM_NOT_WRITTEN;
    CHECK((at->moment == CM_NOT_WRITTEN) == (at->unwritten && at->problem));
    if (at->moment == CM_AFTER_CHECKPOINT) {
        run->checkpoints++;
        CHECK(case_exists(at->checkpoint));
    }
    if (at->moment == CM_AFTER_EPOCH) {
        run->epochs++;
        if (at->epoch < EPOCHS_MAX)
            run->means[at->epoch] = at->means[0];
    }
    const bool now = run->stop_at && at->moment == CM_AFTER_STEP && at->step == run->stop_at;
    if (now && run->set)
        atomic_store(run->set, true);
    return !now || run->set;
}

static enum cm_status save_best(void *arg, const char *path, struct cm_error *err)
{
    struct whole *run = arg;

    CHECK_STRING(path, "best.onnx");
    run->saved.w = train_value(run->trainer, "w", 0);
    run->saved.count++;
    return run->no_room ? cm_fail(err, CM_IO, "no room for the best") : CM_OK;
}

static void note_difference(void *arg, const char *key, const char *was, const char *now)
{
    struct whole *run = arg;
    const size_t used = strlen(run->differences);

    snprintf(run->differences + used, sizeof run->differences - used, "%s: %s -> %s\n", key, was,
             now);
}

static void close_dataset(void *what)
{
    cm_dataset_close(what);
}

static void free_feeder(void *what)
{
    cm_feeder_free(what);
}

/* Rows of t = 2 x. */
static struct cm_feeder *feed(struct cm_arena *arena, const struct cm_trainer *trainer,
                              int64_t rows, const struct cm_feed_options *options)
{
    const char *path = case_path(arena, case_folder(arena), "data.csv");
    const struct cm_dataset_options columns = {.columns = "x=x t:float=t"};
    const struct cm_feeder_options all = {.feed = *options};
    struct cm_str text = CM_STR("x,t\n");
    struct cm_dataset *dataset = NULL;
    struct cm_feeder *feeder = NULL;
    struct cm_error err = {0};

    for (int64_t i = 0; i < rows; i++)
        text = cm_arena_printf(arena, "%s%.2f,%.2f\n", text.data, (double)i / 10 - 0.2,
                               (double)i / 5 - 0.4);
    case_write(path, text.data, text.size);
    CHECK_OK(cm_dataset_open(&path, 1, &columns, &dataset, &err), &err);
    cm_arena_defer(arena, close_dataset, dataset);
    CHECK_OK(cm_feeder_new(trainer, dataset, &all, &feeder, &err), &err);
    cm_arena_defer(arena, free_feeder, feeder);
    return feeder;
}

static const struct cm_feed_options usual = {.batch_size = 2, .shuffle = true, .seed = 7};

/* Five rows in batches of two: three steps an epoch, unless feeding says otherwise. */
static void open_with(struct whole *run, struct cm_arena *arena, const char *model,
                      const struct cm_trainer_options *options,
                      const struct cm_feed_options *feeding)
{
    *run = (struct whole){.arena = arena};
    CHECK_OK(cm_trainer_new(arena, train_model(arena, model), options, &run->trainer, &run->err),
             &run->err);
    run->feeder = feed(arena, run->trainer, 5, feeding);
    run->options = (struct cm_loop_options){
        .epochs = 3,
        .progress = hear,
        .progress_arg = run,
        .save = save_best,
        .save_arg = run,
        .resuming = {.difference = note_difference, .difference_arg = run}};
}

static void open_run(struct whole *run, struct cm_arena *arena, const char *model)
{
    const struct cm_trainer_options options = {.threads = 1, .seed = 7, .check_finite = true};

    open_with(run, arena, model, &options, &usual);
}

static void add_validation(struct whole *run)
{
    const struct cm_feed_options options = {.batch_size = 2};

    run->validation = feed(run->arena, run->trainer, 3, &options);
    run->options.validation = run->validation;
    CHECK_OK(cm_trainer_prepare_evaluation(run->trainer, &run->err), &run->err);
}

static enum cm_status go(struct whole *run)
{
    return cm_training_run(run->arena, run->trainer, run->feeder, &run->options, &run->result,
                           &run->err);
}

static void check_same_state(const struct whole *a, const struct whole *b)
{
    CHECK_INT(cm_trainer_steps(a->trainer), cm_trainer_steps(b->trainer));
    for (size_t i = 0; i < cm_trainer_state_count(a->trainer); i++) {
        const struct cm_tensor *x = cm_trainer_state(a->trainer, i);

        CHECK(memcmp(x->data, cm_trainer_state(b->trainer, i)->data, cm_tensor_bytes(x)) == 0);
    }
    CHECK(memcmp(&a->result.loss, &b->result.loss, sizeof a->result.loss) == 0);
    CHECK(a->result.first_loss == b->result.first_loss);
    CHECK(a->result.best_loss == b->result.best_loss);
}

/* ---- stopped and resumed ---- */

static void stop_everywhere(struct cm_arena *arena, const struct cm_feed_options *feeding,
                            uint64_t steps)
{
    const struct cm_trainer_options options = {.threads = 1, .seed = 7, .check_finite = true};
    struct whole unbroken;

    open_with(&unbroken, arena, gentle, &options, feeding);
    add_validation(&unbroken);
    if (feeding->endless)
        unbroken.options = (struct cm_loop_options){.steps = steps,
                                                    .validation = unbroken.validation,
                                                    .progress = hear,
                                                    .progress_arg = &unbroken};
    CHECK_OK(go(&unbroken), &unbroken.err);
    CHECK_INT(unbroken.steps, steps);
    for (uint64_t at = 1; at < steps; at++) {
        const char *folder = case_path(arena, case_folder(arena), "checkpoints");
        struct whole parts[2];

        for (int p = 0; p < 2; p++) {
            struct whole *run = &parts[p];

            open_with(run, arena, gentle, &options, feeding);
            add_validation(run);
            run->options.epochs = unbroken.options.epochs;
            run->options.steps = unbroken.options.steps;
            run->options.checkpoint = folder;
            run->options.resume = p == 1;
            run->stop_at = p == 0 ? at : 0;
            CHECK_OK(go(run), &run->err);
            CHECK(run->result.stopped == (p == 0));
            CHECK_INT(run->began_at, p == 0 ? 0 : at);
            CHECK(run->resumed == (p == 1));
        }
        check_same_state(&parts[1], &unbroken);
        CHECK_INT(parts[0].epochs + parts[1].epochs, unbroken.epochs);
        for (uint64_t e = parts[0].epochs + 1; e <= unbroken.epochs; e++)
            CHECK(parts[1].means[e] == unbroken.means[e]);
    }
}

static void resume_short(struct cm_arena *arena)
{
    stop_everywhere(arena, &usual, 9);
}

static void resume_drop(struct cm_arena *arena)
{
    const struct cm_feed_options drop = {
        .batch_size = 2, .shuffle = true, .seed = 7, .last = CM_LAST_DROP};

    stop_everywhere(arena, &drop, 6);
}

static void resume_wrap(struct cm_arena *arena)
{
    const struct cm_feed_options wrap = {
        .batch_size = 3, .shuffle = true, .seed = 3, .last = CM_LAST_WRAP, .prefetch = true};

    stop_everywhere(arena, &wrap, 6);
}

static void resume_endless(struct cm_arena *arena)
{
    const struct cm_feed_options endless = {.batch_size = 2, .endless = true};

    stop_everywhere(arena, &endless, 11);
}

void test_training_loop__a_run_resumed_at_any_step_ends_with_the_same_bits(void)
{
    check_in_arena(resume_short);
}

void test_training_loop__so_does_one_whose_epochs_drop_their_rest(void)
{
    check_in_arena(resume_drop);
}

void test_training_loop__so_does_one_whose_batches_wrap_around(void)
{
    check_in_arena(resume_wrap);
}

void test_training_loop__so_does_one_that_repeats_its_data(void)
{
    check_in_arena(resume_endless);
}

static void cancel(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    atomic_bool flag = false;
    struct whole unbroken, run;

    open_run(&unbroken, arena, gentle);
    CHECK_OK(go(&unbroken), &unbroken.err);
    /* The flag of the trainer ends the step under way, which is the one after. */
    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    run.stop_at = 4;
    run.set = &flag;
    cm_trainer_set_cancel(run.trainer, &flag);
    CHECK(go(&run) == CM_CANCELLED);
    CHECK_INT(cm_trainer_steps(run.trainer), 4);
    CHECK_INT(run.checkpoints, 1);
    CHECK(!run.result.stopped);
    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_OK(go(&run), &run.err);
    check_same_state(&run, &unbroken);
}

void test_training_loop__a_cancelled_run_is_resumed_with_the_same_bits(void)
{
    check_in_arena(cancel);
}

/* What is resumed from comes after an initialization. */
static void initialize(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct whole runs[2];

    for (int p = 0; p < 2; p++) {
        struct whole *run = &runs[p];

        open_run(run, arena, gentle);
        CHECK_OK(cm_trainer_initialize(run->trainer, &run->err), &run->err);
        run->options.checkpoint = folder;
        run->options.resume = true;
        CHECK_OK(go(run), &run->err);
        CHECK_INT(run->steps, p == 0 ? 9 : 0);
    }
    CHECK(train_value(runs[0].trainer, "w", 0) > 2.5);
    check_same_state(&runs[1], &runs[0]);
}

void test_training_loop__a_resumed_run_does_not_begin_with_its_initialization(void)
{
    check_in_arena(initialize);
}

/* ---- validation ---- */

static void patience(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct whole run;

    open_run(&run, arena, wild);
    add_validation(&run);
    run.options.epochs = 50;
    run.options.patience = 2;
    run.options.best = "best.onnx";
    run.options.checkpoint = folder;
    CHECK_OK(go(&run), &run.err);
    CHECK(run.result.out_of_patience && !run.result.stopped);
    CHECK(run.epochs < 50);
    /* The last two were worse than the best, which is the one that was saved. */
    CHECK(run.saved.count >= 1 && (uint64_t)run.saved.count <= run.epochs - 2);
    CHECK(run.saved.w != train_value(run.trainer, "w", 0));
    CHECK(isfinite(run.result.best_loss));
    const uint64_t epochs = run.epochs;
    const double best = run.result.best_loss;

    /* Resumed, it has none left either. */
    open_run(&run, arena, wild);
    add_validation(&run);
    run.options.epochs = 50;
    run.options.patience = 2;
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_OK(go(&run), &run.err);
    CHECK(run.result.out_of_patience && run.steps == 0 && run.result.best_loss == best);
    CHECK_INT(run.checkpoints, 0);
    /* With more of it, it goes on. */
    open_run(&run, arena, wild);
    add_validation(&run);
    run.options.epochs = epochs + 1;
    run.options.patience = 10;
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_OK(go(&run), &run.err);
    CHECK_INT(run.steps, 3);
}

void test_training_loop__it_stops_when_validation_gets_no_better(void)
{
    check_in_arena(patience);
}

static void best(struct cm_arena *arena)
{
    struct whole run;

    open_run(&run, arena, gentle);
    add_validation(&run);
    run.options.best = "best.onnx";
    CHECK_OK(go(&run), &run.err);
    CHECK_INT(run.saved.count, 3); /* it gets better each time */
    CHECK(run.saved.w == train_value(run.trainer, "w", 0));
}

void test_training_loop__the_best_model_is_saved_when_it_is_found(void)
{
    check_in_arena(best);
}

static void end_within_an_epoch(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct whole run;

    for (int p = 0; p < 2; p++) { /* steps 1 and 2 of the first epoch, then 3 and 4 */
        open_run(&run, arena, gentle);
        add_validation(&run);
        run.options.epochs = 0;
        run.options.steps = p == 0 ? 2 : 4;
        run.options.best = "best.onnx";
        run.options.checkpoint = folder;
        run.options.checkpoint_every = 2;
        run.options.resume = true;
        CHECK_OK(go(&run), &run.err);
        CHECK_INT(run.steps, 2);
        CHECK_INT(run.ends, 1);
        CHECK_INT(run.saved.count, p == 0 ? 1 : 2);
        CHECK(run.saved.w == train_value(run.trainer, "w", 0));
        CHECK_INT(run.result.best_step, run.options.steps);
        CHECK_INT(run.result.best_epoch, p == 0 ? 1 : 2);
        CHECK(run.result.finished && isfinite(run.result.best_loss));
    }
    open_run(&run, arena, gentle); /* nothing is left to do, so nothing is measured */
    add_validation(&run);
    run.options.epochs = 0;
    run.options.steps = 4;
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_OK(go(&run), &run.err);
    CHECK_INT(run.ends + run.steps, 0);
    CHECK_INT(run.result.best_step, 4);
}

void test_training_loop__a_run_that_ends_within_an_epoch_is_validated(void)
{
    check_in_arena(end_within_an_epoch);
}

static void go_without_files(struct cm_arena *arena)
{
    struct whole unbroken, run;

    open_run(&unbroken, arena, gentle);
    add_validation(&unbroken);
    CHECK_OK(go(&unbroken), &unbroken.err);
    open_run(&run, arena, gentle);
    add_validation(&run);
    run.options.best = "best.onnx";
    run.no_room = true;
    CHECK_FAILS(go(&run), CM_IO, &run.err, "no room for the best (the run went on without it)");
    CHECK(run.result.finished && !run.result.stopped);
    CHECK_INT(run.unwritten, 3);
    CHECK_INT(run.result.unwritten, 3);
    check_same_state(&run, &unbroken);
}

void test_training_loop__files_that_cannot_be_written_do_not_end_it(void)
{
    check_in_arena(go_without_files);
}

/* The second run is of this process, and begins while the first one tells of its step. */
static bool run_another(void *arg, const struct cm_loop_progress *at)
{
    struct whole *second = arg;

    if (at->moment == CM_AFTER_STEP && !second->steps++) {
        char process[40];

        snprintf(process, sizeof process, "is in use by process %ld", (long)getpid());
        CHECK_FAILS(go(second), CM_BAD_ARGUMENT, &second->err, process);
    }
    return true;
}

static void share_a_folder(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct whole first, second;

    open_run(&second, arena, gentle);
    second.options.checkpoint = folder;
    second.options.resume = true;
    open_run(&first, arena, gentle);
    first.options.checkpoint = folder;
    first.options.progress = run_another;
    first.options.progress_arg = &second;
    CHECK_OK(go(&first), &first.err);
    CHECK(second.steps > 0);
    CHECK(!case_exists(case_path(arena, folder, ".lock")));
    second.options.progress = NULL;
    CHECK_OK(go(&second), &second.err);
    check_same_state(&second, &first);
}

void test_training_loop__a_second_run_on_its_folder_is_refused(void)
{
    check_in_arena(share_a_folder);
}

static void diverge(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    uint64_t newest = 0;
    struct whole run;
    bool found;

    open_run(&run, arena, MODEL("1e30"));
    run.options.epochs = 40;
    run.options.checkpoint = folder;
    run.options.checkpoint_every = 1;
    CHECK_FAILS(go(&run), CM_DIVERGED, &run.err, "not finite");
    CHECK_OK(cm_checkpoint_newest(folder, &found, &newest, &run.err), &run.err);
    CHECK(found && newest == run.steps); /* the last step that went well */
}

void test_training_loop__divergence_has_a_status_of_its_own(void)
{
    check_in_arena(diverge);
}

/* ---- checkpoints ---- */

static void keep(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    uint64_t newest = 0;
    struct whole run;
    bool found;

    open_run(&run, arena, gentle);
    CHECK_OK(cm_checkpoint_newest(folder, &found, &newest, &run.err), &run.err);
    CHECK(!found);
    CHECK_OK(cm_checkpoint_folder_make(folder, &run.err), &run.err);
    /* What a killed run left, and what is somebody else's. */
    case_write(case_path(arena, folder, "step-0000000009.safetensors.tmp-1-0"), "x", 1);
    case_write(case_path(arena, folder, "step-1.safetensors"), "x", 1);
    case_write(case_path(arena, folder, "notes.txt"), "x", 1);
    run.options.checkpoint = folder;
    run.options.checkpoint_every = 1;
    run.options.keep = 2;
    CHECK_OK(go(&run), &run.err);
    CHECK_INT(run.checkpoints, 9); /* the last one once */
    CHECK_INT(case_count_files(folder), 4);
    CHECK(case_exists(case_path(arena, folder, "step-0000000008.safetensors")));
    CHECK(case_exists(case_path(arena, folder, "step-0000000009.safetensors")));
    CHECK(case_exists(case_path(arena, folder, "notes.txt")));
    CHECK_OK(cm_checkpoint_newest(folder, &found, &newest, &run.err), &run.err);
    CHECK(found && newest == 9);
    /* Another run does not write among them. */
    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    CHECK_FAILS(go(&run), CM_BAD_ARGUMENT, &run.err, "holds checkpoints of another run");
    run.options.checkpoint = case_path(arena, folder, "none/folder");
    CHECK_FAILS(go(&run), CM_NOT_FOUND, &run.err, "cannot make the folder");
    run.options.checkpoint = case_path(arena, folder, "notes.txt");
    CHECK_FAILS(go(&run), CM_NOT_FOUND, &run.err, "cannot make the folder");
}

void test_training_loop__the_newest_checkpoints_stay(void)
{
    check_in_arena(keep);
}

static void full_disk(struct cm_arena *arena)
{
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct whole unbroken, run;
    struct rlimit before;

    open_run(&unbroken, arena, gentle);
    CHECK_OK(go(&unbroken), &unbroken.err);
    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    run.stop_at = 4;
    CHECK_OK(go(&run), &run.err);
    void (*const old)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const struct rlimit small = {300, before.rlim_max};
    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    run.options.resume = true;
    run.options.checkpoint_every = 1;
    run.options.keep = 1;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const enum cm_status status = go(&run);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    signal(SIGXFSZ, old);
    CHECK_FAILS(status, CM_IO, &run.err, "cannot write");
    CHECK_INT(case_count_files(folder), 1);
    CHECK(case_exists(case_path(arena, folder, "step-0000000004.safetensors")));
    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_OK(go(&run), &run.err);
    check_same_state(&run, &unbroken);
}

void test_training_loop__a_checkpoint_that_cannot_be_written_leaves_the_old_one(void)
{
    check_in_arena(full_disk);
}

/* ---- conditions ---- */

static void differ(struct cm_arena *arena)
{
    const struct cm_trainer_options other = {.threads = 2,
                                             .seed = 8,
                                             .check_finite = true,
                                             .backend_versions = "onednn 9.9",
                                             .without_passes = "fold"};
    const struct cm_feed_options feeding = {.batch_size = 5};
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct cm_notes mine = {0};
    struct whole run;

    *CM_PUSH(arena, &mine) = (struct cm_note){CM_STR("--lr"), CM_STR("0.1")};
    open_run(&run, arena, gentle);
    run.options.resuming.conditions = mine;
    run.options.checkpoint = folder;
    run.stop_at = 4;
    CHECK_OK(go(&run), &run.err);

    open_with(&run, arena, gentle, &other, &feeding);
    mine.items[0].value = CM_STR("0.2");
    run.options.resuming.conditions = mine;
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_FAILS(go(&run), CM_BAD_ARGUMENT, &run.err,
                "was written under other conditions, the result would not be that of one run: "
                "backend was reference, now it is onednn 9.9; threads was 1, now it is 2; ");
    CHECK_STRING(run.differences, "backend: reference -> onednn 9.9\n"
                                  "threads: 1 -> 2\n"
                                  "passes: all -> all without fold\n"
                                  "seed: 7 -> 8\n"
                                  "--lr: 0.1 -> 0.2\n"
                                  "batch size: 2 -> 5\n"
                                  "order: shuffled -> as stored\n");
    CHECK_INT(run.steps, 0);
    CHECK_INT(cm_trainer_steps(run.trainer), 0);
    CHECK(train_value(run.trainer, "w", 0) == 0);
    run.options.resuming.anyway = true;
    run.options.epochs = 5;
    CHECK_OK(go(&run), &run.err);
    CHECK_INT(run.began_at, 4);
    CHECK(run.steps > 0);
}

void test_training_loop__other_conditions_are_refused_unless_told_otherwise(void)
{
    check_in_arena(differ);
}

/* The order of the data has a seed of its own. */
static void order(struct cm_arena *arena)
{
    const struct cm_trainer_options options = {.threads = 1, .seed = 7, .check_finite = true};
    struct cm_feed_options feeding = usual;
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    struct whole run;

    open_run(&run, arena, gentle);
    run.options.checkpoint = folder;
    run.stop_at = 4;
    CHECK_OK(go(&run), &run.err);
    feeding.seed = 9;
    open_with(&run, arena, gentle, &options, &feeding);
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_FAILS(go(&run), CM_BAD_ARGUMENT, &run.err,
                "order was shuffled, now it is shuffled with seed 9");
}

void test_training_loop__the_seed_of_the_order_is_a_condition(void)
{
    check_in_arena(order);
}

/* Checkpoints that no loop wrote, or one of another version. */
static void strange(struct cm_arena *arena)
{
    static const char *const data[][2] = {{"inputs", "x from x, t from t"},
                                          {"columns", "x=x t:float=t"},
                                          {"samples", "5"},
                                          {"batch size", "2"},
                                          {"order", "shuffled"},
                                          {"last batch", "short"}};
    const char *folder = case_path(arena, case_folder(arena), "checkpoints");
    char path[PATHS_MAX];
    struct cm_checkpoint file = {.path = path};
    struct cm_arrays arrays = {0};
    struct whole run;
    size_t kept = 0;

    open_run(&run, arena, gentle);
    CHECK_OK(cm_checkpoint_folder_make(folder, &run.err), &run.err);
    cm_checkpoint_path(folder, 3, path);
    CHECK_OK(cm_checkpoint_write(&file, run.trainer, arena, &run.err), &run.err);
    run.options.checkpoint = folder;
    run.options.resume = true;
    CHECK_FAILS(go(&run), CM_BAD_ARGUMENT, &run.err, "does not record the condition 'inputs'");
    for (size_t i = 0; i < CM_COUNT(data); i++)
        *CM_PUSH(arena, &file.conditions) =
            (struct cm_note){cm_str(data[i][0]), cm_str(data[i][1])};
    CHECK_OK(cm_checkpoint_write(&file, run.trainer, arena, &run.err), &run.err);
    CHECK_FAILS(go(&run), CM_BAD_ARGUMENT, &run.err, "does not say where in the data the run was");
    /* Numbers that are no counts. */
    static double wrong[] = {0, -1, 0, 0, 0, 0, 0, 0, 0};
    file.record = wrong;
    file.n_record = CM_COUNT(wrong);
    CHECK_OK(cm_checkpoint_write(&file, run.trainer, arena, &run.err), &run.err);
    CHECK_FAILS(go(&run), CM_BAD_ARGUMENT, &run.err, "does not say where in the data the run was");

    CHECK_OK(cm_arrays_open(arena, path, NULL, &arrays, &run.err), &run.err);
    for (size_t i = 0; i < arrays.count; i++)
        if (!cm_str_is(arrays.items[i].name, "cameo/conditions"))
            arrays.items[kept++] = arrays.items[i];
    CHECK_INT(kept, arrays.count - 1);
    CHECK_OK(cm_arrays_save(arena, path, arrays.items, kept, &run.err), &run.err);
    CHECK_FAILS(go(&run), CM_UNSUPPORTED, &run.err,
                "step-0000000003.safetensors: an older version of Cameo wrote this checkpoint");
    CHECK_INT(cm_trainer_steps(run.trainer), 0);
}

void test_training_loop__checkpoints_of_another_kind_are_refused(void)
{
    check_in_arena(strange);
}
