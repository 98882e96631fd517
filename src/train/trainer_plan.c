/* Making a trainer: variables found, bindings checked, graphs made ready. Whatever stands in the
 * way is noted and the rest still looked at, so that the user hears of everything at once. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_order.h"
#include "lower/lower.h"
#include "lower/pass_table.h"
#include "onnx/tensor_data.h"
#include "train/trainer_parts.h"

struct plan {
    struct cm_trainer *trainer;
    const struct cm_model_proto *model;
    struct cm_findings *findings;
    struct cm_map keys;    /* of all bindings */
    struct cm_map updated; /* keys of the update bindings so far */
    struct cm_map outputs; /* of the inference graph */
};

/* The graph that an entry has, or an empty one. */
static const struct cm_graph_proto *algorithm_of(const struct plan *p, size_t k)
{
    static const struct cm_graph_proto nothing;
    const struct cm_graph_proto *algorithm = p->model->training_info.items[k].algorithm;

    return algorithm ? algorithm : &nothing;
}

/* ---- variables ---- */

static void add_variables(struct plan *p, struct cm_graph_proto *graph, int64_t entry)
{
    struct cm_trainer *trainer = p->trainer;

    for (size_t i = 0; graph && i < graph->initializer.count; i++) {
        struct cm_tensor_proto *proto = &graph->initializer.items[i];
        bool added;

        if (!cm_map_find(&p->keys, proto->name))
            continue;
        uint64_t *index = cm_map_insert(&trainer->by_name, trainer->arena, proto->name, &added);
        if (!added) {
            cm_findings_add(p->findings, CM_BAD_MODEL, CM_STR_NONE,
                            "two initializers are called '%.*s'", CM_STR_FMT(proto->name));
            continue;
        }
        *index = trainer->n_variables;
        trainer->variables[trainer->n_variables++] =
            (struct cm_variable){.name = proto->name, .entry = entry, .proto = proto};
    }
}

static size_t count_initializers(const struct plan *p)
{
    size_t count = p->model->graph->initializer.count;

    for (size_t k = 0; k < p->model->training_info.count; k++)
        count += algorithm_of(p, k)->initializer.count;
    return count;
}

static void list_keys(struct plan *p, const struct cm_entries *bindings)
{
    for (size_t i = 0; i < bindings->count; i++)
        cm_map_insert(&p->keys, p->trainer->arena, bindings->items[i].key, NULL);
}

static void find_variables(struct plan *p)
{
    struct cm_trainer *trainer = p->trainer;
    const size_t room = count_initializers(p);

    for (size_t k = 0; k < p->model->training_info.count; k++) {
        list_keys(p, &p->model->training_info.items[k].initialization_binding);
        list_keys(p, &p->model->training_info.items[k].update_binding);
    }
    trainer->variables = CM_NEW_ARRAY(trainer->arena, struct cm_variable, room);
    add_variables(p, p->model->graph, -1);
    for (size_t k = 0; k < p->model->training_info.count; k++)
        add_variables(p, p->model->training_info.items[k].algorithm, (int64_t)k);
}

enum cm_status cm_variable_load(const struct cm_trainer *trainer,
                                const struct cm_variable *variable, struct cm_tensor *out,
                                struct cm_error *err)
{
    CM_TRY(cm_tensor_proto_load(variable->proto, trainer->file->files, out, err));
    const struct cm_tensor *now = &variable->now;
    if (!now->data || (out->type == now->type && cm_shape_equal(&out->shape, &now->shape)))
        return CM_OK;
    cm_tensor_drop(out);
    return cm_fail(err, CM_BAD_ARGUMENT, "initializer '%.*s' was replaced since training began",
                   CM_STR_FMT(variable->proto->name));
}

void cm_variable_forget(const struct cm_trainer *trainer, struct cm_tensor *loaded)
{
    if (!loaded->buffer && trainer->file->files)
        cm_external_forget(trainer->file->files, loaded->data, cm_tensor_bytes(loaded));
    cm_tensor_drop(loaded);
}

enum cm_status cm_variable_widen(struct cm_variable *variable, struct cm_error *err)
{
    const struct cm_tensor *now = &variable->now;

    return variable->next.data ? CM_OK
                               : cm_tensor_new(now->type, &now->shape, &variable->next, err);
}

