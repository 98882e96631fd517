/* Conditions of a run: what must be the same for a resumed run to end with the bits of one that was
 * never stopped. They are texts by key, kept in every checkpoint. The library's own are about the
 * machine (version, instruction set, backends, threads), about how the graph is compiled and drawn
 * from (passes, seed) and about the data; a caller adds what only it knows. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_CONDITIONS_H
#define CM_TRAIN_CONDITIONS_H

#include "train/feeder.h"
#include "train/trainer.h"

struct cm_note {
    struct cm_str key, value; /* UTF-8 */
};

struct cm_notes {
    struct cm_note *items;
    size_t count, capacity;
};

/* Both are borrowed, and NUL follows them. */
void cm_notes_add(struct cm_arena *arena, struct cm_notes *notes, const char *key,
                  struct cm_str value);
/* The value of a key; data NULL: there is none. */
struct cm_str cm_notes_find(const struct cm_notes *notes, struct cm_str key);

/* What a step of the trainer depends on beside its model. */
void cm_conditions_add_trainer(struct cm_arena *arena, struct cm_notes *to,
                               const struct cm_trainer *trainer);
/* Which batches come in which order. */
void cm_conditions_add_data(struct cm_arena *arena, struct cm_notes *to,
                            const struct cm_trainer *trainer, const struct cm_feeder *feeder);

/* Hears of each condition that differs; the texts end with NUL. */
typedef void cm_difference_fn(void *arg, const char *key, const char *was, const char *now);

struct cm_resume_options {
    bool anyway; /* differences are told, and resumed from all the same */
    cm_difference_fn *difference;
    void *difference_arg;
};

/* Every condition of now must be among those of was, with the same value. options may be NULL. */
enum cm_status cm_conditions_compare(const struct cm_notes *was, const struct cm_notes *now,
                                     const struct cm_resume_options *options,
                                     struct cm_error *err) CM_MUST_CHECK;

#endif
