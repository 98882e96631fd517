/* Trainers: their life, their state, and the two phases of a step. */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include "base/number.h"
#include "train/trainer_parts.h"

/* ---- life ---- */

static void release(void *what)
{
    struct cm_trainer *trainer = what;

    for (size_t k = 0; trainer->entries && k < trainer->n_entries; k++) {
        cm_program_release(&trainer->entries[k].step);
        cm_program_release(&trainer->entries[k].initialization);
    }
    if (trainer->evaluation)
        cm_program_release(trainer->evaluation);
    if (trainer->prediction)
        cm_program_release(trainer->prediction);
    for (size_t i = 0; i < trainer->n_variables; i++) {
        cm_tensor_drop(&trainer->variables[i].stored);
        cm_tensor_drop(&trainer->variables[i].now);
        cm_tensor_drop(&trainer->variables[i].next);
    }
    trainer->n_variables = trainer->n_entries = 0;
    trainer->evaluation = trainer->prediction = NULL;
}

enum cm_status cm_trainer_new(struct cm_arena *arena, struct cm_model_file *file,
                              const struct cm_trainer_options *options, struct cm_trainer **out,
                              struct cm_error *err)
{
    struct cm_trainer *trainer = CM_NEW(arena, struct cm_trainer);

    trainer->arena = arena;
    trainer->file = file;
    trainer->loss = CM_NO_SCALAR;
    if (options)
        trainer->options = *options;
    cm_arena_defer(arena, release, trainer);
    CM_TRY(cm_trainer_plan(trainer, err));
    *out = trainer;
    return CM_OK;
}

void cm_trainer_free(struct cm_trainer *trainer)
{
    if (!trainer)
        return;
    release(trainer);
    cm_arena_forget(trainer->arena, release, trainer);
}

/* ---- asking ---- */

size_t cm_trainer_input_count(const struct cm_trainer *trainer)
{
    return trainer->inputs.count;
}

const struct cm_trainer_input *cm_trainer_input(const struct cm_trainer *trainer, size_t i)
{
    return i < trainer->inputs.count ? &trainer->inputs.items[i] : NULL;
}

size_t cm_trainer_state_count(const struct cm_trainer *trainer)
{
    return trainer->n_variables;
}

struct cm_str cm_trainer_state_name(const struct cm_trainer *trainer, size_t i)
{
    return i < trainer->n_variables ? trainer->names[i].name : CM_STR_NONE;
}

int cm_trainer_state_find(const struct cm_trainer *trainer, struct cm_str name)
{
    const uint64_t *index = cm_map_find(&trainer->by_name, name);

    return index ? (int)*index : -1;
}

const struct cm_tensor *cm_trainer_state(const struct cm_trainer *trainer, size_t i)
{
    return i < trainer->n_variables ? &trainer->variables[i].now : NULL;
}

enum cm_status cm_trainer_set_state(struct cm_trainer *trainer, size_t i,
                                    const struct cm_tensor *value, struct cm_error *err)
{
    char given[200], wanted[200];

    if (i >= trainer->n_variables)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no state variable %zu, the model has %zu", i,
                       trainer->n_variables);
    const struct cm_tensor *now = &trainer->variables[i].now;
    if (value->layout || value->type != now->type || !cm_shape_equal(&value->shape, &now->shape))
        return cm_fail(err, CM_BAD_ARGUMENT, "state variable '%.*s' is %s of %s, not %s of %s",
                       CM_STR_FMT(trainer->names[i].name),
                       cm_shape_print(&now->shape, wanted, sizeof wanted), cm_dtype_name(now->type),
                       cm_shape_print(&value->shape, given, sizeof given),
                       cm_dtype_name(value->type));
    const size_t bytes = cm_tensor_bytes(now);
    if (bytes)
        memcpy(now->data, value->data, bytes);
    return CM_OK;
}

size_t cm_trainer_scalar_count(const struct cm_trainer *trainer)
{
    return trainer->scalars.count;
}

struct cm_str cm_trainer_scalar_name(const struct cm_trainer *trainer, size_t i)
{
    return i < trainer->scalars.count ? trainer->scalars.items[i].name : CM_STR_NONE;
}

int cm_trainer_loss(const struct cm_trainer *trainer)
{
    return trainer->loss;
}

uint64_t cm_trainer_steps(const struct cm_trainer *trainer)
{
    return trainer->steps;
}

void cm_trainer_set_steps(struct cm_trainer *trainer, uint64_t steps)
{
    trainer->steps = steps;
}

void cm_trainer_set_cancel(struct cm_trainer *trainer, const atomic_bool *cancel)
{
    trainer->cancel = cancel;
}

/* ---- both phases ---- */

/* Entries of the step under way see the old values again. */
static void look_back(struct cm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->n_variables; i++)
        trainer->variables[i].seen = &trainer->variables[i].now;
}

/* What an entry wrote takes the old values' place. */
static void commit(struct cm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->n_variables; i++) {
        struct cm_variable *variable = &trainer->variables[i];

        if (variable->seen == &variable->next) {
            const struct cm_tensor old = variable->now;
            variable->now = variable->next;
            variable->next = old;
        }
    }
    look_back(trainer);
}

