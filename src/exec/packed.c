/* Constants in the layouts that kernels read: made once for a session, whatever the number of
 * contexts and of shapes they are bound for. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"

struct cm_packed_weights {
    const void *from;         /* the constant's bytes, which live as long as the session */
    struct cm_layout *layout; /* a copy, for comparing */
    void *data;
    size_t users;
    struct cm_packed_weights *next, **at; /* at: what points here */
};

/* Guarded by the session's lock, which others wait for in a loop: so there are as many chains as
 * there can be constants from the beginning, and each is short. */
struct cm_pack_table {
    size_t bytes;
    size_t mask; /* chains but one, a power of two */
    struct cm_packed_weights *chains[];
};

struct cm_pack_table *cm_pack_table_new(struct cm_arena *arena, size_t n_constants)
{
    size_t n = 1;
    while (n < n_constants)
        n *= 2;
    struct cm_pack_table *packed =
        cm_arena_alloc(arena, sizeof *packed + n * sizeof packed->chains[0]);
    packed->mask = n - 1;
    return packed;
}

/* One holder of it. */
struct hold {
    struct cm_session *session;
    struct cm_packed_weights *packed;
};

static void free_packed(struct cm_packed_weights *packed)
{
    cm_free(packed->layout);
    cm_free(packed->data);
    cm_free(packed);
}

static void let_go(void *what)
{
    const struct hold *hold = what;
    struct cm_session *session = hold->session;
    struct cm_packed_weights *packed = hold->packed;
    if (!packed)
        return;
    cm_session_lock(session);
    const bool last = --packed->users == 0;
    if (last) {
        *packed->at = packed->next;
        if (packed->next)
            packed->next->at = packed->at;
        session->packed->bytes -= packed->layout->bytes;
    }
    cm_session_unlock(session);
    if (last)
        free_packed(packed);
}

/* Layouts that are the same have the same size, and little else in them can be relied on. */
static struct cm_packed_weights **chain_of(struct cm_session *session, const void *from,
                                           const struct cm_layout *layout)
{
    const uint64_t key[] = {(uintptr_t)from, layout->bytes};
    const uint64_t hash = cm_hash((struct cm_str){(const char *)key, sizeof key});
    return &session->packed->chains[hash & session->packed->mask];
}

/* With the session locked: one user more, if it is there. */
static struct cm_packed_weights *join(struct cm_packed_weights *const *chain, const void *from,
                                      const struct cm_layout *layout)
{
    struct cm_packed_weights *packed = *chain;
    while (packed && (packed->from != from || !cm_layout_equal(packed->layout, layout)))
        packed = packed->next;
    if (packed)
        packed->users++;
    return packed;
}

/* With the session locked. */
static void enter(struct cm_pack_table *all, struct cm_packed_weights **chain,
                  struct cm_packed_weights *made)
{
    made->users = 1;
    made->next = *chain;
    made->at = chain;
    if (made->next)
        made->next->at = &made->next;
    *chain = made;
    all->bytes += made->layout->bytes;
}

/* Constants that lie unaligned are read so by those who can, else through an aligned copy. */
static enum cm_status move_constant(const struct cm_tensor *constant, struct cm_tensor *to,
                                    struct cm_error *err)
{
    struct cm_tensor from = *constant, copy;
    from.layout = NULL;
    if (!constant->layout || to->layout->reads_unaligned)
        return to->layout->reorder(&from, to, err);
    CM_TRY(cm_tensor_copy(&from, &copy, err));
    const enum cm_status status = to->layout->reorder(&copy, to, err);
    cm_tensor_drop(&copy);
    return status;
}

enum { PIECE = 8 << 20 }; /* bytes of a constant that are in memory twice */

