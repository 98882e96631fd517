/* From a MatMul or Gemm to products of packed matrices. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/product_plan.h"

#include "backends/product_body.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

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

/* Rows of a transposed matrix are columns of B. */
static void pack_rows(const struct cm_tensor *from, struct cm_tensor *to, int64_t begin,
                      int64_t end)
{
    const struct cm_packed_layout *layout = (const struct cm_packed_layout *)to->layout;
    const cm_loose_float *b = from->data;
    float *packed = to->data;
    if (layout->transposed)
        cm_sgemm_pack(layout->k, end - begin, b + begin * layout->k, 1, layout->k,
                      packed + begin * layout->k);
    else
        cm_sgemm_pack_rows(layout->k, layout->n, b, layout->n, 1, packed, begin, end);
}

/* ---- reading a call ---- */

static bool is_float(struct cm_call *call, const struct cm_tensor *tensor)
{
    return tensor->type == CM_FLOAT || cm_call_decline_type(call, tensor);
}

/* Axis i from the end, after those of the matrix. */
static int64_t batch_dim(const struct cm_shape *shape, int matrix_axes, int i)
{
    const int axis = shape->rank - matrix_axes - 1 - i;
    return axis >= 0 ? shape->dims[axis] : 1;
}

/* A vector is a row on the left and a column on the right; a matrix on the right may lie turned. */
static void read_matmul(struct cm_call *call, struct cm_product_plan *plan)
{
    const bool turned = call->node->n_bodies > 0 && cm_body_turns(call->node->bodies[0].graph);
    const struct cm_shape *a = &call->in[plan->a]->shape, *b = &call->in[plan->b]->shape;
    const int of_a = a->rank > 1 ? 2 : 1, of_b = b->rank > 1 ? 2 : 1;
    const int64_t m = of_a == 2 ? a->dims[a->rank - 2] : 1;
    struct cm_sgemm *gemm = &plan->gemm;

    gemm->k = a->dims[a->rank - 1];
    gemm->n = of_b == 2 ? b->dims[b->rank - (turned ? 2 : 1)] : 1;
    gemm->a_row = gemm->k;
    gemm->a_column = 1;
    plan->b_row = turned ? 1 : gemm->n;
    plan->b_column = turned ? gemm->k : 1;
    plan->batches = 1;
    if (cm_shape_span(b, 0, b->rank - of_b) ==
        1) { /* the batches of the left operand are more rows */
        gemm->m = m * cm_shape_span(a, 0, a->rank - of_a);
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

/* Places are rows, channels columns. */
static void read_conv(struct cm_call *call, struct cm_product_plan *plan, int bias)
{
    const struct cm_shape *y = &call->out[0]->shape;
    struct cm_sgemm *gemm = &plan->gemm;

    gemm->m = y->dims[0] * cm_shape_span(y, 2, y->rank);
    gemm->n = y->dims[1];
    gemm->k = call->in[plan->a]->shape.dims[1];
    gemm->a_row = gemm->k;
    gemm->a_column = 1;
    plan->b_row = 1;
    plan->b_column = gemm->k;
    plan->batches = 1;
    plan->column_axis = 1;
    plan->d = bias;
}

enum {
    ROWS_FOR_PACKING = 160, /* rows of A from which packing B in each run pays */
    LEAST_SWAPPED = 12,     /* rows of A that fill a panel well enough .. */
    MOST_SWAPPED = 96,      /* .. and are less work to transpose than B is to pack .. */
    LEAST_SUM = 128,        /* .. beside a sum of so many */
    FEW_ROWS = 8,           /* rows of A for which reading B is most of the work */
};

/* Floats that are packed in each run. */
static bool count_packed(struct cm_product_plan *plan)
{
    const struct cm_sgemm *gemm = &plan->gemm;
    const int64_t columns = plan->swapped              ? gemm->m
                            : !plan->in_place          ? gemm->n
                            : gemm->n % CM_SGEMM_PANEL ? 1
                                                       : 0;
    int64_t floats;
    size_t bytes;
    return cm_sgemm_packed_floats(gemm->k, columns, &plan->part_floats) &&
           cm_dim_mul(plan->part_floats, CM_PRODUCT_PARTS, &floats) &&
           cm_dtype_bytes(CM_FLOAT, floats, &bytes);
}

/* B is packed once where it is constant; read as it is where there are few rows for its packing;
 * or, if it lies transposed, read as the left operand of the transposed product. */
static bool place_right_operand(struct cm_call *call, struct cm_product_plan *plan)
{
    const struct cm_sgemm *gemm = &plan->gemm;
    const bool plain = plan->b_column == 1;
    plan->constant = plan->n_axes == 0 && cm_call_is_constant(call, plan->b);
    plan->can_wait = plan->constant && (gemm->m == 1 || (plain && gemm->m < ROWS_FOR_PACKING));
    plan->in_place = !plan->constant && plain && gemm->m < ROWS_FOR_PACKING;
    plan->swapped = !plan->constant && !plain && gemm->m >= LEAST_SWAPPED &&
                    gemm->m <= MOST_SWAPPED && gemm->n >= gemm->m && gemm->k >= LEAST_SUM;
    if (!count_packed(plan))
        return cm_call_decline(call, "the operands are too large");
    const bool has_rows = call->in[plan->b]->shape.dims[0] == (plain ? gemm->k : gemm->n);
    if (plan->constant)
        plan->layout =
            (struct cm_packed_layout){.base = {.name = "panels",
                                               .bytes = (size_t)plan->part_floats * sizeof(float),
                                               .size = sizeof plan->layout,
                                               .same = same_packing,
                                               .reorder = pack,
                                               .reorder_rows = has_rows ? pack_rows : NULL,
                                               .reads_unaligned = true,
                                               .can_wait = plan->can_wait,
                                               .is_streamed = gemm->m <= FEW_ROWS},
                                      .k = gemm->k,
                                      .n = gemm->n,
                                      .transposed = !plain};
    return true;
}

bool cm_product_plan_suits(struct cm_call *call, const struct cm_product_plan *plan)
{
    const int64_t m = plan->gemm.m;
    if (plan->n_axes > 0)
        return cm_call_decline(call, "the right operand has batches");
    if (m >= ROWS_FOR_PACKING)
        return cm_call_decline(call, "the left operand has %d rows or more", ROWS_FOR_PACKING);
    if (!plan->constant && !plan->in_place && !plan->swapped)
        return cm_call_decline(call, "the right operand would have to be packed in each run");
    return true;
}

struct cm_product_plan *cm_product_plan_new(struct cm_call *call, const struct cm_node *node,
                                            const int *in)
{
    struct cm_product_plan *plan = cm_call_state(call, sizeof *plan);
    *plan = (struct cm_product_plan){.a = in[0],
                                     .b = in[1],
                                     .d = -1,
                                     .gemm.alpha = 1,
                                     .column_axis = call->out[0]->shape.rank - 1};
    if (!is_float(call, call->in[plan->a]) || !is_float(call, call->in[plan->b]))
        return NULL;
    if (cm_str_is(node->op_type, "MatMul"))
        read_matmul(call, plan);
    else if (cm_str_is(node->op_type, "Conv"))
        read_conv(call, plan, in[2]);
    else if (!read_gemm(call, plan, node, in[2]))
        return NULL;
    plan->gemm.c_row = plan->gemm.n;
    return place_right_operand(call, plan) ? plan : NULL;
}

/* ---- the kernel ---- */

/* Multiplications from which a single batch is worth the whole team. */
enum { WORTH_A_TEAM = 1 << 23 };

size_t cm_product_plan_scratch(struct cm_product_plan *plan)
{
    const struct cm_sgemm *gemm = &plan->gemm;
    const double work = (double)gemm->m * (double)gemm->n * (double)gemm->k;
    const bool each = plan->batches < CM_PRODUCT_PARTS && work >= WORTH_A_TEAM;
    plan->parts = plan->batches < CM_PRODUCT_PARTS ? plan->batches : CM_PRODUCT_PARTS;
    if (each || plan->parts < 1)
        plan->parts = 1;
    if (!plan->constant)
        return (size_t)(plan->parts * plan->part_floats) * sizeof(float);
    return plan->can_wait && gemm->n % CM_SGEMM_PANEL /* the last panel */
               ? (size_t)gemm->k * CM_SGEMM_PANEL * sizeof(float)
               : 0;
}

enum cm_status cm_product_plan_prepare(struct cm_call *call)
{
    struct cm_product_plan *plan = call->state;
    const size_t scratch = cm_product_plan_scratch(plan);
    if (plan->constant)
        cm_call_want_layout(call, plan->b, &plan->layout.base);
    if (scratch)
        cm_call_scratch(call, scratch);
    return CM_OK;
}

/* A transposed product under way: B is its left operand, `packed` its right one. */
struct swapped_run {
    const struct cm_product_finish *finish;
    const struct cm_sgemm *gemm; /* as it would be: c, d */
    const float *b, *packed;
};

enum { SWAPPED_COLUMNS = 48 }; /* at a time: whole tiles on every machine */

/* Columns [begin, end) of the result: the transposed block, then back with what is added. */
static void run_swapped_columns(void *arg, int64_t begin, int64_t end)
{
    const struct swapped_run *run = arg;
    const struct cm_product_plan *plan = run->finish->plan;
    const struct cm_sgemm *gemm = run->gemm;
    float block[SWAPPED_COLUMNS * MOST_SWAPPED];
    cm_sgemm_run(&(struct cm_sgemm){.m = end - begin,
                                    .n = gemm->m,
                                    .k = gemm->k,
                                    .alpha = gemm->alpha,
                                    .a = run->b + begin * plan->b_column,
                                    .a_row = plan->b_column,
                                    .a_column = plan->b_row,
                                    .b = run->packed,
                                    .c = block,
                                    .c_row = gemm->m});
    for (int64_t i = 0; i < gemm->m; i++) {
        const float *d = gemm->d ? gemm->d + i * gemm->d_row + begin : NULL;
        float *c = gemm->c + i * gemm->c_row + begin;
        for (int64_t j = 0; j < end - begin; j++)
            c[j] = block[j * gemm->m + i] + (d ? d[j] : 0);
    }
    if (gemm->finish)
        gemm->finish(gemm->finish_arg, 0, gemm->m, begin, end - begin, gemm->c + begin,
                     gemm->c_row);
}

/* One batch; scratch is where its right operand is packed. */
static void run_batch(struct cm_call *call, int64_t batch, float *scratch)
{
    const struct cm_product_plan *plan = call->state;
    const int64_t m = plan->gemm.m, n = plan->gemm.n, k = plan->gemm.k;
    const struct cm_product_finish finish = {plan, call, batch * m * n};
    struct cm_sgemm gemm = plan->gemm;
    const cm_loose_float *b = call->in[plan->b]->data;
    const struct cm_layout *lies = call->in[plan->b]->layout;
    const bool waits = plan->can_wait && (!lies || lies == &cm_unaligned);
    gemm.a = call->in[plan->a]->data;
    for (int64_t i = 0, left = batch; i < plan->n_axes; i++) {
        gemm.a += left % plan->axes[i] * plan->a_batch[i];
        b += left % plan->axes[i] * plan->b_batch[i];
        left /= plan->axes[i];
    }
    gemm.b = b;
    if (plan->in_place || waits) {
        const int64_t whole = n / CM_SGEMM_PANEL * CM_SGEMM_PANEL;
        gemm.b_row = plan->b_row;
        gemm.b_column = plan->b_column;
        gemm.b_last = scratch;
        if (whole < n && plan->b_column == 1)
            cm_sgemm_pack_slice(k, n - whole, b + whole, plan->b_row, 1, scratch, 0, n - whole);
    } else if (plan->swapped) {
        cm_sgemm_pack(k, m, gemm.a, gemm.a_column, gemm.a_row, scratch);
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
    if (!plan->swapped) {
        cm_sgemm_run(&gemm);
        return;
    }
    struct swapped_run run = {&finish, &gemm, b, scratch};
    cm_parallel(n, SWAPPED_COLUMNS, run_swapped_columns, &run);
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

enum cm_status cm_product_plan_run(struct cm_call *call)
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
    return cm_product_plan_new(call, call->node, in);
}

static bool accepts(struct cm_call *call)
{
    const struct cm_product_plan *plan = read_call(call);
    return plan && cm_product_plan_suits(call, plan);
}

static bool accepts_any(struct cm_call *call)
{
    return read_call(call) != NULL;
}

#define PRODUCT                                                                                    \
    .prepare = cm_product_plan_prepare, .run = cm_product_plan_run, .layouts = CM_LAYOUT_CHOSEN
#define FASTER .label = "float product", .accepts = accepts, PRODUCT
#define ANY    .label = "any float product", .accepts = accepts_any, PRODUCT

CM_KERNEL_AT(cpu, 1, MatMul, FASTER);
CM_KERNEL_AT(cpu, 1, Gemm, FASTER);
CM_KERNEL_AT(cpu, CM_TURN_LAST, MatMul, ANY);
CM_KERNEL_AT(cpu, CM_TURN_LAST, Gemm, ANY);
