/* Powers of two by halving; other lengths as a convolution with a chirp (Bluestein), which is done
 * in a power of two. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/signal/fourier.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

static bool is_power(int64_t n)
{
    return (n & (n - 1)) == 0;
}

static int64_t work_length(int64_t n)
{
    int64_t m = 1;
    if (is_power(n))
        return n;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

bool cm_fourier_bytes(int64_t n, size_t *out)
{
    if (n < 0 || n > INT64_C(1) << 40)
        return false;
    /* roots: m doubles; chirp: 2 n; kernel and work: 2 m each. m is below 4 n. */
    *out = (size_t)(n + 1) * 22 * sizeof(double);
    return true;
}

/* m complex numbers in place; roots are those of m, conjugated for the way back. */
static void transform(int64_t m, const double *roots, bool back, double *x)
{
    for (int64_t i = 1, j = 0; i < m; i++) { /* bits of the index turned round */
        int64_t bit = m >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double t[2];
            memcpy(t, x + 2 * i, sizeof t);
            memcpy(x + 2 * i, x + 2 * j, sizeof t);
            memcpy(x + 2 * j, t, sizeof t);
        }
    }
    for (int64_t half = 1; half < m; half *= 2) {
        const int64_t step = m / (2 * half);
        for (int64_t start = 0; start < m; start += 2 * half) {
            for (int64_t k = 0; k < half; k++) {
                const double c = roots[2 * k * step];
                const double s = back ? -roots[2 * k * step + 1] : roots[2 * k * step + 1];
                double *a = x + 2 * (start + k), *b = a + 2 * half;
                const double re = b[0] * c - b[1] * s, im = b[0] * s + b[1] * c;
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
        }
    }
}

void cm_fourier_init(struct cm_fourier *f, int64_t n, bool inverse, void *memory)
{
    f->n = n;
    f->inverse = inverse;
    f->m = work_length(n);
    f->roots = memory;
    f->chirp = f->roots + f->m + 2;
    f->kernel = f->chirp + 2 * n;
    f->work = f->kernel + 2 * f->m;
    for (int64_t k = 0; k < f->m / 2; k++) {
        f->roots[2 * k] = cos(2 * PI * (double)k / (double)f->m);
        f->roots[2 * k + 1] = -sin(2 * PI * (double)k / (double)f->m);
    }
    if (is_power(n))
        return;
    memset(f->kernel, 0, (size_t)(2 * f->m) * sizeof(double));
    for (int64_t k = 0, square = 0; k < n; k++) {
        /* k * k mod 2n, kept small step by step so that the angle keeps its digits. */
        const double angle = PI * (double)square / (double)n;
        f->chirp[2 * k] = cos(angle);
        f->chirp[2 * k + 1] = inverse ? sin(angle) : -sin(angle);
        const int64_t mirror = k == 0 ? 0 : f->m - k;
        f->kernel[2 * k] = f->kernel[2 * mirror] = f->chirp[2 * k];
        f->kernel[2 * k + 1] = f->kernel[2 * mirror + 1] = -f->chirp[2 * k + 1];
        square = (square + 2 * k + 1) % (2 * n);
    }
    transform(f->m, f->roots, false, f->kernel);
}

static void multiply(double *x, double re, double im)
{
    const double real = x[0] * re - x[1] * im;
    x[1] = x[0] * im + x[1] * re;
    x[0] = real;
}

void cm_fourier_run(const struct cm_fourier *f, double *x)
{
    if (f->n < 2)
        return;
    if (is_power(f->n)) {
        transform(f->n, f->roots, f->inverse, x);
        return;
    }
    memset(f->work, 0, (size_t)(2 * f->m) * sizeof(double));
    memcpy(f->work, x, (size_t)(2 * f->n) * sizeof(double));
    for (int64_t k = 0; k < f->n; k++)
        multiply(f->work + 2 * k, f->chirp[2 * k], f->chirp[2 * k + 1]);
    transform(f->m, f->roots, false, f->work);
    for (int64_t k = 0; k < f->m; k++)
        multiply(f->work + 2 * k, f->kernel[2 * k], f->kernel[2 * k + 1]);
    transform(f->m, f->roots, true, f->work);
    for (int64_t k = 0; k < f->n; k++) {
        x[2 * k] = f->work[2 * k] / (double)f->m;
        x[2 * k + 1] = f->work[2 * k + 1] / (double)f->m;
        multiply(x + 2 * k, f->chirp[2 * k], f->chirp[2 * k + 1]);
    }
}
