/* The discrete Fourier transform of one line of complex numbers, any length, in n log n. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_SIGNAL_FOURIER_H
#define CM_OPS_SIGNAL_FOURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory for lengths up to n; false when there cannot be as many. */
bool cm_fourier_bytes(int64_t n, size_t *out);

struct cm_fourier {
    int64_t n, m; /* m: the power of two that is computed with */
    bool inverse;
    double *roots;  /* of m, m / 2 complex numbers */
    double *chirp;  /* n; unless n is a power of two */
    double *kernel; /* m */
    double *work;   /* m */
};

/* Lays its tables out in memory, which must be aligned for doubles and live as long. */
void cm_fourier_init(struct cm_fourier *f, int64_t n, bool inverse, void *memory);
/* n complex numbers, real and imaginary part side by side, in place. Not divided by n. */
void cm_fourier_run(const struct cm_fourier *f, double *x);

#endif
