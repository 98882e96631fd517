/* Walking the operands of elementwise operators. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/element_loops.h"

#include "base/parallel.h"
#include "tensor/half.h"
#include "tensor/walk.h"

enum {
    PIECE = 1 << 16,       /* elements worth a thread; whole bytes of every packed type */
    BLOCK = 512,           /* floats converted at a time: stays in the first-level cache */
    LEAST_BLOCK = 8,       /* the same for one of very many operands */
    FEW = 4,               /* operands whose blocks fit on the stack */
    MANY_FLOATS = 1 << 15, /* floats for the blocks of all operands, when they are more */
};

struct plan {
    struct cm_element_loop loop;
    struct cm_walk *walk;
    bool stored;   /* narrow floats are not converted */
    int64_t block; /* elements at a time */
};

/* What one thread works with: by operand, its elements, its place, room to convert it. */
struct lane {
    const void **in;
    int64_t *at;
    float *floats;
};

struct job {
    const struct plan *plan;
    const struct cm_call *call;
    struct lane many; /* of all operands, when they are more than FEW */
};

static bool is_narrow_float(enum cm_dtype type)
{
    return cm_dtype_is_narrow(type) && cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
}

enum cm_dtype cm_element_type(enum cm_dtype type)
{
    return is_narrow_float(type) ? CM_FLOAT : type;
}

size_t cm_element_width(enum cm_dtype type)
{
    if (type == CM_STRING || (is_narrow_float(type) && cm_dtype_info(type)->bits < 16))
        return 0;
    return cm_dtype_size(cm_element_type(type));
}

/* ---- prepare ---- */

static size_t lanes_size(int n_in, int64_t block, bool converts)
{
    return (size_t)n_in *
           (sizeof(void *) + sizeof(int64_t) + (converts ? (size_t)block * sizeof(float) : 0));
}

static void plan_call(struct cm_call *call, const struct cm_element_loop *loop, bool stored)
{
    const struct cm_shape **shapes =
        cm_call_state(call, (size_t)call->n_in * sizeof(struct cm_shape *));
    void *memory = cm_call_state(call, cm_walk_size(call->n_in, call->out[0]->shape.rank));
    bool converts = !stored && is_narrow_float(call->out[0]->type);

    for (int i = 0; i < call->n_in; i++) {
        shapes[i] = call->in[i] ? &call->in[i]->shape : NULL;
        converts = converts || (!stored && call->in[i] && is_narrow_float(call->in[i]->type));
    }
    struct plan *plan = cm_call_state(call, sizeof *plan);
    *plan = (struct plan){.loop = *loop,
                          .walk = cm_walk_plan(memory, &call->out[0]->shape, call->n_in, shapes),
                          .stored = stored,
                          .block = converts ? BLOCK : PIECE};
    if (call->n_in <= FEW)
        return;
    if (converts && plan->block > MANY_FLOATS / call->n_in)
        plan->block =
            MANY_FLOATS / call->n_in > LEAST_BLOCK ? MANY_FLOATS / call->n_in : LEAST_BLOCK;
    cm_call_scratch(call, lanes_size(call->n_in, plan->block, converts));
}

void cm_elements_prepare_stored(struct cm_call *call, const struct cm_element_loop *loop)
{
    plan_call(call, loop, true);
}

enum cm_status cm_elements_refuse(struct cm_call *call)
{
    char types[160] = "";
    size_t size = 0;
    for (int i = 0; i < call->n_in && size < sizeof types; i++)
        if (call->in[i])
            size += (size_t)snprintf(types + size, sizeof types - size, "%s%s", size ? ", " : "",
                                     cm_dtype_name(call->in[i]->type));
    return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", types);
}

enum cm_status cm_elements_prepare(struct cm_call *call)
{
    enum cm_dtype *types = cm_call_state(call, (size_t)call->n_in * sizeof *types);
    struct cm_element_loop loop = {0};
    for (int i = 0; i < call->n_in; i++)
        types[i] = call->in[i] ? call->in[i]->type : CM_UNDEFINED;
    if (!call->op->elementwise(call->node, types, call->out[0]->type, &loop))
        return cm_elements_refuse(call);
    plan_call(call, &loop, false);
    return CM_OK;
}

/* ---- run ---- */

