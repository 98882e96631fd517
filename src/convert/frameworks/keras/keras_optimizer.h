/* Optimizers of Keras and TensorFlow: what they and their variables are called, what their
 * configuration says, in which order their variables are stored. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_KERAS_OPTIMIZER_H
#define CM_CONVERT_KERAS_OPTIMIZER_H

#include "convert/saved.h"
#include "train/rules.h"

/* By either name, also with a number behind it ("adam_1"); NULL: there is none of that name.
 * *rule: whose it is. */
const struct cm_optimizer_keras *cm_keras_optimizer(struct cm_str name, enum cm_update_rule *rule);
/* What a slot is in PyTorch's words; NULL: not known. word is Keras's or TensorFlow's. */
const char *cm_keras_meaning(enum cm_update_rule rule, struct cm_str word);
/* The first optimizer that has a slot of this name, or CM_RULE_UNKNOWN. */
enum cm_update_rule cm_keras_rule_of_slot(struct cm_str word);

/* Sets name, rule and arithmetic; an optimizer that has no rule here is told as not understood. */
void cm_keras_set_optimizer(struct cm_saved *saved, struct cm_str name);
/* Takes the settings out of an optimizer's {"class_name": .., "config": {..}}; needs the step for
 * the rate that a schedule has now. Group 0 must be there. */
void cm_keras_configure(struct cm_saved *saved, const struct cm_item *optimizer);
/* At the end: settings that the slots tell, and in saved->missing what a file of this kind ("a
 * TensorFlow checkpoint") does not. */
void cm_keras_missing(struct cm_saved *saved, const char *kind);

/* The variables of an optimizer, in the order of Keras: iteration, learning rate, and then runs of
 * slots. Which weights they belong to is known by order and shape. */
struct cm_keras_weight {
    struct cm_str name;
    const struct cm_saved_tensor *tensor;
    bool is_frozen; /* surely not trained */
};
/* Adds slots, group 0's names, step and rate. Says in saved->unknown what does not fit. config is
 * that of cm_keras_configure, or NULL. */
void cm_keras_take_variables(struct cm_saved *saved, struct cm_saved_tensor *const *variables,
                             size_t count, const struct cm_keras_weight *weights, size_t n_weights,
                             const struct cm_item *config);
/* A run of slots: for each weight in turn, one or two of them. */
struct cm_keras_run {
    const char *words[3]; /* alternating for each weight; NULL after the last */
    const char *lists[3]; /* that Keras has them in */
};
/* The runs that the slots of saved make, in their order; returns how many, at most 5. */
size_t cm_keras_runs(const struct cm_saved *saved, struct cm_keras_run *out);

/* Is the rate a variable of the optimizer, not a schedule? */
bool cm_keras_has_rate(const struct cm_saved *saved);

/* A few whole numbers, the state of a generator say, as a fact: files need them again. NULL: it is
 * not that. And back, NULL: the fact is not one. */
const struct cm_item *cm_keras_keep(struct cm_arena *arena, const struct cm_saved_tensor *tensor);
const struct cm_saved_tensor *cm_keras_kept(struct cm_arena *arena, const struct cm_item *kept);

#endif
