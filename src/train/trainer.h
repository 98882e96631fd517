/* Executing what a model's training info says: initialization, then steps. Each entry's algorithm
 * runs on the inference graph and its own, its bindings are applied when all of it is computed, and
 * the next entry sees what it wrote.
 *
 * A step has two phases. Compute: everything that can fail; no state is written. Commit: the new
 * values take the old ones' place; it cannot fail. In a training with one entry whose steps are
 * whole, elementwise updates run in the second phase, in place; all other new values are computed
 * beside the old ones. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_TRAINER_H
#define CM_TRAIN_TRAINER_H

#include "graph/type.h"
#include "onnx/model_file.h"
#include "tensor/tensor.h"

#include <stdatomic.h>

struct cm_findings;
struct cm_prepared_training;
struct cm_registry;
struct cm_step_report;
struct cm_trainer;

struct cm_trainer_options {
    int threads;
    size_t memory_limit;
    const char *backend;
    uint64_t seed;
    const struct cm_registry *registry;       /* NULL: the built-in operators */
    const char *without_passes, *with_passes; /* see struct cm_lower_options */
    const char
        *backend_versions; /* "onednn 3.7.1", a condition of checkpoints; NULL: "reference" */
    bool check_finite; /* a NaN or infinity in a scalar output, or in what a new value is computed
                          from, stops the step before it is committed */
    bool split;        /* steps have two halves, with the gradients between them */
    /* The training of the file as it was prepared, which is taken instead of an import: the trainer
     * adds to its module; NULL: none. The operators are those that it was prepared with. */
    const struct cm_prepared_training *prepared;
    struct cm_findings *findings; /* where all blockers go, beside the message; or NULL */
};

/* Lives in arena, which releases it. file must outlive it. All blockers (an operator, type or
 * gradient that is missing, a binding that names nothing, a value of another type or shape than its
 * variable) are named at once. */
enum cm_status cm_trainer_new(struct cm_arena *arena, struct cm_model_file *file,
                              const struct cm_trainer_options *options, struct cm_trainer **out,
                              struct cm_error *err) CM_MUST_CHECK;
void cm_trainer_free(struct cm_trainer *trainer);

/* What a step must be fed: inputs of the graphs that no initializer covers. */
struct cm_trainer_input {
    struct cm_str name;
    const struct cm_type *type;
};
size_t cm_trainer_input_count(const struct cm_trainer *trainer);
const struct cm_trainer_input *cm_trainer_input(const struct cm_trainer *trainer, size_t i);

/* State variables: weights, optimizer state, counters. */
size_t cm_trainer_state_count(const struct cm_trainer *trainer);
struct cm_str cm_trainer_state_name(const struct cm_trainer *trainer, size_t i);
int cm_trainer_state_find(const struct cm_trainer *trainer, struct cm_str name);
const struct cm_tensor *cm_trainer_state(const struct cm_trainer *trainer,
                                         size_t i); /* borrowed until the next step */
enum cm_status cm_trainer_set_state(struct cm_trainer *trainer, size_t i,
                                    const struct cm_tensor *value,
                                    struct cm_error *err) CM_MUST_CHECK; /* copied */

/* Runs the initialization graphs: stored values first, then each entry's initialization in order.
 */
enum cm_status cm_trainer_initialize(struct cm_trainer *trainer,
                                     struct cm_error *err) CM_MUST_CHECK;
/* Its two halves. The first reads the messages of the model, which saving another trainer of the
 * model changes for a while: a lock must keep these apart. The second runs graphs. */
