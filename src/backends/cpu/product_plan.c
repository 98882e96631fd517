/* From a MatMul or Gemm to products of packed matrices. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/product_plan.h"

#include "backends/onednn/dnnl_operand.h"
#include "base/number.h"
#include "base/parallel.h"

#include <stddef.h>

/* ---- the packed layout ---- */

static bool same_packing(const struct cm_layout *a, const struct cm_layout *b)
{
    const struct cm_packed_layout *x = (const struct cm_packed_layout *)a;
    const struct cm_packed_layout *y = (const struct cm_packed_layout *)b;
    return x->k == y->k && x->n == y->n && x->transposed == y->transposed;
}

static enum cm_status pack(const struct cm_tensor *from, struct cm_tensor *to, struct cm_error *err)
{
    const struct cm_packed_layout *layout = (const struct cm_packed_layout *)to->layout;
    if (from->layout || !layout)
        return cm_fail(err, CM_UNSUPPORTED, "only products read a matrix in layout 'panels'");
    cm_sgemm_pack(layout->k, layout->n, from->data, layout->transposed ? 1 : layout->n,
                  layout->transposed ? layout->k : 1, to->data);
    return CM_OK;
}

/* ---- reading a call ---- */

static bool is_float(struct cm_call *call, const struct cm_tensor *tensor)
{
    return tensor->type == CM_FLOAT ||
           cm_call_decline(call, "an operand is of type %s", cm_dtype_name(tensor->type));
}

/* Axis i from the end, after those of the matrix. */
static int64_t batch_dim(const struct cm_shape *shape, int matrix_axes, int i)
{
    const int axis = shape->rank - matrix_axes - 1 - i;
    return axis >= 0 ? shape->dims[axis] : 1;
}

static int64_t batches_of(const struct cm_shape *shape, int matrix_axes)
{
    int64_t count = 1;
    for (int i = 0; i + matrix_axes < shape->rank; i++)
        count *= batch_dim(shape, matrix_axes, i);
    return count;
}

/* A vector is a row on the left and a column on the right. */
static void read_matmul(struct cm_call *call, struct cm_product_plan *plan)
{
    const struct cm_shape *a = &call->in[plan->a]->shape, *b = &call->in[plan->b]->shape;
    const int of_a = a->rank > 1 ? 2 : 1, of_b = b->rank > 1 ? 2 : 1;
    const int64_t m = of_a == 2 ? a->dims[a->rank - 2] : 1;
    struct cm_sgemm *gemm = &plan->gemm;

    gemm->k = a->dims[a->rank - 1];
    gemm->n = of_b == 2 ? b->dims[b->rank - 1] : 1;
    gemm->a_row = gemm->k;
    gemm->a_column = 1;
    plan->b_row = gemm->n;
    plan->b_column = 1;
    plan->batches = 1;
    if (batches_of(b, of_b) == 1) { /* the batches of the left operand are more rows */
        gemm->m = m * batches_of(a, of_a);
        return;
    }
    gemm->m = m;
    int64_t a_stride = m * gemm->k, b_stride = gemm->k * gemm->n;
    const int a_axes = a->rank - of_a, b_axes = b->rank - of_b;
    plan->n_axes = a_axes > b_axes ? a_axes : b_axes;
    for (int i = 0; i < plan->n_axes; i++) { /* the last axis first */
        const int64_t in_a = batch_dim(a, of_a, i), in_b = batch_dim(b, of_b, i);
        plan->axes[i] = in_a == 1 ? in_b : in_a;
        plan->a_batch[i] = in_a == 1 ? 0 : a_stride;
        plan->b_batch[i] = in_b == 1 ? 0 : b_stride;
        plan->batches *= plan->axes[i];
        a_stride *= in_a;
        b_stride *= in_b;
    }
}

static bool read_gemm(struct cm_call *call, struct cm_product_plan *plan,
                      const struct cm_node *node, int c)
{
    const bool trans_a = cm_node_int(node, "transA") != 0;
    const bool trans_b = cm_node_int(node, "transB") != 0;
    const float beta = cm_node_float(node, "beta");
    const struct cm_shape *a = &call->in[plan->a]->shape, *y = &call->out[0]->shape;
    struct cm_sgemm *gemm = &plan->gemm;

    gemm->m = y->dims[0];
    gemm->n = y->dims[1];
    gemm->k = a->dims[trans_a ? 0 : 1];
    gemm->alpha = cm_node_float(node, "alpha");
    gemm->a_row = trans_a ? 1 : gemm->k;
    gemm->a_column = trans_a ? gemm->m : 1;
    plan->b_row = trans_b ? 1 : gemm->n;
    plan->b_column = trans_b ? gemm->k : 1;
    plan->batches = 1;
    if (c < 0 || beta == 0)
        return true;
    const struct cm_shape *added = &call->in[c]->shape;
    const bool whole = cm_shape_equal(added, y);
    if (beta != 1)
        return cm_call_decline(call, "beta is not 1");
    if (!is_float(call, call->in[c]))
        return false;
    if (!whole && (added->rank < 1 || added->dims[added->rank - 1] != gemm->n ||
                   cm_shape_elements(added) != gemm->n))
        return cm_call_decline(call, "C is neither a row nor as large as the result");
    plan->d = c;
    gemm->d_row = whole ? gemm->n : 0;
    return true;
}

