/* Training and differentiation as plain models. */
// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include "autodiff/backward.h"
#include "autodiff/gradient_nodes.h"
#include "base/array.h"
#include "base/diagnostics.h"
#include "graph/clone.h"
#include "graph/import.h"
#include "lower/lower.h"
#include "models/write_model.h"
#include "train/training_graph.h"

/* ---- entries ---- */

struct step {
    struct cm_arena *arena;
    const struct cm_model_proto *model;
    struct cm_module *module;
    struct cm_graph *graph;
    struct cm_distinct_names variables; /* all that bindings name, in their order */
    cm_value *now;                      /* per variable: its value so far; 0: not yet read */
    bool *written;
    CM_ARRAY(cm_value) scalars;
    struct cm_error *err;
};

static void list_variables(struct step *s)
{
    s->variables.arena = s->arena;
    for (size_t k = 0; k < s->model->training_info.count; k++) {
        const struct cm_training_proto *entry = &s->model->training_info.items[k];
        const struct cm_entries *const bindings[] = {&entry->update_binding,
                                                     &entry->initialization_binding};

        for (size_t b = 0; b < CM_COUNT(bindings); b++)
            for (size_t i = 0; i < bindings[b]->count; i++)
                cm_distinct_names_add(&s->variables, bindings[b]->items[i].key);
    }
}

/* The graph of an entry, Gradient nodes replaced by what they stand for. Its outputs are those of
 * the algorithm that no binding takes, then one per binding. */
struct entry {
    struct cm_graph *graph;
    const struct cm_training_proto *training;
    const bool *needed; /* by value number, for inputs */
    size_t n_own;
};

/* Names of the outputs that no binding takes, then those that bindings take. */
static void list_outputs(struct step *s, struct entry *e, struct cm_distinct_names *out)
{
    const struct cm_entries *bindings = &e->training->update_binding;
    const struct cm_graph_proto *algorithm = e->training->algorithm;
    struct cm_map bound = {0};

    for (size_t i = 0; i < bindings->count; i++)
        cm_map_insert(&bound, s->arena, bindings->items[i].value, NULL);
    for (size_t i = 0; algorithm && i < algorithm->output.count; i++)
        if (!cm_map_find(&bound, algorithm->output.items[i].name))
            cm_distinct_names_add(out, algorithm->output.items[i].name);
    e->n_own = out->names.count;
    for (size_t i = 0; i < bindings->count; i++)
        cm_distinct_names_add(out, bindings->items[i].value);
}

static enum cm_status check_keys(const struct step *s, const struct entry *e,
                                 const struct cm_entries *bindings, const struct cm_findings *found)
{
    for (size_t i = 0; i < bindings->count; i++) {
        const cm_value value = cm_graph_find(e->graph, bindings->items[i].key);

        if (value && cm_value_is_variable(s->module, value))
            continue;
        CM_TRY(cm_findings_fail(found, s->err));
        return cm_fail(s->err, CM_BAD_MODEL,
                       "a binding names '%.*s', which is not an initializer of the model",
                       CM_STR_FMT(bindings->items[i].key));
    }
    return CM_OK;
}

static enum cm_status import_entry(struct step *s, size_t k, struct entry *e)
{
    struct cm_findings found = {.arena = s->arena};
    const struct cm_training_source source = {s->module, s->model, k, &s->variables.places, &found};
    struct cm_distinct_names names = {.arena = s->arena};

    *e = (struct entry){.training = &s->model->training_info.items[k]};
    const struct cm_entries *bindings = &e->training->update_binding;
    CM_TRY(cm_training_import(&source, &e->graph, s->err));
    CM_TRY(check_keys(s, e, bindings, &found));
    CM_TRY(check_keys(s, e, &e->training->initialization_binding, &found));
    list_outputs(s, e, &names);
    const size_t count = names.names.count;
    cm_value *values = CM_NEW_ARRAY(s->arena, cm_value, count);
    CM_TRY(cm_training_find(e->graph, &found, names.names.items, count, values, s->err));
    e->needed = cm_training_needed(e->graph, s->arena, values, count, NULL, false);
    cm_value *outputs = CM_NEW_ARRAY(s->arena, cm_value, e->n_own + bindings->count);
    for (size_t i = 0; i < e->n_own; i++)
        outputs[i] = values[i];
    for (size_t i = 0; i < bindings->count; i++)
        outputs[e->n_own + i] = values[cm_distinct_names_add(&names, bindings->items[i].value)];
    cm_graph_set_outputs(e->graph, outputs, e->n_own + bindings->count);
    cm_graph_remove_dead(e->graph);
    return cm_gradient_expand(e->graph, s->err);
}

/* ---- the step ---- */

static cm_value input_for(struct step *s, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(s->module, value);
    const cm_value known = cm_graph_find(s->graph, def->name);
    return known ? known : cm_graph_add_input(s->graph, def->name, def->fact.type);
}

/* Variables stand for what they are by now; those that nobody has read yet are inputs, in their
 * order, and then what is fed. */
static void map_inputs(struct step *s, const struct entry *e, struct cm_clone *clone)
{
    for (size_t i = 0; i < s->variables.names.count; i++) {
        const cm_value value = cm_graph_find(e->graph, s->variables.names.items[i]);

        if (!value || !e->needed[value] || !cm_value_is_variable(s->module, value))
            continue;
        if (!s->now[i])
            s->now[i] = input_for(s, value);
        cm_clone_map(clone, value, s->now[i]);
    }
    for (size_t i = 0; i < e->graph->n_inputs; i++)
        if (e->needed[e->graph->inputs[i]] && !cm_value_is_variable(s->module, e->graph->inputs[i]))
            cm_clone_map(clone, e->graph->inputs[i], input_for(s, e->graph->inputs[i]));
}