/* ---- a step ---- */

struct culprit {
    char node[480];
};

static void find_culprit(void *arg, const struct cm_step_report *report)
{
    struct culprit *culprit = arg;

    for (int o = 0; o < report->n_out && !culprit->node[0]; o++)
        if (report->out && report->out[o] && !cm_tensor_is_finite(report->out[o]))
            snprintf(culprit->node, sizeof culprit->node, "%s",
                     cm_node_describe(report->node).text);
}

/* Outputs go straight into the memory where they will be kept. */
static void place_outputs(struct cm_trainer *trainer, size_t k)
{
    struct cm_program *program = &trainer->entries[k].step;

    memset(program->out, 0, program->n_outputs * sizeof *program->out);
    for (size_t s = 0; s < trainer->scalars.count; s++) {
        const struct cm_scalar_slot *slot = &trainer->scalars.items[s];

        if (slot->entry == k && slot->value.data)
            program->out[slot->output].tensor = slot->value;
    }
    for (size_t i = program->n_bindings; i-- > 0;) {
        const struct cm_program_binding *binding = &program->bindings[i];
        struct cm_tensor *to = &program->out[binding->output].tensor;

        *to = trainer->variables[binding->variable].next;
        to->buffer = NULL;
    }
    for (size_t o = 0; o < program->n_outputs; o++)
        if (program->out[o].tensor.data)
            program->out[o].kind = CM_KIND_TENSOR;
}

/* What nobody gave memory for came as a reference. */
static void drop_outputs(struct cm_program *program)
{
    for (size_t o = 0; o < program->n_outputs; o++)
        if (program->out[o].tensor.buffer || program->out[o].items)
            cm_datum_drop(&program->out[o]);
}

static enum cm_status blame(struct cm_trainer *trainer, struct cm_program *program,
                            const struct cm_tensor *const *in, struct cm_str name,
                            struct cm_error *err)
{
    struct culprit culprit = {""};
    struct cm_error unused;

    /* Again, looking at every result on the way. */
    if (cm_program_run(trainer, program, in, find_culprit, &culprit, &unused) == CM_OK)
        drop_outputs(program);
    return cm_fail(err, CM_BAD_MODEL, "'%.*s' is not finite%s%s; the state is as before this step",
                   CM_STR_FMT(name), culprit.node[0] ? ", first made by " : "", culprit.node);
}

static enum cm_status check_finite(struct cm_trainer *trainer, struct cm_program *program,
                                   const struct cm_tensor *const *in, struct cm_error *err)
{
    for (size_t o = 0; o < program->n_outputs; o++)
        if (program->out[o].kind == CM_KIND_TENSOR && !cm_tensor_is_finite(&program->out[o].tensor))
            return blame(trainer, program, in, program->outputs[o], err);
    return CM_OK;
}

/* A value bound to several variables was computed into the memory of the first. */
static void copy_shared(struct cm_trainer *trainer, const struct cm_program *program)
{
    for (size_t i = 0; i < program->n_bindings; i++) {
        const struct cm_program_binding *binding = &program->bindings[i];
        struct cm_variable *variable = &trainer->variables[binding->variable];
        const struct cm_tensor *from = &program->out[binding->output].tensor;
        const size_t bytes = cm_tensor_bytes(&variable->next);

        if (bytes && from->data != variable->next.data)
            memcpy(variable->next.data, from->data, bytes);
        variable->seen = &variable->next;
    }
}

static void read_scalars(struct cm_trainer *trainer, size_t k, struct cm_trainer_scalar *scalars)
{
    const struct cm_program *program = &trainer->entries[k].step;

    for (size_t s = 0; s < trainer->scalars.count; s++) {
        const struct cm_scalar_slot *slot = &trainer->scalars.items[s];

        if (slot->entry == k)
            scalars[s] = (struct cm_trainer_scalar){
                slot->name, cm_tensor_real(&program->out[slot->output].tensor, 0)};
    }
}

static enum cm_status step_entry(struct cm_trainer *trainer, size_t k,
                                 const struct cm_tensor *const *in,
                                 struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    struct cm_program *program = &trainer->entries[k].step;

    if (!program->session)
        return CM_OK;
    place_outputs(trainer, k);
    CM_TRY(cm_program_run(trainer, program, in, NULL, NULL, err));
    enum cm_status status = CM_OK;
    if (trainer->options.check_finite)
        status = check_finite(trainer, program, in, err);
    if (!status && scalars)
        read_scalars(trainer, k, scalars);
    if (!status)
        copy_shared(trainer, program);
    drop_outputs(program);
    return status;
}

enum cm_status cm_trainer_step(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                               struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    const unsigned long long number = (unsigned long long)trainer->steps + 1;

    for (size_t k = 0; k < trainer->n_entries; k++) {
        const enum cm_status status = step_entry(trainer, k, in, scalars, err);

        if (status) {
            look_back(trainer);
            return cm_error_context(err, status, "step %llu, training_info[%zu]", number, k);
        }
    }
    commit(trainer);
    trainer->steps++;
    return CM_OK;
}

