/* cameo bench: how fast a model runs or trains here, and where the time goes. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "bench.h"
#include "training_flags.h"

#include <stdlib.h>
#include <string.h>

static struct cli_texts input_texts;
static struct cli_make make;
static struct bench_subject subject;
static size_t threads, runs, seconds, batch_size;
static bool on_request;

enum { LEAST_RUNS = 5, MOST_RUNS = 10000000, SECONDS = 3 };

static void note(struct bench_times *times, double ms)
{
    times->runs = cli_grow(times->runs, times->count, &times->room, sizeof *times->runs);
    times->runs[times->count++] = ms;
}

static int run_and_note(struct bench_times *times)
{
    struct cameo_error err;
    double ms;

    if (bench_run(&subject, NULL, &ms, &err) != CAMEO_OK)
        return cli_fail(&err);
    note(times, ms);
    return CLI_YES;
}

static int measure(struct bench_times *times)
{
    const double end = bench_now() + (double)(seconds ? seconds : SECONDS);
    int code = CLI_YES;

    while (code == CLI_YES && times->count < MOST_RUNS &&
           (runs ? times->count < runs : times->count < LEAST_RUNS || bench_now() < end))
        code = run_and_note(times);
    return code;
}

/* Somebody else says when: each line is a number of runs, and gets a line with their times. */
static int serve(struct bench_times *times)
{
    char line[64];

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const unsigned long wanted = strtoul(line, NULL, 10);
        const size_t first = times->count;

        for (unsigned long i = 0; i < wanted && times->count < MOST_RUNS; i++)
            if (run_and_note(times) != CLI_YES)
                return CLI_MACHINE;
        for (size_t i = first; i < times->count; i++)
            printf("%.6f%c", times->runs[i], i + 1 < times->count ? ' ' : '\n');
        fflush(stdout);
    }
    return CLI_YES;
}

/* One more run, whose steps are told: not among those that were measured. */
static int look_inside(struct bench_times *times)
{
    struct cameo_error err;
    uint64_t now;
    double ms;

    bench_memory(&now, &times->bytes_most);
    if (bench_run(&subject, &times->steps, &ms, &err) != CAMEO_OK)
        return cli_fail(&err);
    for (size_t i = 0; i < times->steps.count; i++)
        times->flops += times->steps.items[i].flops;
    times->peak = cameo_machine_peak((int)threads);
    return CLI_YES;
}

static int bench(void)
{
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct bench_times times = {0};

    options.seed = subject.seed;
    options.memory_limit = cli_memory_limit(0);
    if (batch_size)
        options.batch = (int64_t)batch_size;
    int code = bench_feed(&subject, &input_texts, &make, &options);
    if (code == CLI_YES)
        code = bench_open(&subject, &make, &options, &times);
    if (code == CLI_YES)
        code = on_request ? serve(&times) : measure(&times);
    if (code == CLI_YES)
        code = look_inside(&times);
    if (code == CLI_YES)
        (cli_as_json || on_request ? bench_json : bench_print)(&subject, &times);
    if (code == CLI_YES)
        code = cli_flush(stdout, "standard output");
    cli_steps_free(&times.steps);
    free(times.runs);
    bench_close(&subject);
    return code;
}

static int bench_main(char **operands, int count)
{
    int code = CLI_YES;

    (void)count;
    subject.prepare = (struct cameo_prepare_options)CAMEO_PREPARE_OPTIONS_INIT;
    if (cli_training_given_at(0) && !subject.trains) {
        cli_complain("bench: %s is about training: add --train", cli_training_given_at(0));
        return CLI_USAGE;
    }
    if (threads > 4096 || batch_size > INT32_MAX) {
        cli_complain("bench: %zu %s are too many", threads > 4096 ? threads : batch_size,
                     threads > 4096 ? "threads" : "rows");
        return CLI_USAGE;
    }
    if (subject.trains)
        code = cli_training_read("bench", &subject.prepare);
    if (code != CLI_YES)
        return code;
    subject.path = operands[0];
    subject.threads = (int)threads;
    subject.memory_limit = cli_memory_limit(0);
    return bench();
}

static const struct cli_option options[] = {
    {"--train", NULL, NULL, "measure whole training steps: forward, backward and update", CLI_FLAG,
     &subject.trains},
    {"--threads", NULL, "N", "threads (as many as there are cores)", CLI_SIZE, &threads},
    {"--runs", "-n", "N", "how many to measure, after a first one", CLI_COUNT, &runs},
    {"--seconds", NULL, "N", "or for how long (3, and at least 5 runs)", CLI_COUNT, &seconds},
    {"--input", "-i", "NAME=FILE", "the value of an input, otherwise made up", CLI_TEXTS,
     &input_texts},
    CLI_MAKE_OPTIONS(make),
    {"--batch-size", "-b", "N", "rows where the model leaves them open", CLI_COUNT, &batch_size},
    {"--seed", NULL, "N", "seed of inputs that are made up", CLI_SIZE, &subject.seed},
    {"--json", NULL, NULL, "the figures as JSON", CLI_FLAG, &cli_as_json},
    {"--on-request", NULL, NULL,
     "read numbers of runs from stdin, a line each, and print their\n"
     "milliseconds; the figures as JSON at the end: to measure in turns",
     CLI_FLAG, &on_request},
    {"--backend", NULL, "NAME", "kernels to use: reference, or a backend", CLI_TEXT,
     &subject.backend},
    {"--without", NULL, "PASSES", "leave these passes out, see 'cameo help optimize'", CLI_TEXT,
     &subject.without},
    {"--recompute", NULL, NULL, "with --train: compute cheap activations again", CLI_FLAG,
     &subject.recompute},
    {"--loss", NULL, "LOSS", "with --train, of a model that carries no training", CLI_TEXT,
     &cli_training.loss},
    {"--optimizer", NULL, "NAME", "the same", CLI_TEXT, &cli_training.optimizer},
    {"--of", NULL, "NAME", "which output of the model the loss reads, when there are several",
     CLI_TEXT, &cli_training.output},
    {"--output", NULL, NULL, "--of", CLI_OLD, NULL},
    {"--class-axis", NULL, "N", "which axis of the output is over classes (1; -1: the last)",
     CLI_TEXT, &cli_training.class_axis},
    {"--momentum", NULL, "X", "of the optimizer", CLI_TEXT, &cli_training.momentum},
    {"--clip-norm", NULL, "X", "gradients are scaled down to this norm", CLI_TEXT,
     &cli_training.clip_norm},
    {"--freeze", NULL, "REGEX", "leave the initializers whose names match as they are", CLI_TEXT,
     &cli_training.freeze},
    {0},
};

CLI_COMMAND(
    bench, bench_main, "MODEL [--train --loss LOSS --optimizer NAME]",
    "measure how fast a model runs or trains",
    "Runs the model again and again and tells latency, throughput, the time from the file to\n"
    "the first result, the memory that this took, how much of the machine's peak (measured too)\n"
    "its products reach, and which operators took the time. With --train it measures training\n"
    "steps, on made-up data. The machine's other work shows: compare figures of one hour.",
    "cameo bench net.onnx # on all cores\n"
    "cameo bench net.onnx --threads 1 --dim batch=8 # one thread, batches of 8\n"
    "cameo bench net.onnx --train --loss cross-entropy --optimizer adam # training steps",
    "0 if it was measured, 1 if the model cannot run", options, 1, 1);
