/* Flags of a training, shared by `prepare` and `train`: the loss, the optimizer, the schedule,
 * which weights. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_TRAINING_FLAGS_H
#define CLI_TRAINING_FLAGS_H

#include "cli.h"
#include "training_names.h"

/* As they were given; NULL: not. */
struct cli_training_flags {
    const char *loss, *output, *target, *optimizer;
    const char *lr, *momentum, *weight_decay, *beta1, *beta2, *epsilon;
    const char *schedule, *warmup, *schedule_steps, *schedule_factor;
    const char *warmup_epochs, *schedule_epochs, *updates_per_epoch;
    const char *schedule_patience, *schedule_threshold, *schedule_cooldown, *schedule_min_lr;
    const char *clip_norm, *accumulate, *train, *freeze, *class_axis, *settings;
    const char *no_decay, *lr_for, *warmup_from, *class_weights;
    bool keep_opset, keep_tied, keep_untied, no_decay_vectors;
    const char *without;    /* passes of the preparation */
    struct cli_texts dumps; /* PASS=FILE, of the same */
};
extern struct cli_training_flags cli_training;

/* Rows of an option table. */
#define CLI_TRAINING_OPTIONS                                                                         \
    {"--loss", NULL, "LOSS", CAMEO_LOSS_HELP, CLI_TEXT, &cli_training.loss},                         \
        {"--of",   NULL,                                                                             \
         "NAME",   "which output of the model the loss reads, when there are several",               \
         CLI_TEXT, &cli_training.output},                                                            \
        {"--output", NULL, NULL, "--of", CLI_OLD, NULL},                                             \
        {"--target", NULL,                                                                           \
         "NAME",     "which array of the data holds the labels (target)",                            \
         CLI_TEXT,   &cli_training.target},                                                          \
        {"--class-axis",                                                                             \
         NULL,                                                                                       \
         "N",                                                                                        \
         "which axis of the output is over classes (1; -1: the last)",                               \
         CLI_TEXT,                                                                                   \
         &cli_training.class_axis},                                                                  \
        {"--optimizer", NULL, "NAME", CAMEO_OPTIMIZER_HELP, CLI_TEXT, &cli_training.optimizer},      \
        {"--lr", NULL, "X", "learning rate (the optimizer's default)", CLI_TEXT, &cli_training.lr},  \
        {"--momentum", NULL, "X", CAMEO_MOMENTUM_HELP, CLI_TEXT, &cli_training.momentum},            \
        {"--weight-decay",                                                                           \
         NULL,                                                                                       \
         "X",                                                                                        \
         "pulls weights towards 0 (the optimizer's default)",                                        \
         CLI_TEXT,                                                                                   \
         &cli_training.weight_decay},                                                                \
        {"--beta1", NULL, "X", CAMEO_BETA1_HELP, CLI_TEXT, &cli_training.beta1},                     \
        {"--beta2", NULL, "X", CAMEO_BETA2_HELP, CLI_TEXT, &cli_training.beta2},                     \
        {"--epsilon", NULL,                                                                          \
         "X",         "keeps divisions sane (the optimizer's default)",                              \
         CLI_TEXT,    &cli_training.epsilon},                                                        \
        {"--settings", NULL,                                                                         \
         "NAME=X,..",  "further settings of the optimizer or the loss",                              \
         CLI_TEXT,     &cli_training.settings},                                                      \
        {"--class-weights", NULL,                                                                    \
         "X,X,..",          "weights of classes in the loss, or a FILE with an array of them",       \
         CLI_TEXT,          &cli_training.class_weights},                                            \
        {"--schedule",          NULL, "NAME", "constant, step, cosine, linear or plateau", CLI_TEXT, \
         &cli_training.schedule},                                                                    \
        {"--schedule-steps",          NULL, "N", "length of the schedule, period of step", CLI_TEXT, \
         &cli_training.schedule_steps},                                                              \
        {"--schedule-epochs",  NULL,     "X",                                                        \
         "the same in epochs", CLI_TEXT, &cli_training.schedule_epochs},                             \
        {"--schedule-patience",                                                                      \
         NULL,                                                                                       \
         "N",                                                                                        \
         "of plateau: validations without a better loss (10)",                                       \
         CLI_TEXT,                                                                                   \
         &cli_training.schedule_patience},                                                           \
        {"--schedule-threshold",                                                                     \
         NULL,                                                                                       \
         "X",                                                                                        \
         "of plateau: how much better, as a share (1e-4)",                                           \
         CLI_TEXT,                                                                                   \
         &cli_training.schedule_threshold},                                                          \
        {"--schedule-cooldown",                                                                      \
         NULL,                                                                                       \
         "N",                                                                                        \
         "of plateau: validations to skip after it (0)",                                             \
         CLI_TEXT,                                                                                   \
         &cli_training.schedule_cooldown},                                                           \
        {"--schedule-min-lr",          NULL, "X", "of plateau: the least rate (0)", CLI_TEXT,        \
         &cli_training.schedule_min_lr},                                                             \
        {"--schedule-factor",                                                                        \
         NULL,                                                                                       \
         "X",                                                                                        \
         "of step and plateau: the rate times this (0.1)",                                           \
         CLI_TEXT,                                                                                   \
         &cli_training.schedule_factor},                                                             \
        {"--warmup",          NULL, "N", "updates over which the rate rises", CLI_TEXT,              \
         &cli_training.warmup},                                                                      \
        {"--warmup-epochs", NULL, "X", "the same in epochs", CLI_TEXT, &cli_training.warmup_epochs}, \
        {"--updates-per-epoch",                                                                      \
         NULL,                                                                                       \
         "X",                                                                                        \
         "how long an epoch is; train knows it",                                                     \
         CLI_TEXT,                                                                                   \
         &cli_training.updates_per_epoch},                                                           \
        {"--warmup-from",                                                                            \
         NULL,                                                                                       \
         "X",                                                                                        \
         "where the rate begins to rise: 0 as Hugging Face's",                                       \
         CLI_TEXT,                                                                                   \
         &cli_training.warmup_from},                                                                 \
        {"--no-decay",          NULL, "REGEX", "weights whose names match do not decay", CLI_TEXT,   \
         &cli_training.no_decay},                                                                    \
        {"--no-decay-vectors",                                                                       \
         NULL,                                                                                       \
         NULL,                                                                                       \
         "biases and scales of norms do not decay",                                                  \
         CLI_FLAG,                                                                                   \
         &cli_training.no_decay_vectors},                                                            \
        {"--lr-for", NULL,                                                                           \
         "REGEX=X",  "a rate of their own; several with ';' between them",                           \
         CLI_TEXT,   &cli_training.lr_for},                                                          \
        {"--clip-norm",          NULL, "X", "gradients are scaled down to this norm", CLI_TEXT,      \
         &cli_training.clip_norm},                                                                   \
        {"--accumulate",                                                                             \
         NULL,                                                                                       \
         "N",                                                                                        \
         "average gradients of N batches for one update",                                            \
         CLI_TEXT,                                                                                   \
         &cli_training.accumulate},                                                                  \
        {"--train", NULL,                                                                            \
         "REGEX",   "train the initializers whose names match, no others",                           \
         CLI_TEXT,  &cli_training.train},                                                            \
        {"--freeze", NULL,                                                                           \
         "REGEX",    "leave the initializers whose names match as they are",                         \
         CLI_TEXT,   &cli_training.freeze},                                                          \
        {"--keep-tied", NULL,                                                                        \
         NULL,          "train as one what the exporter merged: biases of zeros and the like",       \
         CLI_FLAG,      &cli_training.keep_tied},                                                    \
        {"--keep-untied",                                                                            \
         NULL,                                                                                       \
         NULL,                                                                                       \
         "train as two what the exporter wrote twice: a table and its transpose",                    \
         CLI_FLAG,                                                                                   \
         &cli_training.keep_untied},                                                                 \
    {                                                                                                \
        "--keep-opset", NULL, NULL, "refuse a model whose opset is too old, do not raise it",        \
            CLI_FLAG, &cli_training.keep_opset                                                       \
    }

