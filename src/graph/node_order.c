/* Sorting the nodes of a file. Nearly every graph is in order, so that is found out first, with one
 * table of results; only where it is not are the edges of the graph written down and sorted. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_order.h"

#include "base/array.h"
#include "graph/import_context.h"
#include "onnx/defined_names.h"

/* Names that a body defines itself: they are not read from around it. */
struct hidden_names {
    struct cm_map names;
    const struct hidden_names *outer;
};

struct walk {
    struct cm_arena *scratch; /* for hidden names; NULL: they are not looked at */
    cm_read_name_fn *read;
    void *arg;
};

const char *const *cm_naming_attributes(struct cm_str domain, struct cm_str op_type)
{
    static const struct {
        const char *domain, *op_type;
        const char *attributes[4];
    } naming[] = {{"ai.onnx.preview.training", "Gradient", {"y", "xs", "zs", NULL}}};

    for (size_t i = 0; i < CM_COUNT(naming); i++)
        if (cm_str_is(domain, naming[i].domain) && cm_str_is(op_type, naming[i].op_type))
            return naming[i].attributes;
    return NULL;
}

bool cm_is_graph_call(const struct cm_node_proto *node)
{
    return cm_str_is(node->op_type, "GraphCall") &&
           cm_str_is(node->domain, "ai.onnx.preview.training");
}

bool cm_has_graph_call(const struct cm_graph_proto *graph)
{
    for (size_t i = 0; graph && i < graph->node.count; i++)
        if (cm_is_graph_call(&graph->node.items[i]))
            return true;
    return false;
}

/* ---- what a node reads ---- */

static bool is_hidden(const struct hidden_names *hidden, struct cm_str name)
{
    for (; hidden; hidden = hidden->outer)
        if (cm_map_find(&hidden->names, name))
            return true;
    return false;
}

static bool read_name(const struct walk *walk, const struct hidden_names *hidden,
                      struct cm_str name)
{
    return !name.size || is_hidden(hidden, name) || walk->read(walk->arg, name);
}

static bool read_named(const struct walk *walk, const struct hidden_names *hidden,
                       const struct cm_node_proto *node, const struct cm_attribute_proto *attr)
{
    const char *const *names = cm_naming_attributes(node->domain, node->op_type);
    bool listed = false;
    for (; names && *names; names++)
        listed = listed || cm_str_is(attr->name, *names);
    if (!listed)
        return true;
    if (attr->type == CM_ATTR_STRING && !read_name(walk, hidden, attr->s))
        return false;
    for (size_t i = 0; i < attr->strings.count; i++)
        if (!read_name(walk, hidden, attr->strings.items[i]))
            return false;
    return true;
}

static bool read_node(const struct walk *walk, const struct hidden_names *hidden,
                      const struct cm_node_proto *node, int depth);

static bool read_body(const struct walk *walk, const struct hidden_names *outer,
                      const struct cm_graph_proto *body, int depth)
{
    struct hidden_names hidden = {.outer = outer};
    if (depth >= CM_NESTING_MAX)
        return true; /* the import refuses it */
    if (walk->scratch)
        hidden.names = cm_graph_defined(walk->scratch, body);
    const struct hidden_names *inside = walk->scratch ? &hidden : NULL;
    for (size_t i = 0; i < body->node.count; i++)
        if (!read_node(walk, inside, &body->node.items[i], depth))
            return false;
    for (size_t i = 0; i < body->output.count; i++)
        if (!read_name(walk, inside, body->output.items[i].name))
            return false;
    return true;
}

static bool read_node(const struct walk *walk, const struct hidden_names *hidden,
                      const struct cm_node_proto *node, int depth)
{
    for (size_t i = 0; i < node->input.count; i++)
        if (!read_name(walk, hidden, node->input.items[i]))
            return false;
    for (size_t a = 0; a < node->attribute.count; a++) {
        const struct cm_attribute_proto *attr = &node->attribute.items[a];
        if (!read_named(walk, hidden, node, attr) ||
            (attr->g && !read_body(walk, hidden, attr->g, depth + 1)))
            return false;
    }
    return true;
}

void cm_node_each_read(struct cm_arena *scratch, const struct cm_node_proto *node,
                       cm_read_name_fn *read, void *arg)
{
    const struct walk walk = {scratch, read, arg};

    read_node(&walk, NULL, node, 0);
}

/* ---- is it in order? ---- */

struct position {
    const struct cm_map *makers;
    size_t index;       /* of the node that reads */
    struct cm_str name; /* what it reads of a node that is not before it */
};

static bool is_before(void *arg, struct cm_str name)
{
    struct position *at = arg;
    const uint64_t *maker = cm_map_find(at->makers, name);
    if (!maker || *maker < at->index)
        return true;
    at->name = name;
    return false;
}

/* Does the node read a name that a later node makes? Without scratch, names that its bodies define
 * themselves may be taken for such. */
static bool reads_later(struct cm_arena *scratch, const struct cm_map *makers,
                        const struct cm_nodes *nodes, size_t index, struct cm_str *name)
{
    struct position at = {.makers = makers, .index = index};
    const struct walk walk = {scratch, is_before, &at};
    const bool later = !read_node(&walk, NULL, &nodes->items[index], 0);
    *name = at.name;
    return later;
}

/* ---- sorting ---- */

struct edges {
    struct cm_arena *arena;
    const struct cm_map *makers;
    CM_ARRAY(size_t); /* nodes that are read, those of one reader together */
};

