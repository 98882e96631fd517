/* How weights are moved, in full: which rule in whose arithmetic, with which settings for which
 * weights, at which rates, clipped how. A few flags make one (cm_prepare_options); a checkpoint of
 * another framework says it in detail. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_PLAN_H
#define CM_TRAIN_PLAN_H

#include "base/array.h"
#include "base/text.h"
#include "training_rules.h" /* enum cm_update_rule, by the files in data/training/optimizers/ */

#include <math.h>

/* Whose formula. They differ in where epsilon goes, in what the first steps do and in the order of
 * weight decay: see the conditions in data/training/optimizers/. Weight decay is added to the
 * gradient, or it is decoupled: the weight shrinks by lr * weight_decay before it moves (after it
 * in adam_mode 1 of ONNX Runtime). */
enum cm_arithmetic { CM_LIKE_TORCH, CM_LIKE_KERAS, CM_LIKE_OPTAX, CM_LIKE_ORT };

/* Settings that some weights share. NAN: not known (a reader) or the rule's default (a plan).
 * Flags: -1 not known, 0, 1. */
struct cm_plan_group {
    double lr;         /* the rate now */
    double initial_lr; /* what its schedule began with */
    double momentum, dampening, beta1, beta2, epsilon, epsilon_root, weight_decay;
#define CM_MEMBER(name) double name;
    CM_OWN_SETTINGS(CM_MEMBER) /* that only some optimizers have */
#undef CM_MEMBER
    int nesterov, amsgrad, decoupled, maximize, centered, adam_mode;
    int64_t step_offset; /* these weights have seen so many steps more than training.step says
                            (fewer: negative), for bias corrections */
};
#define CM_UNKNOWN_MEMBER(name) .name = NAN,
#define CM_PLAN_GROUP                                                                              \
    ((struct cm_plan_group){CM_OWN_SETTINGS(CM_UNKNOWN_MEMBER).lr = NAN, .initial_lr = NAN,        \
                            .momentum = NAN, .dampening = NAN, .beta1 = NAN, .beta2 = NAN,         \
                            .epsilon = NAN, .epsilon_root = NAN, .weight_decay = NAN,              \
                            .nesterov = -1, .amsgrad = -1, .decoupled = -1, .maximize = -1,        \
                            .centered = -1, .adam_mode = -1})

/* The members of struct cm_plan_group by name; flags are ints, the others doubles. */
struct cm_group_field {
    const char *name;
    size_t offset;
    bool is_flag;
};
extern const struct cm_group_field cm_group_fields[];
extern const size_t cm_group_field_count;
/* NULL: there is none of this name. */
const struct cm_group_field *cm_group_field_find(const char *name);
/* NAN: not known. */
double cm_group_field_get(const struct cm_plan_group *group, const struct cm_group_field *field);
void cm_group_field_set(struct cm_plan_group *group, const struct cm_group_field *field,
                        double value);

/* How the rate goes from `from` to `to` while k, the position in the phase, goes from 0 to length.
 * All schedules that frameworks have are sequences of these. */
enum cm_phase_shape {
    CM_PHASE_CONSTANT,    /* from */
    CM_PHASE_LINEAR,      /* from + (to - from) * k / length; beyond length: to */
    CM_PHASE_COSINE,      /* to + (from - to) * (1 + cos(pi * k / length)) / 2; beyond length: to,
                             unless it swings back (PyTorch's CosineAnnealingLR) */
    CM_PHASE_EXPONENTIAL, /* from * factor ^ (k / length), with floor(k / length) if it is stepped
                           */
    CM_PHASE_POLYNOMIAL,  /* to + (from - to) * (1 - k / length) ^ factor; beyond length: to */
    CM_PHASE_INVERSE,     /* from / (1 + factor * k / length), with floor(k / length) if stepped */
    CM_PHASE_ROOT,        /* from * sqrt(length / (k + length)) */
    CM_PHASE_LOG,         /* from + (to - from) * log(k + 1) / log(length); beyond length: to */
    CM_PHASE_TABLE        /* rates[k * groups + group]; beyond the last: the last */
};

struct cm_phase {
    enum cm_phase_shape shape;
    int64_t first; /* position in the schedule at which it begins; the first phase: 0 */
    double length, factor;
    bool is_stepped, swings_back;
    const double *from, *to; /* by group */
    const double *rates;     /* of a table, with n_rates rows */
    size_t n_rates;
};

/* One list of phases; position = training.step + offset. None: each group's lr, constant. */
struct cm_rate_schedule {
    CM_ARRAY(struct cm_phase); /* of phases */
    int64_t offset;
};

enum cm_clip_kind {
    CM_CLIP_GLOBAL,       /* PyTorch: all gradients times min(1, norm / (their norm + 1e-6)) */
    CM_CLIP_GLOBAL_EXACT, /* optax, Keras global_clipnorm: without the 1e-6 */
    CM_CLIP_EACH,         /* Keras clipnorm: each gradient by its own norm */
    CM_CLIP_VALUE         /* each element into -limit .. limit */
};

struct cm_plan_clip {
    enum cm_clip_kind kind;
    double limit; /* NAN: not known; 0: none */
};

/* A weight that is moved; initializers that are not listed stay as they are. One that the model
 * keeps in 16 bits (float16, bfloat16) becomes a float, the master weight, and the graph casts it.
 */
struct cm_plan_weight {
    struct cm_str name;
    size_t group;
};

struct cm_plan {
    enum cm_update_rule rule;
    enum cm_arithmetic arithmetic;
    const struct cm_plan_group *groups;
    size_t n_groups;
    const struct cm_plan_weight *weights;
    size_t n_weights;
    struct cm_rate_schedule schedule;
    const double *plateau; /* the first elements of train/plateau.h: rates follow the validation
                              loss; NULL: they do not */
    struct cm_plan_clip clip;
    int64_t step; /* what training.step begins with: updates done so far */
    /* What a torch.optim.SGD does at its first step (v = g) is done already where step > 0. */
};

/* A state variable that a plan made: `slot` in PyTorch's words (exp_avg, exp_avg_sq,
 * max_exp_avg_sq, momentum_buffer, sum, square_avg, grad_avg), whatever the arithmetic. */
struct cm_plan_state {
    struct cm_str weight, state; /* initializers: of the inference graph, of the algorithm */
    const char *slot;
};

#endif
