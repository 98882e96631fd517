/* Nodes and values of a graph as vertices and edges of a panel. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_panel.h"

#include <stdlib.h>
#include <string.h>

static struct graph_panel *panel_of(const struct graph_builder *b)
{
    return &b->drawing->panels[b->panel];
}

size_t graph_add_panel(struct graph_drawing *drawing, const char *title)
{
    drawing->panels = graph_grow(drawing->panels, drawing->panel_count, &drawing->panel_room,
                                 sizeof *drawing->panels);
    drawing->panels[drawing->panel_count] = (struct graph_panel){0};
    snprintf(drawing->panels[drawing->panel_count].title,
             sizeof drawing->panels[drawing->panel_count].title, "%s", title);
    return drawing->panel_count++;
}

static size_t add_vertex(struct graph_builder *b, enum graph_shape shape, const char *title)
{
    struct graph_panel *panel = panel_of(b);

    panel->vertices = graph_grow(panel->vertices, panel->vertex_count, &panel->vertex_room,
                                 sizeof *panel->vertices);
    struct graph_vertex *v = &panel->vertices[panel->vertex_count];
    *v = (struct graph_vertex){.shape = shape, .panel = -1, .name = {title, strlen(title)}};
    (shape == GRAPH_BOX ? graph_put_text : graph_put_name)(v->title, title);
    return panel->vertex_count++;
}

static void add_edge(struct graph_builder *b, size_t from, size_t to)
{
    struct graph_panel *panel = panel_of(b);

    panel->edges =
        graph_grow(panel->edges, panel->edge_count, &panel->edge_room, sizeof *panel->edges);
    panel->edges[panel->edge_count++] = (struct graph_edge){.from = from, .to = to};
}

static int by_ends(const void *a, const void *b)
{
    const struct graph_edge *x = a, *y = b;

    if (x->from != y->from)
        return (x->from > y->from) - (x->from < y->from);
    return (x->to > y->to) - (x->to < y->to);
}

/* Several values between two vertices are one line. */
static void join_edges(struct graph_panel *panel)
{
    size_t kept = 0;

    if (panel->edge_count)
        qsort(panel->edges, panel->edge_count, sizeof *panel->edges, by_ends);
    for (size_t i = 0; i < panel->edge_count; i++)
        if (!kept || by_ends(&panel->edges[kept - 1], &panel->edges[i]) != 0)
            panel->edges[kept++] = panel->edges[i];
    panel->edge_count = kept;
}

/* A node without inputs that gives what an attribute holds, and draws nothing at random. */
static bool holds_value(const struct cameo_node *node)
{
    return node->attribute_count == 1 && strstr(node->attributes[0]->name.data, "value") != NULL;
}

bool *graph_find_constants(const struct cameo_graph *graph)
{
    const size_t count = cameo_graph_node_count(graph);
    bool *constant = graph_memory(count + 1, sizeof *constant);

    for (size_t i = 0; i < count; i++) {
        const struct cameo_node *node = cameo_graph_node(graph, i);

        constant[i] = node->input_count > 0 || holds_value(node);
        for (size_t k = 0; k < node->input_count && constant[i]; k++) {
            const struct cameo_edge *edge =
                node->inputs[k].size ? cameo_graph_find_edge(graph, node->inputs[k].data) : NULL;
            constant[i] = !edge || edge->origin == CAMEO_EDGE_INITIALIZER ||
                          (edge->maker && edge->maker->graph == graph && edge->maker->index < i &&
                           constant[edge->maker->index]);
        }
        for (size_t a = 0; a < node->attribute_count; a++)
            constant[i] = constant[i] && !node->attributes[a]->graph_count;
        for (size_t o = 0; o < node->output_count && constant[i]; o++) {
            const struct cameo_edge *edge =
                node->outputs[o].size ? cameo_graph_find_edge(graph, node->outputs[o].data) : NULL;
            constant[i] = !edge || !edge->is_output;
        }
    }
    return constant;
}

static int group_of(const struct graph_builder *b, const struct cameo_node *node)
{
    return b->groups && b->only < 0 ? b->groups[node->index] : -1;
}

static bool is_inside(const struct graph_builder *b, const struct cameo_node *node)
{
    return b->only < 0 || b->groups[node->index] == b->only;
}