static enum cm_status add_entry(struct step *s, size_t k)
{
    struct cm_builder build = {.graph = s->graph, .err = s->err};
    struct cm_clone clone;
    struct entry e;

    CM_TRY(import_entry(s, k, &e));
    cm_clone_init(&clone, s->module);
    clone.alike = true;
    map_inputs(s, &e, &clone);
    CM_TRY(cm_clone_graph(&clone, &build, e.graph));
    for (size_t i = 0; i < e.graph->n_outputs; i++) {
        const cm_value value = cm_clone_of(&clone, e.graph->outputs[i].value);

        if (i < e.n_own) {
            *CM_PUSH(s->arena, &s->scalars) = value;
        } else {
            const struct cm_str key = e.training->update_binding.items[i - e.n_own].key;
            const size_t variable = cm_distinct_names_add(&s->variables, key);

            s->now[variable] = value;
            s->written[variable] = true;
        }
    }
    return CM_OK;
}

static bool is_scalar(const struct step *s, cm_value value)
{
    size_t i = 0;

    while (i < s->scalars.count && s->scalars.items[i] != value)
        i++;
    return i < s->scalars.count;
}

/* The output of a variable: its new value under a name that says whose. A value on the way that is
 * called so hands the name over; inputs and other outputs keep theirs. */
static cm_value named_output(struct step *s, cm_value value, struct cm_str wanted)
{
    struct cm_builder build = {.graph = s->graph, .err = s->err};
    const cm_value other = cm_graph_find(s->graph, wanted);

    if (cm_str_equal(cm_value_get(s->module, value)->name, wanted))
        return value;
    if (other && cm_value_get(s->module, other)->node && !is_scalar(s, other))
        cm_value_set_name(s->module, other, CM_STR_NONE);
    value = cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
    if (value && !cm_graph_find(s->graph, wanted))
        cm_value_set_name(s->module, value, wanted);
    return value;
}

static enum cm_status set_outputs(struct step *s)
{
    const size_t n_variables = s->variables.names.count;
    cm_value *outputs = CM_NEW_ARRAY(s->arena, cm_value, s->scalars.count + n_variables);
    size_t count = 0;

    for (size_t i = 0; i < s->scalars.count; i++)
        outputs[count++] = s->scalars.items[i];
    for (size_t i = 0; i < n_variables; i++) {
        if (!s->written[i])
            continue;
        const struct cm_str wanted =
            cm_arena_printf(s->arena, "%.*s.next", CM_STR_FMT(s->variables.names.items[i]));
        outputs[count] = named_output(s, s->now[i], wanted);
        if (!outputs[count++])
            return s->err->status;
    }
    cm_graph_set_outputs(s->graph, outputs, count);
    return CM_OK;
}

/* Portable: bodies in place of operators of ours, draws fed from outside. */
static enum cm_status write(const struct step *s, const struct cm_model_file *file, bool portable,
                            struct cm_model_file **out)
{
    const struct cm_write_options options = {
        .fresh = true, .portable = portable, .feeds_draws = portable};
    struct cm_write_report report;

    return cm_write_model(s->graph, file, &options, s->arena, out, &report, s->err);
}

static enum cm_status begin(struct step *s, const struct cm_module_options *options)
{
    if (!s->model->graph || !s->model->training_info.count)
        return cm_fail(s->err, CM_BAD_ARGUMENT, "the model carries no training; prepare it first");
    s->module = cm_module_new(s->arena, options);
    list_variables(s);
    return CM_OK;
}

static enum cm_status build(struct step *s, const struct cm_model_file *file)
{
    const struct cm_module_options module = {.files = file->files, .registry = file->registry};

    CM_TRY(begin(s, &module));
    s->graph = cm_graph_new(s->module, NULL, CM_STR("step"));
    s->now = CM_NEW_ARRAY(s->arena, cm_value, s->variables.names.count);
    s->written = CM_NEW_ARRAY(s->arena, bool, s->variables.names.count);
    for (size_t k = 0; k < file->model.training_info.count; k++)
        CM_TRY(add_entry(s, k));
    return set_outputs(s);
}

enum cm_status cm_step_graph(struct cm_arena *arena, const struct cm_model_file *file,
                             struct cm_graph **out, struct cm_error *err)
{
    struct step s = {.arena = arena, .model = &file->model, .err = err};

    CM_TRY(build(&s, file));
    *out = s.graph;
    return CM_OK;
}

enum cm_status cm_step_model(struct cm_arena *arena, const struct cm_model_file *file,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err)
{
    struct step s = {.arena = arena, .model = &file->model, .err = err};

    CM_TRY(build(&s, file));
    return write(&s, file, options->portable, out);
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
    if (type->kind != CM_KIND_TENSOR || !cm_dtype_is_float(type->dtype))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "'%.*s' is not a tensor of floats, so it has no gradient", CM_STR_FMT(name));
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
    const struct cm_module_options module_options = {.files = file->files,
                                                     .registry = file->registry};
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
    return write(&s, file, options->portable, out);
}
