/* Packed matrix products against sums in double precision, on every instruction set of the machine.
 */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/sgemm.h"
#include "base/machine.h"
#include "base/parallel.h"
#include "check.h"
#include "tensor/tensor.h"

#include <math.h>
#include <stdlib.h>

struct sgemm_case {
    int64_t m, n, k;
    bool a_transposed, b_transposed, added, with_bias, with_finish; /* added goes before bias */
};

/* Memory of one case; `alone` is the result on one thread. */
struct operands {
    float *a, *b, *packed, *bias, *c, *alone, *before;
};

enum { GAP = 3 }; /* between rows of the result */

static float *floats(int64_t count)
{
    const size_t bytes = ((size_t)(count > 0 ? count : 1) * sizeof(float) + 63) / 64 * 64;
    float *memory = aligned_alloc(CM_TENSOR_ALIGNMENT, bytes);
    assert_non_null(memory);
    return memory;
}

static float *waves(int64_t count, double phase)
{
    float *x = floats(count);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)sin(0.37 * (double)(i % 4099) + phase);
    return x;
}

/* Twice the element plus its row, so that a block that is finished twice, or in another place,
 * shows. */
static void finish(const void *arg, int64_t row, int64_t rows, int64_t column, int64_t columns,
                   float *c, int64_t c_row)
{
    const struct sgemm_case *p = arg;
    CHECK(row >= 0 && row + rows <= p->m && column >= 0 && column + columns <= p->n);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * c_row + j] = 2 * c[i * c_row + j] + (float)(row + i);
}

static struct cm_sgemm product_of(const struct sgemm_case *p, const struct operands *o)
{
    return (struct cm_sgemm){.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .alpha = 0.5f,
                             .a = o->a,
                             .a_row = p->a_transposed ? 1 : p->k,
                             .a_column = p->a_transposed ? p->m : 1,
                             .b = o->packed,
                             .c = o->c,
                             .c_row = p->n + GAP,
                             .d = p->added       ? o->c
                                  : p->with_bias ? o->bias
                                                 : NULL,
                             .d_row = p->added ? p->n + GAP : 0,
                             .finish = p->with_finish ? finish : NULL,
                             .finish_arg = p};
}

static void compare(const struct sgemm_case *p, const struct operands *o)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n + GAP; j++) {
            const int64_t at = i * (p->n + GAP) + j;
            double sum = 0, size = 0;
            for (int64_t l = 0; l < p->k && j < p->n; l++) {
                const double term = (double)o->a[p->a_transposed ? l * p->m + i : i * p->k + l] *
                                    (double)o->b[p->b_transposed ? j * p->k + l : l * p->n + j];
                sum += term;
                size += fabs(term);
            }
            sum = 0.5 * sum + (p->added ? (double)o->before[at] : 0) +
                  (p->with_bias && !p->added && j < p->n ? (double)o->bias[j] : 0);
            if (p->with_finish)
                sum = 2 * sum + (double)i;
            if (j >= p->n)
                sum = (double)o->before[at]; /* nothing is written there */
            if (!(fabs((double)o->c[at] - sum) <= 1e-6 * (size + fabs(sum) + 1)))
                fail_msg("(%lld, %lld) of %lld x %lld x %lld is %.9g, expected %.9g", (long long)i,
                         (long long)j, (long long)p->m, (long long)p->n, (long long)p->k,
                         (double)o->c[at], sum);
        }
}

static void run_with(int threads, const struct sgemm_case *p, struct operands *o)
{
    struct cm_team *team = cm_team_new(threads), *before = cm_team_enter(team);
    const struct cm_sgemm product = product_of(p, o);
    const size_t bytes = (size_t)(p->m * (p->n + GAP)) * sizeof(float);
    memcpy(o->c, o->before, bytes);
    cm_sgemm_pack(p->k, p->n, o->b, p->b_transposed ? 1 : p->n, p->b_transposed ? p->k : 1,
                  o->packed);
    cm_sgemm_run(&product);
    cm_team_enter(before);
    cm_team_free(team);
}

/* Blocks of rows and columns, some of them lower than a tile. */
static void run_blocks(const struct sgemm_case *p, int64_t rows, struct operands *o)
{
    const struct cm_sgemm product = product_of(p, o);
    const int64_t columns = 3 * (int64_t)CM_SGEMM_PANEL;
    memcpy(o->c, o->before, (size_t)(p->m * (p->n + GAP)) * sizeof(float));
    for (int64_t i = 0; i < p->m; i += rows)
        for (int64_t j = 0; j < p->n; j += columns)
            cm_sgemm_block(&product, i, i + rows < p->m ? i + rows : p->m, j,
                           j + columns < p->n ? j + columns : p->n);
}

