/* Training info while it is being written: names that nobody has taken, nodes and initializers of
 * the algorithm, bindings, the initialization graph, and what the user is told.
 *
 * Formulas are ONNX text: cm_draft_apply puts the nodes of a function in place, its parameters
 * standing for values of the draft. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_DRAFT_H
#define CM_TRAIN_DRAFT_H

#include "base/map.h"
#include "tensor/dtype.h"
#include "train/prepare.h"

#include <regex.h>

/* The values a node makes and where, and what initializers there are; by name. */
struct cm_draft_source {
    struct cm_node_proto *node;     /* who makes it; NULL: an input or an initializer */
    struct cm_tensor_proto *tensor; /* the initializer, or what a Constant holds; else NULL */
    size_t index;                   /* of node in the inference graph */
    bool is_input;
};

/* An initializer that was one with others of the same values. */
struct cm_draft_piece {
    struct cm_str name, original;
    struct cm_node_proto copy; /* the node that gave it its name, if is_copy */
    bool is_copy, is_statistic;
};

struct cm_draft {
    struct cm_arena *arena;
    struct cm_model_file *file;
    struct cm_model_proto *model;
    const struct cm_prepare_options *options;
    struct cm_prepare_report *report;
    const struct cm_symbols *symbols; /* of the types below */
    struct cm_map taken;              /* names, of every graph of the model */
    struct cm_map sources;            /* names of the inference graph to struct cm_draft_source * */
    struct cm_map moved;      /* inference values that training computes anew, to struct cm_str * */
    struct cm_map scalars;    /* constants made already, to struct cm_str * */
    struct cm_map statistics; /* names that nodes read as running statistics */
    struct {
        struct cm_node_proto *items;
        size_t count, capacity;
    } nodes, resets; /* of the algorithm, of the initialization */
    struct {
        struct cm_tensor_proto *items;
        size_t count, capacity;
    } initializers;
    struct cm_draft_infos {
        struct cm_value_info_proto *items;
        size_t count, capacity;
    } inputs, outputs, reset_outputs;
    struct cm_draft_bindings {
        struct cm_entry_proto *items;
        size_t count, capacity;
    } updates, reset_bindings;
    struct cm_draft_sentences {
        struct cm_str *items;
        size_t count, capacity;
    } changes, blockers;
    struct {
        struct cm_draft_piece *items;
        size_t count, capacity;
    } pieces;                      /* initializers that were taken out of others */
    const regex_t *train, *freeze; /* NULL: not given, or no such thing */
    size_t left_frozen;            /* weights in functions that freeze matches */
    bool is_misused;               /* an option is wrong by itself, whatever the model */
    struct cm_error *err;
};

/* A name of a formula's parameter, and what stands for it. */
struct cm_draft_pair {
    const char *formal;
    struct cm_str actual;
};

void cm_draft_init(struct cm_draft *draft);
/* Looks at the inference graph anew, after it was changed. */
void cm_draft_survey(struct cm_draft *draft);
const struct cm_draft_source *cm_draft_source(const struct cm_draft *draft, struct cm_str name);

/* A name that nobody has: the one wanted, or that with a number. */
struct cm_str cm_draft_name(struct cm_draft *draft, const char *format, ...) CM_PRINTF(2, 3);

/* Sentences for the user. */
void cm_draft_note(struct cm_draft *draft, const char *format, ...) CM_PRINTF(2, 3);
void cm_draft_block(struct cm_draft *draft, const char *format, ...) CM_PRINTF(2, 3);
/* CM_UNSUPPORTED with all blockers in one message, if there are any. */
enum cm_status cm_draft_verdict(struct cm_draft *draft) CM_MUST_CHECK;

/* choose.c: a regular expression of the user's, NULL where none is given or it is none, which is
 * said; and does it, if there is one, match? */
const regex_t *cm_draft_pattern(struct cm_draft *draft, const char *option, const char *text);
bool cm_draft_matches(const struct cm_draft *draft, const regex_t *pattern, struct cm_str name);

/* A node at the end of the algorithm; empty, to be filled. */
struct cm_node_proto *cm_draft_node(struct cm_draft *draft, const char *domain, const char *op,
                                    size_t n_inputs, const struct cm_str *inputs, size_t n_outputs,
                                    const struct cm_str *outputs);
void cm_draft_attribute(struct cm_draft *draft, struct cm_node_proto *node,
                        struct cm_attribute_proto attribute);
/* The nodes of a function, as text. Pairs say what its inputs stand for, and where its outputs and
 * inner values go; those not listed get names that begin with hint. Returns the name of its first
 * output. */
struct cm_str cm_draft_apply(struct cm_draft *draft, const char *text, struct cm_str hint,
                             const struct cm_draft_pair *pairs, size_t n_pairs);

