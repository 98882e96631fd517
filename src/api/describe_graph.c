/* Nodes and edges of a model as the file has them: graphs, the graphs inside their nodes, functions
 * and training. Gathered when somebody first asks. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "onnx/tensor_data.h"
#include "onnx/type_text.h"

struct readers {
    const struct cameo_node **items;
    size_t count, capacity;
};

struct reader_inputs {
    size_t *items;
    size_t count, capacity;
};

/* Rows begin with what the caller sees. */
struct edge_row {
    struct cameo_edge edge;
    struct readers readers;
    struct reader_inputs inputs;
    struct edge_row *outer;
};

struct attribute_row {
    struct cameo_node_attribute attribute;
    const struct cm_attribute_proto *proto;
};

struct cameo_graph {
    struct cameo_text name;
    const struct cameo_node *owner;
    struct cameo_graph *around;
    bool apart; /* what it reads of the graph around does not count there */
    size_t node_count, input_count, output_count;
    const struct cameo_node **nodes;
    const struct cameo_edge **inputs, **outputs;
    struct {
        struct edge_row **items;
        size_t count, capacity;
    } edges;
    struct cm_map by_name; /* number of an edge */
};

/* What is common to functions and graphs. */
struct parts {
    struct cm_str name;
    const struct cm_nodes *nodes;
    const struct cm_value_infos *infos;
    const struct cm_graph_proto *graph;       /* or NULL */
    const struct cm_function_proto *function; /* or NULL */
};

static struct cameo_graph *build(struct cm_arena *arena, const struct parts *parts,
                                 struct cameo_graph *around, const struct cameo_node *owner,
                                 bool apart);

/* ---- edges ---- */

static struct edge_row *find_edge(const struct cameo_graph *graph, struct cm_str name)
{
    const uint64_t *index = cm_map_find(&graph->by_name, name);
    return index ? graph->edges.items[*index] : NULL;
}

/* In a broken model several things make one edge: the first counts. */
static struct edge_row *add_edge(struct cm_arena *arena, struct cameo_graph *graph,
                                 struct cm_str name, enum cameo_edge_origin origin)
{
    struct edge_row *found = find_edge(graph, name);

    if (found || !name.size)
        return found;
    struct edge_row *row = CM_NEW(arena, struct edge_row);
    row->edge = (struct cameo_edge){.name = cm_api_text(arena, name), .origin = origin};
    *cm_map_insert(&graph->by_name, arena, name, NULL) = graph->edges.count;
    *CM_PUSH(arena, &graph->edges) = row;
    return row;
}

static bool is_defined(const struct cameo_graph *graph, struct cm_str name)
{
    for (; graph; graph = graph->around) {
        const struct edge_row *row = find_edge(graph, name);
        if (row && row->edge.origin != CAMEO_EDGE_UNDEFINED)
            return true;
    }
    return false;
}

/* An edge that is read: this graph's, or one of a graph around it and of all between. */
static struct edge_row *read_edge(struct cm_arena *arena, struct cameo_graph *graph,
                                  struct cm_str name)
{
    struct edge_row *row = find_edge(graph, name);

    if (row)
        return row;
    struct edge_row *outer =
        is_defined(graph->around, name) ? read_edge(arena, graph->around, name) : NULL;
    row = add_edge(arena, graph, name, outer ? CAMEO_EDGE_OUTER : CAMEO_EDGE_UNDEFINED);
    row->outer = graph->apart ? NULL : outer;
    row->edge.outer = outer ? &outer->edge : NULL;
    return row;
}

static void add_reader(struct cm_arena *arena, struct edge_row *row, const struct cameo_node *node,
                       size_t input)
{
    for (; row; row = row->outer) {
        *CM_PUSH(arena, &row->readers) = node;
        *CM_PUSH(arena, &row->inputs) = input;
        row->edge.reader_count = row->readers.count;
        row->edge.readers = row->readers.items;
        row->edge.reader_inputs = row->inputs.items;
    }
}

