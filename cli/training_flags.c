/* Flags of a training. */
// SPDX-License-Identifier: Apache-2.0
#include "training_flags.h"

#include "derive.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 100000 }; /* with a weight */

struct cli_training_flags cli_training;

/* How the text of a flag becomes a field of struct cameo_prepare_options. */
enum reading_as { AS_TEXT, AS_REAL, AS_COUNT, AS_WHOLE, AS_APART /* by a function of its own */ };

#define FIELD(name) offsetof(struct cameo_prepare_options, name)

/* In the order in which checkpoints record them. */
static const struct flag {
    const char *name, *const *value;
    enum reading_as as;
    size_t field;
} flags[] = {
    {"--loss", &cli_training.loss, AS_TEXT, FIELD(loss)},
    {"--of", &cli_training.output, AS_TEXT, FIELD(output)},
    {"--optimizer", &cli_training.optimizer, AS_TEXT, FIELD(optimizer)},
    {"--lr", &cli_training.lr, AS_REAL, FIELD(lr)},
    {"--momentum", &cli_training.momentum, AS_REAL, FIELD(momentum)},
    {"--weight-decay", &cli_training.weight_decay, AS_REAL, FIELD(weight_decay)},
    {"--beta1", &cli_training.beta1, AS_REAL, FIELD(beta1)},
    {"--beta2", &cli_training.beta2, AS_REAL, FIELD(beta2)},
    {"--epsilon", &cli_training.epsilon, AS_REAL, FIELD(epsilon)},
    {"--settings", &cli_training.settings, AS_TEXT, FIELD(settings)},
    {"--no-decay", &cli_training.no_decay, AS_TEXT, FIELD(no_decay)},
    {"--lr-for", &cli_training.lr_for, AS_TEXT, FIELD(lr_for)},
    {"--class-weights", &cli_training.class_weights, AS_APART, 0},
    {"--warmup-from", &cli_training.warmup_from, AS_REAL, FIELD(warmup_from)},
    {"--schedule", &cli_training.schedule, AS_APART, 0},
    {"--schedule-steps", &cli_training.schedule_steps, AS_COUNT, FIELD(schedule_steps)},
    {"--schedule-epochs", &cli_training.schedule_epochs, AS_REAL, FIELD(schedule_epochs)},
    {"--schedule-factor", &cli_training.schedule_factor, AS_REAL, FIELD(schedule_factor)},
    {"--schedule-patience", &cli_training.schedule_patience, AS_COUNT, FIELD(schedule_patience)},
    {"--schedule-threshold", &cli_training.schedule_threshold, AS_REAL, FIELD(schedule_threshold)},
    {"--schedule-cooldown", &cli_training.schedule_cooldown, AS_COUNT, FIELD(schedule_cooldown)},
    {"--schedule-min-lr", &cli_training.schedule_min_lr, AS_REAL, FIELD(schedule_min_lr)},
    {"--warmup", &cli_training.warmup, AS_COUNT, FIELD(warmup)},
    {"--warmup-epochs", &cli_training.warmup_epochs, AS_REAL, FIELD(warmup_epochs)},
    {"--updates-per-epoch", &cli_training.updates_per_epoch, AS_REAL, FIELD(updates_per_epoch)},
    {"--clip-norm", &cli_training.clip_norm, AS_REAL, FIELD(clip_norm)},
    {"--accumulate", &cli_training.accumulate, AS_COUNT, FIELD(accumulate)},
    {"--train", &cli_training.train, AS_TEXT, FIELD(train)},
    {"--freeze", &cli_training.freeze, AS_TEXT, FIELD(freeze)},
    {"--class-axis", &cli_training.class_axis, AS_WHOLE, FIELD(class_axis)},
};

struct reading {
    const char *command;
    int code;
};

static void read_real(struct reading *r, const char *flag, const char *text, double *out)
{
    char *end;

    if (!text)
        return;
    const double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || number < 0) {
        cli_complain("%s: %s needs a number that is not negative, not '%s'", r->command, flag,
                     text);
        r->code = CLI_USAGE;
        return;
    }
    *out = number;
}

