/* Functions of floats over whole arrays, built per machine. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/vector_math.h"

#define PARAMETERS int64_t count, const float *x, float *y
#define BUILT(name)                                                                                \
    static CM_ALWAYS_INLINE void name##_all_on(enum cm_machine machine, PARAMETERS)                \
    {                                                                                              \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = cm_##name##_on(machine, x[i]);                                                  \
    }                                                                                              \
    CM_BUILDS(name##_all, (PARAMETERS), (machine, count, x, y))
#define OVER_ARRAYS(name)                                                                          \
    BUILT(name)                                                                                    \
    void cm_##name##_floats(PARAMETERS)                                                            \
    {                                                                                              \
        name##_all_builds[cm_this_machine()](count, x, y);                                         \
    }

OVER_ARRAYS(exp)
OVER_ARRAYS(log)
OVER_ARRAYS(tanh)
OVER_ARRAYS(sigmoid)
OVER_ARRAYS(erf)
OVER_ARRAYS(atan)

/* ---- sine and cosine ---- */

enum { BLOCK = 256 }; /* computed at a time: loops of known length, without rests */

static CM_ALWAYS_INLINE uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static CM_ALWAYS_INLINE double double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adding 1.5 * 2^52 rounds to an integer, which the low bits of the sum then are. */
#define WHOLE 6755399441055744.0

/* Up to here the number of quarter turns times the first part of a quarter is exact. */
#define MOST_TURNED 1048576.0F

/* The sine of x + turns * pi / 2 in double, by the polynomials of a quarter: r is exact to far more
 * than a float, since the first part of pi / 2 has 33 bits and the number of quarters up to 20. */
static CM_ALWAYS_INLINE float turned_sine(float given, uint64_t turns)
{
    const double x = (double)given, shifted = x * 0.63661977236758138243 + WHOLE;
    const double n = shifted - WHOLE;
    const double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
    const double z = r * r;
    double s = 2.7249943211676403e-06, c = -2.723787427612651e-07;
    s = s * z + -0.00019840086995227534;
    s = s * z + 0.008333331875553476;
    s = s * z + -0.16666666663859336;
    c = c * z + 2.479987248013371e-05;
    c = c * z + -0.0013888885139334045;
    c = c * z + 0.04166666663821857;
    c = c * z + -0.4999999999996766;
    const uint64_t quarter = double_bits(shifted) + turns;
    const double y = (quarter & 1) ? 1 + c * z : r * (1 + s * z); /* of -0 too */
    return (float)((quarter & 2) ? -y : y);
}

static CM_ALWAYS_INLINE void sines_on(enum cm_machine machine, const float *x, uint64_t turns,
                                      float *y)
{
    (void)machine;
    for (int i = 0; i < BLOCK; i++)
        y[i] = turned_sine(x[i], turns);
}
CM_BUILDS(sines, (const float *restrict x, uint64_t turns, float *restrict y),
          (machine, x, turns, y))

/* count numbers, `step` apart, filled up to a block. */
static void load_block(int64_t count, const float *x, int64_t step, float *block)
{
    if (count >= BLOCK && step) {
        memcpy(block, x, BLOCK * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < BLOCK; i++)
        block[i] = i < count ? x[i * step] : 1;
}

/* Larger arguments, which are rare, one by one. */
static void all_sines(int64_t count, const float *x, uint64_t turns, float (*one)(float), float *y)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float xs[BLOCK], ys[BLOCK];
        int large = 0;
        load_block(n, x + at, 1, xs);
        sines_builds[cm_this_machine()](xs, turns, ys);
        for (int i = 0; i < BLOCK; i++)
            large += !(fabsf(xs[i]) < MOST_TURNED);
        for (int i = 0; large > 0 && i < BLOCK; i++)
            if (!(fabsf(xs[i]) < MOST_TURNED))
                ys[i] = one(xs[i]);
        memcpy(y + at, ys, (size_t)n * sizeof *y);
    }
}

void cm_sin_floats(int64_t count, const float *x, float *y)
{
    all_sines(count, x, 0, sinf, y);
}

void cm_cos_floats(int64_t count, const float *x, float *y)
{
    all_sines(count, x, 1, cosf, y);
}

/* ---- powers ---- */

/* The logarithm to base 2 of what is not negative: the exponent and that of 1 + f between the roots
 * of 1/2 and 2, an odd function of f / (2 + f). Every float that is not 0 is a normal double. */
