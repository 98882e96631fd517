/* Importing what training info stands for, and cutting parts out of it. */
// SPDX-License-Identifier: Apache-2.0
#include "train/training_graph.h"

#include "base/diagnostics.h"
#include "graph/clone.h"
#include "graph/import.h"
#include "graph/op.h"
#include "lower/lower.h"
#include "onnx/defined_names.h"

size_t cm_distinct_names_add(struct cm_distinct_names *list, struct cm_str name)
{
    bool added;
    uint64_t *place = cm_map_insert(&list->places, list->arena, name, &added);

    if (added) {
        *place = list->names.count;
        *CM_PUSH(list->arena, &list->names) = name;
    }
    return *place;
}

/* ---- importing ---- */

static struct cm_import_options options_of(const struct cm_training_source *source)
{
    return (struct cm_import_options){.findings = source->findings,
                                      .opens = cm_tensor_is_named,
                                      .opens_arg = (void *)(uintptr_t)source->variables,
                                      .constant_defaults = true,
                                      .partial = true};
}

enum cm_status cm_training_import(const struct cm_training_source *source, struct cm_graph **out,
                                  struct cm_error *err)
{
    struct cm_import_options options = options_of(source);

    options.appended = source->model->training_info.items[source->entry].algorithm;
    return cm_lower_import_as(source->module, source->model, &options, out, err);
}

enum cm_status cm_training_import_initialization(const struct cm_training_source *source,
                                                 struct cm_graph **out, struct cm_error *err)
{
    const struct cm_training_proto *entry = &source->model->training_info.items[source->entry];
    const struct cm_graph_proto *const around[] = {source->model->graph, entry->algorithm};
    struct cm_import_options options = options_of(source);
    struct cm_model_proto *model = CM_NEW(cm_module_arena(source->module), struct cm_model_proto);

    *model = *source->model;
    model->graph = entry->initialization;
    options.around = around;
    options.n_around = entry->algorithm ? 2 : 1;
    return cm_lower_import_as(source->module, model, &options, out, err);
}

/* ---- joining ---- */

struct joining {
    const struct cm_map *variables;
    struct cm_clone *clone;
    struct cm_graph *to;
};

static void join_input(const struct joining *j, cm_value value)
{
    struct cm_module *module = j->to->module;
    const struct cm_value_def *def = cm_value_get(module, value);
    const struct cm_tensor_proto *initializer = def->initializer;
    const cm_value input = cm_graph_add_input(j->to, def->name, def->fact.type);

    cm_value_get(module, input)->initializer = initializer;
    cm_clone_map(j->clone, value, input);
}

/* As an import has them: inputs, then initializers in their order, then nodes. */
static enum cm_status join_part(const struct joining *j, const struct cm_graph *part,
                                struct cm_error *err)
{
    struct cm_module *module = j->to->module;
    const cm_value n_values = (cm_value)cm_module_value_count(module);
    struct cm_builder build = {.graph = j->to, .err = err};

    for (size_t i = 0; i < part->n_inputs; i++)
        join_input(j, part->inputs[i]);
    for (cm_value value = 1; value < n_values; value++) {
        const struct cm_value_def *def = cm_value_get(module, value);

        if (def->graph != part || def->role != CM_ROLE_INITIALIZER)
            continue;
        if (j->variables && def->name.size && cm_map_find(j->variables, def->name))
            join_input(j, value);
        else if (def->n_uses)
            (void)cm_clone_operand(j->clone, j->to, part, value);
    }
    for (const struct cm_node *node = part->first; node; node = node->next)
        CM_TRY(cm_clone_node(j->clone, &build, node));
    return CM_OK;
}

enum cm_status cm_training_join(const struct cm_prepared_training *from,
                                const struct cm_map *variables, struct cm_clone *clone,
                                struct cm_graph **out, struct cm_error *err)
{
    struct cm_module *module = from->inference->module;
    const struct joining j = {variables, clone, cm_graph_new(module, NULL, from->inference->name)};

    cm_clone_init(clone, module);
    clone->alike = true;
    CM_TRY(join_part(&j, from->inference, err));
    if (from->algorithm)
        CM_TRY(join_part(&j, from->algorithm, err));
    *out = j.to;
    return CM_OK;
}

/* ---- finding ---- */