/* Rows of commands that prepare and say how: without is what they call the flag for it. */
#define CLI_PREPARE_PASS_OPTIONS(without_flag)                                                     \
    {without_flag,         NULL, "PASSES", "leave out these passes of the preparation", CLI_TEXT,  \
     &cli_training.without},                                                                       \
    {                                                                                              \
        "--dump-after", NULL, "PASS=FILE", "write the model as it is after a pass of it",          \
            CLI_TEXTS, &cli_training.dumps                                                         \
    }

/* What the flags say, until the next call; complains about each that says nonsense and returns
 * CLI_USAGE. */
int cli_training_read(const char *command, struct cameo_prepare_options *out);
/* Flags that say what a training is like, by number: what was given with one, NULL: nothing. */
size_t cli_training_flag_count(void);
const char *cli_training_flag(size_t number, const char **name);
/* Names of those that were given, by number; NULL past the last. */
const char *cli_training_given_at(size_t number);
/* Writes what --dump-after asks for; the model stays as it is. Gives the exit code. */
int cli_training_dump(const char *command, const struct cameo_model *model,
                      const struct cameo_prepare_options *prepare);
/* The preparation on stderr: what was changed. */
void cli_training_tell(const struct cameo_preparation *report);
/* A failed one: every blocker on a line of its own. listed: the choices are on stdout. Gives the
 * exit code. */
int cli_training_refuse(const struct cameo_preparation *report, bool listed,
                        const struct cameo_error *err);

#endif
