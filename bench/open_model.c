/* Opens a model a few times and prints what the best time and the peak memory were. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/model_file.h"

#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Of this program alone: what getrusage tells begins with the memory of whoever started it. */
static long peak_kibibytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long peak = 0;

    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            peak = strtol(line + 6, NULL, 10);
    }
    if (status)
        fclose(status);
    return peak;
}

static enum cm_status open_once(struct cm_guard *guard, void *path)
{
    struct cm_arena arena;
    struct cm_model_file *file;
    struct cm_error err;

    cm_arena_init(&arena, guard);
    const enum cm_status status = cm_model_open(&arena, path, NULL, &file, &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    cm_arena_release(&arena);
    return status;
}

int main(int argc, char **argv)
{
    double best = 1e30;

    if (argc != 2) {
        fprintf(stderr, "usage: open_model MODEL\n");
        return 2;
    }
    for (int i = 0; i < 20; i++) {
        const double start = now();
        if (cm_guarded(0, NULL, open_once, argv[1]) != CM_OK)
            return 1;
        const double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%.6f ms %ld KiB\n", best, peak_kibibytes());
    return 0;
}
