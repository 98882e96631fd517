/* Parameters and gradients as flat memory. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "base/number.h"
#include "train/trainer_parts.h"

/* ---- which ---- */

/* By variable: does a Gradient node differentiate by it? */
static bool *find_differentiated(const struct cm_trainer *trainer)
{
    bool *found = CM_NEW_ARRAY(trainer->arena, bool, trainer->n_variables);

    for (size_t k = 0; k < trainer->n_entries; k++) {
        const struct cm_graph *graph = trainer->entries[k].graph;

        for (const struct cm_node *node = graph ? graph->first : NULL; node; node = node->next)
            for (int o = 0; cm_node_is_gradient(node) && o < node->n_outputs; o++) {
                const size_t variable = cm_gradient_variable(trainer, node, o);

                if (variable != SIZE_MAX)
                    found[variable] = true;
            }
    }
    return found;
}

static void add_parameter(struct cm_trainer *trainer, size_t variable)
{
    const struct cm_tensor *tensor = &trainer->variables[variable].now;
    const size_t element = cm_dtype_size(tensor->type);
    /* they are in memory: sums cannot overflow */
    const size_t offset = cm_round_up(trainer->parameter_bytes, element ? element : 1);

    *CM_PUSH(trainer->arena, &trainer->parameters) = variable;
    trainer->variables[variable].offset = offset;
    trainer->parameter_bytes = offset + cm_tensor_bytes(tensor);
}

void cm_trainer_list_parameters(struct cm_trainer *trainer)
{
    const bool *differentiated = find_differentiated(trainer);

    for (size_t i = 0; i < trainer->n_variables; i++)
        if (differentiated[i])
            add_parameter(trainer, i);
    if (trainer->parameters.count)
        return;
    for (size_t i = 0; i < trainer->n_variables; i++)
        if (trainer->variables[i].entry < 0 && trainer->variables[i].updated &&
            cm_dtype_is_float(trainer->variables[i].now.type))
            add_parameter(trainer, i);
}

size_t cm_trainer_parameter_count(const struct cm_trainer *trainer)
{
    return trainer->parameters.count;
}

struct cm_trainer_parameter cm_trainer_parameter(const struct cm_trainer *trainer, size_t i)
{
    const size_t variable = trainer->parameters.items[i];

    return (struct cm_trainer_parameter){variable, trainer->variables[variable].offset,
                                         cm_tensor_bytes(&trainer->variables[variable].now)};
}

size_t cm_trainer_parameter_bytes(const struct cm_trainer *trainer)
{
    return trainer->parameter_bytes;
}

/* ---- copying ---- */

static enum cm_status check(const struct cm_trainer *trainer, bool gradients, const void *values,
                            size_t size, struct cm_error *err)
{
    if (gradients)
        CM_TRY(cm_trainer_check_split(trainer, err));
    if (gradients && !trainer->computed)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "there are no gradients: none have been "
                       "computed since the last update");
    if (size == trainer->parameter_bytes && (values || !size))
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "the %zu parameters have %zu bytes, but %zu bytes were passed",
                   trainer->parameters.count, trainer->parameter_bytes, values ? size : 0);
}

/* Between flat memory and what lies apart: the parameters, or the gradients that the entry at hand
 * has. From flat memory where to is NULL. */
static void copy_all(const struct cm_trainer *trainer, bool gradients, char *to, const char *from)
{
    const struct cm_training_entry *entry = &trainer->entries[trainer->next];
    const size_t count = gradients ? entry->handovers.count : trainer->parameters.count;

    for (size_t i = 0; i < count; i++) {
        const struct cm_handover *handover = gradients ? &entry->handovers.items[i] : NULL;
        const size_t variable = handover ? handover->variable : trainer->parameters.items[i];

        if (variable == SIZE_MAX)
            continue; /* no gradient */
        const struct cm_variable *of = &trainer->variables[variable];
        const struct cm_tensor *tensor = handover ? &handover->memory : of->seen;
        if (cm_tensor_bytes(tensor))
            memcpy(to ? to + of->offset : tensor->data, to ? tensor->data : from + of->offset,
                   cm_tensor_bytes(tensor));
    }
}

/* Bytes of no parameter, where types differ, and gradients that the entry has not are 0. */
enum cm_status cm_trainer_read_flat(const struct cm_trainer *trainer, bool gradients, void *values,
                                    size_t size, struct cm_error *err)
{
    CM_TRY(check(trainer, gradients, values, size, err));
    if (!size)
        return CM_OK;
    memset(values, 0, size);
    copy_all(trainer, gradients, values, NULL);
    return CM_OK;
}

enum cm_status cm_trainer_set_flat(struct cm_trainer *trainer, bool gradients, const void *values,
                                   size_t size, struct cm_error *err)
{
    CM_TRY(check(trainer, gradients, values, size, err));
    copy_all(trainer, gradients, NULL, values);
    return CM_OK;
}
