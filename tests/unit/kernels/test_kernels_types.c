/* Products and convolutions that compiled models call in types other than f32, against sums in
 * double precision. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "kernels/kernel_values.h"
#include "tensor/half.h"

#include <math.h>
#include <stdlib.h>

enum { TYPE_CASES = 150 };

static const float low = -1.5f, high = 2.5f;

/* A type of floats: its functions, how its elements are read and written, and how near a sum is. */
typedef void product_fn(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                        intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, float, float,
                        intptr_t, intptr_t);
typedef void conv_fn(intptr_t, intptr_t, intptr_t, CAMEO_CONV_SIZES, intptr_t, intptr_t, intptr_t,
                     float, float, intptr_t, intptr_t);

struct float_type {
    size_t bytes;
    product_fn *product;
    conv_fn *conv;
    double (*get)(const void *x, int64_t i);
    void (*set)(void *x, int64_t i, double value);
    double error;
};

static double get_f64(const void *x, int64_t i)
{
    return ((const double *)x)[i];
}

static void set_f64(void *x, int64_t i, double value)
{
    ((double *)x)[i] = value;
}

static double get_f16(const void *x, int64_t i)
{
    return (double)cm_half_to_float(((const uint16_t *)x)[i]);
}

static void set_f16(void *x, int64_t i, double value)
{
    ((uint16_t *)x)[i] = cm_half_from_float((float)value);
}

static double get_bf16(const void *x, int64_t i)
{
    return (double)cm_bfloat_to_float(((const uint16_t *)x)[i]);
}

static void set_bf16(void *x, int64_t i, double value)
{
    ((uint16_t *)x)[i] = cm_bfloat_from_float((float)value);
}

static const struct float_type float_types[] = {
    {8, cameo_product_f64, cameo_conv_f64, get_f64, set_f64, 1e-14},
    {2, cameo_product_f16, cameo_conv_f16, get_f16, set_f16, 1e-3},
    {2, cameo_product_bf16, cameo_conv_bf16, get_bf16, set_bf16, 8e-3},
};

static void *values(struct kernel_random *random, const struct float_type *type, int64_t count)
{
    void *x = malloc(count > 0 ? (size_t)count * type->bytes : 1);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        type->set(x, i, (double)kernel_pick(random, -1000, 1000) / 512);
    return x;
}

static void check_product(struct kernel_random *random, const struct float_type *type)
{
    const int64_t m = kernel_pick(random, 0, 30), n = kernel_pick(random, 0, 90);
    const int64_t k = kernel_pick(random, 0, 300);
    const bool turned = kernel_pick(random, 0, 1);
    const intptr_t activation = kernel_pick(random, 0, 2);
    void *a = values(random, type, m * k), *b = values(random, type, k * n);
    void *bias = kernel_pick(random, 0, 1) ? values(random, type, n) : NULL;
    void *residual = kernel_pick(random, 0, 1) ? values(random, type, m * n) : NULL;
    void *c = values(random, type, m * n);
    const int64_t bytes = kernel_pick(random, 0, 1) ? CAMEO_SCRATCH_BYTES : CAMEO_SCRATCH_LEAST;
    void *scratch = kernel_scratch(bytes);
    type->product((intptr_t)a, (intptr_t)b, (intptr_t)c, m, n, k, k, 1, turned ? 1 : n,
                  turned ? k : 1, (intptr_t)bias, (intptr_t)residual, activation, low, high,
                  (intptr_t)scratch, bytes);
    for (int64_t i = 0; i < m * n; i++) {
        double sum = bias ? type->get(bias, i % n) : 0, size = 0;
        sum += residual ? type->get(residual, i) : 0;
        for (int64_t l = 0; l < k; l++) {
            const int64_t at = turned ? i % n * k + l : l * n + i % n;
            const double term = type->get(a, i / n * k + l) * type->get(b, at);
            sum += term;
            size += fabs(term);
        }
        /* Rounded once: the error is that of the result, and little of the sum. */
        const double wanted = kernel_activate(sum, activation, low, high);
        CHECK(kernel_is_near(type->get(c, i), wanted, fabs(wanted) + size * 1e-4, type->error));
    }
    free(a);
    free(b);
    free(c);
    free(bias);
    free(residual);
    free(scratch);
}

