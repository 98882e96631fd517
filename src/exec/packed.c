/* Constants in the layouts that kernels read: made once for a session, whatever the number of
 * contexts and of shapes they are bound for. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"

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
    void *room; /* for copies of constants that lie unaligned, one at a time; freed after a run */
    size_t room_size;
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

/* Room for so many bytes, given back with leave_room. NULL: no memory. */
static void *take_room(struct cm_session *session, size_t bytes, size_t *size)
{
    struct cm_pack_table *all = session->packed;
    cm_session_lock(session);
    void *room = all->room;
    *size = all->room_size;
    all->room = NULL;
    cm_session_unlock(session);
    if (room && *size >= bytes)
        return room;
    cm_free(room);
    for (*size = 1; *size < bytes;)
        *size *= 2; /* weights grow from layer to layer */
    return cm_malloc_aligned(CM_TENSOR_ALIGNMENT, *size);
}

static void leave_room(struct cm_session *session, void *room, size_t size)
{
    struct cm_pack_table *all = session->packed;
    cm_session_lock(session);
    void *other = all->room;
    all->room = room;
    all->room_size = size;
    cm_session_unlock(session);
    cm_free(other); /* of a run at the same time */
}

void cm_pack_table_rest(struct cm_session *session)
{
    cm_session_lock(session);
    void *room = session->packed->room;
    session->packed->room = NULL;
    cm_session_unlock(session);
    cm_free(room);
}

/* Constants that lie unaligned are read so by those who can, else through an aligned copy. */
static enum cm_status move_constant(struct cm_session *session, const struct cm_tensor *constant,
                                    struct cm_tensor *to, struct cm_error *err)
{
    struct cm_tensor from = *constant;
    const size_t bytes = cm_tensor_bytes(constant);
    size_t size;
    if (!from.layout)
        return to->layout->reorder(&from, to, err);
    from.layout = NULL;
    if (to->layout->reads_unaligned)
        return to->layout->reorder(&from, to, err);
    from.data = take_room(session, bytes, &size);
    if (!from.data)
        return cm_fail(err, CM_NO_MEMORY, "no memory to pack %zu bytes of weights", bytes);
    memcpy(from.data, constant->data, bytes);
    const enum cm_status status = to->layout->reorder(&from, to, err);
    leave_room(session, from.data, size);
    return status;
}

static struct cm_packed_weights *new_packed(struct cm_session *session,
                                            const struct cm_tensor *constant,
                                            const struct cm_layout *layout, struct cm_error *err,
                                            enum cm_status *status)
{
    struct cm_packed_weights *packed = cm_calloc(1, sizeof *packed);
    *status = CM_OK;
    if (packed) {
        packed->from = constant->data;
        packed->layout = cm_malloc(layout->size);
        packed->data = cm_malloc_aligned(CM_TENSOR_ALIGNMENT, layout->bytes);
    }
    if (!packed || !packed->layout || !packed->data) {
        *status =
            cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of packed weights", layout->bytes);
    } else {
        memcpy(packed->layout, layout, layout->size);
        struct cm_tensor to = *constant;
        to.layout = layout;
        to.data = packed->data;
        *status = move_constant(session, constant, &to, err);
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