/* The same piece by piece, where the layout can: pages of the file that were read are forgotten. */
static enum cm_status move_in_pieces(const struct cm_session *session,
                                     const struct cm_tensor *constant, struct cm_tensor *to,
                                     struct cm_error *err)
{
    const size_t bytes = cm_tensor_bytes(constant);
    if (bytes <= PIECE || !to->layout->reorder_rows)
        return move_constant(constant, to, err);
    const int64_t rows = constant->shape.dims[0];
    const size_t of_row = bytes / (size_t)rows;
    const int64_t some = (int64_t)cm_round_up(PIECE / of_row + 1, CM_LAYOUT_ROWS);
    for (int64_t begin = 0; begin < rows; begin += some) {
        const int64_t end = rows - begin < some ? rows : begin + some;
        to->layout->reorder_rows(constant, to, begin, end);
        cm_mapped_forget(session->mapped, session->n_mapped,
                         (const char *)constant->data + (size_t)begin * of_row,
                         (size_t)(end - begin) * of_row);
    }
    return CM_OK;
}

static struct cm_packed_weights *new_packed(const struct cm_session *session,
                                            const struct cm_tensor *constant,
                                            const struct cm_layout *layout, struct cm_error *err,
                                            enum cm_status *status)
{
    struct cm_packed_weights *packed = cm_calloc(1, sizeof *packed);
    *status = CM_OK;
    if (packed) {
        packed->from = constant->data;
        packed->layout = cm_malloc(layout->size);
        packed->data = layout->is_streamed ? cm_malloc_aligned(CM_TENSOR_ALIGNMENT, layout->bytes)
                                           : cm_malloc_on_pages(CM_TENSOR_ALIGNMENT, layout->bytes);
    }
    if (!packed || !packed->layout || !packed->data) {
        *status =
            cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of packed weights", layout->bytes);
    } else {
        memcpy(packed->layout, layout, layout->size);
        struct cm_tensor to = *constant;
        to.layout = layout;
        to.data = packed->data;
        *status = move_in_pieces(session, constant, &to, err);
    }
    if (*status && packed)
        free_packed(packed);
    return *status ? NULL : packed;
}

enum cm_status cm_pack_constant(struct cm_session *session, struct cm_arena *arena,
                                const struct cm_tensor *constant, const struct cm_layout *layout,
                                void **data, struct cm_error *err)
{
    struct hold *hold = CM_NEW(arena, struct hold);
    struct cm_packed_weights **chain = chain_of(session, constant->data, layout);
    hold->session = session;
    cm_arena_defer(arena, let_go, hold);
    cm_session_lock(session);
    hold->packed = join(chain, constant->data, layout);
    cm_session_unlock(session);
    if (!hold->packed) {
        enum cm_status status;
        struct cm_packed_weights *made = new_packed(session, constant, layout, err, &status);
        CM_TRY(status);
        cm_session_lock(session);
        hold->packed = join(chain, constant->data, layout); /* another run may have been faster */
        const bool is_first = !hold->packed;
        if (is_first) {
            enter(session->packed, chain, made);
            hold->packed = made;
        }
        cm_session_unlock(session);
        if (!is_first)
            free_packed(made);
        cm_mapped_forget(session->mapped, session->n_mapped, constant->data,
                         cm_tensor_bytes(constant));
    }
    *data = hold->packed->data;
    return CM_OK;
}

/* ---- the first runs ----
 *
 * Who runs a model once should not pay for memory that holds its weights a second time: pages that
 * nobody used before take longer to get than a weight takes to move. So the first run of a session
 * moves each weight just before its step, to memory that all share, or reads it where it lies. No
 * later run should be much slower than the first, so each packs a limited number of bytes. A weight
 * beyond the limit that is read where it lies is packed after as many runs as its packing costs:
 * packing 553 MB of a VGG-16 took 2 s, and saved 0.05 s of each run. The layouts are the same, and
 * so are the bits. */

enum {
    MOST_MOVED = 16 << 20,      /* bytes of a weight that is moved; larger ones are packed */
    PACKED_IN_A_RUN = 16 << 20, /* bytes */
    RUNS_BEFORE_LARGE = 32,     /* that are made before a large weight is packed */
};

