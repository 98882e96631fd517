/* The run of `cameo train`: the library's loop, and what is told while it goes on. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train.h"
#include "training_flags.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

/* Milliseconds, of a clock that a signal handler may read. */
static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The step under way is finished; a second Ctrl-C ends the program at once. `timeout` and batch
 * systems signal the process and its group, which is two signals for one. */
static void note_interrupt(int number)
{
    static volatile int64_t first;

    if (!interrupted) {
        first = clock_ms();
        interrupted = 1;
    } else if (clock_ms() - first > 500) {
        cli_end_by_signal(number);
    }
}

/* A shell starts a background command with SIGINT ignored. A SIGINT that is sent to it on purpose
 * shall stop the run all the same. SIGHUP stays ignored under nohup. */
void train_watch_signals(bool watch)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = watch ? note_interrupt : cli_end_by_signal,
                               .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;

        if (numbers[i] != SIGHUP ||
            (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN))
            (void)!sigaction(numbers[i], &action, NULL);
    }
}

/* ---- conditions ---- */

enum { FLAGS_MAX = 32 };

/* The name under which checkpoints record a flag: the one it had when they were first written. */
static const char *recorded_name(const char *flag)
{
    return strcmp(flag, "--of") == 0 ? "--output" : flag;
}

/* Every flag that says what the training is like, by its name. */
static size_t note_flags(struct cameo_note conditions[FLAGS_MAX])
{
    size_t i = 0;

    for (; i < cli_training_flag_count() && i < FLAGS_MAX; i++) {
        const char *flag, *given = cli_training_flag(i, &flag);
        const char *name = recorded_name(flag);
        const char *value = given ? given : "not given";

        conditions[i] =
            (struct cameo_note){sizeof conditions[i], {name, strlen(name)}, {value, strlen(value)}};
    }
    return i;
}

/* The flag behind a condition that is not called after it. */
static const char *flag_of(const char *key)
{
    static const char *const flags[][2] = {{"threads", " (--threads)"},
                                           {"seed", " (--seed)"},
                                           {"batch size", " (--batch-size)"},
                                           {"order", " (--no-shuffle)"},
                                           {"samples", " (--data)"},
                                           {"data", " (--data)"},
                                           {"last batch", " (--last-batch, --steps)"},
                                           {"columns", " (--columns)"},
                                           {"inputs", " (--target, --raw-bytes)"},
                                           {"backend", " (--backend)"},
                                           {"passes", " (--without, --recompute)"},
                                           {"--output", " (now --of)"}};

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(flags[i][0], key) == 0)
            return flags[i][1];
    return "";
}

static void tell_difference(void *arg, const char *condition, const char *was, const char *now)
{
    struct train_run *run = arg;

    run->differences++;
    cli_complain("train: %s%s was %s in the checkpoint, now it is %s", condition,
                 flag_of(condition), was, now);
}

/* ---- while it runs ---- */

static bool has_initialization(const struct cameo_model *model)
{
    const struct cameo_training *entry;

    for (size_t i = 0; (entry = cameo_model_training(model, i)); i++)
        if (entry->initialization_binding_count)
            return true;
    return false;
}

static int at_start(struct train_run *run, const struct cameo_progress *at)
{
    const struct train_settings *s = run->settings;

    run->began_at = at->step;
    run->best_loss = at->best_loss;
    run->started = train_seconds();
    if (at->checkpoint)
        fprintf(stderr, "going on after step %llu\n", (unsigned long long)at->step);
    else if (s->resume)
        fprintf(stderr, "no checkpoint yet: training starts from the beginning\n");
    if (!at->checkpoint && s->init && !has_initialization(run->model))
        fprintf(stderr, "--init: the model has no initialization, its values stay as stored\n");
    const int code = train_log_open(run);
    return code == CLI_YES ? train_events_open(run) : code;
}

/* Profiles the second step, because the first one also allocates. With a single step, that one. */
static void profile(struct train_run *run, const struct cameo_progress *at)
{
    const uint64_t first = run->began_at, before = at->steps > first + 1 ? first + 1 : first;

    if (!run->settings->profile)
        return;
    if (at->step == before) {
        cli_steps_free(&run->steps); /* of a validation in between */
        cameo_trainer_set_step(run->trainer, cli_steps_add, &run->steps);
    }
    if (at->step != before + 1 || at->moment != CAMEO_AFTER_STEP)
        return;
    cameo_trainer_set_step(run->trainer, NULL, NULL);
    train_clear_line();
    cli_steps_summary(stderr, &run->steps, cameo_machine_peak(run->settings->effective_threads));
    if (cli_steps_profile(run->settings->profile, &run->steps) != CLI_YES)
        train_note_unwritten(run, TRAIN_PROFILE, run->settings->profile);
}

