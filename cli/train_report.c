/* What `cameo train` tells while it runs: the progress line, and the log. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double train_seconds(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* ---- before it runs ---- */

struct memory_row {
    const char *name, *key;
    uint64_t bytes;
};

/* Parts of the work use each other's places: what each is at its most does not add up. */
static void put_memory(const struct cameo_memory *m)
{
    const uint64_t total = m->weights + m->state + m->updates + m->constants + m->batch + m->work;
    const struct memory_row rows[] = {{"weights", "weights", m->weights},
                                      {"optimizer state", "state", m->state},
                                      {"new values", "updates", m->updates},
                                      {"constants", "constants", m->constants},
                                      {"batch", "batch", m->batch},
                                      {"work", "work", m->work},
                                      {"  activations, at most", "activations", m->activations},
                                      {"  gradients, at most", "gradients", m->gradients},
                                      {"  update arithmetic, at most", "arithmetic", m->arithmetic},
                                      {"  kernels' scratch, at most", "scratch", m->scratch},
                                      {"together", "together", total}};
    const size_t count = sizeof rows / sizeof *rows;
    char text[32];

    if (cli_as_json) {
        for (size_t i = 0; i < count; i++)
            printf("%s\"%s\":%llu", i ? "," : "{\"memory\":{", rows[i].key,
                   (unsigned long long)rows[i].bytes);
        printf(",\"late_nodes\":%zu}}\n", m->late);
        fflush(stdout);
        return;
    }
    fputs("memory of a training step:\n", stderr);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "  %-28s %12s\n", rows[i].name, cli_bytes(text, rows[i].bytes));
    if (m->late)
        fprintf(stderr, "  plus memory that depends on the data, in %zu node%s\n", m->late,
                m->late == 1 ? "" : "s");
}

int train_check_memory(struct train_run *run)
{
    const size_t limit = run->settings->memory_limit;
    const struct cameo_feed *feeds = cameo_batches_shapes(run->batches);
    struct cameo_memory m = CAMEO_MEMORY_INIT;
    struct cameo_error err;

    if (!run->settings->memory && !limit)
        return CLI_YES;
    if (cameo_trainer_memory(run->trainer, feeds, cameo_trainer_input_count(run->trainer), &m,
                             &err) != CAMEO_OK)
        return cli_fail(&err);
    if (run->settings->memory)
        put_memory(&m);
    if (!limit || m.limited <= limit)
        return CLI_YES;
    cli_complain("train: a step needs %llu bytes for activations, gradients and scratch memory, "
                 "--memory-limit allows %zu; a smaller --batch-size needs less",
                 (unsigned long long)m.limited, limit);
    return CLI_NO;
}

/* ---- progress ---- */

static bool line_is_shown;

void train_clear_line(void)
{
    if (line_is_shown)
        fputs("\r\033[K", stderr);
    line_is_shown = false;
    fflush(stderr);
}

