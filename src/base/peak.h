/* What the processor can do at most, measured: what a share of the peak is a share of. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_PEAK_H
#define CM_BASE_PEAK_H

#include "base/compiler.h"

/* Multiplications and additions of floats in a second, each counted, by a team of so many threads
 * that the calling thread has entered: nothing but registers is touched. The best of several tries,
 * about a tenth of a second together. */
double cm_measure_peak(int threads);

#endif
