/* cameo train: a model on data, from files to a file. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train.h"
#include "training_flags.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct train_settings settings;

/* ---- what was asked for ---- */

/* Unless it is given, what is left over is left out where the model fixes the batch. */
static bool last_batch_of(const char *text, enum cameo_last_batch *out)
{
    static const char *const names[] = {"short", "drop", "wrap"};

    *out = CAMEO_LAST_AUTO;
    if (!text)
        return true;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum cameo_last_batch)i;
            return true;
        }
    return false;
}

/* Everything that is wrong is said, not just the first. */
static int check_settings(void)
{
    struct train_settings *s = &settings;
    const char *const models[] = {s->out, s->best};
    enum cameo_last_batch last;
    int wrong = 0;

    if (!s->data.count)
        wrong++, cli_complain("train: no data was given, add --data FILE");
    if (!s->out)
        wrong++, cli_complain("train: no file to write was given, add -o FILE");
    if (!last_batch_of(s->last_batch, &last))
        wrong++,
            cli_complain("train: --last-batch is short, drop or wrap, not '%s'", s->last_batch);
    if (s->tensorboard_every && !s->tensorboard)
        wrong++, cli_complain("train: --tensorboard-every needs --tensorboard DIR");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (models[i] && cli_is_stream(models[i]))
            wrong++,
                cli_complain("train: cannot write '%s': a model needs a regular file", models[i]);
    s->target = cli_training.target;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t threads = s->threads ? s->threads : cores > 0 ? (size_t)cores : 1;
    s->effective_threads = threads < INT_MAX ? (int)threads : INT_MAX;
    const int code = train_check_loop(s);
    return wrong ? CLI_USAGE : code;
}

/* Nobody wants to hear at the end that the result cannot be written. */
static int check_writable(void)
{
    const char *const outputs[] = {settings.out, settings.best, settings.profile, settings.log};
    int worst = CLI_YES;

    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const int code = cli_check_writable(outputs[i]);

        worst = code > worst ? code : worst;
    }
    return worst;
}

/* ---- opening ---- */

static int open_data(const struct cli_texts *paths, struct cameo_dataset **out)
{
    struct cameo_dataset_options options = CAMEO_DATASET_OPTIONS_INIT;
    struct cameo_error err;

    options.columns = settings.columns;
    options.allow_links = settings.allow_links;
    return cameo_dataset_open_files(paths->items, paths->count, &options, out, &err) == CAMEO_OK
               ? CLI_YES
               : cli_fail(&err);
}

/* ---- a model that does not carry its training ---- */

/* Every flag that says what the training is like, when the model says so itself. */
static int refuse_flags(void)
{
    const char *name;

    for (size_t i = 0; (name = cli_training_given_at(i)); i++)
        cli_complain("train: the model carries its training, %s would contradict it", name);
    const bool prepares = cli_training.without || cli_training.dumps.count;
    if (prepares)
        cli_complain("train: the model carries its training, %s is about preparing one",
                     cli_training.without ? "--prepare-without" : "--dump-after");
    if (!prepares && !cli_training_given_at(0))
        return CLI_YES;
    cli_complain("train: 'cameo strip' removes the training");
    return CLI_USAGE;
}

/* What the flags ask for; without data nobody knows how long an epoch is. */
static int read_flags(const struct train_run *run, struct cameo_prepare_options *out)
{
    int code = cli_training_read("train", out);

    if (!out->loss || !out->optimizer) {
        cli_complain("train: %s carries no training: say the loss and the optimizer, with --loss "
                     "and --optimizer",
                     settings.model);
        code = CLI_USAGE;
    }
    if (!run->data)
        return code;
    out->run_samples = cameo_dataset_samples(run->data);
    out->run_batch_size = (int64_t)settings.batch_size;
    out->run_steps = (int64_t)settings.steps;
    out->run_epochs = settings.epochs ? (int64_t)settings.epochs : 1;
    return code;
}

static int prepare(struct train_run *run)
{
    struct cameo_prepare_options prepare_options = CAMEO_PREPARE_OPTIONS_INIT;
    const struct cameo_preparation *report = NULL;
    struct cameo_error err;
    int code = read_flags(run, &prepare_options);

    if (code == CLI_YES)
        code = cli_training_dump("train", run->model, &prepare_options);
    if (code != CLI_YES)
        return code;
    if (cameo_model_prepare(run->model, &prepare_options, &report, &err) != CAMEO_OK)
        return cli_training_refuse(report, false, &err);
    cli_training_tell(report);
    return CLI_YES;
}