static void read_whole(struct reading *r, const char *flag, const char *text, int64_t least,
                       int64_t *out)
{
    char *end;

    if (!text)
        return;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < least) {
        cli_complain("%s: %s needs a whole number, not '%s'", r->command, flag, text);
        r->code = CLI_USAGE;
        return;
    }
    *out = number;
}

static void read_flag(struct reading *r, const struct flag *flag, struct cameo_prepare_options *out)
{
    void *field = (char *)out + flag->field;

    if (flag->as == AS_TEXT)
        *(const char **)field = *flag->value;
    else if (flag->as == AS_REAL)
        read_real(r, flag->name, *flag->value, field);
    else if (flag->as != AS_APART)
        read_whole(r, flag->name, *flag->value, flag->as == AS_COUNT ? 0 : INT64_MIN, field);
}

static void read_schedule(struct reading *r, struct cameo_prepare_options *out)
{
    static const char *const names[] = {"constant", "step", "cosine", "linear", "plateau"};

    if (!cli_training.schedule)
        return;
    for (int i = 0; i <= CAMEO_SCHEDULE_PLATEAU; i++)
        if (strcmp(cli_training.schedule, names[i]) == 0) {
            out->schedule = (enum cameo_schedule)i;
            return;
        }
    cli_complain("%s: --schedule is constant, step, cosine, linear or plateau, not '%s'",
                 r->command, cli_training.schedule);
    r->code = CLI_USAGE;
}

static void refuse(struct reading *r, bool wrong, const char *sentence)
{
    if (!wrong)
        return;
    cli_complain("%s: %s", r->command, sentence);
    r->code = CLI_USAGE;
}

/* "1,0.5,2" as numbers; false: it is no such list. */
static bool list_weights(const char *text, double *out, size_t *count)
{
    char *end;

    for (*count = 0; *count < CLASSES_MAX; text = end + 1) {
        out[(*count)++] = strtod(text, &end);
        if (end == text || (*end && *end != ','))
            return false;
        if (!*end)
            return true;
    }
    return false;
}

/* A list of numbers, or a file with one array. */
static void read_class_weights(struct reading *r, struct cameo_prepare_options *out)
{
    static double weights[CLASSES_MAX];
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;
    struct cameo_arrays *arrays;
    struct cameo_error err;

    if (!cli_training.class_weights)
        return;
    out->class_weights = weights;
    if (list_weights(cli_training.class_weights, weights, &out->class_weight_count))
        return;
    out->class_weight_count = 0;
    cli_reads(cli_training.class_weights);
    options.memory_limit = cli_memory_limit(0);
    if (cameo_arrays_load(cli_training.class_weights, &options, &arrays, &err) != CAMEO_OK) {
        cli_complain("%s: --class-weights needs numbers with ',' between them, or a file: %s",
                     r->command, err.message);
        r->code = CLI_USAGE;
        return;
    }
    const struct cameo_value *value = cameo_arrays_at(arrays, 0);
    const bool is_list = value && cameo_value_rank(value) == 1 && cameo_arrays_count(arrays) == 1;
    int64_t elements = is_list ? cameo_value_count(value) : 0;
    if (elements < 1 || elements > CLASSES_MAX) {
        cli_complain("%s: --class-weights: '%s' must hold one array with one axis and at most %d "
                     "numbers",
                     r->command, cli_training.class_weights, CLASSES_MAX);
        r->code = CLI_USAGE;
        elements = 0;
    }
    for (int64_t i = 0; i < elements; i++)
        weights[i] = cameo_value_real(value, i);
    out->class_weight_count = (size_t)elements;
    cameo_arrays_free(arrays);
}

