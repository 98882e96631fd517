/* What a training step holds: asked of the sessions, sorted by what it is for. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "train/trainer_parts.h"

/* ---- what values are for ---- */

/* Activations are what the values that are differentiated are computed from; gradients all else
 * that derivatives are. What is left is arithmetic of the update. */
static enum cm_memory_kind kind_of(void *arg, const struct cm_node *node)
{
    static const enum cm_memory_kind kinds[] = {
        [CM_PHASE_NONE] = CM_MEMORY_OTHER,
        [CM_PHASE_FORWARD] = CM_MEMORY_ACTIVATION,
        [CM_PHASE_BACKWARD] = CM_MEMORY_GRADIENT,
    };
    (void)arg;
    return kinds[node->phase];
}

void cm_program_sort_memory(struct cm_program *program)
{
    cm_session_sort_memory(program->session, kind_of, NULL);
}

/* ---- how much ---- */

static enum cm_status add_bytes(size_t *sum, size_t bytes, struct cm_error *err)
{
    return cm_size_add(*sum, bytes, sum)
               ? CM_OK
               : cm_fail(err, CM_LIMIT, "a step is too large for any memory");
}

/* Each entry keeps the memory of its graph for the next step. */
static enum cm_status add_program(struct cm_trainer *trainer, struct cm_program *program,
                                  const struct cm_tensor *const *in, struct cm_trainer_memory *out,
                                  struct cm_error *err)
{
    struct cm_session_memory memory;

    if (!program->session)
        return CM_OK;
    cm_program_place_outputs(trainer, program);
    CM_TRY(cm_program_measure(trainer, program, in, &memory, err));
    size_t limited = memory.block;
    CM_TRY(add_bytes(&limited, memory.results, err));
    out->late += memory.late;
    out->limited = limited > out->limited ? limited : out->limited;
    CM_TRY(add_bytes(&out->constants, memory.constants, err));
    CM_TRY(add_bytes(&out->constants, memory.packed, err));
    CM_TRY(add_bytes(&out->activations, memory.most[CM_MEMORY_ACTIVATION], err));
    CM_TRY(add_bytes(&out->gradients, memory.most[CM_MEMORY_GRADIENT], err));
    CM_TRY(add_bytes(&out->arithmetic, memory.most[CM_MEMORY_OTHER], err));
    CM_TRY(add_bytes(&out->arithmetic, memory.results, err));
    CM_TRY(add_bytes(&out->scratch, memory.most[CM_MEMORY_SCRATCH], err));
    return add_bytes(&out->work, limited, err);
}

/* Shapes of what the first half will hand over, as far as they are known by now. */
static bool suppose_handovers(struct cm_training_entry *entry)
{
    bool all = true;

    for (size_t h = 0; h < entry->handovers.count; h++) {
        struct cm_handover *handover = &entry->handovers.items[h];
        const struct cm_type *type = entry->step.types[handover->output];
        struct cm_shape shape;

        if (handover->memory.buffer)
            shape = handover->memory.shape;
        else if (type->kind != CM_KIND_TENSOR || !cm_type_shape(type, &shape))
            all = false;
        if (all)
            handover->value = (struct cm_datum){
                .kind = CM_KIND_TENSOR, .tensor = cm_tensor_borrow(type->dtype, &shape, NULL)};
    }
    return all;
}

/* The second half of an entry, and the gradients between the two. */
static enum cm_status add_update(struct cm_trainer *trainer, size_t k,
                                 const struct cm_tensor *const *in, struct cm_trainer_memory *out,
                                 struct cm_error *err)
{
    struct cm_training_entry *entry = &trainer->entries[k];
    const bool computed = trainer->computed && trainer->next == k;
    enum cm_status status = CM_OK;

    for (size_t h = 0; h < entry->handovers.count; h++) {
        const size_t bytes = cm_tensor_bytes(&entry->handovers.items[h].memory);

        if (!entry->handovers.items[h].memory.buffer)
            continue;
        CM_TRY(add_bytes(&out->gradients, bytes, err));
        CM_TRY(add_bytes(&out->work, bytes, err));
    }
    if (computed || suppose_handovers(entry))
        status = add_program(trainer, &entry->update, in, out, err);
    else
        out->late++;
    for (size_t h = 0; !computed && h < entry->handovers.count; h++)
        entry->handovers.items[h].value = (struct cm_datum){0};
    return status;
}

static enum cm_status add_entry(struct cm_trainer *trainer, size_t k,
                                const struct cm_tensor *const *in, struct cm_trainer_memory *out,
                                struct cm_error *err)
{
    CM_TRY(add_program(trainer, &trainer->entries[k].step, in, out, err));
    return trainer->options.split ? add_update(trainer, k, in, out, err) : CM_OK;
}

enum cm_status cm_trainer_memory(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                 struct cm_trainer_memory *out, struct cm_error *err)
{
    *out = (struct cm_trainer_memory){0};
    for (size_t i = 0; i < trainer->n_variables; i++) {
        const size_t bytes = cm_tensor_bytes(&trainer->variables[i].now);

        CM_TRY(
            add_bytes(trainer->variables[i].entry < 0 ? &out->weights : &out->state, bytes, err));
        if (trainer->variables[i].next.data)
            CM_TRY(add_bytes(&out->updates, bytes, err));
    }
    for (size_t i = 0; i < trainer->inputs.count; i++)
        if (in[i])
            CM_TRY(add_bytes(&out->batch, cm_tensor_bytes(in[i]), err));
    for (size_t k = 0; k < trainer->n_entries; k++)
        CM_TRY(cm_error_context(err, add_entry(trainer, k, in, out, err), "training_info[%zu]", k));
    return CM_OK;
}
