/* Walking two broadcast operands. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"

#include "base/parallel.h"
#include "tensor/half.h"

/* The walk: the innermost axis is one run, the others are counted up. Axes along which both
 * operands go on where they are, or both stay, are merged first, so two equal shapes are one run.
 */
struct walk {
    int rank; /* of the outer axes */
    int64_t count;
    int64_t run, step_a, step_b;
    int64_t dims[CM_MAX_RANK], strides_a[CM_MAX_RANK], strides_b[CM_MAX_RANK];
};

static void plan(struct walk *walk, const struct cm_shape *a, const struct cm_shape *b,
                 const struct cm_shape *y)
{
    int64_t all_a[CM_MAX_RANK], all_b[CM_MAX_RANK];
    cm_broadcast_strides(a, y, all_a);
    cm_broadcast_strides(b, y, all_b);
    walk->count = cm_shape_elements(y);

    /* Merged axes, innermost first. */
    int n = 0;
    int64_t dims[CM_MAX_RANK], sa[CM_MAX_RANK], sb[CM_MAX_RANK];
    for (int i = y->rank - 1; i >= 0; i--) {
        if (y->dims[i] == 1)
            continue;
        if (n > 0 && all_a[i] == sa[n - 1] * dims[n - 1] && all_b[i] == sb[n - 1] * dims[n - 1]) {
            dims[n - 1] *= y->dims[i];
            continue;
        }
        dims[n] = y->dims[i];
        sa[n] = all_a[i];
        sb[n] = all_b[i];
        n++;
    }
    walk->run = n > 0 ? dims[0] : 1;
    walk->step_a = n > 0 && sa[0] != 0;
    walk->step_b = n > 0 && sb[0] != 0;
    walk->rank = n > 0 ? n - 1 : 0;
    for (int i = 0; i < walk->rank; i++) {
        walk->dims[i] = dims[i + 1];
        walk->strides_a[i] = sa[i + 1];
        walk->strides_b[i] = sb[i + 1];
    }
}

enum cm_status cm_prepare_binary(struct cm_call *call)
{
    struct walk *walk = cm_call_state(call, sizeof *walk);
    plan(walk, &call->in[0]->shape, &call->in[1]->shape, &call->out[0]->shape);
    return CM_OK;
}

struct operands {
    const struct walk *walk;
    enum cm_dtype type, result;
    const char *a, *b;
    char *y;
    cm_binary_fn *loop;
    bool narrow;
};

static void run_native(const struct operands *op, int64_t count, int64_t at_a, int64_t at_b,
                       int64_t at_y)
{
    const struct walk *walk = op->walk;
    const int64_t size = (int64_t)cm_dtype_size(op->type);
    op->loop(count, op->a + at_a * size, walk->step_a, op->b + at_b * size, walk->step_b,
             op->y + at_y * (int64_t)cm_dtype_size(op->result));
}

enum { BLOCK = 512 };

static void run_narrow(const struct operands *op, int64_t count, int64_t at_a, int64_t at_b,
                       int64_t at_y)
{
    const struct walk *walk = op->walk;
    float a[BLOCK], b[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        cm_narrow_load(op->type, op->a, at_a + at * walk->step_a, walk->step_a ? n : 1, a);
        cm_narrow_load(op->type, op->b, at_b + at * walk->step_b, walk->step_b ? n : 1, b);
        if (op->result == op->type) {
            float y[BLOCK];
            op->loop(n, a, walk->step_a, b, walk->step_b, y);
            cm_narrow_store(op->type, op->y, at_y + at, n, y);
        } else { /* a comparison: its bools need no conversion */
            op->loop(n, a, walk->step_a, b, walk->step_b, op->y + at_y + at);
        }
    }
}

enum { GRAIN = 1 << 16 }; /* elements worth a thread */

/* Part of the only run there is. */
static void run_part(void *arg, int64_t begin, int64_t end)
{
    const struct operands *op = arg;
    const struct walk *walk = op->walk;
    (op->narrow ? run_narrow : run_native)(op, end - begin, begin * walk->step_a,
                                           begin * walk->step_b, begin);
}

/* Some of many runs, counted from the first. */
static void run_some(void *arg, int64_t begin, int64_t end)
{
    const struct operands *op = arg;
    const struct walk *walk = op->walk;
    int64_t index[CM_MAX_RANK], at_a = 0, at_b = 0, rest = begin;
    for (int i = 0; i < walk->rank; i++) {
        index[i] = rest % walk->dims[i];
        rest /= walk->dims[i];
        at_a += index[i] * walk->strides_a[i];
        at_b += index[i] * walk->strides_b[i];
    }
    for (int64_t run = begin; run < end; run++) {
        (op->narrow ? run_narrow : run_native)(op, walk->run, at_a, at_b, run * walk->run);
        for (int i = 0; i < walk->rank; i++) {
            at_a += walk->strides_a[i];
            at_b += walk->strides_b[i];
            if (++index[i] < walk->dims[i])
                break;
            at_a -= walk->strides_a[i] * walk->dims[i];
            at_b -= walk->strides_b[i] * walk->dims[i];
            index[i] = 0;
        }
    }
}

/* Two threads must not write into one byte, which ends of runs of packed elements may share. */
static int64_t grain_of(const struct operands *op, int64_t runs)
{
    const struct walk *walk = op->walk;
    if (op->narrow && cm_dtype_info(op->result)->bits % 8 != 0)
        return runs;
    return walk->run < GRAIN ? GRAIN / walk->run : 1;
}

enum cm_status cm_run_binary(struct cm_call *call, cm_binary_fn *const *loops)
{
    const struct walk *walk = call->state;
    const struct cm_tensor *a = call->in[0], *b = call->in[1];
    const bool narrow = !loops[a->type] && cm_dtype_is_narrow(a->type) &&
                        cm_dtype_info(a->type)->kind == CM_CLASS_FLOAT;
    struct operands op = {.walk = walk,
                          .type = a->type,
                          .result = call->out[0]->type,
                          .a = a->data,
                          .b = b->data,
                          .y = call->out[0]->data,
                          .loop = loops[narrow ? CM_FLOAT : a->type],
                          .narrow = narrow};
    if (!op.loop)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(a->type));

    if (walk->count == 0)
        return CM_OK;
    const int64_t runs = walk->count / walk->run;
    if (runs == 1) /* GRAIN elements are whole bytes of every packed type */
        cm_parallel(walk->run, GRAIN, run_part, &op);
    else
        cm_parallel(runs, grain_of(&op, runs), run_some, &op);
    return CM_OK;
}

void cm_infer_quantities(struct cm_infer *in, cm_quantity_fn *join)
{
    struct cm_known a, b;
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    if ((dtype != CM_INT64 && dtype != CM_INT32) || !cm_infer_known(in, 0, &a) ||
        !cm_infer_known(in, 1, &b) || (a.count != b.count && a.count != 1 && b.count != 1))
        return;
    const size_t count = a.count == 1 ? b.count : a.count;
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, count);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct cm_quantity x = a.items[a.count == 1 ? 0 : i],
                                 y = b.items[b.count == 1 ? 0 : i];
        if (!join(x, y, &items[i]))
            items[i] = (struct cm_quantity){0};
        any = any || items[i].is_number || items[i].symbol;
    }
    if (any)
        cm_infer_set_known(in, 0, a.rank > b.rank ? a.rank : b.rank, count, items);
}