/* What a convolution adds up. */
struct sums_of_type {
    const struct float_type *type;
    const void *x, *w;
    double *sums;
};

static void add(void *arg, int64_t x, int64_t w, int64_t y)
{
    const struct sums_of_type *s = arg;
    s->sums[y] += s->type->get(s->x, x) * s->type->get(s->w, w);
}

static int64_t count_x(const struct kernel_conv *v)
{
    return v->batch * v->in_channels * kernel_volume(v->in);
}

static int64_t count_y(const struct kernel_conv *v)
{
    return v->batch * v->out_channels * kernel_volume(v->out);
}

static int64_t count_w(const struct kernel_conv *v)
{
    return v->out_channels * (v->in_channels / v->groups) * kernel_volume(v->kernel);
}

static void check_conv(struct kernel_random *random, const struct float_type *type)
{
    const struct kernel_conv v = kernel_conv_pick(random);
    const int64_t count = count_y(&v);
    const intptr_t activation = kernel_pick(random, 0, 2);
    void *x = values(random, type, count_x(&v)), *w = values(random, type, count_w(&v));
    void *bias = kernel_pick(random, 0, 1) ? values(random, type, v.out_channels) : NULL;
    void *residual = kernel_pick(random, 0, 1) ? values(random, type, count) : NULL;
    void *y = values(random, type, count), *scratch = kernel_scratch(CAMEO_SCRATCH_LEAST);
    struct sums_of_type s = {type, x, w, calloc((size_t)count + 1, sizeof *s.sums)};
    assert_non_null(s.sums);
    type->conv((intptr_t)x, (intptr_t)w, (intptr_t)y, KERNEL_CONV_ARGUMENTS(&v), (intptr_t)bias,
               (intptr_t)residual, activation, low, high, (intptr_t)scratch, CAMEO_SCRATCH_LEAST);
    kernel_conv_walk(&v, add, &s);
    for (int64_t i = 0; i < count; i++) {
        const int64_t channel = i / kernel_volume(v.out) % v.out_channels;
        double sum = s.sums[i] + (bias ? type->get(bias, channel) : 0);
        sum += residual ? type->get(residual, i) : 0;
        const double wanted = kernel_activate(sum, activation, low, high);
        CHECK(kernel_is_near(type->get(y, i), wanted, fabs(wanted), type->error));
    }
    free(x);
    free(w);
    free(y);
    free(bias);
    free(residual);
    free(scratch);
    free(s.sums);
}

void test_kernels_types__products_of_f64_f16_and_bf16_agree_with_sums_in_double(void)
{
    struct kernel_random random = {1};
    for (int i = 0; i < TYPE_CASES; i++)
        check_product(&random, &float_types[i % 3]);
}

void test_kernels_types__convolutions_of_f64_f16_and_bf16_agree_with_sums_in_double(void)
{
    struct kernel_random random = {2};
    for (int i = 0; i < TYPE_CASES; i++)
        check_conv(&random, &float_types[i % 3]);
}

