/* The step of a training that is being prepared, differentiated once. A copy of the forward pass
 * goes through the passes before `gradients` and is differentiated; the preparation learns which
 * tensors a gradient reaches. If a gradient reaches every tensor, the update is added to the copy
 * when a trainer asks for it, and the trainer takes the graph as its step. The update does not go
 * through these passes: it holds nothing that `patterns` looks for, and `simplify` runs again. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"
#include "autodiff/gradient_nodes.h"
#include "lower/lower.h"
#include "train/prepare/preparation.h"
#include "train/training_graph.h"

struct cm_prepared_step {
    struct cm_arena *arena;
    struct cm_graph *graph; /* its outputs: those of kept, then the gradients */
    struct cm_clone clone;  /* inputs and variables to inputs of graph */
    const cm_value *xs;
    size_t n_xs;
    const cm_value *kept; /* values of the forward pass that the algorithm gives: first the loss */
    size_t n_kept;
    /* Once the algorithm is complete: */
    const struct cm_graph *algorithm;
    const struct cm_trained_weight *weights; /* as xs */
    const cm_value *outputs;                 /* of the algorithm */
    size_t n_outputs;
    const struct cm_prepared_binding *updates;
    size_t n_updates;
    enum { STEP_BEGUN, STEP_FINISHED, STEP_IMPOSSIBLE } state;
};

static struct cm_str name_of(const struct cm_prepared_step *s, cm_value value)
{
    return cm_value_get(s->graph->module, value)->name;
}

/* ---- the forward pass and its gradients ---- */

static cm_value copy_input(struct cm_prepared_step *s, cm_value from)
{
    const struct cm_value_def *def = cm_value_get(s->graph->module, from);
    const struct cm_tensor_proto *initializer = def->initializer;
    const cm_value input = cm_graph_add_input(s->graph, def->name, def->fact.type);

    cm_value_get(s->graph->module, input)->initializer = initializer;
    cm_clone_map(&s->clone, from, input);
    return input;
}

/* Both graphs as a trainer has them: what the step changes are inputs with a default. */
static enum cm_status copy_forward(struct cm_preparation *p, struct cm_prepared_step *s)
{
    const struct cm_prepared_training both = {.inference = p->inference,
                                              .algorithm = p->build.graph};
    struct cm_map variables = {0};

    for (size_t i = 0; i < s->n_xs; i++)
        cm_map_insert(&variables, p->arena, cm_preparation_name_of(p, s->xs[i]), NULL);
    for (size_t i = 0; i < p->updates.count; i++) /* running statistics */
        cm_map_insert(&variables, p->arena, cm_preparation_name_of(p, p->updates.items[i].state),
                      NULL);
    CM_TRY(cm_training_join(&both, &variables, &s->clone, &s->graph, p->err));
    for (size_t i = 0; i < s->n_xs; i++) {
        const cm_value constant = cm_clone_of(&s->clone, s->xs[i]); /* in a node so far */

        if (!cm_value_get(s->graph->module, constant)->node)
            continue;
        cm_value_set_name(s->graph->module, constant, CM_STR_NONE);
        cm_value_replace(s->graph->module, constant, copy_input(s, s->xs[i]));
    }
    return CM_OK;
}

static const cm_value *list_kept(struct cm_preparation *p, cm_value loss)
{
    cm_value *kept = CM_NEW_ARRAY(p->arena, cm_value, p->outputs.count + 1);

    kept[0] = loss;
    for (size_t i = 0; i < p->outputs.count; i++)
        kept[i + 1] = p->outputs.items[i];
    return kept;
}