/* A best model that cannot go where it should is kept elsewhere: later weights are others. */
static void go_without(struct train_run *run, const struct cameo_progress *at)
{
    const struct train_settings *s = run->settings;
    const bool best = s->best && strcmp(at->unwritten, s->best) == 0;
    struct cameo_error err;

    train_note_unwritten(run, best ? TRAIN_BEST : TRAIN_CHECKPOINT, at->problem);
    if (best && (!*run->best_place ||
                 cameo_trainer_save(run->trainer, run->best_place, NULL, NULL, &err) != CAMEO_OK))
        train_rescue(run, s->best, run->best_place, sizeof run->best_place);
}

static bool tell(void *arg, const struct cameo_progress *at)
{
    struct train_run *run = arg;

    if (at->moment == CAMEO_AT_START)
        run->code = at_start(run, at);
    profile(run, at);
    if (at->moment == CAMEO_AFTER_STEP) {
        train_log_step(run, at);
        train_events_step(run, at);
        train_show(run, at);
    } else if (at->moment == CAMEO_AFTER_EPOCH || at->moment == CAMEO_AT_END) {
        train_log_validation(run, at);
        train_events_epoch(run, at);
        train_show_epoch(run, at);
        run->best_loss = at->best_loss;
    } else if (at->moment == CAMEO_NOT_WRITTEN) {
        go_without(run, at);
    }
    if (at->checkpoint)
        run->kept = at->step;
    return run->code == CLI_YES && !cli_reader_gone && !interrupted;
}

/* ---- before and after ---- */

/* Says where what was trained is, which is saved unless a checkpoint holds it. */
static int keep(struct train_run *run)
{
    const struct train_settings *s = run->settings;
    const unsigned long long steps = (unsigned long long)cameo_trainer_steps(run->trainer);

    if (s->checkpoint && run->kept == steps) {
        cli_complain("stopped after step %llu; the same command with --resume goes on from %s",
                     steps, s->checkpoint);
        return CLI_YES;
    }
    const int code = train_save(run);
    if (code != CLI_YES)
        return code;
    cli_complain("stopped after step %llu; what was trained so far is in %s%s", steps, s->out,
                 s->checkpoint ? ""
                               : " ('--checkpoint DIR' makes a run that can go on exactly there)");
    cli_saved_put_more(stderr, &run->saved);
    return CLI_YES;
}

static int stop(struct train_run *run)
{
    train_clear_line();
    const int code = keep(run);
    return code == CLI_YES ? CLI_CANCELLED : code;
}

/* Data that cannot be read any more, or memory that is gone, costs nothing of what was trained. */
static int fail(struct train_run *run, const struct cameo_error *err)
{
    train_clear_line();
    if (run->differences && !run->settings->force) {
        cli_complain("train: the result would not be that of one run; --force goes on anyway");
        return CLI_USAGE;
    }
    const int code = cli_fail_found(err);
    const bool worth =
        err->status != CAMEO_DIVERGED && cameo_trainer_steps(run->trainer) > run->began_at;
    const int kept = worth ? keep(run) : CLI_YES;
    return kept > code ? kept : code;
}

static struct cameo_loop_options loop_options(const struct train_settings *s)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;

    options.epochs = s->epochs;
    options.steps = s->steps;
    options.patience = s->patience;
    options.best = s->best;
    options.checkpoint = s->checkpoint;
    options.checkpoint_every = s->checkpoint_every;
    options.keep = s->keep;
    options.resume = s->resume;
    options.findings = &cli_found;
    return options;
}

int train_check_loop(const struct train_settings *s)
{
    const struct cameo_loop_options options = loop_options(s);
    struct cameo_error err;

    return cameo_loop_check(&options, s->validate.count > 0, &cli_found, &err) == CAMEO_OK
               ? CLI_YES
               : cli_fail_found(&err);
}

int train_loop(struct train_run *run)
{
    const struct train_settings *s = run->settings;
    struct cameo_loop_options options = loop_options(s);
    struct cameo_resume_options resuming = CAMEO_RESUME_OPTIONS_INIT;
    struct cameo_note conditions[FLAGS_MAX];
    struct cameo_error err;

    resuming.anyway = s->force;
    resuming.difference = tell_difference;
    resuming.difference_arg = run;
    options.validation = run->validation_batches;
    options.resuming = &resuming;
    options.conditions = conditions;
    options.condition_count = note_flags(conditions);
    options.progress = tell;
    options.progress_arg = run;
    if (s->init && cameo_trainer_initialize(run->trainer, &err) != CAMEO_OK)
        return cli_fail(&err);
    const enum cameo_status status =
        cameo_trainer_run(run->trainer, run->batches, &options, &run->result, &err);
    cli_steps_free(&run->steps);
    if (run->code != CLI_YES)
        return run->code;
    if (status != CAMEO_OK && !run->result.finished)
        return fail(run, &err);
    if (interrupted)
        return stop(run);
    train_clear_line();
    return CLI_YES;
}
