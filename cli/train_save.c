/* What `cameo train` leaves behind: the trained model, elsewhere if need be, and what is told of
 * files that could not be written while it ran. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files that could not be written ---- */

static const struct {
    const char *flag, *what;
} outputs[TRAIN_OUTPUTS] = {[TRAIN_LOG] = {"--log", "line"},
                            [TRAIN_EVENTS] = {"--tensorboard", "point"},
                            [TRAIN_PROFILE] = {"--profile", "profile"},
                            [TRAIN_CHECKPOINT] = {"--checkpoint", "checkpoint"},
                            [TRAIN_BEST] = {"--best", "model"}};

void train_note_unwritten(struct train_run *run, enum train_output output, const char *why)
{
    struct train_unwritten *unwritten = &run->unwritten[output];

    if (unwritten->count++)
        return;
    snprintf(unwritten->why, sizeof unwritten->why, "%s", why);
    train_clear_line();
    cli_complain("train: %s: %s; the training goes on", outputs[output].flag, why);
}

void train_note_incomplete(struct train_run *run, enum train_output output, const char *why)
{
    struct train_unwritten *unwritten = &run->unwritten[output];

    if (!unwritten->count)
        snprintf(unwritten->why, sizeof unwritten->why, "%s", why);
}

int train_tell_unwritten(const struct train_run *run)
{
    int code = CLI_YES;

    for (size_t i = 0; i < TRAIN_OUTPUTS; i++) {
        const struct train_unwritten *unwritten = &run->unwritten[i];

        if (!*unwritten->why)
            continue;
        if (unwritten->count)
            cli_complain("train: %s: %zu %s%s could not be written: %s", outputs[i].flag,
                         unwritten->count, outputs[i].what, unwritten->count == 1 ? "" : "s",
                         unwritten->why);
        else
            cli_complain("train: %s: the file may be incomplete: %s", outputs[i].flag,
                         unwritten->why);
        code = CLI_MACHINE;
    }
    if (*run->best_place) {
        cli_complain("train: the best model is in %s", run->best_place);
        cli_saved_put_needs(stderr, run->best_place);
    }
    return code;
}

/* ---- another place ---- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* In a new folder of its own: nothing of anybody's is written over, and in a folder that all may
 * write to nobody can have put a link in the way. */
static bool save_in(const struct train_run *run, const char *folder, const char *name, char *place,
                    size_t size)
{
    char made[TRAIN_PLACE_SIZE - 300];
    struct cameo_error err;

    if ((size_t)snprintf(made, sizeof made, "%s/cameo-rescued-XXXXXX", folder) >= sizeof made ||
        !mkdtemp(made))
        return false;
    if ((size_t)snprintf(place, size, "%s/%s", made, name) < size &&
        cameo_trainer_save(run->trainer, place, NULL, NULL, &err) == CAMEO_OK)
        return true;
    rmdir(made);
    return false;
}

bool train_rescue(const struct train_run *run, const char *path, char *place, size_t size)
{
    const char *const folders[] = {run->settings->checkpoint,
                                   ".",
                                   secure_getenv("HOME"),
                                   secure_getenv("TMPDIR"),
                                   "/var/tmp",
                                   "/tmp",
                                   "/dev/shm"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (folders[i] && *folders[i] && save_in(run, folders[i], name_of(path), place, size))
            return true;
    *place = 0;
    return false;
}

int train_save(struct train_run *run)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    const char *path = run->settings->out;
    char place[TRAIN_PLACE_SIZE];
    struct cameo_error err;

    cli_saved_begin(&run->saved, path, &options);
    if (cameo_trainer_save(run->trainer, path, &options, &run->saved.report, &err) == CAMEO_OK)
        return CLI_YES;
    cli_saved_free(&run->saved);
    cli_fail(&err);
    if (train_rescue(run, path, place, sizeof place)) {
        cli_complain("train: the trained model is in %s instead", place);
        cli_saved_put_needs(stderr, place);
    } else {
        cli_complain("train: no other folder can hold the trained model either: neither the "
                     "current one, nor HOME, TMPDIR, /var/tmp, /tmp and /dev/shm");
    }
    return CLI_MACHINE;
}

/* ---- which weights are where ---- */

int train_tell_weights(const struct train_run *run)
{
    const struct train_settings *s = run->settings;
    const struct cameo_loop_result *result = &run->result;

    fputs("wrote ", stdout);
    cli_put_text(stdout, s->out, strlen(s->out));
    printf(": the weights of step %llu, the last",
           (unsigned long long)cameo_trainer_steps(run->trainer));
    cli_saved_put_moves(stdout, &run->saved.report);
    putchar('\n');
    cli_saved_put_more(stdout, &run->saved);
    if (!s->best || run->unwritten[TRAIN_BEST].count)
        return CLI_YES;
    if (isinf(result->best_loss)) {
        cli_complain("train: --best: no validation loss was a number, %s was not written", s->best);
        return CLI_NO;
    }
    cli_put_text(stdout, s->best, strlen(s->best));
    fputs(" holds the weights", stdout);
    if (result->best_step)
        printf(" of step %llu, in epoch %llu,", (unsigned long long)result->best_step,
               (unsigned long long)result->best_epoch);
    printf(" with the best validation loss, %.5g\n", result->best_loss);
    cli_saved_put_needs(stdout, s->best);
    return CLI_YES;
}
