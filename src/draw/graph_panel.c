/* Nodes and values of a graph as vertices and edges of a panel. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/graph_panel.h"

#include "base/array.h"

#include <stdlib.h>

static struct cm_draw_panel *panel_of(const struct cm_draw_builder *b)
{
    return &b->drawing->panels.items[b->panel];
}

size_t cm_draw_add_panel(struct cm_drawing *drawing, const char *title)
{
    struct cm_draw_panel *panel = CM_PUSH(drawing->arena, &drawing->panels);

    *panel = (struct cm_draw_panel){0};
    snprintf(panel->title, sizeof panel->title, "%s", title);
    return drawing->panels.count - 1;
}

static size_t add_vertex(struct cm_draw_builder *b, enum cm_draw_shape shape, struct cm_str title)
{
    struct cm_draw_panel *panel = panel_of(b);
    struct cm_draw_vertex *v = CM_PUSH(b->drawing->arena, &panel->vertices);

    *v = (struct cm_draw_vertex){.shape = shape, .panel = -1, .name = title};
    (shape == CM_DRAW_BOX ? cm_draw_put_text : cm_draw_put_name)(v->title, title);
    return panel->vertices.count - 1;
}

static void add_edge(struct cm_draw_builder *b, size_t from, size_t to)
{
    *CM_PUSH(b->drawing->arena, &panel_of(b)->edges) =
        (struct cm_draw_edge){.from = from, .to = to};
}

static int by_ends(const void *a, const void *b)
{
    const struct cm_draw_edge *x = a, *y = b;

    if (x->from != y->from)
        return (x->from > y->from) - (x->from < y->from);
    return (x->to > y->to) - (x->to < y->to);
}

/* Several values between two vertices are one line. */
static void join_edges(struct cm_draw_panel *panel)
{
    size_t kept = 0;

    if (panel->edges.count)
        qsort(panel->edges.items, panel->edges.count, sizeof *panel->edges.items, by_ends);
    for (size_t i = 0; i < panel->edges.count; i++)
        if (!kept || by_ends(&panel->edges.items[kept - 1], &panel->edges.items[i]) != 0)
            panel->edges.items[kept++] = panel->edges.items[i];
    panel->edges.count = kept;
}

/* A node without inputs that gives what an attribute holds, and draws nothing at random. */
static bool holds_value(const struct cm_node_proto *node)
{
    char name[80];

    if (node->attribute.count != 1)
        return false;
    snprintf(name, sizeof name, "%.*s", CM_DRAW_CUT(node->attribute.items[0].name, 70));
    return strstr(name, "value") != NULL;
}

bool *cm_draw_find_constants(struct cm_arena *arena, const struct cm_outline *graph)
{
    bool *constant = CM_NEW_ARRAY(arena, bool, graph->node_count + 1);

    for (size_t i = 0; i < graph->node_count; i++) {
        const struct cm_node_proto *node = graph->nodes[i].proto;

        constant[i] = node->input.count > 0 || holds_value(node);
        for (size_t k = 0; k < node->input.count && constant[i]; k++) {
            const struct cm_outline_value *value = cm_outline_find(graph, node->input.items[k]);
            constant[i] =
                !value || value->origin == CM_OUTLINE_INITIALIZER ||
                (value->maker && value->maker->index < i && constant[value->maker->index]);
        }
        for (size_t a = 0; a < node->attribute.count; a++)
            constant[i] = constant[i] && !graph->nodes[i].bodies[a].count;
        for (size_t o = 0; o < node->output.count && constant[i]; o++) {
            const struct cm_outline_value *value = cm_outline_find(graph, node->output.items[o]);
            constant[i] = !value || !value->is_output;
        }
    }
    return constant;
}

static int group_of(const struct cm_draw_builder *b, const struct cm_outline_node *node)
{
    return b->groups && b->only < 0 ? b->groups[node->index] : -1;
}

static bool is_inside(const struct cm_draw_builder *b, const struct cm_outline_node *node)
{
    return b->only < 0 || b->groups[node->index] == b->only;
}

/* Nodes of a list, those of graphs inside them included. */
static size_t count_nodes(const struct cm_outline *graph)
{
    size_t count = graph->node_count;

    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t a = 0; a < graph->nodes[n].proto->attribute.count; a++)
            for (size_t i = 0; i < graph->nodes[n].bodies[a].count; i++)
                count += count_nodes(graph->nodes[n].bodies[a].items[i]);
    return count;
}