static bool add_edge(void *arg, struct cm_str name)
{
    struct edges *edges = arg;
    const uint64_t *maker = cm_map_find(edges->makers, name);
    if (maker)
        *CM_PUSH(edges->arena, edges) = (size_t)*maker;
    return true;
}

enum { NODE_NEW = 0, NODE_OPEN, NODE_DONE, NAMED_IN_CIRCLE = 6 };

struct sorting {
    const struct cm_nodes *nodes;
    size_t *first; /* of each node, its edges; one more at the end */
    size_t *next;  /* of each node that is open, the edge to follow */
    size_t *stack; /* open nodes, each read by the one below it */
    size_t depth;
    unsigned char *state;
    const size_t *edges;
    size_t *order;
    size_t n_ordered;
};

static enum cm_status refuse_circle(const struct sorting *s, size_t node, struct cm_arena *arena,
                                    struct cm_error *err)
{
    struct cm_str names = CM_STR("");
    size_t from = s->depth;
    while (s->stack[from - 1] != node)
        from--;
    const size_t count = s->depth - (from - 1);
    for (size_t i = 0; i < count && i < NAMED_IN_CIRCLE; i++)
        names = cm_arena_printf(
            arena, "%s%s%s", cm_str_text(names), i ? ", " : "",
            cm_import_name_node(arena, &s->nodes->items[s->stack[from - 1 + i]]).data);
    if (count == 1)
        return cm_fail(err, CM_BAD_MODEL, "%s reads its own result", cm_str_text(names));
    return cm_fail(err, CM_BAD_MODEL, "%zu nodes read each other's results in a circle: %s%s",
                   count, cm_str_text(names), count > NAMED_IN_CIRCLE ? ", .." : "");
}

static void open_node(struct sorting *s, size_t node)
{
    s->state[node] = NODE_OPEN;
    s->next[node] = s->first[node];
    s->stack[s->depth++] = node;
}

/* Puts down a node, and before it what it reads; the stack holds what waits. */
static enum cm_status put_down(struct sorting *s, size_t node, struct cm_arena *arena,
                               struct cm_error *err)
{
    open_node(s, node);
    while (s->depth) {
        const size_t top = s->stack[s->depth - 1];
        if (s->next[top] == s->first[top + 1]) {
            s->state[top] = NODE_DONE;
            s->order[s->n_ordered++] = top;
            s->depth--;
            continue;
        }
        const size_t read = s->edges[s->next[top]++];
        if (s->state[read] == NODE_OPEN)
            return refuse_circle(s, read, arena, err);
        if (s->state[read] == NODE_NEW)
            open_node(s, read);
    }
    return CM_OK;
}

static enum cm_status sort(struct cm_arena *arena, struct cm_arena *scratch,
                           const struct cm_map *makers, const struct cm_nodes *nodes,
                           const size_t **out, struct cm_error *err)
{
    struct edges edges = {.arena = scratch, .makers = makers};
    const struct walk walk = {scratch, add_edge, &edges};
    struct sorting s = {.nodes = nodes,
                        .first = CM_NEW_ARRAY(scratch, size_t, nodes->count + 1),
                        .next = CM_NEW_ARRAY(scratch, size_t, nodes->count),
                        .stack = CM_NEW_ARRAY(scratch, size_t, nodes->count),
                        .state = CM_NEW_ARRAY(scratch, unsigned char, nodes->count),
                        .order = CM_NEW_ARRAY(arena, size_t, nodes->count)};
    for (size_t i = 0; i < nodes->count; i++) {
        read_node(&walk, NULL, &nodes->items[i], 0);
        s.first[i + 1] = edges.count;
    }
    s.edges = edges.items;
    for (size_t i = 0; i < nodes->count; i++)
        if (s.state[i] == NODE_NEW)
            CM_TRY(put_down(&s, i, scratch, err));
    *out = s.order;
    return CM_OK;
}

enum cm_status cm_node_order(struct cm_arena *arena, struct cm_arena *scratch,
                             const struct cm_nodes *nodes, struct cm_node_order *out,
                             struct cm_error *err)
{
    struct cm_map makers = {0};
    struct cm_str name;
    bool added;

    *out = (struct cm_node_order){0};
    for (size_t i = 0; i < nodes->count; i++) {
        for (size_t o = 0; o < nodes->items[i].output.count; o++) {
            if (!nodes->items[i].output.items[o].size)
                continue;
            uint64_t *maker =
                cm_map_insert(&makers, scratch, nodes->items[i].output.items[o], &added);
            if (added) /* a name that is made twice is refused later */
                *maker = i;
        }
    }
    for (size_t i = 0; i < nodes->count; i++) {
        if (!reads_later(NULL, &makers, nodes, i, &name) ||
            !reads_later(scratch, &makers, nodes, i, &name))
            continue;
        out->reader = &nodes->items[i];
        out->name = name;
        return sort(arena, scratch, &makers, nodes, &out->items, err);
    }
    return CM_OK;
}

struct cm_nodes cm_nodes_sorted(struct cm_arena *arena, const struct cm_nodes *nodes)
{
    struct cm_node_order order;
    if (cm_node_order(arena, arena, nodes, &order, NULL) || !order.items)
        return *nodes;
    struct cm_nodes sorted = {CM_NEW_ARRAY(arena, struct cm_node_proto, nodes->count),
                              nodes->count};
    for (size_t i = 0; i < nodes->count; i++)
        sorted.items[i] = nodes->items[order.items[i]];
    return sorted;
}
