/* Bindings that are kept, the memory of blocks, and putting a binding's decisions into effect. */
// SPDX-License-Identifier: Apache-2.0
#include "base/forks.h"
#include "base/memory.h"
#include "exec/program.h"

/* ---- memory ---- */

/* Bytes the run holds: blocks, and what came from the pool since it began. */
static size_t held(const struct cm_context *context)
{
    const size_t used = cm_pool_used(context->pool);
    return context->block_bytes + (used > context->pool_before ? used - context->pool_before : 0);
}

static void free_memory(struct cm_context *context, struct cm_block_state *state)
{
    context->block_bytes -= state->memory_size;
    cm_free(state->memory);
    state->memory = NULL;
    state->memory_size = 0;
    state->active = NULL;
}

static bool over(const struct cm_context *context, size_t bytes)
{
    const size_t limit = context->session->options.memory_limit;
    const size_t now = held(context);
    return limit && (bytes > limit || now > limit - bytes);
}

/* Does the run stay within the session's limit with this many bytes more? Gives up memory of blocks
 * that are not running before it says no. */
static enum cm_status context_afford(struct cm_context *context, size_t bytes, struct cm_error *err)
{
    const size_t limit = context->session->options.memory_limit;
    if (limit) { /* buffers of other sizes, kept for the next run, must not add to it */
        const size_t rest = bytes < limit ? limit - bytes : 0;
        cm_pool_trim(context->pool,
                     (context->block_bytes < rest ? rest - context->block_bytes : 0) +
                         context->pool_before);
    }
    if (!over(context, bytes))
        return CM_OK;
    for (size_t b = 0; b < context->session->n_blocks; b++)
        if (!context->blocks[b].running)
            free_memory(context, &context->blocks[b]);
    if (!over(context, bytes))
        return CM_OK;
    return cm_fail(err, CM_LIMIT,
                   "%zu bytes beside the %zu in use would exceed the memory limit of %zu", bytes,
                   held(context), context->session->options.memory_limit);
}

enum cm_status cm_context_buffer(void *arg, size_t size, struct cm_buffer **out,
                                 struct cm_error *err)
{
    struct cm_context *context = arg;
    if (context->session->options.memory_limit)
        CM_TRY(context_afford(context, cm_pool_size(size), err));
    return cm_pool_get(context->pool, size, out, err);
}

enum cm_status cm_context_tensor(struct cm_context *context, enum cm_dtype type,
                                 const struct cm_shape *shape, struct cm_tensor *out,
                                 struct cm_error *err)
{
    int64_t count;
    size_t bytes;
    if (context->session->options.memory_limit && cm_shape_count(shape, &count) &&
        cm_dtype_bytes(type, count, &bytes))
        CM_TRY(context_afford(context, cm_pool_size(bytes), err));
    return cm_pool_tensor(context->pool, type, shape, out, err);
}

enum { LEAST = CM_TENSOR_ALIGNMENT }; /* so that even a block of empty tensors has an address */

size_t cm_binding_bytes(const struct cm_binding *binding)
{
    return binding->memory < LEAST ? LEAST : binding->memory;
}

static enum cm_status make_room(struct cm_context *context, struct cm_block_state *state,
                                size_t need, struct cm_error *err)
{
    /* Under a limit, a block that was once much larger does not keep others from their share. */
    const bool greedy = context->session->options.memory_limit && state->memory_size / 2 > need;
    if (need <= state->memory_size && !greedy)
        return CM_OK;
    free_memory(context, state);
    CM_TRY(context_afford(context, need, err));
    state->memory = cm_malloc_aligned(CM_TENSOR_ALIGNMENT, need);
    if (!state->memory)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of results", need);
    state->memory_size = need;
    context->block_bytes += need;
    return CM_OK;
}

/* ---- signatures ---- */

/* What the binding of a block depends on of one slot that is filled from outside. */
struct mark {
    int32_t kind, type, rank;
    uint32_t known; /* bytes of contents that count too */
};

static size_t put(char *text, size_t at, const void *bytes, size_t size)
{
    if (text && size)
        memcpy(text + at, bytes, size);
    return at + size;
}

static size_t put_slot(char *text, size_t at, const struct cm_slot *slot)
{
    const struct cm_tensor *tensor = &slot->datum.tensor;
    const struct mark mark = {(int32_t)slot->datum.kind, (int32_t)tensor->type, tensor->shape.rank,
                              slot->known ? (uint32_t)cm_tensor_bytes(slot->known) : 0};
    at = put(text, at, &mark, sizeof mark);
    at = put(text, at, tensor->shape.dims, (size_t)tensor->shape.rank * sizeof(int64_t));
    return slot->known ? put(text, at, slot->known->data, mark.known) : at;
}

/* How regions and updates are to be run, kinds, types and shapes of what comes from outside, and
 * contents found when the block around it was bound: equal signatures mean equal bindings. The
 * number of forks too: what oneDNN made for the threads of a parent waits for them in a child. */
