/* Binding: sizes, places and prepared kernels for one set of input shapes. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/binder.h"

#include "base/number.h"

_Static_assert(CM_STORAGE_KINDS == (int)CM_MEMORY_KINDS, "storages count by kind");

/* ---- facts ---- */

static void step_facts(const struct cm_context *context, const struct cm_step *step,
                       struct cm_fact *facts)
{
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i] == CM_NO_SLOT)
            continue;
        facts[i].type = context->slots[step->in[i]].type;
        facts[i].constant = context->slots[step->in[i]].known;
    }
}

static bool all_known(const struct cm_binder *b, const struct cm_step *step)
{
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] != CM_NO_SLOT && !b->context->slots[step->in[i]].known)
            return false;
    return true;
}

/* From here on shapes are multiplied without another look. */
static enum cm_status check_size(const struct cm_type *type, struct cm_error *err)
{
    struct cm_shape shape;
    int64_t count;
    size_t bytes;
    if (!cm_type_shape(type, &shape) || !cm_shape_count(&shape, &count) ||
        !cm_dtype_bytes(type->dtype, count, &bytes))
        return cm_fail(err, CM_LIMIT, "the size of its result overflows");
    return CM_OK;
}

/* A tensor of known shape that kernels can be prepared for; strings need a buffer that keeps
 * characters alive. */
static bool is_decided(const struct cm_type *type)
{
    return type && type->kind == CM_KIND_TENSOR && cm_type_is_concrete(type) &&
           type->dtype != CM_STRING;
}

static bool is_empty(const struct cm_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i].value == 0)
            return true;
    return false;
}

enum cm_status cm_step_infer(const struct cm_step *step, struct cm_arena *arena,
                             const struct cm_fact *facts, struct cm_fact *results,
                             struct cm_error *err)
{
    struct cm_infer in = {.node = step->node,
                          .arena = arena,
                          .symbols = cm_module_symbols(step->node->module),
                          .in = facts,
                          .out = results,
                          .n_in = step->n_in,
                          .n_out = step->n_out,
                          .err = err};
    return step->node->op->infer(&in);
}

/* Do the input shapes decide the shapes of this step's results? Fills results if so; otherwise says
 * what it must wait for. */
static enum cm_status infer_step(struct cm_binder *b, const struct cm_step *step,
                                 struct cm_fact *results, const char **waits_for)
{
    const struct cm_op *op = step->node->op;
    *waits_for = "";
    if (step->node->n_bodies && op->effects & CM_OUTPUT_SIZE_AT_RUN)
        cm_infer_bodies(b->context, b->block, step, b->arena, results);
    if (op->effects & CM_OUTPUT_SIZE_AT_RUN)
        return CM_OK;
    struct cm_fact *facts = CM_NEW_ARRAY(b->arena, struct cm_fact, (size_t)step->n_in);
    step_facts(b->context, step, facts);
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i] == CM_NO_SLOT || facts[i].type)
            continue;
        *waits_for = cm_arena_printf(
                         b->arena, "prepared at run time: the shape of input %d depends on data", i)
                         .data;
        return CM_OK;
    }
    CM_TRY(cm_step_infer(step, b->arena, facts, results, b->err));
    for (int o = 0; o < step->n_out; o++) {
        if (step->out[o] == CM_NO_SLOT || is_decided(results[o].type))
            continue;
        if (results[o].type && results[o].type->kind == CM_KIND_TENSOR &&
            results[o].type->dtype != CM_STRING)
            *waits_for = "prepared at run time: the shape of its result depends on data";
        return CM_OK;
    }
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT)
            CM_TRY(check_size(results[o].type, b->err));
    *waits_for = NULL;
    return CM_OK;
}

/* ---- known contents ---- */

enum { SMALL = 4096 }; /* bytes of results that are worth computing while binding */

