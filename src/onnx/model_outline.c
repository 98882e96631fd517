/* Nodes and values of a model as the file has them: graphs, the graphs inside their nodes,
 * functions and training. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_outline.h"

/* What is common to functions and graphs. */
struct parts {
    struct cm_str name;
    const struct cm_nodes *nodes;
    const struct cm_value_infos *infos;
    const struct cm_graph_proto *graph;       /* or NULL */
    const struct cm_function_proto *function; /* or NULL */
};

struct outlining {
    struct cm_arena *arena;
    struct cm_outlines *made;
};

static struct cm_outline *build(struct outlining *o, const struct parts *parts,
                                struct cm_outline *around, const struct cm_outline_node *owner,
                                bool apart);

/* ---- values ---- */

static struct cm_outline_value *find(const struct cm_outline *graph, struct cm_str name)
{
    const uint64_t *index = cm_map_find(&graph->by_name, name);
    return index ? graph->values.items[*index] : NULL;
}

const struct cm_outline_value *cm_outline_find(const struct cm_outline *graph, struct cm_str name)
{
    return find(graph, name);
}

static struct cm_outline_value *add_value(struct outlining *o, struct cm_outline *graph,
                                          struct cm_str name, enum cm_outline_origin origin)
{
    struct cm_outline_value *found = find(graph, name);

    if (found || !name.size)
        return found;
    struct cm_outline_value *value = CM_NEW(o->arena, struct cm_outline_value);
    *value = (struct cm_outline_value){
        .name = name, .graph = graph, .index = graph->values.count, .origin = origin};
    *cm_map_insert(&graph->by_name, o->arena, name, NULL) = graph->values.count;
    *CM_PUSH(o->arena, &graph->values) = value;
    return value;
}

static bool is_defined(const struct cm_outline *graph, struct cm_str name)
{
    for (; graph; graph = graph->around) {
        const struct cm_outline_value *value = find(graph, name);
        if (value && value->origin != CM_OUTLINE_UNDEFINED)
            return true;
    }
    return false;
}

/* A value that is read: this graph's, or one of a graph around it and of all between. */
static struct cm_outline_value *read_value(struct outlining *o, struct cm_outline *graph,
                                           struct cm_str name)
{
    struct cm_outline_value *value = find(graph, name);

    if (value)
        return value;
    struct cm_outline_value *outer =
        is_defined(graph->around, name) ? read_value(o, graph->around, name) : NULL;
    value = add_value(o, graph, name, outer ? CM_OUTLINE_OUTER : CM_OUTLINE_UNDEFINED);
    value->outer = outer;
    return value;
}

static void add_reader(struct outlining *o, struct cm_outline_value *value,
                       const struct cm_outline_node *node, size_t input)
{
    for (; value; value = value->graph->apart ? NULL : value->outer)
        *CM_PUSH(o->arena, &value->readers) = (struct cm_outline_reader){node, input};
}

static void declare_values(struct outlining *o, struct cm_outline *graph, const struct parts *parts)
{
    const struct cm_graph_proto *from = parts->graph;

    for (size_t i = 0; from && i < from->input.count; i++)
        add_value(o, graph, from->input.items[i].name, CM_OUTLINE_INPUT);
    for (size_t i = 0; parts->function && i < parts->function->input.count; i++)
        add_value(o, graph, parts->function->input.items[i], CM_OUTLINE_INPUT);
    for (size_t i = 0; from && i < from->initializer.count; i++)
        add_value(o, graph, from->initializer.items[i].name, CM_OUTLINE_INITIALIZER);
    for (size_t i = 0; from && i < from->sparse_initializer.count; i++)
        if (from->sparse_initializer.items[i].values)
            add_value(o, graph, from->sparse_initializer.items[i].values->name,
                      CM_OUTLINE_INITIALIZER);
    for (size_t n = 0; n < parts->nodes->count; n++) {
        const struct cm_strs *outputs = &parts->nodes->items[n].output;

        for (size_t i = 0; i < outputs->count; i++) {
            struct cm_outline_value *value =
                add_value(o, graph, outputs->items[i], CM_OUTLINE_NODE);

            if (!value || value->origin != CM_OUTLINE_NODE || value->maker)
                continue;
            value->maker = &graph->nodes[n];
            value->maker_output = i;
        }
    }
}

static void note_infos(struct cm_outline *graph, const struct cm_value_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        struct cm_outline_value *value = find(graph, infos->items[i].name);

        if (value && !value->info)
            value->info = &infos->items[i];
    }
}