/* Those that steps do not update in place. */
static enum cm_status widen_variables(struct cm_trainer *trainer, const struct cm_program *program,
                                      struct cm_error *err)
{
    for (size_t i = 0; i < program->n_bindings; i++)
        if (!program->bindings[i].in_place)
            CM_TRY(cm_variable_widen(&trainer->variables[program->bindings[i].variable], err));
    return CM_OK;
}

static enum cm_status load_variable(struct cm_trainer *trainer, struct cm_variable *variable,
                                    struct cm_error *err)
{
    struct cm_tensor stored;

    CM_TRY(cm_variable_load(trainer, variable, &stored, err));
    if (stored.type == CM_STRING) {
        cm_tensor_drop(&stored);
        return cm_fail(err, CM_UNSUPPORTED, "state variable '%.*s' holds strings",
                       CM_STR_FMT(variable->proto->name));
    }
    if (stored.buffer) { /* a copy already */
        variable->now = stored;
    } else {
        CM_TRY(cm_tensor_copy(&stored, &variable->now, err));
        cm_variable_forget(trainer, &stored);
    }
    variable->seen = &variable->now;
    return CM_OK;
}

/* ---- bindings ---- */

static struct cm_str place_of(const struct plan *p, size_t k, const char *field)
{
    return cm_arena_printf(p->trainer->arena, "training_info[%zu].%s", k, field);
}

/* The variable that a key names, if entry k may bind it. */
static bool find_key(struct plan *p, size_t k, const char *field, struct cm_str key, size_t *out)
{
    const uint64_t *index = cm_map_find(&p->trainer->by_name, key);
    const int64_t owner = index ? p->trainer->variables[*index].entry : -1;

    if (!index)
        cm_findings_add(p->findings, CM_BAD_MODEL, place_of(p, k, field),
                        "'%.*s' is not an initializer", CM_STR_FMT(key));
    else if (owner >= 0 && (size_t)owner != k)
        cm_findings_add(p->findings, CM_BAD_MODEL, place_of(p, k, field),
                        "'%.*s' is an initializer of another entry", CM_STR_FMT(key));
    else {
        *out = *index;
        return true;
    }
    return false;
}

static void map_outputs(struct cm_arena *arena, struct cm_map *out,
                        const struct cm_graph_proto *graph)
{
    for (size_t i = 0; i < graph->output.count; i++)
        cm_map_insert(out, arena, graph->output.items[i].name, NULL);
}

/* What entry k assigns to variables: in each step, or in its initialization. */
static void bind(struct plan *p, size_t k, bool in_step, struct cm_program *program,
                 struct cm_distinct_names *w)
{
    struct cm_arena *arena = p->trainer->arena;
    const struct cm_training_proto *entry = &p->model->training_info.items[k];
    const char *field = in_step ? "update_binding" : "initialization_binding";
    const struct cm_entries *bindings =
        in_step ? &entry->update_binding : &entry->initialization_binding;
    const struct cm_graph_proto *graph = in_step ? entry->algorithm : entry->initialization;
    struct cm_map outputs = {0}, seen = {0};

    if (graph)
        map_outputs(arena, &outputs, graph);
    program->bindings = CM_NEW_ARRAY(arena, struct cm_program_binding, bindings->count);
    for (size_t i = 0; i < bindings->count; i++) {
        const struct cm_str key = bindings->items[i].key, value = bindings->items[i].value;
        size_t variable;

        if (!find_key(p, k, field, key, &variable))
            continue;
        if (!cm_map_add(in_step ? &p->updated : &seen, arena, key))
            cm_findings_add(p->findings, CM_BAD_MODEL, place_of(p, k, field),
                            "'%.*s' is assigned twice%s", CM_STR_FMT(key),
                            in_step ? " in a step" : "");
        if (!value.size ||
            !(cm_map_find(&outputs, value) || (in_step && cm_map_find(&p->outputs, value)))) {
            cm_findings_add(p->findings, CM_BAD_MODEL, place_of(p, k, field),
                            "'%.*s' is not an output of the %s", CM_STR_FMT(value),
                            in_step ? "algorithm or of the inference graph"
                                    : "initialization graph");
            continue;
        }
        p->trainer->variables[variable].updated |= in_step;
        program->bindings[program->n_bindings++] = (struct cm_program_binding){
            .variable = variable, .output = cm_distinct_names_add(w, value)};
    }
}

