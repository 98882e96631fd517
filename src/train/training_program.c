/* Programs of a trainer: a part of an entry's graph made ready and run. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "graph/function.h"
#include "lower/lower.h"
#include "train/labels.h"
#include "train/trainer_parts.h"

static size_t add_input(struct cm_trainer *trainer, struct cm_str name, const struct cm_type *type)
{
    bool added;
    uint64_t *index = cm_map_insert(&trainer->inputs_by_name, trainer->arena, name, &added);

    if (added) {
        *index = trainer->inputs.count;
        *CM_PUSH(trainer->arena, &trainer->inputs) = (struct cm_trainer_input){name, type};
    }
    return *index;
}

static size_t find_given(const struct cm_cut *cut, cm_value source)
{
    size_t i = 0;

    while (i < cut->n_given && cut->given[i].value != source)
        i++;
    return i;
}

/* sources: what the inputs stand for in the graph that was cut. */
static void connect(struct cm_trainer *trainer, struct cm_program *program,
                    const struct cm_cut *cut, const cm_value *sources,
                    struct cm_trainer_input **own)
{
    const struct cm_graph *graph = program->graph;
    struct cm_arena *arena = trainer->arena;

    program->n_inputs = graph->n_inputs;
    program->inputs = CM_NEW_ARRAY(arena, struct cm_program_input, graph->n_inputs);
    program->in = CM_NEW_ARRAY(arena, struct cm_datum, graph->n_inputs);
    program->feeds = CM_NEW_ARRAY(arena, const struct cm_datum *, graph->n_inputs);
    if (own)
        *own = CM_NEW_ARRAY(arena, struct cm_trainer_input, graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct cm_value_def *def = cm_value_get(graph->module, graph->inputs[i]);
        const size_t given = find_given(cut, sources[i]);
        struct cm_program_input *input = &program->inputs[i];

        program->feeds[i] = &program->in[i];
        if (cm_value_is_variable(graph->module, sources[i]))
            *input = (struct cm_program_input){CM_FROM_VARIABLE,
                                               cm_map_get(&trainer->by_name, def->name, 0)};
        else if (given < cut->n_given)
            *input = (struct cm_program_input){CM_FROM_HANDOVER, given};
        else if (own)
            (*own)[i] = (struct cm_trainer_input){def->name, def->fact.type};
        else
            input->index = add_input(trainer, def->name, def->fact.type);
    }
    program->n_outputs = graph->n_outputs;
    program->out = CM_NEW_ARRAY(arena, struct cm_datum, graph->n_outputs);
    program->outputs = CM_NEW_ARRAY(arena, struct cm_str, graph->n_outputs);
    program->types = CM_NEW_ARRAY(arena, const struct cm_type *, graph->n_outputs);
    for (size_t o = 0; o < graph->n_outputs; o++) {
        program->outputs[o] = cm_value_get(graph->module, cut->outputs[o])->name;
        program->types[o] = cm_value_get(graph->module, graph->outputs[o].value)->fact.type;
    }
}

/* An initialization runs once, if at all, and most of what it makes are zeros: as constants they
 * would take as much memory as the state itself, for as long as the trainer lives. */
static size_t constants_limit(const struct cm_trainer *trainer, const struct cm_program *program)
{
    enum { FOR_INITIALIZATION = 1 << 20 };

    for (size_t k = 0; k < trainer->n_entries; k++)
        if (program == &trainer->entries[k].initialization)
            return FOR_INITIALIZATION;
    return trainer->options.memory_limit;
}

/* A step that is all of the training's one entry updates variables in place; the others' new values
 * wait for the end of what comes after. */
static void find_updates(const struct cm_trainer *trainer, const struct cm_program *program,
                         struct cm_session_options *options)
{
    if (trainer->n_entries != 1 || trainer->options.split || program != &trainer->entries[0].step)
        return;
    struct cm_session_update *updates =
        CM_NEW_ARRAY(trainer->arena, struct cm_session_update, program->n_bindings);
    size_t *inputs = CM_NEW_ARRAY(trainer->arena, size_t, trainer->n_variables); /* plus one */
    for (size_t i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].source == CM_FROM_VARIABLE)
            inputs[program->inputs[i].index] = i + 1;
    for (size_t i = 0; i < program->n_bindings; i++) {
        struct cm_program_binding *binding = &program->bindings[i];

        binding->in_place = inputs[binding->variable] != 0;
        if (binding->in_place)
            updates[options->n_updates++] =
                (struct cm_session_update){inputs[binding->variable] - 1, binding->output};
    }
    options->updates = updates;
}