static struct cm_str sign(struct cm_context *context, const struct cm_block *block,
                          struct cm_arena *arena)
{
    size_t size = 0;
    char *text = NULL;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1)
            text = cm_arena_alloc(arena, size + 1);
        const uint8_t how = (uint8_t)(context->options->apart + 2 * context->options->careful);
        const unsigned forks = cm_forks();
        size = put(text, 0, &how, sizeof how);
        size = put(text, size, &forks, sizeof forks);
        for (size_t i = 0; i < block->n_inputs; i++) {
            context->slots[block->inputs[i]].known = NULL;
            size = put_slot(text, size, &context->slots[block->inputs[i]]);
        }
        for (size_t i = 0; i < block->captured.count; i++)
            size = put_slot(text, size, &context->slots[block->captured.items[i]]);
    }
    return (struct cm_str){text, size};
}

/* ---- what is kept ---- */

static void binding_free(struct cm_binding *binding)
{
    cm_arena_release(&binding->arena);
    cm_free(binding);
}

static void forget_first(struct cm_block_state *state)
{
    struct cm_binding *first = state->bindings;
    state->bindings = first->next;
    state->n_bindings--;
    state->active = NULL; /* it was it, or the slots were about to be its */
    binding_free(first);
}

static void forget_oldest(struct cm_block_state *state)
{
    struct cm_binding **at = &state->bindings;
    while ((*at)->next)
        at = &(*at)->next;
    if (state->active == *at)
        state->active = NULL;
    binding_free(*at);
    *at = NULL;
    state->n_bindings--;
}

void cm_block_state_release(struct cm_block_state *state)
{
    while (state->bindings)
        forget_first(state);
    cm_free(state->memory);
    cm_arena_release(&state->arena);
    *state = (struct cm_block_state){0};
}

static enum cm_status new_binding(struct cm_context *context, struct cm_block *block,
                                  struct cm_str signature, struct cm_binding **out,
                                  struct cm_error *err)
{
    struct cm_block_state *state = &context->blocks[block->number];
    if (state->n_bindings >= CM_RECENT_BINDINGS)
        forget_oldest(state);
    struct cm_binding *binding = cm_calloc(1, sizeof *binding);
    if (!binding)
        return cm_fail(err, CM_NO_MEMORY, "no memory to prepare the run");
    cm_arena_init(&binding->arena, context->guard);
    /* In the list from the start, so that it is found and freed if memory runs out half way. */
    binding->next = state->bindings;
    state->bindings = binding;
    state->n_bindings++;
    state->active = NULL;
    const enum cm_status status = cm_binding_build(context, block, binding, err);
    if (status) {
        forget_first(state);
        return status;
    }
    binding->signature = cm_arena_str(&binding->arena, signature);
    binding->ready = true;
    *out = binding;
    return CM_OK;
}

/* The binding of this signature, moved to the front; NULL: there is none. */
static struct cm_binding *find(struct cm_block_state *state, struct cm_str signature)
{
    while (state->bindings && !state->bindings->ready)
        forget_first(state);
    struct cm_binding **at = &state->bindings;
    while (*at && !cm_str_equal((*at)->signature, signature))
        at = &(*at)->next;
    struct cm_binding *binding = *at;
    if (binding) {
        *at = binding->next;
        binding->next = state->bindings;
        state->bindings = binding;
    }
    return binding;
}

/* ---- putting it into effect ---- */

/* Puts the binding's decisions into the slots, but for those that each run makes anew. */
static void activate(struct cm_context *context, struct cm_block_state *state,
                     const struct cm_binding *binding)
{
    for (size_t i = 0; i < binding->extras.count; i++)
        binding->extras.items[i].tensor->data = state->memory + binding->extras.items[i].offset;
    for (size_t i = 0; i < binding->places.count; i++) {
        const struct cm_place *place = &binding->places.items[i];
        struct cm_slot *slot = &context->slots[place->slot];
        struct cm_tensor *tensor = &slot->datum.tensor;
        slot->known = place->known;
        if (place->kind == CM_PLACE_AT_RUN) {
            slot->datum = (struct cm_datum){0};
            continue;
        }
        slot->datum.kind = CM_KIND_TENSOR;
        tensor->type = place->type->dtype;
        cm_type_shape(place->type, &tensor->shape);
        tensor->layout = place->layout;
        tensor->buffer = NULL;
        tensor->data = place->kind == CM_PLACE_BLOCK   ? state->memory + place->offset
                       : place->kind == CM_PLACE_KNOWN ? place->known->data
                                                       : NULL;
    }
    state->active = binding;
}

enum cm_status cm_bind_decide(struct cm_context *context, struct cm_block *block,
                              struct cm_binding **out, struct cm_error *err)
{
    struct cm_block_state *state = &context->blocks[block->number];
    if (!state->arena.guard)
        cm_arena_lend(&state->arena, context->guard);
    const struct cm_str signature = sign(context, block, &state->arena);
    struct cm_binding *binding = find(state, signature);
    if (!binding)
        CM_TRY(new_binding(context, block, signature, &binding, err));
    cm_arena_reset(&state->arena);
    *out = binding;
    return CM_OK;
}

enum cm_status cm_bind(struct cm_context *context, struct cm_block *block, struct cm_binding **out,
                       struct cm_error *err)
{
    struct cm_block_state *state = &context->blocks[block->number];
    struct cm_binding *binding;
    CM_TRY(cm_bind_decide(context, block, &binding, err));
    CM_TRY(make_room(context, state, cm_binding_bytes(binding), err));
    if (state->active != binding)
        activate(context, state, binding);
    *out = binding;
    return CM_OK;
}