bool cm_weight_waits(struct cm_context *context, const struct cm_block *block,
                     struct cm_binding *binding, struct cm_bound_step *bound, int input,
                     const struct cm_layout *layout, const struct cm_datum **in)
{
    const struct cm_session *session = context->session;
    const struct cm_tensor *constant = session->constants[bound->step->in[input]];
    if (!constant || !layout || atomic_load(&session->has_run))
        return false;
    struct cm_waiting one = {bound, input, layout, NULL, 0};
    if (!layout->can_wait) { /* a body may run a thousand times in the first run */
        if (!layout->size || layout->bytes > MOST_MOVED || block != session->main)
            return false;
        for (size_t i = 0; i < bound->n_waiting; i++) {
            const struct cm_waiting *other = &binding->waiting.items[bound->first_waiting + i];
            one.offset += other->moved ? cm_round_up(other->layout->bytes, CM_TENSOR_ALIGNMENT) : 0;
        }
        if (binding->shared_bytes < one.offset + layout->bytes)
            binding->shared_bytes = one.offset + layout->bytes;
        one.moved = CM_NEW(&binding->arena, struct cm_datum);
        one.moved->kind = CM_KIND_TENSOR;
        one.moved->tensor = *constant;
        one.moved->tensor.buffer = NULL;
        one.moved->tensor.layout = layout;
        *in = one.moved;
    }
    if (!bound->n_waiting++)
        bound->first_waiting = binding->waiting.count;
    *CM_PUSH(&binding->arena, &binding->waiting) = one;
    return true;
}

static void free_shared(void *binding_)
{
    struct cm_binding *binding = binding_;
    cm_free(binding->shared);
    binding->shared = NULL;
}

static enum cm_status make_shared(struct cm_binding *binding, struct cm_error *err)
{
    if (!binding->shared_bytes || binding->shared)
        return CM_OK;
    cm_arena_defer(&binding->arena, free_shared, binding);
    binding->shared = cm_malloc_on_pages(CM_TENSOR_ALIGNMENT, binding->shared_bytes);
    if (!binding->shared)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of packed weights",
                       binding->shared_bytes);
    for (size_t i = 0; i < binding->waiting.count; i++) {
        const struct cm_waiting *one = &binding->waiting.items[i];
        if (one->moved)
            one->moved->tensor.data = (char *)binding->shared + one->offset;
    }
    return CM_OK;
}

static enum cm_status pack_waiting(struct cm_session *session, struct cm_binding *binding,
                                   const struct cm_waiting *one, struct cm_error *err)
{
    const struct cm_tensor *constant = session->constants[one->step->step->in[one->input]];
    struct cm_datum *packed = one->moved;
    void *data;
    CM_TRY(cm_pack_constant(session, &binding->arena, constant, one->layout, &data, err));
    if (!packed)
        packed = CM_NEW(&binding->arena, struct cm_datum);
    packed->kind = CM_KIND_TENSOR;
    packed->tensor = *constant;
    packed->tensor.buffer = NULL;
    packed->tensor.layout = one->layout;
    packed->tensor.data = data;
    one->step->in[one->input] = &packed->tensor;
    one->step->in_datum[one->input] = packed;
    return CM_OK;
}

/* All operands of a step that wait, which are beside each other in the list. */
static size_t waiting_bytes(const struct cm_binding *binding, const struct cm_bound_step *step)
{
    size_t bytes = 0;
    for (size_t i = 0; i < step->n_waiting; i++)
        bytes += binding->waiting.items[step->first_waiting + i].layout->bytes;
    return bytes;
}

/* Is there a weight left that is moved before its step? */
static bool any_moved(const struct cm_binding *binding)
{
    for (size_t i = 0; i < binding->waiting.count; i++)
        if (binding->waiting.items[i].moved && binding->waiting.items[i].step->n_waiting)
            return true;
    return false;
}