enum cm_status cm_trainer_import(struct cm_trainer *trainer, size_t k, struct cm_error *err)
{
    const struct cm_module_options options = {.registry = trainer->options.registry,
                                              .files = trainer->file->files};
    struct cm_training_entry *entry = &trainer->entries[k];

    if (entry->graph)
        return CM_OK;
    entry->found = CM_NEW(trainer->arena, struct cm_findings);
    entry->found->arena = trainer->arena;
    entry->found->rule = "train";
    const struct cm_training_source source = {
        .module = trainer->options.prepared ? NULL : cm_module_new(trainer->arena, &options),
        .model = &trainer->file->model,
        .entry = k,
        .variables = &trainer->by_name,
        .findings = entry->found};
    struct cm_graph *graph;
    struct cm_clone clone;
    if (trainer->options.prepared)
        CM_TRY(cm_training_join(trainer->options.prepared, &trainer->by_name, &clone, &graph, err));
    else
        CM_TRY(cm_training_import(&source, &graph, err));
    CM_TRY(cm_graph_inline_calls(graph, err));
    entry->graph = graph;
    return CM_OK;
}

uint64_t cm_program_seed(const struct cm_trainer *trainer, uint64_t number)
{
    return trainer->options.seed + number * UINT64_C(0x9e3779b97f4a7c15);
}

enum cm_status cm_program_make(struct cm_trainer *trainer, struct cm_program *program,
                               const struct cm_cut *cut, uint64_t number,
                               struct cm_trainer_input **own, struct cm_error *err)
{
    const struct cm_lower_options lower = {
        .pass = {.training = true, .memory_limit = constants_limit(trainer, program)},
        .passes = {.with = trainer->options.with_passes,
                   .without = trainer->options.without_passes,
                   .after = cut->after}};
    struct cm_session_options options = {.threads = trainer->options.threads,
                                         .memory_limit = trainer->options.memory_limit,
                                         .backend = trainer->options.backend,
                                         .seed = cm_program_seed(trainer, number)};
    cm_value *sources;

    CM_TRY(cm_cut_copy(cut, &program->graph, &sources, err));
    if (!own) /* patterns take losses away */
        cm_labels_note(trainer, cut->after ? trainer->entries[0].graph : program->graph);
    connect(trainer, program, cut, sources, own);
    CM_TRY(cm_lower_graph(program->graph, &lower, err));
    find_updates(trainer, program, &options);
    CM_TRY(cm_session_new(program->graph, &options, &program->session, err));
    if (!own)
        cm_program_sort_memory(program);
    return CM_OK;
}

void cm_program_release(struct cm_program *program)
{
    cm_session_free(program->session);
    program->session = NULL;
}

static enum cm_status feed(struct cm_trainer *trainer, struct cm_program *program,
                           const struct cm_tensor *const *in, struct cm_error *err)
{
    for (size_t i = 0; i < program->n_inputs; i++) {
        const struct cm_program_input *input = &program->inputs[i];
        const struct cm_tensor *tensor = NULL;

        if (input->source == CM_FROM_HANDOVER) {
            program->in[i] = program->entry->handovers.items[input->index].value;
            program->in[i].tensor.buffer = NULL; /* borrowed */
            continue;
        }
        if (input->source == CM_FROM_VARIABLE)
            tensor = trainer->variables[input->index].seen;
        else if (in)
            tensor = in[input->index];
        if (!tensor)
            return cm_fail(err, CM_BAD_ARGUMENT, "input '%.*s' is missing",
                           CM_STR_FMT(trainer->inputs.items[input->index].name));
        program->in[i] = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *tensor};
    }
    return CM_OK;
}

enum cm_status cm_program_run(struct cm_trainer *trainer, struct cm_program *program,
                              const struct cm_tensor *const *in, struct cm_run_options *options,
                              struct cm_error *err)
{
    options->cancel = trainer->cancel;
    if (!options->step) {
        options->step = trainer->step;
        options->step_arg = trainer->step_arg;
    }
    CM_TRY(feed(trainer, program, in, err));
    program->ran = true;
    return cm_session_run(program->session, program->feeds, program->n_inputs, program->out,
                          program->n_outputs, options, err);
}

enum cm_status cm_program_measure(struct cm_trainer *trainer, struct cm_program *program,
                                  const struct cm_tensor *const *in, struct cm_session_memory *out,
                                  struct cm_error *err)
{
    CM_TRY(feed(trainer, program, in, err));
    return cm_session_measure(program->session, program->feeds, program->n_inputs, program->out,
                              out, err);
}
