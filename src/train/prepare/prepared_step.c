/* The step of a training that is being prepared, differentiated once. What gradients reach is asked
 * of a copy of the forward pass that has been through the passes that a step goes through before
 * its Gradient nodes are expanded. Where all gradients that were asked for are there, the update is
 * added to this graph at the end, and a trainer takes it as its step. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"
#include "autodiff/gradient_nodes.h"
#include "lower/lower.h"
#include "train/prepare/preparation.h"
#include "train/training_graph.h"

/* The passes before `gradients`. */
static const char last_pass[] = "patterns";

struct cm_prepared_step {
    struct cm_graph *graph; /* its outputs: those of kept, then the gradients */
    struct cm_clone clone;  /* inputs and variables to inputs of graph */
    const cm_value *xs;
    size_t n_xs;
    const cm_value *kept; /* values of the forward pass that the algorithm gives: first the loss */
    size_t n_kept;
};

static enum cm_status lower(struct cm_graph *graph, struct cm_error *err)
{
    const struct cm_lower_options options = {.pass = {.training = true},
                                             .passes = {.until = last_pass}};

    return cm_lower_graph(graph, &options, err);
}

/* ---- the forward pass and its gradients ---- */

static void copy_input(struct cm_prepared_step *s, cm_value from)
{
    const struct cm_value_def *def = cm_value_get(s->graph->module, from);
    const struct cm_tensor_proto *initializer = def->initializer;
    const cm_value input = cm_graph_add_input(s->graph, def->name, def->fact.type);

    cm_value_get(s->graph->module, input)->initializer = initializer;
    cm_clone_map(&s->clone, from, input);
}

/* As a trainer has them: what is fed, then what the step changes. */
static void copy_inputs(const struct cm_preparation *p, struct cm_prepared_step *s)
{
    const struct cm_graph *graphs[] = {p->inference, p->build.graph};
    struct cm_module *module = s->graph->module;
    const cm_value n_values = (cm_value)cm_module_value_count(module);
    bool *changes = CM_NEW_ARRAY(p->arena, bool, n_values);

    for (size_t g = 0; g < CM_COUNT(graphs); g++)
        for (size_t i = 0; i < graphs[g]->n_inputs; i++)
            copy_input(s, graphs[g]->inputs[i]);
    for (size_t i = 0; i < s->n_xs; i++)
        changes[s->xs[i]] = true;
    for (size_t i = 0; i < p->updates.count; i++) /* running statistics */
        changes[p->updates.items[i].state] = true;
    for (cm_value value = 1; value < n_values; value++)
        if (changes[value])
            copy_input(s, value);
}

static enum cm_status copy_forward(struct cm_preparation *p, struct cm_prepared_step *s)
{
    const struct cm_graph *graphs[] = {p->inference, p->build.graph};
    struct cm_builder build = {.graph = s->graph, .err = p->err};
    bool *needed = cm_training_needed(p->build.graph, p->arena, s->kept, s->n_kept, NULL, false);

    cm_training_need(p->inference, NULL, false, needed);
    for (size_t g = 0; g < CM_COUNT(graphs); g++)
        for (const struct cm_node *node = graphs[g]->first; node; node = node->next)
            if (cm_node_is_needed(node, needed, NULL) &&
                cm_clone_of(&s->clone, node->outputs[0]) == node->outputs[0])
                CM_TRY(cm_clone_node(&s->clone, &build, node));
    return CM_OK;
}

static const cm_value *list_kept(struct cm_preparation *p, cm_value loss)
{
    cm_value *kept = CM_NEW_ARRAY(p->arena, cm_value, p->outputs.count + 1);

    kept[0] = loss;
    memcpy(kept + 1, p->outputs.items, p->outputs.count * sizeof *kept);
    return kept;
}