/* A bound value must fit its variable, as far as can be known before it is computed. */
static void check_types(struct plan *p, const struct cm_program *program)
{
    struct cm_trainer *trainer = p->trainer;
    struct cm_arena *arena = trainer->arena;

    for (size_t i = 0; i < program->n_bindings; i++) {
        const struct cm_program_binding *binding = &program->bindings[i];
        const struct cm_tensor *variable = &trainer->variables[binding->variable].now;
        const struct cm_type *type = program->types[binding->output];

        if (!cm_type_meet(arena, type, cm_type_of_tensor(arena, variable)))
            cm_findings_add(
                p->findings, CM_BAD_MODEL, cm_str(program->place), "'%.*s' is %s, but '%.*s' is %s",
                CM_STR_FMT(program->outputs[binding->output]),
                cm_type_print(arena, cm_module_symbols(program->graph->module), type).data,
                CM_STR_FMT(trainer->variables[binding->variable].name),
                cm_type_print(arena, cm_module_symbols(program->graph->module),
                              cm_type_of_tensor(arena, variable))
                    .data);
    }
}

/* ---- scalars ---- */

static bool is_scalar(const struct cm_type *type, struct cm_shape *shape)
{
    return type->kind == CM_KIND_TENSOR && cm_type_shape(type, shape) &&
           cm_shape_elements(shape) == 1 && cm_dtype_is_real(type->dtype);
}

/* own: what the algorithm outputs. taken: names that are none, or are one already. */
static void add_scalars_of(struct cm_trainer *trainer, size_t k, const struct cm_program *program,
                           const struct cm_map *own, struct cm_map *taken)
{
    for (size_t o = 0; o < program->n_outputs; o++) {
        struct cm_shape shape;

        if (cm_map_find(taken, program->outputs[o]) || !cm_map_find(own, program->outputs[o]) ||
            !is_scalar(program->types[o], &shape))
            continue;
        cm_map_insert(taken, trainer->arena, program->outputs[o], NULL);
        struct cm_scalar_slot *slot = CM_PUSH(trainer->arena, &trainer->scalars);
        *slot = (struct cm_scalar_slot){
            .name = program->outputs[o], .entry = k, .program = program, .output = o};
        slot->value =
            cm_tensor_borrow(program->types[o]->dtype, &shape, cm_arena_alloc(trainer->arena, 16));
        if (!cm_dtype_is_float(program->types[o]->dtype))
            continue;
        if (cm_str_is(slot->name, "loss") || trainer->loss < 0)
            trainer->loss = (int)trainer->scalars.count - 1;
    }
}

/* What is bound is state: nobody wants to read a counter among the metrics. A gradient that the
 * algorithm outputs is one of both halves. */
static void add_scalars(struct plan *p, size_t k)
{
    struct cm_trainer *trainer = p->trainer;
    const struct cm_program *const halves[] = {&trainer->entries[k].step,
                                               &trainer->entries[k].update};
    struct cm_map own = {0}, taken = {0};

    map_outputs(trainer->arena, &own, algorithm_of(p, k));
    for (size_t h = 0; h < 2; h++)
        for (size_t i = 0; halves[h]->n_outputs && i < halves[h]->n_bindings; i++)
            cm_map_insert(&taken, trainer->arena, halves[h]->outputs[halves[h]->bindings[i].output],
                          NULL);
    for (size_t h = 0; h < 2; h++)
        add_scalars_of(trainer, k, halves[h], &own, &taken);
}

/* ---- entries ---- */

/* Scalars are logged and what is bound is stored; other outputs of an algorithm, large ones as a
 * rule, nobody would look at. */
static void list_scalars(struct cm_distinct_names *w, const struct cm_graph_proto *algorithm)
{
    for (size_t i = 0; i < algorithm->output.count; i++) {
        const struct cm_value_info_proto *output = &algorithm->output.items[i];
        const struct cm_tensor_type_proto *type = output->type ? output->type->tensor_type : NULL;
        bool large = false;

        for (size_t d = 0; type && type->shape && d < type->shape->dim.count; d++)
            large = large || !cm_msg_has(&type->shape->dim.items[d].msg, CM_DIM_VALUE) ||
                    type->shape->dim.items[d].dim_value != 1;
        if (!large && output->name.size)
            cm_distinct_names_add(w, output->name);
    }
}