static bool worth_knowing(const struct cm_step *step, const struct cm_fact *results)
{
    if (step->node->op->effects & CM_RANDOM || step->node->n_bodies)
        return false;
    size_t total = 0;
    for (int o = 0; o < step->n_out; o++) {
        if (step->out[o] == CM_NO_SLOT)
            continue;
        struct cm_shape shape;
        int64_t count;
        size_t bytes;
        if (results[o].type->dtype == CM_STRING || !cm_type_shape(results[o].type, &shape) ||
            !cm_shape_count(&shape, &count) ||
            !cm_dtype_bytes(results[o].type->dtype, count, &bytes) || bytes > SMALL)
            return false;
        total += bytes;
    }
    return total <= SMALL;
}

/* ---- steps ---- */

static struct cm_bound_step *new_step(struct cm_binder *b, const struct cm_step *step)
{
    struct cm_bound_step *bound = CM_NEW(b->arena, struct cm_bound_step);
    bound->step = step;
    bound->context = b->context;
    bound->arena = b->arena;
    bound->declined = "";
    if (!step)
        return bound;
    bound->run = step->node->op->run;
    bound->share = step->node->op->memory.share;
    bound->kernel = "reference";
    const size_t n_in = (size_t)step->n_in, n_out = (size_t)step->n_out;
    const struct cm_tensor **in = CM_NEW_ARRAY(b->arena, const struct cm_tensor *, n_in);
    const struct cm_datum **in_datum = CM_NEW_ARRAY(b->arena, const struct cm_datum *, n_in);
    struct cm_tensor **out = CM_NEW_ARRAY(b->arena, struct cm_tensor *, n_out);
    struct cm_datum **out_datum = CM_NEW_ARRAY(b->arena, struct cm_datum *, n_out);
    for (size_t i = 0; i < n_in; i++) {
        if (step->in[i] == CM_NO_SLOT)
            continue;
        in_datum[i] = &b->context->slots[step->in[i]].datum;
        in[i] = &b->context->slots[step->in[i]].datum.tensor;
    }
    for (size_t o = 0; o < n_out; o++) {
        if (step->out[o] == CM_NO_SLOT)
            continue;
        out_datum[o] = &b->context->slots[step->out[o]].datum;
        out[o] = &b->context->slots[step->out[o]].datum.tensor;
    }
    bound->in = in;
    bound->out = out;
    bound->in_datum = in_datum;
    bound->call = (struct cm_call){.node = step->node,
                                   .op = step->node->op,
                                   .n_in = step->n_in,
                                   .n_out = step->n_out,
                                   .in = in,
                                   .out = out,
                                   .in_datum = in_datum,
                                   .out_datum = out_datum,
                                   .engine = &cm_exec_engine,
                                   .engine_data = bound,
                                   .err = b->err};
    return bound;
}

/* Does the kernel take the step? If not, its reason goes to those of the others. A kernel that had
 * no memory is asked once more, and then the call ends: another kernel would give other bits. */
static bool takes(struct cm_bound_step *bound, const struct cm_kernel *kernel,
                  struct cm_arena *arena)
{
    struct cm_error why, *const err = bound->call.err;
    bool taken = false;
    bound->call.err = &why;
    bound->call.arg = kernel->arg;
    for (int tries = 0; tries < 2; tries++) {
        why.status = CM_OK;
        why.text[0] = 0;
        taken = kernel->accepts(&bound->call);
        if (why.status != CM_NO_MEMORY)
            break;
    }
    bound->call.err = err;
    if (why.status == CM_NO_MEMORY)
        cm_guard_unwind(arena->guard, CM_NO_MEMORY, why.text);
    if (!taken)
        bound->declined = cm_arena_printf(arena, "%s%s%s: %s", bound->declined,
                                          *bound->declined ? "; " : "", kernel->label, why.text)
                              .data;
    return taken;
}

const struct cm_kernel *cm_choose_kernel(struct cm_bound_step *bound, struct cm_arena *arena)
{
    for (size_t i = 0; i < bound->step->kernels.count; i++)
        if (takes(bound, bound->step->kernels.items[i], arena))
            return bound->step->kernels.items[i];
    return NULL;
}

/* What prepare asks for; reference kernels of steps that are prepared as they run have everything
 * plain. */