/* The data cannot be opened: what is wrong with the flags is said all the same. */
static int check_flags(struct train_run *run)
{
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    const struct cameo_preparation *report = NULL;
    struct cameo_error err;

    if (cameo_model_summary(run->model)->training_count)
        return refuse_flags();
    const int code = read_flags(run, &options);
    if (code != CLI_YES)
        return code;
    options.updates_per_epoch = options.updates_per_epoch > 0 ? options.updates_per_epoch : 1;
    if (!options.schedule_steps && !(options.schedule_epochs > 0))
        options.schedule_steps = INT32_MAX; /* the run's length */
    options.until = "settings";
    return cameo_model_prepare(run->model, &options, &report, &err) == CAMEO_OK
               ? CLI_YES
               : cli_training_refuse(report, true, &err);
}

static int open_model(struct train_run *run)
{
    return cameo_model_summary(run->model)->training_count ? refuse_flags() : prepare(run);
}

/* ---- batches ---- */

static void tell_of_images(const struct train_run *run)
{
    for (size_t i = 0; i < cameo_trainer_input_count(run->trainer); i++) {
        const struct cameo_text *name = &cameo_trainer_input(run->trainer, i)->name;

        if (!cameo_batches_scales(run->batches, i))
            continue;
        fputs("bytes of '", stderr);
        cli_put_text(stderr, name->data, name->size);
        fputs("' are fed as 0 to 1, --raw-bytes feeds 0 to 255\n", stderr);
    }
}

/* What is to be known of a model that fixes its batch. */
static void tell_of_batch(const struct train_run *run)
{
    const int64_t size = cameo_batches_size(run->batches);
    const int64_t samples = cameo_dataset_samples(run->data);

    if (!settings.batch_size && size == 1 && samples > 1)
        fputs("the model takes one row at a time; for batches export it with a first dimension "
              "that varies (torch.onnx.export: dynamic_shapes, or dynamic_axes)\n",
              stderr);
    if (!settings.last_batch && cameo_batches_last(run->batches) == CAMEO_LAST_DROP)
        fprintf(stderr,
                "the model takes batches of %lld rows: the last %lld of each epoch are left out, "
                "--last-batch wrap fills up\n",
                (long long)size, (long long)(samples % size));
}

/* A CSV file names columns, the model names inputs. */
static void hint_at_columns(const struct train_run *run)
{
    const char *first = settings.data.items[0];
    const size_t length = strlen(first);

    if (settings.columns || length < 4 || strcmp(first + length - 4, ".csv") != 0)
        return;
    fputs("columns become inputs with --columns \"", stderr);
    for (size_t i = 0; i < cameo_trainer_input_count(run->trainer); i++) {
        const struct cameo_text *name = &cameo_trainer_input(run->trainer, i)->name;

        fputs(i ? " " : "", stderr);
        cli_put_text(stderr, name->data, name->size);
        fputs(i == 0 ? "=FIRST..LAST" : "=COLUMN", stderr);
    }
    fputs("\"; without it the last column is y and the others are x\n", stderr);
}

static int open_batches(struct train_run *run)
{
    struct cameo_batches_options options = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_error err;

    options.batch_size = (int64_t)settings.batch_size;
    options.shuffle = !settings.no_shuffle;
    options.seed = settings.seed;
    last_batch_of(settings.last_batch, &options.last);
    options.endless = settings.steps > 0;
    options.prefetch = true;
    options.target = settings.target;
    options.raw_bytes = settings.raw_bytes;
    options.findings = &cli_found;
    if (cameo_batches_new(run->data, run->trainer, &options, &run->batches, &err) != CAMEO_OK) {
        const int code = cli_fail_found(&err);

        hint_at_columns(run);
        return code;
    }
    tell_of_images(run);
    tell_of_batch(run);
    return CLI_YES;
}

static int open_validation(struct train_run *run)
{
    struct cameo_batches_options options = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_error err;

    if (!settings.validate.count)
        return CLI_YES;
    options.batch_size = cameo_batches_size(run->batches);
    options.target = settings.target;
    options.raw_bytes = settings.raw_bytes;
    options.last = CAMEO_LAST_AUTO;
    options.findings = &cli_found;
    return cameo_batches_new(run->validation, run->trainer, &options, &run->validation_batches,
                             &err) == CAMEO_OK
               ? CLI_YES
               : cli_fail_found(&err);
}

static int open_trainer(struct train_run *run)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_error err;

    options.threads = settings.effective_threads;
    options.memory_limit = cli_memory_limit(settings.memory_limit);
    options.backend = settings.backend;
    options.seed = settings.seed;
    options.without_passes = settings.without;
    options.with_passes = settings.recompute ? "recompute" : NULL;
    options.findings = &cli_found;
    if (cameo_trainer_new(run->model, &options, &run->trainer, &err) != CAMEO_OK)
        return cli_fail_found(&err);
    return CLI_YES;
}