static void declare_edges(struct cm_arena *arena, struct cameo_graph *graph,
                          const struct parts *parts)
{
    const struct cm_graph_proto *from = parts->graph;

    for (size_t i = 0; from && i < from->input.count; i++)
        add_edge(arena, graph, from->input.items[i].name, CAMEO_EDGE_INPUT);
    for (size_t i = 0; parts->function && i < parts->function->input.count; i++)
        add_edge(arena, graph, parts->function->input.items[i], CAMEO_EDGE_INPUT);
    for (size_t i = 0; from && i < from->initializer.count; i++)
        add_edge(arena, graph, from->initializer.items[i].name, CAMEO_EDGE_INITIALIZER);
    for (size_t i = 0; from && i < from->sparse_initializer.count; i++)
        if (from->sparse_initializer.items[i].values)
            add_edge(arena, graph, from->sparse_initializer.items[i].values->name,
                     CAMEO_EDGE_INITIALIZER);
    for (size_t n = 0; n < parts->nodes->count; n++) {
        const struct cm_strs *outputs = &parts->nodes->items[n].output;

        for (size_t i = 0; i < outputs->count; i++) {
            struct edge_row *row = add_edge(arena, graph, outputs->items[i], CAMEO_EDGE_NODE);

            if (!row || row->edge.origin != CAMEO_EDGE_NODE || row->edge.maker)
                continue;
            row->edge.maker = graph->nodes[n];
            row->edge.maker_output = i;
        }
    }
}

static void note_infos(struct cm_arena *arena, struct cameo_graph *graph,
                       const struct cm_value_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        struct edge_row *row = find_edge(graph, infos->items[i].name);
        struct cameo_value_info *info;

        if (!row || row->edge.info)
            continue;
        info = CM_NEW(arena, struct cameo_value_info);
        cm_describe_value(arena, &infos->items[i], info);
        row->edge.info = info;
    }
}

static void note_ends(struct cm_arena *arena, struct cameo_graph *graph, const struct parts *parts)
{
    const struct cm_graph_proto *from = parts->graph;
    const size_t inputs = from ? from->input.count : parts->function->input.count;
    const size_t outputs = from ? from->output.count : parts->function->output.count;

    graph->inputs = CM_NEW_ARRAY(arena, const struct cameo_edge *, inputs);
    graph->outputs = CM_NEW_ARRAY(arena, const struct cameo_edge *, outputs);
    for (size_t i = 0; i < inputs; i++) {
        const struct edge_row *row =
            find_edge(graph, from ? from->input.items[i].name : parts->function->input.items[i]);
        if (row)
            graph->inputs[graph->input_count++] = &row->edge;
    }
    for (size_t i = 0; i < outputs; i++) {
        const struct cm_str name =
            from ? from->output.items[i].name : parts->function->output.items[i];
        if (!name.size)
            continue;
        struct edge_row *row = read_edge(arena, graph, name);
        row->edge.is_output = true;
        graph->outputs[graph->output_count++] = &row->edge;
    }
}

/* ---- nodes ---- */

static struct cameo_text *texts_of(struct cm_arena *arena, const struct cm_strs *from)
{
    struct cameo_text *texts = CM_NEW_ARRAY(arena, struct cameo_text, from->count);

    for (size_t i = 0; i < from->count; i++)
        texts[i] = cm_api_text(arena, from->items[i]);
    return texts;
}

static void describe_graphs(struct cm_arena *arena, struct cameo_graph *graph,
                            const struct cameo_node *node, const struct cm_attribute_proto *from,
                            struct cameo_node_attribute *out)
{
    const size_t single = from->g != NULL, count = single + from->graphs.count;
    const struct cameo_graph **graphs = CM_NEW_ARRAY(arena, const struct cameo_graph *, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_graph_proto *body =
            single && i == 0 ? from->g : &from->graphs.items[i - single];
        const struct parts parts = {body->name, &body->node, &body->value_info, body, NULL};
        graphs[i] = build(arena, &parts, graph, node, false);
    }
    out->graphs = graphs;
    out->graph_count = count;
}

static void describe_types(struct cm_arena *arena, const struct cm_attribute_proto *from,
                           struct cameo_node_attribute *out)
{
    const size_t single = from->tp != NULL, count = single + from->type_protos.count;
    struct cameo_text *types = CM_NEW_ARRAY(arena, struct cameo_text, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_str text =
            cm_type_text(arena, single && i == 0 ? from->tp : &from->type_protos.items[i - single]);
        types[i] = (struct cameo_text){text.data, text.size};
    }
    out->types = types;
    out->type_count = count;
}

static const struct cameo_node_attribute *describe_attribute(struct cm_arena *arena,
                                                             struct cameo_graph *graph,
                                                             const struct cameo_node *node,
                                                             const struct cm_attribute_proto *from)
{
    struct attribute_row *row = CM_NEW(arena, struct attribute_row);
    struct cameo_node_attribute *out = &row->attribute;

    row->proto = from;
    out->name = cm_api_text(arena, from->name);
    out->kind = from->type >= CAMEO_ATTRIBUTE_FLOAT && from->type <= CAMEO_ATTRIBUTE_TYPES
                    ? (enum cameo_attribute_kind)from->type
                    : CAMEO_ATTRIBUTE_NONE;
    out->refers_to = cm_api_text(arena, from->ref_attr_name);
    out->f = from->f;
    out->i = from->i;
    out->s = cm_api_text(arena, from->s);
    out->floats = from->floats.items;
    out->float_count = from->floats.count;
    out->ints = from->ints.items;
    out->int_count = from->ints.count;
    out->strings = texts_of(arena, &from->strings);
    out->string_count = from->strings.count;
    out->tensor_count = (from->t != NULL) + from->tensors.count;
    describe_graphs(arena, graph, node, from, out);
    describe_types(arena, from, out);
    return out;
}