void test_kernels_types__every_half_is_read_and_written_as_the_library_does(void)
{
    enum { HALVES = 1 << 16 };
    uint16_t *x = malloc(HALVES * sizeof *x), *y = malloc(HALVES * sizeof *y);
    void *scratch = kernel_scratch(CAMEO_SCRATCH_LEAST);
    assert_non_null(x);
    assert_non_null(y);
    for (int type = 1; type < 3; type++) {
        uint16_t one;
        float_types[type].set(&one, 0, 1);
        for (int i = 0; i < HALVES; i++)
            x[i] = (uint16_t)i;
        float_types[type].product((intptr_t)&one, (intptr_t)x, (intptr_t)y, 1, HALVES, 1, 1, 1,
                                  HALVES, 1, 0, 0, 0, 0, 0, (intptr_t)scratch, CAMEO_SCRATCH_LEAST);
        for (int i = 0; i < HALVES; i++)
            CHECK(kernel_is_near(float_types[type].get(y, i), float_types[type].get(x, i), 0, 0));
        /* Halfway between two, and a little beside it. */
        for (int i = 0; i < HALVES; i++) {
            uint16_t third[2];
            float_types[type].set(third, 0, 1.0 / 3);
            float_types[type].product((intptr_t)third, (intptr_t)&x[i], (intptr_t)&y[i], 1, 1, 1, 1,
                                      1, 1, 1, 0, 0, 0, 0, 0, (intptr_t)scratch,
                                      CAMEO_SCRATCH_LEAST);
            const float wanted =
                (float)float_types[type].get(third, 0) * (float)float_types[type].get(x, i);
            uint16_t rounded;
            float_types[type].set(&rounded, 0, (double)wanted);
            CHECK(kernel_is_near(float_types[type].get(y, i), float_types[type].get(&rounded, 0), 0,
                                 0));
        }
    }
    free(x);
    free(y);
    free(scratch);
}

void test_kernels_types__gradients_of_f64_agree_with_those_of_f32(void)
{
    struct kernel_random random = {3};
    void *scratch = kernel_scratch(CAMEO_SCRATCH_LEAST);
    const intptr_t s = (intptr_t)scratch;
    for (int i = 0; i < TYPE_CASES; i++) {
        const struct kernel_conv v = kernel_conv_pick(&random);
        const int64_t counts[3] = {count_x(&v), count_w(&v), count_y(&v)};
        float *narrow[3];
        double *wide[3];
        for (int j = 0; j < 3; j++) {
            narrow[j] = kernel_floats(&random, counts[j]);
            wide[j] = kernel_doubles(&random, counts[j]);
            for (int64_t l = 0; l < counts[j]; l++)
                wide[j][l] = (double)narrow[j][l];
        }
        cameo_conv_input_f32((intptr_t)narrow[2], (intptr_t)narrow[1], (intptr_t)narrow[0],
                             KERNEL_CONV_ARGUMENTS(&v), 0, 0, 0, 0, 0, s, CAMEO_SCRATCH_LEAST);
        cameo_conv_input_f64((intptr_t)wide[2], (intptr_t)wide[1], (intptr_t)wide[0],
                             KERNEL_CONV_ARGUMENTS(&v), 0, 0, 0, 0, 0, s, CAMEO_SCRATCH_LEAST);
        for (int64_t l = 0; l < counts[0]; l++)
            CHECK(kernel_is_near((double)narrow[0][l], wide[0][l], 500, 1e-6));
        for (int64_t l = 0; l < counts[0]; l++)
            wide[0][l] = (double)(narrow[0][l] /= 256);
        cameo_conv_weights_f32((intptr_t)narrow[0], (intptr_t)narrow[2], (intptr_t)narrow[1],
                               KERNEL_CONV_ARGUMENTS(&v), s, CAMEO_SCRATCH_LEAST);
        cameo_conv_weights_f64((intptr_t)wide[0], (intptr_t)wide[2], (intptr_t)wide[1],
                               KERNEL_CONV_ARGUMENTS(&v), s, CAMEO_SCRATCH_LEAST);
        for (int64_t l = 0; l < counts[1]; l++)
            CHECK(kernel_is_near((double)narrow[1][l], wide[1][l], 500, 1e-6));
        for (int j = 0; j < 3; j++) {
            free(narrow[j]);
            free(wide[j]);
        }
    }
    free(scratch);
}

/* ---- integers ---- */

/* An operand of 8 bits: its elements and its zero points. */
struct codes {
    uint8_t *data, *zeros;
    bool is_signed;
    int64_t step; /* of zero points */
};

