/* Panels of a drawing: the graph of a model with parts of it folded, training info, and what is
 * inside folds, functions and bodies. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_panel.h"

#include <stdlib.h>
#include <string.h>

enum { AUTO_NODES = 150, AUTO_VERTICES = 110, AUTO_DEPTH = 6, PANELS_MAX = 500 };

/* ---- folding ---- */

static const char *scoped_name(const struct cameo_node *node)
{
    return node->name.size ? node->name.data : node->output_count > 0 ? node->outputs[0].data : "";
}

/* The first parts of a name, without the last one; 0: it has not so many. */
static size_t scope_size(const char *name, int depth)
{
    const char mark = strchr(name, '/') ? '/' : '.';
    size_t at = name[0] == mark;

    for (; depth > 0; depth--) {
        const char *next = strchr(name + at, mark);
        if (!next)
            return 0;
        at = (size_t)(next - name) + 1;
    }
    return at - 1;
}

struct fold_key {
    const char *name;
    size_t size, node;
};

static int by_name(const void *a, const void *b)
{
    const struct fold_key *x = a, *y = b;
    const size_t size = x->size < y->size ? x->size : y->size;
    const int order = memcmp(x->name, y->name, size);

    if (order)
        return order;
    if (x->size != y->size)
        return (x->size > y->size) - (x->size < y->size);
    return (x->node > y->node) - (x->node < y->node);
}

/* Nodes of one scope are one group; gives the number of vertices that makes. */
static size_t fold_by_scope(const struct cameo_graph *graph, int depth, int *groups,
                            size_t *group_count, char (*names)[200])
{
    const size_t count = cameo_graph_node_count(graph);
    bool *constant = graph_find_constants(graph);
    struct fold_key *keys = graph_memory(count + 1, sizeof *keys);
    size_t n = 0, vertices = 0;

    *group_count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = scoped_name(cameo_graph_node(graph, i));
        const size_t size = scope_size(name, depth);
        groups[i] = -1;
        if (constant[i])
            continue;
        if (size)
            keys[n++] = (struct fold_key){name, size, i};
        else
            vertices++;
    }
    free(constant);
    if (n)
        qsort(keys, n, sizeof *keys, by_name);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && keys[end].size == keys[i].size &&
                          memcmp(keys[end].name, keys[i].name, keys[i].size) == 0;)
            end++;
        vertices++;
        if (end - i < 2)
            continue;
        for (size_t k = i; k < end; k++)
            groups[keys[k].node] = (int)*group_count;
        if (names)
            snprintf(names[*group_count], sizeof *names, "%.*s", (int)keys[i].size, keys[i].name);
        ++*group_count;
    }
    free(keys);
    return vertices;
}

static void fold_by_prefix(const struct cameo_graph *graph, const struct cli_texts *folds,
                           int *groups, size_t *group_count, char (*names)[200])
{
    *group_count = folds->count;
    for (size_t f = 0; f < folds->count; f++)
        snprintf(names[f], sizeof *names, "%s", folds->items[f]);
    for (size_t i = 0; i < cameo_graph_node_count(graph); i++) {
        const char *name = scoped_name(cameo_graph_node(graph, i));
        groups[i] = -1;
        for (size_t f = 0; f < folds->count && groups[i] < 0; f++)
            if (strncmp(name, folds->items[f], strlen(folds->items[f])) == 0)
                groups[i] = (int)f;
    }
}

static bool is_mode(const struct cli_texts *folds, const char *mode)
{
    return folds->count == 1 && strcmp(folds->items[0], mode) == 0;
}

/* ---- the drawing ---- */

static void build_whole(struct graph_drawing *drawing, size_t panel,
                        const struct cameo_graph *graph)
{
    const size_t count = cameo_graph_node_count(graph);
    struct graph_builder b = {.drawing = drawing,
                              .graph = graph,
                              .only = -1,
                              .panel = panel,
                              .member_count = count,
                              .of_node = graph_memory(count + 1, sizeof *b.of_node),
                              .constant = graph_find_constants(graph)};

    graph_build_panel(&b);
    free(b.of_node);
    free(b.constant);
}

/* Bodies of control flow and of functions, each a panel of its own behind a click. */
static void add_inner(struct graph_drawing *drawing, const struct cameo_graph *graph,
                      const char *title, int *panel_out)
{
    if (drawing->panel_count >= PANELS_MAX)
        return;
    const size_t panel = graph_add_panel(drawing, title);
    build_whole(drawing, panel, graph);
    if (panel_out)
        *panel_out = (int)panel;
}

static void link_inner(struct graph_drawing *drawing)
{
    const size_t functions = cameo_model_summary(drawing->model)->function_count;
    int *of_function = graph_memory(functions + 1, sizeof *of_function);
    char title[300];

    for (size_t i = 0; i < functions; i++) {
        const struct cameo_function *f = cameo_model_function(drawing->model, i);
        const struct cameo_graph *graph;
        of_function[i] = -1;
        snprintf(title, sizeof title, "function %.100s.%.100s", f->domain.data, f->name.data);
        if (cameo_model_graph(drawing->model, CAMEO_GRAPH_FUNCTION, i, &graph, NULL) == CAMEO_OK)
            add_inner(drawing, graph, title, &of_function[i]);
    }
    for (size_t p = 0; p < drawing->panel_count; p++) /* panels are added on the way */
        for (size_t v = 0; v < drawing->panels[p].vertex_count; v++) {
            const struct cameo_node *node = drawing->panels[p].vertices[v].node;
            int first = -1;

            if (!node)
                continue;
            for (size_t i = 0; i < functions; i++) {
                const struct cameo_function *f = cameo_model_function(drawing->model, i);
                if (strcmp(f->name.data, node->op_type.data) == 0 &&
                    strcmp(f->domain.data, node->domain.data) == 0)
                    first = of_function[i];
            }
            for (size_t a = 0; a < node->attribute_count; a++)
                for (size_t g = 0; g < node->attributes[a]->graph_count; g++) {
                    int made = -1;
                    snprintf(title, sizeof title, "%.60s of %.60s %.100s",
                             node->attributes[a]->name.data, node->op_type.data, scoped_name(node));
                    add_inner(drawing, node->attributes[a]->graphs[g], title, &made);
                    first = first < 0 ? made : first;
                }
            drawing->panels[p].vertices[v].panel = first;
        }
    free(of_function);
}

