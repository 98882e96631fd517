/* cameo bench: what was measured, for people and for programs. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

/* A line of /proc/self/status, "VmRSS:   1234 kB", as bytes; 0 when there is none. */
static uint64_t status_line(const char *name)
{
    FILE *file = cli_or_absent(fopen("/proc/self/status", "r"));
    char line[256];
    unsigned long long kilobytes = 0;
    const size_t size = strlen(name);

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, size) == 0 && line[size] == ':')
            kilobytes = strtoull(line + size + 1, NULL, 10);
    if (file)
        fclose(file);
    return (uint64_t)kilobytes * 1024;
}

void bench_memory(uint64_t *now, uint64_t *most)
{
    *now = status_line("VmRSS");
    *most = status_line("VmHWM");
}

/* Where the system lets us: otherwise the most of all time stays. */
void bench_forget_most(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

/* ---- numbers ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct figures {
    double best, median, mean, p90, p99, worst; /* milliseconds */
    double rate;                                /* runs a second */
};

static double at(const double *sorted, size_t count, double share)
{
    const size_t place = (size_t)ceil(share * (double)count);

    return sorted[place > 0 ? place - 1 : 0];
}

static bool add_up(const struct bench_times *times, struct figures *out)
{
    double sum = 0;

    *out = (struct figures){0};
    if (!times->count)
        return false;
    double *sorted = cli_alloc(times->count, sizeof *sorted);
    memcpy(sorted, times->runs, times->count * sizeof *sorted);
    qsort(sorted, times->count, sizeof *sorted, by_size);
    for (size_t i = 0; i < times->count; i++)
        sum += sorted[i];
    *out = (struct figures){.best = sorted[0],
                            .median = at(sorted, times->count, 0.5),
                            .mean = sum / (double)times->count,
                            .p90 = at(sorted, times->count, 0.9),
                            .p99 = at(sorted, times->count, 0.99),
                            .worst = sorted[times->count - 1],
                            .rate = (double)times->count / (sum / 1e3)};
    free(sorted);
    return true;
}

/* The rows of what is fed first, if everything that is fed has as many. */
static int64_t batch_of(const struct bench_subject *s)
{
    int64_t rows = 0;

    for (size_t i = 0; i < s->n_feeds; i++) {
        const struct cameo_value *value = s->feeds[i].value;

        if (!value || cameo_value_kind(value) != CAMEO_KIND_TENSOR || cameo_value_rank(value) < 1)
            continue;
        const int64_t here = cameo_value_dims(value)[0];
        if (rows && here != rows)
            return 0;
        rows = here;
    }
    return rows;
}

static uint64_t held(const struct bench_times *times)
{
    return times->bytes_most > times->bytes_before ? times->bytes_most - times->bytes_before : 0;
}

/* ---- for people ---- */

void bench_print(const struct bench_subject *s, const struct bench_times *times)
{
    const char *run = s->trains ? "steps" : "runs";
    const int64_t rows = batch_of(s);
    struct figures f;
    char text[CLI_NUMBER_SIZE];

    if (!add_up(times, &f))
        return;
    printf(
        "latency       best %.3f ms, median %.3f, mean %.3f, 90 %% below %.3f, 99 %% below %.3f, "
        "worst %.3f (%zu %s)\n",
        f.best, f.median, f.mean, f.p90, f.p99, f.worst, times->count, run);
    printf("throughput    %.4g %s a second", f.rate, run);
    if (rows > 1)
        printf(", %.4g rows (batches of %lld)", f.rate * (double)rows, (long long)rows);
    printf("\nfirst result  %.1f ms: reading %.1f, planning %.1f, running %.1f\n",
           (times->load + times->plan + times->first) * 1e3, times->load * 1e3, times->plan * 1e3,
           times->first * 1e3);
    if (times->bytes_most)
        printf("memory        %s at most, beside %s", cli_bytes(text, held(times)), "");
    if (times->bytes_most)
        printf("the bare process's %s\n", cli_bytes(text, times->bytes_before));
    if (times->flops > 0 && times->peak > 0)
        printf("work          %.4g GFLOP in products: %.4g GFLOP/s, %.0f %% of the %.4g that this "
               "machine reaches\n",
               times->flops / 1e9, times->flops / f.best / 1e6,
               100 * times->flops / (f.best / 1e3) / times->peak, times->peak / 1e9);
    cli_steps_summary(stdout, &times->steps, times->peak);
}

/* ---- for programs ---- */

void bench_json(const struct bench_subject *s, const struct bench_times *times)
{
    struct cli_json json = {.to = stdout};
    struct figures f;

    add_up(times, &f);
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "model", s->path);
    cli_json_bool(&json, "training", s->trains);
    cli_json_count(&json, "runs", times->count);
    cli_json_real(&json, "best_ms", f.best);
    cli_json_real(&json, "median_ms", f.median);
    cli_json_real(&json, "mean_ms", f.mean);
    cli_json_real(&json, "p90_ms", f.p90);
    cli_json_real(&json, "p99_ms", f.p99);
    cli_json_real(&json, "worst_ms", f.worst);
    cli_json_real(&json, "runs_per_second", f.rate);
    cli_json_int(&json, "batch", batch_of(s));
    cli_json_real(&json, "load_ms", times->load * 1e3);
    cli_json_real(&json, "plan_ms", times->plan * 1e3);
    cli_json_real(&json, "first_run_ms", times->first * 1e3);
    cli_json_real(&json, "first_result_ms", (times->load + times->plan + times->first) * 1e3);
    cli_json_count(&json, "peak_bytes", held(times));
    cli_json_count(&json, "bare_bytes", times->bytes_before);
    cli_json_real(&json, "flops", times->flops);
    cli_json_real(&json, "machine_flops_per_second", times->peak);
    cli_json_close(&json, '}');
}