void cm_bind_want_layout(struct cm_call *call, int i, const struct cm_layout *layout)
{
    struct cm_bound_step *bound = call->engine_data;
    if (bound->want)
        bound->want[i] = layout;
}

void cm_bind_give_layout(struct cm_call *call, int o, const struct cm_layout *layout)
{
    struct cm_bound_step *bound = call->engine_data;
    if (bound->give)
        bound->give[o] = layout;
}

/* A copy of what a slot holds in another layout, made by a step of its own (or here, once, if it
 * never changes). */
static enum cm_status reorder_operand(struct cm_binder *b, cm_slot_id id,
                                      const struct cm_layout *layout, int *storage,
                                      struct cm_datum **out)
{
    const struct cm_slot *slot = &b->context->slots[id];
    const struct cm_tensor *from = &slot->datum.tensor;

    *out = CM_NEW(b->arena, struct cm_datum);
    (*out)->kind = CM_KIND_TENSOR;
    struct cm_tensor *to = &(*out)->tensor;
    size_t bytes;
    *to = *from;
    to->layout = layout;
    to->buffer = NULL;
    CM_TRY(cm_plain_bytes(from, &bytes, b->err));
    if (layout)
        bytes = layout->bytes;
    const struct cm_layout *mover = layout ? layout : from->layout;
    if (from->layout == &cm_unaligned && !(layout && layout->size)) {
        const struct cm_datum *aligned;
        CM_TRY(cm_align_constant(b->session, id, &aligned, b->err));
        **out = *aligned;
        to->buffer = NULL;
        if (!layout)
            return CM_OK;
        from = &aligned->tensor;
        to->layout = layout;
    }
    if (b->session->constants[id] && layout && layout->size)
        return cm_pack_constant(b->session, b->arena, from, layout, &to->data, b->err);
    if (slot->known) {
        to->data = cm_binder_aligned(b, bytes);
        return mover->reorder(from, to, b->err);
    }
    *storage = cm_storage_new(&b->storages, bytes);
    to->data = NULL;
    *CM_PUSH(b->arena, &b->binding->extras) =
        (struct cm_extra){to, b->storages.all.items[*storage].offset};
    struct cm_bound_step *bound = new_step(b, NULL);
    bound->kernel = "reorder";
    bound->reorder_from = from;
    bound->reorder_to = to;
    *CM_PUSH(b->arena, &b->binding->steps) = bound;
    return CM_OK;
}

/* Brings every operand into the layout the kernel reads; temporary copies end with the step. */
static enum cm_status settle_inputs(struct cm_binder *b, struct cm_bound_step *bound,
                                    enum cm_layout_rule rule, int *temporary)
{
    const struct cm_step *step = bound->step;
    for (int i = 0; i < step->n_in; i++) {
        temporary[i] = -1;
        if (step->in[i] == CM_NO_SLOT)
            continue;
        const struct cm_slot *slot = &b->context->slots[step->in[i]];
        const struct cm_layout *has = slot->datum.tensor.layout;
        const struct cm_layout *wants = rule == CM_LAYOUT_PLAIN ? NULL : bound->want[i];
        if (bound->want[i] == &cm_unaligned) /* it may be, but does not have to */
            wants = has == &cm_unaligned ? has : NULL;
        if (cm_layout_equal(has, wants))
            continue;
        if (!cm_weight_waits(b->context, b->block, b->binding, bound, i, wants,
                             &bound->in_datum[i])) {
            struct cm_datum *copy;
            CM_TRY(reorder_operand(b, step->in[i], wants, &temporary[i], &copy));
            bound->in_datum[i] = copy;
        }
        bound->in[i] = &bound->in_datum[i]->tensor;
    }
    return CM_OK;
}

/* A layout counts bytes, so elements of another type cannot have the same one. */
static bool gives_type(const struct cm_binder *b, const struct cm_step *step, enum cm_dtype type)
{
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT && b->context->slots[step->out[o]].datum.tensor.type != type)
            return false;
    return true;
}

/* Elementwise steps leave a layout as it is when all operands have the same one and it has no
 * padding; single elements, which repeat, go with any. */
