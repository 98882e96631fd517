/* What the files of a trainer share. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_TRAINER_PARTS_H
#define CM_TRAIN_TRAINER_PARTS_H

#include "base/array.h"
#include "base/diagnostics.h"
#include "base/map.h"
#include "exec/session.h"
#include "train/trainer.h"
#include "train/training_graph.h"

enum { CM_NO_SCALAR = -1 };

/* A state variable. Where steps do not update it in place it has two buffers: entries of a step
 * read what `seen` points at; a step that went well swaps them. */
struct cm_variable {
    struct cm_str name;
    int64_t entry;                 /* whose algorithm declares it; -1: the inference graph */
    struct cm_tensor_proto *proto; /* in the file, with the value it was opened with */
    struct cm_tensor now, next;    /* next: empty while nobody needs it */
    const struct cm_tensor *seen;
    bool updated;  /* by a binding */
    size_t offset; /* of a parameter: its place in flat memory */
};

/* Where an input of a program comes from. */
enum cm_program_source {
    CM_FROM_FEED,     /* the trainer's inputs */
    CM_FROM_VARIABLE, /* its variables */
    CM_FROM_HANDOVER, /* what the first half of a step left for the second */
};

struct cm_program_input {
    enum cm_program_source source;
    size_t index;
};

struct cm_program_binding {
    size_t variable, output;
    bool in_place; /* the session writes the new value over the old one when a run has gone well */
};

/* A graph made ready to run, and what its inputs and outputs stand for. */
struct cm_program {
    const char *place;               /* "training_info[0]" */
    struct cm_training_entry *entry; /* of a half of a step: what one leaves for the other is
                                        there; else NULL */
    struct cm_graph *graph;
    struct cm_session *session; /* NULL: there is nothing to run */
    bool ran;                   /* in the step under way */
    bool finite;                /* what the last run updated in place */
    bool careful;               /* updates do not work in place: see run_checked */
    struct cm_program_input *inputs;
    size_t n_inputs, n_outputs;
    struct cm_str *outputs;
    const struct cm_type **types; /* of outputs */
    struct cm_program_binding *bindings;
    size_t n_bindings;
    struct cm_datum *in; /* filled before a run */
    const struct cm_datum **feeds;
    struct cm_datum *out;
};

/* A scalar output: of which program, which output there, and memory for it. */
struct cm_scalar_slot {
    struct cm_str name;
    size_t entry;
    const struct cm_program *program;
    size_t output;
    struct cm_tensor value;
};

/* What the first half of a step leaves for the second: a gradient, in memory of its own, or
 * something else that both need. */
struct cm_handover {
    cm_value source;         /* in the entry's graph */
    size_t variable;         /* whose gradient it is; SIZE_MAX: of none */
    size_t output;           /* of the first half */
    struct cm_datum value;   /* kind NONE: nothing is there yet */
    struct cm_tensor memory; /* a gradient's; data NULL: it comes as it comes */
};

/* An input that a loss reads as class numbers. */
struct cm_label_rule {
    struct cm_str input;
    int64_t classes;
    bool ignores;
    int64_t ignored;
};

struct cm_training_entry {
    struct cm_graph *graph;    /* imported once; programs are copies of parts of it */
    struct cm_findings *found; /* what of it could not be built */
    struct cm_program step, initialization;
    struct cm_program update; /* the second half of a step that is split; else it has no session */
    CM_ARRAY(struct cm_handover) handovers; /* from the first half to the second */
};

struct cm_trainer {
    struct cm_arena *arena;
    struct cm_model_file *file;
    struct cm_trainer_options options;
    struct cm_variable *variables;
    size_t n_variables;
    struct cm_map by_name;
    struct cm_training_entry *entries;
    size_t n_entries;
    CM_ARRAY(struct cm_trainer_input) inputs;
    struct cm_map inputs_by_name;
    CM_ARRAY(struct cm_scalar_slot) scalars;
    CM_ARRAY(struct cm_label_rule) labels;
    CM_ARRAY(size_t) parameters; /* variables that the training differentiates by */
    size_t parameter_bytes;
    size_t next;   /* of steps that are split: the entry that is computed or applied next */
    bool computed; /* its first half is done, its second is not */
    int loss;
    uint64_t steps;
    struct cm_trainer_progress progress;
    const atomic_bool *cancel;
    cm_step_fn *step; /* hears of what an iteration runs; NULL: nobody */
    void *step_arg;
    struct cm_program *evaluation, *prediction;  /* NULL until asked for */
    int loss_output, score_output, label_output; /* of evaluation; -1: none */
    int estimate_output, target_input;           /* what is compared when nothing is classified */
    bool has_ignored;                            /* a label that does not count */
    int64_t ignored;
    struct cm_trainer_input *prediction_inputs;
};