static void check_case(const struct sgemm_case *p)
{
    const int64_t of_c = p->m * (p->n + GAP);
    int64_t packed;
    CHECK(cm_sgemm_packed_floats(p->k, p->n, &packed));
    struct operands o = {waves(p->m * p->k, 0.1),
                         waves(p->k * p->n, 0.2),
                         floats(packed),
                         waves(p->n, 0.3),
                         floats(of_c),
                         floats(of_c),
                         waves(of_c, 0.4)};
    run_with(1, p, &o);
    compare(p, &o);
    memcpy(o.alone, o.c, (size_t)of_c * sizeof(float));
    run_with(3, p, &o);
    CHECK(memcmp(o.alone, o.c, (size_t)of_c * sizeof(float)) == 0);

    const struct cm_sgemm product = product_of(p, &o);
    memcpy(o.c, o.before, (size_t)of_c * sizeof(float));
    for (int64_t j = 0; j < p->n; j += 2 * CM_SGEMM_PANEL)
        cm_sgemm_slice(&product, j, j + 2 * CM_SGEMM_PANEL < p->n ? j + 2 * CM_SGEMM_PANEL : p->n);
    CHECK(memcmp(o.alone, o.c, (size_t)of_c * sizeof(float)) == 0);
    for (int64_t rows = 5; rows <= 24; rows += 19) {
        run_blocks(p, rows, &o);
        CHECK(memcmp(o.alone, o.c, (size_t)of_c * sizeof(float)) == 0);
    }
    free(o.a);
    free(o.b);
    free(o.packed);
    free(o.bias);
    free(o.c);
    free(o.alone);
    free(o.before);
}

/* Heights and widths of tiles and their neighbours; sums of one part and of several. */
static void check_sizes(void)
{
    static const int64_t rows[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 25, 100};
    static const int64_t columns[] = {1, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 259};
    static const int64_t sums[] = {0, 1, 2, 31, 400};
    for (size_t i = 0; i < CM_COUNT(rows); i++)
        for (size_t j = 0; j < CM_COUNT(columns); j++)
            for (size_t l = 0; l < CM_COUNT(sums); l++) {
                const size_t kind = i + 3 * j + 5 * l;
                check_case(&(struct sgemm_case){rows[i], columns[j], sums[l], kind & 1, kind & 2,
                                                kind & 4, kind & 8, kind & 16});
            }
    check_case(&(struct sgemm_case){1, 40, 5000, false, true, false, true, true});
    check_case(&(struct sgemm_case){3, 17, 2500, true, false, true, true, false});
    check_case(&(struct sgemm_case){0, 0, 3, false, false, false, false, true});
    check_case(&(struct sgemm_case){130, 300, 70, true, true, true, true, true});
    check_case(&(struct sgemm_case){130, 300, 70, false, false, false, false, false});
}

void test_sgemm__sizes_strides_and_threads_on_every_instruction_set(void)
{
    const enum cm_machine best = cm_this_machine();
    for (int machine = CM_PLAIN; machine <= (int)best; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        check_sizes();
    }
    cm_machine_limit(CM_MACHINES - 1);
}

void test_sgemm__refuses_sizes_that_overflow(void)
{
    int64_t floats;
    CHECK(!cm_sgemm_packed_floats(INT64_MAX / 16, 64, &floats));
    CHECK(!cm_sgemm_packed_floats(2, INT64_MAX - 3, &floats));
    CHECK(cm_sgemm_packed_floats(5, 17, &floats) && floats == 5 * 32);
}

/* 0 times infinity is NaN, and a NaN in one row or column stays there. */
void test_sgemm__nan_stays_in_its_row_and_column(void)
{
    float a[3 * 5], b[5 * 20], c[3 * 20], *packed = floats(5 * 32);
    for (int i = 0; i < 15; i++)
        a[i] = 1;
    for (int i = 0; i < 100; i++)
        b[i] = 1;
    a[1 * 5 + 2] = NAN;
    b[3 * 20 + 18] = INFINITY;
    a[2 * 5 + 3] = 0;
    cm_sgemm_pack(5, 20, b, 20, 1, packed);
    cm_sgemm_run(&(struct cm_sgemm){.m = 3,
                                    .n = 20,
                                    .k = 5,
                                    .alpha = 1,
                                    .a = a,
                                    .a_row = 5,
                                    .a_column = 1,
                                    .b = packed,
                                    .c = c,
                                    .c_row = 20});
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 20; j++) {
            const float x = c[i * 20 + j];
            if (i == 1 || (i == 2 && j == 18))
                CHECK(isnan(x));
            else
                CHECK(x == (j == 18 ? INFINITY : i == 2 ? 4.0f : 5.0f));
        }
    free(packed);
}
