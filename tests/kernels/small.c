/* A product, a convolution and a product of integers, each against plain loops; for processors that
 * are emulated. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

#include <stdio.h>

enum { M = 29, N = 53, K = 71, CHANNELS = 5, SIZE = 13, RESULTS = 14 };

static _Alignas(64) char scratch[CAMEO_SCRATCH_LEAST];
static float a[M * K], b[K * N], c[M * N];
static uint8_t codes_a[M * K], codes_b[K * N];
static int32_t sums[M * N];
static float x[CHANNELS * SIZE * SIZE], w[RESULTS * CHANNELS * 9], y[RESULTS * SIZE * SIZE];
static float packed[CAMEO_PANEL_COLUMNS * CHANNELS * 9];

/* Small integers: sums of their products are exact. */
static float number(int i)
{
    return (float)(i * 7 % 11 - 5);
}

static int product_is_right(void)
{
    cameo_product_f32((intptr_t)a, (intptr_t)b, (intptr_t)c, M, N, K, K, 1, N, 1, 0, 0, 0, 0, 0,
                      (intptr_t)scratch, sizeof scratch);
    cameo_product_i8((intptr_t)codes_a, (intptr_t)codes_b, (intptr_t)sums, M, N, K, K, 1, N, 1, 0,
                     1, 0, 0, 0, 0, (intptr_t)scratch, sizeof scratch);
    for (int i = 0; i < M * N; i++) {
        float sum = 0;
        int32_t integer = 0;
        for (int k = 0; k < K; k++) {
            sum += a[i / N * K + k] * b[k * N + i % N];
            integer += codes_a[i / N * K + k] * (int8_t)codes_b[k * N + i % N];
        }
        if (c[i] != sum || sums[i] != integer)
            return 0;
    }
    return 1;
}

typedef void conv_fn(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, intptr_t bias,
                     intptr_t residual, intptr_t activation, float low, float high,
                     intptr_t scratch, intptr_t scratch_bytes);

static int conv_is_right(conv_fn *conv, const float *weights)
{
    conv((intptr_t)x, (intptr_t)weights, (intptr_t)y, 1, 1, CHANNELS, RESULTS, 1, SIZE, SIZE, 1,
         SIZE, SIZE, 1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, CAMEO_RELU, 0, 0, (intptr_t)scratch,
         sizeof scratch);
    for (int i = 0; i < RESULTS * SIZE * SIZE; i++) {
        const int o = i / (SIZE * SIZE), row = i / SIZE % SIZE, column = i % SIZE;
        float sum = 0;
        for (int t = 0; t < CHANNELS * 9; t++) {
            const int v = row + t / 3 % 3 - 1, h = column + t % 3 - 1;
            if (v >= 0 && v < SIZE && h >= 0 && h < SIZE)
                sum += w[o * CHANNELS * 9 + t] * x[t / 9 * SIZE * SIZE + v * SIZE + h];
        }
        if (y[i] != (sum < 0 ? 0 : sum))
            return 0;
    }
    return 1;
}

int main(void)
{
    for (int i = 0; i < M * K; i++) {
        a[i] = number(i);
        codes_a[i] = (uint8_t)(i * 5);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = number(i + 3);
        codes_b[i] = (uint8_t)(i * 3);
    }
    for (int i = 0; i < (int)(sizeof x / sizeof *x); i++)
        x[i] = number(i + 1);
    for (int i = 0; i < (int)(sizeof w / sizeof *w); i++)
        w[i] = number(i + 2);
    cameo_pack_f32((intptr_t)w, (intptr_t)packed, 1, RESULTS, CHANNELS * 9, CHANNELS * 9, 1,
                   CAMEO_PANEL_COLUMNS);
    if (!product_is_right() || !conv_is_right(cameo_conv_f32, w) ||
        !conv_is_right(cameo_conv_direct_f32, packed)) {
        printf("a product or a convolution is wrong\n");
        return 1;
    }
    return 0;
}
