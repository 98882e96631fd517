/* Running a bound block, and the engine that kernels see while it runs. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "exec/program.h"

#include "base/memory.h"

#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

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
    CM_TRY(
        cm_pool_tensor(bound->context->pool, dtype, shape, &call->out_datum[o]->tensor, call->err));
    call->out_datum[o]->kind = CM_KIND_TENSOR;
    return CM_OK;
}

/* Gives a datum bytes of its own where it borrows them from memory that will be used again. */
static enum cm_status own_bytes(struct cm_context *context, struct cm_datum *datum,
                                struct cm_error *err)
{
    for (size_t i = 0; i < datum->n_items; i++)
        CM_TRY(own_bytes(context, &datum->items[i], err));
    if (datum->kind != CM_KIND_TENSOR || datum->tensor.buffer || !datum->tensor.data)
        return CM_OK;
    const struct cm_tensor borrowed = datum->tensor;
    if (borrowed.type == CM_STRING) /* the characters may be borrowed too */
        return cm_tensor_copy(&borrowed, &datum->tensor, err);
    struct cm_tensor own;
    CM_TRY(cm_pool_tensor(context->pool, borrowed.type, &borrowed.shape, &own, err));
    memcpy(own.data, borrowed.data, cm_tensor_bytes(&borrowed));
    datum->tensor = own;
    return CM_OK;
}

enum cm_status cm_share_result(struct cm_context *context, const struct cm_slot *slot,
                               struct cm_datum *out, struct cm_error *err)
{
    struct cm_datum shared;
    CM_TRY(cm_datum_share(&slot->datum, &shared, err));
    const enum cm_status status = own_bytes(context, &shared, err);
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

static void drop_outputs(struct cm_context *context, const struct cm_block *block)
{
    for (size_t o = 0; o < block->n_outputs; o++)
        if (!context->session->constants[block->outputs[o]] &&
            context->session->is_result[block->outputs[o]])
            cm_datum_drop(&context->slots[block->outputs[o]].datum);
}

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
    enum cm_status status = cm_run_block(context, block, NULL, call->err);
    size_t done = 0;
    for (; done < n_out && !status; done++)
        status =
            cm_share_result(context, &context->slots[block->outputs[done]], &out[done], call->err);
    if (status)
        while (done-- > 0)
            cm_datum_drop(&out[done]);
    forget_inputs(context, block);
    drop_outputs(context, block);
    return status;
}

static struct cm_random *random_of(struct cm_call *call)
{
    struct cm_bound_step *bound = call->engine_data;
    struct cm_context *context = bound->context;
    return context->randoms[bound->step->number];
}

const struct cm_engine cm_exec_engine = {
    .state = state,
    .scratch = scratch,
    .allocate = allocate,
    .run_body = run_body,
    .random = random_of,
    .want_layout = cm_bind_want_layout,
    .give_layout = cm_bind_give_layout,
};

/* ---- steps ---- */

/* Operands of a step that is prepared as it runs must be plain. */
static enum cm_status make_plain(struct cm_context *context, struct cm_bound_step *bound,
                                 struct cm_error *err)
{
    for (int i = 0; i < bound->step->n_in; i++) {
        const cm_slot_id id = bound->step->in[i];
        if (id == CM_NO_SLOT || !context->slots[id].datum.tensor.layout)
            continue;
        struct cm_tensor *tensor = &context->slots[id].datum.tensor;
        struct cm_tensor *plain = CM_NEW(bound->arena, struct cm_tensor);
        const struct cm_layout *layout = tensor->layout;
        *plain = *tensor;
        plain->layout = NULL;
        plain->buffer = NULL;
        plain->data = cm_arena_alloc(bound->arena, cm_tensor_bytes(plain));
        CM_TRY(layout->reorder(tensor, plain, err));
        struct cm_datum *datum = CM_NEW(bound->arena, struct cm_datum);
        *datum = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *plain};
        ((const struct cm_datum **)(uintptr_t)bound->call.in_datum)[i] = datum;
    }
    return CM_OK;
}

static enum cm_status allocate_results(struct cm_context *context,
                                       const struct cm_bound_step *bound, struct cm_error *err)
{
    const struct cm_step *step = bound->step;
    struct cm_arena *arena = bound->arena;
    struct cm_fact *facts = CM_NEW_ARRAY(arena, struct cm_fact, (size_t)step->n_in);
    struct cm_fact *results = CM_NEW_ARRAY(arena, struct cm_fact, (size_t)step->n_out);
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i] == CM_NO_SLOT)
            continue;
        const struct cm_datum *datum = &context->slots[step->in[i]].datum;
        facts[i].type = cm_type_of_datum(arena, datum);
        facts[i].constant = datum->kind == CM_KIND_TENSOR ? &datum->tensor : NULL;
    }
    struct cm_infer in = {.node = step->node,
                          .arena = arena,
                          .symbols = cm_module_symbols(context->session->module),
                          .in = facts,
                          .out = results,
                          .n_in = step->n_in,
                          .n_out = step->n_out,
                          .err = err};
    CM_TRY(step->node->op->infer(&in));
    for (int o = 0; o < step->n_out; o++) {
        if (step->out[o] == CM_NO_SLOT)
            continue;
        struct cm_shape shape;
        if (results[o].type && results[o].type->kind != CM_KIND_TENSOR)
            continue; /* made by the kernel itself */
        if (!results[o].type || !cm_type_shape(results[o].type, &shape))
            return cm_fail(err, CM_UNSUPPORTED, "the shape of output %d is still unknown", o);
        struct cm_datum *datum = &context->slots[step->out[o]].datum;
        CM_TRY(cm_pool_tensor(context->pool, results[o].type->dtype, &shape, &datum->tensor, err));
        datum->kind = CM_KIND_TENSOR;
    }
    return CM_OK;
}

