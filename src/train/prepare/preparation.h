/* A model while it is made trainable. The inference graph is imported once; the algorithm is a
 * graph inside it, built node by node as any other, so that it reads values of the inference graph
 * and every node of it has its types; the initialization is a graph of its own. Messages appear
 * where the file is read, and where cm_preparation_write puts training info beside what was there.
 * Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_PREPARATION_H
#define CM_TRAIN_PREPARATION_H

#include "base/array.h"
#include "graph/clone.h"
#include "graph/originals.h"
#include "tensor/dtype.h"
#include "train/prepare/prepare.h"
#include "train/rules.h"

#include <regex.h>

/* An initializer that was one with others of the same values. */
struct cm_piece {
    cm_value value, original;
    bool is_copied; /* a node that copied the original gave it its name */
    bool is_statistic;
};

/* Weights that flags give another rate, or no weight decay. */
struct cm_flag_group {
    const char *flag, *text; /* of the option, and of the expression */
    const regex_t *pattern;
    double lr;
    bool is_found;
};

/* A number that the algorithm holds or computes. */
struct cm_prepared_scalar {
    const char *name;
    enum cm_dtype dtype;
    cm_value value;
};

/* state becomes next when a step, or the initialization, is done. */
struct cm_prepared_binding {
    cm_value state, next;
};

struct cm_trained_weight {
    cm_value value, gradient;
    size_t group; /* of the plan */
};

struct cm_loss_chain; /* bypass.c */
struct cm_trainables;

struct cm_preparation {
    struct cm_arena *arena;
    struct cm_model_file *file;
    struct cm_model_proto *model;
    const struct cm_prepare_options *options;
    struct cm_prepare_report *report;
    struct cm_originals *originals; /* what the framework calls tensors of the file */
    struct cm_map taken;            /* names of every graph of the file, and of what is added */
    struct cm_graph *inference;     /* all of it that could be built */
    struct cm_findings *findings;   /* why the rest could not */
    bool is_old;                    /* the file's opset cannot hold training */
    size_t expanded;                /* calls of functions, which are no longer there */
    const bool *predicts;           /* by value number: what the prediction is computed from */
    struct cm_builder build;        /* the end of the algorithm: cm_emit(p, ..) adds to it */
    struct cm_graph *reset;         /* the initialization */
    struct cm_clone moved; /* inference values to those that training computes in their place */
    CM_ARRAY(struct cm_prepared_scalar) scalars;
    CM_ARRAY(cm_value)
    outputs, resets; /* of the algorithm and of the initialization, as they are to be listed */
    struct cm_prepared_bindings {
        CM_ARRAY(struct cm_prepared_binding);
    } updates, reset_bindings;
    CM_ARRAY(struct cm_piece) pieces;      /* initializers that were taken out of others */
    CM_ARRAY(cm_value) added;              /* initializers that the file's graph gets */
    CM_ARRAY(struct cm_plan_state) states; /* that the optimizer keeps, for the report */
    const struct cm_plan *plan;            /* of the options, or what its flags mean */
    int64_t warmup, schedule_steps;        /* of the flags */
    struct cm_flag_group *rates;           /* of the flags, as are: */
    size_t n_rates;
    struct cm_flag_group no_decay;
    struct cm_map planned;                /* with a plan of the options: names to groups, from 1 */
    struct cm_map gone;                   /* names of what it loses to them, to 1; to 2 in bodies */
    const regex_t *train, *freeze;        /* NULL: not given, or no such thing */
    size_t left_frozen;                   /* weights in functions that freeze matches */
    bool is_misused;                      /* what is blocked now is wrong whatever the model */
    struct cm_str output;                 /* that the loss reads */
    cm_value prediction, read;            /* its value; and what the loss reads of it */
    const struct cm_loss_chain *bypassed; /* the nodes between them; NULL: none */
    int class_axis;                       /* of the prediction; -1: the loss has no classes */
    size_t blocked_before_loss;
    cm_value loss; /* 0: it could not be built */
    struct cm_trainables *candidates;
    struct cm_prepared_step *step; /* NULL: what was differentiated is not the step */
    struct cm_trained_weight *weights;
    size_t n_weights;
    struct cm_error *err;
};

/* Takes note of the names that the file's graph has by now. */
void cm_preparation_take_names(struct cm_preparation *p);
/* A name that nobody has: the one wanted, or that with a number. */
struct cm_str cm_preparation_name(struct cm_preparation *p, const char *format, ...)
    CM_PRINTF(2, 3);

