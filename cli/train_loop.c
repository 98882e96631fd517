/* The run of `cameo train`: the library's loop, and what is told while it goes on. */
// SPDX-License-Identifier: Apache-2.0
#include "train.h"
#include "training_flags.h"

#include <math.h>
#include <string.h>

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

/* The step under way is finished; a second Ctrl-C ends the program at once. */
static void note_interrupt(int number)
{
    interrupted = 1;
    signal(number, SIG_DFL);
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
    static const char *const flags[][2] = {
        {"threads", " (--threads)"},       {"seed", " (--seed)"},
        {"batch size", " (--batch-size)"}, {"order", " (--no-shuffle)"},
        {"samples", " (--data)"},          {"last batch", " (--last-batch, --steps)"},
        {"columns", " (--columns)"},       {"inputs", " (--target, --raw-bytes)"},
        {"backend", " (--backend)"},       {"passes", " (--without, --recompute)"},
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

/* The second step of a run is looked at, as the first makes things ready; of one step, that. */
static int profile(struct train_run *run, const struct cameo_progress *at)
{
    const uint64_t first = run->began_at, before = at->steps > first + 1 ? first + 1 : first;

    if (!run->settings->profile)
        return CLI_YES;
    if (at->step == before) {
        cli_steps_free(&run->steps); /* of a validation in between */
        cameo_trainer_set_step(run->trainer, cli_steps_add, &run->steps);
    }
    if (at->step != before + 1 || at->moment != CAMEO_AFTER_STEP)
        return CLI_YES;
    cameo_trainer_set_step(run->trainer, NULL, NULL);
    train_clear_line();
    cli_steps_summary(stderr, &run->steps, cameo_machine_peak(run->settings->effective_threads));
    return cli_steps_profile(run->settings->profile, &run->steps);
}

static bool tell(void *arg, const struct cameo_progress *at)
{
    struct train_run *run = arg;
    int code = CLI_YES;

    if (at->moment == CAMEO_AT_START)
        code = at_start(run, at);
    const int profiled = profile(run, at);
    if (at->moment == CAMEO_AFTER_STEP) {
        code = train_log_step(run, at);
        if (code == CLI_YES)
            code = train_events_step(run, at);
        train_show(run, at);
    } else if (at->moment == CAMEO_AFTER_EPOCH) {
        code = train_log_validation(run, at);
        if (code == CLI_YES)
            code = train_events_epoch(run, at);
        train_show_epoch(run, at);
        run->best_loss = at->best_loss;
    }
    if (run->code == CLI_YES)
        run->code = code == CLI_YES ? profiled : code;
    return run->code == CLI_YES && !cli_reader_gone && !interrupted;
}

/* ---- before and after ---- */

/* A folder with checkpoints is another run's, unless this one resumes it. */
static int check_folder(const struct train_settings *s)
{
    struct cameo_error err;
    char newest[4096];

    if (!s->checkpoint || s->resume)
        return CLI_YES;
    if (cameo_checkpoint_newest(s->checkpoint, newest, sizeof newest, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (!*newest)
        return CLI_YES;
    cli_complain("train: %s holds checkpoints of another run; --resume goes on from them",
                 s->checkpoint);
    return CLI_USAGE;
}

static int stop(const struct train_run *run)
{
    const struct train_settings *s = run->settings;
    const unsigned long long steps = (unsigned long long)cameo_trainer_steps(run->trainer);
    struct cameo_error err;

    train_clear_line();
    if (s->checkpoint) {
        cli_complain("stopped after step %llu; the same command with --resume goes on from %s",
                     steps, s->checkpoint);
        return CLI_CANCELLED;
    }
    if (cameo_trainer_save(run->trainer, s->out, NULL, NULL, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_complain("stopped after step %llu; what was trained so far is in %s ('--checkpoint "
                 "DIR' makes a run that can go on exactly there)",
                 steps, s->out);
    return CLI_CANCELLED;
}

static int fail(const struct train_run *run, const struct cameo_error *err)
{
    train_clear_line();
    if (!run->differences || run->settings->force)
        return cli_fail(err);
    cli_complain("train: the result would not be that of one run; --force goes on anyway");
    return CLI_USAGE;
}

int train_loop(struct train_run *run)
{
    const struct train_settings *s = run->settings;
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_resume_options resuming = CAMEO_RESUME_OPTIONS_INIT;
    struct cameo_note conditions[FLAGS_MAX];
    struct cameo_error err;
    const int code = check_folder(s);

    if (code != CLI_YES)
        return code;
    resuming.anyway = s->force;
    resuming.difference = tell_difference;
    resuming.difference_arg = run;
    options.epochs = s->epochs;
    options.steps = s->steps;
    options.validation = run->validation_batches;
    options.patience = s->patience;
    options.best = s->best;
    options.checkpoint = s->checkpoint;
    options.checkpoint_every = s->checkpoint_every;
    options.keep = s->keep;
    options.resume = s->resume;
    options.resuming = &resuming;
    options.conditions = conditions;
    options.condition_count = note_flags(conditions);
    options.progress = tell;
    options.progress_arg = run;
    if (s->init && cameo_trainer_initialize(run->trainer, &err) != CAMEO_OK)
        return cli_fail(&err);
    signal(SIGINT, note_interrupt);
    signal(SIGTERM, note_interrupt);
    const enum cameo_status status =
        cameo_trainer_run(run->trainer, run->batches, &options, &run->result, &err);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    cli_steps_free(&run->steps);
    if (run->code != CLI_YES)
        return run->code;
    if (status != CAMEO_OK)
        return fail(run, &err);
    if (interrupted)
        return stop(run);
    train_clear_line();
    return CLI_YES;
}
