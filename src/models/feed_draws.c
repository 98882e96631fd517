/* Random nodes of a graph that others run: what they draw comes from outside, as inputs. */
// SPDX-License-Identifier: Apache-2.0
#include "models/feed_draws.h"

#include "graph/builder.h"

bool cm_node_draws(const struct cm_node *node)
{
    return node->op && node->op->effects & CM_RANDOM;
}

struct feeding {
    struct cm_builder build;
    size_t count;
};

static cm_value new_input(struct feeding *f, cm_value like, const char *what)
{
    struct cm_module *module = f->build.graph->module;
    const struct cm_value_def *def = cm_value_get(module, like);
    struct cm_str name = def->name;

    if (name.size) {
        cm_value_set_name(module, like, CM_STR_NONE);
    } else {
        do
            name = cm_arena_printf(cm_module_arena(module), "%s_%zu", what, ++f->count);
        while (cm_graph_find(f->build.graph, name));
    }
    return cm_graph_add_input(f->build.graph, name, def->fact.type);
}

/* What the operator makes of a draw that comes from outside takes its place. */
static enum cm_status feed_draw(struct feeding *f, struct cm_node *node, struct cm_error *err)
{
    const struct cm_training_form *form = node->op->training;
    struct cm_module *module = node->module;
    cm_value drawn;

    f->build.before = node;
    CM_TRY(cm_node_want_output(node, form->draw_output, &drawn, err));
    struct cm_arena *arena = cm_module_arena(module);
    cm_value *in = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_inputs);
    cm_value *out = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_outputs);
    for (int i = 0; i < node->n_inputs; i++)
        in[i] = node->inputs[i].value;
    out[form->draw_output] = new_input(f, drawn, "mask");
    struct cm_body body = {.build = f->build, .node = node, .in = in, .out = out};
    CM_TRY(form->from_draw(&body));
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value old = node->outputs[o];

        if (!old)
            continue;
        const struct cm_str name = cm_value_get(module, old)->name;
        cm_value_replace(module, old, out[o]);
        if (o == form->draw_output)
            continue; /* it handed its name on */
        cm_value_set_name(module, old, CM_STR_NONE);
        cm_value_set_name(module, out[o], name);
    }
    cm_graph_remove_node(node);
    return CM_OK;
}

/* Not training, nothing is drawn. */
static enum cm_status is_drawing(const struct cm_node *node, bool *out, struct cm_error *err)
{
    const cm_value training = cm_node_input(node, node->op->training->mode_input);
    const struct cm_tensor *mode = NULL;

    if (training)
        CM_TRY(cm_value_constant(node->module, training, &mode, err));
    *out = training && !(mode && cm_tensor_int(mode, 0) == 0);
    return CM_OK;
}

enum cm_status cm_feed_draws(struct cm_graph *graph, struct cm_error *err)
{
    struct feeding f = {.build = {.graph = graph, .err = err}};

    for (struct cm_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (!cm_node_draws(node))
            continue;
        if (node->op->training && node->op->training->from_draw) {
            bool drawing = false;
            CM_TRY(is_drawing(node, &drawing, err));
            if (drawing)
                CM_TRY(feed_draw(&f, node, err));
            continue;
        }
        for (int o = 0; o < node->n_outputs; o++)
            if (node->outputs[o])
                cm_value_replace(graph->module, node->outputs[o],
                                 new_input(&f, node->outputs[o], "draw"));
        cm_graph_remove_node(node);
    }
    return cm_graph_retype(graph, err);
}
