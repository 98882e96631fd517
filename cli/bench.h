/* What `cameo bench` measures, and how it is told. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "values.h"

/* One thing that is run again and again: a model, or a step of its training. */
struct bench_subject {
    const char *path;
    int threads; /* 0: as many as there are cores */
    const char *backend, *without;
    size_t memory_limit, seed;
    bool recompute;
    bool trains;
    struct cameo_prepare_options prepare; /* of a model that carries no training */
    /* What it is fed, and what that was made for: a graph with the same inputs, never run. */
    struct cli_inputs inputs;
    struct cameo_compiled *compiled; /* NULL: it is a model with nodes */
    struct cameo_model *fed_model, *fed_step;
    struct cameo_session *fed_session;
    const struct cameo_feed *feeds; /* those of inputs that are the subject's */
    size_t n_feeds;
    /* Once it is open. */
    struct cameo_model *model;
    struct cameo_session *session;
    struct cameo_trainer *trainer;
    struct cameo_fetch *fetches;
};

/* Seconds, but for what says otherwise. */
struct bench_times {
    double load, plan, first; /* reading the file, making it ready, the first run */
    double *runs;             /* of each later one, in milliseconds */
    size_t count, room;
    uint64_t bytes_before, bytes_most; /* resident: of the bare process, and at most */
    double flops;                      /* of a run's products; 0: it has none */
    double peak;                       /* of the machine, on these threads, a second */
    struct cli_steps steps;            /* of one run */
};

/* bench_subject.c. They give exit codes and say what is wrong. */

/* Values for all that the subject is fed: from files, else made up. */
int bench_feed(struct bench_subject *subject, const struct cli_texts *files,
               const struct cli_make *make, const struct cameo_make_options *options);
/* Opens the model and runs it a first time; other guesses are tried where those at hand do not
 * run. */
int bench_open(struct bench_subject *subject, const struct cli_make *make,
               struct cameo_make_options *options, struct bench_times *times);
/* Runs once; step may be NULL. */
enum cameo_status bench_run(struct bench_subject *subject, struct cli_steps *steps, double *ms,
                            struct cameo_error *err);
void bench_close(struct bench_subject *subject);

/* bench_report.c */
void bench_print(const struct bench_subject *subject, const struct bench_times *times);
void bench_json(const struct bench_subject *subject, const struct bench_times *times);
/* The resident bytes of this process: now, and at most since the last bench_forget_most. */
void bench_memory(uint64_t *now, uint64_t *most);
void bench_forget_most(void);
double bench_now(void); /* seconds */

#endif
