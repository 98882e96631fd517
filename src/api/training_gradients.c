/* Parameters and gradients of a trainer as flat memory, and steps by halves. */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"

void cm_api_describe_parameters(struct cameo_trainer *t)
{
    const size_t count = cm_trainer_parameter_count(t->trainer);

    t->parameters = CM_NEW_ARRAY(&t->arena, struct cameo_parameter, count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_trainer_parameter from = cm_trainer_parameter(t->trainer, i);
        const struct cameo_initializer *variable = &t->variables[from.variable];

        t->parameters[i] = (struct cameo_parameter){.name = variable->name,
                                                    .variable = from.variable,
                                                    .dtype = variable->dtype,
                                                    .elements = variable->elements,
                                                    .offset = from.offset,
                                                    .bytes = from.bytes};
    }
}

size_t cameo_trainer_parameter_count(const struct cameo_trainer *trainer)
{
    return cm_trainer_parameter_count(trainer->trainer);
}

const struct cameo_parameter *cameo_trainer_parameter(const struct cameo_trainer *trainer,
                                                      size_t index)
{
    return index < cameo_trainer_parameter_count(trainer) ? &trainer->parameters[index] : NULL;
}

size_t cameo_trainer_parameter_bytes(const struct cameo_trainer *trainer)
{
    return cm_trainer_parameter_bytes(trainer->trainer);
}

static enum cameo_status read_flat(const struct cameo_trainer *trainer, bool gradients,
                                   void *values, size_t size, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(values, size, err);
    struct cm_error reason = {0};

    return cm_api_done(cm_trainer_read_flat(trainer->trainer, gradients, values, size, &reason),
                       &reason, err);
}

static enum cameo_status set_flat(struct cameo_trainer *trainer, bool gradients, const void *values,
                                  size_t size, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(values, size, err);
    struct cm_error reason = {0};

    return cm_api_done(cm_trainer_set_flat(trainer->trainer, gradients, values, size, &reason),
                       &reason, err);
}

enum cameo_status cameo_trainer_read_parameters(const struct cameo_trainer *trainer, void *values,
                                                size_t size, struct cameo_error *err)
{
    return read_flat(trainer, false, values, size, err);
}

enum cameo_status cameo_trainer_set_parameters(struct cameo_trainer *trainer, const void *values,
                                               size_t size, struct cameo_error *err)
{
    return set_flat(trainer, false, values, size, err);
}

enum cameo_status cameo_trainer_read_gradients(const struct cameo_trainer *trainer, void *values,
                                               size_t size, struct cameo_error *err)
{
    return read_flat(trainer, true, values, size, err);
}

enum cameo_status cameo_trainer_set_gradients(struct cameo_trainer *trainer, const void *values,
                                              size_t size, struct cameo_error *err)
{
    return set_flat(trainer, true, values, size, err);
}

/* ---- halves ---- */

size_t cameo_trainer_entry_count(const struct cameo_trainer *trainer)
{
    return cm_trainer_entry_count(trainer->trainer);
}

size_t cameo_trainer_next_entry(const struct cameo_trainer *trainer)
{
    return cm_trainer_next_entry(trainer->trainer);
}

/* The trainer's scalars keep what halves said before: those of a step together give all of them.
 * Those that are still to come have no name. */
static void give_scalars(const struct cameo_trainer *trainer, double *scalars)
{
    for (size_t i = 0; scalars && i < cameo_trainer_scalar_count(trainer); i++)
        if (trainer->scalars[i].name.size)
            scalars[i] = trainer->scalars[i].value;
}

enum cameo_status cameo_trainer_compute(struct cameo_trainer *trainer,
                                        const struct cameo_feed *feeds, size_t feed_count,
                                        double *scalars, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    struct cm_error reason = {0};
    enum cm_status status = cm_api_feed_trainer(trainer, feeds, feed_count, false, &reason);

    for (size_t i = 0;
         i < cameo_trainer_scalar_count(trainer) && !cm_trainer_next_entry(trainer->trainer); i++)
        trainer->scalars[i] = (struct cm_trainer_scalar){0};
    if (status == CM_OK)
        status = cm_trainer_compute(trainer->trainer, trainer->in, trainer->scalars, &reason);
    status = cm_api_fed_trainer(trainer, feeds, feed_count, status);
    if (status == CM_OK)
        give_scalars(trainer, scalars);
    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_trainer_apply(struct cameo_trainer *trainer, double *scalars,
                                      struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    struct cm_error reason = {0};
    const enum cm_status status = cm_trainer_apply(trainer->trainer, trainer->scalars, &reason);

    if (status == CM_OK)
        give_scalars(trainer, scalars);
    return cm_api_done(status, &reason, err);
}
