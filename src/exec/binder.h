/* A block on its way to being bound: shared by bind.c, which goes through its steps, and places.c,
 * which finds memory for values. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EXEC_BINDER_H
#define CM_EXEC_BINDER_H

#include "exec/program.h"
#include "exec/storage.h"

struct cm_binder {
    struct cm_context *context;
    struct cm_session *session;
    struct cm_block *block;
    struct cm_binding *binding;
    struct cm_arena *arena; /* the binding's */
    struct cm_storages storages;
    bool updating;   /* the step that is being bound may update inputs .. */
    size_t in_place; /* .. and so many it does, in their own memory */
    struct cm_error *err;
};

/* Output o of a step is the next value of an input: true where the step may write it there. */
bool cm_binder_update_in_place(struct cm_binder *b, const struct cm_bound_step *bound, int o);
/* Memory for the new values of all updates that do not work in place. */
enum cm_status cm_binder_keep_updates(struct cm_binder *b) CM_MUST_CHECK;
enum cm_status cm_binder_keep_update(struct cm_binder *b, size_t update) CM_MUST_CHECK;
/* The step that was bound last runs with the updates: what it reads lives until then. */
void cm_binder_add_updating(struct cm_binder *b);

/* Notes what is decided of a slot; it has no storage yet. */
struct cm_place *cm_binder_new_place(struct cm_binder *b, cm_slot_id slot, enum cm_place_kind kind);
/* Makes the slot an empty tensor of a concrete type. */
void cm_binder_set_type(struct cm_binder *b, cm_slot_id id, const struct cm_type *type);
/* Bytes of a tensor that lies row by row. */
enum cm_status cm_plain_bytes(const struct cm_tensor *tensor, size_t *out,
                              struct cm_error *err) CM_MUST_CHECK;
/* Finds memory for output o of a step whose kernel and layouts are chosen. */
enum cm_status cm_binder_place_output(struct cm_binder *b, const struct cm_bound_step *bound, int o,
                                      bool *is_view) CM_MUST_CHECK;

/* Memory that lives as long as the binding, aligned for tensors. */
void *cm_binder_aligned(struct cm_binder *b, size_t bytes);
/* A place for contents that are found now; the caller fills them in. */
struct cm_tensor *cm_binder_new_known(struct cm_binder *b, cm_slot_id id);
/* Takes shape arithmetic that the rule has done already: all elements are numbers. False where it
 * is not so. */
bool cm_binder_take_known(struct cm_binder *b, const struct cm_step *step,
                          const struct cm_fact *results);

#endif
