/* Panels of a drawing: the graph of a model with parts of it folded, training info, and what is
 * inside folds, functions and bodies. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/graph_panel.h"

#include <stdlib.h>

enum { AUTO_NODES = 150, AUTO_VERTICES = 110, AUTO_DEPTH = 6, PANELS_MAX = 500 };

/* ---- folding ---- */

static struct cm_str scoped_name(const struct cm_node_proto *node)
{
    return node->name.size          ? node->name
           : node->output.count > 0 ? node->output.items[0]
                                    : CM_STR_NONE;
}

/* The first parts of a name, without the last one; 0: it has not so many. */
static size_t scope_size(struct cm_str name, int depth)
{
    const char mark = name.size && memchr(name.data, '/', name.size) ? '/' : '.';
    size_t at = name.size && name.data[0] == mark;

    for (; depth > 0; depth--) {
        const char *next = at < name.size ? memchr(name.data + at, mark, name.size - at) : NULL;
        if (!next)
            return 0;
        at = (size_t)(next - name.data) + 1;
    }
    return at - 1;
}

struct fold_key {
    struct cm_str scope;
    size_t node;
};

static int by_name(const void *a, const void *b)
{
    const struct fold_key *x = a, *y = b;
    const int order = cm_str_compare(x->scope, y->scope);

    if (order)
        return order;
    return (x->node > y->node) - (x->node < y->node);
}

/* Nodes of one scope are one group; gives the number of vertices that makes. */
static size_t fold_by_scope(struct cm_arena *scratch, const struct cm_outline *graph, int depth,
                            int *groups, size_t *group_count, char (*names)[200])
{
    const size_t count = graph->node_count;
    const bool *constant = cm_draw_find_constants(scratch, graph);
    struct fold_key *keys = CM_NEW_ARRAY(scratch, struct fold_key, count + 1);
    size_t n = 0, vertices = 0;

    *group_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = scoped_name(graph->nodes[i].proto);
        const size_t size = scope_size(name, depth);
        groups[i] = -1;
        if (constant[i])
            continue;
        if (size)
            keys[n++] = (struct fold_key){{name.data, size}, i};
        else
            vertices++;
    }
    if (n)
        qsort(keys, n, sizeof *keys, by_name);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && cm_str_equal(keys[end].scope, keys[i].scope);)
            end++;
        vertices++;
        if (end - i < 2)
            continue;
        for (size_t k = i; k < end; k++)
            groups[keys[k].node] = (int)*group_count;
        if (names)
            snprintf(names[*group_count], sizeof *names, "%.*s", CM_STR_FMT(keys[i].scope));
        ++*group_count;
    }
    cm_arena_reset(scratch);
    return vertices;
}

static void fold_by_prefix(const struct cm_outline *graph, const struct cm_draw_folds *folds,
                           int *groups, size_t *group_count, char (*names)[200])
{
    *group_count = folds->count;
    for (size_t f = 0; f < folds->count; f++)
        snprintf(names[f], sizeof *names, "%s", folds->items[f]);
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct cm_str name = scoped_name(graph->nodes[i].proto);
        groups[i] = -1;
        for (size_t f = 0; f < folds->count && groups[i] < 0; f++)
            if (cm_str_starts(name, folds->items[f]))
                groups[i] = (int)f;
    }
}

static bool is_mode(const struct cm_draw_folds *folds, const char *mode)
{
    return folds->count == 1 && strcmp(folds->items[0], mode) == 0;
}

/* ---- the drawing ---- */

static void build_whole(struct cm_drawing *drawing, size_t panel, const struct cm_outline *graph)
{
    const size_t count = graph->node_count;
    struct cm_draw_builder b = {.drawing = drawing,
                                .graph = graph,
                                .only = -1,
                                .panel = panel,
                                .member_count = count,
                                .of_node = CM_NEW_ARRAY(drawing->arena, size_t, count + 1),
                                .constant = cm_draw_find_constants(drawing->arena, graph)};

    cm_draw_build_panel(&b);
}

