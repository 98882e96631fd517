/* Losses, as data: what data/training/ says of each, as tables that the build makes of it. Adding
 * one is adding a file there. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_RULES_H
#define CM_TRAIN_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* An operand of functions that is a constant. */
struct cm_rule_number {
    const char *name; /* NULL ends a list */
    double value;
};

enum cm_loss_target {
    CM_TARGET_SAME,   /* numbers, of the shape of the prediction */
    CM_TARGET_CLASSES /* class numbers; an axis of the prediction is over classes */
};

enum cm_loss_contains { CM_CONTAINS_NOTHING, CM_CONTAINS_SOFTMAX, CM_CONTAINS_SIGMOID };

struct cm_loss_rule {
    const char *name;
    enum cm_loss_target target;
    enum cm_loss_contains contains; /* the model's own is left out in training */
    const char *reads; /* words for its prediction, where it cannot be probabilities; or NULL */
    bool is_binary;    /* targets are 0 and 1; scores above the threshold mean 1 */
    double threshold;
    const struct cm_rule_number *numbers;
    const char *functions; /* the first has the operands x, the prediction, and y, the target */
};

extern const struct cm_loss_rule cm_loss_rules[]; /* the last has no name */

/* The rule of this name, or NULL. */
const struct cm_loss_rule *cm_loss_rule_find(const char *name);

#endif
