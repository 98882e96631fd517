/* Training and differentiation as plain models. */
// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include "autodiff/backward.h"
#include "autodiff/gradient_nodes.h"
#include "graph/clone.h"
#include "graph/import.h"
#include "graph/obstacles.h"
#include "lower/lower.h"
#include "onnx/tensor_data.h"
#include "train/as_model.h"
#include "train/training_graph.h"

/* ---- state ---- */

struct state {
    struct cm_arena *arena;
    const struct cm_model_proto *model;
    struct cm_map found; /* "entry name" to number + 1 */
    struct {
        struct cm_combine_variable *items;
        size_t count, capacity;
    } list;
};

static const struct cm_tensor_proto *initializer_of(const struct cm_graph_proto *graph,
                                                    struct cm_str name)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        if (cm_str_equal(graph->initializer.items[i].name, name))
            return &graph->initializer.items[i];
    return NULL;
}

static enum cm_status add_variables(struct state *s, size_t entry, const struct cm_map *globals,
                                    const struct cm_entries *bindings, struct cm_error *err)
{
    const struct cm_training_proto *training = &s->model->training_info.items[entry];

    for (size_t i = 0; i < bindings->count; i++) {
        const struct cm_str key = bindings->items[i].key;
        bool added;
        uint64_t *slot = cm_map_insert(&s->found, s->arena, key, &added);
        if (!added)
            continue;
        const uint64_t global = cm_map_get(globals, key, 0);
        const struct cm_tensor_proto *tensor =
            global ? &s->model->graph->initializer.items[global - 1]
                   : initializer_of(cm_training_algorithm(training), key);
        if (!tensor)
            return cm_fail(err, CM_BAD_MODEL,
                           "a binding names '%.*s', which is no initializer of the model",
                           CM_STR_FMT(key));
        struct cm_shape shape;
        CM_TRY(cm_error_context(err, cm_tensor_proto_shape(tensor, &shape, err),
                                "initializer '%.*s'", CM_STR_FMT(key)));
        *slot = s->list.count + 1;
        *CM_PUSH(s->arena, &s->list) =
            (struct cm_combine_variable){key, global ? -1 : (int64_t)entry, tensor};
    }
    return CM_OK;
}

enum cm_status cm_state_variables(struct cm_arena *arena, const struct cm_model_proto *model,
                                  struct cm_combine_variable **out, size_t *count,
                                  struct cm_error *err)
{
    struct state s = {.arena = arena, .model = model};
    struct cm_map globals = {0};

    for (size_t i = 0; i < model->graph->initializer.count; i++)
        *cm_map_insert(&globals, arena, model->graph->initializer.items[i].name, NULL) = i + 1;
    for (size_t k = 0; k < model->training_info.count; k++) {
        const struct cm_training_proto *training = &model->training_info.items[k];
        CM_TRY(add_variables(&s, k, &globals, &training->update_binding, err));
        CM_TRY(add_variables(&s, k, &globals, &training->initialization_binding, err));
    }
    *out = s.list.items;
    *count = s.list.count;
    return CM_OK;
}

/* ---- one entry ---- */

struct wanted {
    struct cm_map index; /* name to place + 1 */
    struct {
        struct cm_str *items;
        size_t count, capacity;
    } names;
};

static size_t want(struct wanted *w, struct cm_arena *arena, struct cm_str name)
{
    bool added;
    uint64_t *slot = cm_map_insert(&w->index, arena, name, &added);
    if (added) {
        *CM_PUSH(arena, &w->names) = name;
        *slot = w->names.count;
    }
    return (size_t)*slot - 1;
}

static size_t variable_number(const struct cm_combine_variable *variables, size_t count,
                              struct cm_str name)
{
    for (size_t i = 0; i < count; i++)
        if (cm_str_equal(variables[i].name, name))
            return i;
    return count;
}

/* Names of the entry's outputs that no binding takes, then those that bindings take. */
static void list_outputs(struct cm_arena *arena, const struct cm_training_proto *training,
                         struct wanted *w, size_t *n_own)
{
    const struct cm_graph_proto *algorithm = cm_training_algorithm(training);
    struct cm_map bound = {0};