/* Where elements of operand i from place `at` on are, converted if need be; repeated ones once. */
static const void *load(const struct job *job, const struct lane *lane, int i, int64_t at,
                        int64_t n)
{
    const struct plan *plan = job->plan;
    const struct cm_tensor *x = job->call->in[i];
    if (!x)
        return NULL;
    if (plan->stored || !is_narrow_float(x->type))
        return (const char *)x->data + (size_t)at * cm_dtype_size(x->type);
    float *floats = lane->floats + i * plan->block;
    cm_narrow_load(x->type, x->data, at, plan->walk->step[i] ? n : 1, floats);
    return floats;
}

/* Elements [done, done + count) of the run that the lane stands at become those from `to` on. */
static void run_part(const struct job *job, const struct lane *lane, int64_t done, int64_t count,
                     int64_t to)
{
    const struct plan *plan = job->plan;
    const struct cm_tensor *y = job->call->out[0];
    const bool narrow = !plan->stored && is_narrow_float(y->type);
    float results[BLOCK];
    struct cm_elements elements = {
        .n_in = job->call->n_in, .in = lane->in, .step = plan->walk->step, .out = results};

    for (int64_t at = 0; at < count; at += plan->block) {
        elements.count = count - at < plan->block ? count - at : plan->block;
        for (int i = 0; i < elements.n_in; i++)
            lane->in[i] =
                load(job, lane, i, lane->at[i] + (done + at) * elements.step[i], elements.count);
        if (!narrow)
            elements.out = (char *)y->data + (size_t)(to + at) * cm_dtype_size(y->type);
        plan->loop.run(&plan->loop, &elements);
        if (narrow)
            cm_narrow_store(y->type, y->data, to + at, elements.count, results);
    }
}

/* Runs are cut into pieces; pieces are counted through all runs. */
static int64_t pieces_per_run(const struct cm_walk *walk)
{
    return walk->run / PIECE + (walk->run % PIECE != 0);
}

static void run_pieces(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct cm_walk *walk = job->plan->walk;
    const int64_t per_run = pieces_per_run(walk);
    const void *in[FEW];
    float floats[FEW * BLOCK];
    int64_t index[CM_MAX_RANK], places[FEW], piece = begin % per_run;
    const struct lane few = {in, places, floats};
    const struct lane *lane = walk->n_operands <= FEW ? &few : &job->many;
    int64_t to = begin / per_run * walk->run + piece * PIECE;

    cm_walk_seek(walk, begin / per_run, index, lane->at);
    for (int64_t p = begin; p < end; p++) {
        const int64_t done = piece * PIECE, left = walk->run - done;
        const int64_t count = left < PIECE ? left : PIECE;
        run_part(job, lane, done, count, to);
        to += count;
        if (++piece == per_run) {
            piece = 0;
            cm_walk_next(walk, index, lane->at);
        }
    }
}

enum cm_status cm_elements_run(struct cm_call *call)
{
    const struct plan *plan = call->state;
    const struct cm_walk *walk = plan->walk;
    const size_t n_in = (size_t)call->n_in;
    struct job job = {.plan = plan, .call = call};

    if (walk->count == 0)
        return CM_OK;
    const int64_t pieces = walk->count / walk->run * pieces_per_run(walk);
    int64_t grain = walk->run < PIECE ? PIECE / walk->run : 1;
    if (call->n_in > FEW) { /* one thread: there is one lane */
        grain = pieces;
        job.many.at = call->scratch;
        job.many.in = (const void **)(void *)(job.many.at + n_in);
        job.many.floats = (float *)(void *)(job.many.in + n_in);
    }
    /* Two threads must not write into one byte, which ends of runs of packed elements may share. */
    if (cm_dtype_info(call->out[0]->type)->bits % 8 != 0 && walk->run < walk->count)
        grain = pieces;
    cm_parallel(pieces, grain, run_pieces, &job);
    return CM_OK;
}

/* ---- copies ---- */

static void copy(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const size_t width = (size_t)loop->p[0];
    if (e->out != e->in[0])
        memcpy(e->out, e->in[0], (size_t)e->count * width);
}

bool cm_copy_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                         struct cm_element_loop *loop)
{
    (void)node, (void)out;
    const size_t width = cm_element_width(in[0]);
    *loop = (struct cm_element_loop){.run = copy, .p = {(double)width}};
    return width != 0;
}

enum cm_sharing cm_share_elementwise(const struct cm_node *node, int output, int input)
{
    (void)node, (void)input;
    return output == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}