static void put_time(double seconds)
{
    const long whole = seconds < 360000 ? (long)(seconds + 0.5) : 360000;

    if (whole >= 3600)
        fprintf(stderr, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        fprintf(stderr, "%ld:%02ld", whole / 60, whole % 60);
}

static void put_progress(const struct train_run *run, const struct cameo_progress *p, double now)
{
    const double done = (double)(p->step - run->began_at), seconds = now - run->started;

    fprintf(stderr, "step %llu/%llu  epoch %llu", (unsigned long long)p->step,
            (unsigned long long)p->steps, (unsigned long long)p->epoch);
    if (!isnan(p->loss))
        fprintf(stderr, "  loss %.5g", p->loss);
    if (seconds > 0 && done > 0) {
        fprintf(stderr, "  %.4g steps/s  left ", done / seconds);
        put_time((double)(p->steps - p->step) * seconds / done);
    }
}

/* A terminal's line is drawn over a few times a second; elsewhere a line every few seconds, the
 * first of them not at once: a short run needs none. */
void train_show(struct train_run *run, const struct cameo_progress *p)
{
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const double at = train_seconds();

    if (run->shown == 0 && !terminal)
        run->shown = at;
    if (at - run->shown < (terminal ? 0.1 : 5.0))
        return;
    run->shown = at;
    if (terminal)
        fputs("\r\033[K", stderr);
    put_progress(run, p, at);
    if (!terminal)
        fputc('\n', stderr);
    line_is_shown = terminal;
    fflush(stderr);
}

static void put_validation(const struct train_run *run, const struct cameo_progress *p)
{
    const struct cameo_measure *m = p->measure;

    fprintf(stderr, ", validation loss %.5g", m->loss);
    if (m->judged)
        fprintf(stderr, ", validation accuracy %.2f %%",
                100.0 * (double)m->correct / (double)m->judged);
    if (m->compared)
        fprintf(stderr, ", mae %.5g, r2 %.4f", m->mae, m->r2);
    if (p->best && !isinf(run->best_loss))
        fputs(", the best so far", stderr);
}

/* The mean of the scalar that the algorithm calls accuracy; NaN when there is none. */
static double mean_accuracy(const struct train_run *run, const struct cameo_progress *p)
{
    for (size_t i = 0; i < cameo_trainer_scalar_count(run->trainer); i++)
        if (strcmp(cameo_trainer_scalar_name(run->trainer, i), "accuracy") == 0)
            return p->means[i];
    return (double)NAN;
}

/* Without a validation to tell of, a hundred lines will do, and none where steps are counted. */
static bool is_told(const struct train_run *run, uint64_t epoch)
{
    const uint64_t every = (run->settings->epochs + 99) / 100;

    return run->validation_batches || (!run->settings->steps && (every <= 1 || epoch % every == 0));
}

void train_show_epoch(const struct train_run *run, const struct cameo_progress *p)
{
    const size_t loss = cameo_trainer_loss(run->trainer);
    const double accuracy = mean_accuracy(run, p);

    if (!is_told(run, p->epoch))
        return;
    train_clear_line();
    if (p->moment == CAMEO_AT_END)
        fprintf(stderr, "step %llu, in epoch %llu: ", (unsigned long long)p->step,
                (unsigned long long)p->epoch);
    else
        fprintf(stderr, "epoch %llu: ", (unsigned long long)p->epoch);
    if (loss < cameo_trainer_scalar_count(run->trainer))
        fprintf(stderr, "loss %.5g", p->means[loss]);
    else
        fputs("done", stderr);
    if (!isnan(accuracy))
        fprintf(stderr, ", accuracy %.2f %%", 100.0 * accuracy);
    if (p->measure)
        put_validation(run, p);
    fputc('\n', stderr);
}

/* ---- the log ---- */

/* How much of an older log stays when training goes on from step `last`: whole lines up to it. */
static uint64_t kept_length(const char *path, uint64_t last)
{
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    uint64_t kept = 0;
    ssize_t size = 0;

    while (file && (size = getline(&line, &room, file)) > 0 && line[size - 1] == '\n') {
        const char *key = strstr(line, "\"step\":");

        if (key && strtoull(key + strlen("\"step\":"), NULL, 10) > last)
            break;
        kept += (uint64_t)size;
    }
    if (size < 0 && !feof(file) && !ferror(file)) /* else the rest of the log would be cut off */
        cli_no_memory();
    free(line);
    if (file)
        fclose(file);
    return kept;
}

int train_log_open(struct train_run *run)
{
    const char *path = run->settings->log;
    struct cameo_file_options options = CAMEO_FILE_OPTIONS_INIT;
    struct cameo_error err;
    struct stat facts;

    if (!path)
        return CLI_YES;
    options.grows = true;
    if (run->began_at > 0 && stat(path, &facts) == 0 && S_ISREG(facts.st_mode))
        options.keep = kept_length(path, run->began_at);
    if (cameo_file_new(path, &options, &run->log, &err) == CAMEO_OK)
        return CLI_YES;
    return cli_fail(&err);
}

/* What a file system writes late it may refuse as late as here. */
void train_log_close(struct train_run *run)
{
    struct cameo_error err;

    if (run->log && cameo_file_commit(run->log, &err) != CAMEO_OK)
        train_note_incomplete(run, TRAIN_LOG, err.message);
    cameo_file_free(run->log);
}

/* JSON has no word for what is not finite. */
void train_put_number(FILE *to, const char *name, double value)
{
    fputc(',', to);
    cli_put_quoted(to, name, strlen(name));
    if (isfinite(value))
        fprintf(to, ":%.9g", value);
    else
        fputs(":null", to);
}

/* A line of the log, which is written whole: a run that is killed leaves all lines before it. */
struct line {
    char *text;
    size_t size;
    FILE *to;
};

static const char no_memory[] = "no memory for a line of the log";

static bool begin_line(struct line *line, struct train_run *run, const struct cameo_progress *p)
{
    *line = (struct line){NULL, 0, NULL};
    line->to = open_memstream(&line->text, &line->size);
    if (line->to)
        fprintf(line->to, "{\"step\":%llu,\"epoch\":%llu", (unsigned long long)p->step,
                (unsigned long long)p->epoch);
    else
        train_note_unwritten(run, TRAIN_LOG, no_memory);
    return line->to != NULL;
}

static void end_line(struct line *line, struct train_run *run)
{
    struct cameo_error err;

    fputs("}\n", line->to);
    if (fclose(line->to) != 0)
        train_note_unwritten(run, TRAIN_LOG, no_memory);
    else if (cameo_file_write(run->log, line->text, line->size, &err) != CAMEO_OK &&
             !cli_reader_gone)
        train_note_unwritten(run, TRAIN_LOG, err.message);
    free(line->text);
}

void train_log_step(struct train_run *run, const struct cameo_progress *p)
{
    const size_t count = cameo_trainer_scalar_count(run->trainer);
    const size_t loss = cameo_trainer_loss(run->trainer);
    struct line line;

    if (!run->log || !begin_line(&line, run, p))
        return;
    if (loss < count)
        train_put_number(line.to, "loss", p->loss);
    for (size_t i = 0; i < count; i++) {
        const char *name = cameo_trainer_scalar_name(run->trainer, i);

        if (strcmp(name, "loss") != 0 && strcmp(name, "step") != 0 && strcmp(name, "epoch") != 0)
            train_put_number(line.to, name, p->scalars[i]);
    }
    end_line(&line, run);
}

void train_log_validation(struct train_run *run, const struct cameo_progress *p)
{
    const struct cameo_measure *m = p->measure;
    struct line line;

    if (!run->log || !m || !begin_line(&line, run, p))
        return;
    train_put_number(line.to, "validation_loss", m->loss);
    if (m->judged)
        train_put_number(line.to, "validation_accuracy", m->accuracy);
    if (m->compared) {
        train_put_number(line.to, "validation_mae", m->mae);
        train_put_number(line.to, "validation_r2", m->r2);
    }
    end_line(&line, run);
}
