/* Products and convolutions of 8-bit integers with zero points, added up in 32 bits. Sums are
 * unsigned: they wrap around. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "kernels/target.h"

#define NAME(x)        x##_i8
#define REAL           uint32_t
#define REAL_MASK      int32_t
#define STORED         uint8_t
#define STORED_IS_REAL 0
#define KERNEL_CLIPS   0

/* An element is (x ^ flip) - flip, which extends the sign where flip is 0x80, less the zero point
 * of its row or column. */
struct operand_i8 {
    uint32_t flip;
    const uint8_t *zeros; /* NULL: none */
    intptr_t zero_step;   /* 0: one for all */
};

typedef uint8_t bytes_i8 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t words_i8 __attribute__((vector_size(64), aligned(4), may_alias));

KERNEL_INLINE uint32_t number_i8(uint8_t x, const struct operand_i8 *operand)
{
    return (x ^ operand->flip) - operand->flip;
}

KERNEL_INLINE uint32_t load_i8(uint8_t x, const struct operand_i8 *operand, intptr_t i)
{
    const uint32_t number = number_i8(x, operand);
    if (!operand->zeros)
        return number;
    return number - number_i8(operand->zeros[i * operand->zero_step], operand);
}

KERNEL_INLINE words_i8 load_panel_i8(const uint8_t *x, const struct operand_i8 *operand, intptr_t i)
{
    const words_i8 flip = (words_i8){0} + operand->flip;
    const words_i8 numbers =
        (__builtin_convertvector(*(const bytes_i8 *)x, words_i8) ^ flip) - flip;
    if (!operand->zeros)
        return numbers;
    if (operand->zero_step == 0)
        return numbers - number_i8(*operand->zeros, operand);
    words_i8 zeros = {0};
    for (int l = 0; l < CAMEO_PANEL_COLUMNS; l++)
        zeros[l] = number_i8(operand->zeros[(i + l) * operand->zero_step], operand);
    return numbers - zeros;
}

#define LOAD(x, operand, i)       load_i8(x, operand, i)
#define LOAD_PANEL(p, operand, i) load_panel_i8(p, operand, i)

#include "kernels/tiles.inc"

#include "kernels/blocks.inc"

#include "kernels/patches.inc"

#include "kernels/conv.inc"

KERNEL_INLINE struct operand_i8 operand_of(intptr_t is_signed, intptr_t zero, intptr_t zero_step)
{
    return (struct operand_i8){is_signed ? 0x80u : 0, (const uint8_t *)zero, zero_step};
}

void cameo_product_i8(intptr_t a, intptr_t b, intptr_t c, CAMEO_PRODUCT_SIZES, intptr_t a_signed,
                      intptr_t b_signed, intptr_t a_zero, intptr_t a_zero_step, intptr_t b_zero,
                      intptr_t b_zero_step, intptr_t scratch, intptr_t scratch_bytes)
{
    const struct sums_i8 s = {.m = m,
                              .channels = k,
                              .count = {1, 1, 1},
                              .taps = 1,
                              .a = {.data = (const uint8_t *)a,
                                    .operand = operand_of(a_signed, a_zero, a_zero_step),
                                    .row = a_row,
                                    .channel = a_column},
                              .b = {.data = (const uint8_t *)b,
                                    .operand = operand_of(b_signed, b_zero, b_zero_step),
                                    .row = b_row,
                                    .column = b_column},
                              .c = (uint32_t *)c,
                              .c_row = n,
                              .scratch = (uint32_t *)scratch,
                              .scratch_count = scratch_bytes / (intptr_t)sizeof(uint32_t)};
    sum_columns_i8(&s, 0, n);
}

void cameo_conv_i8(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, intptr_t x_signed,
                   intptr_t w_signed, intptr_t x_zero, intptr_t w_zero, intptr_t w_zero_step,
                   intptr_t scratch, intptr_t scratch_bytes)
{
    const struct conv_i8 v = CONV_OF_ARGUMENTS;
    const intptr_t places = volume_i8(v.out);
    for (intptr_t i = 0; groups > 0 && i < batch * groups; i++) {
        struct patches_i8 p = {.operand = operand_of(x_signed, x_zero, 0)};
        struct sums_i8 s = {.c_row = places,
                            .scratch = (uint32_t *)scratch,
                            .scratch_count = scratch_bytes / (intptr_t)sizeof(uint32_t)};
        conv_sums_i8(&v, (const uint8_t *)x, (const uint8_t *)w, i / groups, i % groups, &p, &s);
        s.a.operand = operand_of(w_signed, w_zero, w_zero_step);
        if (w_zero)
            s.a.operand.zeros += i % groups * s.m * w_zero_step;
        s.c = (uint32_t *)y + i * s.m * places;
        sum_columns_i8(&s, 0, places);
    }
}