static void check_names(struct plan *p, size_t k, const struct cm_graph_proto *algorithm)
{
    struct cm_map inputs = {0};

    for (size_t i = 0; i < p->model->graph->input.count; i++)
        cm_map_insert(&inputs, p->trainer->arena, p->model->graph->input.items[i].name, NULL);
    for (size_t i = 0; i < algorithm->initializer.count; i++)
        if (cm_map_find(&inputs, algorithm->initializer.items[i].name))
            cm_findings_add(p->findings, CM_BAD_MODEL, place_of(p, k, "algorithm"),
                            "its initializer '%.*s' is an input of the inference graph",
                            CM_STR_FMT(algorithm->initializer.items[i].name));
    for (size_t i = 0; i < algorithm->input.count; i++)
        if (cm_map_find(&inputs, algorithm->input.items[i].name))
            cm_findings_add(p->findings, CM_BAD_MODEL, place_of(p, k, "algorithm"),
                            "its input '%.*s' is one of the inference graph already",
                            CM_STR_FMT(algorithm->input.items[i].name));
}

/* The values that a program gives; else all that could not be built is told, once. */
static cm_value *find_outputs(struct plan *p, const char *place, const struct cm_graph *graph,
                              const struct cm_findings *found, const struct cm_distinct_names *w)
{
    cm_value *values = CM_NEW_ARRAY(p->trainer->arena, cm_value, w->names.count);
    struct cm_error err = {0};
    const enum cm_status status =
        cm_training_find(graph, found, w->names.items, w->names.count, values, &err);

    if (status)
        cm_findings_merge(p->findings, found, cm_str(place));
    if (status && !found->count)
        cm_findings_add(p->findings, status, cm_str(place), "%s", err.text);
    return status ? NULL : values;
}

static void make_program(struct plan *p, struct cm_program *program, const struct cm_cut *cut,
                         uint64_t number)
{
    struct cm_error err = {0};
    const enum cm_status status = cm_program_make(p->trainer, program, cut, number, NULL, &err);

    if (status)
        cm_findings_add(p->findings, status, cm_str(program->place), "%s", err.text);
    else
        check_types(p, program);
}

/* The prepared step has been through the passes up to `patterns`; do these options ask for the
 * same?
 */
static bool fits_prepared(const struct cm_trainer_options *o)
{
    const struct cm_pass_choice choice = {.with = o->with_passes, .without = o->without_passes};
    const size_t last = cm_pass_find(&cm_lower_passes, CM_STR("patterns"));
    bool same = !o->split;

    for (size_t i = 0; i <= last; i++)
        same = same && cm_pass_is_wanted(cm_pass_at(&cm_lower_passes, i), &choice);
    return same;
}

static void plan_step(struct plan *p, size_t k, const struct cm_distinct_names *w)
{
    struct cm_training_entry *entry = &p->trainer->entries[k];
    const size_t known = p->findings->total;
    const struct cm_trainer_options *o = &p->trainer->options;
    struct cm_cut cut = {.graph = NULL};
    struct cm_error err = {0};

    if (o->prepared && fits_prepared(o) &&
        cm_prepared_step_graph(o->prepared->step, &cut.graph, &err)) {
        cm_findings_add(p->findings, err.status, cm_str(entry->step.place), "%s", err.text);
        return;
    }
    cut.after = cut.graph ? "patterns" : NULL;
    cut.graph = cut.graph ? cut.graph : entry->graph;
    const cm_value *values = find_outputs(p, entry->step.place, cut.graph, entry->found, w);

    if (!values)
        return;
    cut.outputs = values;
    cut.n_outputs = w->names.count;
    if (!o->split) {
        make_program(p, &entry->step, &cut, 2 * k);
        return;
    }
    cm_split_step(p->trainer, k, values, w->names.count, p->findings);
    if (p->findings->total > known)
        return;
    check_types(p, &entry->step);
    if (entry->update.session)
        check_types(p, &entry->update);
}

static enum cm_status import_initialization(const struct cm_trainer *trainer,
                                            const struct cm_training_source *source,
                                            const struct cm_graph **out, struct cm_error *err)
{
    struct cm_graph *graph;

    *out = trainer->options.prepared ? trainer->options.prepared->reset : NULL;
    if (*out)
        return CM_OK;
    CM_TRY(cm_training_import_initialization(source, &graph, err));
    *out = graph;
    return CM_OK;
}

