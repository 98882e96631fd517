/* The training step's own forward: from the first node whose training behaviour differs, the
 * algorithm holds copies of the nodes, with BatchNormalization and Dropout in training mode. They
 * read the same initializers; the inference graph stays as it is. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "graph/op.h"
#include "train/training_graph.h"

struct forward {
    struct cm_preparation *p;
    struct cm_module *module;
    struct cm_clone statistics; /* running statistics to the values that hold them by now */
};

/* ---- which nodes ---- */

static bool is_false(const struct cm_node *node, int input)
{
    const cm_value value = cm_node_input(node, input);
    const struct cm_tensor *mode = NULL;
    struct cm_error ignored = {0};

    if (!value)
        return true;
    return cm_value_constant(node->module, value, &mode, &ignored) == CM_OK && mode &&
           mode->type == CM_BOOL && cm_tensor_count(mode) == 1 && cm_tensor_int(mode, 0) == 0;
}

static bool gives_statistics(const struct cm_node *node)
{
    const struct cm_training_form *training = node->op->training;

    for (int i = 0; i < training->n_statistics; i++)
        if (!cm_node_output(node, training->statistics_output + i))
            return false;
    return true;
}

/* A node that is in training mode but keeps its statistics to itself counts too: they must be
 * updated. */
static bool differs(const struct cm_node *node)
{
    const struct cm_training_form *training = node->op ? node->op->training : NULL;

    if (!training)
        return false;
    if (training->mode_attribute && !cm_node_int(node, training->mode_attribute))
        return true;
    if (training->mode_input && is_false(node, training->mode_input))
        return true;
    return !gives_statistics(node);
}

static bool is_moved(const struct forward *f, cm_value value)
{
    return cm_clone_of(&f->p->moved, value) != value;
}

/* Does a node, or a body in it, read what training computes in another way? */
static bool reads_moved(const struct forward *f, const struct cm_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (is_moved(f, node->inputs[i].value))
            return true;
    for (size_t b = 0; b < node->n_bodies; b++) {
        const struct cm_graph *body = node->bodies[b].graph;

        for (const struct cm_node *inner = body->first; inner; inner = inner->next)
            if (differs(inner) || reads_moved(f, inner))
                return true;
        for (size_t o = 0; o < body->n_outputs; o++)
            if (is_moved(f, body->outputs[o].value))
                return true;
    }
    return false;
}

/* ---- training mode ---- */

/* The node's attributes with one set to 1. */
static struct cm_attribute_proto *with_attribute(struct cm_arena *arena, const struct cm_node *node,
                                                 const char *name, size_t *count)
{
    struct cm_attribute_proto *all =
        CM_NEW_ARRAY(arena, struct cm_attribute_proto, node->n_attributes + 1);

    *count = 0;
    for (size_t i = 0; i < node->n_attributes; i++)
        if (!cm_str_is(node->attributes[i].name, name))
            all[(*count)++] = node->attributes[i];
    all[(*count)++] = cm_attr_int(arena, name, 1);
    return all;
}

/* Puts the same node in training mode, and with outputs for its statistics, in the place of one. */
static struct cm_node *set_mode(struct forward *f, struct cm_node *node)
{
    const struct cm_training_form *training = node->op->training;
    struct cm_preparation *p = f->p;
    const int n_in = training->mode_input ? training->mode_input + 1 : node->n_inputs;
    const int last = training->statistics_output + training->n_statistics;
    const int n_out = last > node->n_outputs ? last : node->n_outputs;
    cm_value *inputs = CM_NEW_ARRAY(p->arena, cm_value, (size_t)n_in);
    bool *wanted = CM_NEW_ARRAY(p->arena, bool, (size_t)n_out);
    struct cm_node_spec spec = {.domain = node->domain,
                                .op_type = node->op_type,
                                .name = node->name,
                                .version = node->schema->since_version,
                                .inputs = inputs,
                                .n_inputs = (size_t)n_in,
                                .n_outputs = (size_t)n_out,
                                .wanted = wanted,
                                .attributes = node->attributes,
                                .n_attributes = node->n_attributes,
                                .original_version = node->original_version,
                                .stream = node->stream};
    struct cm_node *made = NULL;

    for (int i = 0; i < n_in; i++)
        inputs[i] = cm_node_input(node, i);
    for (int o = 0; o < n_out; o++)
        wanted[o] = cm_node_output(node, o) || (o >= training->statistics_output && o < last);
    if (training->mode_input)
        inputs[training->mode_input] = cm_preparation_scalar(p, "mode", CM_BOOL, 1);
    if (training->mode_attribute)
        spec.attributes =
            with_attribute(p->arena, node, training->mode_attribute, &spec.n_attributes);
    if (!p->build.status)
        p->build.status = cm_graph_add_node(node->graph, node, &spec, &made, p->err);
    if (p->build.status)
        return NULL;
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value old = node->outputs[o];

        if (!old)
            continue;
        const struct cm_str name = cm_value_get(f->module, old)->name;
        cm_value_replace(f->module, old, made->outputs[o]);
        cm_value_set_name(f->module, old, CM_STR_NONE);
        cm_value_set_name(f->module, made->outputs[o], name);
    }
    cm_graph_remove_node(node);
    return made;
}