/* ---- the run ---- */

/* None of what is written may be something that is read. */
static int check_outputs(struct train_run *run)
{
    (void)run;
    cli_reads_all(&settings.data);
    cli_reads_all(&settings.validate);
    cli_reads(cli_training.loss);
    int code = cli_may_write("train: --log", settings.log);
    if (code == CLI_YES)
        code = cli_may_write("train: --profile", settings.profile);
    if (code == CLI_YES)
        code = cli_may_save("train: -o", settings.out);
    if (code == CLI_YES)
        code = cli_may_save("train: --best", settings.best);
    return code == CLI_YES ? cli_may_write_in("train: --checkpoint", settings.checkpoint) : code;
}

static int finish_json(const struct train_run *run)
{
    printf("{\"steps\":%llu", (unsigned long long)cameo_trainer_steps(run->trainer));
    train_put_number(stdout, "first_loss", run->result.first_loss);
    train_put_number(stdout, "loss", run->result.loss);
    if (run->validation_batches)
        train_put_number(stdout, "best_validation_loss", run->result.best_loss);
    if (run->validation_batches)
        printf(",\"best_step\":%llu,\"best_epoch\":%llu", (unsigned long long)run->result.best_step,
               (unsigned long long)run->result.best_epoch);
    printf(",\"stopped_early\":%s,", run->result.out_of_patience ? "true" : "false");
    cli_saved_json_line(stdout, &run->saved);
    fputs("}\n", stdout);
    return cli_flush(stdout, "standard output");
}

static int finish(struct train_run *run)
{
    const int code = train_save(run);

    if (code != CLI_YES)
        return code;
    if (cli_as_json)
        return finish_json(run);
    const unsigned long long steps = (unsigned long long)cameo_trainer_steps(run->trainer);
    printf("trained %llu step%s", steps, steps == 1 ? "" : "s");
    if (!isnan(run->result.first_loss))
        printf(", loss %.5g -> %.5g", run->result.first_loss, run->result.loss);
    if (run->result.out_of_patience)
        printf(", stopped early: no better validation in %zu epochs", settings.patience);
    putchar('\n');
    return train_tell_weights(run);
}

/* The first Ctrl-C does not keep the model from being saved. */
static int run_and_save(struct train_run *run)
{
    train_watch_signals(true);
    int code = train_loop(run);
    train_log_close(run);
    train_events_close(run);
    if (code == CLI_YES)
        code = finish(run);
    train_watch_signals(false);
    fflush(stdout); /* the model is saved, then comes what was not */
    const int unwritten = train_tell_unwritten(run);
    return unwritten > code ? unwritten : code;
}

static int open_all_data(struct train_run *run)
{
    int code = open_data(&settings.data, &run->data);

    if (settings.validate.count) {
        const int second = open_data(&settings.validate, &run->validation);

        code = second > code ? second : code;
    }
    if (code != CLI_YES) {
        const int third = check_flags(run);

        code = third > code ? third : code;
    }
    return code;
}

static int train(struct cameo_model *model)
{
    static int (*const stages[])(struct train_run *) = {
        open_model,    open_trainer,       open_batches, open_validation,
        check_outputs, train_check_memory, run_and_save};
    struct train_run run = {
        .settings = &settings, .model = model, .result = CAMEO_LOOP_RESULT_INIT};
    int code = open_all_data(&run);

    for (size_t i = 0; i < sizeof stages / sizeof *stages && code == CLI_YES; i++)
        code = stages[i](&run);
    cameo_batches_free(run.batches);
    cameo_batches_free(run.validation_batches);
    cameo_dataset_free(run.data);
    cameo_dataset_free(run.validation);
    cli_saved_free(&run.saved);
    cameo_trainer_free(run.trainer);
    return code;
}