static void describe_node(struct cm_draw_builder *b, const struct cm_outline_node *of,
                          struct cm_draw_vertex *v)
{
    const struct cm_model_proto *model = b->drawing->model;
    const struct cm_node_proto *node = of->proto;
    char text[200];

    v->node = of;
    v->family = cm_draw_family_of(node);
    for (size_t i = 0; !v->family && i < model->functions.count; i++)
        if (cm_str_equal(model->functions.items[i].name, node->op_type) &&
            cm_str_equal(model->functions.items[i].domain, node->domain)) {
            const size_t inside = count_nodes(b->drawing->outlines->functions[i]);
            v->family = cm_draw_family_count - 1;
            snprintf(text, sizeof text, "function of %zu node%s", inside, inside == 1 ? "" : "s");
            cm_draw_add_line(v, text);
        }
    for (size_t i = 0; i < node->attribute.count; i++)
        if (of->bodies[i].count) {
            const size_t inside = of->bodies[i].items[0]->node_count;
            snprintf(text, sizeof text, "%.*s: %zu node%s",
                     CM_DRAW_CUT(node->attribute.items[i].name, 24), inside,
                     inside == 1 ? "" : "s");
            cm_draw_add_line(v, text);
        }
    cm_draw_add_weights(v, b->drawing, node);
    cm_draw_add_attributes(v, node);
}

static size_t member(const struct cm_draw_builder *b, size_t i)
{
    return b->members ? b->members[i] : i;
}

static void add_node(struct cm_draw_builder *b, size_t index, size_t *of_group)
{
    const struct cm_outline_node *node = &b->graph->nodes[index];
    const int group = group_of(b, node);

    if (b->constant[index])
        return;
    if (group < 0) {
        const size_t v = add_vertex(b, CM_DRAW_BOX, node->proto->op_type);
        describe_node(b, node, &panel_of(b)->vertices.items[v]);
        b->of_node[index] = v + 1;
        return;
    }
    if (!of_group[group]) {
        of_group[group] = add_vertex(b, CM_DRAW_GROUP, cm_str(b->group_names[group])) + 1;
        panel_of(b)->vertices.items[of_group[group] - 1].group = group;
    }
    b->of_node[index] = of_group[group];
    panel_of(b)->vertices.items[of_group[group] - 1].node_count++;
}

static void add_nodes(struct cm_draw_builder *b)
{
    size_t *of_group = CM_NEW_ARRAY(b->drawing->scratch, size_t, b->group_count + 1);

    for (size_t i = 0; i < b->member_count; i++)
        add_node(b, member(b, i), of_group);
    struct cm_draw_panel *panel = panel_of(b);
    for (size_t v = 0; v < panel->vertices.count; v++)
        if (panel->vertices.items[v].shape == CM_DRAW_GROUP) {
            char text[40];
            snprintf(text, sizeof text, "%zu nodes", panel->vertices.items[v].node_count);
            cm_draw_add_line(&panel->vertices.items[v], text);
        }
}

/* The node of the panel's graph that a node is, or is inside. */
static const struct cm_outline_node *climb(const struct cm_draw_builder *b,
                                           const struct cm_outline_node *node)
{
    while (node && node->graph != b->graph)
        node = node->graph->owner;
    return node;
}

const struct cm_int64s *cm_draw_find_weight(const struct cm_drawing *drawing, struct cm_str name)
{
    const uint64_t *index = name.size ? cm_map_find(&drawing->initializers, name) : NULL;
    return index ? drawing->dims.items[*index] : NULL;
}

static bool is_default(const struct cm_drawing *drawing, const struct cm_outline_value *edge)
{
    return edge->origin == CM_OUTLINE_INPUT && cm_draw_find_weight(drawing, edge->name);
}

/* The vertex that a value comes from, 1 + its number; 0: it is not drawn. */
static size_t source_of(struct cm_draw_builder *b, const struct cm_outline_value *edge,
                        bool is_read)
{
    if (edge->maker && edge->maker->graph == b->graph && is_inside(b, edge->maker))
        return b->of_node[edge->maker->index];
    if (!is_read || edge->origin == CM_OUTLINE_INITIALIZER ||
        (edge->maker && edge->maker->graph == b->graph && b->constant[edge->maker->index]) ||
        is_default(b->drawing, edge))
        return 0;
    const bool outer = edge->origin != CM_OUTLINE_INPUT;
    const size_t v = add_vertex(b, outer ? CM_DRAW_OUTER : CM_DRAW_OVAL, edge->name);
    cm_draw_put_type(b->drawing->arena, panel_of(b)->vertices.items[v].label, edge->info);
    return v + 1;
}

