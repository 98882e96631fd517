/* What the files of api/ that train models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_TRAINING_H
#define CM_API_TRAINING_H

#include "api/running.h"
#include "train/feeder.h"
#include "train/trainer.h"

struct cameo_trainer {
    struct cm_arena arena; /* the trainer and everything below */
    struct cameo_model *model;
    struct cm_trainer *trainer;
    struct cameo_trainer_options options;
    struct cameo_value_info *inputs;
    struct cameo_initializer *variables;
    struct cameo_parameter *parameters;
    const char **scalar_names;
    struct cm_trainer_scalar *scalars;
    struct cm_tensor *fed; /* by input of a step */
    const struct cm_tensor **in;
    struct cm_api_listener listener;
    bool evaluates, predicts; /* the graphs for it are made */
};

/* training.c: feeds to their places in trainer->in. only_shapes: there need be no data. */
enum cm_status cm_api_feed_trainer(struct cameo_trainer *trainer, const struct cameo_feed *feeds,
                                   size_t feed_count, bool only_shapes,
                                   struct cm_error *err) CM_MUST_CHECK;
/* training.c: the graph for it is made when somebody asks first. */
enum cm_status cm_api_prepare_evaluation(struct cameo_trainer *trainer,
                                         struct cm_error *err) CM_MUST_CHECK;
struct cameo_measure cm_api_measure(const struct cm_trainer_measure *from);
/* Afterwards, with the status of what was fed: drops copies and lets go of what was taken over. */
enum cm_status cm_api_fed_trainer(struct cameo_trainer *trainer, const struct cameo_feed *feeds,
                                  size_t feed_count, enum cm_status status) CM_MUST_CHECK;
void cm_api_unfeed_trainer(struct cameo_trainer *trainer);
/* training_position.c: until scratch is released, the model says of its training how far the
 * trainer is. The words are in arena, which may be the same one. */
void cm_api_tell_position(const struct cameo_trainer *trainer, struct cm_arena *arena,
                          struct cm_arena *scratch);
/* training_gradients.c: rows for the parameters. */
void cm_api_describe_parameters(struct cameo_trainer *trainer);

struct cameo_dataset {
    struct cm_dataset *dataset;
    /* Of one made of memory: arrays that were copied, and those taken over. */
    struct cm_tensor *copies;
    struct cameo_tensor *taken;
    size_t n_arrays;
};

/* training_memory.c: what a data set made of memory holds. */
void cm_api_drop_arrays(struct cameo_dataset *dataset);

struct cameo_batches {
    struct cm_feeder *feeder;
    struct cameo_feed *feeds; /* of these tensors */
    struct cameo_tensor *tensors;
    size_t n_inputs;
    struct cameo_batch_source source; /* where the feeder has one */
    struct cameo_trainer *trainer;    /* of a source */
    char *conditions;
};

#endif
