/* Running a bound block, and the engine that kernels see while it runs. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include "base/clock.h"
#include "base/memory.h"

/* ---- the engine ---- */

static void *state(struct cm_call *call, size_t size)
{
    const struct cm_bound_step *bound = call->engine_data;
    return cm_arena_alloc(bound->arena, size);
}

static void scratch(struct cm_call *call, size_t size)
{
    struct cm_bound_step *bound = call->engine_data;
    if (size > bound->scratch_size)
        bound->scratch_size = size;
}

static enum cm_status allocate(struct cm_call *call, int o, enum cm_dtype dtype,
                               const struct cm_shape *shape)
{
    struct cm_bound_step *bound = call->engine_data;
    if (!call->out_datum[o])
        return CM_OK;
    CM_TRY(cm_context_tensor(bound->context, dtype, shape, &call->out_datum[o]->tensor, call->err));
    call->out_datum[o]->kind = CM_KIND_TENSOR;
    return CM_OK;
}

enum cm_status cm_own_bytes(struct cm_context *context, struct cm_datum *datum,
                            struct cm_error *err)
{
    for (size_t i = 0; !datum->list && i < datum->n_items; i++) /* those of a list have theirs */
        CM_TRY(cm_own_bytes(context, &datum->items[i], err));
    if (datum->kind != CM_KIND_TENSOR || datum->tensor.buffer || !datum->tensor.data)
        return CM_OK;
    const struct cm_tensor borrowed = datum->tensor;
    if (borrowed.type == CM_STRING) /* the characters may be borrowed too */
        return cm_tensor_copy(&borrowed, &datum->tensor, err);
    struct cm_tensor own = {0};
    CM_TRY(cm_context_tensor(context, borrowed.type, &borrowed.shape, &own, err));
    memcpy(own.data, borrowed.data, cm_tensor_bytes(&borrowed));
    cm_tensor_clear_padding(&own);
    datum->tensor = own;
    return CM_OK;
}

enum cm_status cm_share_result(struct cm_context *context, const struct cm_slot *slot,
                               struct cm_datum *out, struct cm_error *err)
{
    struct cm_datum shared;
    CM_TRY(cm_datum_share(&slot->datum, &shared, err));
    const enum cm_status status = cm_own_bytes(context, &shared, err);
    if (status)
        cm_datum_drop(&shared);
    else
        *out = shared;
    return status;
}

static void forget_inputs(struct cm_context *context, const struct cm_block *block)
{
    for (size_t i = 0; i < block->n_inputs; i++)
        context->slots[block->inputs[i]].datum = (struct cm_datum){0};
}

void cm_drop_results(struct cm_context *context, const struct cm_block *block)
{
    for (size_t i = 0; i < block->results.count; i++) {
        struct cm_datum *datum = &context->slots[block->results.items[i]].datum;
        if (datum->tensor.buffer || datum->items) /* else it is the binding's, or the caller's */
            cm_datum_drop(datum);
    }
}

struct body_run {
    struct cm_context *context;
    struct cm_block *block;
    struct cm_datum *out;
    struct cm_error *err;
};

static enum cm_status guarded_body(struct cm_guard *guard, void *arg)
{
    const struct body_run *r = arg;
    r->context->guard = guard;
    CM_TRY(cm_run_block(r->context, r->block, NULL, r->err));
    for (size_t o = 0; o < r->block->n_outputs; o++) {
        const enum cm_status status = cm_share_result(
            r->context, &r->context->slots[r->block->outputs[o]], &r->out[o], r->err);
        if (status) {
            while (o-- > 0)
                cm_datum_drop(&r->out[o]);
            return status;
        }
    }
    return CM_OK;
}

/* The kernel that asked owns memory while its body runs, so an arena that is exhausted inside must
 * not unwind past it: each body has a guard of its own. */
