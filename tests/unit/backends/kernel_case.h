/* What tests of backends share: a graph computed by fast kernels, on each instruction set that the
 * machine has and with several threads, beside the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_KERNEL_CASE_H
#define CM_TESTS_KERNEL_CASE_H

#include "exec/exec_case.h"

struct kernel_case {
    const char *graph;   /* "g (float[2,3] x) => (y) { .. }": inputs get numbers in [-1, 1) */
    const char *kernels; /* of the last steps, in order: "onednn, cpu"; a reorder is one, too */
    double tolerance;    /* by the largest number of each result */
    double shift;        /* added to the numbers of input 0 */
    float odd;           /* unless 0: in place of a few numbers of input 0 */
    bool any_bits;       /* kernels of others may give other bits with another number of threads */
    bool passes;         /* the graph goes through the passes of a session first */
};

/* Results agree, and are the same bits for any number of threads. */
void check_kernels(struct cm_arena *arena, const struct kernel_case *c);

#endif