static void describe_node(struct cm_arena *arena, struct cameo_graph *graph,
                          const struct cm_node_proto *from, struct cameo_node *out)
{
    const struct cameo_node_attribute **attributes =
        CM_NEW_ARRAY(arena, const struct cameo_node_attribute *, from->attribute.count);

    for (size_t i = 0; i < from->input.count; i++)
        if (from->input.items[i].size)
            add_reader(arena, read_edge(arena, graph, from->input.items[i]), out, i);
    for (size_t i = 0; i < from->attribute.count; i++)
        attributes[i] = describe_attribute(arena, graph, out, &from->attribute.items[i]);
    out->attributes = attributes;
    out->attribute_count = from->attribute.count;
    out->name = cm_api_text(arena, from->name);
    out->domain = cm_api_text(arena, from->domain);
    out->op_type = cm_api_text(arena, from->op_type);
    out->overload = cm_api_text(arena, from->overload);
    out->doc_string = cm_api_text(arena, from->doc_string);
    out->inputs = texts_of(arena, &from->input);
    out->input_count = from->input.count;
    out->outputs = texts_of(arena, &from->output);
    out->output_count = from->output.count;
}

/* Recursion, through bodies, is as deep as graphs nest, which the readers of both forms bound. */
static struct cameo_graph *build(struct cm_arena *arena, const struct parts *parts,
                                 struct cameo_graph *around, const struct cameo_node *owner,
                                 bool apart)
{
    struct cameo_graph *graph = CM_NEW(arena, struct cameo_graph);
    const size_t count = parts->nodes->count;
    struct cameo_node *nodes = CM_NEW_ARRAY(arena, struct cameo_node, count);

    graph->name = cm_api_text(arena, parts->name);
    graph->owner = owner;
    graph->around = around;
    graph->apart = apart;
    graph->node_count = count;
    graph->nodes = CM_NEW_ARRAY(arena, const struct cameo_node *, count);
    for (size_t i = 0; i < count; i++) {
        nodes[i].graph = graph;
        nodes[i].index = i;
        graph->nodes[i] = &nodes[i];
    }
    declare_edges(arena, graph, parts);
    for (size_t i = 0; i < count; i++)
        describe_node(arena, graph, &parts->nodes->items[i], &nodes[i]);
    note_ends(arena, graph, parts);
    if (parts->graph) {
        note_infos(arena, graph, &parts->graph->input);
        note_infos(arena, graph, &parts->graph->output);
    }
    note_infos(arena, graph, parts->infos);
    return graph;
}

/* ---- the whole model ---- */

static struct cameo_graph *build_graph(struct cm_arena *arena, const struct cm_graph_proto *from,
                                       struct cameo_graph *around)
{
    if (!from)
        return NULL;
    const struct parts parts = {from->name, &from->node, &from->value_info, from, NULL};
    return build(arena, &parts, around, NULL, around != NULL);
}

struct graph_call {
    struct cameo_model *model;
    struct cm_error err;
};

static enum cm_status gather_guarded(struct cm_guard *guard, void *arg)
{
    struct cameo_model *model = ((struct graph_call *)arg)->model;
    const struct cm_model_proto *proto = &model->file->model;
    struct cm_arena *arena = &model->arena;

    (void)guard;
    if (model->graphs)
        return CM_OK;
    struct cm_api_graphs *graphs = CM_NEW(arena, struct cm_api_graphs);
    graphs->main = build_graph(arena, proto->graph, NULL);
    graphs->functions = CM_NEW_ARRAY(arena, struct cameo_graph *, proto->functions.count);
    for (size_t i = 0; i < proto->functions.count; i++) {
        const struct cm_function_proto *from = &proto->functions.items[i];
        const struct parts parts = {from->name, &from->node, &from->value_info, NULL, from};
        graphs->functions[i] = build(arena, &parts, NULL, NULL, false);
    }
    const size_t entries = proto->training_info.count;
    graphs->initializations = CM_NEW_ARRAY(arena, struct cameo_graph *, entries);
    graphs->algorithms = CM_NEW_ARRAY(arena, struct cameo_graph *, entries);
    for (size_t i = 0; i < entries; i++) {
        const struct cm_training_proto *from = &proto->training_info.items[i];
        graphs->initializations[i] = build_graph(arena, from->initialization, graphs->main);
        graphs->algorithms[i] = build_graph(arena, from->algorithm, graphs->main);
    }
    model->graphs = graphs;
    return CM_OK;
}