enum cm_status cm_prepared_step_differentiate(struct cm_preparation *p, cm_value loss,
                                              const cm_value *xs, size_t n_xs, cm_value *grads)
{
    struct cm_module *module = p->inference->module;
    struct cm_prepared_step *s = CM_NEW(p->arena, struct cm_prepared_step);

    if (!n_xs)
        return CM_OK;
    *s = (struct cm_prepared_step){.graph = cm_graph_new(module, NULL, p->inference->name),
                                   .xs = xs,
                                   .n_xs = n_xs,
                                   .kept = list_kept(p, loss),
                                   .n_kept = p->outputs.count + 1};
    cm_clone_init(&s->clone, module);
    s->clone.alike = true;
    copy_inputs(p, s);
    CM_TRY(copy_forward(p, s));
    cm_value *outputs = CM_NEW_ARRAY(p->arena, cm_value, s->n_kept + n_xs);
    cm_value *by = CM_NEW_ARRAY(p->arena, cm_value, n_xs);
    bool all = true;

    for (size_t i = 0; i < s->n_kept; i++)
        outputs[i] = cm_clone_operand(&s->clone, s->graph, p->build.graph, s->kept[i]);
    for (size_t i = 0; i < n_xs; i++)
        by[i] = cm_clone_of(&s->clone, xs[i]);
    cm_graph_set_outputs(s->graph, outputs, s->n_kept);
    CM_TRY(lower(s->graph, p->err));
    const struct cm_autodiff what = {
        .graph = s->graph, .ys = &s->graph->outputs[0].value, .n_ys = 1, .xs = by, .n_xs = n_xs};
    CM_TRY(cm_gradient_emit(&what, grads, p->err));
    for (size_t i = 0; i < s->n_kept; i++)
        outputs[i] = s->graph->outputs[i].value;
    for (size_t i = 0; i < n_xs; i++) {
        outputs[s->n_kept + i] = grads[i];
        all = all && grads[i];
    }
    if (!all) /* what no gradient reaches is a constant of the step */
        return CM_OK;
    cm_graph_set_outputs(s->graph, outputs, s->n_kept + n_xs);
    p->step = s;
    return CM_OK;
}

/* ---- the update ---- */

struct update {
    struct cm_preparation *p;
    struct cm_prepared_step *step;
    struct cm_graph *graph;     /* the update alone, as it goes through the passes */
    struct cm_clone clone;      /* values of the algorithm to values of graph */
    struct cm_clone known;      /* values of the algorithm to values of step->graph */
    const bool *changes;        /* by value number: is it a state variable? */
    CM_ARRAY(cm_value) sources; /* by input of graph: what it stands for in step->graph */
};

static void map_known(struct update *u)
{
    const struct cm_preparation *p = u->p;
    const struct cm_prepared_step *s = u->step;
    struct cm_module *module = s->graph->module;
    bool *changes = CM_NEW_ARRAY(p->arena, bool, cm_module_value_count(module));

    for (size_t i = 0; i < s->n_kept; i++)
        cm_clone_map(&u->known, s->kept[i], s->graph->outputs[i].value);
    for (size_t i = 0; i < s->n_xs; i++) {
        const struct cm_trained_weight *weight = &p->weights[i];
        const cm_value by = cm_clone_of(&s->clone, s->xs[i]);
        const cm_value gradient = s->graph->outputs[s->n_kept + i].value;

        cm_value_get(module, by)->initializer = cm_value_get(module, weight->value)->initializer;
        cm_clone_map(&u->known, weight->value, by);
        cm_clone_map(&u->known, weight->gradient, gradient);
        if (!cm_value_get(module, gradient)->name.size)
            cm_value_set_name(module, gradient, cm_preparation_name_of(p, weight->gradient));
    }
    for (size_t i = 0; i < p->updates.count; i++)
        changes[p->updates.items[i].state] = true;
    u->changes = changes;
}

/* What the step has for a value that was there before the update; 0: it computes no such thing. */
static cm_value find_source(struct update *u, cm_value value)
{
    const cm_value known = cm_clone_of(&u->known, value);

    if (known != value)
        return known;
    if (cm_value_get(u->graph->module, value)->node)
        return 0;
    if (cm_clone_of(&u->step->clone, value) == value)
        copy_input(u->step, value);
    return cm_clone_of(&u->step->clone, value);
}

