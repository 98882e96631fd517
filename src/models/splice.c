/* Copying the nodes of a function under new names. */
// SPDX-License-Identifier: Apache-2.0
#include "models/splice.h"

#include "graph/node_order.h"
#include "onnx/defined_names.h"

enum { DEPTH_MAX = 64 }; /* of graphs inside each other */

/* ---- names that are taken ---- */

static void take(struct cm_splicer *s, struct cm_map *map, struct cm_str name)
{
    if (name.size)
        cm_map_insert(map, s->arena, name, NULL);
}

static void take_value(void *s, struct cm_str name)
{
    take(s, &((struct cm_splicer *)s)->values, name);
}

static void take_graph(struct cm_splicer *s, const struct cm_graph_proto *graph);

static void take_nodes(struct cm_splicer *s, const struct cm_nodes *nodes)
{
    const struct cm_graph_proto *body;

    for (size_t n = 0; n < nodes->count; n++) {
        take(s, &s->nodes, nodes->items[n].name);
        for (size_t o = 0; o < nodes->items[n].output.count; o++)
            take_value(s, nodes->items[n].output.items[o]);
        for (size_t b = 0; (body = cm_node_subgraph(&nodes->items[n], b)); b++)
            take_graph(s, body);
    }
}

static void take_graph(struct cm_splicer *s, const struct cm_graph_proto *graph)
{
    cm_graph_each_defined(graph, take_value, s);
    for (size_t i = 0; i < graph->output.count; i++)
        take_value(s, graph->output.items[i].name);
    take_nodes(s, &graph->node);
}

void cm_splice_take_model(struct cm_splicer *s, const struct cm_model_proto *model)
{
    const struct cm_graph_proto *graph;

    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        take_graph(s, graph);
    for (size_t i = 0; i < model->functions.count; i++) {
        for (size_t k = 0; k < model->functions.items[i].input.count; k++)
            take_value(s, model->functions.items[i].input.items[k]);
        take_nodes(s, &model->functions.items[i].node);
    }
}

/* "prefix/name", with a number behind it where that is taken. */
static struct cm_str free_name(struct cm_splicer *s, struct cm_map *map, struct cm_str prefix,
                               struct cm_str name)
{
    bool added;
    const struct cm_str wanted = cm_arena_printf(s->arena, "%.*s%s%.*s", CM_STR_FMT(prefix),
                                                 prefix.size ? "/" : "", CM_STR_FMT(name));
    uint64_t number = *cm_map_insert(map, s->arena, wanted, &added);

    if (added)
        return wanted;
    for (number = number ? number : 2;; number++) {
        const struct cm_str next =
            cm_arena_printf(s->arena, "%.*s_%llu", CM_STR_FMT(wanted), (unsigned long long)number);
        cm_map_insert(map, s->arena, next, &added);
        if (!added)
            continue;
        *cm_map_find(map, wanted) = number + 1;
        return next;
    }
}

/* ---- copying ---- */

/* What names of a body, or of a graph in it, are called outside. */
struct naming {
    struct cm_map names; /* to struct cm_str * */
    const struct naming *outer;
};

struct copying {
    struct cm_splicer *s;
    const struct cm_function_proto *function;
    const struct cm_node_proto *call;
    struct cm_str prefix;
    int depth;
    struct cm_error *err;
};

/* False, and nothing changes, where the name is there already. */
static bool define(struct copying *c, struct naming *naming, struct cm_str from, struct cm_str to)
{
    bool added;
    uint64_t *place = cm_map_insert(&naming->names, c->s->arena, from, &added);

    if (added) {
        struct cm_str *kept = CM_NEW(c->s->arena, struct cm_str);
        *kept = to;
        *place = (uint64_t)(uintptr_t)kept;
    }
    return added;
}

static void define_new(struct copying *c, struct naming *naming, struct cm_str from)
{
    if (from.size && !cm_map_find(&naming->names, from))
        define(c, naming, from, free_name(c->s, &c->s->values, c->prefix, from));
}

struct inside {
    struct copying *c;
    struct naming *naming;
};