enum {
    ROWS_FOR_PACKING = 160, /* rows of A from which packing B in each run pays */
    LEAST_SWAPPED = 12,     /* rows of A that fill a panel well enough .. */
    MOST_SWAPPED = 96,      /* .. and are less work to transpose than B is to pack .. */
    LEAST_SUM = 128,        /* .. beside a sum of so many */
};

/* Elements that are packed in each run, or transposed. */
static bool count_scratch(const struct cm_product_plan *plan, int64_t *packed, int64_t *all)
{
    const struct cm_sgemm *gemm = &plan->gemm;
    const int64_t columns = plan->swapped              ? gemm->m
                            : !plan->in_place          ? gemm->n
                            : gemm->n % CM_SGEMM_PANEL ? 1
                                                       : 0;
    const int64_t result = plan->swapped ? gemm->m * gemm->n : 0;
    int64_t floats;
    size_t bytes;
    return cm_sgemm_packed_floats(gemm->k, columns, packed) && cm_dim_add(*packed, result, all) &&
           cm_dim_mul(*all, CM_PRODUCT_PARTS, &floats) && cm_dtype_bytes(CM_FLOAT, floats, &bytes);
}

/* B is packed once where it is constant; read as it is where there are few rows for its packing,
 * or, if it lies transposed, as the left operand of the transposed product. */
static bool place_right_operand(struct cm_call *call, struct cm_product_plan *plan)
{
    const struct cm_sgemm *gemm = &plan->gemm;
    const bool few = gemm->m < ROWS_FOR_PACKING;
    plan->constant = plan->n_axes == 0 && cm_dnnl_is_constant(call, plan->b);
    plan->in_place = !plan->constant && few && plan->b_column == 1;
    if (!count_scratch(plan, &plan->packed_floats, &plan->part_floats))
        return cm_call_decline(call, "its operands are too large");
    if (plan->constant)
        plan->layout = (struct cm_packed_layout){
            .base = {"panels", (size_t)plan->packed_floats * sizeof(float), sizeof plan->layout,
                     same_packing, pack},
            .k = gemm->k,
            .n = gemm->n,
            .transposed = plan->b_column > 1};
    return true;
}

/* Nothing may be added or follow: the result's blocks are narrow then. */
void cm_product_plan_finish(struct cm_product_plan *plan)
{
    const int64_t m = plan->gemm.m;
    plan->swapped = !plan->constant && !plan->in_place && plan->d < 0 && !plan->n_followers &&
                    m >= LEAST_SWAPPED && m <= MOST_SWAPPED && plan->gemm.n >= m &&
                    plan->gemm.k >= LEAST_SUM;
    if (plan->swapped && !count_scratch(plan, &plan->packed_floats, &plan->part_floats))
        plan->swapped = false;
}

bool cm_product_suits(struct cm_call *call, const struct cm_product_plan *plan)
{
    const int64_t m = plan->gemm.m;
    if (plan->n_axes > 0)
        return cm_call_decline(call, "it has batches of right operands");
    if (m >= ROWS_FOR_PACKING)
        return cm_call_decline(call, "it has %d rows or more", ROWS_FOR_PACKING);
    if (!plan->constant && !plan->in_place && !plan->swapped)
        return cm_call_decline(call, "its right operand would have to be packed in each run");
    return true;
}

struct cm_product_plan *cm_product_plan_new(struct cm_call *call, const struct cm_node *node,
                                            const int *in)
{
    struct cm_product_plan *plan = cm_call_state(call, sizeof *plan);
    const bool is_gemm = cm_str_is(node->op_type, "Gemm");
    *plan = (struct cm_product_plan){.a = in[0], .b = in[1], .d = -1, .gemm.alpha = 1};
    if (!is_float(call, call->in[plan->a]) || !is_float(call, call->in[plan->b]))
        return NULL;
    if (!is_gemm)
        read_matmul(call, plan);
    else if (!read_gemm(call, plan, node, in[2]))
        return NULL;
    plan->gemm.c_row = plan->gemm.n;
    return place_right_operand(call, plan) ? plan : NULL;
}

/* ---- the kernel ---- */

/* Multiplications from which a single batch is worth the whole team. */
enum { WORTH_A_TEAM = 1 << 23 };

enum cm_status cm_product_prepare(struct cm_call *call)
{
    struct cm_product_plan *plan = call->state;
    const struct cm_sgemm *gemm = &plan->gemm;
    const double work = (double)gemm->m * (double)gemm->n * (double)gemm->k;
    const bool each = plan->batches < CM_PRODUCT_PARTS && work >= WORTH_A_TEAM;
    plan->parts = plan->batches < CM_PRODUCT_PARTS ? plan->batches : CM_PRODUCT_PARTS;
    if (each || plan->parts < 1)
        plan->parts = 1;
    if (plan->constant)
        cm_call_want_layout(call, plan->b, &plan->layout.base);
    else
        cm_call_scratch(call, (size_t)(plan->parts * plan->part_floats) * sizeof(float));
    return CM_OK;
}