static const struct cm_layout *common_layout(const struct cm_binder *b, const struct cm_step *step)
{
    const struct cm_layout *layout = NULL;
    const struct cm_shape *shape = NULL;
    int longest_single = 0;
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i] == CM_NO_SLOT)
            continue;
        const struct cm_tensor *tensor = &b->context->slots[step->in[i]].datum.tensor;
        size_t bytes;
        if (!tensor->layout && cm_shape_elements(&tensor->shape) == 1) {
            if (tensor->shape.rank > longest_single)
                longest_single = tensor->shape.rank;
            continue;
        }
        if (!tensor->layout || tensor->layout == &cm_unaligned ||
            !gives_type(b, step, tensor->type) || cm_plain_bytes(tensor, &bytes, NULL) ||
            bytes != tensor->layout->bytes || (shape && !cm_shape_equal(shape, &tensor->shape)) ||
            (layout && !cm_layout_equal(layout, tensor->layout)))
            return NULL;
        layout = tensor->layout;
        shape = &tensor->shape;
    }
    return shape && longest_single <= shape->rank ? layout : NULL;
}

/* Runs a step now: its operands are known and its results small. */
static enum cm_status run_now(struct cm_binder *b, struct cm_bound_step *bound)
{
    const struct cm_step *step = bound->step;
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT)
            cm_binder_new_known(b, step->out[o]);
    if (step->node->op->prepare)
        CM_TRY(step->node->op->prepare(&bound->call));
    bound->call.scratch = cm_binder_aligned(b, bound->scratch_size);
    return step->node->op->run(&bound->call);
}

static void end_slots(struct cm_binder *b, const struct cm_step *step)
{
    for (size_t i = 0; i < step->last.count; i++) {
        const cm_slot_id slot = step->last.items[i];
        const int storage = b->context->slots[slot].storage;
        if (storage >= 0)
            cm_storage_leave(&b->storages, storage);
        if (storage == CM_STORAGE_LATE) { /* whoever ran last drops it; its maker did, at least */
            struct cm_bound_step *last = b->binding->steps.items[b->binding->steps.count - 1];
            *CM_PUSH(b->arena, &last->ends) = slot;
        }
        b->context->slots[slot].storage = CM_STORAGE_FOREIGN;
    }
}

static size_t live_bytes(const struct cm_binder *b)
{
    size_t total = 0;
    for (int kind = 0; kind < CM_STORAGE_KINDS; kind++)
        total += b->storages.used[kind];
    return total;
}

/* A step that runs with memory of its own. Where the shape of a result is known all the same, the
 * steps after it need not wait. */
static enum cm_status wait_until_run(struct cm_binder *b, const struct cm_step *step,
                                     const struct cm_fact *results, const char *waits_for)
{
    struct cm_bound_step *bound = new_step(b, step);
    bound->at_run = true;
    bound->waits_for = bound->declined = waits_for;
    bound->arena = &b->context->blocks[b->block->number].arena;
    cm_arena_defer(b->arena, cm_prepared_free, bound);
    if (step->node->n_bodies)
        bound->types = CM_NEW_ARRAY(b->arena, const struct cm_type *, (size_t)step->n_out);
    for (int o = 0; o < step->n_out; o++) {
        if (step->out[o] == CM_NO_SLOT)
            continue;
        struct cm_slot *slot = &b->context->slots[step->out[o]];
        slot->type = NULL;
        slot->known = NULL;
        slot->datum = (struct cm_datum){0};
        /* Where there was no iteration, a kernel has its own view of the slices' shape. */
        if (bound->types && is_decided(results[o].type) && !is_empty(results[o].type)) {
            CM_TRY(check_size(results[o].type, b->err));
            bound->types[o] = results[o].type;
            cm_binder_set_type(b, step->out[o], results[o].type);
        }
        cm_binder_new_place(b, step->out[o], CM_PLACE_AT_RUN);
        slot->storage = CM_STORAGE_LATE;
    }
    bound->live = live_bytes(b);
    *CM_PUSH(b->arena, &b->binding->steps) = bound;
    return CM_OK;
}

