/* A training that another framework saved, in one form whatever the format: tensors and where their
 * bytes are, optimizer, schedule, position, and everything else that was found.
 *
 * Readers fill it (convert/format.h), `cameo checkpoint info` shows it, importing takes it apart
 * (convert/transfer/import_saved.h), exporting makes one from a model and hands it to a writer.
 * Names are those of the framework. Everything lives in the arena that it was read into; bytes of
 * tensors stay in the mapped files until they are wanted. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_SAVED_H
#define CM_CONVERT_SAVED_H

#include "base/array.h"
#include "base/map.h"
#include "bytes/item.h"
#include "bytes/saved_tensor.h"
#include "train/prepare/plan.h"

/* ---- what is in it ---- */

enum cm_saved_role {
    CM_SAVED_WEIGHT,  /* a parameter, or what may be one */
    CM_SAVED_BUFFER,  /* a state of the network that no optimizer moves: running statistics */
    CM_SAVED_MASTER,  /* the float copy of a weight that is kept in fewer bits; counts as the weight
                       */
    CM_SAVED_SLOT,    /* of an optimizer, for one weight */
    CM_SAVED_AVERAGE, /* a moving average of a weight */
    CM_SAVED_RANDOM,  /* state of a random generator */
    CM_SAVED_OTHER
};

struct cm_saved_entry {
    enum cm_saved_role role;
    struct cm_str name;  /* of the weight or buffer, as the framework has it, "fc1.weight" */
    struct cm_str slot;  /* the framework's word: "exp_avg", "momentum", "mu", "momentum0" */
    const char *meaning; /* of a slot: its name in PyTorch (train/plan.h, cm_plan_state.slot); NULL:
                            not known */
    struct cm_saved_tensor *tensor;
};

struct cm_saved_group {
    struct cm_plan_group settings;
    CM_ARRAY(struct cm_str) names; /* of weights */
    const struct cm_item *said;    /* the group as the file has it; NULL: nothing */
};

/* A fact that has no field of its own: "arguments", "random.python", "loops", "config". */
struct cm_saved_fact {
    struct cm_str key;
    const struct cm_item *value;
};

enum cm_schedule_known {
    CM_SCHEDULE_UNKNOWN, /* there is one, or may be, but not how it goes on */
    CM_SCHEDULE_NONE,    /* the rate is constant */
    CM_SCHEDULE_KNOWN
};

struct cm_saved {
    struct cm_arena *arena;
    struct cm_str path;
    const char *system;            /* "PyTorch Lightning" */
    const char *format;            /* "torch.save, zip" */
    struct cm_str version;         /* of the framework, where it is said; empty: not */
    CM_ARRAY(struct cm_str) files; /* that were read, beside path */
    struct cm_saved_mapped mapped; /* where those are in memory */
    CM_ARRAY(struct cm_saved_entry) entries;

    /* The optimizer. */
    bool has_optimizer;
    struct cm_str optimizer; /* as the framework calls it; empty: it does not say */
    enum cm_update_rule rule;
    enum cm_arithmetic arithmetic;
    CM_ARRAY(struct cm_saved_group) groups;
    struct cm_plan_clip clip;
    int64_t step;       /* updates so far; -1: not known */
    int64_t epoch;      /* -1: not known */
    int64_t accumulate; /* batches to an update; 0: not known */
    double loss_scale;  /* NAN: none */
    int64_t ranks;      /* that the state was partitioned over; 0: not, or not known */

    /* The schedule: phases by group of `groups`. */
    enum cm_schedule_known schedule_known;
    struct cm_str schedule_name; /* as it is called, "LambdaLR"; empty: it has no name */
    struct cm_rate_schedule schedule;

    const atomic_bool *cancel; /* writers look at it between writes; NULL: there is none */
    CM_ARRAY(struct cm_saved_fact) facts;
    struct cm_saved_texts {
        CM_ARRAY(struct cm_str);
    } unknown, /* sentences: what is in the files and was not understood, "optimizer.state[3] has a
                  slot 'foo'" */
        missing; /* sentences: what continuing needs and the files do not tell, "the learning rate:
                    optax stores none" */
};

/* Fresh and empty: numbers not known, clip NAN, schedule CM_SCHEDULE_NONE. */
struct cm_saved *cm_saved_new(struct cm_arena *arena, struct cm_str path);
struct cm_saved_entry *cm_saved_add(struct cm_saved *saved, enum cm_saved_role role,
                                    struct cm_str name, struct cm_saved_tensor *tensor);
struct cm_saved_entry *cm_saved_add_slot(struct cm_saved *saved, struct cm_str weight,
                                         struct cm_str slot, const char *meaning,
                                         struct cm_saved_tensor *tensor);
struct cm_saved_group *cm_saved_add_group(struct cm_saved *saved);
void cm_saved_tell(struct cm_saved *saved, const char *key, const struct cm_item *value);
/* The value of the fact with this key, or NULL. */
const struct cm_item *cm_saved_fact(const struct cm_saved *saved, const char *key);
void cm_saved_unknown(struct cm_saved *saved, const char *format, ...) CM_PRINTF(2, 3);
void cm_saved_missing(struct cm_saved *saved, const char *format, ...) CM_PRINTF(2, 3);
/* Adds a sentence. */
void cm_saved_note(struct cm_arena *arena, struct cm_saved_texts *texts, const char *format, ...)
    CM_PRINTF(3, 4);
/* Is there a slot of this meaning; NULL: of any that is known? */
bool cm_saved_has_slot(const struct cm_saved *saved, const char *meaning);

/* Entries by name: of slots those of a meaning, moving averages under "average", all others under
 * "". The float copy of a weight counts as the weight. */
struct cm_saved_index {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    struct cm_map map;
};
struct cm_saved_index cm_saved_index(struct cm_arena *arena, const struct cm_saved *saved);
/* The entry, or NULL; its tensor, or NULL. */
const struct cm_saved_entry *cm_saved_entry(const struct cm_saved_index *index, const char *kind,
                                            struct cm_str name);
const struct cm_saved_tensor *cm_saved_tensor_of(const struct cm_saved_index *index,
                                                 const char *kind, struct cm_str name);

#endif