/* A block of the transposed result: to its place. */
static void transpose_block(const void *arg, int64_t row, int64_t rows, int64_t column,
                            int64_t columns, float *c, int64_t c_row)
{
    const struct cm_product_finish *f = arg;
    float *to = (float *)f->call->out[0]->data + f->first + column * f->plan->gemm.n + row;
    for (int64_t j = 0; j < columns; j++, to += f->plan->gemm.n)
        for (int64_t i = 0; i < rows; i++)
            to[i] = c[i * c_row + j];
}

static void run_swapped(const struct cm_product_finish *finish, const float *a, const float *b,
                        float *scratch)
{
    const struct cm_product_plan *plan = finish->plan;
    const struct cm_sgemm *gemm = &plan->gemm;
    cm_sgemm_pack(gemm->k, gemm->m, a, gemm->a_column, gemm->a_row, scratch);
    cm_sgemm_run(&(struct cm_sgemm){.m = gemm->n,
                                    .n = gemm->m,
                                    .k = gemm->k,
                                    .alpha = gemm->alpha,
                                    .a = b,
                                    .a_row = plan->b_column,
                                    .a_column = plan->b_row,
                                    .b = scratch,
                                    .c = scratch + plan->packed_floats,
                                    .c_row = gemm->m,
                                    .finish = transpose_block,
                                    .finish_arg = finish});
}

/* One batch; scratch is where its right operand is packed. */
static void run_batch(struct cm_call *call, int64_t batch, float *scratch)
{
    const struct cm_product_plan *plan = call->state;
    const int64_t m = plan->gemm.m, n = plan->gemm.n, k = plan->gemm.k;
    const struct cm_product_finish finish = {plan, call, batch * m * n};
    struct cm_sgemm gemm = plan->gemm;
    const float *b = call->in[plan->b]->data;
    gemm.a = call->in[plan->a]->data;
    for (int64_t i = 0, left = batch; i < plan->n_axes; i++) {
        gemm.a += left % plan->axes[i] * plan->a_batch[i];
        b += left % plan->axes[i] * plan->b_batch[i];
        left /= plan->axes[i];
    }
    if (plan->swapped) {
        run_swapped(&finish, gemm.a, b, scratch);
        return;
    }
    gemm.b = b;
    if (plan->in_place) {
        const int64_t whole = n / CM_SGEMM_PANEL * CM_SGEMM_PANEL;
        gemm.b_row = plan->b_row;
        gemm.b_last = scratch;
        if (whole < n)
            cm_sgemm_pack_slice(k, n - whole, b + whole, plan->b_row, 1, scratch, 0, n - whole);
    } else if (!plan->constant) {
        cm_sgemm_pack(k, n, b, plan->b_row, plan->b_column, scratch);
        gemm.b = scratch;
    }
    gemm.c = (float *)call->out[0]->data + finish.first;
    if (plan->d >= 0)
        gemm.d = (const float *)call->in[plan->d]->data + (gemm.d_row ? finish.first : 0);
    if (plan->n_followers > plan->first_follower) {
        gemm.finish = cm_product_finish;
        gemm.finish_arg = &finish;
    }
    cm_sgemm_run(&gemm);
}

static void run_parts(void *arg, int64_t begin, int64_t end)
{
    struct cm_call *call = arg;
    const struct cm_product_plan *plan = call->state;
    for (int64_t part = begin; part < end; part++) {
        const int64_t last = plan->batches * (part + 1) / plan->parts;
        for (int64_t i = plan->batches * part / plan->parts; i < last; i++)
            run_batch(call, i, (float *)call->scratch + part * plan->part_floats);
    }
}

enum cm_status cm_product_run(struct cm_call *call)
{
    const struct cm_product_plan *plan = call->state;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    if (plan->parts == 1)
        run_parts(call, 0, 1);
    else
        cm_parallel(plan->parts, 1, run_parts, call);
    return CM_OK;
}

/* ---- products alone ---- */

static struct cm_product_plan *read_call(struct cm_call *call)
{
    int in[3];
    for (int i = 0; i < 3; i++)
        in[i] = i < call->n_in && call->in[i] ? i : -1;
    struct cm_product_plan *plan = cm_product_plan_new(call, call->node, in);
    if (plan)
        cm_product_plan_finish(plan);
    return plan;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_product_plan *plan = read_call(call);
    return plan && cm_product_suits(call, plan);
}

static bool accepts_rest(struct cm_call *call)
{
    return read_call(call) != NULL;
}

CM_KERNEL(cpu, MatMul, .accepts = accepts, .accepts_rest = accepts_rest,
          .prepare = cm_product_prepare, .run = cm_product_run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, Gemm, .accepts = accepts, .accepts_rest = accepts_rest,
          .prepare = cm_product_prepare, .run = cm_product_run, .layouts = CM_LAYOUT_CHOSEN);
