/* Checkpoints of `cameo train`: a folder of files named after their step, the newest few kept. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train.h"
#include "training_flags.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NOTES_MAX = 48, VALUE_SIZE = 64 };

/* ---- names ---- */

static void make_path(char *path, const struct train_run *run, uint64_t step)
{
    snprintf(path, PATH_SIZE, "%s/step-%010" PRIu64 ".safetensors", run->settings->checkpoint,
             step);
}

/* The step in a name such as step-0000000300.safetensors. */
static bool step_of(const char *name, uint64_t *step)
{
    char *end;

    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return false;
    errno = 0;
    *step = strtoull(name + 5, &end, 10);
    return errno == 0 && strcmp(end, ".safetensors") == 0;
}

/* Calls visit for each checkpoint; says whether the folder could be read. */
typedef void visit_fn(void *arg, const char *name, uint64_t step);

static bool each(const struct train_run *run, visit_fn *visit, void *arg)
{
    DIR *folder = opendir(run->settings->checkpoint);
    const struct dirent *entry;

    if (!folder)
        return false;
    while ((entry = readdir(folder))) {
        uint64_t step;

        if (step_of(entry->d_name, &step))
            visit(arg, entry->d_name, step);
    }
    closedir(folder);
    return true;
}

/* What a run that was killed left half-written under another name. */
static void remove_leftovers(const struct train_run *run)
{
    DIR *folder = opendir(run->settings->checkpoint);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (strncmp(entry->d_name, "step-", 5) == 0 && strstr(entry->d_name, ".safetensors.tmp-"))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

struct newest {
    bool found;
    uint64_t step;
};

static void note_newest(void *arg, const char *name, uint64_t step)
{
    struct newest *newest = arg;

    (void)name;
    if (!newest->found || step > newest->step)
        newest->step = step;
    newest->found = true;
}

int train_checkpoints_check(struct train_run *run)
{
    const char *folder = run->settings->checkpoint;
    struct newest newest = {0};

    if (!folder)
        return CLI_YES;
    if (strlen(folder) + 64 > PATH_SIZE) {
        cli_complain("train: the path of the checkpoints is too long");
        return CLI_USAGE;
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        const int why = errno;

        cli_complain("train: cannot make the folder %s: %s", folder, strerror(why));
        return cli_errno_code(why);
    }
    if (!each(run, note_newest, &newest)) {
        const int why = errno;

        cli_complain("train: %s: %s", folder, strerror(why));
        return cli_errno_code(why);
    }
    if (newest.found && !run->settings->resume) {
        cli_complain("train: %s holds checkpoints of another run; --resume goes on from them",
                     folder);
        return CLI_USAGE;
    }
    remove_leftovers(run);
    return CLI_YES;
}

/* ---- what is noted beside the weights ---- */

struct notes {
    struct cameo_entry items[NOTES_MAX];
    char values[NOTES_MAX][VALUE_SIZE];
    size_t count;
};

static void note(struct notes *notes, const char *key, const char *format, ...) CLI_PRINTF(3, 4);

static void note(struct notes *notes, const char *key, const char *format, ...)
{
    char *value = notes->values[notes->count];
    va_list args;

    va_start(args, format);
    vsnprintf(value, VALUE_SIZE, format, args);
    va_end(args);
    notes->items[notes->count++] = (struct cameo_entry){{key, strlen(key)}, {value, strlen(value)}};
}

static const char *instruction_set(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? "avx512"
           : __builtin_cpu_supports("avx2")  ? "avx2"
                                             : "sse2";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

static uint64_t digest_of(const char *text)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    for (const char *c = text; *c; c++)
        digest = (digest ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return digest;
}

/* Every flag that says what the training is like, by its name; a long one by its beginning and a
 * number made of all of it. */
static void note_flags(struct notes *notes)
{
    for (size_t i = 0; i < cli_training_flag_count(); i++) {
        const char *name, *value = cli_training_flag(i, &name);

        if (!value)
            note(notes, name, "not given");
        else if (strlen(value) < 40)
            note(notes, name, "%s", value);
        else
            note(notes, name, "%.30s.. (%016" PRIx64 ")", value, digest_of(value));
    }
}

/* Kernels of another version may round otherwise. */
static void note_backends(struct notes *notes, const char *only)
{
    struct cameo_backend backend = CAMEO_BACKEND_INIT;
    char list[VALUE_SIZE] = "";
    size_t used = 0;

    for (size_t i = 0; cameo_backend(i, &backend) && used < sizeof list; i++)
        if (!only || strcmp(only, backend.name) == 0)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %s", used ? ", " : "",
                                     backend.name, backend.version);
    note(notes, "backend", "%s", list[0] ? list : "reference");
}

/* The passes that run: what they are decides the order of rounding. */
static void note_passes(struct notes *notes, const struct train_settings *s)
{
    struct cameo_pass pass = CAMEO_PASS_INIT;
    char list[300] = "";
    size_t used = 0;

    for (size_t i = 0; cameo_pass(i, &pass) && used < sizeof list; i++)
        if (!pass.on_request || s->recompute)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                                     pass.name);
    note(notes, "passes", "%s%s%s", list, s->without ? " without " : "",
         s->without ? s->without : "");
}