static void add_training(struct graph_drawing *drawing)
{
    const size_t count = cameo_model_summary(drawing->model)->training_count;

    for (size_t t = 0; t < 2 * count; t++) {
        const enum cameo_graph_kind kind =
            t % 2 ? CAMEO_GRAPH_ALGORITHM : CAMEO_GRAPH_INITIALIZATION;
        const struct cameo_graph *graph;
        char title[100];

        snprintf(title, sizeof title, "training info %zu: %s", t / 2,
                 t % 2 ? "algorithm" : "initialization");
        if (cameo_model_graph(drawing->model, kind, t / 2, &graph, NULL) == CAMEO_OK &&
            cameo_graph_node_count(graph))
            add_inner(drawing, graph, title, NULL);
    }
}

/* The numbers of nodes, those of one group together; first has where each group begins. */
static size_t *sort_members(const int *groups, size_t count, size_t group_count, size_t *first)
{
    size_t *members = graph_memory(count + 1, sizeof *members);

    for (size_t i = 0; i < count; i++)
        if (groups[i] >= 0)
            first[groups[i] + 1]++;
    for (size_t g = 0; g < group_count; g++)
        first[g + 1] += first[g];
    for (size_t i = 0; i < count; i++)
        if (groups[i] >= 0)
            members[first[groups[i]]++] = i;
    for (size_t g = group_count; g > 0; g--)
        first[g] = first[g - 1];
    first[0] = 0;
    return members;
}

/* The graph with its groups as boxes, and for a page what is in each of them. */
static void build_folded(struct graph_drawing *drawing, struct graph_builder *b)
{
    size_t *first = graph_memory(b->group_count + 2, sizeof *first);
    int *panels = graph_memory(b->group_count + 1, sizeof *panels);
    size_t *members =
        sort_members(b->groups, cameo_graph_node_count(b->graph), b->group_count, first);

    graph_build_panel(b);
    add_training(drawing);
    drawing->shown = drawing->panel_count;
    for (size_t g = 0; g < b->group_count; g++) {
        struct graph_builder part = *b;

        panels[g] = -1;
        if (!drawing->with_inner || drawing->panel_count >= PANELS_MAX || first[g] == first[g + 1])
            continue;
        part.only = (int)g;
        part.members = members + first[g];
        part.member_count = first[g + 1] - first[g];
        part.panel = graph_add_panel(drawing, b->group_names[g]);
        graph_build_panel(&part);
        panels[g] = (int)part.panel;
    }
    for (size_t v = 0; v < drawing->panels[0].vertex_count; v++)
        if (drawing->panels[0].vertices[v].shape == GRAPH_GROUP)
            drawing->panels[0].vertices[v].panel = panels[drawing->panels[0].vertices[v].group];
    free(first);
    free(panels);
    free(members);
}

void graph_build(struct graph_drawing *drawing, const struct cli_texts *folds)
{
    const struct cameo_summary *summary = cameo_model_summary(drawing->model);
    const struct cameo_graph *graph;
    size_t group_count = 0;

    graph_add_panel(drawing, summary->graph_name.data);
    if (cameo_model_graph(drawing->model, CAMEO_GRAPH_MAIN, 0, &graph, NULL) != CAMEO_OK)
        return;
    const size_t count = cameo_graph_node_count(graph);
    int *groups = graph_memory(count + 1, sizeof *groups);
    char(*names)[200] = graph_memory(count + folds->count + 1, sizeof *names);

    if (!folds->count || is_mode(folds, "auto")) {
        for (int depth = AUTO_DEPTH; depth > 0 && count > AUTO_NODES; depth--)
            if (fold_by_scope(graph, depth, groups, &group_count, names) <= AUTO_VERTICES)
                break;
    } else if (!is_mode(folds, "none") && !is_mode(folds, "functions")) {
        fold_by_prefix(graph, folds, groups, &group_count, names);
    }
    struct graph_builder b = {.drawing = drawing,
                              .graph = graph,
                              .groups = groups,
                              .only = -1,
                              .group_count = group_count,
                              .group_names = names,
                              .member_count = count,
                              .of_node = graph_memory(count + 1, sizeof *b.of_node),
                              .constant = graph_find_constants(graph)};
    if (!group_count)
        for (size_t i = 0; i < count; i++)
            groups[i] = -1;
    build_folded(drawing, &b);
    free(b.of_node);
    free(b.constant);
    if (drawing->with_inner)
        link_inner(drawing);
    for (size_t p = 0; p < drawing->panel_count; p++)
        graph_layout(&drawing->panels[p]);
    drawing->names = names;
    free(groups);
}