static void define_inside(void *arg, struct cm_str name)
{
    const struct inside *inside = arg;

    define_new(inside->c, inside->naming, name);
}

static enum cm_status rename_one(const struct copying *c, const struct naming *naming,
                                 struct cm_str *name)
{
    if (!name->size)
        return CM_OK;
    for (; naming; naming = naming->outer) {
        const uint64_t *found = cm_map_find(&naming->names, *name);
        if (!found)
            continue;
        *name = *(const struct cm_str *)(uintptr_t)*found;
        return CM_OK;
    }
    return cm_fail(c->err, CM_BAD_MODEL, "function '%.*s' reads '%.*s', which it does not define",
                   CM_STR_FMT(c->function->name), CM_STR_FMT(*name));
}

static enum cm_status rename_list(const struct copying *c, const struct naming *naming,
                                  struct cm_strs *list)
{
    struct cm_str *names = CM_NEW_ARRAY(c->s->arena, struct cm_str, list->count);

    for (size_t i = 0; i < list->count; i++) {
        names[i] = list->items[i];
        CM_TRY(rename_one(c, naming, &names[i]));
    }
    list->items = names;
    return CM_OK;
}

/* The attribute that a reference stands for; NULL: none, and there is no default. */
static const struct cm_attribute_proto *resolve(const struct copying *c, struct cm_str name)
{
    const struct cm_attribute_proto *given = cm_node_attribute(c->call, name);

    if (given)
        return given;
    for (size_t i = 0; i < c->function->attribute_proto.count; i++)
        if (cm_str_equal(c->function->attribute_proto.items[i].name, name))
            return &c->function->attribute_proto.items[i];
    return NULL;
}

static enum cm_status copy_nodes(struct copying *c, const struct naming *naming,
                                 const struct cm_nodes *from, struct cm_node_proto *to);

static enum cm_status copy_infos(const struct copying *c, const struct naming *naming,
                                 struct cm_value_infos *infos)
{
    struct cm_value_info_proto *items =
        CM_NEW_ARRAY(c->s->arena, struct cm_value_info_proto, infos->count);

    for (size_t i = 0; i < infos->count; i++) {
        items[i] = infos->items[i];
        CM_TRY(rename_one(c, naming, &items[i].name));
        cm_msg_set(&items[i].msg, CM_VALUE_INFO_NAME);
    }
    infos->items = items;
    return CM_OK;
}

/* Initializers, dense and sparse, under their new names. */
static enum cm_status copy_initializers(const struct copying *c, const struct naming *naming,
                                        struct cm_graph_proto *graph)
{
    struct cm_arena *arena = c->s->arena;
    struct cm_tensor_proto *dense =
        CM_NEW_ARRAY(arena, struct cm_tensor_proto, graph->initializer.count);
    struct cm_sparse_proto *sparse =
        CM_NEW_ARRAY(arena, struct cm_sparse_proto, graph->sparse_initializer.count);

    for (size_t i = 0; i < graph->initializer.count; i++) {
        dense[i] = graph->initializer.items[i];
        CM_TRY(rename_one(c, naming, &dense[i].name));
        cm_msg_set(&dense[i].msg, CM_TENSOR_NAME);
    }
    for (size_t i = 0; i < graph->sparse_initializer.count; i++) {
        sparse[i] = graph->sparse_initializer.items[i];
        if (!sparse[i].values)
            continue;
        struct cm_tensor_proto *values = CM_NEW(arena, struct cm_tensor_proto);
        *values = *sparse[i].values;
        CM_TRY(rename_one(c, naming, &values->name));
        cm_msg_set(&values->msg, CM_TENSOR_NAME);
        sparse[i].values = values;
        cm_msg_set(&sparse[i].msg, CM_SPARSE_VALUES);
    }
    graph->initializer.items = dense;
    graph->sparse_initializer.items = sparse;
    return CM_OK;
}

static enum cm_status copy_graph(struct copying *c, const struct naming *outer,
                                 struct cm_graph_proto *graph)
{
    struct naming naming = {.outer = outer};