/* At least one step a run, if only steps with large weights are left: after some runs. */
static enum cm_status pack_some(struct cm_session *session, struct cm_binding *binding,
                                struct cm_error *err)
{
    const bool large_too = ++binding->runs > RUNS_BEFORE_LARGE;
    size_t bytes = 0;
    for (size_t i = 0; i < binding->waiting.count && bytes < PACKED_IN_A_RUN; i++) {
        struct cm_bound_step *step = binding->waiting.items[i].step;
        const size_t needed = waiting_bytes(binding, step);
        if (!needed || (needed > PACKED_IN_A_RUN && !large_too) ||
            (bytes && bytes + needed > PACKED_IN_A_RUN))
            continue;
        for (size_t w = 0; w < step->n_waiting; w++)
            CM_TRY(pack_waiting(session, binding, &binding->waiting.items[step->first_waiting + w],
                                err));
        bytes += needed;
        binding->n_packed += step->n_waiting;
        step->n_waiting = 0;
    }
    if (!any_moved(binding)) {
        free_shared(binding);
        binding->shared_bytes = 0;
    }
    if (binding->n_packed == binding->waiting.count)
        binding->waiting.count = 0;
    return CM_OK;
}

enum cm_status cm_weights_ready(struct cm_context *context, struct cm_binding *binding,
                                struct cm_error *err)
{
    struct cm_session *session = context->session;
    if (!binding->arena.guard)
        cm_arena_lend(&binding->arena, context->guard);
    CM_TRY(make_shared(binding, err));
    if (!atomic_load(&session->has_run))
        return CM_OK;
    return binding->waiting.count ? pack_some(session, binding, err) : CM_OK;
}

enum cm_status cm_weights_move(const struct cm_binding *binding, const struct cm_bound_step *bound,
                               struct cm_error *err)
{
    for (size_t i = 0; i < bound->n_waiting; i++) {
        const struct cm_waiting *one = &binding->waiting.items[bound->first_waiting + i];
        if (one->moved)
            CM_TRY(move_constant(bound->context->session->constants[bound->step->in[one->input]],
                                 &one->moved->tensor, err));
    }
    return CM_OK;
}

enum cm_status cm_align_constant(struct cm_session *session, cm_slot_id slot,
                                 const struct cm_datum **out, struct cm_error *err)
{
    const struct cm_tensor *constant = session->constants[slot];
    cm_session_lock(session);
    *out = session->aligned[slot];
    cm_session_unlock(session);
    if (*out)
        return CM_OK;
    struct cm_datum *made = cm_calloc(1, sizeof *made);
    if (!made)
        return cm_fail(err, CM_NO_MEMORY, "no memory for another tensor");
    const struct cm_buffer_source *source = cm_buffer_enter(NULL); /* it outlives the run */
    const enum cm_status status =
        cm_tensor_new(constant->type, &constant->shape, &made->tensor, err);
    cm_buffer_enter(source);
    if (status) {
        cm_free(made);
        return status;
    }
    made->kind = CM_KIND_TENSOR;
    memcpy(made->tensor.data, constant->data, cm_tensor_bytes(constant));
    cm_session_lock(session);
    *out = session->aligned[slot];
    if (!*out)
        *out = session->aligned[slot] = made;
    cm_session_unlock(session);
    if (*out != made) { /* another run was faster */
        cm_datum_drop(made);
        cm_free(made);
    }
    cm_mapped_forget(session->mapped, session->n_mapped, constant->data, cm_tensor_bytes(constant));
    return CM_OK;
}

size_t cm_aligned_bytes(struct cm_session *session)
{
    size_t bytes = 0;
    cm_session_lock(session);
    for (size_t i = 0; i < session->n_slots; i++)
        bytes += session->aligned[i] ? cm_tensor_bytes(&session->aligned[i]->tensor) : 0;
    cm_session_unlock(session);
    return bytes;
}

void cm_drop_aligned(struct cm_session *session)
{
    for (size_t i = 0; session->aligned && i < session->n_slots; i++)
        if (session->aligned[i]) {
            cm_datum_drop(session->aligned[i]);
            cm_free(session->aligned[i]);
        }
    session->aligned = NULL;
}

void cm_session_set_mapped(struct cm_session *session, const struct cm_str *ranges, size_t n)
{
    session->mapped = ranges;
    session->n_mapped = n;
}

size_t cm_packed_bytes(struct cm_session *session)
{
    cm_session_lock(session);
    const size_t bytes = session->packed->bytes;
    cm_session_unlock(session);
    return bytes;
}