    for (size_t i = 0; i < training->update_binding.count; i++)
        cm_map_insert(&bound, arena, training->update_binding.items[i].value, NULL);
    for (size_t i = 0; i < algorithm->output.count; i++)
        if (!cm_map_find(&bound, algorithm->output.items[i].name))
            want(w, arena, algorithm->output.items[i].name);
    *n_own = w->names.count;
    for (size_t i = 0; i < training->update_binding.count; i++)
        want(w, arena, training->update_binding.items[i].value);
}

/* Which inputs of the graph the outputs need: variables in their order, then what is fed. */
static void list_inputs(struct cm_arena *arena, const struct cm_combine_variable *variables,
                        size_t n_variables, const bool *needed, struct cm_step_graph *out)
{
    const struct cm_graph *graph = out->graph;

    out->read = CM_NEW_ARRAY(arena, size_t, n_variables);
    out->inputs = CM_NEW_ARRAY(arena, cm_value, graph->n_inputs);
    for (size_t i = 0; i < n_variables; i++) {
        const cm_value value = cm_graph_find(graph, variables[i].name);

        if (!value || !needed[value] || !cm_value_is_variable(graph->module, value))
            continue;
        out->inputs[out->n_read] = value;
        out->read[out->n_read++] = i;
    }
    out->n_inputs = out->n_read;
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (needed[graph->inputs[i]] && !cm_value_is_variable(graph->module, graph->inputs[i]))
            out->inputs[out->n_inputs++] = graph->inputs[i];
}

enum cm_status cm_step_graph(struct cm_arena *arena, struct cm_module *module,
                             const struct cm_model_proto *model, size_t entry,
                             const struct cm_combine_variable *variables, size_t n_variables,
                             struct cm_step_graph *out, struct cm_error *err)
{
    const struct cm_training_proto *training = &model->training_info.items[entry];
    const size_t n_bound = training->update_binding.count;
    struct cm_obstacles *found = CM_NEW(arena, struct cm_obstacles);
    struct cm_map names = {0};
    struct wanted w = {0};

    *out = (struct cm_step_graph){0};
    found->arena = arena;
    list_outputs(arena, training, &w, &out->n_own);
    for (size_t i = 0; i < n_variables; i++)
        cm_map_insert(&names, arena, variables[i].name, NULL);
    const struct cm_training_source source = {module, model, entry, &names, found};
    CM_TRY(cm_training_import(&source, &out->graph, err));
    cm_value *values = CM_NEW_ARRAY(arena, cm_value, w.names.count);
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, out->n_own + n_bound);
    CM_TRY(cm_training_find(out->graph, found, w.names.items, w.names.count, values, err));
    list_inputs(arena, variables, n_variables,
                cm_training_needed(out->graph, arena, values, w.names.count, NULL, false), out);
    out->written = CM_NEW_ARRAY(arena, size_t, n_bound);
    out->n_written = n_bound;
    for (size_t i = 0; i < out->n_own; i++)
        outputs[i] = values[i];
    for (size_t i = 0; i < n_bound; i++) {
        const struct cm_entry_proto *binding = &training->update_binding.items[i];
        out->written[i] = variable_number(variables, n_variables, binding->key);
        outputs[out->n_own + i] = values[want(&w, arena, binding->value)];
    }
    cm_graph_set_outputs(out->graph, outputs, out->n_own + n_bound);
    cm_graph_remove_dead(out->graph);
    return cm_gradient_expand(out->graph, err);
}

/* ---- the step ---- */

struct step {
    struct cm_arena *arena;
    struct cm_module *module;
    struct cm_graph *graph;
    const struct cm_combine_variable *variables;
    size_t n_variables;
    cm_value *now; /* per variable: its value so far; 0: not yet read */
    bool *written;
    struct {
        cm_value *items;
        size_t count, capacity;
    } scalars;
    struct cm_error *err;
};

static cm_value input_for(struct step *s, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(s->module, value);
    const cm_value known = cm_graph_find(s->graph, def->name);
    return known ? known : cm_graph_add_input(s->graph, def->name, def->fact.type);
}

