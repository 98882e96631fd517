/* What the files that build panels share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_GRAPH_PANEL_H
#define CLI_GRAPH_PANEL_H

#include "drawing.h"

/* A panel on its way: the nodes of a graph, or of a group of them, become its vertices. */
struct graph_builder {
    struct graph_drawing *drawing;
    const struct cameo_graph *graph;
    const int *groups; /* of nodes; -1: none; NULL: no node has one */
    int only;          /* the group that the panel is of; -1: the whole graph */
    size_t group_count;
    char (*group_names)[200];
    size_t panel;
    const size_t *members; /* numbers of the group's nodes; NULL: all nodes of the graph */
    size_t member_count;
    size_t *of_node; /* 1 + vertex */
    bool *constant;  /* see find_constants */
};

/* Cut to fit, between characters, with ".." where something is missing. */
void graph_put_text(char to[GRAPH_TEXT], const char *text);
/* The same for names of values and scopes, of which the end says most. */
void graph_put_name(char to[GRAPH_TEXT], const char *name);
/* "1x64x56x56", with the element type where it is no float. */
void graph_put_type(char to[GRAPH_TEXT], const struct cameo_value_info *info);
void graph_add_line(struct graph_vertex *v, const char *text);
void graph_add_attributes(struct graph_vertex *v, const struct cameo_node *node);
/* Shapes of the weights that a node reads. */
void graph_add_weights(struct graph_vertex *v, const struct cameo_model *model,
                       const struct cameo_node *node);
int graph_family_of(const struct cameo_node *node);

/* Nodes whose results no input changes: they are not drawn. By their numbers; the caller's to
 * free. */
bool *graph_find_constants(const struct cameo_graph *graph);
size_t graph_add_panel(struct graph_drawing *drawing, const char *title);
void graph_build_panel(struct graph_builder *b);

#endif