/* Makes what a node of the update reads an input of it. */
static bool add_operand(struct update *u, cm_value value)
{
    const struct cm_module *module = u->graph->module;

    if (!value || cm_clone_of(&u->clone, value) != value ||
        (cm_value_get(module, value)->role == CM_ROLE_INITIALIZER && !u->changes[value]))
        return true;
    const cm_value source = find_source(u, value);
    if (!source)
        return false;
    const struct cm_value_def *def = cm_value_get(module, value);
    *CM_PUSH(u->p->arena, &u->sources) = source;
    cm_clone_map(&u->clone, value, cm_graph_add_input(u->graph, def->name, def->fact.type));
    return true;
}

static bool add_operands(struct update *u, const struct cm_node *node)
{
    cm_value *captured = NULL;
    const size_t n_captured = node->n_bodies ? cm_node_captured(node, u->p->arena, &captured) : 0;
    bool all = true;

    for (int i = 0; i < node->n_inputs; i++)
        all = all && add_operand(u, node->inputs[i].value);
    for (size_t i = 0; i < n_captured; i++)
        all = all && add_operand(u, captured[i]);
    return all;
}

/* The nodes behind the Gradient node as a graph of their own. all: it could be made. */
static enum cm_status cut_update(struct update *u, bool *all)
{
    const struct cm_preparation *p = u->p;
    struct cm_builder build = {.graph = u->graph, .err = p->err};
    const struct cm_node *node = p->build.graph->last;

    while (!cm_node_is_gradient(node))
        node = node->prev;
    *all = true;
    for (node = node->next; node && *all; node = node->next) {
        *all = add_operands(u, node);
        if (*all)
            CM_TRY(cm_clone_node(&u->clone, &build, node));
    }
    cm_value *outputs = CM_NEW_ARRAY(p->arena, cm_value, p->outputs.count);
    for (size_t i = 0; *all && i < p->outputs.count; i++) {
        *all = add_operand(u, p->outputs.items[i]);
        outputs[i] = cm_clone_operand(&u->clone, u->graph, p->build.graph, p->outputs.items[i]);
    }
    if (*all)
        cm_graph_set_outputs(u->graph, outputs, p->outputs.count);
    return CM_OK;
}

/* The outputs of the step have the names of the algorithm's. */
static cm_value call_output(struct cm_builder *build, cm_value value, struct cm_str name)
{
    struct cm_module *module = build->graph->module;

    if (cm_str_equal(cm_value_get(module, value)->name, name))
        return value;
    if (cm_value_get(module, value)->name.size)
        value = cm_build(build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
    if (value)
        cm_value_set_name(module, value, name);
    return value;
}

static enum cm_status join_update(struct update *u)
{
    const struct cm_preparation *p = u->p;
    struct cm_graph *graph = u->step->graph;
    struct cm_builder build = {.graph = graph, .err = p->err};
    cm_value *outputs = CM_NEW_ARRAY(p->arena, cm_value, p->outputs.count);
    struct cm_clone clone;

    cm_clone_init(&clone, graph->module);
    clone.alike = true;
    for (size_t i = 0; i < u->graph->n_inputs; i++)
        cm_clone_map(&clone, u->graph->inputs[i], u->sources.items[i]);
    CM_TRY(cm_clone_graph(&clone, &build, u->graph));
    for (size_t i = 0; i < p->outputs.count; i++) {
        const cm_value value =
            cm_clone_operand(&clone, graph, u->graph, u->graph->outputs[i].value);

        outputs[i] = call_output(&build, value, cm_preparation_name_of(p, p->outputs.items[i]));
        CM_TRY(build.status);
    }
    cm_graph_set_outputs(graph, outputs, p->outputs.count);
    return CM_OK;
}

enum cm_status cm_prepared_step_finish(struct cm_preparation *p, const struct cm_graph **out)
{
    struct cm_module *module = p->inference->module;
    struct update u = {.p = p, .step = p->step};
    bool all;

    *out = NULL;
    if (!p->step)
        return CM_OK;
    u.graph = cm_graph_new(module, NULL, p->build.graph->name);
    cm_clone_init(&u.clone, module);
    cm_clone_init(&u.known, module);
    u.clone.alike = true;
    map_known(&u);
    CM_TRY(cut_update(&u, &all));
    if (!all)
        return CM_OK;
    CM_TRY(lower(u.graph, p->err));
    CM_TRY(join_update(&u));
    *out = p->step->graph;
    return CM_OK;
}