static enum cm_status add_entry(struct step *s, const struct cm_step_graph *entry)
{
    const struct cm_graph *from = entry->graph;
    struct cm_builder build = {.graph = s->graph, .err = s->err};
    struct cm_clone clone;

    cm_clone_init(&clone, s->module);
    clone.alike = true;
    for (size_t i = 0; i < entry->n_read; i++) {
        cm_value *now = &s->now[entry->read[i]];
        if (!*now)
            *now = input_for(s, entry->inputs[i]);
        cm_clone_map(&clone, entry->inputs[i], *now);
    }
    for (size_t i = entry->n_read; i < entry->n_inputs; i++)
        cm_clone_map(&clone, entry->inputs[i], input_for(s, entry->inputs[i]));
    CM_TRY(cm_clone_graph(&clone, &build, from));
    for (size_t i = 0; i < entry->n_own; i++)
        *CM_PUSH(s->arena, &s->scalars) = cm_clone_of(&clone, from->outputs[i].value);
    for (size_t i = 0; i < entry->n_written; i++) {
        s->now[entry->written[i]] = cm_clone_of(&clone, from->outputs[entry->n_own + i].value);
        s->written[entry->written[i]] = true;
    }
    return CM_OK;
}

/* The output of a variable: its new value under a name that says whose. */
static cm_value named_output(struct step *s, cm_value value, struct cm_str wanted)
{
    struct cm_builder build = {.graph = s->graph, .err = s->err};

    if (cm_str_equal(cm_value_get(s->module, value)->name, wanted))
        return value;
    value = cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
    if (value && !cm_graph_find(s->graph, wanted))
        cm_value_set_name(s->module, value, wanted);
    return value;
}

static enum cm_status set_outputs(struct step *s)
{
    cm_value *outputs = CM_NEW_ARRAY(s->arena, cm_value, s->scalars.count + s->n_variables);
    size_t count = 0;

    for (size_t i = 0; i < s->scalars.count; i++)
        outputs[count++] = s->scalars.items[i];
    for (size_t i = 0; i < s->n_variables; i++) {
        if (!s->written[i])
            continue;
        const struct cm_str wanted =
            cm_arena_printf(s->arena, "%.*s.next", CM_STR_FMT(s->variables[i].name));
        outputs[count] = named_output(s, s->now[i], wanted);
        if (!outputs[count++])
            return s->err->status;
    }
    cm_graph_set_outputs(s->graph, outputs, count);
    return CM_OK;
}

enum cm_status cm_step_model(struct cm_arena *arena, const struct cm_model_file *file,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err)
{
    const struct cm_module_options module_options = {.files = file->files};
    struct step s = {.arena = arena, .module = cm_module_new(arena, &module_options), .err = err};
    struct cm_combine_variable *variables;

    if (!file->model.graph || !file->model.training_info.count)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model carries no training; prepare it first");
    CM_TRY(cm_state_variables(arena, &file->model, &variables, &s.n_variables, err));
    s.variables = variables;
    s.graph = cm_graph_new(s.module, NULL, CM_STR("step"));
    s.now = CM_NEW_ARRAY(arena, cm_value, s.n_variables);
    s.written = CM_NEW_ARRAY(arena, bool, s.n_variables);
    for (size_t k = 0; k < file->model.training_info.count; k++) {
        struct cm_step_graph entry;
        CM_TRY(
            cm_step_graph(arena, s.module, &file->model, k, variables, s.n_variables, &entry, err));
        CM_TRY(add_entry(&s, &entry));
    }
    CM_TRY(set_outputs(&s));
    return cm_graph_as_model(s.graph, file, options->portable, arena, out, err);
}

/* ---- gradients ---- */

struct named {
    const struct cm_str *names;
    size_t count, opened;
};

static size_t place_of(const struct named *named, struct cm_str name)
{
    size_t i = 0;

    while (i < named->count && !cm_str_equal(named->names[i], name))
        i++;
    return i;
}

/* An initializer that is differentiated by becomes an input with a default: nothing is folded, and
 * it may be fed. */
static bool is_named(void *arg, const struct cm_tensor_proto *initializer)
{
    struct named *named = arg;
    const bool found = place_of(named, initializer->name) < named->count;

    named->opened += found;
    return found;
}

