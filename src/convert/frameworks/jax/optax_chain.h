/* A chain of optax's transformations while it is read. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_OPTAX_CHAIN_H
#define CM_CONVERT_OPTAX_CHAIN_H

#include "convert/saved.h"
#include "train/rules.h"

struct cm_optax_rule {
    const struct cm_optimizer_optax *is; /* NULL ends a list */
    enum cm_update_rule rule;
    struct {
        const char *field, *meaning;
    } fields[4];
    size_t n_fields;
};

/* What is not stored, told once for all groups. */
enum cm_optax_need {
    CM_NEED_RATE = 1,
    CM_NEED_SCHEDULE = 2,
    CM_NEED_MOMENTUM = 8,
    CM_NEED_DECAY = 16,
    CM_NEED_MASK = 32,
    CM_NEED_CLIP = 128,
    CM_NEED_ACCUMULATION = 512,
    CM_NEED_NAMES = 1024,
};

/* Numbers of an optimizer that optax does not store: beta1, beta2, epsilon. */
enum { CM_OPTAX_NUMBERS = 3 };

struct cm_optax {
    struct cm_saved *saved;
    struct cm_arena *arena;
    struct cm_str prefix;
    struct cm_map weights; /* name -> 1 + number of its entry */
    int group;             /* that is being read, -1: the one of all weights */
    unsigned needs;
    enum cm_update_rule lacking;  /* the rule whose settings below are not stored */
    bool lacks[CM_OPTAX_NUMBERS]; /* by number of the setting */
    /* The chain of transformations as far as it was read, those without state counted. */
    const struct cm_optax_rule *rules, *rule; /* all of them; which it is */
    size_t before, after;
    bool masked, has_trace;
    int64_t count, schedule_count; /* -1: there is none */
    const struct cm_item *hyperparams;
};

/* How many transformations without state follow a state of this form. */
size_t cm_optax_after(const struct cm_optimizer_optax *form, bool is_decoupled);
/* The settings of a group, after its chain was read. */
void cm_optax_conclude(struct cm_optax *o, struct cm_saved_group *group, struct cm_str path);
/* Says in saved->missing what optax does not store. */
void cm_optax_tell_needs(struct cm_optax *o);

#endif