    if (c->depth >= DEPTH_MAX)
        return cm_fail(c->err, CM_LIMIT, "graphs nest deeper than %d", DEPTH_MAX);
    cm_graph_each_defined(graph, define_inside, &(struct inside){c, &naming});
    CM_TRY(copy_infos(c, &naming, &graph->input));
    CM_TRY(copy_infos(c, &naming, &graph->output));
    CM_TRY(copy_initializers(c, &naming, graph));
    struct cm_node_proto *nodes =
        CM_NEW_ARRAY(c->s->arena, struct cm_node_proto, graph->node.count);
    c->depth++;
    const enum cm_status status = copy_nodes(c, &naming, &graph->node, nodes);
    c->depth--;
    CM_TRY(status);
    graph->node.items = nodes;
    /* Hints about values that may be called otherwise now: nothing depends on them. */
    graph->value_info = (struct cm_value_infos){NULL, 0};
    graph->quantization_annotation.count = 0;
    static const int changed[] = {CM_GRAPH_INPUT, CM_GRAPH_OUTPUT, CM_GRAPH_INITIALIZER,
                                  CM_GRAPH_NODE, CM_GRAPH_SPARSE_INITIALIZER};
    for (size_t i = 0; i < CM_COUNT(changed); i++)
        if (cm_msg_has(&graph->msg, changed[i]))
            cm_msg_set(&graph->msg, changed[i]);
    cm_msg_clear(&graph->msg, CM_GRAPH_VALUE_INFO);
    cm_msg_clear(&graph->msg, CM_GRAPH_QUANTIZATION_ANNOTATION);
    return CM_OK;
}

static enum cm_status copy_graphs(struct copying *c, const struct naming *naming,
                                  struct cm_attribute_proto *attribute)
{
    struct cm_arena *arena = c->s->arena;

    if (attribute->g) {
        struct cm_graph_proto *graph = CM_NEW(arena, struct cm_graph_proto);
        *graph = *attribute->g;
        CM_TRY(copy_graph(c, naming, graph));
        attribute->g = graph;
        cm_msg_set(&attribute->msg, CM_ATTRIBUTE_G);
    }
    if (!attribute->graphs.count)
        return CM_OK;
    struct cm_graph_proto *graphs =
        CM_NEW_ARRAY(arena, struct cm_graph_proto, attribute->graphs.count);
    for (size_t i = 0; i < attribute->graphs.count; i++) {
        graphs[i] = attribute->graphs.items[i];
        CM_TRY(copy_graph(c, naming, &graphs[i]));
    }
    attribute->graphs.items = graphs;
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_GRAPHS);
    return CM_OK;
}

/* Attributes that name values, as those of Gradient do. */
static enum cm_status rename_named(const struct copying *c, const struct naming *naming,
                                   const struct cm_node_proto *node,
                                   struct cm_attribute_proto *attribute)
{
    const char *const *list = cm_naming_attributes(node->domain, node->op_type);

    for (; list && *list; list++) {
        if (!cm_str_is(attribute->name, *list))
            continue;
        if (attribute->s.size) {
            CM_TRY(rename_one(c, naming, &attribute->s));
            cm_msg_set(&attribute->msg, CM_ATTRIBUTE_S);
        }
        if (attribute->strings.count) {
            CM_TRY(rename_list(c, naming, &attribute->strings));
            cm_msg_set(&attribute->msg, CM_ATTRIBUTE_STRINGS);
        }
    }
    return CM_OK;
}

static enum cm_status copy_attributes(struct copying *c, const struct naming *naming,
                                      struct cm_node_proto *node)
{
    const size_t count = node->attribute.count;
    struct cm_attribute_proto *items = CM_NEW_ARRAY(c->s->arena, struct cm_attribute_proto, count);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct cm_attribute_proto *to = &items[kept];

