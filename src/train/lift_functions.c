/* Weights that functions of the model hold as constants. A function gets a further input for each,
 * every call hands it over, and the graph has it as an initializer: one, however often the function
 * is called, so that what was tied stays tied. */
// SPDX-License-Identifier: Apache-2.0
#include "train/preparation.h"

#include "graph/builder.h"
#include "graph/registry.h"

enum { DEPTH_MAX = 64 };

/* A function and what it takes beside what it took: names of initializers, and what they are called
 * inside. */
struct lifted {
    struct cm_function_proto *function;
    struct cm_map names;      /* inside it */
    struct cm_map statistics; /* running ones, that its nodes read */
    struct {
        struct cm_str *items;
        size_t count, capacity;
    } outside, inside;
    size_t n_inputs;     /* before */
    struct lifted *next; /* of the same name, in another domain or overload */
    enum { NOT_SEEN, UNDER_WAY, DONE } state;
};

struct lifting {
    struct cm_preparation *p;
    struct lifted *items;
    struct cm_map by_name; /* to struct lifted *, the first of the name */
    int calls;             /* that led to the function at hand */
};

/* ---- what there is ---- */

static void take_names(struct lifting *l, struct cm_map *names, const struct cm_nodes *nodes,
                       int depth)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const struct cm_graph_proto *body;

        for (size_t o = 0; o < node->output.count; o++)
            cm_map_insert(names, l->p->arena, node->output.items[o], NULL);
        for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++) {
            for (size_t k = 0; k < body->input.count; k++)
                cm_map_insert(names, l->p->arena, body->input.items[k].name, NULL);
            for (size_t k = 0; k < body->initializer.count; k++)
                cm_map_insert(names, l->p->arena, body->initializer.items[k].name, NULL);
            take_names(l, names, &body->node, depth + 1);
        }
    }
}

/* Training updates them, whatever else is chosen. */
static void take_statistics(struct lifting *l, struct lifted *in)
{
    for (size_t i = 0; i < in->function->node.count; i++) {
        const struct cm_node_proto *node = &in->function->node.items[i];

        for (size_t s = 0; s < node->input.count; s++)
            if (cm_node_reads_statistic(node, s))
                cm_map_insert(&in->statistics, l->p->arena, node->input.items[s], NULL);
    }
}

static struct cm_str domain_of(struct cm_str domain)
{
    return cm_str_is(domain, "ai.onnx") ? CM_STR_NONE : domain;
}

static struct lifted *called(struct lifting *l, const struct cm_node_proto *node)
{
    struct lifted *at = (struct lifted *)(uintptr_t)cm_map_get(&l->by_name, node->op_type, 0);

    while (at && !(cm_str_equal(at->function->overload, node->overload) &&
                   cm_str_equal(domain_of(at->function->domain), domain_of(node->domain))))
        at = at->next;
    return at;
}

/* ---- giving it inputs ---- */

static void append(struct cm_arena *arena, struct cm_strs *list, struct cm_str name)
{
    *CM_LIST_ADD(arena, list) = name;
}

static void add_input(struct lifting *l, struct lifted *in, struct cm_str outside,
                      struct cm_str inside)
{
    struct cm_arena *arena = l->p->arena;

    *CM_PUSH(arena, &in->outside) = outside;
    *CM_PUSH(arena, &in->inside) = inside;
    append(arena, &in->function->input, inside);
    cm_msg_set(&in->function->msg, CM_FUNCTION_INPUT);
}

/* A further input for the initializer called outside; its name inside. */
static struct cm_str new_input(struct lifting *l, struct lifted *in, struct cm_str outside)
{
    struct cm_arena *arena = l->p->arena;
    struct cm_str name = outside;
    bool added;

    for (size_t i = 0; i < in->outside.count; i++)
        if (cm_str_equal(in->outside.items[i], outside))
            return in->inside.items[i];
    cm_map_insert(&in->names, arena, name, &added);
    for (size_t n = 1; !added; n++) {
        name = cm_arena_printf(arena, "%.*s_%zu", CM_STR_FMT(outside), n);
        cm_map_insert(&in->names, arena, name, &added);
    }
    add_input(l, in, outside, name);
    return name;
}

/* What a weight would be called outside. */
static struct cm_str outside_name(struct lifting *l, const struct lifted *in, struct cm_str name)
{
    return cm_preparation_name(l->p, "%.*s.%.*s", CM_STR_FMT(in->function->name), CM_STR_FMT(name));
}

/* Do the patterns let it be trained? Whether a gradient reaches it is seen only when it is out. */
static bool is_chosen(struct lifting *l, struct cm_str outside)
{
    struct cm_preparation *p = l->p;
    const bool frozen = cm_preparation_matches(p, p->freeze, outside);

    p->left_frozen += frozen;
    return !frozen && (!p->train || cm_preparation_matches(p, p->train, outside));
}

static void add_initializer(struct lifting *l, const struct cm_function_proto *function,
                            const struct cm_tensor_proto *from, struct cm_str outside)
{
    struct cm_preparation *p = l->p;
    struct cm_graph_proto *graph = p->model->graph;
    struct cm_tensor_proto *tensor = CM_LIST_ADD(p->arena, &graph->initializer);

    *tensor = *from;
    tensor->name = outside;
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    cm_preparation_note(p, "'%.*s', held in the function '%.*s', is now an initializer",
                        CM_STR_FMT(outside), CM_STR_FMT(function->name));
}

/* ---- walking ---- */

static void lift_function(struct lifting *l, struct lifted *in, int calls);
static void walk_nodes(struct lifting *l, struct lifted *in, struct cm_nodes *nodes, int depth);