/* What must be the same for the same bits. */
static void note_conditions(const struct train_run *run, struct notes *notes)
{
    const struct train_settings *s = run->settings;

    note(notes, "cameo", "%s", cameo_version_string());
    note(notes, "instructions", "%s", instruction_set());
    note_backends(notes, s->backend);
    note(notes, "threads", "%d", s->effective_threads);
    note_passes(notes, s);
    note(notes, "seed", "%zu", s->seed);
    note_flags(notes);
    note(notes, "samples", "%lld", (long long)cameo_dataset_samples(run->data));
    note(notes, "batch size", "%lld", (long long)cameo_batches_size(run->batches));
    note(notes, "order", "%s", s->no_shuffle ? "as stored" : "shuffled");
    note(notes, "last batch", "%s", s->steps ? "endless" : s->last_batch);
}

static void note_position(const struct train_run *run, struct notes *notes)
{
    const struct cameo_batches_position at = cameo_batches_tell(run->batches);

    note(notes, "epoch", "%" PRIu64, at.epoch);
    note(notes, "sample", "%" PRId64, at.sample);
    note(notes, "best loss", "%.17g", run->best_loss);
    note(notes, "worse", "%" PRIu64, run->worse);
    note(notes, "first loss", "%.17g", run->first_loss);
    note(notes, "loss", "%.17g", run->loss);
    note(notes, "rows of the epoch", "%" PRIu64, run->so_far.rows);
    note(notes, "their loss", "%.17g", run->so_far.loss);
    note(notes, "their accuracy", "%.17g", run->so_far.accuracy);
}

/* ---- writing ---- */

/* Steps in falling order. */
static int by_step(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

struct steps {
    uint64_t items[1024];
    size_t count;
};

static void list_step(void *arg, const char *name, uint64_t step)
{
    struct steps *steps = arg;

    (void)name;
    if (steps->count < sizeof steps->items / sizeof *steps->items)
        steps->items[steps->count++] = step;
}

/* Only once the new one is there are old ones removed. */
static void remove_old(const struct train_run *run)
{
    static struct steps steps;
    char path[PATH_SIZE];

    steps.count = 0;
    each(run, list_step, &steps);
    qsort(steps.items, steps.count, sizeof *steps.items, by_step);
    for (size_t i = run->settings->keep; i < steps.count; i++) {
        make_path(path, run, steps.items[i]);
        unlink(path);
    }
}

int train_checkpoint(struct train_run *run)
{
    struct notes notes = {.count = 0};
    struct cameo_error err;
    char path[PATH_SIZE];

    note_conditions(run, &notes);
    note_position(run, &notes);
    make_path(path, run, cameo_trainer_steps(run->trainer));
    if (cameo_checkpoint_save(run->trainer, path, notes.items, notes.count, &err) != CAMEO_OK) {
        train_clear_line();
        return cli_fail(&err);
    }
    remove_old(run);
    return CLI_YES;
}

/* ---- going on ---- */

struct resumption {
    struct train_run *run;
    const struct notes *conditions;
    struct cameo_batches_position at;
    size_t differences, seen;
};

/* The flag behind a condition that is not called after it. */
static const char *flag_of(const char *key)
{
    static const char *const flags[][2] = {
        {"threads", " (--threads)"},       {"seed", " (--seed)"},
        {"batch size", " (--batch-size)"}, {"order", " (--no-shuffle)"},
        {"samples", " (--data)"},          {"last batch", " (--last-batch, --steps)"},
        {"backend", " (--backend)"},       {"passes", " (--without, --recompute)"}};

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(flags[i][0], key) == 0)
            return flags[i][1];
    return "";
}