static enum cm_status run_body(struct cm_call *call, size_t body, const struct cm_datum *const *in,
                               size_t n_in, struct cm_datum *out, size_t n_out)
{
    struct cm_bound_step *bound = call->engine_data;
    struct cm_context *context = bound->context;
    struct cm_block *block = bound->step->bodies[body];
    if (block->n_inputs != n_in || block->n_outputs != n_out)
        return cm_fail(call->err, CM_BAD_MODEL,
                       "body takes %zu values and gives %zu, not %zu and %zu", block->n_inputs,
                       block->n_outputs, n_in, n_out);
    for (size_t i = 0; i < n_in; i++)
        context->slots[block->inputs[i]].datum = *in[i]; /* borrowed while the body runs */
    struct body_run r = {context, block, out, call->err};
    struct cm_guard *outer = context->guard;
    struct cm_block_state *block_state = &context->blocks[block->number];
    const size_t around = context->live_around;
    block_state->running = true;
    context->live_around = around + bound->live;
    const enum cm_status status = cm_guarded(0, call->err, guarded_body, &r);
    context->live_around = around;
    block_state->running = false;
    context->guard = outer;
    forget_inputs(context, block);
    cm_drop_results(context, block);
    return status;
}

static struct cm_random *random_of(struct cm_call *call)
{
    struct cm_bound_step *bound = call->engine_data;
    struct cm_context *context = bound->context;
    return &context->randoms[bound->step->random];
}

static void defer(struct cm_call *call, cm_cleanup_fn *fn, void *what)
{
    const struct cm_bound_step *bound = call->engine_data;
    cm_arena_defer(bound->arena, fn, what);
}

static void *session_state(struct cm_call *call, const struct cm_session_state *kind)
{
    const struct cm_bound_step *bound = call->engine_data;
    struct cm_session *session = bound->context->session;
    cm_session_lock(session);
    void *state = cm_kept_state_get(&session->states, kind);
    cm_session_unlock(session);
    return state;
}

const struct cm_engine cm_exec_engine = {
    .state = state,
    .scratch = scratch,
    .allocate = allocate,
    .run_body = run_body,
    .random = random_of,
    .want_layout = cm_bind_want_layout,
    .give_layout = cm_bind_give_layout,
    .defer = defer,
    .session_state = session_state,
};

/* ---- steps ---- */

/* Of results in the memory of this block and of those around it, and of those with memory of their
 * own. */
static size_t live_bytes(const struct cm_context *context, const struct cm_bound_step *bound)
{
    const size_t used = cm_pool_used(context->pool);
    return context->live_around + bound->live +
           (used > context->pool_before ? used - context->pool_before : 0);
}

static double flops_of(const struct cm_bound_step *bound)
{
    const struct cm_call *call = &bound->call;
    return call->op && call->op->cost.flops
               ? call->op->cost.flops(call->node, call->in, call->n_in,
                                      (const struct cm_tensor *const *)call->out, call->n_out)
               : 0;
}

void cm_report_step(struct cm_context *context, const struct cm_block *block,
                    const struct cm_bound_step *bound, uint64_t began)
{
    if (!bound->step)
        return;
    const struct cm_step_report report = {
        .node = bound->step->node,
        .kernel = bound->kernel,
        .declined = bound->declined,
        .depth = block->depth,
        .begin_ns = began - context->began_ns,
        .end_ns = cm_clock_ns() - context->began_ns,
        .live_bytes = live_bytes(context, bound),
        .flops = flops_of(bound),
        .out = (const struct cm_tensor *const *)bound->call.out,
        .n_out = bound->call.n_out,
    };
    /* What the callback makes is the caller's, not the run's. */
    const struct cm_buffer_source *source = cm_buffer_enter(NULL);
    context->options->step(context->options->step_arg, &report);
    cm_buffer_enter(source);
}

static enum cm_status run_step(struct cm_context *context, const struct cm_block_state *state_,
                               struct cm_bound_step *bound, struct cm_error *err)
{
    if (!bound->step) {
        const struct cm_layout *layout =
            bound->reorder_to->layout ? bound->reorder_to->layout : bound->reorder_from->layout;
        return layout->reorder(bound->reorder_from, bound->reorder_to, err);
    }
    bound->call.err = err;
    if (bound->at_run)
        return cm_run_late(context, bound, err);
    bound->call.scratch =
        state_->memory ? (void *)(state_->memory + bound->scratch_offset) : (void *)cm_no_scratch;
    return bound->run(&bound->call);
}

static bool lies_in(const void *byte, const struct cm_tensor *tensor)
{
    const uintptr_t at = (uintptr_t)byte, begin = (uintptr_t)tensor->data;
    return tensor->data && at >= begin && at - begin < cm_tensor_bytes(tensor);
}

/* Memory of the block was used for other things before, so the bits behind the last element of a
 * packed result hold anything. A view has its operand's. */