static void plan_initialization(struct plan *p, size_t k, const struct cm_distinct_names *w)
{
    struct cm_trainer *trainer = p->trainer;
    struct cm_training_entry *entry = &trainer->entries[k];
    struct cm_findings found = {.arena = trainer->arena, .rule = "train"};
    const struct cm_training_source source = {.module = entry->graph->module,
                                              .model = p->model,
                                              .entry = k,
                                              .variables = &trainer->by_name,
                                              .findings = &found};
    const char *place = entry->initialization.place;
    const size_t n_inputs = p->model->training_info.items[k].initialization->input.count;
    const struct cm_graph *graph;
    struct cm_error err = {0};

    if (n_inputs)
        cm_findings_add(p->findings, CM_BAD_MODEL, cm_str(place),
                        "the graph has %zu inputs, expected none", n_inputs);
    if (import_initialization(trainer, &source, &graph, &err)) {
        cm_findings_add(p->findings, err.status, cm_str(place), "%s", err.text);
        return;
    }
    const cm_value *values = find_outputs(p, place, graph, &found, w);
    const struct cm_cut cut = {.graph = graph, .outputs = values, .n_outputs = w->names.count};
    if (values)
        make_program(p, &entry->initialization, &cut, 2 * k + 1);
}

static void plan_entry(struct plan *p, size_t k)
{
    struct cm_trainer *trainer = p->trainer;
    struct cm_training_entry *entry = &trainer->entries[k];
    const struct cm_graph_proto *algorithm = algorithm_of(p, k);
    struct cm_distinct_names step = {.arena = trainer->arena}, first = {.arena = trainer->arena};
    struct cm_error err = {0};

    entry->step.place = cm_arena_printf(trainer->arena, "training_info[%zu].algorithm", k).data;
    entry->initialization.place =
        cm_arena_printf(trainer->arena, "training_info[%zu].initialization", k).data;
    if (cm_has_graph_call(algorithm)) { /* in ONNX 1.7 algorithms were complete */
        cm_findings_add(
            p->findings, CM_UNSUPPORTED, cm_str(entry->step.place),
            "calls the inference graph with GraphCall, the form of ONNX 1.7; bring it to "
            "today's form first");
        return;
    }
    check_names(p, k, algorithm);
    bind(p, k, true, &entry->step, &step);
    bind(p, k, false, &entry->initialization, &first);
    list_scalars(&step, algorithm);
    if (!step.names.count && !first.names.count)
        return;
    if (cm_trainer_import(trainer, k, &err)) {
        cm_findings_add(p->findings, err.status, cm_str(entry->step.place), "%s", err.text);
        return;
    }
    if (step.names.count)
        plan_step(p, k, &step);
    if (first.names.count)
        plan_initialization(p, k, &first);
}

/* A step that is split hands gradients out. */
static void check_gradients(struct plan *p)
{
    const struct cm_trainer *trainer = p->trainer;
    size_t gradients = 0;

    for (size_t k = 0; k < trainer->n_entries; k++)
        gradients += trainer->entries[k].handovers.count;
    if (trainer->options.split && !gradients && !p->findings->total)
        cm_findings_add(p->findings, CM_UNSUPPORTED, cm_str(trainer->entries[0].step.place),
                        "no Gradient node in it differentiates by a variable that it updates, so "
                        "there are no gradients to give out");
}

enum cm_status cm_trainer_plan(struct cm_trainer *trainer, struct cm_error *err)
{
    const struct cm_model_proto *model = &trainer->file->model;
    struct plan p = {.trainer = trainer, .model = model};

    if (!model->graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    if (!model->training_info.count)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model has no training info");
    struct cm_findings own = {
        .arena = trainer->arena, .rule = "train", .what = "the model cannot be trained"};
    p.findings = trainer->options.findings ? trainer->options.findings : &own;
    p.findings->rule = own.rule;
    p.findings->what = own.what;
    trainer->options.findings = NULL; /* it is the caller's, for as long as the call lasts */
    map_outputs(trainer->arena, &p.outputs, model->graph);
    find_variables(&p);
    for (size_t i = 0; i < trainer->n_variables; i++)
        CM_TRY(load_variable(trainer, &trainer->variables[i], err));
    trainer->n_entries = model->training_info.count;
    trainer->entries = CM_NEW_ARRAY(trainer->arena, struct cm_training_entry, trainer->n_entries);
    for (size_t k = 0; k < trainer->n_entries; k++)
        plan_entry(&p, k);
    check_gradients(&p);
    CM_TRY(cm_findings_fail(p.findings, err));
    for (size_t k = 0; k < trainer->n_entries; k++) {
        CM_TRY(widen_variables(trainer, &trainer->entries[k].step, err));
        CM_TRY(widen_variables(trainer, &trainer->entries[k].update, err));
        add_scalars(&p, k);
    }
    cm_trainer_list_parameters(trainer);
    return CM_OK;
}