/* Sentences for the user. */
void cm_preparation_note(struct cm_preparation *p, const char *format, ...) CM_PRINTF(2, 3);
void cm_preparation_block(struct cm_preparation *p, const char *format, ...) CM_PRINTF(2, 3);
/* CM_UNSUPPORTED with all blockers in one message, if there are any. */
enum cm_status cm_preparation_verdict(struct cm_preparation *p) CM_MUST_CHECK;

/* Is the whole inference graph written anew? */
static inline bool cm_preparation_rewrites(const struct cm_preparation *p)
{
    return p->is_old || p->expanded;
}

/* The model as a working copy, p->inference. What cannot be built is left out. */
enum cm_status cm_preparation_import(struct cm_preparation *p) CM_MUST_CHECK;
/* Unless the value of this name, or all there is, was built, every reason why something was not
 * becomes a blocker, and the message names those known before as well. */
enum cm_status cm_preparation_require(struct cm_preparation *p, struct cm_str name) CM_MUST_CHECK;
enum cm_status cm_preparation_require_all(struct cm_preparation *p) CM_MUST_CHECK;

/* ---- the algorithm ---- */

/* An empty one, inside p->inference. */
void cm_preparation_begin(struct cm_preparation *p);
/* Names a value of the algorithm; returns it. */
cm_value cm_preparation_call(struct cm_preparation *p, cm_value value, struct cm_str name);
/* The same with "hint.word", or that with a number. */
cm_value cm_preparation_term(struct cm_preparation *p, struct cm_str hint, const char *word,
                             cm_value value);
/* cm_term(p, hint, "square", "Mul", x, x): a node whose result is called hint.square. */
#define cm_term(p, hint, word, op, ...)                                                            \
    cm_preparation_term((p), (hint), (word), cm_emit((p), (op), __VA_ARGS__))
cm_value cm_preparation_cast(struct cm_preparation *p, cm_value value, enum cm_dtype dtype);
struct cm_str cm_preparation_name_of(const struct cm_preparation *p, cm_value value);
const struct cm_type *cm_preparation_type(const struct cm_preparation *p, cm_value value);

/* A constant scalar. Asking again for the same name and type gives the same. */
cm_value cm_preparation_scalar(struct cm_preparation *p, const char *name, enum cm_dtype dtype,
                               double value);
/* A further initializer of a graph: another tensor, under this name. */
cm_value cm_preparation_tensor(struct cm_preparation *p, struct cm_graph *graph,
                               const struct cm_tensor_proto *from, struct cm_str name);
/* The file's graph gets an initializer that the inference graph has. What else is called `instead`
 * (empty: nothing) goes: a node of the graph, or what a body in it holds. */
void cm_preparation_add(struct cm_preparation *p, cm_value value, struct cm_str instead,
                        bool in_body);
/* A state variable of zeros (a scalar: of `first`), with its reset, of the shape of an
 * initializer's type. */
cm_value cm_preparation_state(struct cm_preparation *p, struct cm_str name, enum cm_dtype dtype,
                              const struct cm_type *like, double first);
/* One that holds these numbers, and is reset to them. */
cm_value cm_preparation_numbers(struct cm_preparation *p, struct cm_str name, double *values,
                                size_t count);
/* A state variable that counts; its reset is 0 as well. */
cm_value cm_preparation_counter(struct cm_preparation *p, struct cm_str name, int64_t first);
/* Lists a value among the algorithm's outputs. */
void cm_preparation_give(struct cm_preparation *p, cm_value value);
/* state becomes next when the step is done, and next is listed. */
void cm_preparation_bind(struct cm_preparation *p, cm_value state, cm_value next);
/* By value number: what y is computed from, in the algorithm, if it has begun, and in the inference
 * graph. */
const bool *cm_preparation_needed(struct cm_preparation *p, cm_value y);

/* A node of the file reads another value as its operand. */
void cm_node_proto_read(struct cm_arena *arena, struct cm_node_proto *node, size_t input,
                        struct cm_str name);
/* The same, or the whole inference graph where it must be, and the training info. */
enum cm_status cm_preparation_write(struct cm_preparation *p) CM_MUST_CHECK;
/* The file's model becomes what there is by now, inference graph and algorithm in one graph. */
enum cm_status cm_preparation_show(struct cm_preparation *p) CM_MUST_CHECK;

/* ---- the steps of preparing, each in a file of its own ---- */

/* choose.c: a regular expression of the user's, NULL where none is given or it is none, which is
 * said; and does it, if there is one, match the name, or one that the framework has for it? */
const regex_t *cm_preparation_pattern(struct cm_preparation *p, const char *option,
                                      const char *text);
bool cm_preparation_matches(const struct cm_preparation *p, const regex_t *pattern,
                            struct cm_str name);

/* widen_weights.c: weights of the plan that the file keeps in 16 bits become floats, before the
 * file is imported. */
