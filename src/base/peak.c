/* The peak of float arithmetic. */
// SPDX-License-Identifier: Apache-2.0
#include "base/peak.h"

#include "base/clock.h"
#include "base/machine.h"
#include "base/parallel.h"

/* Enough sums at once that none waits for the one before, few enough that all stay in registers;
 * written out, as only then they do. */
#define EACH_SUM(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
enum { LANES = 16, SUMS = 12, ROUNDS = 20000, TRY_NS = 100 * 1000 * 1000 };

struct work {
    float factor, start;
};

static CM_ALWAYS_INLINE int lanes_of(enum cm_machine machine)
{
    return machine == CM_AVX512 ? LANES : machine == CM_AVX2 ? 8 : 4;
}

static CM_ALWAYS_INLINE void multiply_on(enum cm_machine machine, const struct work *work,
                                         float *result)
{
    const int width = lanes_of(machine);
    const float factor = work->factor, start = work->start;
    float sum = 0;
#define DECLARE(i)  float s##i[LANES];
#define BEGIN(i)    s##i[j] = start + (float)(i * LANES + j);
#define MULTIPLY(i) s##i[j] = cm_muladd(machine, s##i[j], factor, start);
#define END(i)      sum += s##i[j];
    EACH_SUM(DECLARE)
    for (int j = 0; j < width; j++) {
        EACH_SUM(BEGIN)
    }
    for (int r = 0; r < ROUNDS; r++)
        for (int j = 0; j < width; j++) {
            EACH_SUM(MULTIPLY)
        }
    for (int j = 0; j < width; j++) {
        EACH_SUM(END)
    }
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
        2.0 * SUMS * ROUNDS * lanes_of(cm_this_machine()) * (threads > 0 ? threads : 1);
    uint64_t best = UINT64_MAX;
    const uint64_t end = cm_clock_ns() + TRY_NS;
    for (uint64_t began; (began = cm_clock_ns()) < end;) {
        cm_parallel(threads, 1, multiply_some, &work);
        const uint64_t took = cm_clock_ns() - began;
        best = took < best ? took : best;
    }
    return flops / ((double)(best > 0 ? best : 1) / 1e9);
}