static void describe_node(struct graph_builder *b, const struct cameo_node *node,
                          struct graph_vertex *v)
{
    const struct cameo_model *model = b->drawing->model;
    const struct cameo_function *f;
    char text[200];

    v->node = node;
    v->family = graph_family_of(node);
    for (size_t i = 0; !v->family && (f = cameo_model_function(model, i)) != NULL; i++)
        if (strcmp(f->name.data, node->op_type.data) == 0 &&
            strcmp(f->domain.data, node->domain.data) == 0) {
            v->family = graph_family_count - 1;
            snprintf(text, sizeof text, "function of %zu node%s", f->node_count,
                     f->node_count == 1 ? "" : "s");
            graph_add_line(v, text);
        }
    for (size_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i]->graph_count) {
            const size_t inside = cameo_graph_node_count(node->attributes[i]->graphs[0]);
            snprintf(text, sizeof text, "%.24s: %zu node%s", node->attributes[i]->name.data, inside,
                     inside == 1 ? "" : "s");
            graph_add_line(v, text);
        }
    graph_add_weights(v, model, node);
    graph_add_attributes(v, node);
}

static size_t member(const struct graph_builder *b, size_t i)
{
    return b->members ? b->members[i] : i;
}

static void add_node(struct graph_builder *b, size_t index, size_t *of_group)
{
    const struct cameo_node *node = cameo_graph_node(b->graph, index);
    const int group = group_of(b, node);

    if (b->constant[index])
        return;
    if (group < 0) {
        const size_t v = add_vertex(b, GRAPH_BOX, node->op_type.data);
        describe_node(b, node, &panel_of(b)->vertices[v]);
        b->of_node[index] = v + 1;
        return;
    }
    if (!of_group[group]) {
        of_group[group] = add_vertex(b, GRAPH_GROUP, b->group_names[group]) + 1;
        panel_of(b)->vertices[of_group[group] - 1].group = group;
    }
    b->of_node[index] = of_group[group];
    panel_of(b)->vertices[of_group[group] - 1].node_count++;
}

static void add_nodes(struct graph_builder *b)
{
    size_t *of_group = graph_memory(b->group_count + 1, sizeof *of_group);

    for (size_t i = 0; i < b->member_count; i++)
        add_node(b, member(b, i), of_group);
    free(of_group);
    struct graph_panel *panel = panel_of(b);
    for (size_t v = 0; v < panel->vertex_count; v++)
        if (panel->vertices[v].shape == GRAPH_GROUP) {
            char text[40];
            snprintf(text, sizeof text, "%zu nodes", panel->vertices[v].node_count);
            graph_add_line(&panel->vertices[v], text);
        }
}

/* The node of the panel's graph that a node is, or is inside. */
static const struct cameo_node *climb(const struct graph_builder *b, const struct cameo_node *node)
{
    while (node && node->graph != b->graph)
        node = cameo_graph_owner(node->graph);
    return node;
}

/* The vertex that a value comes from, 1 + its number; 0: it is not drawn. */
static size_t source_of(struct graph_builder *b, const struct cameo_edge *edge, bool is_read)
{
    if (edge->maker && edge->maker->graph == b->graph && is_inside(b, edge->maker))
        return b->of_node[edge->maker->index];
    if (!is_read || edge->origin == CAMEO_EDGE_INITIALIZER ||
        (edge->maker && edge->maker->graph == b->graph && b->constant[edge->maker->index]) ||
        (edge->info && edge->info->has_default))
        return 0;
    const bool outer = edge->origin != CAMEO_EDGE_INPUT;
    const size_t v = add_vertex(b, outer ? GRAPH_OUTER : GRAPH_OVAL, edge->name.data);
    graph_put_type(panel_of(b)->vertices[v].label, edge->info);
    return v + 1;
}

static bool is_default(const struct graph_drawing *drawing, const struct cameo_edge *edge)
{
    size_t index;

    return edge->origin == CAMEO_EDGE_INPUT &&
           cameo_model_find_initializer(drawing->model, edge->name.data, &index);
}

