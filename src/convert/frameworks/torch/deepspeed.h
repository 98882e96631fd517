/* Folders of DeepSpeed: what its files share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_DEEPSPEED_H
#define CM_CONVERT_DEEPSPEED_H

#include "base/array.h"
#include "convert/format.h"

/* A parameter, and where it is in the flat tensors. */
struct cm_zero_parameter {
    struct cm_str name;
    struct cm_shape shape;
    int64_t count;
    size_t flat;  /* number of the flat tensor */
    int64_t at;   /* in the flat tensor of all ranks together; with ZeRO 3 in that of each rank */
    size_t group; /* of the optimizer */
};

struct cm_zero_rank {
    struct cm_str model_name, optim_name; /* of files; empty: there is none */
    const struct cm_item *model;          /* of rank 0; with ZeRO 3 of all */
    const struct cm_item *state;          /* optimizer_state_dict of the optimizer's file */
    const struct cm_item *base;           /* of PyTorch's optimizer in there */
    const struct cm_item *flats;          /* float weights in there */
};

struct cm_zero {
    struct cm_saved_place *place;
    struct cm_saved *saved;
    struct cm_str folder; /* of the tag, with its slash; empty: the place itself */
    struct cm_zero_rank *ranks;
    size_t n_ranks;
    bool is_third; /* ZeRO 3 */
    CM_ARRAY(struct cm_zero_parameter) parameters;
    struct cm_error *err;
};

/* Finds the parameters and where they are in the flat tensors. */
enum cm_status cm_zero_list_parameters(struct cm_zero *zero) CM_MUST_CHECK;
/* With ZeRO 3, all weights as a map of tensors. */
enum cm_status cm_zero_gather_weights(struct cm_zero *zero, struct cm_item *weights) CM_MUST_CHECK;
/* Float copies of weights that module has in fewer bits. */
enum cm_status cm_zero_add_masters(struct cm_zero *zero,
                                   const struct cm_item *module) CM_MUST_CHECK;
/* The optimizer as PyTorch would have saved it, had nobody cut it: states and groups by name. */
enum cm_status cm_zero_gather_optimizer(struct cm_zero *zero, const struct cm_item *config,
                                        struct cm_item *out) CM_MUST_CHECK;

/* The schedule that the configuration names (scheduler.type and its params), at the position in the
 * scheduler's state; after the optimizer was taken. */
void cm_deepspeed_take_schedule(struct cm_saved *saved, const struct cm_item *config,
                                const struct cm_item *state);

#endif
