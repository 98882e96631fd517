/* Parameters and gradients as flat memory. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "train/trainer_parts.h"

/* ---- which ---- */

static void add_parameter(struct cm_trainer *trainer, struct cm_map *seen, size_t variable)
{
    bool added;

    cm_map_insert(seen, trainer->arena, trainer->names[variable].name, &added);
    if (added)
        *CM_PUSH(trainer->arena, &trainer->parameters) =
            (struct cm_parameter_slot){.variable = variable, .handover = SIZE_MAX};
}

static void find_differentiated(struct cm_trainer *trainer, struct cm_map *seen)
{
    for (size_t k = 0; k < trainer->n_entries; k++) {
        const struct cm_graph_proto *algorithm =
            cm_training_algorithm(&trainer->file->model.training_info.items[k]);

        for (size_t n = 0; n < algorithm->node.count; n++) {
            const struct cm_node_proto *node = &algorithm->node.items[n];

            for (size_t o = 0; cm_node_is_gradient(node) && o < node->output.count; o++) {
                const size_t variable = cm_gradient_variable(trainer, node, o);

                if (variable != SIZE_MAX)
                    add_parameter(trainer, seen, variable);
            }
        }
    }
}

static int by_variable(const void *a, const void *b)
{
    const size_t x = ((const struct cm_parameter_slot *)a)->variable;
    const size_t y = ((const struct cm_parameter_slot *)b)->variable;

    return (x > y) - (x < y);
}

void cm_trainer_list_parameters(struct cm_trainer *trainer)
{
    struct cm_map seen = {0};
    size_t at = 0;

    if (!trainer->options.split)
        find_differentiated(trainer, &seen);
    for (size_t i = 0; !trainer->parameters.count && i < trainer->n_variables; i++)
        if (trainer->names[i].entry < 0 && trainer->variables[i].updated &&
            cm_dtype_info(trainer->variables[i].now.type)->kind == CM_CLASS_FLOAT)
            *CM_PUSH(trainer->arena, &trainer->parameters) =
                (struct cm_parameter_slot){.variable = i, .handover = SIZE_MAX};
    if (trainer->parameters.count)
        qsort(trainer->parameters.items, trainer->parameters.count,
              sizeof *trainer->parameters.items, by_variable);
    for (size_t i = 0; i < trainer->parameters.count; i++) {
        struct cm_parameter_slot *slot = &trainer->parameters.items[i];
        const struct cm_tensor *tensor = &trainer->variables[slot->variable].now;
        const size_t element = cm_dtype_size(tensor->type);

        at = cm_round_up(at, element ? element : 1); /* they are in memory: sums cannot overflow */
        slot->offset = at;
        at += cm_tensor_bytes(tensor);
    }
    trainer->parameter_bytes = at;
}

size_t cm_trainer_parameter_count(const struct cm_trainer *trainer)
{
    return trainer->parameters.count;
}

struct cm_trainer_parameter cm_trainer_parameter(const struct cm_trainer *trainer, size_t i)
{
    const struct cm_parameter_slot *slot = &trainer->parameters.items[i];

    return (struct cm_trainer_parameter){slot->variable, slot->offset,
                                         cm_tensor_bytes(&trainer->variables[slot->variable].now)};
}

size_t cm_trainer_parameter_bytes(const struct cm_trainer *trainer)
{
    return trainer->parameter_bytes;
}

/* ---- copying ---- */

static enum cm_status check_size(const struct cm_trainer *trainer, const void *values, size_t size,
                                 struct cm_error *err)
{
    if (size == trainer->parameter_bytes && (values || !size))
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT, "the %zu parameters have %zu bytes, the call is for %zu",
                   trainer->parameters.count, trainer->parameter_bytes, values ? size : 0);
}

static enum cm_status check_gradients(const struct cm_trainer *trainer, struct cm_error *err)
{
    if (!trainer->options.split)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the trainer was not made for gradients, its steps are whole");
    if (!trainer->computed)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "there are no gradients: none have been computed "
                       "since the last update");
    return CM_OK;
}

static const struct cm_tensor *value_of(const struct cm_trainer *trainer, size_t i, bool gradient)
{
    const struct cm_parameter_slot *slot = &trainer->parameters.items[i];

    return gradient ? &trainer->handovers.items[slot->handover].memory
                    : &trainer->variables[slot->variable].now;
}

/* Bytes between parameters, where types differ, are 0. */
static void read_all(const struct cm_trainer *trainer, bool gradients, char *to, size_t size)
{
    if (size)
        memset(to, 0, size);
    for (size_t i = 0; size && i < trainer->parameters.count; i++) {
        const struct cm_tensor *tensor = value_of(trainer, i, gradients);

        if (cm_tensor_bytes(tensor))
            memcpy(to + trainer->parameters.items[i].offset, tensor->data, cm_tensor_bytes(tensor));
    }
}

static void set_all(struct cm_trainer *trainer, bool gradients, const char *from, size_t size)
{
    for (size_t i = 0; size && i < trainer->parameters.count; i++) {
        const struct cm_tensor *tensor = value_of(trainer, i, gradients);

        if (cm_tensor_bytes(tensor))
            memcpy(tensor->data, from + trainer->parameters.items[i].offset,
                   cm_tensor_bytes(tensor));
    }
}

enum cm_status cm_trainer_read_parameters(const struct cm_trainer *trainer, void *values,
                                          size_t size, struct cm_error *err)
{
    CM_TRY(check_size(trainer, values, size, err));
    read_all(trainer, false, values, size);
    return CM_OK;
}

enum cm_status cm_trainer_set_parameters(struct cm_trainer *trainer, const void *values,
                                         size_t size, struct cm_error *err)
{
    CM_TRY(check_size(trainer, values, size, err));
    set_all(trainer, false, values, size);
    return CM_OK;
}

enum cm_status cm_trainer_read_gradients(const struct cm_trainer *trainer, void *values,
                                         size_t size, struct cm_error *err)
{
    CM_TRY(check_gradients(trainer, err));
    CM_TRY(check_size(trainer, values, size, err));
    read_all(trainer, true, values, size);
    return CM_OK;
}

enum cm_status cm_trainer_set_gradients(struct cm_trainer *trainer, const void *values, size_t size,
                                        struct cm_error *err)
{
    CM_TRY(check_gradients(trainer, err));
    CM_TRY(check_size(trainer, values, size, err));
    set_all(trainer, true, values, size);
    return CM_OK;
}
