/* Results that take the place of inputs when a run is done. Steps that do nothing else are compiled
 * last. A binding finds out which of them may write into the inputs' own memory: a kernel that
 * cannot fail, whose sharing rule allows it, for an input that no other such step reads. Those run
 * when everything else is computed and found good, all of them as one parallel loop. The values of
 * all other updates are kept in the block's memory and copied at the end: so all new values are
 * computed from old ones, and a run that fails has changed nothing. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/binder.h"

#include "base/clock.h"

#include <stdatomic.h>

/* ---- compiling ---- */

/* Does the node compute updates and nothing else? updates: by output of the graph. */
static bool only_updates(const struct cm_graph *graph, const struct cm_node *node,
                         const bool *updates)
{
    bool any = false;
    if (!node->op->elementwise && !(node->op->effects & CM_REGION))
        return false;
    for (int o = 0; o < node->n_outputs; o++) {
        const struct cm_use *use =
            node->outputs[o] ? cm_value_get(node->module, node->outputs[o])->uses : NULL;
        for (; use; use = use->next) {
            if (use->node || use->graph != graph || !updates[use->index])
                return false;
            any = true;
        }
    }
    return any;
}

void cm_updates_move(struct cm_session *session, const struct cm_graph *graph)
{
    const struct cm_session_options *options = &session->options;
    if (!options->n_updates)
        return;
    bool *updates = CM_NEW_ARRAY(session->arena, bool, graph->n_outputs);
    for (size_t u = 0; u < options->n_updates; u++)
        updates[options->updates[u].output] = true;
    struct cm_node *node = graph->first;
    for (size_t left = graph->n_nodes; left > 0; left--) {
        struct cm_node *next = node->next;
        if (only_updates(graph, node, updates)) {
            cm_node_move(node, NULL);
            session->n_updating++;
        }
        node = next;
    }
}

/* By slot: which of the steps that only update makes it, and how many of them read it. */
struct traffic {
    const struct cm_step *maker;
    size_t readers;
};

static struct traffic *count_traffic(const struct cm_session *session, struct cm_arena *arena)
{
    const struct cm_block *main = session->main;
    struct traffic *traffic = CM_NEW_ARRAY(arena, struct traffic, session->n_slots);
    for (size_t s = main->n_steps - session->n_updating; s < main->n_steps; s++) {
        const struct cm_step *step = &main->steps[s];
        for (int i = 0; i < step->n_in; i++)
            if (step->in[i] != CM_NO_SLOT)
                traffic[step->in[i]].readers++;
        for (int o = 0; o < step->n_out; o++)
            if (step->out[o] != CM_NO_SLOT)
                traffic[step->out[o]].maker = step;
    }
    return traffic;
}

static bool reads(const struct cm_step *step, cm_slot_id slot)
{
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] == slot)
            return true;
    return false;
}

void cm_updates_find(struct cm_session *session)
{
    const struct cm_session_options *options = &session->options;
    const struct cm_block *main = session->main;
    struct cm_arena *arena = session->arena;
    if (!options->n_updates)
        return;
    const struct traffic *traffic = count_traffic(session, arena);
    uint32_t *by_slot = CM_NEW_ARRAY(arena, uint32_t, session->n_slots);
    memset(by_slot, 0xff, session->n_slots * sizeof *by_slot);
    session->update_of = CM_NEW_ARRAY(arena, uint32_t, main->n_outputs);
    memset(session->update_of, 0xff, main->n_outputs * sizeof *session->update_of);
    session->n_updates = options->n_updates;
    session->updates = CM_NEW_ARRAY(arena, struct cm_update, session->n_updates);
    for (size_t u = 0; u < session->n_updates; u++) {
        struct cm_update *update = &session->updates[u];
        const cm_slot_id to = main->inputs[options->updates[u].input];
        update->input = options->updates[u].input;
        update->output = options->updates[u].output;
        const cm_slot_id from = main->outputs[update->output];
        if (by_slot[from] == CM_NO_SLOT)
            by_slot[from] = (uint32_t)u;
        update->leader = session->update_of[update->output] = by_slot[from];
        update->alone =
            traffic[from].maker && traffic[to].readers == 1 && reads(traffic[from].maker, to);
    }
    session->options.updates = NULL; /* they were lent */
}