/* ---- what a step holds ---- */

static enum cm_status add_bytes(size_t *sum, size_t bytes, struct cm_error *err)
{
    return cm_size_add(*sum, bytes, sum)
               ? CM_OK
               : cm_fail(err, CM_LIMIT, "a step is too large for any memory");
}

/* Each entry keeps the memory of its graph for the next step. */
static enum cm_status add_entry(struct cm_trainer *trainer, size_t k,
                                const struct cm_tensor *const *in, struct cm_trainer_memory *out,
                                struct cm_error *err)
{
    struct cm_program *program = &trainer->entries[k].step;
    struct cm_session_memory memory;

    if (!program->session)
        return CM_OK;
    place_outputs(trainer, k);
    CM_TRY(cm_program_measure(trainer, program, in, &memory, err));
    out->late += memory.late;
    CM_TRY(add_bytes(&out->constants, memory.constants, err));
    CM_TRY(add_bytes(&out->work, memory.block, err));
    return add_bytes(&out->work, memory.results, err);
}

enum cm_status cm_trainer_memory(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                 struct cm_trainer_memory *out, struct cm_error *err)
{
    *out = (struct cm_trainer_memory){0};
    for (size_t i = 0; i < trainer->n_variables; i++) {
        const size_t bytes = cm_tensor_bytes(&trainer->variables[i].now);

        CM_TRY(add_bytes(trainer->names[i].entry < 0 ? &out->weights : &out->state, bytes, err));
        CM_TRY(add_bytes(&out->updates, bytes, err));
    }
    for (size_t i = 0; i < trainer->inputs.count; i++)
        if (in[i])
            CM_TRY(add_bytes(&out->batch, cm_tensor_bytes(in[i]), err));
    for (size_t k = 0; k < trainer->n_entries; k++)
        CM_TRY(cm_error_context(err, add_entry(trainer, k, in, out, err), "training_info[%zu]", k));
    return CM_OK;
}

/* ---- initialization ---- */

static enum cm_status check_initial(const struct cm_trainer *trainer,
                                    const struct cm_program *program, struct cm_error *err)
{
    for (size_t i = 0; i < program->n_bindings; i++) {
        const struct cm_program_binding *binding = &program->bindings[i];
        const struct cm_tensor *from = &program->out[binding->output].tensor;
        const struct cm_tensor *to = &trainer->variables[binding->variable].next;
        char given[200], wanted[200];

        if (program->out[binding->output].kind != CM_KIND_TENSOR || from->type != to->type ||
            !cm_shape_equal(&from->shape, &to->shape))
            return cm_fail(err, CM_BAD_MODEL, "'%.*s' is %s, but '%.*s' is %s",
                           CM_STR_FMT(program->outputs[binding->output]),
                           cm_shape_print(&from->shape, given, sizeof given),
                           CM_STR_FMT(trainer->names[binding->variable].name),
                           cm_shape_print(&to->shape, wanted, sizeof wanted));
        if (trainer->options.check_finite && !cm_tensor_is_finite(from))
            return cm_fail(err, CM_BAD_MODEL, "'%.*s' is not finite",
                           CM_STR_FMT(program->outputs[binding->output]));
    }
    return CM_OK;
}

static enum cm_status initialize_entry(struct cm_trainer *trainer, struct cm_program *program,
                                       struct cm_error *err)
{
    if (!program->session)
        return CM_OK;
    memset(program->out, 0, program->n_outputs * sizeof *program->out);
    CM_TRY(cm_program_run(trainer, program, NULL, NULL, NULL, err));
    const enum cm_status status = check_initial(trainer, program, err);
    for (size_t i = 0; i < program->n_bindings && !status; i++) {
        const struct cm_program_binding *binding = &program->bindings[i];
        struct cm_variable *variable = &trainer->variables[binding->variable];
        const size_t bytes = cm_tensor_bytes(&variable->next);

        if (bytes)
            memcpy(variable->next.data, program->out[binding->output].tensor.data, bytes);
    }
    drop_outputs(program);
    return status;
}

enum cm_status cm_trainer_initialize(struct cm_trainer *trainer, struct cm_error *err)
{
    for (size_t i = 0; i < trainer->n_variables; i++) {
        struct cm_variable *variable = &trainer->variables[i];
        const size_t bytes = cm_tensor_bytes(&variable->stored);

        if (bytes)
            memcpy(variable->next.data, variable->stored.data, bytes);
        variable->seen = &variable->next;
    }
    for (size_t k = 0; k < trainer->n_entries; k++) {
        const enum cm_status status =
            initialize_entry(trainer, &trainer->entries[k].initialization, err);

        if (status) {
            look_back(trainer);
            return cm_error_context(err, status, "training_info[%zu].initialization", k);
        }
    }
    commit(trainer);
    trainer->steps = 0;
    return CM_OK;
}