/* Outputs that the kernel writes in a layout of its own while everybody else reads them plain: by
 * output, the storage of the first (-1: none) and the tensor that a reorder fills. */
struct reordered_outputs {
    int *storage;
    struct cm_tensor **plain;
};

/* only_views: no output has memory of its own. */
static enum cm_status place_outputs(struct cm_binder *b, struct cm_bound_step *bound,
                                    enum cm_layout_rule rule, struct reordered_outputs *out,
                                    bool *only_views)
{
    const struct cm_step *step = bound->step;
    *only_views = true;
    for (int o = 0; o < step->n_out; o++) {
        bool view = false;
        out->storage[o] = -1;
        if (step->out[o] == CM_NO_SLOT)
            continue;
        struct cm_slot *slot = &b->context->slots[step->out[o]];
        const struct cm_layout *layout = rule == CM_LAYOUT_PLAIN ? NULL : bound->give[o];
        if (layout && (b->session->result_of[step->out[o]] != CM_NO_SLOT ||
                       b->session->is_captured[step->out[o]])) {
            /* Results and what bodies read are plain: the kernel writes elsewhere and a
             * reorder follows. */
            struct cm_tensor *reordered = CM_NEW(b->arena, struct cm_tensor);
            *reordered = slot->datum.tensor;
            reordered->layout = layout;
            out->storage[o] = cm_storage_new(&b->storages, layout->bytes);
            *CM_PUSH(b->arena, &b->binding->extras) =
                (struct cm_extra){reordered, b->storages.all.items[out->storage[o]].offset};
            out->plain[o] = &slot->datum.tensor;
            bound->out[o] = reordered;
        } else {
            slot->datum.tensor.layout = layout;
        }
        CM_TRY(cm_binder_place_output(b, bound, o, &view));
        *only_views = *only_views && view;
    }
    return CM_OK;
}

/* The reorders that follow such a step. */
static void reorder_outputs(struct cm_binder *b, const struct cm_bound_step *bound,
                            const struct reordered_outputs *reordered)
{
    for (int o = 0; o < bound->step->n_out; o++) {
        if (reordered->storage[o] < 0)
            continue;
        struct cm_bound_step *back = new_step(b, NULL);
        back->kernel = "reorder";
        back->reorder_from = bound->call.out[o];
        back->reorder_to = reordered->plain[o];
        *CM_PUSH(b->arena, &b->binding->steps) = back;
        cm_storage_leave(&b->storages, reordered->storage[o]);
    }
}

/* kernel: of a backend; NULL: the reference kernel. */
static enum cm_status place_step(struct cm_binder *b, struct cm_bound_step *bound,
                                 const struct cm_kernel *kernel)
{
    const struct cm_step *step = bound->step;
    const size_t n_in = (size_t)step->n_in, n_out = (size_t)step->n_out;
    bound->want = CM_NEW_ARRAY(b->arena, const struct cm_layout *, n_in);
    bound->give = CM_NEW_ARRAY(b->arena, const struct cm_layout *, n_out);
    int *temporary = CM_NEW_ARRAY(b->arena, int, n_in);
    enum cm_layout_rule rule = kernel ? kernel->layouts : step->node->op->memory.layouts;
    bound->with = kernel;
    if (kernel) {
        bound->run = kernel->run;
        bound->kernel = kernel->backend->name;
        bound->share = kernel->share ? kernel->share : bound->share;
    }
    cm_prepare_fn *const prepare = kernel ? kernel->prepare : step->node->op->prepare;
    if (prepare)
        CM_TRY(prepare(&bound->call));
    if (rule == CM_LAYOUT_SAME) {
        const struct cm_layout *common = common_layout(b, step);
        for (size_t i = 0; i < n_in; i++)
            if (bound->call.in[i] && bound->call.in[i]->layout)
                bound->want[i] = common;
        for (size_t o = 0; o < n_out; o++)
            bound->give[o] = common;
    }
    CM_TRY(settle_inputs(b, bound, rule, temporary));
    struct reordered_outputs reordered = {CM_NEW_ARRAY(b->arena, int, n_out),
                                          CM_NEW_ARRAY(b->arena, struct cm_tensor *, n_out)};
    bool only_views;
    CM_TRY(place_outputs(b, bound, rule, &reordered, &only_views));
    if (bound->scratch_size > b->storages.most[CM_MEMORY_SCRATCH])
        b->storages.most[CM_MEMORY_SCRATCH] = bound->scratch_size;
    bound->scratch_offset = cm_storage_take(&b->storages, bound->scratch_size);
    cm_storage_give_back(&b->storages, bound->scratch_offset, bound->scratch_size);
    bound->live = live_bytes(b) + cm_round_up(bound->scratch_size, CM_TENSOR_ALIGNMENT);
    if (!only_views)
        *CM_PUSH(b->arena, &b->binding->steps) = bound;
    if (b->in_place)
        cm_binder_add_updating(b);
    reorder_outputs(b, bound, &reordered);
    for (size_t i = 0; i < n_in; i++)
        if (temporary[i] >= 0)
            cm_storage_leave(&b->storages, temporary[i]);
    return CM_OK;
}

