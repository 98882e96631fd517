/* Losses and optimizers, as data: what data/training/ says of each, as tables that the build makes
 * of it. Adding one is adding a file there. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_RULES_H
#define CM_TRAIN_RULES_H

#include "base/arena.h"
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

/* What class weights multiply: the loss of each sample of a class, whose mean they weigh; or the
 * loss of each target of 1, by column. */
enum cm_loss_weights { CM_WEIGHTS_NONE, CM_WEIGHTS_CLASSES, CM_WEIGHTS_POSITIVES };

struct cm_loss_rule {
    const char *name;
    enum cm_loss_target target;
    enum cm_loss_contains contains; /* the model's own is left out in training */
    const char *reads; /* words for its prediction, where it cannot be probabilities; or NULL */
    enum cm_loss_weights weights;
    bool is_binary; /* targets are 0 and 1; scores above the threshold mean 1 */
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

/* A word of a line: "key=value", or "key", whose value is the key. */
struct cm_rule_word {
    struct cm_str key, value;
};
/* The next one, after which *at moves; false: the end. *at may be NULL. */
bool cm_rule_word_next(const char **at, struct cm_rule_word *out);

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

/* A state of optax by its fields: those of the states, and a count. Transformations without state
 * follow it in the chain. */
struct cm_optimizer_optax {
    const char *name; /* NULL ends a list */
    bool counts;
    bool amsgrad, centered, momentum; /* the settings that it has */
    int after;                        /* transformations that follow it, 0: the rate alone */
    bool decay, may_decay; /* one of them is weight decay; a further one may be weight decay */
    bool may_trace;        /* one of them may be the trace of momentum */
};

struct cm_optimizer_rule {
    const char *name, *title; /* of the file, and in sentences */
    const char *decoupled;    /* its title where weight decay is decoupled; NULL: the same */
    bool decays_itself;       /* its functions do what weight decay does */
    bool needs_whole;         /* its functions read all elements of a weight to move one of them */
    const struct cm_optimizer_preset *presets;
    const struct cm_rule_number *defaults[4]; /* by enum cm_arithmetic; NULL: it is not known of it
                                               */
    const struct cm_rule_number *numbers;     /* constants of the functions */
    const struct cm_optimizer_state *states;  /* in the order of graphs */
    const struct cm_optimizer_words *torch;   /* classes, and the keys of a group or of a state
                                                 that tell it */
    /* The keys of a group in PyTorch's order: "lr betas=beta1,beta2 eps=?epsilon1 foreach=none
     * lr_decay=schedule". A key is the setting of its name, or those after "="; "?": None stands
     * for 0; "schedule": by how much the rate falls in each step. Any other word is a constant.
     * NULL: PyTorch has no such optimizer. */
    const char *torch_group;
    /* The scalars of a state that count steps, or follow from their number: "step eta=eta", with
     * the result of `numbers` after "=". NULL: none. */
    const char *torch_counts;
    /* Operators of ONNX Runtime's optimizer models, with attributes and the settings they are; the
     * first attribute tells the optimizer: "adam_mode alpha=beta1". */
    const struct cm_optimizer_words *ort;
    const struct cm_optimizer_keras *keras;
    /* Its slots in the order in which Keras stores them, with the list that has them: "m/_ms+v/_vs
     * hat/_hats=amsgrad". "+": the slots of a weight follow each other; "=": the setting that they
     * depend on. */
    const char *keras_runs;
    const struct cm_rule_number *tensorflow1; /* settings that TensorFlow 1 has no choice of */
    const char *epsilon_alike; /* frameworks that add epsilon in one place, and the others in
                                  another; NULL: all in one */
    const struct cm_optimizer_optax *optax;
    const struct cm_optimizer_words *variants; /* a further condition: the first whose words hold */
    const struct cm_optimizer_words *refusals; /* conditions, and why there is no such thing */
    const char *functions; /* update: from w, g, states and numbers to the next states, and to
                              `move` (by how much the weight goes down) or `next` (where it goes);
                              numbers: numbers of a group that a step computes, in double */
};

/* Whose formulas there are, by enum cm_arithmetic: the word of data/training/, and the name. */
extern const struct cm_arithmetic_name {
    const char *word, *title;
} cm_arithmetics[4];

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
/* Whose formula (enum cm_arithmetic) an optimizer by name has: PyTorch's, or that of the framework
 * it comes from. */
int cm_optimizer_arithmetic(enum cm_update_rule rule);
/* What sentences call it: "AdamW" where Adam's weight decay is decoupled. */
struct cm_str cm_optimizer_title(enum cm_update_rule rule, bool is_decoupled);
/* "SGD and AdamW": those that a framework has. */
const char *cm_optimizer_list(struct cm_arena *arena, int arithmetic);
/* The first rule that needs no state (sgd without momentum). */
enum cm_update_rule cm_optimizer_stateless(void);
/* Does a name of the optimizer set it? */
bool cm_optimizer_may(enum cm_update_rule rule, const char *setting);
/* Does epsilon go elsewhere in the other arithmetic? */
bool cm_optimizer_epsilon_differs(enum cm_update_rule rule, int from, int to);
/* Do its functions read how many steps were done? */
bool cm_optimizer_counts(enum cm_update_rule rule);
bool cm_optimizer_has(enum cm_update_rule rule, const char *setting);
/* PyTorch's word for a state of any optimizer, as a constant; NULL: it is none. */
const char *cm_optimizer_slot_named(struct cm_str word);
/* The state that has PyTorch's word for it, or NULL. */
const struct cm_optimizer_state *cm_optimizer_slot(enum cm_update_rule rule, const char *slot);

#endif
