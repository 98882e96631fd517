/* Losses and optimizers, as data: what data/training/ says of each, as tables that the build makes
 * of it. Adding one is adding a file there. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_RULES_H
#define CM_TRAIN_RULES_H

#include "base/text.h"
#include "training_rules.h"

#include <stdbool.h>
#include <stddef.h>

/* An operand of functions that is a constant. */
struct cm_rule_number {
    const char *name; /* NULL ends a list */
    double value;
};

enum cm_loss_target {
    CM_TARGET_SAME,     /* numbers, of the shape of the prediction */
    CM_TARGET_CLASSES,  /* class numbers; an axis of the prediction is over classes */
    CM_TARGET_SEQUENCES /* a row of class numbers for each sample, then negative ones; the
                           prediction has samples, frames and classes */
};

enum cm_loss_contains { CM_CONTAINS_NOTHING, CM_CONTAINS_SOFTMAX, CM_CONTAINS_SIGMOID };

struct cm_loss_rule {
    const char *name;
    enum cm_loss_target target;
    enum cm_loss_contains contains; /* the model's own is left out in training */
    const char *reads; /* words for its prediction, where it cannot be probabilities; or NULL */
    bool is_binary;    /* targets are 0 and 1; scores above the threshold mean 1 */
    double threshold;
    const struct cm_rule_number *numbers, *settings; /* settings: the user may set them */
    const char *functions; /* the first has the operands x, the prediction, and y, the target */
};

extern const struct cm_loss_rule cm_loss_rules[]; /* the last has no name */

/* The rule of this name, or NULL. */
const struct cm_loss_rule *cm_loss_rule_find(const char *name);

/* Are all words of "amsgrad !nesterov" among these (NULL at the end), and those after a "!" not?
 * Empty or NULL: yes. */
bool cm_words_hold(const char *conditions, const char *const *words);

/* ---- optimizers ---- */

/* A name on the command line: PyTorch's defaults, and what it sets otherwise. */
struct cm_optimizer_preset {
    const char *name; /* NULL ends a list */
    const struct cm_rule_number *settings;
};

/* A variable for each weight. */
struct cm_optimizer_state {
    const char *name;   /* in graphs: "W.name"; NULL ends a list */
    const char *slot;   /* PyTorch's word */
    const char *when;   /* the conditions under which it is there; NULL: always */
    const char *shape;  /* NULL: the weight's; "rows", "columns": the last axis, or the one before
                           it, is 1; "scalar" */
    const char *begins; /* NULL: with zeros; "1" */
    /* Words of other frameworks, the newest first, comma-separated. "*": the word has this meaning
     * only where the optimizer is known. NULL: it has none. */
    const char *keras, *optax, *ort;
};

struct cm_optimizer_words {
    const char *name; /* NULL ends a list */
    const char *words;
};

struct cm_optimizer_keras {
    const char *word, *class_name; /* NULL ends a list */
    bool decays;
};

/* A state of optax by its fields: those of the states, and a count. */
struct cm_optimizer_optax {
    const char *name; /* NULL ends a list */
    bool counts;
    int amsgrad, centered, momentum; /* -1: nothing to say */
};

struct cm_optimizer_rule {
    const char *name, *title; /* of the file, and in sentences */
    bool decays_itself;       /* its functions do what weight decay does */
    const struct cm_optimizer_preset *presets;
    const struct cm_rule_number *defaults[4]; /* by enum cm_arithmetic; NULL: it is not known of it
                                               */
    const struct cm_rule_number *numbers;     /* constants of the functions */
    const struct cm_optimizer_state *states;  /* in the order of graphs */
    const struct cm_optimizer_words *torch;   /* classes, and the keys of a group that tell it */
    const struct cm_optimizer_keras *keras;
    const struct cm_optimizer_optax *optax;
    const struct cm_optimizer_words *variants; /* a further condition: the first whose words hold */
    const struct cm_optimizer_words *refusals; /* conditions, and why there is no such thing */
    const char *functions; /* update: from w, g, states and numbers to the next states, and to
                              `move` (by how much the weight goes down) or `next` (where it goes);
                              numbers: numbers of a group that a step computes, in double */
};

extern const struct cm_optimizer_rule cm_optimizer_rules[]; /* by enum cm_update_rule */
extern const char cm_rules_for_all_weights[];

/* The rule that has a preset of this name, or NULL. */
const struct cm_optimizer_rule *cm_optimizer_find(struct cm_str name,
                                                  const struct cm_optimizer_preset **preset);
/* A setting that a preset (NULL: none), the arithmetic or else PyTorch says; NAN: none does. */
double cm_optimizer_default(const struct cm_optimizer_rule *rule,
                            const struct cm_optimizer_preset *preset, int arithmetic,
                            const char *name);
/* What the preset itself says. */
double cm_optimizer_preset_says(const struct cm_optimizer_preset *preset, int arithmetic,
                                const char *name);
bool cm_optimizer_has(enum cm_update_rule rule, const char *setting);
/* PyTorch's word for a state of any optimizer, as a constant; NULL: it is none. */
const char *cm_optimizer_slot_named(struct cm_str word);
/* The state that has PyTorch's word for it, or NULL. */
const struct cm_optimizer_state *cm_optimizer_slot(enum cm_update_rule rule, const char *slot);

#endif
