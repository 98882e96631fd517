/* Nodes and edges of a model, as the caller sees its outline. Made when somebody first asks. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "onnx/model_outline.h"
#include "onnx/tensor_data.h"
#include "onnx/type_text.h"

struct attribute_row {
    struct cameo_node_attribute attribute;
    const struct cm_attribute_proto *proto;
};

struct cameo_graph {
    const struct cm_outline *outline;
    struct cameo_text name;
    struct cameo_node *nodes; /* as many as the outline has, and so with edges */
    struct cameo_edge *edges;
    const struct cameo_node *owner;
};

struct translation {
    struct cm_arena *arena;
    struct cameo_graph *graphs; /* by the numbers of their outlines */
};

/* ---- finding ---- */

static const struct cameo_node *node_of(const struct translation *t,
                                        const struct cm_outline_node *node)
{
    return node ? &t->graphs[node->graph->number].nodes[node->index] : NULL;
}

static const struct cameo_edge *edge_of(const struct translation *t,
                                        const struct cm_outline_value *value)
{
    return value ? &t->graphs[value->graph->number].edges[value->index] : NULL;
}

/* ---- edges ---- */

static void translate_edge(struct translation *t, const struct cm_outline_value *from,
                           struct cameo_edge *out)
{
    const size_t readers = from->readers.count;
    const struct cameo_node **nodes = CM_NEW_ARRAY(t->arena, const struct cameo_node *, readers);
    size_t *inputs = CM_NEW_ARRAY(t->arena, size_t, readers);

    for (size_t i = 0; i < readers; i++) {
        nodes[i] = node_of(t, from->readers.items[i].node);
        inputs[i] = from->readers.items[i].input;
    }
    *out = (struct cameo_edge){
        .name = cm_api_text(t->arena, from->name),
        .origin = (enum cameo_edge_origin)from->origin,
        .maker = node_of(t, from->maker),
        .maker_output = from->maker_output,
        .reader_count = readers,
        .readers = nodes,
        .reader_inputs = inputs,
        .is_output = from->is_output,
        .outer = edge_of(t, from->outer),
    };
    if (!from->info)
        return;
    struct cameo_value_info *info = CM_NEW(t->arena, struct cameo_value_info);
    cm_describe_value(t->arena, from->info, info);
    out->info = info;
}

/* ---- nodes ---- */

static struct cameo_text *texts_of(struct cm_arena *arena, const struct cm_strs *from)
{
    struct cameo_text *texts = CM_NEW_ARRAY(arena, struct cameo_text, from->count);

    for (size_t i = 0; i < from->count; i++)
        texts[i] = cm_api_text(arena, from->items[i]);
    return texts;
}

static void describe_types(struct cm_arena *arena, const struct cm_attribute_proto *from,
                           struct cameo_node_attribute *out)
{
    const size_t single = from->tp != NULL, count = single + from->type_protos.count;
    struct cameo_text *types = CM_NEW_ARRAY(arena, struct cameo_text, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_str text = cm_type_text(
            arena, single && i == 0 ? from->tp : &from->type_protos.items[i - single], ",");
        types[i] = (struct cameo_text){text.data, text.size};
    }
    out->types = types;
    out->type_count = count;
}

static const struct cameo_node_attribute *describe_attribute(struct translation *t,
                                                             const struct cm_attribute_proto *from,
                                                             const struct cm_outline_bodies *bodies)
{
    struct cm_arena *arena = t->arena;
    struct attribute_row *row = CM_NEW(arena, struct attribute_row);
    struct cameo_node_attribute *out = &row->attribute;
    const struct cameo_graph **graphs =
        CM_NEW_ARRAY(arena, const struct cameo_graph *, bodies->count);

    for (size_t i = 0; i < bodies->count; i++)
        graphs[i] = &t->graphs[bodies->items[i]->number];
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
    out->graphs = graphs;
    out->graph_count = bodies->count;
    describe_types(arena, from, out);
    return out;
}

static void translate_node(struct translation *t, const struct cm_outline_node *of,
                           struct cameo_node *out)
{
    const struct cm_node_proto *from = of->proto;
    struct cm_arena *arena = t->arena;
    const struct cameo_node_attribute **attributes =
        CM_NEW_ARRAY(arena, const struct cameo_node_attribute *, from->attribute.count);

    for (size_t i = 0; i < from->attribute.count; i++)
        attributes[i] = describe_attribute(t, &from->attribute.items[i], &of->bodies[i]);
    *out = (struct cameo_node){
        .graph = &t->graphs[of->graph->number],
        .index = of->index,
        .name = cm_api_text(arena, from->name),
        .domain = cm_api_text(arena, from->domain),
        .op_type = cm_api_text(arena, from->op_type),
        .overload = cm_api_text(arena, from->overload),
        .doc_string = cm_api_text(arena, from->doc_string),
        .input_count = from->input.count,
        .output_count = from->output.count,
        .attribute_count = from->attribute.count,
        .inputs = texts_of(arena, &from->input),
        .outputs = texts_of(arena, &from->output),
        .attributes = attributes,
    };
}

/* ---- graphs ---- */

static struct cameo_graph *graph_of(const struct translation *t, const struct cm_outline *outline)
{
    return outline ? &t->graphs[outline->number] : NULL;
}

static struct cameo_graph **graphs_of(const struct translation *t, struct cm_outline *const *from,
                                      size_t count)
{
    struct cameo_graph **graphs = CM_NEW_ARRAY(t->arena, struct cameo_graph *, count);

    for (size_t i = 0; i < count; i++)
        graphs[i] = graph_of(t, from[i]);
    return graphs;
}