/* Imports the graph of entry k, if that is not done yet: its functions are expanded, so that every
 * Gradient node and every operator that trains otherwise is in it. */
enum cm_status cm_trainer_import(struct cm_trainer *trainer, size_t k,
                                 struct cm_error *err) CM_MUST_CHECK;

/* What the random nodes of a graph are seeded with: those of one training, by these numbers, draw
 * different ones. Number 2k is that of the step of entry k. */
uint64_t cm_program_seed(const struct cm_trainer *trainer, uint64_t number);

/* Copies a part of a graph, expands its gradients and compiles it. Inputs that are no variables are
 * added to the trainer's, or when own is set are given to it instead. What is given are the
 * handovers of program->entry. number makes its random numbers its own. */
enum cm_status cm_program_make(struct cm_trainer *trainer, struct cm_program *program,
                               const struct cm_cut *cut, uint64_t number,
                               struct cm_trainer_input **own, struct cm_error *err) CM_MUST_CHECK;
void cm_program_release(struct cm_program *program);

/* The value that the file holds for a variable, which the caller drops. Most of them are borrowed
 * from the mapped file: cm_variable_forget says that they need not stay in memory. */
enum cm_status cm_variable_load(const struct cm_trainer *trainer,
                                const struct cm_variable *variable, struct cm_tensor *out,
                                struct cm_error *err) CM_MUST_CHECK;
void cm_variable_forget(const struct cm_trainer *trainer, struct cm_tensor *loaded);
/* Gives it its second buffer, if it has none. */
enum cm_status cm_variable_widen(struct cm_variable *variable, struct cm_error *err) CM_MUST_CHECK;

/* Variables and inputs into their places; then the run. in may be NULL for a program that is fed
 * nothing. */
enum cm_status cm_program_run(struct cm_trainer *trainer, struct cm_program *program,
                              const struct cm_tensor *const *in, struct cm_run_options *options,
                              struct cm_error *err) CM_MUST_CHECK;

/* Refuses what is asked of half steps where steps are whole. */
enum cm_status cm_trainer_check_split(const struct cm_trainer *trainer,
                                      struct cm_error *err) CM_MUST_CHECK;

/* A step that is half done is no more. Random numbers that it drew stay drawn. */
void cm_trainer_abandon(struct cm_trainer *trainer);

/* Outputs of a step's program go straight into the memory where they will be kept. */
void cm_program_place_outputs(struct cm_trainer *trainer, struct cm_program *program);

/* What a run would hold with inputs of these types and shapes, program->out placed. */
enum cm_status cm_program_measure(struct cm_trainer *trainer, struct cm_program *program,
                                  const struct cm_tensor *const *in, struct cm_session_memory *out,
                                  struct cm_error *err) CM_MUST_CHECK;

/* split.c: the step of entry k in two halves, first and second, for these values, which bindings of
 * the step number. Says in findings why not. An entry without gradients is all first half. */
void cm_split_step(struct cm_trainer *trainer, size_t k, const cm_value *values, size_t n_values,
                   struct cm_findings *findings);
/* The variable that an output of a Gradient node is the derivative by, at the point where it
 * stands; SIZE_MAX: none. */
size_t cm_gradient_variable(const struct cm_trainer *trainer, const struct cm_node *node, int o);
/* parameters.c: once everything else is known. */
void cm_trainer_list_parameters(struct cm_trainer *trainer);

/* Says of every node of a program whether it computes activations or gradients. */
void cm_program_sort_memory(struct cm_program *program);

/* Finds every variable, checks every binding, makes every program. */
enum cm_status cm_trainer_plan(struct cm_trainer *trainer, struct cm_error *err) CM_MUST_CHECK;

#endif
