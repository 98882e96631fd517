/* The peak of float arithmetic. */
// SPDX-License-Identifier: Apache-2.0
#include "base/peak.h"

#include "base/clock.h"
#include "base/machine.h"
#include "base/parallel.h"

/* Enough sums at once that none waits for the one before, few enough that all stay in registers. */
enum { LANES = 16, MOST_SUMS = 16, ROUNDS = 20000, TRIES = 24 };

struct work {
    float factor, start;
};

static CM_ALWAYS_INLINE int sums_of(enum cm_machine machine)
{
    return machine == CM_AVX512 ? MOST_SUMS : machine == CM_AVX2 ? 6 : 3;
}

static CM_ALWAYS_INLINE void multiply_on(enum cm_machine machine, const struct work *work,
                                         float *result)
{
    const int n = sums_of(machine);
    float sums[MOST_SUMS][LANES];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < LANES; j++)
            sums[i][j] = work->start + (float)(i * LANES + j);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < LANES; j++)
                sums[i][j] = cm_muladd(machine, sums[i][j], work->factor, work->start);
    float sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < LANES; j++)
            sum += sums[i][j];
    *result = sum;
}

CM_BUILDS(multiply, (const struct work *work, float *result), (machine, work, result))

static void multiply_some(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        float result;
        multiply_builds[cm_this_machine()](arg, &result);
        volatile float read = result; /* so that nothing can be left out */
        (void)read;
    }
}

double cm_measure_peak(int threads)
{
    struct work work = {.factor = 0.5f, .start = 1};
    const double flops =
        2.0 * LANES * ROUNDS * sums_of(cm_this_machine()) * (threads > 0 ? threads : 1);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t began = cm_clock_ns();
        cm_parallel(threads, 1, multiply_some, &work);
        const uint64_t took = cm_clock_ns() - began;
        best = took < best ? took : best;
    }
    return flops / ((double)(best > 0 ? best : 1) / 1e9);
}