/* Nodes and edges refer to those of other graphs, so all have their places first. */
static struct translation translate(struct cm_arena *arena, const struct cm_outlines *outlines)
{
    struct translation t = {arena, CM_NEW_ARRAY(arena, struct cameo_graph, outlines->all.count)};

    for (size_t g = 0; g < outlines->all.count; g++) {
        const struct cm_outline *from = outlines->all.items[g];
        struct cameo_graph *graph = &t.graphs[g];

        graph->outline = from;
        graph->name = cm_api_text(arena, from->name);
        graph->nodes = CM_NEW_ARRAY(arena, struct cameo_node, from->node_count);
        graph->edges = CM_NEW_ARRAY(arena, struct cameo_edge, from->values.count);
    }
    for (size_t g = 0; g < outlines->all.count; g++) {
        const struct cm_outline *from = outlines->all.items[g];

        t.graphs[g].owner = node_of(&t, from->owner);
        for (size_t i = 0; i < from->node_count; i++)
            translate_node(&t, &from->nodes[i], &t.graphs[g].nodes[i]);
        for (size_t i = 0; i < from->values.count; i++)
            translate_edge(&t, from->values.items[i], &t.graphs[g].edges[i]);
    }
    return t;
}

static void gather(struct cameo_model *model)
{
    const struct cm_model_proto *proto = &model->file->model;
    struct cm_arena *arena = &model->arena;
    const size_t entries = proto->training_info.count;

    if (model->graphs)
        return;
    const struct cm_outlines *outlines = cm_outlines_new(arena, proto);
    const struct translation t = translate(arena, outlines);
    struct cm_api_graphs *graphs = CM_NEW(arena, struct cm_api_graphs);
    graphs->main = graph_of(&t, outlines->main);
    graphs->functions = graphs_of(&t, outlines->functions, proto->functions.count);
    graphs->initializations = graphs_of(&t, outlines->initializations, entries);
    graphs->algorithms = graphs_of(&t, outlines->algorithms, entries);
    model->graphs = graphs;
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

struct graph_call {
    struct cameo_model *model;
    enum cameo_graph_kind kind;
    size_t index;
    const struct cameo_graph **out;
};

static enum cm_status find_graph(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct graph_call *call = arg;

    (void)scratch;
    gather(call->model);
    *call->out = pick(call->model, call->kind, call->index);
    if (!*call->out)
        return cm_fail(err, CM_NOT_FOUND, "the model has no graph %zu of kind %d", call->index,
                       (int)call->kind);
    return CM_OK;
}

enum cameo_status cameo_model_graph(const struct cameo_model *model, enum cameo_graph_kind kind,
                                    size_t index, const struct cameo_graph **out,
                                    struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct graph_call call = {(struct cameo_model *)(uintptr_t)model, kind, index, out};

    *out = NULL;
    return cm_api_call(model, find_graph, &call, err);
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
    return graph->outline->node_count;
}

const struct cameo_node *cameo_graph_node(const struct cameo_graph *graph, size_t index)
{
    return index < graph->outline->node_count ? &graph->nodes[index] : NULL;
}

const struct cameo_edge *cameo_graph_input(const struct cameo_graph *graph, size_t index)
{
    const struct cm_outline *outline = graph->outline;
    return index < outline->input_count ? &graph->edges[outline->inputs[index]->index] : NULL;
}

const struct cameo_edge *cameo_graph_output(const struct cameo_graph *graph, size_t index)
{
    const struct cm_outline *outline = graph->outline;
    return index < outline->output_count ? &graph->edges[outline->outputs[index]->index] : NULL;
}

size_t cameo_graph_edge_count(const struct cameo_graph *graph)
{
    return graph->outline->values.count;
}

const struct cameo_edge *cameo_graph_edge(const struct cameo_graph *graph, size_t index)
{
    return index < graph->outline->values.count ? &graph->edges[index] : NULL;
}

const struct cameo_edge *cameo_graph_find_edge(const struct cameo_graph *graph, const char *name)
{
    const struct cm_outline_value *value =
        name ? cm_outline_find(graph->outline, cm_str(name)) : NULL;
    return value ? &graph->edges[value->index] : NULL;
}

/* ---- tensors of attributes ---- */

struct tensor_call {
    const struct cameo_model *model;
    const struct cameo_node_attribute *attribute;
    size_t index;
    struct cameo_value **out;
};

static enum cm_status load_tensor(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct tensor_call *call = arg;
    const struct cm_attribute_proto *from = ((const struct attribute_row *)call->attribute)->proto;
    struct cm_datum made = {.kind = CM_KIND_TENSOR};

    (void)scratch;
    if (call->index >= call->attribute->tensor_count)
        return cm_fail(err, CM_NOT_FOUND, "attribute '%.200s' has %zu tensors",
                       call->attribute->name.data, call->attribute->tensor_count);
    CM_TRY(cm_tensor_proto_load(from->t && call->index == 0
                                    ? from->t
                                    : &from->tensors.items[call->index - (from->t != NULL)],
                                call->model->file->files, &made.tensor, err));
    enum cm_status status = cm_api_own(&made, err);
    if (status == CM_OK)
        status = cm_api_take(&made, call->out, err);
    cm_datum_drop(&made);
    return status;
}

enum cameo_status cameo_attribute_tensor(const struct cameo_model *model,
                                         const struct cameo_node_attribute *attribute, size_t index,
                                         struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(attribute, err);
    CM_API_NEED(out, err);
    struct tensor_call call = {model, attribute, index, out};

    *out = NULL;
    return cm_api_call(model, load_tensor, &call, err);
}