/* ---- binding ---- */

static const struct cm_tensor *input_of(const struct cm_context *context,
                                        const struct cm_update *update)
{
    return &context->slots[context->session->main->inputs[update->input]].datum.tensor;
}

/* Everything the step reads is there before, as it is, and stays. */
static bool reads_plain(const struct cm_binder *b, const struct cm_bound_step *bound)
{
    for (int i = 0; i < bound->step->n_in; i++) {
        if (bound->step->in[i] == CM_NO_SLOT)
            continue;
        const struct cm_slot *slot = &b->context->slots[bound->step->in[i]];
        if (slot->storage == CM_STORAGE_LATE || bound->call.in[i] != &slot->datum.tensor ||
            slot->datum.tensor.layout)
            return false;
    }
    return true;
}

bool cm_binder_update_in_place(struct cm_binder *b, const struct cm_bound_step *bound, int o)
{
    const struct cm_step *step = bound->step;
    const size_t number = b->session->update_of[b->session->result_of[step->out[o]]];
    const struct cm_update *update = &b->session->updates[number];
    const struct cm_tensor *old = input_of(b->context, update);
    const struct cm_tensor *new = &b->context->slots[step->out[o]].datum.tensor;
    int from = -1;
    if (!b->updating || b->context->options->careful || !update->alone || !bound->with ||
        !bound->with->pieces || !bound->share || !reads_plain(b, bound) || new->layout ||
        new->type != old->type || !cm_shape_equal(&new->shape, &old->shape))
        return false;
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i] != b->session->main->inputs[update->input])
            continue;
        if (from >= 0 || bound->share(step->node, o, i) != CM_SHARE_OVERWRITE)
            return false;
        from = i;
    }
    if (from < 0)
        return false;
    b->binding->updates[number].in_place = true;
    b->in_place++;
    return true;
}

enum cm_status cm_binder_keep_update(struct cm_binder *b, size_t number)
{
    const struct cm_update *update = &b->session->updates[number];
    struct cm_bound_update *bound = &b->binding->updates[number];
    size_t bytes;
    if (bound->in_place || bound->kept || update->leader != number)
        return CM_OK;
    CM_TRY(cm_plain_bytes(input_of(b->context, update), &bytes, b->err));
    const int storage = cm_storage_new(&b->storages, bytes); /* may move them */
    bound->kept = true;
    bound->offset = b->storages.all.items[storage].offset;
    *CM_PUSH(b->arena, &b->binding->reads) = (struct cm_update_read){
        .tensor = &b->context->results[update->output].tensor, .output = update->output};
    return CM_OK;
}

enum cm_status cm_binder_keep_updates(struct cm_binder *b)
{
    struct cm_binding *binding = b->binding;
    int64_t first = 0;
    if (b->block != b->session->main || !b->session->n_updates)
        return CM_OK;
    for (size_t u = 0; u < b->session->n_updates; u++)
        CM_TRY(cm_binder_keep_update(b, u));
    binding->first_pieces = CM_NEW_ARRAY(b->arena, int64_t, binding->updating.count + 1);
    for (size_t s = 0; s < binding->updating.count; s++) {
        const struct cm_bound_step *bound = binding->updating.items[s];
        binding->first_pieces[s] = first;
        first += bound->with->pieces(&bound->call);
    }
    binding->first_pieces[binding->updating.count] = first;
    return CM_OK;
}

void cm_binder_add_updating(struct cm_binder *b)
{
    struct cm_binding *binding = b->binding;
    struct cm_bound_step *bound = binding->steps.items[--binding->steps.count];
    size_t output = 0;
    *CM_PUSH(b->arena, &binding->updating) = bound;
    for (int o = 0; o < bound->step->n_out; o++)
        if (bound->step->out[o] != CM_NO_SLOT)
            output = b->session->result_of[bound->step->out[o]];
    for (int i = 0; i < bound->step->n_in; i++) {
        const cm_slot_id slot = bound->step->in[i];
        const int storage = slot == CM_NO_SLOT ? -1 : b->context->slots[slot].storage;
        if (storage < 0)
            continue;                          /* from outside the run */
        b->storages.all.items[storage].live++; /* until the end */
        *CM_PUSH(b->arena, &binding->reads) =
            (struct cm_update_read){.tensor = bound->call.in[i], .output = output};
    }
}