enum cm_status cm_prepared_step_differentiate(struct cm_preparation *p, cm_value loss,
                                              const cm_value *xs, size_t n_xs, cm_value *grads)
{
    const struct cm_lower_options until = {.pass = {.training = true},
                                           .passes = {.until = "patterns"}};
    struct cm_prepared_step *s = CM_NEW(p->arena, struct cm_prepared_step);

    if (!n_xs)
        return CM_OK;
    *s = (struct cm_prepared_step){.arena = p->arena,
                                   .xs = xs,
                                   .n_xs = n_xs,
                                   .kept = list_kept(p, loss),
                                   .n_kept = p->outputs.count + 1};
    CM_TRY(copy_forward(p, s));
    cm_value *outputs = CM_NEW_ARRAY(p->arena, cm_value, s->n_kept + n_xs);
    cm_value *by = CM_NEW_ARRAY(p->arena, cm_value, n_xs);
    bool all = true;

    for (size_t i = 0; i < s->n_kept; i++)
        outputs[i] = cm_clone_operand(&s->clone, s->graph, p->build.graph, s->kept[i]);
    for (size_t i = 0; i < n_xs; i++)
        by[i] = cm_clone_of(&s->clone, xs[i]);
    cm_graph_set_outputs(s->graph, outputs, s->n_kept);
    cm_graph_remove_dead(s->graph);
    CM_TRY(cm_lower_graph(s->graph, &until, p->err));
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

struct cm_prepared_step *cm_prepared_step_keep(const struct cm_preparation *p)
{
    struct cm_prepared_step *s = p->step;

    if (!s)
        return NULL;
    s->algorithm = p->build.graph;
    s->weights = p->weights;
    s->outputs = p->outputs.items;
    s->n_outputs = p->outputs.count;
    s->updates = p->updates.items;
    s->n_updates = p->updates.count;
    return s;
}

/* The nodes of the algorithm after its Gradient node, as they are copied. */
struct update {
    struct cm_prepared_step *step;
    struct cm_builder build;
    struct cm_clone clone; /* values of the algorithm to those of the step */
    const bool *changes;   /* by value number: is it a state variable? */
};

static void map_known(struct update *u)
{
    const struct cm_prepared_step *s = u->step;
    struct cm_module *module = s->graph->module;
    bool *changes = CM_NEW_ARRAY(s->arena, bool, cm_module_value_count(module));

    for (size_t i = 0; i < s->n_kept; i++)
        cm_clone_map(&u->clone, s->kept[i], s->graph->outputs[i].value);
    for (size_t i = 0; i < s->n_xs; i++) {
        const struct cm_trained_weight *weight = &s->weights[i];
        const cm_value by = cm_clone_of(&s->clone, s->xs[i]);
        const cm_value gradient = s->graph->outputs[s->n_kept + i].value;

        cm_value_get(module, by)->initializer = cm_value_get(module, weight->value)->initializer;
        cm_clone_map(&u->clone, weight->value, by);
        cm_clone_map(&u->clone, weight->gradient, gradient);
        if (!name_of(s, gradient).size)
            cm_value_set_name(module, gradient, name_of(s, weight->gradient));
    }
    for (size_t i = 0; i < s->n_updates; i++)
        changes[s->updates[i].state] = true;
    u->changes = changes;
}

/* Finds what the step has for a value that the update reads. false: it computes no such thing. */
static bool map_operand(struct update *u, cm_value value)
{
    struct cm_prepared_step *s = u->step;
    const struct cm_value_def *def = value ? cm_value_get(s->graph->module, value) : NULL;

    if (!def || cm_clone_of(&u->clone, value) != value ||
        (def->role == CM_ROLE_INITIALIZER && !u->changes[value]))
        return true;
    if (def->node)
        return false;
    const cm_value input = cm_clone_of(&s->clone, value);
    cm_clone_map(&u->clone, value, input != value ? input : copy_input(s, value));
    return true;
}

static bool map_operands(struct update *u, const struct cm_node *node)
{
    cm_value *captured = NULL;
    const size_t n_captured =
        node->n_bodies ? cm_node_captured(node, u->step->arena, &captured) : 0;
    bool all = true;

    for (int i = 0; i < node->n_inputs; i++)
        all = all && map_operand(u, node->inputs[i].value);
    for (size_t i = 0; i < n_captured; i++)
        all = all && map_operand(u, captured[i]);
    return all;
}

/* Under the name that the algorithm has for it. */
static cm_value copy_output(struct update *u, cm_value output)
{
    const struct cm_prepared_step *s = u->step;
    const struct cm_str name = name_of(s, output);
    cm_value value = cm_clone_operand(&u->clone, s->graph, s->algorithm, output);

    if (cm_str_equal(name_of(s, value), name))
        return value;
    if (name_of(s, value).size)
        value = cm_build(&u->build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
    if (value)
        cm_value_set_name(s->graph->module, value, name);
    return value;
}

static enum cm_status finish(struct cm_prepared_step *s, struct cm_error *err)
{
    struct update u = {.step = s, .build = {.graph = s->graph, .err = err}};
    const struct cm_node *node = s->algorithm->last;
    cm_value *outputs = CM_NEW_ARRAY(s->arena, cm_value, s->n_outputs);

    s->state = STEP_IMPOSSIBLE;
    cm_clone_init(&u.clone, s->graph->module);
    u.clone.alike = true;
    map_known(&u);
    while (!cm_node_is_gradient(node))
        node = node->prev;
    for (node = node->next; node; node = node->next) {
        if (!map_operands(&u, node))
            return CM_OK;
        CM_TRY(cm_clone_node(&u.clone, &u.build, node));
    }
    for (size_t i = 0; i < s->n_outputs; i++) {
        if (!map_operand(&u, s->outputs[i]))
            return CM_OK;
        outputs[i] = copy_output(&u, s->outputs[i]);
        CM_TRY(u.build.status);
    }
    cm_graph_set_outputs(s->graph, outputs, s->n_outputs);
    s->state = STEP_FINISHED;
    return CM_OK;
}

enum cm_status cm_prepared_step_graph(struct cm_prepared_step *step, const struct cm_graph **out,
                                      struct cm_error *err)
{
    *out = NULL;
    if (step && step->state == STEP_BEGUN)
        CM_TRY(finish(step, err));
    if (step && step->state == STEP_FINISHED)
        *out = step->graph;
    return CM_OK;
}