/* Bodies of control flow and of functions, each a panel of its own that a click opens. */
static void add_inner(struct cm_drawing *drawing, const struct cm_outline *graph, const char *title,
                      int *panel_out)
{
    if (drawing->panels.count >= PANELS_MAX)
        return;
    const size_t panel = cm_draw_add_panel(drawing, title);
    build_whole(drawing, panel, graph);
    if (panel_out)
        *panel_out = (int)panel;
}

static void link_inner(struct cm_drawing *drawing)
{
    const struct cm_model_proto *model = drawing->model;
    const size_t functions = model->functions.count;
    int *of_function = CM_NEW_ARRAY(drawing->arena, int, functions + 1);
    char title[300];

    for (size_t i = 0; i < functions; i++) {
        const struct cm_function_proto *f = &model->functions.items[i];
        of_function[i] = -1;
        snprintf(title, sizeof title, "function %.*s.%.*s", CM_DRAW_CUT(f->domain, 100),
                 CM_DRAW_CUT(f->name, 100));
        add_inner(drawing, drawing->outlines->functions[i], title, &of_function[i]);
    }
    for (size_t p = 0; p < drawing->panels.count; p++) /* panels are added on the way */
        for (size_t v = 0; v < drawing->panels.items[p].vertices.count; v++) {
            const struct cm_outline_node *of = drawing->panels.items[p].vertices.items[v].node;
            int first = -1;

            if (!of)
                continue;
            const struct cm_node_proto *node = of->proto;
            for (size_t i = 0; i < functions; i++)
                if (cm_str_equal(model->functions.items[i].name, node->op_type) &&
                    cm_str_equal(model->functions.items[i].domain, node->domain))
                    first = of_function[i];
            for (size_t a = 0; a < node->attribute.count; a++)
                for (size_t g = 0; g < of->bodies[a].count; g++) {
                    const struct cm_str name = scoped_name(node);
                    int made = -1;
                    snprintf(title, sizeof title, "%.*s of %.*s %.*s",
                             CM_DRAW_CUT(node->attribute.items[a].name, 60),
                             CM_DRAW_CUT(node->op_type, 60), CM_DRAW_CUT(name, 100));
                    add_inner(drawing, of->bodies[a].items[g], title, &made);
                    first = first < 0 ? made : first;
                }
            drawing->panels.items[p].vertices.items[v].panel = first;
        }
}

static void add_training(struct cm_drawing *drawing)
{
    const struct cm_outlines *outlines = drawing->outlines;

    for (size_t t = 0; t < 2 * drawing->model->training_info.count; t++) {
        const struct cm_outline *graph =
            (t % 2 ? outlines->algorithms : outlines->initializations)[t / 2];
        char title[100];

        snprintf(title, sizeof title, "training info %zu: %s", t / 2,
                 t % 2 ? "algorithm" : "initialization");
        if (graph && graph->node_count)
            add_inner(drawing, graph, title, NULL);
    }
}

