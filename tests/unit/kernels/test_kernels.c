/* Products that compiled models call, against sums in double precision. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "kernels/kernel_values.h"

#include <math.h>
#include <stdlib.h>

struct product_case {
    int64_t m, n, k;
    bool a_transposed, b_transposed, has_bias, has_residual, packed;
    intptr_t activation;
    int64_t scratch_bytes;
};

static const float low = -1.5f, high = 2.5f;

/* Judges c, of which elements are sums of k products of elements near 1. */
static bool is_product(const struct product_case *p, const float *a, const float *b, const float *c,
                       const float *bias, const float *residual)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < p->k; l++) {
                const double x = (double)a[p->a_transposed ? l * p->m + i : i * p->k + l];
                const double y = (double)b[p->b_transposed ? j * p->k + l : l * p->n + j];
                sum += x * y;
                size += fabs(x * y);
            }
            sum += bias ? (double)bias[j] : 0;
            sum += residual ? (double)residual[i * p->n + j] : 0;
            const double wanted = kernel_activate(sum, p->activation, low, high);
            if (!kernel_is_near((double)c[i * p->n + j], wanted, size, 1e-6)) {
                print_error("%lld x %lld x %lld: element (%lld, %lld) is %g, expected %g\n",
                            (long long)p->m, (long long)p->n, (long long)p->k, (long long)i,
                            (long long)j, (double)c[i * p->n + j], wanted);
                return false;
            }
        }
    return true;
}

static void run_product(const struct product_case *p, const float *a, const float *b, float *c,
                        const float *bias, const float *residual)
{
    const intptr_t a_row = p->a_transposed ? 1 : p->k, a_column = p->a_transposed ? p->m : 1;
    const intptr_t b_row = p->b_transposed ? 1 : p->n, b_column = p->b_transposed ? p->k : 1;
    void *scratch = kernel_scratch(p->scratch_bytes);
    if (p->packed) {
        const int64_t columns = (p->n + CAMEO_PANEL_COLUMNS - 1) / CAMEO_PANEL_COLUMNS;
        struct kernel_random none = {0};
        float *packed = kernel_floats(&none, p->k * columns * CAMEO_PANEL_COLUMNS);
        cameo_pack_f32((intptr_t)b, (intptr_t)packed, 1, p->n, p->k, b_column, b_row,
                       CAMEO_PANEL_COLUMNS);
        cameo_product_packed_f32((intptr_t)a, (intptr_t)packed, (intptr_t)c, p->m, p->n, p->k,
                                 a_row, a_column, (intptr_t)bias, (intptr_t)residual, p->activation,
                                 low, high, (intptr_t)scratch, p->scratch_bytes);
        free(packed);
    } else {
        cameo_product_f32((intptr_t)a, (intptr_t)b, (intptr_t)c, p->m, p->n, p->k, a_row, a_column,
                          b_row, b_column, (intptr_t)bias, (intptr_t)residual, p->activation, low,
                          high, (intptr_t)scratch, p->scratch_bytes);
    }
    free(scratch);
}

static void check_product(struct kernel_random *random, const struct product_case *p, float poison)
{
    float *a = kernel_floats(random, p->m * p->k), *b = kernel_floats(random, p->k * p->n);
    float *c = kernel_floats(random, p->m * p->n);
    float *bias = p->has_bias ? kernel_floats(random, p->n) : NULL;
    float *residual = p->has_residual ? kernel_floats(random, p->m * p->n) : NULL;
    if (poison != 0) {
        a[kernel_pick(random, 0, p->m * p->k - 1)] = poison;
        b[kernel_pick(random, 0, p->k * p->n - 1)] = poison;
    }
    run_product(p, a, b, c, bias, residual);
    CHECK(is_product(p, a, b, c, bias, residual));
    free(a);
    free(b);
    free(c);
    free(bias);
    free(residual);
}

static struct product_case pick_case(struct kernel_random *random)
{
    return (struct product_case){.a_transposed = kernel_pick(random, 0, 2) == 0,
                                 .b_transposed = kernel_pick(random, 0, 2) == 0,
                                 .has_bias = kernel_pick(random, 0, 1),
                                 .has_residual = kernel_pick(random, 0, 1),
                                 .packed = kernel_pick(random, 0, 1),
                                 .activation = kernel_pick(random, 0, 2),
                                 .scratch_bytes = kernel_pick(random, 0, 1) ? CAMEO_SCRATCH_BYTES
                                                                            : CAMEO_SCRATCH_LEAST};
}

void test_kernels__products_of_any_shape_agree_with_sums_in_double(void)
{
    struct kernel_random random = {1};
    for (int i = 0; i < 600; i++) {
        struct product_case p = pick_case(&random);
        p.m = kernel_pick(&random, 1, 30);
        p.n = kernel_pick(&random, 1, i % 10 ? 70 : 700);
        p.k = kernel_pick(&random, 1, i % 9 ? 50 : 600);
        check_product(&random, &p, 0);
    }
}

void test_kernels__products_with_a_size_of_zero_are_bias_and_residual(void)
{
    struct kernel_random random = {2};
    for (int i = 0; i < 60; i++) {
        struct product_case p = pick_case(&random);
        p.m = i % 3 == 0 ? 0 : 5;
        p.n = i % 3 == 1 ? 0 : 21;
        p.k = i % 3 == 2 ? 0 : 7;
        check_product(&random, &p, 0);
    }
}

void test_kernels__products_pass_nan_and_infinity_on_and_no_further(void)
{
    struct kernel_random random = {3};
    for (int i = 0; i < 120; i++) {
        struct product_case p = pick_case(&random);
        p.m = kernel_pick(&random, 1, 14);
        p.n = kernel_pick(&random, 1, 40);
        p.k = kernel_pick(&random, 1, 20);
        check_product(&random, &p, i % 2 ? NAN : INFINITY);
    }
}

void test_kernels__strides_of_zero_repeat_an_operand(void)
{
    struct kernel_random random = {4};
    enum { M = 13, N = 37, K = 9 };
    float *a = kernel_floats(&random, K), *b = kernel_floats(&random, N), c[M * N];
    void *scratch = kernel_scratch(CAMEO_SCRATCH_LEAST);
    cameo_product_f32((intptr_t)a, (intptr_t)b, (intptr_t)c, M, N, K, 0, 1, 0, 1, 0, 0, 0, 0, 0,
                      (intptr_t)scratch, CAMEO_SCRATCH_LEAST);
    double sum = 0;
    for (int l = 0; l < K; l++)
        sum += (double)a[l];
    for (int i = 0; i < M * N; i++)
        CHECK(kernel_is_near((double)c[i], sum * (double)b[i % N], 20, 1e-6));
    free(a);
    free(b);
    free(scratch);
}