static void clear_padding(const struct cm_call *call)
{
    for (int o = 0; o < call->n_out; o++) {
        const struct cm_tensor *y = call->out[o];
        bool view = false;
        if (!y || !y->data || y->layout || !cm_tensor_has_padding(y))
            continue;
        const char *last = (const char *)y->data + cm_tensor_bytes(y) - 1;
        for (int i = 0; i < call->n_in && !view; i++)
            view = call->in[i] && !call->in[i]->layout && lies_in(last, call->in[i]);
        if (!view)
            cm_tensor_clear_padding(y);
    }
}

/* Memory for a result: the caller's where it gave some, else from the pool. */
static enum cm_status place_result(struct cm_context *context, const struct cm_place *place,
                                   const struct cm_datum *results, struct cm_error *err)
{
    struct cm_datum *datum = &context->slots[place->slot].datum;
    struct cm_shape shape;
    cm_type_shape(place->type, &shape);
    const struct cm_tensor *given = results ? &results[place->offset].tensor : NULL;
    if (!given || !given->data)
        CM_TRY(cm_context_tensor(context, place->type->dtype, &shape, &datum->tensor, err));
    else if (given->type != place->type->dtype || !cm_shape_equal(&given->shape, &shape))
        return cm_refuse_room(context->session, place->offset, given, place->type->dtype, &shape,
                              err);
    else
        datum->tensor = cm_tensor_borrow(given->type, &shape, given->data);
    datum->kind = CM_KIND_TENSOR;
    return CM_OK;
}

static void *same_bytes(const struct cm_context *context, const struct cm_place *place)
{
    char *data = context->slots[place->same_as].datum.tensor.data;
    return data ? data + place->offset : NULL;
}

/* What each run finds a place for; slots that are the same as others follow those. */
static enum cm_status place_moving(struct cm_context *context, const struct cm_binding *binding,
                                   const struct cm_datum *results, struct cm_error *err)
{
    for (size_t i = 0; i < binding->moving.count; i++) {
        const struct cm_place *place = &binding->places.items[binding->moving.items[i]];
        struct cm_datum *datum = &context->slots[place->slot].datum;
        if (place->kind == CM_PLACE_RESULT)
            CM_TRY(place_result(context, place, results, err));
        else if (place->kind == CM_PLACE_SAME)
            datum->tensor.data = same_bytes(context, place);
        else if (datum->kind != CM_KIND_NONE) /* an empty sequence is left where it was */
            *datum = (struct cm_datum){0};
    }
    return CM_OK;
}

static void end_late(struct cm_context *context, const struct cm_bound_step *bound)
{
    for (size_t i = 0; i < bound->ends.count; i++)
        cm_datum_drop(&context->slots[bound->ends.items[i]].datum);
    if (bound->at_run)
        cm_arena_reset(bound->arena);
}

enum cm_status cm_run_block(struct cm_context *context, struct cm_block *block,
                            const struct cm_datum *results, struct cm_error *err)
{
    const struct cm_run_options *options = context->options;
    struct cm_binding *binding;
    CM_TRY(cm_bind(context, block, &binding, err));
    if (binding->waiting.count)
        CM_TRY(cm_weights_ready(context, binding, err));
    if (results)
        CM_TRY(cm_updates_place(context, binding, &results, err));
    CM_TRY(place_moving(context, binding, results, err));
    const struct cm_block_state *block_state = &context->blocks[block->number];
    for (size_t s = 0; s < binding->steps.count; s++) {
        struct cm_bound_step *bound = binding->steps.items[s];
        if (cm_cancelled(options->cancel))
            return cm_fail(err, CM_CANCELLED, "cancelled");
        const uint64_t began = options->step ? cm_clock_ns() : 0;
        if (bound->n_waiting)
            CM_TRY(cm_weights_move(binding, bound, err));
        const enum cm_status status = run_step(context, block_state, bound, err);
        if (status)
            return bound->step ? cm_node_blame(bound->step->node, status, err) : status;
        if (bound->step)
            clear_padding(&bound->call);
        if (options->step)
            cm_report_step(context, block, bound, began);
        end_late(context, bound);
    }
    /* A body without steps may be run forever too. */
    return cm_cancelled(options->cancel) ? cm_fail(err, CM_CANCELLED, "cancelled") : CM_OK;
}