static int train_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    settings.model = operands[0];
    int code = check_settings();
    if (code == CLI_YES)
        code = cli_placement_check("train");
    if (code == CLI_YES)
        code = check_writable();
    if (code != CLI_YES)
        return code;
    if (cli_load_model(settings.model, NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    code = train(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--data", "-d", "FILE", "what to train on: .npz, .npy, .safetensors, .csv, IDX, a folder",
     CLI_TEXTS, &settings.data},
    {"--output", "-o", "FILE", "the trained model", CLI_TEXT, &settings.out},
    {"--out", NULL, NULL, "--output", CLI_OLD, NULL},
    {"--validate", NULL, "FILE", "data to measure on after each epoch", CLI_TEXTS,
     &settings.validate},
    {"--columns", NULL, "TEXT", "CSV: which columns make which array, \"x=a,b y=label\"", CLI_TEXT,
     &settings.columns},
    {"--allow-links", NULL, NULL, "files in a folder of data may be behind links", CLI_FLAG,
     &settings.allow_links},
    {"--batch-size", "-b", "N", "rows of a step; 32 unless the model fixes it", CLI_COUNT,
     &settings.batch_size},
    {"--epochs", NULL, "N", "passes over the data; 1 unless --steps is given", CLI_COUNT,
     &settings.epochs},
    {"--steps", NULL, "N", "steps; the data is repeated as needed", CLI_COUNT, &settings.steps},
    {"--no-shuffle", NULL, NULL, "take the data in the order it has", CLI_FLAG,
     &settings.no_shuffle},
    {"--last-batch", NULL, "HOW", "the last batch of an epoch: short, drop or wrap", CLI_TEXT,
     &settings.last_batch},
    {"--raw-bytes", NULL, NULL, "feed images of bytes as 0 to 255, not as 0 to 1", CLI_FLAG,
     &settings.raw_bytes},
    {"--seed", NULL, "N", "seed of the order of the data and of random operators; 0", CLI_SIZE,
     &settings.seed},
    {"--init", NULL, NULL, "run the model's initialization first", CLI_FLAG, &settings.init},
    {"--log", NULL, "FILE", "write every scalar of every step, as JSON Lines", CLI_TEXT,
     &settings.log},
    {"--tensorboard", NULL, "DIR", "write curves for TensorBoard into this folder", CLI_TEXT,
     &settings.tensorboard},
    {"--tensorboard-every", NULL, "N", "a point of them every N steps, not at each", CLI_COUNT,
     &settings.tensorboard_every},
    {"--profile", NULL, "FILE",
     "say where the second step's time goes, with a Chrome trace in FILE", CLI_TEXT,
     &settings.profile},
    {"--checkpoint", NULL, "DIR", "keep checkpoints in this folder", CLI_TEXT,
     &settings.checkpoint},
    {"--checkpoint-every", NULL, "N", "write one every N steps too, not only at the end", CLI_COUNT,
     &settings.checkpoint_every},
    {"--keep", NULL, "K", "how many checkpoints to keep; 3", CLI_COUNT, &settings.keep},
    {"--resume", NULL, NULL, "go on from the newest checkpoint, if there is one", CLI_FLAG,
     &settings.resume},
    {"--force", NULL, NULL, "resume under other conditions too", CLI_FLAG, &settings.force},
    {"--patience", NULL, "N", "stop after N validations without a better loss", CLI_COUNT,
     &settings.patience},
    {"--best", NULL, "FILE", "write the model with the best validation loss", CLI_TEXT,
     &settings.best},
    {"--threads", NULL, "N", "threads; as many as there are cores", CLI_COUNT, &settings.threads},
    {"--memory", NULL, NULL, "show first how much memory a step takes", CLI_FLAG, &settings.memory},
    {"--json", NULL, NULL, "results as JSON, an object a line", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {"--backend", NULL, "NAME", "kernels to use: reference, or a backend", CLI_TEXT,
     &settings.backend},
    {"--without", NULL, "PASSES", "leave these passes out, see 'cameo help optimize'", CLI_TEXT,
     &settings.without},
    {"--recompute", NULL, NULL, "compute cheap activations again: less memory, more time", CLI_FLAG,
     &settings.recompute},
    {"--memory-limit", NULL, "BYTES", "memory that one step may take (what is free)", CLI_COUNT,
     &settings.memory_limit},
    CLI_PLACEMENT_OPTIONS,
    CLI_TRAINING_OPTIONS,
    CLI_PREPARE_PASS_OPTIONS("--prepare-without"),
    {0},
};

CLI_COMMAND(
    train, train_main, "MODEL --data FILE -o FILE [OPTION]...", "train a model on data",
    "Executes the training that the model carries: with --init its initialization, then step by\n"
    "step its algorithm, and saves the model with its new values; nothing else in it changes.\n"
    "A model for inference only is first prepared as 'cameo prepare' would, with --loss and\n"
    "--optimizer. Arrays of the data go to the inputs of the same names; the one left over, or\n"
    "the one that --target names, is the label.",
    "cameo train net.onnx --data train.npz -o trained.onnx # one pass\n"
    "cameo train net.onnx -d d.npz --loss mse --optimizer adam -o out.onnx # of an inference "
    "model\n"
    "cameo train net.onnx -d d.npz --steps 1000 --log run.jsonl -o out.onnx # and a log\n"
    "cameo train net.onnx -d d.npz -o out.onnx --checkpoint ck --checkpoint-every 100 --resume # "
    "go on",
    "0 if it was trained and saved, 1 if the model cannot be trained or a loss is not finite,\n"
    "  130 if it was stopped",
    options, 1, 1);