static void add_value(struct cm_draw_builder *b, const struct cm_outline_value *edge)
{
    bool leaves = edge->is_output, is_read = false;
    const bool made_here = edge->maker && edge->maker->graph == b->graph;

    for (size_t r = 0; r < edge->readers.count; r++) {
        const struct cm_outline_node *reader = climb(b, edge->readers.items[r].node);
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
    struct cm_draw_vertex *from = &panel_of(b)->vertices.items[source - 1];
    if (!from->label[0] && (leaves || from->shape != CM_DRAW_GROUP))
        cm_draw_put_type(b->drawing->arena, from->label, edge->info);
    for (size_t r = 0; r < edge->readers.count; r++) {
        const struct cm_outline_node *reader = climb(b, edge->readers.items[r].node);
        const size_t target = reader && is_inside(b, reader) ? b->of_node[reader->index] : 0;
        if (target && target != source)
            add_edge(b, source - 1, target - 1);
    }
    if (leaves && (edge->is_output || b->only >= 0)) {
        const size_t v = add_vertex(b, edge->is_output ? CM_DRAW_OVAL : CM_DRAW_OUTER, edge->name);
        char type[CM_DRAW_TEXT];
        cm_draw_put_type(b->drawing->arena, type, edge->info);
        cm_draw_add_line(&panel_of(b)->vertices.items[v], type);
        add_edge(b, source - 1, v);
    }
}

/* Vertices in the order that layout wants: what is read from outside first, results last. */
static void sort_vertices(struct cm_drawing *drawing, struct cm_draw_panel *panel, size_t nodes)
{
    const size_t n = panel->vertices.count;
    size_t *to = CM_NEW_ARRAY(drawing->scratch, size_t, n + 1);
    size_t *ins = CM_NEW_ARRAY(drawing->scratch, size_t, n + 1);
    struct cm_draw_vertex *sorted = CM_NEW_ARRAY(drawing->arena, struct cm_draw_vertex, n + 1);
    size_t at = 0;

    for (size_t e = 0; e < panel->edges.count; e++)
        ins[panel->edges.items[e].to]++;
    for (int pass = 0; pass < 3; pass++)
        for (size_t v = 0; v < n; v++)
            if ((v < nodes ? 1 : ins[v] ? 2 : 0) == pass) {
                to[v] = at;
                sorted[at++] = panel->vertices.items[v];
            }
    for (size_t e = 0; e < panel->edges.count; e++) {
        panel->edges.items[e].from = to[panel->edges.items[e].from];
        panel->edges.items[e].to = to[panel->edges.items[e].to];
    }
    panel->vertices.items = sorted;
    panel->vertices.capacity = n + 1;
}

static int by_number(const void *a, const void *b)
{
    const struct cm_outline_value *const *x = a, *const *y = b;

    return ((*x)->index > (*y)->index) - ((*x)->index < (*y)->index);
}

/* Values that the nodes of a group read or make, each once. */
static void add_values_of_group(struct cm_draw_builder *b)
{
    struct {
        CM_ARRAY(const struct cm_outline_value *);
    } values = {0};

    for (size_t i = 0; i < b->member_count; i++) {
        const struct cm_node_proto *node = b->graph->nodes[b->members[i]].proto;
        for (size_t k = 0; k < node->input.count + node->output.count; k++) {
            const struct cm_outline_value *value = cm_outline_find(
                b->graph, k < node->input.count ? node->input.items[k]
                                                : node->output.items[k - node->input.count]);
            if (value)
                *CM_PUSH(b->drawing->scratch, &values) = value;
        }
    }
    if (values.count)
        qsort(values.items, values.count, sizeof(const struct cm_outline_value *), by_number);
    for (size_t i = 0; i < values.count; i++)
        if (!i || values.items[i] != values.items[i - 1])
            add_value(b, values.items[i]);
}

void cm_draw_build_panel(struct cm_draw_builder *b)
{
    add_nodes(b);
    const size_t nodes = panel_of(b)->vertices.count;
    if (b->members)
        add_values_of_group(b);
    for (size_t i = 0; !b->members && i < b->graph->values.count; i++)
        add_value(b, b->graph->values.items[i]);
    join_edges(panel_of(b));
    sort_vertices(b->drawing, panel_of(b), nodes);
    cm_arena_reset(b->drawing->scratch);
}