int cli_training_read(const char *command, struct cameo_prepare_options *out)
{
    struct reading r = {command, CLI_YES};
    const struct cli_training_flags *f = &cli_training;

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        read_flag(&r, &flags[i], out);
    out->target = f->target;
    out->without = f->without;
    out->no_decay_vectors = f->no_decay_vectors;
    out->keep_opset = f->keep_opset;
    out->keep_tied = f->keep_tied;
    out->keep_untied = f->keep_untied;
    read_schedule(&r, out);
    read_class_weights(&r, out);
    refuse(&r, f->accumulate && out->accumulate == 0, "--accumulate needs a number above 0");
    refuse(&r, f->schedule_steps && out->schedule_steps == 0,
           "--schedule-steps needs a number above 0");
    const bool by_loss = out->schedule == CAMEO_SCHEDULE_PLATEAU;
    const bool by_time = out->schedule != CAMEO_SCHEDULE_CONSTANT && !by_loss;
    refuse(&r, (f->schedule_steps || f->schedule_epochs) && !by_time,
           "--schedule-steps and --schedule-epochs need --schedule step, cosine or linear");
    refuse(&r, f->schedule_factor && !by_loss && out->schedule != CAMEO_SCHEDULE_STEP,
           "--schedule-factor needs --schedule step or plateau");
    refuse(&r,
           !by_loss && (f->schedule_patience || f->schedule_threshold || f->schedule_cooldown ||
                        f->schedule_min_lr),
           "--schedule-patience, -threshold, -cooldown and -min-lr need --schedule plateau");
    return r.code;
}

static const struct {
    const char *name;
    const bool *given;
} switches[] = {{"--keep-tied", &cli_training.keep_tied},
                {"--keep-untied", &cli_training.keep_untied}};

enum { N_FLAGS = sizeof flags / sizeof *flags, N_SWITCHES = sizeof switches / sizeof *switches };

size_t cli_training_flag_count(void)
{
    return N_FLAGS + N_SWITCHES;
}

const char *cli_training_flag(size_t number, const char **name)
{
    *name = number < N_FLAGS ? flags[number].name : switches[number - N_FLAGS].name;
    if (number < N_FLAGS)
        return *flags[number].value;
    return *switches[number - N_FLAGS].given ? "given" : NULL;
}

const char *cli_training_given_at(size_t number)
{
    const char *name;

    for (size_t i = 0; i < cli_training_flag_count(); i++)
        if (cli_training_flag(i, &name) && number-- == 0)
            return name;
    return NULL;
}

struct dumping {
    const struct cameo_model *model;
    struct cameo_prepare_options options;
};

static int dump(const void *arg, const char *pass, const char *path)
{
    const struct dumping *dumping = arg;
    struct cameo_prepare_options options = dumping->options;
    const struct cameo_preparation *report = NULL;
    struct cameo_model *copy;
    struct cameo_error err;

    if (cameo_model_copy(dumping->model, &copy, &err) != CAMEO_OK)
        return cli_fail(&err);
    options.until = pass;
    const int code = cameo_model_prepare(copy, &options, &report, &err) == CAMEO_OK
                         ? cli_save(copy, path)
                         : cli_training_refuse(report, false, &err);
    cameo_model_free(copy);
    return code;
}

int cli_training_dump(const char *command, const struct cameo_model *model,
                      const struct cameo_prepare_options *prepare)
{
    const struct dumping dumping = {model, *prepare};

    return cli_dump_after(command, &cli_training.dumps, dump, &dumping);
}

void cli_training_tell(const struct cameo_preparation *report)
{
    size_t trained = 0;

    for (size_t i = 0; i < report->change_count; i++) {
        cli_put_text(stderr, report->changes[i].data, report->changes[i].size);
        fputc('\n', stderr);
    }
    for (size_t i = 0; i < report->choice_count; i++)
        trained += report->choices[i]->trained;
    fprintf(stderr, "%zu of %zu initializers are trained", trained, report->choice_count);
    if (report->target.size) {
        fputs("; labels are fed as ", stderr);
        cli_put_text(stderr, report->target.data, report->target.size);
    }
    fputc('\n', stderr);
}

static void hint_at_list(const struct cameo_preparation *report)
{
    for (size_t i = 0; i < report->choice_count; i++)
        if (report->choices[i]->trained)
            return;
    if (report->choice_count)
        fputs("'cameo prepare --list' says why of each initializer\n", stderr);
}

int cli_training_refuse(const struct cameo_preparation *report, bool listed,
                        const struct cameo_error *err)
{
    const int code = cli_refuse(report ? report->findings : NULL, err);

    if (report && !listed)
        hint_at_list(report);
    return code;
}