static void note_ends(struct outlining *o, struct cm_outline *graph, const struct parts *parts)
{
    const struct cm_graph_proto *from = parts->graph;
    const size_t inputs = from ? from->input.count : parts->function->input.count;
    const size_t outputs = from ? from->output.count : parts->function->output.count;

    graph->inputs = CM_NEW_ARRAY(o->arena, const struct cm_outline_value *, inputs);
    graph->outputs = CM_NEW_ARRAY(o->arena, const struct cm_outline_value *, outputs);
    for (size_t i = 0; i < inputs; i++) {
        const struct cm_outline_value *value =
            find(graph, from ? from->input.items[i].name : parts->function->input.items[i]);
        if (value)
            graph->inputs[graph->input_count++] = value;
    }
    for (size_t i = 0; i < outputs; i++) {
        const struct cm_str name =
            from ? from->output.items[i].name : parts->function->output.items[i];
        if (!name.size)
            continue;
        struct cm_outline_value *value = read_value(o, graph, name);
        value->is_output = true;
        graph->outputs[graph->output_count++] = value;
    }
}

/* ---- nodes ---- */

static void add_bodies(struct outlining *o, struct cm_outline_node *node,
                       const struct cm_attribute_proto *from, struct cm_outline_bodies *out)
{
    const size_t single = from->g != NULL;

    out->count = single + from->graphs.count;
    out->items = CM_NEW_ARRAY(o->arena, struct cm_outline *, out->count);
    for (size_t i = 0; i < out->count; i++) {
        const struct cm_graph_proto *body =
            single && i == 0 ? from->g : &from->graphs.items[i - single];
        const struct parts parts = {body->name, &body->node, &body->value_info, body, NULL};
        out->items[i] = build(o, &parts, node->graph, node, false);
    }
}

static void add_node(struct outlining *o, struct cm_outline_node *node)
{
    const struct cm_node_proto *from = node->proto;

    for (size_t i = 0; i < from->input.count; i++)
        if (from->input.items[i].size)
            add_reader(o, read_value(o, node->graph, from->input.items[i]), node, i);
    node->bodies = CM_NEW_ARRAY(o->arena, struct cm_outline_bodies, from->attribute.count);
    for (size_t i = 0; i < from->attribute.count; i++)
        add_bodies(o, node, &from->attribute.items[i], &node->bodies[i]);
}

/* Recursion, through bodies, is as deep as graphs nest, which the readers of both forms bound. */
static struct cm_outline *build(struct outlining *o, const struct parts *parts,
                                struct cm_outline *around, const struct cm_outline_node *owner,
                                bool apart)
{
    struct cm_outline *graph = CM_NEW(o->arena, struct cm_outline);
    const size_t count = parts->nodes->count;

    graph->name = parts->name;
    graph->number = o->made->all.count;
    *CM_PUSH(o->arena, &o->made->all) = graph;
    graph->owner = owner;
    graph->around = around;
    graph->apart = apart;
    graph->node_count = count;
    graph->nodes = CM_NEW_ARRAY(o->arena, struct cm_outline_node, count);
    for (size_t i = 0; i < count; i++)
        graph->nodes[i] =
            (struct cm_outline_node){.proto = &parts->nodes->items[i], .graph = graph, .index = i};
    declare_values(o, graph, parts);
    for (size_t i = 0; i < count; i++)
        add_node(o, &graph->nodes[i]);
    note_ends(o, graph, parts);
    if (parts->graph) {
        note_infos(graph, &parts->graph->input);
        note_infos(graph, &parts->graph->output);
    }
    note_infos(graph, parts->infos);
    return graph;
}

/* ---- the whole model ---- */

static struct cm_outline *build_graph(struct outlining *o, const struct cm_graph_proto *from,
                                      struct cm_outline *around)
{
    if (!from)
        return NULL;
    const struct parts parts = {from->name, &from->node, &from->value_info, from, NULL};
    return build(o, &parts, around, NULL, around != NULL);
}

struct cm_outlines *cm_outlines_new(struct cm_arena *arena, const struct cm_model_proto *model)
{
    struct cm_outlines *made = CM_NEW(arena, struct cm_outlines);
    struct outlining o = {arena, made};
    const size_t entries = model->training_info.count;

    made->main = build_graph(&o, model->graph, NULL);
    made->functions = CM_NEW_ARRAY(arena, struct cm_outline *, model->functions.count);
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *from = &model->functions.items[i];
        const struct parts parts = {from->name, &from->node, &from->value_info, NULL, from};
        made->functions[i] = build(&o, &parts, NULL, NULL, false);
    }
    made->initializations = CM_NEW_ARRAY(arena, struct cm_outline *, entries);
    made->algorithms = CM_NEW_ARRAY(arena, struct cm_outline *, entries);
    for (size_t i = 0; i < entries; i++) {
        const struct cm_training_proto *from = &model->training_info.items[i];
        made->initializations[i] = build_graph(&o, from->initialization, made->main);
        made->algorithms[i] = build_graph(&o, from->algorithm, made->main);
    }
    return made;
}