static void set_types(struct cm_binder *b, const struct cm_step *step,
                      const struct cm_fact *results)
{
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT)
            cm_binder_set_type(b, step->out[o], results[o].type);
}

/* declined: what kernels said of the region that the step is part of; "": nothing. */
static enum cm_status bind_step(struct cm_binder *b, const struct cm_step *step,
                                const char *declined)
{
    struct cm_fact *results = CM_NEW_ARRAY(b->arena, struct cm_fact, (size_t)step->n_out);
    const char *waits_for;
    CM_TRY(infer_step(b, step, results, &waits_for));
    if (waits_for)
        return wait_until_run(b, step, results, waits_for);
    if (cm_binder_take_known(b, step, results))
        return CM_OK;
    set_types(b, step, results);
    struct cm_bound_step *bound = new_step(b, step);
    bound->declined = declined;
    if (all_known(b, step) && worth_knowing(step, results))
        return run_now(b, bound);
    return place_step(b, bound, cm_choose_kernel(bound, b->arena));
}

/* ---- regions ---- */

/* Types of everything in the region, when the types of its operands decide them. */
static bool infer_parts(struct cm_binder *b, const struct cm_step *step)
{
    struct cm_error *const err = b->err, ignored;
    bool decided = !all_known(b, step); /* else its results are computed here, part by part */
    b->err = &ignored;                  /* what a part refuses it refuses again when it is bound */
    for (size_t i = 0; i < step->n_parts && decided; i++) {
        const struct cm_step *part = &step->parts[i];
        struct cm_fact *results = CM_NEW_ARRAY(b->arena, struct cm_fact, (size_t)part->n_out);
        const char *waits_for;
        decided = !infer_step(b, part, results, &waits_for) && !waits_for;
        if (decided)
            set_types(b, part, results);
    }
    b->err = err;
    return decided;
}

/* As if nobody had made a region of it. */
static enum cm_status bind_parts(struct cm_binder *b, const struct cm_step *step,
                                 const char *declined)
{
    for (size_t i = 0; i < step->n_parts; i++) {
        const struct cm_step *part = &step->parts[i];
        const enum cm_status status = bind_step(b, part, declined);
        if (status)
            return cm_node_blame(part->node, status, b->err);
        end_slots(b, part);
    }
    return CM_OK;
}

static enum cm_status bind_region(struct cm_binder *b, const struct cm_step *step)
{
    if (!step->kernels.count || b->context->options->apart || !infer_parts(b, step))
        return bind_parts(b, step, "");
    struct cm_bound_step *bound = new_step(b, step);
    const struct cm_kernel *kernel = cm_choose_kernel(bound, b->arena);
    if (!kernel)
        return bind_parts(b, step,
                          cm_arena_printf(b->arena, "as a group: %s", bound->declined).data);
    const enum cm_status status = place_step(b, bound, kernel);
    if (status)
        return cm_node_blame(step->node, status, b->err);
    end_slots(b, step);
    return CM_OK;
}

