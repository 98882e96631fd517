/* Operands and judgement for tests of the kernels of compiled models. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_UNIT_MLIR_KERNEL_VALUES_H
#define CM_TESTS_UNIT_MLIR_KERNEL_VALUES_H

#include "kernels/kernels.h"

#include <stdbool.h>

/* Numbers that look random and are the same each time. */
struct kernel_random {
    uint64_t state;
};
int64_t kernel_pick(struct kernel_random *random, int64_t least, int64_t most);

/* Memory of exactly so many elements, at least one byte of it, from malloc: a sanitizer sees every
 * access outside of it. */
float *kernel_floats(struct kernel_random *random, int64_t count);
double *kernel_doubles(struct kernel_random *random, int64_t count);
uint8_t *kernel_bytes(struct kernel_random *random, int64_t count);

/* Aligned to 64 bytes, filled with NaN, so that what is read before it is written shows. */
void *kernel_scratch(int64_t bytes);

/* As an epilogue has it. */
double kernel_activate(double x, intptr_t activation, float low, float high);

/* Whether two results of a sum of which the absolute terms add up to `size` are the same but for
 * rounding: both NaN, the same infinity, or within `error` of size. */
bool kernel_is_near(double got, double wanted, double size, double error);

/* Sizes of a convolution in three axes. */
struct kernel_conv {
    intptr_t batch, groups, in_channels, out_channels;
    intptr_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
};
#define KERNEL_CONV_ARGUMENTS(v)                                                                   \
    (v)->batch, (v)->groups, (v)->in_channels, (v)->out_channels, (v)->in[0], (v)->in[1],          \
        (v)->in[2], (v)->out[0], (v)->out[1], (v)->out[2], (v)->kernel[0], (v)->kernel[1],         \
        (v)->kernel[2], (v)->stride[0], (v)->stride[1], (v)->stride[2], (v)->dilation[0],          \
        (v)->dilation[1], (v)->dilation[2], (v)->pad[0], (v)->pad[1], (v)->pad[2]

int64_t kernel_volume(const intptr_t *sizes);

/* Calls visit for every product of an element of x with one of w and the element of y that it is
 * added to, all by their places in memory. */
typedef void kernel_visit_fn(void *arg, int64_t x, int64_t w, int64_t y);
void kernel_conv_walk(const struct kernel_conv *v, kernel_visit_fn *visit, void *arg);

/* A convolution of sizes that are few, with all that the header allows. */
struct kernel_conv kernel_conv_pick(struct kernel_random *random);

#endif