/* A constant scalar of the algorithm. Asking again for the same name and type gives the same. */
struct cm_str cm_draft_scalar(struct cm_draft *draft, const char *name, enum cm_dtype dtype,
                              double value);
/* A state variable of zeros, with its reset. */
struct cm_str cm_draft_state(struct cm_draft *draft, struct cm_str name, enum cm_dtype dtype,
                             const struct cm_int64s *dims);
/* key becomes value when the step is done. */
void cm_draft_bind(struct cm_draft *draft, struct cm_str key, struct cm_str value,
                   enum cm_dtype dtype, const struct cm_int64s *dims);

/* A value with its type; dims NULL: a scalar. */
void cm_draft_value(struct cm_draft *draft, struct cm_draft_infos *list, struct cm_str name,
                    const struct cm_type *type);
void cm_draft_info(struct cm_draft *draft, struct cm_draft_infos *list, struct cm_str name,
                   enum cm_dtype dtype, const struct cm_int64s *dims);
/* What training reads instead of an inference value; the value itself when that is the same. */
struct cm_str cm_draft_moved(const struct cm_draft *draft, struct cm_str name);

/* The training info as it stands, with these names as further outputs. */
struct cm_training_proto *cm_draft_finish(struct cm_draft *draft);

/* Graphs in a node's attributes, one after the other; NULL after the last. */
struct cm_graph_proto *cm_node_subgraph(const struct cm_node_proto *node, size_t index);
/* What a Constant node holds, as a tensor, or NULL: no such node, or no numbers. */
struct cm_tensor_proto *cm_draft_constant(struct cm_draft *draft, const struct cm_node_proto *node);
/* Is this operand, which is there, a running statistic? */
bool cm_node_reads_statistic(const struct cm_node_proto *node, size_t input);
const struct cm_attribute_proto *cm_node_find_attribute(const struct cm_node_proto *node,
                                                        const char *name);

/* prepare.c: the model as a working copy. Whatever keeps it from being one becomes a blocker, and
 * the message names those known before as well. */
struct cm_graph;
enum cm_status cm_draft_import(struct cm_draft *draft, const struct cm_model_proto *model,
                               struct cm_graph **graph) CM_MUST_CHECK;

/* ---- the steps of preparing, each in a file of its own ---- */

/* raise.c: brings opset and IR version to where training info is possible; expands calls of
 * functions that behave otherwise in training. */
enum cm_status cm_draft_raise(struct cm_draft *draft) CM_MUST_CHECK;
/* lift.c: tensors held in bodies of control flow, and later in Constant nodes that were chosen,
 * become initializers. */
void cm_draft_lift_bodies(struct cm_draft *draft);
/* lift_functions.c: the same for constants of functions, before anything else is done; of those
 * that the patterns let be trained. */
void cm_draft_lift_functions(struct cm_draft *draft);
void cm_draft_lift_constants(struct cm_draft *draft, const struct cm_map *chosen);
/* untie.c: tensors that the exporter merged become initializers of their own; and those that are
 * not trained after all go back. */
struct cm_trainables;
void cm_draft_untie(struct cm_draft *draft);
void cm_draft_settle(struct cm_draft *draft, struct cm_trainables *list);
/* training_mode.c: nodes that y needs and that compute otherwise in training. */
void cm_draft_training_mode(struct cm_draft *draft, struct cm_str y);
/* A running statistic of a BatchNormalization that the model trains? */
bool cm_draft_is_statistic(const struct cm_draft *draft, struct cm_str name);
bool cm_nodes_change_in_training(const struct cm_nodes *nodes, int depth);

/* loss_rules.c: the scalar that is made small. prediction is what the loss reads and its type; on
 * return *loss is the name. */
enum cm_status cm_draft_loss(struct cm_draft *draft, const struct cm_graph *graph,
                             struct cm_str prediction, const struct cm_type *type,
                             struct cm_str *loss) CM_MUST_CHECK;
/* The type that losses and updates of such numbers are computed in. */
enum cm_dtype cm_draft_wide(enum cm_dtype dtype);
/* bypass.c: the forward pass in training, up to what the loss reads: the prediction, or what is
 * before its Softmax or Sigmoid where the loss brings its own. */
struct cm_str cm_draft_bypass(struct cm_draft *draft, const struct cm_graph *graph,
                              struct cm_str prediction, int class_axis);
bool cm_loss_is_known(const char *name);
bool cm_loss_is_own(const char *name); /* not a file */

/* update_rules.c: what is done with the gradients. */
struct cm_draft_weight {
    struct cm_str name, gradient;
    const struct cm_tensor_proto *tensor;
};
void cm_draft_update_check(struct cm_draft *draft);
void cm_draft_update(struct cm_draft *draft, struct cm_draft_weight *weights, size_t count);

#endif
