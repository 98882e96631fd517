/* Making an inference model trainable: adds training info that computes a loss, its gradients and
 * an optimizer's updates, with operators of ONNX only. What is written is a standard model that any
 * runtime of training info can go on with. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_PREPARE_H
#define CM_TRAIN_PREPARE_H

#include "base/diagnostics.h"
#include "graph/type.h"
#include "lower/pass_table.h"
#include "models/inference_modes.h"
#include "onnx/model_file.h"
#include "train/prepare/plan.h"

#include <math.h>

enum cm_schedule {
    CM_SCHEDULE_CONSTANT,
    CM_SCHEDULE_STEP,
    CM_SCHEDULE_COSINE,
    CM_SCHEDULE_LINEAR,
    CM_SCHEDULE_PLATEAU
};

/* Flags as on the command line; a name means what it means in PyTorch, formula and defaults. NAN:
 * the optimizer's default. */
struct cm_prepare_options {
    const char *loss;      /* a file of data/training/losses/, FILE.onnx, output:NAME */
    const char *output;    /* which output the loss reads; NULL: the only one */
    const char *optimizer; /* a name in data/training/optimizers/ */
    double lr, momentum, weight_decay, beta1, beta2, epsilon;
    const char *settings; /* further ones of the optimizer and the loss: "rho=0.95,gamma=1"; NULL */
    enum cm_schedule schedule;
    int64_t warmup, schedule_steps; /* steps; schedule_steps: the length of cosine and linear, the
                                       period of step */
    double warmup_epochs, schedule_epochs; /* the same in epochs, 0: not given */
    double updates_per_epoch;
    double schedule_factor;                       /* of step and plateau */
    int64_t schedule_patience, schedule_cooldown; /* of plateau, in validations */
    double schedule_threshold, schedule_min_lr;   /* of plateau */
    double clip_norm;                             /* 0: none */
    int64_t
        accumulate; /* batches whose gradients are averaged before the weights move; 0 or 1: none
                     */
    const char *no_decay;  /* weights whose names match do not decay; NULL: all do */
    bool no_decay_vectors; /* nor do those of fewer than two axes: biases, scales of norms */
    const char *lr_for;    /* "REGEX=X", several with ";" between them: weights with a rate of their
                              own, the first that matches */
    double warmup_from; /* the part of the rate that the first update has, as Hugging Face's 0; NAN:
                           1 / warmup */
    const char *train, *freeze;  /* POSIX extended regular expressions over initializer names
                                    and the framework's; NULL: the usual choice */
    const double *class_weights; /* of the loss, by class; NULL: all 1 */
    size_t class_weight_count;
    const char *target; /* name of the label input; NULL: "target" */
    int64_t class_axis; /* of the prediction, for losses over classes */
    bool keep_opset;    /* refuse rather than raise the opset */
    bool keep_tied;     /* leave one what exporters merged: tensors that hold one repeated value */
    bool keep_untied;   /* leave two what exporters wrote twice: a table and its transpose */
    /* The run that it is prepared for, 0: not known. rows of its data, rows of a batch (0: what the
     * model fixes, else 32), epochs, or steps instead */
    int64_t run_samples, run_batch_size, run_epochs, run_steps;
    const struct cm_plan *plan; /* instead of optimizer, its numbers, schedule, clip_norm, train and
                                   freeze; NULL: those are the plan */
    const struct cm_mlir_form_hooks *mlir; /* who reads a loss in a file of MLIR; NULL: nobody */
    const char *without; /* passes to leave out, see cm_prepare_passes; NULL: none */
    const char *until;   /* stop after this pass: the file is the model as it is then, the loss its
                            only output once there is one; NULL: after all */
};

/* The passes that a preparation consists of. */
extern const struct cm_pass_table cm_prepare_passes;

/* Which initializers are trained and why. */
struct cm_prepare_choice {
    struct cm_str name;
    bool trained;
    struct cm_str reason; /* "a gradient reaches it", "running statistics", "freeze matches it" */
    struct cm_str original, folding; /* what the framework calls it, graph/originals.h */
};

struct cm_prepared_training;

struct cm_prepare_report {
    struct cm_prepare_choice *choices;
    size_t n_choices;
    /* Notes say what was raised, lifted, bypassed; violations all that stands in the way, which the
     * error names too. */
    struct cm_findings findings;
    struct cm_str target_name; /* empty: the loss needs none */
    struct cm_str loss_name;   /* the algorithm's first output: "loss" unless the model has that */
    bool classifies;           /* the target holds class numbers */
    struct cm_plan_state *states; /* what the optimizer keeps, by weight */
    size_t n_states;
    struct cm_str step_name;                 /* the state variable that counts updates */
    const struct cm_prepared_training *made; /* for a trainer of the file, until that is changed;
                                                NULL: the preparation did not come to its end */
};

/* Everything at its default: loss and optimizer must be set. */
#define CM_PREPARE_OPTIONS                                                                         \
    ((struct cm_prepare_options){.lr = NAN,                                                        \
                                 .momentum = NAN,                                                  \
                                 .weight_decay = NAN,                                              \
                                 .beta1 = NAN,                                                     \
                                 .beta2 = NAN,                                                     \
                                 .epsilon = NAN,                                                   \
                                 .warmup_from = NAN,                                               \
                                 .schedule_factor = 0.1,                                           \
                                 .schedule_patience = 10,                                          \
                                 .schedule_threshold = 1e-4,                                       \
                                 .accumulate = 1,                                                  \
                                 .class_axis = 1})

/* Lengths that follow from the run that the options are for. */
void cm_schedule_fit_run(struct cm_arena *arena, const struct cm_graph_proto *graph,
                         struct cm_prepare_options *options);
/* How many updates the options mean: steps, or so many epochs if they are not 0. */
int64_t cm_schedule_updates(const struct cm_prepare_options *options, int64_t steps, double epochs);

/* Adds training info to file's model (its structs are changed; save with cm_model_save). Every
 * blocker is in one message; then the model must not be used any more. */
enum cm_status cm_prepare(struct cm_arena *arena, struct cm_model_file *file,
                          const struct cm_prepare_options *options,
                          struct cm_prepare_report *report, struct cm_error *err) CM_MUST_CHECK;

/* Takes training info away again, and turns training mode off in the inference graph. What became
 * of it is in modes; sentences and new messages live in arena. */
void cm_strip(struct cm_arena *arena, struct cm_model_file *file, struct cm_modes *modes);

#endif
