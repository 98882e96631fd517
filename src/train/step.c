/* Training and differentiation as plain models. */
// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include "autodiff/backward.h"
#include "graph/clone.h"
#include "lower/lower.h"
#include "onnx/tensor_data.h"
#include "train/as_model.h"

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

enum cm_status cm_step_graph(struct cm_arena *arena, struct cm_module *module,
                             const struct cm_model_proto *model, size_t entry,
                             const struct cm_combine_variable *variables, size_t n_variables,
                             struct cm_step_graph *out, struct cm_error *err)
{
    const struct cm_training_proto *training = &model->training_info.items[entry];
    const size_t n_bound = training->update_binding.count;
    /* The importer may come back to its model when it expands a function, so it stays. */
    struct cm_model_proto *merged = CM_NEW(arena, struct cm_model_proto);
    struct cm_combined *combined = CM_NEW(arena, struct cm_combined);
    struct wanted w = {0};

    *out = (struct cm_step_graph){0};
    list_outputs(arena, training, &w, &out->n_own);
    const struct cm_combine what = {.arena = arena,
                                    .model = model,
                                    .entry = entry,
                                    .variables = variables,
                                    .n_variables = n_variables,
                                    .outputs = w.names.items,
                                    .n_outputs = w.names.count};
    cm_combine_step(&what, combined);
    *merged = *model;
    merged->graph = &combined->graph;
    CM_TRY(cm_lower_gradients(module, merged, NULL, &out->graph, err));
    if (out->graph->n_outputs != w.names.count)
        return cm_fail(err, CM_BAD_MODEL, "the step has %zu results, not %zu",
                       out->graph->n_outputs, w.names.count);
    out->read = combined->variables;
    out->n_read = combined->n_variables;
    out->n_feeds = out->graph->n_inputs - out->n_read;
    out->written = CM_NEW_ARRAY(arena, size_t, n_bound);
    out->n_written = n_bound;
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, out->n_own + n_bound);
    for (size_t i = 0; i < out->n_own; i++)
        outputs[i] = out->graph->outputs[i].value;
    for (size_t i = 0; i < n_bound; i++) {
        const struct cm_entry_proto *binding = &training->update_binding.items[i];
        out->written[i] = variable_number(variables, n_variables, binding->key);
        outputs[out->n_own + i] = out->graph->outputs[want(&w, arena, binding->value)].value;
    }
    cm_graph_set_outputs(out->graph, outputs, out->n_own + n_bound);
    return CM_OK;
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

static cm_value input_for(struct step *s, const struct cm_graph *from, size_t index)
{
    const struct cm_value_def *def = cm_value_get(s->module, from->inputs[index]);
    const cm_value known = cm_graph_find(s->graph, def->name);
    return known ? known : cm_graph_add_input(s->graph, def->name, def->fact.type);
}

/* Names go along where they are free, so that the file can be read by people. */
static void carry_names(struct step *s, const struct cm_graph *from, const struct cm_clone *clone)
{
    for (cm_value v = 1; v < cm_module_value_count(s->module); v++) {
        const cm_value copy = cm_clone_of(clone, v);
        if (copy == v)
            continue;
        const struct cm_value_def *def = cm_value_get(s->module, v);
        const struct cm_value_def *made = cm_value_get(s->module, copy);
        if (def->graph == from && def->name.size && made->graph == s->graph && !made->name.size &&
            !cm_graph_find(s->graph, def->name))
            cm_value_set_name(s->module, copy, def->name);
    }
}

static enum cm_status add_entry(struct step *s, const struct cm_step_graph *entry)
{
    const struct cm_graph *from = entry->graph;
    struct cm_builder build = {.graph = s->graph, .err = s->err};
    struct cm_clone clone;

    cm_clone_init(&clone, s->module);
    for (size_t i = 0; i < entry->n_read; i++) {
        cm_value *now = &s->now[entry->read[i]];
        if (!*now)
            *now = input_for(s, from, i);
        cm_clone_map(&clone, from->inputs[i], *now);
    }
    for (size_t i = entry->n_read; i < from->n_inputs; i++)
        cm_clone_map(&clone, from->inputs[i], input_for(s, from, i));
    CM_TRY(cm_clone_graph(&clone, &build, from));
    carry_names(s, from, &clone);
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

/* An initializer that is differentiated by becomes an input with a default: nothing is folded, and
 * it may be fed. */
static struct cm_graph_proto *with_inputs(struct cm_arena *arena,
                                          const struct cm_graph_proto *graph,
                                          const struct cm_str *wrt, size_t n_wrt)
{
    struct cm_graph_proto *copy = CM_NEW(arena, struct cm_graph_proto);

    *copy = *graph;
    for (size_t i = 0; i < n_wrt; i++) {
        const struct cm_tensor_proto *tensor = initializer_of(graph, wrt[i]);
        bool known = false;
        for (size_t n = 0; n < copy->input.count; n++)
            known = known || cm_str_equal(copy->input.items[n].name, wrt[i]);
        if (!tensor || known || tensor->dims.count > CM_MAX_RANK)
            continue;
        struct cm_dim dims[CM_MAX_RANK];
        for (size_t d = 0; d < tensor->dims.count; d++)
            dims[d] = CM_DIM(tensor->dims.items[d]);
        struct cm_value_info_proto *input = CM_LIST_ADD(arena, &copy->input);
        input->name = wrt[i];
        input->type = CM_NEW(arena, struct cm_type_proto);
        cm_type_to_proto(
            arena, NULL,
            cm_type_tensor(arena, (enum cm_dtype)tensor->data_type, (int)tensor->dims.count, dims),
            input->type);
    }
    return copy;
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
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    cm_value *xs = CM_NEW_ARRAY(arena, cm_value, n_wrt);
    cm_value y;

    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    *model = file->model;
    model->graph = with_inputs(arena, file->model.graph, wrt, n_wrt);
    CM_TRY(cm_lower_gradients(s.module, model, NULL, &s.graph, err));
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