static void take_note(void *arg, const char *key, const char *value)
{
    struct resumption *r = arg;

    for (size_t i = 0; i < r->conditions->count; i++) {
        const struct cameo_entry *now = &r->conditions->items[i];

        if (strcmp(now->key.data, key) != 0)
            continue;
        r->seen++;
        if (strcmp(now->value.data, value) != 0) {
            cli_complain("train: %s%s was %s in the checkpoint, now it is %s", key, flag_of(key),
                         value, now->value.data);
            r->differences++;
        }
    }
    if (strcmp(key, "epoch") == 0)
        r->at.epoch = strtoull(value, NULL, 10);
    else if (strcmp(key, "sample") == 0)
        r->at.sample = strtoll(value, NULL, 10);
    else if (strcmp(key, "best loss") == 0)
        r->run->best_loss = strtod(value, NULL);
    else if (strcmp(key, "worse") == 0)
        r->run->worse = strtoull(value, NULL, 10);
    else if (strcmp(key, "first loss") == 0)
        r->run->first_loss = strtod(value, NULL);
    else if (strcmp(key, "loss") == 0)
        r->run->loss = strtod(value, NULL);
    else if (strcmp(key, "rows of the epoch") == 0)
        r->run->so_far.rows = strtoull(value, NULL, 10);
    else if (strcmp(key, "their loss") == 0)
        r->run->so_far.loss = strtod(value, NULL);
    else if (strcmp(key, "their accuracy") == 0)
        r->run->so_far.accuracy = strtod(value, NULL);
}

static int go_on(struct train_run *run, const char *path)
{
    struct notes conditions = {.count = 0};
    struct resumption r = {.run = run, .conditions = &conditions};
    struct cameo_error err;

    note_conditions(run, &conditions);
    if (cameo_checkpoint_notes(path, take_note, &r, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (r.seen != conditions.count) {
        cli_complain("train: %s does not say how it was made", path);
        return CLI_NO;
    }
    if (r.differences && !run->settings->force) {
        cli_complain("train: the result would not be that of one run; --force goes on anyway");
        return CLI_USAGE;
    }
    if (cameo_checkpoint_resume(run->trainer, path, &err) != CAMEO_OK ||
        cameo_batches_seek(run->batches, r.at, &err) != CAMEO_OK)
        return cli_fail(&err);
    run->epoch = r.at.epoch + 1;
    run->began_at = cameo_trainer_steps(run->trainer);
    run->stopped_early = run->settings->patience && run->worse >= run->settings->patience;
    fprintf(stderr, "going on after step %llu\n", (unsigned long long)run->began_at);
    return CLI_YES;
}

int train_resume(struct train_run *run, bool *found)
{
    struct newest newest = {0};
    char path[PATH_SIZE];

    *found = false;
    if (!run->settings->resume)
        return CLI_YES;
    each(run, note_newest, &newest);
    *found = newest.found;
    if (!newest.found) {
        fprintf(stderr, "no checkpoint yet: training starts from the beginning\n");
        return CLI_YES;
    }
    make_path(path, run, newest.step);
    return go_on(run, path);
}