/* The numbers of nodes, those of one group together; first has where each group begins. */
static size_t *sort_members(struct cm_arena *arena, const int *groups, size_t count,
                            size_t group_count, size_t *first)
{
    size_t *members = CM_NEW_ARRAY(arena, size_t, count + 1);

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
static void build_folded(struct cm_drawing *drawing, struct cm_draw_builder *b)
{
    size_t *first = CM_NEW_ARRAY(drawing->arena, size_t, b->group_count + 2);
    int *panels = CM_NEW_ARRAY(drawing->arena, int, b->group_count + 1);
    const size_t *members =
        sort_members(drawing->arena, b->groups, b->graph->node_count, b->group_count, first);

    cm_draw_build_panel(b);
    add_training(drawing);
    drawing->shown = drawing->panels.count;
    for (size_t g = 0; g < b->group_count; g++) {
        struct cm_draw_builder part = *b;

        panels[g] = -1;
        if (!drawing->with_inner || drawing->panels.count >= PANELS_MAX || first[g] == first[g + 1])
            continue;
        part.only = (int)g;
        part.members = members + first[g];
        part.member_count = first[g + 1] - first[g];
        part.panel = cm_draw_add_panel(drawing, b->group_names[g]);
        cm_draw_build_panel(&part);
        panels[g] = (int)part.panel;
    }
    for (size_t v = 0; v < drawing->panels.items[0].vertices.count; v++)
        if (drawing->panels.items[0].vertices.items[v].shape == CM_DRAW_GROUP)
            drawing->panels.items[0].vertices.items[v].panel =
                panels[drawing->panels.items[0].vertices.items[v].group];
}

/* Of the graph, then of algorithms; of several of one name the first counts. */
static void note_weights(struct cm_drawing *drawing, const struct cm_graph_proto *graph)
{
    for (size_t i = 0; graph && i < graph->initializer.count + graph->sparse_initializer.count;
         i++) {
        const bool dense = i < graph->initializer.count;
        const struct cm_tensor_proto *tensor = dense ? &graph->initializer.items[i] : NULL;
        const struct cm_sparse_proto *sparse =
            dense ? NULL : &graph->sparse_initializer.items[i - graph->initializer.count];
        bool added;

        if (!dense && !sparse->values)
            continue;
        uint64_t *index = cm_map_insert(&drawing->initializers, drawing->arena,
                                        dense ? tensor->name : sparse->values->name, &added);
        if (!added)
            continue;
        *index = drawing->dims.count;
        *CM_PUSH(drawing->arena, &drawing->dims) = dense ? &tensor->dims : &sparse->dims;
    }
}

void cm_draw_build(struct cm_drawing *drawing, const struct cm_draw_folds *folds)
{
    const struct cm_model_proto *model = drawing->model;
    struct cm_arena *arena = drawing->arena;
    size_t group_count = 0;

    drawing->outlines = cm_outlines_new(arena, model);
    note_weights(drawing, model->graph);
    for (size_t i = 0; i < model->training_info.count; i++)
        note_weights(drawing, model->training_info.items[i].algorithm);
    const struct cm_outline *graph = drawing->outlines->main;
    const struct cm_str title = graph ? graph->name : CM_STR_NONE;
    cm_draw_add_panel(drawing, cm_arena_str(arena, title).data);
    if (!graph)
        return;
    const size_t count = graph->node_count;
    int *groups = CM_NEW_ARRAY(arena, int, count + 1);
    char(*names)[200] = cm_arena_alloc_array(arena, count + folds->count + 1, sizeof *names);

    if (!folds->count || is_mode(folds, "auto")) {
        for (int depth = AUTO_DEPTH; depth > 0 && count > AUTO_NODES; depth--)
            if (fold_by_scope(drawing->scratch, graph, depth, groups, &group_count, names) <=
                AUTO_VERTICES)
                break;
    } else if (!is_mode(folds, "none") && !is_mode(folds, "functions")) {
        fold_by_prefix(graph, folds, groups, &group_count, names);
    }
    struct cm_draw_builder b = {.drawing = drawing,
                                .graph = graph,
                                .groups = groups,
                                .only = -1,
                                .group_count = group_count,
                                .group_names = names,
                                .member_count = count,
                                .of_node = CM_NEW_ARRAY(arena, size_t, count + 1),
                                .constant = cm_draw_find_constants(arena, graph)};
    if (!group_count)
        for (size_t i = 0; i < count; i++)
            groups[i] = -1;
    build_folded(drawing, &b);
    if (drawing->with_inner)
        link_inner(drawing);
    for (size_t p = 0; p < drawing->panels.count; p++)
        cm_draw_layout(drawing, &drawing->panels.items[p]);
}

size_t cm_draw_count(const struct cm_drawing *drawing)
{
    size_t count = 0;

    for (size_t p = 0; p < drawing->shown; p++)
        count += drawing->panels.items[p].vertices.count;
    return count;
}