/* A step that could not be prepared before: its operands are here now. */
static enum cm_status run_late(struct cm_context *context, struct cm_bound_step *bound,
                               struct cm_error *err)
{
    const struct cm_step *step = bound->step;
    const struct cm_op *op = step->node->op;
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] != CM_NO_SLOT)
            ((const struct cm_datum **)(uintptr_t)bound->call.in_datum)[i] =
                &context->slots[step->in[i]].datum;
    CM_TRY(make_plain(context, bound, err));
    if (!(op->effects & CM_OUTPUT_SIZE_AT_RUN))
        CM_TRY(allocate_results(context, bound, err));
    for (int i = 0; i < step->n_in; i++) /* a kernel sees a tensor or nothing */
        if (step->in[i] != CM_NO_SLOT)
            ((const struct cm_tensor **)(uintptr_t)bound->call.in)[i] =
                bound->call.in_datum[i]->kind == CM_KIND_TENSOR ? &bound->call.in_datum[i]->tensor
                                                                : NULL;
    bound->scratch_size = 0;
    if (op->prepare)
        CM_TRY(op->prepare(&bound->call));
    if (bound->scratch_size) {
        char *room = cm_arena_alloc(bound->arena, bound->scratch_size + CM_TENSOR_ALIGNMENT);
        bound->call.scratch = room + (CM_TENSOR_ALIGNMENT - (uintptr_t)room % CM_TENSOR_ALIGNMENT);
    }
    CM_TRY(op->run(&bound->call));
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT)
            CM_TRY(own_bytes(context, &context->slots[step->out[o]].datum, err));
    return CM_OK;
}

static void report(struct cm_context *context, const struct cm_block *block,
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
        .end_ns = now_ns() - context->began_ns,
        .live_bytes = context->block_bytes + cm_pool_used(context->pool),
    };
    context->options->step(context->options->step_arg, &report);
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
        return run_late(context, bound, err);
    bound->call.scratch = state_->memory + bound->scratch_offset;
    return bound->run(&bound->call);
}

/* Memory for the block's results: the caller's where it gave some, else from the pool. Slots that
 * are the same as others follow. */
static enum cm_status place_results(struct cm_context *context, const struct cm_binding *binding,
                                    const struct cm_datum *results, struct cm_error *err)
{
    for (size_t i = 0; i < binding->places.count; i++) {
        const struct cm_place *place = &binding->places.items[i];
        struct cm_tensor *tensor = &context->slots[place->slot].datum.tensor;
        if (place->kind == CM_PLACE_SAME)
            tensor->data = context->slots[place->same_as].datum.tensor.data;
        if (place->kind != CM_PLACE_RESULT)
            continue;
        const struct cm_tensor *given = results ? &results[place->offset].tensor : NULL;
        if (given && given->data) {
            if (given->type != tensor->type || !cm_shape_equal(&given->shape, &tensor->shape))
                return cm_fail(err, CM_BAD_ARGUMENT,
                               "the memory given for output %zu is for another type or shape",
                               place->offset);
            tensor->data = given->data;
        } else {
            CM_TRY(cm_pool_tensor(context->pool, tensor->type, &place->tensor.shape, tensor, err));
        }
    }
    return CM_OK;
}

enum cm_status cm_run_block(struct cm_context *context, struct cm_block *block,
                            const struct cm_datum *results, struct cm_error *err)
{
    const struct cm_run_options *options = context->options;
    struct cm_binding *binding;
    CM_TRY(cm_bind(context, block, &binding, err));
    CM_TRY(place_results(context, binding, results, err));
    const struct cm_block_state *block_state = &context->blocks[block->number];
    for (size_t s = 0; s < binding->steps.count; s++) {
        struct cm_bound_step *bound = binding->steps.items[s];
        if (options->cancel && atomic_load_explicit(options->cancel, memory_order_relaxed))
            return cm_fail(err, CM_CANCELLED, "cancelled");
        const uint64_t began = options->step ? now_ns() : 0;
        const enum cm_status status = run_step(context, block_state, bound, err);
        if (status)
            return bound->step ? cm_error_context(err, status, "%s",
                                                  cm_node_describe(bound->step->node).text)
                               : status;
        if (options->step)
            report(context, block, bound, began);
        if (!bound->step)
            continue;
        for (size_t i = 0; i < bound->step->n_last; i++) {
            struct cm_datum *datum = &context->slots[bound->step->last[i]].datum;
            if (datum->tensor.buffer || datum->items)
                cm_datum_drop(datum);
        }
        if (bound->at_run)
            cm_arena_reset(bound->arena);
    }
    return CM_OK;
}