        *to = node->attribute.items[i];
        if (to->ref_attr_name.size) { /* its value comes from outside, and so do its names */
            const struct cm_attribute_proto *given = resolve(c, to->ref_attr_name);
            const struct cm_str name = to->name;
            if (!given)
                continue;
            *to = *given;
            to->name = name;
            cm_msg_set(&to->msg, CM_ATTRIBUTE_NAME);
        } else {
            CM_TRY(copy_graphs(c, naming, to));
            CM_TRY(rename_named(c, naming, node, to));
        }
        kept++;
    }
    node->attribute.items = items;
    node->attribute.count = kept;
    if (count)
        cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
    return CM_OK;
}

static enum cm_status copy_nodes(struct copying *c, const struct naming *naming,
                                 const struct cm_nodes *from, struct cm_node_proto *to)
{
    for (size_t n = 0; n < from->count; n++) {
        struct cm_node_proto *node = &to[n];

        *node = from->items[n];
        CM_TRY(rename_list(c, naming, &node->input));
        CM_TRY(rename_list(c, naming, &node->output));
        if (node->input.count)
            cm_msg_set(&node->msg, CM_NODE_INPUT);
        if (node->output.count)
            cm_msg_set(&node->msg, CM_NODE_OUTPUT);
        if (node->name.size) {
            node->name = free_name(c->s, &c->s->nodes, c->prefix, node->name);
            cm_msg_set(&node->msg, CM_NODE_NAME);
        }
        CM_TRY(copy_attributes(c, naming, node));
    }
    return CM_OK;
}

/* ---- a call ---- */

static struct cm_str operand(const struct cm_strs *names, size_t i)
{
    return i < names->count ? names->items[i] : CM_STR_NONE;
}

static struct cm_str prefix_of(const struct cm_node_proto *call)
{
    if (call->name.size)
        return call->name;
    for (size_t o = 0; o < call->output.count; o++)
        if (call->output.items[o].size)
            return call->output.items[o];
    return call->op_type;
}

enum cm_status cm_splice(struct cm_splicer *s, const struct cm_function_proto *function,
                         const struct cm_node_proto *call, struct cm_node_list *out,
                         struct cm_error *err)
{
    struct copying c = {
        .s = s, .function = function, .call = call, .prefix = prefix_of(call), .err = err};
    struct naming naming = {.outer = NULL};
    const size_t n_outputs = function->output.count;
    bool *copied = CM_NEW_ARRAY(s->arena, bool, n_outputs);

    if (call->input.count > function->input.count || call->output.count > n_outputs)
        return cm_fail(err, CM_BAD_MODEL,
                       "the call has %zu inputs and %zu outputs, function '%.*s' %zu and %zu",
                       call->input.count, call->output.count, CM_STR_FMT(function->name),
                       function->input.count, n_outputs);
    for (size_t i = 0; i < function->input.count; i++)
        define(&c, &naming, function->input.items[i], operand(&call->input, i));
    /* What the function hands through, or gives twice, is copied behind its nodes. */
    for (size_t o = 0; o < n_outputs; o++) {
        const struct cm_str given = operand(&call->output, o);
        copied[o] = given.size && !define(&c, &naming, function->output.items[o], given);
    }
    for (size_t n = 0; n < function->node.count; n++)
        for (size_t o = 0; o < function->node.items[n].output.count; o++)
            define_new(&c, &naming, function->node.items[n].output.items[o]);
    struct cm_node_proto *nodes =
        CM_NEW_ARRAY(s->arena, struct cm_node_proto, function->node.count);
    CM_TRY(copy_nodes(&c, &naming, &function->node, nodes));
    for (size_t n = 0; n < function->node.count; n++)
        *CM_PUSH(s->arena, out) = nodes[n];
    for (size_t o = 0; o < n_outputs; o++) {
        struct cm_str from = function->output.items[o];
        if (!copied[o])
            continue;
        CM_TRY(rename_one(&c, &naming, &from));
        if (!from.size)
            return cm_fail(err, CM_BAD_MODEL, "function '%.*s' gives '%.*s', which the call omits",
                           CM_STR_FMT(function->name), CM_STR_FMT(function->output.items[o]));
        *CM_PUSH(s->arena, out) = cm_identity_proto(s->arena, from, call->output.items[o]);
    }
    return CM_OK;
}
