/* Constants in the layouts that kernels read: made once for a session, whatever the number of
 * contexts and of shapes they are bound for. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include "base/memory.h"

struct cm_packed_weights {
    const void *from;         /* the constant's bytes, which live as long as the session */
    struct cm_layout *layout; /* a copy, for comparing */
    void *data;
    size_t users;
    struct cm_packed_weights *next;
};

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
    if (!hold->packed)
        return;
    cm_session_lock(session);
    struct cm_packed_weights **at = &session->packed;
    while (*at != hold->packed)
        at = &(*at)->next;
    const bool last = --hold->packed->users == 0;
    if (last)
        *at = hold->packed->next;
    cm_session_unlock(session);
    if (last)
        free_packed(hold->packed);
}

/* With the session locked. */
static struct cm_packed_weights *find(const struct cm_session *session, const void *from,
                                      const struct cm_layout *layout)
{
    struct cm_packed_weights *packed = session->packed;
    while (packed && (packed->from != from || !cm_layout_equal(packed->layout, layout)))
        packed = packed->next;
    return packed;
}

static struct cm_packed_weights *new_packed(const struct cm_tensor *constant,
                                            const struct cm_layout *layout, struct cm_error *err,
                                            enum cm_status *status)
{
    struct cm_packed_weights *packed = cm_calloc(1, sizeof *packed);
    *status = CM_OK;
    if (packed) {
        packed->from = constant->data;
        packed->layout = cm_malloc(layout->size);
        packed->data = cm_malloc_aligned(CM_TENSOR_ALIGNMENT, layout->bytes ? layout->bytes : 1);
    }
    if (!packed || !packed->layout || !packed->data) {
        *status =
            cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of packed weights", layout->bytes);
    } else {
        memcpy(packed->layout, layout, layout->size);
        struct cm_tensor to = *constant;
        to.layout = layout;
        to.data = packed->data;
        *status = layout->reorder(constant, &to, err);
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
    hold->session = session;
    cm_arena_defer(arena, let_go, hold);
    cm_session_lock(session);
    hold->packed = find(session, constant->data, layout);
    if (hold->packed)
        hold->packed->users++;
    cm_session_unlock(session);
    if (!hold->packed) {
        enum cm_status status;
        struct cm_packed_weights *made = new_packed(constant, layout, err, &status);
        CM_TRY(status);
        cm_session_lock(session);
        hold->packed = find(session, constant->data, layout); /* another run may have been faster */
        if (!hold->packed) {
            made->next = session->packed;
            session->packed = made;
            hold->packed = made;
            made = NULL;
        }
        hold->packed->users++;
        cm_session_unlock(session);
        if (made)
            free_packed(made);
    }
    *data = hold->packed->data;
    return CM_OK;
}

size_t cm_packed_bytes(struct cm_session *session)
{
    size_t total = 0;
    cm_session_lock(session);
    for (const struct cm_packed_weights *packed = session->packed; packed; packed = packed->next)
        total += packed->layout->bytes;
    cm_session_unlock(session);
    return total;
}