static CM_ALWAYS_INLINE double log2_of(double a)
{
    const uint64_t bits = double_bits(a), root = UINT64_C(0x3fe6a09e667f3bcd);
    const uint64_t biased = (bits - root + (UINT64_C(1) << 62)) >> 52; /* 1024 above the exponent */
    const double m = double_of_bits(bits - ((biased - 1024) << 52));
    const double exponent =
        double_of_bits(biased | UINT64_C(0x4330000000000000)) - (4503599627370496.0 + 1024.0);
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = -1.246387524713488;
    p = p * z + 0.39307084711506635;
    p = p * z + 0.31625283753454886;
    p = p * z + 0.41226510396711896;
    p = p * z + 0.5770775559365603;
    p = p * z + 0.9617966950943393;
    p = p * z + 2.8853900817774374;
    const double y = exponent + s * p;
    return a == 0 ? -INFINITY : a <= DBL_MAX ? y : a; /* infinity and NaN */
}

/* 2^t; what is far beyond floats becomes infinity or 0 when it is rounded to one. */
static CM_ALWAYS_INLINE double exp2_of(double t)
{
    const double most = t > 300 ? 300 : t, within = most < -300 ? -300 : most; /* NaN stays */
    const double shifted = within + WHOLE, f = within - (shifted - WHOLE);
    double p = 1.531648623197442e-05;
    p = p * f + 0.00015469758152624835;
    p = p * f + 0.0013333422540737592;
    p = p * f + 0.009618025521390596;
    p = p * f + 0.05550410976237828;
    p = p * f + 0.24022651214204363;
    p = p * f + 0.6931471805349859;
    p = p * f + 0.9999999999594853;
    return p * double_of_bits((double_bits(shifted) << 52) + UINT64_C(0x3ff0000000000000));
}

/* The power of x by e, given that of |x|. */
static CM_ALWAYS_INLINE double signed_power(double x, double e, double magnitude)
{
    /* Floats from 2^24 on are even integers; adding WHOLE rounds the smaller ones. */
    const double small = fabs(e) < 16777216.0 ? e : 0, half = small * 0.5;
    const double rest = small - ((small + WHOLE) - WHOLE); /* 0: an integer */
    const double rest_of_half = half - ((half + WHOLE) - WHOLE);
    const double odd = copysign(magnitude, x), none = fabs(x) <= DBL_MAX ? NAN : magnitude;
    const double of_integer = rest_of_half == 0 ? magnitude : odd;
    const double of_real = x < 0 ? none : magnitude; /* negative numbers have none */
    return rest == 0 ? of_integer : of_real;
}

/* In several loops over a block, each of which becomes vectors. */
static CM_ALWAYS_INLINE void powers_on(enum cm_machine machine, const float *x, const float *e,
                                       float *y)
{
    double xs[BLOCK], es[BLOCK], powers[BLOCK];
    if (machine == CM_PLAIN) { /* short vectors are no faster than the C library */
        for (int i = 0; i < BLOCK; i++)
            y[i] = powf(x[i], e[i]);
        return;
    }
    for (int i = 0; i < BLOCK; i++)
        xs[i] = (double)x[i];
    for (int i = 0; i < BLOCK; i++)
        es[i] = (double)e[i];
    for (int i = 0; i < BLOCK; i++)
        powers[i] = es[i] * log2_of(fabs(xs[i]));
    for (int i = 0; i < BLOCK; i++)
        powers[i] = exp2_of(powers[i]);
    for (int i = 0; i < BLOCK; i++)
        powers[i] = signed_power(xs[i], es[i], powers[i]);
    /* 1 by anything is 1, by infinity -1 too, and by 0 anything is */
    for (int i = 0; i < BLOCK; i++)
        xs[i] = fabs(es[i]) > DBL_MAX ? fabs(xs[i]) : xs[i];
    for (int i = 0; i < BLOCK; i++)
        powers[i] = xs[i] == 1 ? 1 : powers[i];
    for (int i = 0; i < BLOCK; i++)
        y[i] = (float)(es[i] == 0 ? 1 : powers[i]);
}
CM_BUILDS(powers, (const float *restrict x, const float *restrict e, float *restrict y),
          (machine, x, e, y))

void cm_pow_floats(int64_t count, const float *x, int64_t step_x, const float *e, int64_t step_e,
                   float *y)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float xs[BLOCK], es[BLOCK], ys[BLOCK];
        load_block(n, x + at * step_x, step_x, xs);
        load_block(n, e + at * step_e, step_e, es);
        powers_builds[cm_this_machine()](xs, es, ys);
        memcpy(y + at, ys, (size_t)n * sizeof *y);
    }
}