static void set_modes_inside(struct forward *f, struct cm_graph *graph)
{
    struct cm_node *next;

    for (struct cm_node *node = graph->first; node; node = next) {
        next = node->next;
        for (size_t b = 0; b < node->n_bodies; b++)
            set_modes_inside(f, node->bodies[b].graph);
        if (!differs(node))
            continue;
        if (!node->op->training->n_statistics)
            set_mode(f, node);
        else
            cm_preparation_block(f->p,
                                 "%s is inside a body of control flow, where its running "
                                 "statistics cannot be updated",
                                 cm_node_describe(node).text);
    }
}

/* ---- statistics ---- */

static bool is_variable(const struct forward *f, cm_value value)
{
    return value && cm_value_get(f->module, value)->role == CM_ROLE_INITIALIZER;
}

static cm_value call_next(struct forward *f, cm_value statistic, cm_value next)
{
    const struct cm_str name = cm_preparation_name_of(f->p, statistic);

    return cm_preparation_call(f->p, next,
                               cm_preparation_name(f->p, "%.*s.next", CM_STR_FMT(name)));
}

/* Each statistic is given its next value; one that several nodes update goes from node to node. */
static void update_statistics(struct forward *f, struct cm_node *node)
{
    const struct cm_training_form *training = node->op->training;

    for (int i = 0; i < training->n_statistics; i++) {
        const int input = training->statistics_input + i;
        const cm_value statistic = cm_node_input(node, input);
        const cm_value next = node->outputs[training->statistics_output + i];

        call_next(f, statistic, next);
        if (!is_variable(f, statistic)) {
            const struct cm_str name = cm_preparation_name_of(f->p, statistic);
            cm_preparation_note(f->p, "'%.*s' is computed, so training does not update it",
                                CM_STR_FMT(name));
            continue;
        }
        cm_node_set_input(node, input, cm_clone_of(&f->statistics, statistic));
        cm_clone_map(&f->statistics, statistic, next);
    }
}

bool cm_operand_is_statistic(const struct cm_node *node, int index)
{
    const struct cm_training_form *training = node->op ? node->op->training : NULL;

    return training && index >= training->statistics_input &&
           index < training->statistics_input + training->n_statistics;
}

bool cm_value_is_statistic(const struct cm_module *module, cm_value value)
{
    for (const struct cm_use *use = cm_value_get(module, value)->uses; use; use = use->next)
        if (use->node && cm_operand_is_statistic(use->node, use->index))
            return true;
    return false;
}

/* ---- copies ---- */

static struct cm_str copy_name(struct forward *f, struct cm_str name)
{
    return name.size ? cm_arena_printf(f->p->arena, "%.*s.training", CM_STR_FMT(name)) : name;
}

static void copy_node(struct forward *f, const struct cm_node *from)
{
    struct cm_preparation *p = f->p;

    if (cm_clone_node(&p->moved, &p->build, from))
        return; /* the builder remembers */
    struct cm_node *copy = p->build.graph->last;
    copy->name = copy_name(f, from->origin ? from->origin->proto->name : from->name);
    for (size_t b = 0; b < copy->n_bodies; b++) {
        set_modes_inside(f, copy->bodies[b].graph);
    }
    for (int o = 0; o < from->n_outputs; o++) {
        const struct cm_str name = cm_preparation_name_of(p, from->outputs[o]);

        if (name.size)
            cm_preparation_call(p, copy->outputs[o],
                                cm_preparation_name(p, "%.*s.training", CM_STR_FMT(name)));
    }
    if (!differs(from))
        return;
    copy = set_mode(f, copy);
    for (int o = 0; copy && o < from->n_outputs; o++)
        cm_clone_map(&p->moved, from->outputs[o], copy->outputs[o]);
    if (copy)
        update_statistics(f, copy);
}

/* A node of the file: one, or all that an upgrade made of it. */
static const struct cm_node *unit_end(const struct cm_node *node)
{
    const size_t count = node->origin && node->origin->n_nodes ? node->origin->n_nodes : 1;

    for (size_t i = 0; i < count; i++)
        node = node->next;
    return node;
}

static bool unit_moves(const struct forward *f, const struct cm_node *node,
                       const struct cm_node *end)
{
    for (; node != end; node = node->next)
        if (differs(node) || reads_moved(f, node))
            return true;
    return false;
}

static bool makes_needed(const bool *needed, const struct cm_node *node, const struct cm_node *end)
{
    for (; node != end; node = node->next)
        if (cm_node_is_needed(node, needed, NULL))
            return true;
    return false;
}

enum cm_status cm_training_mode(struct cm_preparation *p)
{
    struct forward f = {.p = p, .module = p->inference->module};
    const bool *needed = cm_preparation_needed(p, p->read);
    const cm_value n_values = (cm_value)cm_module_value_count(f.module);
    const struct cm_node *end;
    size_t copies = 0;

    cm_clone_init(&f.statistics, f.module);
    for (const struct cm_node *node = p->inference->first; node; node = end) {
        end = unit_end(node);
        if (!makes_needed(needed, node, end))
            continue;
        if (!unit_moves(&f, node, end))
            continue;
        for (; node != end; node = node->next)
            copy_node(&f, node);
        copies++;
    }
    if (!p->build.status)
        p->build.status = cm_graph_retype(p->build.graph, p->err);
    for (cm_value value = 1; value < n_values; value++) {
        const cm_value next = cm_clone_of(&f.statistics, value);

        if (next != value)
            cm_preparation_bind(p, value, next);
    }
    if (copies)
        cm_preparation_note(p,
                            "%zu node%s computed by training itself, BatchNormalization and "
                            "Dropout in training mode",
                            copies, copies == 1 ? " is" : "s are");
    return CM_OK;
}