/* Inputs that the import has added stand in the order in which they are named. */
static void order_inputs(struct cm_graph *graph, const struct named *named)
{
    const size_t n_own = graph->n_inputs - named->opened;

    for (size_t i = n_own + 1; i < graph->n_inputs; i++)
        for (size_t k = i; k > n_own; k--) {
            cm_value *pair = &graph->inputs[k - 1];
            const cm_value before = pair[0];

            if (place_of(named, cm_value_get(graph->module, before)->name) <=
                place_of(named, cm_value_get(graph->module, pair[1])->name))
                break;
            pair[0] = pair[1];
            pair[1] = before;
        }
}

static enum cm_status find_float(const struct cm_graph *graph, struct cm_str name, cm_value *out,
                                 struct cm_error *err)
{
    *out = cm_graph_find(graph, name);
    if (!*out)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model has no value '%.*s'", CM_STR_FMT(name));
    const struct cm_type *type = cm_value_get(graph->module, *out)->fact.type;
    if (type->kind != CM_KIND_TENSOR || cm_dtype_info(type->dtype)->kind != CM_CLASS_FLOAT)
        return cm_fail(err, CM_BAD_ARGUMENT, "'%.*s' is no tensor of floats, it has no gradient",
                       CM_STR_FMT(name));
    return CM_OK;
}

static enum cm_status add_gradients(struct step *s, cm_value y, const cm_value *xs,
                                    const struct cm_str *wrt, size_t n_wrt)
{
    struct {
        struct cm_builder build;
    } b = {{.graph = s->graph, .err = s->err}};
    cm_value *grads = CM_NEW_ARRAY(s->arena, cm_value, n_wrt);
    /* Rules may put other nodes in the place of the forward ones: outputs follow, numbers do not.
     */
    cm_value *outputs = CM_NEW_ARRAY(s->arena, cm_value, s->graph->n_outputs + n_wrt);

    CM_TRY(cm_autodiff(s->graph, y, 0, xs, n_wrt, grads, s->err));
    size_t count = 0;
    for (; count < s->graph->n_outputs; count++)
        outputs[count] = s->graph->outputs[count].value;
    for (size_t i = 0; i < n_wrt; i++) {
        const cm_value x = cm_graph_find(s->graph, wrt[i]);
        if (!grads[i])
            grads[i] =
                cm_emit(&b, "Expand", cm_emit_scalar_like(&b, x, 0.0), cm_emit(&b, "Shape", x));
        CM_TRY(b.build.status);
        outputs[count] = named_output(
            s, grads[i], cm_arena_printf(s->arena, "gradient.%.*s", CM_STR_FMT(wrt[i])));
        if (!outputs[count++])
            return s->err->status;
    }
    cm_graph_set_outputs(s->graph, outputs, count);
    return CM_OK;
}

enum cm_status cm_grad_model(struct cm_arena *arena, const struct cm_model_file *file,
                             struct cm_str of, const struct cm_str *wrt, size_t n_wrt,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err)
{
    const struct cm_module_options module_options = {.files = file->files};
    struct step s = {.arena = arena, .module = cm_module_new(arena, &module_options), .err = err};
    struct named named = {.names = wrt, .count = n_wrt};
    const struct cm_import_options import = {.opens = is_named, .opens_arg = &named};
    cm_value *xs = CM_NEW_ARRAY(arena, cm_value, n_wrt);
    cm_value y;

    CM_TRY(cm_lower_import_as(s.module, &file->model, &import, &s.graph, err));
    order_inputs(s.graph, &named);
    CM_TRY(cm_gradient_expand(s.graph, err));
    CM_TRY(find_float(s.graph, of, &y, err));
    for (size_t i = 0; i < n_wrt; i++) {
        CM_TRY(find_float(s.graph, wrt[i], &xs[i], err));
        for (size_t k = 0; k < i; k++)
            if (xs[k] == xs[i])
                return cm_fail(err, CM_BAD_ARGUMENT, "'%.*s' is named twice", CM_STR_FMT(wrt[i]));
    }
    CM_TRY(add_gradients(&s, y, xs, wrt, n_wrt));
    return cm_graph_as_model(s.graph, file, options->portable, arena, out, err);
}