/* ---- running ---- */

enum cm_status cm_updates_place(struct cm_context *context, const struct cm_binding *binding,
                                const struct cm_datum **results, struct cm_error *err)
{
    const struct cm_session *session = context->session;
    const struct cm_block_state *state = &context->blocks[session->main->number];
    if (!session->n_updates)
        return CM_OK;
    memcpy(context->results, *results, session->main->n_outputs * sizeof *context->results);
    for (size_t u = 0; u < session->n_updates; u++) {
        const struct cm_update *update = &session->updates[u];
        const struct cm_bound_update *bound = &binding->updates[update->leader];
        const struct cm_tensor *own = input_of(context, update);
        const struct cm_tensor *to = input_of(context, &session->updates[update->leader]);
        struct cm_datum *result = &context->results[update->output];
        if (own->type != to->type || !cm_shape_equal(&own->shape, &to->shape))
            return cm_refuse_room(session, update->output, own, to->type, &to->shape, err);
        *result = (struct cm_datum){.kind = CM_KIND_TENSOR};
        result->tensor = cm_tensor_borrow(
            to->type, &to->shape, bound->in_place ? to->data : state->memory + bound->offset);
    }
    *results = context->results;
    return CM_OK;
}

struct update_loop {
    const struct cm_binding *binding;
    int64_t offset; /* of the first piece */
    bool check;
    atomic_bool bad;
};

/* Pieces of all updating steps, counted through. */
static void run_pieces(void *arg, int64_t begin, int64_t end)
{
    struct update_loop *loop = arg;
    const int64_t *first = loop->binding->first_pieces;
    size_t low = 0, high = loop->binding->updating.count;
    begin += loop->offset;
    end += loop->offset;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (first[middle] <= begin)
            low = middle;
        else
            high = middle;
    }
    for (size_t s = low; begin < end; s++) {
        const struct cm_bound_step *bound = loop->binding->updating.items[s];
        const int64_t stop = first[s + 1] < end ? first[s + 1] : end;
        if (begin < stop &&
            !bound->with->run_pieces(&bound->call, begin - first[s], stop - first[s], loop->check))
            atomic_store_explicit(&loop->bad, true, memory_order_relaxed);
        begin = stop;
    }
}

/* All at once, or one by one for who wants to know how long each takes. */
static bool run_updating(struct cm_context *context, const struct cm_binding *binding)
{
    const struct cm_run_options *options = context->options;
    const int64_t *first = binding->first_pieces;
    const size_t count = binding->updating.count, at_once = options->step ? 1 : count;
    struct update_loop loop = {.binding = binding, .check = options->finite != NULL};
    for (size_t s = 0; s < count; s += at_once) {
        const uint64_t began = options->step ? cm_clock_ns() : 0;
        loop.offset = first[s];
        cm_parallel(first[s + at_once] - first[s], 1, run_pieces, &loop);
        if (options->step)
            cm_report_step(context, context->session->main, binding->updating.items[s], began);
    }
    return !atomic_load(&loop.bad);
}

enum cm_status cm_updates_run(struct cm_context *context, struct cm_error *err)
{
    const struct cm_session *session = context->session;
    const struct cm_run_options *options = context->options;
    const struct cm_binding *binding = context->blocks[session->main->number].active;
    bool finite = true;
    if (options->ready)
        CM_TRY(options->ready(options->ready_arg, binding->reads.items, binding->reads.count, err));
    if (options->no_updates)
        return CM_OK;
    finite = run_updating(context, binding);
    for (size_t u = 0; u < session->n_updates; u++) {
        const struct cm_update *update = &session->updates[u];
        const struct cm_tensor *from = &context->results[update->output].tensor;
        const struct cm_tensor *to = input_of(context, update);
        if (from->data != to->data)
            memcpy(to->data, from->data, cm_tensor_bytes(to));
    }
    if (options->finite)
        *options->finite = finite;
    return CM_OK;
}
