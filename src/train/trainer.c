/* Trainers: their life, their state, and the two phases of a step. */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include "tensor/finite.h"
#include "train/trainer_parts.h"

/* ---- life ---- */

static void drop_handovers(struct cm_training_entry *entry)
{
    for (size_t h = 0; h < entry->handovers.count; h++) {
        struct cm_datum *value = &entry->handovers.items[h].value;

        if (value->tensor.buffer || value->items)
            cm_datum_drop(value);
        *value = (struct cm_datum){0};
    }
}

static void release(void *what)
{
    struct cm_trainer *trainer = what;

    for (size_t k = 0; trainer->entries && k < trainer->n_entries; k++) {
        struct cm_training_entry *entry = &trainer->entries[k];

        cm_program_release(&entry->step);
        cm_program_release(&entry->initialization);
        cm_program_release(&entry->update);
        drop_handovers(entry);
        for (size_t h = 0; h < entry->handovers.count; h++)
            cm_tensor_drop(&entry->handovers.items[h].memory);
    }
    if (trainer->evaluation)
        cm_program_release(trainer->evaluation);
    if (trainer->prediction)
        cm_program_release(trainer->prediction);
    for (size_t i = 0; i < trainer->n_variables; i++) {
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
    return i < trainer->n_variables ? trainer->variables[i].name : CM_STR_NONE;
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
                       CM_STR_FMT(trainer->variables[i].name),
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

struct cm_trainer_progress cm_trainer_progress(const struct cm_trainer *trainer)
{
    return trainer->progress;
}

void cm_trainer_set_progress(struct cm_trainer *trainer, struct cm_trainer_progress progress)
{
    trainer->progress = progress;
}

void cm_trainer_set_cancel(struct cm_trainer *trainer, const atomic_bool *cancel)
{
    trainer->cancel = cancel;
}

void cm_trainer_set_step(struct cm_trainer *trainer, cm_step_fn *step, void *arg)
{
    trainer->step = step;
    trainer->step_arg = arg;
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
    for (size_t k = 0; k < trainer->n_entries; k++)
        trainer->entries[k].step.ran = trainer->entries[k].update.ran = false;
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

static bool is_first_half(const struct cm_program *program)
{
    return program->entry && program == &program->entry->step;
}

/* Outputs go straight into the memory where they will be kept. */
void cm_program_place_outputs(struct cm_trainer *trainer, struct cm_program *program)
{
    memset(program->out, 0, program->n_outputs * sizeof *program->out);
    for (size_t s = 0; s < trainer->scalars.count; s++) {
        const struct cm_scalar_slot *slot = &trainer->scalars.items[s];

        if (slot->program == program)
            program->out[slot->output].tensor = slot->value;
    }
    for (size_t i = program->n_bindings; i-- > 0;) {
        const struct cm_program_binding *binding = &program->bindings[i];
        struct cm_tensor *to = &program->out[binding->output].tensor;

        if (binding->in_place)
            continue;
        *to = trainer->variables[binding->variable].next;
        to->buffer = NULL;
    }
    for (size_t h = 0; is_first_half(program) && h < program->entry->handovers.count; h++) {
        const struct cm_handover *handover = &program->entry->handovers.items[h];

        if (!handover->memory.data)
            continue;
        program->out[handover->output].tensor = handover->memory;
        program->out[handover->output].tensor.buffer = NULL;
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
    struct cm_run_options options = {
        .step = find_culprit, .step_arg = &culprit, .apart = true, .no_updates = true};
    struct cm_error unused;

    for (size_t i = 0; in && i < trainer->inputs.count; i++)
        if (in[i] && !cm_tensor_is_finite(in[i]))
            return cm_fail(err, CM_DIVERGED,
                           "'%.*s' is not finite, and neither is the value of input '%.*s'; the "
                           "state is as before this step",
                           CM_STR_FMT(name), CM_STR_FMT(trainer->inputs.items[i].name));
    /* Again with the same random numbers, looking at every result on the way. */
    cm_session_rewind(program->session);
    drop_outputs(program);
    cm_program_place_outputs(trainer, program);
    if (cm_program_run(trainer, program, in, &options, &unused) == CM_OK)
        drop_outputs(program);
    return cm_fail(err, CM_DIVERGED, "'%.*s' is not finite%s%s; the state is as before this step",
                   CM_STR_FMT(name), culprit.node[0] ? ", first made by " : "", culprit.node);
}

/* What a run has computed, before it is written anywhere. */
struct finite_check {
    const struct cm_trainer *trainer;
    const struct cm_program *program;
    struct cm_str
        bad;      /* the name of an output that is not finite, or is computed from what is not */
    bool in_read; /* the latter, or the former: who reads it may make it finite again */
};

static enum cm_status check_finite(void *arg, const struct cm_update_read *reads, size_t n_reads,
                                   struct cm_error *err)
{
    struct finite_check *check = arg;
    const struct cm_trainer *trainer = check->trainer;
    const struct cm_program *program = check->program;

    for (size_t s = 0; s < trainer->scalars.count && !check->bad.size; s++) {
        const struct cm_scalar_slot *slot = &trainer->scalars.items[s];

        if (slot->program == program && !cm_tensor_is_finite(&program->out[slot->output].tensor))
            check->bad = slot->name; /* the loss rather than a weight */
    }
    /* What a half hands over is not looked at: a whole step has it on its way and does not ask. */
    for (size_t i = 0; i < program->n_bindings && !check->bad.size; i++) {
        const size_t o = program->bindings[i].output;

        if (!program->bindings[i].in_place && !cm_tensor_is_finite(&program->out[o].tensor))
            check->bad = program->outputs[o];
    }
    for (size_t i = 0; i < n_reads && !check->bad.size; i++) {
        check->in_read = !cm_tensor_is_finite(reads[i].tensor);
        if (check->in_read)
            check->bad = program->outputs[reads[i].output];
    }
    return check->bad.size
               ? cm_fail(err, CM_DIVERGED, "'%.*s' is not finite", CM_STR_FMT(check->bad))
               : CM_OK;
}

/* New values that lie elsewhere: one that several variables take was computed into the memory of
 * the first, those of an initialization into memory of their own. */
static void copy_bound(struct cm_trainer *trainer, const struct cm_program *program)
{
    for (size_t i = 0; i < program->n_bindings; i++) {
        const struct cm_program_binding *binding = &program->bindings[i];
        struct cm_variable *variable = &trainer->variables[binding->variable];
        const struct cm_tensor *from = &program->out[binding->output].tensor;
        const size_t bytes = cm_tensor_bytes(&variable->next);

        if (!binding->in_place && bytes && from->data != variable->next.data)
            memcpy(variable->next.data, from->data, bytes);
    }
}

/* Those who read variables from here on see what the program made of them. */
static void look_ahead(struct cm_trainer *trainer, const struct cm_program *program)
{
    for (size_t i = 0; i < program->n_bindings; i++) {
        struct cm_variable *variable = &trainer->variables[program->bindings[i].variable];

        if (!program->bindings[i].in_place)
            variable->seen = &variable->next;
    }
}

static void read_scalars(const struct cm_trainer *trainer, const struct cm_program *program,
                         struct cm_trainer_scalar *scalars)
{
    for (size_t s = 0; s < trainer->scalars.count; s++) {
        const struct cm_scalar_slot *slot = &trainer->scalars.items[s];

        if (slot->program == program)
            scalars[s] = (struct cm_trainer_scalar){
                slot->name, cm_tensor_real(&program->out[slot->output].tensor, 0)};
    }
}

/* What the second half will read stays; the rest of what came as a reference is dropped later. */
static void hand_over(struct cm_program *program)
{
    for (size_t h = 0; h < program->entry->handovers.count; h++) {
        struct cm_handover *handover = &program->entry->handovers.items[h];

        handover->value = program->out[handover->output];
        program->out[handover->output] = (struct cm_datum){0};
    }
}

/* Runs a program and looks at what it has computed before that is written. An update that is
 * computed from an infinite gradient may be finite itself: then all is computed again, with the
 * same random numbers, and the update in other memory than its variable's, to look at that. */
static enum cm_status run_checked(struct cm_trainer *trainer, struct cm_program *program,
                                  const struct cm_tensor *const *in, struct cm_error *err)
{
    struct finite_check check = {trainer, program, CM_STR_NONE, false};
    struct cm_run_options options = {.ready = check_finite,
                                     .ready_arg = &check,
                                     .finite = &program->finite,
                                     .careful = program->careful};

    enum cm_status status = cm_program_run(trainer, program, in, &options, err);
    if (check.in_read && !options.careful) {
        cm_session_rewind(program->session);
        cm_program_place_outputs(trainer, program);
        check.bad = CM_STR_NONE;
        options.careful = true;
        status = cm_program_run(trainer, program, in, &options, err);
        program->careful = status == CM_OK; /* from now on */
    }
    return check.bad.size ? blame(trainer, program, in, check.bad, err) : status;
}

/* Runs a step's program, or a half of one, up to what is written elsewhere than in place. */
static enum cm_status run_program(struct cm_trainer *trainer, struct cm_program *program,
                                  const struct cm_tensor *const *in,
                                  struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    struct cm_run_options unchecked = {0};

    program->finite = true;
    cm_program_place_outputs(trainer, program);
    CM_TRY(trainer->options.check_finite ? run_checked(trainer, program, in, err)
                                         : cm_program_run(trainer, program, in, &unchecked, err));
    if (scalars)
        read_scalars(trainer, program, scalars);
    copy_bound(trainer, program);
    if (is_first_half(program))
        hand_over(program);
    drop_outputs(program);
    return CM_OK;
}

static void rewind_program(struct cm_program *program)
{
    if (program->ran)
        cm_session_rewind(program->session);
}

void cm_trainer_abandon(struct cm_trainer *trainer)
{
    look_back(trainer);
    for (size_t k = 0; k < trainer->n_entries; k++) {
        drop_handovers(&trainer->entries[k]);
        trainer->entries[k].step.ran = trainer->entries[k].update.ran = false;
    }
    trainer->next = 0;
    trainer->computed = false;
}

/* As if the step had never been tried: old values, and random numbers that were not drawn. */
static void undo(struct cm_trainer *trainer)
{
    for (size_t k = 0; k < trainer->n_entries; k++) {
        rewind_program(&trainer->entries[k].step);
        rewind_program(&trainer->entries[k].update);
    }
    cm_trainer_abandon(trainer);
}

static enum cm_status give_up(struct cm_trainer *trainer, size_t k, enum cm_status status,
                              struct cm_error *err)
{
    const unsigned long long number = (unsigned long long)trainer->steps + 1;

    undo(trainer);
    return cm_error_context(err, status, "step %llu, training_info[%zu]", number, k);
}

enum cm_status cm_trainer_check_split(const struct cm_trainer *trainer, struct cm_error *err)
{
    if (trainer->options.split)
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "the trainer was not made for gradients, its steps are whole");
}

/* The first half of the entry at hand, which may have been done before; or all of it. */
static enum cm_status compute(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                              struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    const size_t k = trainer->next;
    struct cm_training_entry *entry = &trainer->entries[k];

    rewind_program(&entry->step);
    drop_handovers(entry);
    trainer->computed = false;
    if (entry->step.session) {
        const enum cm_status status = run_program(trainer, &entry->step, in, scalars, err);

        if (status)
            return give_up(trainer, k, status, err);
    }
    trainer->computed = true;
    return CM_OK;
}

/* The second half, if there is one. in, the batch, is for a failure to name; the caller of a half
 * has it no more. */
static enum cm_status apply(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                            struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    const size_t k = trainer->next;
    struct cm_training_entry *entry = &trainer->entries[k];

    if (!trainer->computed)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "there are no gradients to apply: none have been "
                       "computed since the last update");
    if (entry->update.session) {
        const enum cm_status status = run_program(trainer, &entry->update, in, scalars, err);

        if (status)
            return give_up(trainer, k, status, err);
    }
    look_ahead(trainer, &entry->step);
    look_ahead(trainer, &entry->update);
    drop_handovers(entry);
    trainer->computed = false;
    trainer->next = (k + 1) % trainer->n_entries;
    if (trainer->next == 0) {
        commit(trainer);
        trainer->steps++;
    }
    return CM_OK;
}

enum cm_status cm_trainer_compute(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                  struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    CM_TRY(cm_trainer_check_split(trainer, err));
    return compute(trainer, in, scalars, err);
}

enum cm_status cm_trainer_apply(struct cm_trainer *trainer, struct cm_trainer_scalar *scalars,
                                struct cm_error *err)
{
    CM_TRY(cm_trainer_check_split(trainer, err));
    return apply(trainer, NULL, scalars, err);
}

size_t cm_trainer_entry_count(const struct cm_trainer *trainer)
{
    return trainer->n_entries;
}

size_t cm_trainer_next_entry(const struct cm_trainer *trainer)
{
    return trainer->next;
}

bool cm_trainer_is_computed(const struct cm_trainer *trainer)
{
    return trainer->computed || trainer->next;
}

/* What was updated in place was computed of finite numbers and is not finite itself. */
static enum cm_status say_diverged(const struct cm_trainer *trainer, struct cm_error *err)
{
    size_t i = 0;

    while (i + 1 < trainer->n_variables && cm_tensor_is_finite(&trainer->variables[i].now))
        i++;
    return cm_fail(err, CM_DIVERGED,
                   "step %llu: training diverged: the update made '%.*s' not finite; the state is "
                   "the one after this step",
                   (unsigned long long)trainer->steps, CM_STR_FMT(trainer->variables[i].name));
}

enum cm_status cm_trainer_step(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                               struct cm_trainer_scalar *scalars, struct cm_error *err)
{
    const struct cm_program *first = &trainer->entries[0].step;

    undo(trainer);
    for (size_t k = 0; k < trainer->n_entries; k++) {
        CM_TRY(compute(trainer, in, scalars, err));
        CM_TRY(apply(trainer, in, scalars, err));
    }
    return first->session && !first->finite ? say_diverged(trainer, err) : CM_OK;
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
                           CM_STR_FMT(trainer->variables[binding->variable].name),
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
    struct cm_run_options options = {0};

    if (!program->session)
        return CM_OK;
    memset(program->out, 0, program->n_outputs * sizeof *program->out);
    CM_TRY(cm_program_run(trainer, program, NULL, &options, err));
    const enum cm_status status = check_initial(trainer, program, err);
    if (!status)
        copy_bound(trainer, program);
    drop_outputs(program);
    return status;
}

/* Second buffers that steps do not need. */
static void drop_seconds(struct cm_trainer *trainer)
{
    const struct cm_program *step = &trainer->entries[0].step;

    for (size_t i = 0; i < step->n_bindings; i++)
        if (step->bindings[i].in_place)
            cm_tensor_drop(&trainer->variables[step->bindings[i].variable].next);
}

static enum cm_status take_stored(const struct cm_trainer *trainer, struct cm_variable *variable,
                                  struct cm_error *err)
{
    const size_t bytes = cm_tensor_bytes(&variable->now);
    struct cm_tensor stored;

    CM_TRY(cm_variable_widen(variable, err));
    CM_TRY(cm_variable_load(trainer, variable, &stored, err));
    if (bytes)
        memcpy(variable->next.data, stored.data, bytes);
    cm_variable_forget(trainer, &stored);
    return CM_OK;
}

enum cm_status cm_trainer_take_stored(struct cm_trainer *trainer, struct cm_error *err)
{
    undo(trainer);
    for (size_t i = 0; i < trainer->n_variables; i++)
        CM_TRY(take_stored(trainer, &trainer->variables[i], err));
    return CM_OK;
}

enum cm_status cm_trainer_run_initialization(struct cm_trainer *trainer, struct cm_error *err)
{
    for (size_t i = 0; i < trainer->n_variables; i++)
        trainer->variables[i].seen = &trainer->variables[i].next;
    for (size_t k = 0; k < trainer->n_entries; k++) {
        const enum cm_status status =
            initialize_entry(trainer, &trainer->entries[k].initialization, err);

        if (status) {
            look_back(trainer);
            return cm_error_context(err, status, "training_info[%zu].initialization", k);
        }
    }
    commit(trainer);
    drop_seconds(trainer);
    trainer->steps = 0;
    return CM_OK;
}

enum cm_status cm_trainer_initialize(struct cm_trainer *trainer, struct cm_error *err)
{
    CM_TRY(cm_trainer_take_stored(trainer, err));
    return cm_trainer_run_initialization(trainer, err);
}