enum cm_status cm_training_find(const struct cm_graph *graph, const struct cm_findings *findings,
                                const struct cm_str *names, size_t count, cm_value *out,
                                struct cm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = cm_graph_find(graph, names[i]);
        if (out[i])
            continue;
        if (findings)
            CM_TRY(cm_findings_fail(findings, err));
        return cm_fail(err, CM_BAD_MODEL, "output '%.*s' is never computed", CM_STR_FMT(names[i]));
    }
    return CM_OK;
}

/* ---- behaving as in inference ---- */

struct settling {
    const struct cm_graph *graph;
    const bool *needed;
};

static bool is_read(const struct settling *s, const struct cm_node *node, cm_value value)
{
    if (!value)
        return false;
    return node->graph == s->graph ? s->needed[value]
                                   : cm_value_get(node->module, value)->n_uses > 0;
}

/* With the attribute gone, and the statistics that only training gives, unless they are asked for.
 */
static void clear_mode_attribute(const struct settling *s, const struct cm_node *node,
                                 struct cm_node_spec *spec)
{
    const struct cm_training_form *training = node->op->training;
    const size_t first = (size_t)training->statistics_output;
    size_t kept = 0;

    for (size_t o = first; training->n_statistics && o < spec->n_outputs; o++)
        if (is_read(s, node, node->outputs[o]))
            return;
    struct cm_attribute_proto *attributes =
        CM_NEW_ARRAY(cm_module_arena(node->module), struct cm_attribute_proto, spec->n_attributes);
    for (size_t i = 0; i < spec->n_attributes; i++)
        if (!cm_str_is(spec->attributes[i].name, training->mode_attribute))
            attributes[kept++] = spec->attributes[i];
    spec->attributes = attributes;
    spec->n_attributes = kept;
    if (training->n_statistics && spec->n_outputs > first)
        spec->n_outputs = first;
}

static enum cm_status settle(void *arg, const struct cm_node *node, struct cm_node_spec *spec,
                             struct cm_error *err)
{
    const struct cm_training_form *training = node->op ? node->op->training : NULL;

    (void)err;
    if (training && training->mode_attribute)
        clear_mode_attribute(arg, node, spec);
    if (training && training->mode_input && spec->n_inputs > (size_t)training->mode_input)
        spec->n_inputs = (size_t)training->mode_input;
    return CM_OK;
}

/* ---- who needs what ---- */

bool cm_node_is_needed(const struct cm_node *node, const bool *needed, const bool *given)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];

        if (value && needed[value] && !(given && given[value]))
            return true;
    }
    return false;
}

static void need_operands(const struct cm_node *node, int count, bool *needed)
{
    for (int i = 0; i < count; i++)
        needed[node->inputs[i].value] = true;
    for (size_t b = 0; b < node->n_bodies; b++) {
        const struct cm_graph *body = node->bodies[b].graph;

        for (const struct cm_node *inner = body->first; inner; inner = inner->next)
            need_operands(inner, inner->n_inputs, needed);
        for (size_t o = 0; o < body->n_outputs; o++)
            needed[body->outputs[o].value] = true;
    }
}

void cm_training_need(const struct cm_graph *graph, const bool *given, bool evaluate, bool *needed)
{
    for (const struct cm_node *node = graph->last; node; node = node->prev) {
        const struct cm_training_form *form = evaluate && node->op ? node->op->training : NULL;
        const bool is_cut = form && form->mode_input && form->mode_input < node->n_inputs;

        if (cm_node_is_needed(node, needed, given))
            need_operands(node, is_cut ? form->mode_input : node->n_inputs, needed);
    }
}

bool *cm_training_needed(const struct cm_graph *graph, struct cm_arena *arena,
                         const cm_value *outputs, size_t n_outputs, const bool *given,
                         bool evaluate)
{
    bool *needed = CM_NEW_ARRAY(arena, bool, cm_module_value_count(graph->module));

    for (size_t o = 0; o < n_outputs; o++)
        needed[outputs[o]] = true;
    cm_training_need(graph, given, evaluate, needed);
    return needed;
}

/* ---- cutting ---- */

struct copying {
    const struct cm_cut *cut;
    struct cm_module *module;
    struct cm_arena *arena;
    bool *given, *needed; /* by value number */
    struct cm_clone clone;
    struct cm_graph *to;
    cm_value *sources;
};