static void add_value(struct graph_builder *b, const struct cameo_edge *edge)
{
    bool leaves = edge->is_output, is_read = false;
    const bool made_here = edge->maker && edge->maker->graph == b->graph;

    for (size_t r = 0; r < edge->reader_count; r++) {
        const struct cameo_node *reader = climb(b, edge->readers[r]);
        if (!reader)
            continue;
        is_read = is_read || is_inside(b, reader);
        leaves = leaves || !is_inside(b, reader);
    }
    if (is_default(b->drawing, edge))
        return;
    if (b->only >= 0 && !(made_here && is_inside(b, edge->maker)))
        leaves = false;
    const size_t source = source_of(b, edge, is_read || (edge->is_output && b->only < 0));
    if (!source)
        return;
    struct graph_vertex *from = &panel_of(b)->vertices[source - 1];
    if (!from->label[0] && (leaves || from->shape != GRAPH_GROUP))
        graph_put_type(from->label, edge->info);
    for (size_t r = 0; r < edge->reader_count; r++) {
        const struct cameo_node *reader = climb(b, edge->readers[r]);
        const size_t target = reader && is_inside(b, reader) ? b->of_node[reader->index] : 0;
        if (target && target != source)
            add_edge(b, source - 1, target - 1);
    }
    if (leaves && (edge->is_output || b->only >= 0)) {
        const size_t v = add_vertex(b, edge->is_output ? GRAPH_OVAL : GRAPH_OUTER, edge->name.data);
        char type[GRAPH_TEXT];
        graph_put_type(type, edge->info);
        graph_add_line(&panel_of(b)->vertices[v], type);
        add_edge(b, source - 1, v);
    }
}

/* Vertices in the order that layout wants: what is read from outside first, results last. */
static void sort_vertices(struct graph_panel *panel, size_t nodes)
{
    const size_t n = panel->vertex_count;
    size_t *to = graph_memory(n + 1, sizeof *to), *ins = graph_memory(n + 1, sizeof *ins);
    struct graph_vertex *sorted = graph_memory(n + 1, sizeof *sorted);
    size_t at = 0;

    for (size_t e = 0; e < panel->edge_count; e++)
        ins[panel->edges[e].to]++;
    for (int pass = 0; pass < 3; pass++)
        for (size_t v = 0; v < n; v++)
            if ((v < nodes ? 1 : ins[v] ? 2 : 0) == pass) {
                to[v] = at;
                sorted[at++] = panel->vertices[v];
            }
    for (size_t e = 0; e < panel->edge_count; e++) {
        panel->edges[e].from = to[panel->edges[e].from];
        panel->edges[e].to = to[panel->edges[e].to];
    }
    free(panel->vertices);
    panel->vertices = sorted;
    panel->vertex_room = n + 1;
    free(to);
    free(ins);
}

static int by_address(const void *a, const void *b)
{
    const struct cameo_edge *const *x = a, *const *y = b;

    return (*x > *y) - (*x < *y);
}

/* Values that the nodes of a group read or make, each once. */
static void add_values_of_group(struct graph_builder *b)
{
    const struct cameo_edge **edges = NULL;
    size_t count = 0, room = 0;

    for (size_t i = 0; i < b->member_count; i++) {
        const struct cameo_node *node = cameo_graph_node(b->graph, b->members[i]);
        for (size_t k = 0; k < node->input_count + node->output_count; k++) {
            const struct cameo_text name =
                k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count];
            const struct cameo_edge *edge =
                name.size ? cameo_graph_find_edge(b->graph, name.data) : NULL;
            edges = graph_grow(edges, count, &room, sizeof *edges);
            if (edge)
                edges[count++] = edge;
        }
    }
    if (count)
        qsort(edges, count, sizeof *edges, by_address);
    for (size_t i = 0; i < count; i++)
        if (!i || edges[i] != edges[i - 1])
            add_value(b, edges[i]);
    free(edges);
}

void graph_build_panel(struct graph_builder *b)
{
    add_nodes(b);
    const size_t nodes = panel_of(b)->vertex_count;
    if (b->members)
        add_values_of_group(b);
    for (size_t i = 0; !b->members && i < cameo_graph_edge_count(b->graph); i++)
        add_value(b, cameo_graph_edge(b->graph, i));
    join_edges(panel_of(b));
    sort_vertices(panel_of(b), nodes);
}
