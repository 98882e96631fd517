/* A data set that needs no download: digits as a hand draws them, made from a seed. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_DEMO_DIGITS_H
#define CLI_DEMO_DIGITS_H

#include "cameo.h"

#include <stdio.h>

enum { DEMO_SIDE = 16, DEMO_PIXELS = DEMO_SIDE * DEMO_SIDE };

/* images: float [count, 1, 16, 16], 0 is paper and 1 ink; labels: int64 [count]. */
struct demo_digits {
    struct cameo_value *images, *labels;
};

/* Every digit comes equally often, in random order. Different seeds give different sets. */
enum cameo_status demo_digits_make(struct demo_digits *digits, int64_t count, uint64_t seed,
                                   struct cameo_error *err);
void demo_digits_free(struct demo_digits *digits);
/* As arrays under these names, into a file whose ending says the format (.npz, .safetensors). */
enum cameo_status demo_digits_save(const struct demo_digits *digits, const char *path,
                                   const char *images, const char *labels, struct cameo_error *err);

/* One image in a terminal, lines indented by this many blanks; blocks where Unicode is there. */
void demo_digit_print(FILE *to, const float *image, int indent, bool unicode);
/* Several next to each other. */
void demo_digits_print(FILE *to, const float *const *images, int count, int indent, bool unicode);

#endif
