/* Rates that fall when the validation loss does not. */
// SPDX-License-Identifier: Apache-2.0
#include "train/plateau.h"

static void reduce(double *state, size_t count)
{
    const double smallest_change = 1e-8; /* PyTorch's eps */

    for (size_t i = CM_PLATEAU_RATES; i < count; i++) {
        const double lower = state[i] * state[CM_PLATEAU_FACTOR], least = state[CM_PLATEAU_LEAST];
        const double next = lower > least ? lower : least;

        if (state[i] - next > smallest_change)
            state[i] = next;
    }
}

/* After a validation with this loss. */
static void plateau_follow(double *state, size_t count, double loss)
{
    const double enough = state[CM_PLATEAU_BEST] * (1 - state[CM_PLATEAU_THRESHOLD]);

    if (loss < enough) {
        state[CM_PLATEAU_BEST] = loss;
        state[CM_PLATEAU_WORSE] = 0;
    } else {
        state[CM_PLATEAU_WORSE] += 1;
    }
    if (state[CM_PLATEAU_COOLING] > 0) {
        state[CM_PLATEAU_COOLING] -= 1;
        state[CM_PLATEAU_WORSE] = 0;
    }
    if (state[CM_PLATEAU_WORSE] > state[CM_PLATEAU_PATIENCE]) {
        reduce(state, count);
        state[CM_PLATEAU_COOLING] = state[CM_PLATEAU_COOLDOWN];
        state[CM_PLATEAU_WORSE] = 0;
    }
}

static const struct cm_tensor *variable(const struct cm_trainer *trainer)
{
    const int i = cm_trainer_state_find(trainer, CM_STR(CM_PLATEAU_NAME));
    const struct cm_tensor *value = i >= 0 ? cm_trainer_state(trainer, (size_t)i) : NULL;
    const bool fits = value && value->type == CM_DOUBLE && value->shape.rank == 1 &&
                      value->shape.dims[0] > CM_PLATEAU_RATES;

    return fits ? value : NULL;
}

bool cm_trainer_has_plateau(const struct cm_trainer *trainer)
{
    return variable(trainer) != NULL;
}

enum cm_status cm_trainer_add_validation(struct cm_trainer *trainer, double loss,
                                         struct cm_error *err)
{
    const struct cm_tensor *state = variable(trainer);

    if (!state)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the rate of this training does not follow the validation loss: prepare it "
                       "with the schedule 'plateau'");
    plateau_follow(state->data, (size_t)state->shape.dims[0], loss);
    return CM_OK;
}