static bool is_result(const struct cm_function_proto *function, struct cm_str name)
{
    for (size_t i = 0; i < function->output.count; i++)
        if (cm_str_equal(function->output.items[i], name))
            return true;
    return false;
}

/* If it is chosen: a constant of the function itself becomes an input of its name, and its node is
 * marked to go; one in a body, or one that is a result too, becomes a copy of a new input. */
static void replace_constant(struct lifting *l, struct lifted *in, struct cm_node_proto *node,
                             const struct cm_tensor_proto *tensor, int depth)
{
    struct cm_arena *arena = l->p->arena;
    const struct cm_str name = node->output.items[0];
    const struct cm_str outside = outside_name(l, in, name);

    if (!is_chosen(l, outside) && !(depth == 0 && cm_map_find(&in->statistics, name)))
        return;
    add_initializer(l, in->function, tensor, outside);
    if (depth == 0 && !is_result(in->function, name)) {
        add_input(l, in, outside, name);
        node->output.count = 0;
        return;
    }
    const struct cm_str inside = new_input(l, in, outside);
    node->op_type = cm_arena_str(arena, CM_STR("Identity"));
    node->attribute.items = NULL;
    node->attribute.count = 0;
    node->input = (struct cm_strs){0};
    append(arena, &node->input, inside);
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node->msg, CM_NODE_INPUT);
    cm_msg_clear(&node->msg, CM_NODE_ATTRIBUTE);
}

/* in NULL: the main graph. */
static void extend_call(struct lifting *l, struct lifted *in, struct cm_node_proto *node,
                        struct lifted *callee)
{
    struct cm_arena *arena = l->p->arena;

    if (!callee->outside.count)
        return;
    while (node->input.count < callee->n_inputs)
        append(arena, &node->input, CM_STR_NONE);
    for (size_t i = 0; i < callee->outside.count; i++)
        append(arena, &node->input,
               in ? new_input(l, in, callee->outside.items[i]) : callee->outside.items[i]);
    cm_msg_set(&node->msg, CM_NODE_INPUT);
}

static void walk_node(struct lifting *l, struct lifted *in, struct cm_node_proto *node, int depth)
{
    struct cm_graph_proto *body;
    struct lifted *callee = called(l, node);
    const struct cm_tensor_proto *tensor = in ? cm_node_constant(l->p->arena, node) : NULL;

    if (cm_tensor_may_be_weight(tensor))
        replace_constant(l, in, node, tensor, depth);
    for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++) {
        for (size_t i = 0; in && i < body->initializer.count; i++)
            if (cm_tensor_may_be_weight(&body->initializer.items[i]) &&
                is_chosen(l, outside_name(l, in, body->initializer.items[i].name)))
                cm_preparation_block(
                    l->p,
                    "'%.*s' is a weight inside a body of control flow of the function "
                    "'%.*s', from where it cannot be lifted out",
                    CM_STR_FMT(body->initializer.items[i].name), CM_STR_FMT(in->function->name));
        walk_nodes(l, in, &body->node, depth + 1);
    }
    if (callee && l->calls < DEPTH_MAX) {
        const int calls = l->calls;

        lift_function(l, callee, calls + 1);
        l->calls = calls;
        extend_call(l, in, node, callee);
    }
}

static void walk_nodes(struct lifting *l, struct lifted *in, struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count; i++)
        walk_node(l, in, &nodes->items[i], depth);
}

static void drop_marked(struct cm_arena *arena, struct cm_function_proto *function)
{
    struct cm_node_proto *nodes = CM_NEW_ARRAY(arena, struct cm_node_proto, function->node.count);
    size_t kept = 0;

    for (size_t i = 0; i < function->node.count; i++)
        if (function->node.items[i].output.count ||
            !cm_builtin_op(&function->node.items[i])->is_constant)
            nodes[kept++] = function->node.items[i];
    if (kept == function->node.count)
        return;
    function->node.items = nodes;
    function->node.count = kept;
    cm_msg_set(&function->msg, CM_FUNCTION_NODE);
}

/* Functions that call themselves are refused when they are imported. calls: how many led here. */
static void lift_function(struct lifting *l, struct lifted *in, int calls)
{
    if (in->state != NOT_SEEN)
        return;
    in->state = UNDER_WAY;
    in->n_inputs = in->function->input.count;
    for (size_t i = 0; i < in->function->input.count; i++)
        cm_map_insert(&in->names, l->p->arena, in->function->input.items[i], NULL);
    take_names(l, &in->names, &in->function->node, 0);
    take_statistics(l, in);
    l->calls = calls;
    walk_nodes(l, in, &in->function->node, 0);
    drop_marked(l->p->arena, in->function);
    in->state = DONE;
}

void cm_lift_functions(struct cm_preparation *p)
{
    struct cm_model_proto *model = p->model;
    struct lifting l = {.p = p};

    if (!model->functions.count)
        return;
    cm_preparation_take_names(p);
    l.items = CM_NEW_ARRAY(p->arena, struct lifted, model->functions.count);
    for (size_t i = 0; i < model->functions.count; i++) {
        struct lifted *one = &l.items[i];
        bool added;

        one->function = &model->functions.items[i];
        uint64_t *first = cm_map_insert(&l.by_name, p->arena, one->function->name, &added);
        one->next = added ? NULL : (struct lifted *)(uintptr_t)*first;
        *first = (uint64_t)(uintptr_t)one;
    }
    walk_nodes(&l, NULL, &model->graph->node, 0);
}
