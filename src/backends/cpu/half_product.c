/* MatMul and Gemm of 16-bit floats: the operands become floats, product_plan.h multiplies them, and
 * each result is rounded once. A right operand that never changes is kept as packed floats. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/product_plan.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/half.h"

enum { OPERANDS = 3, GRAIN = 1 << 12 /* elements */ };

struct half_product {
    struct cm_product_plan *plan;
    struct cm_packed_layout layout;            /* of a constant right operand */
    struct cm_tensor wide[OPERANDS + 1];       /* as floats: the operands, the result */
    const struct cm_tensor *in[OPERANDS];      /* NULL: absent */
    struct cm_tensor *out[1];                  /* all of them in wide */
    size_t place[OPERANDS + 1], product_place; /* in scratch: of the floats, and for the product */
};

/* The call as it would be with floats. */
static struct cm_call wide_call(const struct cm_call *call, struct half_product *half)
{
    struct cm_call wide = *call;
    wide.in = half->in;
    wide.out = half->out;
    wide.state = half->plan;
    return wide;
}

static enum cm_status pack_halves(const struct cm_tensor *from, struct cm_tensor *to,
                                  struct cm_error *err)
{
    const struct cm_packed_layout *layout = (const struct cm_packed_layout *)to->layout;
    const int64_t count = cm_tensor_count(from);
    if (from->layout || !layout)
        return cm_fail(err, CM_UNSUPPORTED, "only products read a matrix in layout 'wide panels'");
    float *floats = cm_malloc((size_t)count * sizeof *floats + 1);
    if (!floats)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a matrix of floats");
    cm_narrow_load(from->type, from->data, 0, count, floats);
    cm_sgemm_pack(layout->k, layout->n, floats, layout->transposed ? 1 : layout->n,
                  layout->transposed ? layout->k : 1, to->data);
    cm_free(floats);
    return CM_OK;
}

static bool accepts(struct cm_call *call)
{
    const enum cm_dtype type = call->out[0]->type;
    if (type != CM_FLOAT16 && type != CM_BFLOAT16)
        return cm_call_decline_type(call, call->in[0]);
    struct half_product *half = cm_call_state(call, sizeof *half);
    int in[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        in[i] = i < call->n_in && call->in[i] ? i : -1;
        if (in[i] < 0)
            continue;
        half->wide[i] = cm_tensor_borrow(CM_FLOAT, &call->in[i]->shape, NULL);
        half->in[i] = &half->wide[i];
    }
    half->wide[OPERANDS] = cm_tensor_borrow(CM_FLOAT, &call->out[0]->shape, NULL);
    half->out[0] = &half->wide[OPERANDS];
    struct cm_call wide = wide_call(call, half);
    half->plan = cm_product_plan_new(&wide, call->node, in);
    if (!half->plan)
        return false;
    half->plan->can_wait = false;
    half->layout = half->plan->layout;
    half->layout.base.name = "wide panels";
    half->layout.base.reorder = pack_halves;
    half->layout.base.reorder_rows = NULL;
    half->layout.base.reads_unaligned = half->layout.base.can_wait = false;
    return true;
}

static bool is_packed(const struct half_product *half, int i)
{
    return half->plan->constant && i == half->plan->b;
}

static enum cm_status prepare(struct cm_call *call)
{
    struct half_product *half = call->state;
    size_t used = 0;
    for (int i = 0; i <= OPERANDS; i++) {
        half->place[i] = used;
        if ((i == OPERANDS || half->in[i]) && !is_packed(half, i))
            used += cm_round_up(cm_tensor_bytes(&half->wide[i]), CM_TENSOR_ALIGNMENT);
    }
    half->product_place = used;
    if (half->plan->constant)
        cm_call_want_layout(call, half->plan->b, &half->layout.base);
    cm_call_scratch(call, used + cm_product_plan_scratch(half->plan));
    return CM_OK;
}

struct conversion {
    enum cm_dtype type;
    void *halves;
    float *floats;
};

static void widen(void *arg, int64_t begin, int64_t end)
{
    const struct conversion *c = arg;
    cm_narrow_load(c->type, c->halves, begin, end - begin, c->floats + begin);
}

static void narrow(void *arg, int64_t begin, int64_t end)
{
    const struct conversion *c = arg;
    cm_narrow_store(c->type, c->halves, begin, end - begin, c->floats + begin);
}

static enum cm_status run(struct cm_call *call)
{
    struct half_product half = *(const struct half_product *)call->state;
    const enum cm_dtype type = call->out[0]->type;
    for (int i = 0; i <= OPERANDS; i++)
        half.wide[i].data = (char *)call->scratch + half.place[i];
    half.out[0] = &half.wide[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        if (!half.in[i])
            continue;
        half.in[i] = &half.wide[i];
        if (is_packed(&half, i)) {
            half.wide[i].data = call->in[i]->data;
            continue;
        }
        cm_parallel(cm_tensor_count(call->in[i]), GRAIN, widen,
                    &(struct conversion){type, call->in[i]->data, half.wide[i].data});
    }
    struct cm_call wide = wide_call(call, &half);
    wide.scratch = (char *)call->scratch + half.product_place;
    CM_TRY(cm_product_plan_run(&wide));
    cm_parallel(cm_tensor_count(call->out[0]), GRAIN, narrow,
                &(struct conversion){type, call->out[0]->data, half.wide[OPERANDS].data});
    return CM_OK;
}

CM_KERNEL(cpu, MatMul, .label = "half product", .accepts = accepts, .prepare = prepare, .run = run,
          .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, Gemm, .label = "half product", .accepts = accepts, .prepare = prepare, .run = run,
          .layouts = CM_LAYOUT_CHOSEN);