static const struct cameo_graph *pick(const struct cameo_model *model, enum cameo_graph_kind kind,
                                      size_t index)
{
    const struct cm_api_graphs *graphs = model->graphs;

    switch (kind) {
    case CAMEO_GRAPH_MAIN:
        return index == 0 ? graphs->main : NULL;
    case CAMEO_GRAPH_FUNCTION:
        return index < model->summary.function_count ? graphs->functions[index] : NULL;
    case CAMEO_GRAPH_INITIALIZATION:
        return index < model->summary.training_count ? graphs->initializations[index] : NULL;
    case CAMEO_GRAPH_ALGORITHM:
        return index < model->summary.training_count ? graphs->algorithms[index] : NULL;
    }
    return NULL;
}

enum cameo_status cameo_model_graph(const struct cameo_model *model, enum cameo_graph_kind kind,
                                    size_t index, const struct cameo_graph **out,
                                    struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct graph_call call = {.model = (struct cameo_model *)(uintptr_t)model};
    enum cm_status status = cm_api_locked(model, gather_guarded, &call, &call.err);

    *out = status == CM_OK ? pick(model, kind, index) : NULL;
    if (status == CM_OK && !*out)
        status = cm_fail(&call.err, CM_NOT_FOUND, "the model has no graph %zu of kind %d", index,
                         (int)kind);
    return cm_api_done(status, &call.err, err);
}

/* ---- asking ---- */

struct cameo_text cameo_graph_name(const struct cameo_graph *graph)
{
    return graph->name;
}

const struct cameo_node *cameo_graph_owner(const struct cameo_graph *graph)
{
    return graph->owner;
}

size_t cameo_graph_node_count(const struct cameo_graph *graph)
{
    return graph->node_count;
}

const struct cameo_node *cameo_graph_node(const struct cameo_graph *graph, size_t index)
{
    return index < graph->node_count ? graph->nodes[index] : NULL;
}

const struct cameo_edge *cameo_graph_input(const struct cameo_graph *graph, size_t index)
{
    return index < graph->input_count ? graph->inputs[index] : NULL;
}

const struct cameo_edge *cameo_graph_output(const struct cameo_graph *graph, size_t index)
{
    return index < graph->output_count ? graph->outputs[index] : NULL;
}

size_t cameo_graph_edge_count(const struct cameo_graph *graph)
{
    return graph->edges.count;
}

const struct cameo_edge *cameo_graph_edge(const struct cameo_graph *graph, size_t index)
{
    return index < graph->edges.count ? &graph->edges.items[index]->edge : NULL;
}

const struct cameo_edge *cameo_graph_find_edge(const struct cameo_graph *graph, const char *name)
{
    const struct edge_row *row = name ? find_edge(graph, cm_str(name)) : NULL;
    return row ? &row->edge : NULL;
}

/* ---- tensors of attributes ---- */

struct tensor_call {
    const struct cameo_model *model;
    const struct cm_tensor_proto *proto;
    struct cm_datum made;
    struct cm_error err;
};

static enum cm_status load_guarded(struct cm_guard *guard, void *arg)
{
    struct tensor_call *call = arg;

    (void)guard;
    CM_TRY(cm_tensor_proto_load(call->proto, call->model->file->files, &call->made.tensor,
                                &call->err));
    call->made.kind = CM_KIND_TENSOR;
    return cm_api_own(&call->made, &call->err);
}

enum cameo_status cameo_attribute_tensor(const struct cameo_model *model,
                                         const struct cameo_node_attribute *attribute, size_t index,
                                         struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(attribute, err);
    CM_API_NEED(out, err);
    const struct cm_attribute_proto *from = ((const struct attribute_row *)attribute)->proto;
    struct tensor_call call = {.model = model};
    enum cm_status status;

    *out = NULL;
    if (index >= attribute->tensor_count)
        return cm_api_done(cm_fail(&call.err, CM_NOT_FOUND, "attribute '%.200s' has %zu tensors",
                                   attribute->name.data, attribute->tensor_count),
                           &call.err, err);
    call.proto = from->t && index == 0 ? from->t : &from->tensors.items[index - (from->t != NULL)];
    status = cm_api_locked(model, load_guarded, &call, &call.err);
    if (status == CM_OK)
        status = cm_api_take(&call.made, out, &call.err);
    cm_datum_drop(&call.made);
    return cm_api_done(status, &call.err, err);
}
