/* The part of an algorithm behind its gradients, while it is made from a plan: numbers that
 * formulas ask for by name, rates, what becomes of gradients, rules. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_UPDATE_H
#define CM_TRAIN_UPDATE_H

#include "base/array.h"
#include "train/prepare/preparation.h"

/* A number that formulas ask for by name. */
struct cm_number {
    const char *name;    /* that formulas have for it */
    const char *called;  /* that the graph has for it: another for each group */
    double value;        /* of a constant */
    cm_value computed;   /* in double, when the step computes it; 0: a constant */
    cm_value rounded[2]; /* that or the constant as float and as double, once somebody asked */
};

struct cm_numbers {
    CM_ARRAY(struct cm_number);
};

/* Functions of data/training/: of the optimizer, and those that all share. */
enum cm_update_function {
    CM_UPDATE_GRADIENT,
    CM_UPDATE_NUMBERS,
    CM_UPDATE_ALL_NUMBERS,
    CM_UPDATE_WEIGHT,
    CM_UPDATE_MOVE,
    CM_UPDATE_FUNCTIONS
};

/* A group of weights with all its settings: none is NAN or -1. */
struct cm_update_group {
    struct cm_plan_group is;
    struct cm_numbers numbers;
    const struct cm_function_proto *functions[CM_UPDATE_FUNCTIONS][2]; /* once read; of matrices */
};

struct cm_updating {
    struct cm_preparation *p;
    const struct cm_plan *plan;
    struct cm_numbers numbers; /* that all groups have */
    struct cm_update_group *groups;
    int64_t warmup; /* updates over which rates rise, before the schedule begins */
    cm_value apply; /* accumulating: is this the batch that moves the weights? */
};

enum { CM_SLOT_MAX = 8 };

struct cm_optimizer_state;

struct cm_moving_state {
    const struct cm_optimizer_state *is;
    struct cm_prepared_binding binding;
};

/* A weight on its way through the formulas; w and g are its value and its gradient. */
struct cm_moving {
    cm_value weight; /* of the model */
    cm_value w, g;
    cm_value move, next; /* by how much the weight goes down, or where it goes */
    bool is_matrix;      /* it has two axes or more */
    struct cm_update_group *group;
    struct cm_str name;
    enum cm_dtype dtype; /* that it is moved in: a float16 in float */
    struct cm_moving_state states[CM_SLOT_MAX];
    size_t n_states;
};

/* update.c: numbers of one group, or of all (group NULL). A later one of the same name replaces. */
cm_value cm_update_compute(struct cm_updating *u, struct cm_update_group *group, const char *name,
                           cm_value value);
cm_value cm_update_number(struct cm_updating *u, struct cm_update_group *group, const char *name,
                          enum cm_dtype dtype);
bool cm_update_has(const struct cm_updating *u, const struct cm_update_group *group,
                   const char *name);
/* A number of all groups in double, as schedules compute with. */
cm_value cm_update_exact(struct cm_updating *u, const char *name);
/* state becomes next: through a switch when gradients are accumulated. */
void cm_update_bind(struct cm_updating *u, cm_value state, cm_value next);

#define CM_STEP_TERM(u, word, op, ...)    cm_term((u)->p, CM_STR("training"), word, op, __VA_ARGS__)
#define CM_MOVE_TERM(u, m, word, op, ...) cm_term((u)->p, (m)->name, word, op, __VA_ARGS__)

/* plan.c: a group's settings with the defaults of rule and arithmetic for what is not given. */
struct cm_plan_group cm_plan_group_full(const struct cm_plan *plan, size_t group);

/* rates.c: the rate of each group, "lr", as a number of it and an output of the algorithm. */
void cm_update_rates(struct cm_updating *u);
/* clip_gradients.c: averages over batches, and no longer than they may be. */
void cm_update_accumulation(struct cm_updating *u);
void cm_update_gradients(struct cm_updating *u, struct cm_moving *moving, size_t count);
/* update_rules.c: numbers of a group that its rule needs, conditions of its formulas, and the
 * weight's next value. */
void cm_update_corrections(struct cm_updating *u, struct cm_update_group *group);
const char *const *cm_update_words(struct cm_arena *arena, const struct cm_plan *plan,
                                   const struct cm_plan_group *group, bool is_matrix);
void cm_update_weight(struct cm_updating *u, struct cm_moving *m);

#endif