static void add_input(struct copying *c, cm_value value, const struct cm_type *type)
{
    const struct cm_value_def *def = cm_value_get(c->module, value);

    if (!c->needed[value])
        return;
    c->sources[c->to->n_inputs] = value;
    const cm_value input = cm_graph_add_input(c->to, def->name, type ? type : def->fact.type);
    cm_clone_map(&c->clone, value, input);
}

static void add_inputs(struct copying *c)
{
    const struct cm_graph *from = c->cut->graph;

    c->sources = CM_NEW_ARRAY(c->arena, cm_value, from->n_inputs + c->cut->n_given);
    for (size_t i = 0; i < from->n_inputs; i++)
        if (cm_value_is_variable(c->module, from->inputs[i]))
            add_input(c, from->inputs[i], NULL);
    for (size_t i = 0; i < c->cut->n_given; i++)
        add_input(c, c->cut->given[i].value, c->cut->given[i].type);
    for (size_t i = 0; i < from->n_inputs; i++)
        if (!cm_value_is_variable(c->module, from->inputs[i]) && !c->given[from->inputs[i]])
            add_input(c, from->inputs[i], NULL);
}

/* Constants that bodies read stay outside them. */
static void add_outer_constants(struct copying *c)
{
    const size_t count = cm_module_value_count(c->module);

    for (cm_value v = 1; v < count; v++) {
        const struct cm_value_def *def = cm_value_get(c->module, v);
        const struct cm_use *use = NULL;

        if (def->graph == c->cut->graph && def->role == CM_ROLE_INITIALIZER)
            for (use = def->uses; use && use->graph == def->graph;)
                use = use->next;
        if (use)
            (void)cm_clone_operand(&c->clone, c->to, c->cut->graph, v);
    }
}

static enum cm_status copy_nodes(struct copying *c, struct cm_error *err)
{
    struct cm_builder build = {.graph = c->to, .err = err};

    for (const struct cm_node *node = c->cut->graph->first; node; node = node->next) {
        if (!cm_node_is_needed(node, c->needed, c->given))
            continue;
        CM_TRY(cm_clone_node(&c->clone, &build, node));
        for (int o = 0; o < node->n_outputs; o++) /* what is given stays an input */
            for (size_t i = 0; i < c->to->n_inputs && c->given[node->outputs[o]]; i++)
                if (c->sources[i] == node->outputs[o])
                    cm_clone_map(&c->clone, c->sources[i], c->to->inputs[i]);
    }
    return CM_OK;
}

enum cm_status cm_cut_copy(const struct cm_cut *cut, struct cm_graph **out, cm_value **sources,
                           struct cm_error *err)
{
    struct cm_module *module = cut->graph->module;
    struct cm_arena *arena = cm_module_arena(module);
    struct copying c = {.cut = cut, .module = module, .arena = arena};

    c.given = CM_NEW_ARRAY(arena, bool, cm_module_value_count(module));
    for (size_t i = 0; i < cut->n_given; i++)
        c.given[cut->given[i].value] = true;
    c.needed =
        cm_training_needed(cut->graph, arena, cut->outputs, cut->n_outputs, c.given, cut->evaluate);
    struct settling settling = {cut->graph, c.needed};
    const struct cm_clone_changes changes = {.node = settle, .arg = &settling};
    cm_clone_init(&c.clone, module);
    c.clone.alike = true;
    c.clone.changes = cut->evaluate ? &changes : NULL;
    c.to = cm_graph_new(module, NULL, cut->graph->name);
    c.to->n_streams = cut->graph->n_streams;
    add_inputs(&c);
    add_outer_constants(&c);
    CM_TRY(copy_nodes(&c, err));
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, cut->n_outputs);
    for (size_t o = 0; o < cut->n_outputs; o++)
        outputs[o] = cm_clone_operand(&c.clone, c.to, cut->graph, cut->outputs[o]);
    cm_graph_set_outputs(c.to, outputs, cut->n_outputs);
    *out = c.to;
    *sources = c.sources;
    return CM_OK;
}

/* ---- Gradient ---- */

cm_value cm_gradient_of(const struct cm_node *node, int o)
{
    const size_t n_xs = cm_node_strs(node, "xs").count;
    const size_t n = n_xs + cm_node_strs(node, "zs").count;
    const cm_value named = cm_node_input(node, (int)n + 1 + o);

    return (size_t)o < n_xs && cm_node_input(node, o) == named ? named : 0;
}