enum cm_status cm_widen_weights(struct cm_preparation *p) CM_MUST_CHECK;
/* raise.c: may the model be brought to where it can hold training info? At the end that is done:
 * opset, IR version and, where that or expanded calls demand it, the whole inference graph. */
void cm_raise_check(struct cm_preparation *p);
enum cm_status cm_raise(struct cm_preparation *p) CM_MUST_CHECK;
/* lift.c: tensors held in bodies of control flow, and later in Constant nodes that were chosen,
 * become initializers of the inference graph. */
enum cm_status cm_lift_bodies(struct cm_preparation *p) CM_MUST_CHECK;
cm_value cm_lift_constant(struct cm_preparation *p, cm_value constant,
                          const struct cm_tensor_proto *tensor);
/* lift_functions.c: expands calls of functions that hold weights which the patterns let be trained,
 * or that compute otherwise in training; such weights become initializers of the inference graph.
 */
enum cm_status cm_lift_functions(struct cm_preparation *p) CM_MUST_CHECK;
/* retie.c: weights that an exporter wrote twice, once transposed, become one initializer, before
 * the file is imported. */
enum cm_status cm_retie(struct cm_preparation *p) CM_MUST_CHECK;
/* untie.c: tensors that the exporter merged become initializers of their own; and those that are
 * not trained after all go back. */
enum cm_status cm_untie(struct cm_preparation *p) CM_MUST_CHECK;
void cm_untie_settle(struct cm_preparation *p, struct cm_trainables *list);

/* folding_notes.c: says which parameters of the network the exporter folded or dropped. */
enum cm_status cm_tell_folding(struct cm_preparation *p) CM_MUST_CHECK;

/* training_mode.c: copies of the nodes that p->read needs and that compute otherwise in training,
 * or read what such a node computes. */
enum cm_status cm_training_mode(struct cm_preparation *p) CM_MUST_CHECK;
/* Is an operand of a node a running statistic? Does a node read this value as one? */
bool cm_operand_is_statistic(const struct cm_node *node, int index);
bool cm_value_is_statistic(const struct cm_module *module, cm_value value);
/* bypass.c: what the loss reads (p->read): the prediction, or what is before its Softmax or Sigmoid
 * where the loss brings its own; and once the forward pass in training is there, its value in that,
 * with what stood between done again. rule: NULL for losses that are not of data/training/. */
void cm_bypass(struct cm_preparation *p, const struct cm_loss_rule *rule, int class_axis);
cm_value cm_bypass_end(struct cm_preparation *p, const struct cm_loss_rule *rule);
/* loss_rules.c: what the loss reads; then p->loss, the scalar that is made small. What cannot be
 * built is for p->build to remember. */
void cm_loss_choose(struct cm_preparation *p);
enum cm_status cm_loss(struct cm_preparation *p) CM_MUST_CHECK;
bool cm_loss_is_known(const char *name);
/* plan.c: what the settings of the options say for this name; otherwise if they do not. */
double cm_preparation_setting(const struct cm_preparation *p, const char *name, double otherwise);
/* The type that losses and updates of such numbers are computed in. */
enum cm_dtype cm_wide_type(enum cm_dtype dtype);

/* plan.c: sets p->plan, and says what cannot be done of it. */
void cm_update_check(struct cm_preparation *p);
/* The group that the flags put a weight in. */
size_t cm_update_group_of(struct cm_preparation *p, struct cm_str name, int rank);
/* Blocks where an expression of a flag matches no weight that is trained. */
void cm_update_check_groups(struct cm_preparation *p);
/* update.c: what is done with the gradients. */
void cm_update(struct cm_preparation *p, const struct cm_trained_weight *weights, size_t count);

/* prepared_step.c: the gradients of the loss by xs, 0 where no path leads; then, with the algorithm
 * complete, what a trainer makes its step of. NULL: it must differentiate by other values. */
enum cm_status cm_prepared_step_differentiate(struct cm_preparation *p, cm_value loss,
                                              const cm_value *xs, size_t n_xs,
                                              cm_value *grads) CM_MUST_CHECK;
struct cm_prepared_step *cm_prepared_step_keep(const struct cm_preparation *p);

/* ---- lift.c: what nodes hold ---- */

/* What a Constant node holds, as a tensor, or NULL: no such node, or no numbers. */
const struct cm_tensor_proto *cm_node_constant(struct cm_arena *arena, const struct cm_node *node);
/* A float tensor with axes, which may be a weight? */
bool cm_tensor_may_be_weight(const struct cm_tensor_proto *tensor);
/* Does it hold one repeated number, which is given? */
bool cm_tensor_repeats(const struct cm_preparation *p, const struct cm_tensor_proto *tensor,
                       double *number);

#endif