static struct codes codes_of(struct kernel_random *random, int64_t count, int64_t zeros)
{
    struct codes c = {.data = kernel_bytes(random, count), .is_signed = kernel_pick(random, 0, 1)};
    if (kernel_pick(random, 0, 2)) {
        c.step = zeros > 1 ? kernel_pick(random, 0, 1) : 0;
        c.zeros = kernel_bytes(random, c.step ? zeros : 1);
    }
    return c;
}

static int32_t number_of(const struct codes *c, uint8_t x)
{
    return c->is_signed && x > 127 ? (int32_t)x - 256 : (int32_t)x;
}

/* Element i, of row or column j. */
static int64_t code_at(const struct codes *c, int64_t i, int64_t j)
{
    return number_of(c, c->data[i]) - (c->zeros ? number_of(c, c->zeros[j * c->step]) : 0);
}

static void free_codes(struct codes *c)
{
    free(c->data);
    free(c->zeros);
}

void test_kernels_types__products_of_integers_are_exact(void)
{
    struct kernel_random random = {4};
    void *scratch = kernel_scratch(CAMEO_SCRATCH_LEAST);
    for (int i = 0; i < TYPE_CASES; i++) {
        const int64_t m = kernel_pick(&random, 0, 30), n = kernel_pick(&random, 0, 70);
        const int64_t k = kernel_pick(&random, 0, 200);
        const bool turned = kernel_pick(&random, 0, 1);
        struct codes a = codes_of(&random, m * k, m), b = codes_of(&random, k * n, n);
        int32_t *c = malloc((size_t)(m * n) * sizeof *c + 1);
        cameo_product_i8((intptr_t)a.data, (intptr_t)b.data, (intptr_t)c, m, n, k, k, 1,
                         turned ? 1 : n, turned ? k : 1, a.is_signed, b.is_signed,
                         (intptr_t)a.zeros, a.step, (intptr_t)b.zeros, b.step, (intptr_t)scratch,
                         CAMEO_SCRATCH_LEAST);
        for (int64_t e = 0; e < m * n; e++) {
            int64_t sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += code_at(&a, e / n * k + l, e / n) *
                       code_at(&b, turned ? e % n * k + l : l * n + e % n, e % n);
            CHECK_INT(c[e], sum);
        }
        free_codes(&a);
        free_codes(&b);
        free(c);
    }
    free(scratch);
}

struct integer_sums {
    const struct kernel_conv *v;
    const struct codes *x, *w;
    int64_t *sums;
};

static void add_codes(void *arg, int64_t x, int64_t w, int64_t y)
{
    const struct integer_sums *s = arg;
    const int64_t of_channel = count_w(s->v) / s->v->out_channels;
    s->sums[y] += code_at(s->x, x, 0) * code_at(s->w, w, w / of_channel);
}

void test_kernels_types__convolutions_of_integers_are_exact_and_pad_with_the_zero_point(void)
{
    struct kernel_random random = {5};
    void *scratch = kernel_scratch(CAMEO_SCRATCH_LEAST);
    for (int i = 0; i < TYPE_CASES; i++) {
        const struct kernel_conv v = kernel_conv_pick(&random);
        struct codes x = codes_of(&random, count_x(&v), 1);
        struct codes w = codes_of(&random, count_w(&v), v.out_channels);
        int32_t *y = malloc((size_t)count_y(&v) * sizeof *y + 1);
        struct integer_sums s = {&v, &x, &w, calloc((size_t)count_y(&v) + 1, sizeof *s.sums)};
        cameo_conv_i8((intptr_t)x.data, (intptr_t)w.data, (intptr_t)y, KERNEL_CONV_ARGUMENTS(&v),
                      x.is_signed, w.is_signed, (intptr_t)x.zeros, (intptr_t)w.zeros, w.step,
                      (intptr_t)scratch, CAMEO_SCRATCH_LEAST);
        kernel_conv_walk(&v, add_codes, &s);
        for (int64_t e = 0; e < count_y(&v); e++)
            CHECK_INT(y[e], s.sums[e]);
        free_codes(&x);
        free_codes(&w);
        free(y);
        free(s.sums);
    }
    free(scratch);
}