enum cm_status cm_trainer_take_stored(struct cm_trainer *trainer,
                                      struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_trainer_run_initialization(struct cm_trainer *trainer,
                                             struct cm_error *err) CM_MUST_CHECK;

/* A scalar output of an algorithm, by name. */
struct cm_trainer_scalar {
    struct cm_str name;
    double value;
};

/* One iteration: every entry in order. in: one per input, by their order. scalars (room for
 * cm_trainer_scalar_count) receives the scalar outputs. On failure the state is as before the step.
 */
size_t cm_trainer_scalar_count(const struct cm_trainer *trainer);
struct cm_str cm_trainer_scalar_name(const struct cm_trainer *trainer, size_t i);
/* Which of them is the loss: the one called so, else the first real one that is bound to nothing;
 * -1: none. */
int cm_trainer_loss(const struct cm_trainer *trainer);
/* Iterations done since the trainer was made or told otherwise; messages name the step. */
uint64_t cm_trainer_steps(const struct cm_trainer *trainer);
void cm_trainer_set_steps(struct cm_trainer *trainer, uint64_t steps);
/* Whole epochs and samples that it was trained on, as far as a loop has told. */
struct cm_trainer_progress {
    uint64_t epochs, samples;
};
struct cm_trainer_progress cm_trainer_progress(const struct cm_trainer *trainer);
void cm_trainer_set_progress(struct cm_trainer *trainer, struct cm_trainer_progress progress);
/* A flag that another thread may set: the step under way ends with CM_CANCELLED. NULL: none. */
void cm_trainer_set_cancel(struct cm_trainer *trainer, const atomic_bool *cancel);
/* Called after each step of the graphs that an iteration runs. NULL: none. */
void cm_trainer_set_step(struct cm_trainer *trainer,
                         void (*step)(void *arg, const struct cm_step_report *report), void *arg);
enum cm_status cm_trainer_step(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                               struct cm_trainer_scalar *scalars,
                               struct cm_error *err) CM_MUST_CHECK;

/* The halves of a step that is split, entry by entry: compute and apply, as many times as there are
 * entries. The first half of an entry computes the loss and the gradients, and whatever else does
 * not follow from them; no variable changes. The second computes the update from the gradients as
 * they are then; the entry after it sees what it wrote, and after the last one the step is
 * committed. scalars may be NULL; each half fills those that it computes. The first again instead
 * of the second begins the entry anew; a failure gives the whole step up. An entry without
 * gradients has nothing left for its second half to compute. */
size_t cm_trainer_entry_count(const struct cm_trainer *trainer);
/* The entry that is computed next, or is computed and not applied yet. */
size_t cm_trainer_next_entry(const struct cm_trainer *trainer);
enum cm_status cm_trainer_compute(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                  struct cm_trainer_scalar *scalars,
                                  struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_trainer_apply(struct cm_trainer *trainer, struct cm_trainer_scalar *scalars,
                                struct cm_error *err) CM_MUST_CHECK;
/* Is a step under way: an entry computed and not applied, or applied and not the last? */
bool cm_trainer_is_computed(const struct cm_trainer *trainer);

/* Parameters: the variables that Gradient nodes of the training differentiate by; without such a
 * node, the float initializers of the inference graph that steps update. In the order of the
 * variables, one after the other in flat memory, each at a multiple of its element's size: where
 * all have one type there is nothing between them. */
struct cm_trainer_parameter {
    size_t variable, offset, bytes;
};
size_t cm_trainer_parameter_count(const struct cm_trainer *trainer);
struct cm_trainer_parameter cm_trainer_parameter(const struct cm_trainer *trainer, size_t i);
size_t cm_trainer_parameter_bytes(const struct cm_trainer *trainer);
/* size must be cm_trainer_parameter_bytes. Parameters are as the next entry will see them.
 * Gradients are there after cm_trainer_compute, until cm_trainer_apply has used them: those of the
 * entry at hand, 0 for what it does not differentiate by, and what is set there counts for nothing.
 */
enum cm_status cm_trainer_read_flat(const struct cm_trainer *trainer, bool gradients, void *values,
                                    size_t size, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_trainer_set_flat(struct cm_trainer *trainer, bool gradients, const void *values,
                                   size_t size, struct cm_error *err) CM_MUST_CHECK;

/* What a step holds, in bytes. */
struct cm_trainer_memory {
    size_t weights;   /* variables of the inference graph */
    size_t state;     /* variables of the algorithms: moments, counters */
    size_t updates;   /* new values beside the old ones, until the step is done */
    size_t constants; /* what training leaves as it is; most of it lies in the mapped file */
    size_t batch;     /* the inputs */
    size_t work;      /* activations, gradients and scratch memory, in places that are used again */
    /* Of work: the most at once of each. They do not reach it at the same moment and use the same
     * places, so that together they may be more than work. */
    size_t activations, gradients, arithmetic, scratch;
    size_t limited; /* what a memory limit is compared with: of the entry that needs most */
    size_t late;    /* nodes that take more as they run: the data decides, or a body's turns do */
};

/* in as for a step; only types and shapes count, data may be NULL. Nothing is run and no memory
 * limit applied. */
enum cm_status cm_trainer_memory(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                 struct cm_trainer_memory *out, struct cm_error *err) CM_MUST_CHECK;

/* What is measured on a batch without training on it. */
struct cm_trainer_measure {
    int64_t samples;
    double loss;             /* NAN: the training has none */
    int64_t judged, correct; /* labels that count, and those hit, when the loss classifies */
    /* Otherwise, when the model has one real output and one target of its shape: numbers compared,
     * sums of absolute and squared errors, of the targets and of their squares. */
    int64_t compared;
    double absolute, squared, targets, target_squares;
};

/* What follows from a measure; NAN where it does not apply. r2: the share of the targets' variance
 * that the model explains. */
struct cm_measure_scores {
    double accuracy, mae, mse, r2;
};
struct cm_measure_scores cm_measure_scores(const struct cm_trainer_measure *measure);

/* Makes the graph for cm_trainer_evaluate, and that for cm_trainer_predict, once; the arena must be
 * lent to a guard. Random and training behaviour (Dropout, BatchNormalization) is switched off in
 * them. What only a prediction needs does not stand in the way of an evaluation. */
enum cm_status cm_trainer_prepare_evaluation(struct cm_trainer *trainer,
                                             struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_trainer_prepare_prediction(struct cm_trainer *trainer,
                                             struct cm_error *err) CM_MUST_CHECK;
/* in as for a step. Nothing changes. */
enum cm_status cm_trainer_evaluate(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                   struct cm_trainer_measure *out,
                                   struct cm_error *err) CM_MUST_CHECK;

/* The inference graph with the weights as they are now. Its inputs and outputs by number; out as
 * for cm_session_run. */
size_t cm_trainer_predict_input_count(const struct cm_trainer *trainer);
const struct cm_trainer_input *cm_trainer_predict_input(const struct cm_trainer *trainer, size_t i);
size_t cm_trainer_predict_output_count(const struct cm_trainer *trainer);
struct cm_str cm_trainer_predict_output(const struct cm_trainer *trainer, size_t i);
enum cm_status cm_trainer_predict(struct cm_trainer *trainer, const struct cm_datum *const *in,
                                  struct cm_datum *out, struct cm_error *err) CM_MUST_CHECK;

/* The random state, for checkpoints: bytes that cm_trainer_set_random takes back, all of them or
 * none. A step that is half done is then no more. */
enum cm_status cm_trainer_random(const struct cm_trainer *trainer, struct cm_arena *arena,
                                 struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_trainer_set_random(struct cm_trainer *trainer, struct cm_arena *scratch,
                                     struct cm_str bytes, struct cm_error *err) CM_MUST_CHECK;

/* How the step of an entry draws: its random nodes, by stream from 1 on, and the seed they have. */
void cm_trainer_draws(const struct cm_trainer *trainer, size_t entry, size_t *streams,
                      uint64_t *seed);

/* Until scratch is released, the trainer's file has the state in it: tensor values are others,
 * copied into arena, and nothing else is. */
enum cm_status cm_trainer_show_state(struct cm_trainer *trainer, struct cm_arena *arena,
                                     struct cm_arena *scratch, struct cm_error *err) CM_MUST_CHECK;
/* The file's model with the state in it, saved to path: tensor values change and nothing else. The
 * file's messages are as before. scratch is free for reuse afterwards. */
enum cm_status cm_trainer_save(struct cm_trainer *trainer, struct cm_arena *scratch,
                               struct cm_model_file *file, const char *path,
                               const struct cm_save_options *options, struct cm_save_report *report,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