/* ---- a whole block ---- */

/* A slot that is filled before the block runs. Its memory is not the block's to use. */
static void enter_slot(struct cm_binder *b, cm_slot_id id)
{
    struct cm_slot *slot = &b->context->slots[id];
    slot->storage = CM_STORAGE_FOREIGN;
    slot->type = slot->datum.kind == CM_KIND_TENSOR
                     ? cm_type_of_tensor(b->arena, &slot->datum.tensor)
                     : NULL;
}

static enum cm_status build(struct cm_binder *b)
{
    struct cm_block *block = b->block;
    for (size_t i = 0; i < block->n_inputs; i++) {
        b->context->slots[block->inputs[i]].known = NULL;
        enter_slot(b, block->inputs[i]);
    }
    for (size_t i = 0; i < block->captured.count; i++) /* what is known of it stays known */
        enter_slot(b, block->captured.items[i]);
    for (size_t s = 0; s < block->n_steps; s++) {
        const struct cm_step *step = &block->steps[s];
        b->storages.kind = (int)step->kind;
        b->updating = block == b->session->main && s >= block->n_steps - b->session->n_updating;
        b->in_place = 0;
        if (step->n_parts) {
            CM_TRY(bind_region(b, step));
            continue;
        }
        const enum cm_status status = bind_step(b, step, "");
        if (status)
            return cm_node_blame(step->node, status, b->err);
        end_slots(b, step);
    }
    CM_TRY(cm_binder_keep_updates(b));
    if (b->storages.too_large)
        return cm_fail(b->err, CM_LIMIT, "the results are too large for any memory");
    b->binding->memory = b->storages.peak;
    memcpy(b->binding->most, b->storages.most, sizeof b->binding->most);
    return CM_OK;
}

/* While a block is bound the data at hand is hidden: a kernel that prepared itself for it would be
 * wrong in the next run. */
struct hidden_data {
    void **inputs, **captured;
};

static struct hidden_data hide_data(struct cm_binder *b)
{
    const struct cm_block *block = b->block;
    struct cm_slot *slots = b->context->slots;
    const struct hidden_data hidden = {CM_NEW_ARRAY(b->arena, void *, block->n_inputs),
                                       CM_NEW_ARRAY(b->arena, void *, block->captured.count)};
    for (size_t i = 0; i < block->n_inputs; i++) {
        hidden.inputs[i] = slots[block->inputs[i]].datum.tensor.data;
        slots[block->inputs[i]].datum.tensor.data = NULL;
    }
    for (size_t i = 0; i < block->captured.count; i++) {
        struct cm_slot *slot = &slots[block->captured.items[i]];
        hidden.captured[i] = slot->datum.tensor.data;
        if (!slot->known)
            slot->datum.tensor.data = NULL;
    }
    return hidden;
}

static void restore_data(struct cm_binder *b, const struct hidden_data *hidden)
{
    const struct cm_block *block = b->block;
    struct cm_slot *slots = b->context->slots;
    for (size_t i = 0; i < block->n_inputs; i++)
        slots[block->inputs[i]].datum.tensor.data = hidden->inputs[i];
    for (size_t i = 0; i < block->captured.count; i++)
        slots[block->captured.items[i]].datum.tensor.data = hidden->captured[i];
}

enum cm_status cm_binding_build(struct cm_context *context, struct cm_block *block,
                                struct cm_binding *binding, struct cm_error *err)
{
    struct cm_binder binder = {.context = context,
                               .session = context->session,
                               .block = block,
                               .binding = binding,
                               .arena = &binding->arena,
                               .storages = {.arena = &binding->arena},
                               .err = err};
    if (block == context->session->main)
        binding->updates =
            CM_NEW_ARRAY(&binding->arena, struct cm_bound_update, context->session->n_updates);
    const struct hidden_data hidden = hide_data(&binder);
    const enum cm_status status = build(&binder);
    restore_data(&binder, &hidden);
    return status;
}
