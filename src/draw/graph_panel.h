/* What the files that build panels share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_DRAW_GRAPH_PANEL_H
#define CM_DRAW_GRAPH_PANEL_H

#include "draw/drawing.h"

/* A panel on its way: the nodes of a graph, or of a group of them, become its vertices. */
struct cm_draw_builder {
    struct cm_drawing *drawing;
    const struct cm_outline *graph;
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
void cm_draw_put_text(char to[CM_DRAW_TEXT], struct cm_str text);
/* The same for names of values and scopes: the end is kept, because it says most. */
void cm_draw_put_name(char to[CM_DRAW_TEXT], struct cm_str name);
/* "1x64x56x56", with the element type where it is no float. */
void cm_draw_put_type(struct cm_arena *arena, char to[CM_DRAW_TEXT],
                      const struct cm_value_info_proto *info);
void cm_draw_add_line(struct cm_draw_vertex *v, const char *text);
void cm_draw_add_attributes(struct cm_draw_vertex *v, const struct cm_node_proto *node);
/* Shapes of the weights that a node reads. */
void cm_draw_add_weights(struct cm_draw_vertex *v, const struct cm_drawing *drawing,
                         const struct cm_node_proto *node);
int cm_draw_family_of(const struct cm_node_proto *node);

/* Nodes whose results no input changes, by their numbers: they are not drawn. */
bool *cm_draw_find_constants(struct cm_arena *arena, const struct cm_outline *graph);
/* The dimensions of an initializer of the model; NULL: it has none of this name. */
const struct cm_int64s *cm_draw_find_weight(const struct cm_drawing *drawing, struct cm_str name);
/* printf("%.*s", CM_DRAW_CUT(name, 24)): no more than so many bytes of it. */
#define CM_DRAW_CUT(s, most)                                                                       \
    ((s).size < (most) ? (int)(s).size : (int)(most)), ((s).data ? (s).data : "")

size_t cm_draw_add_panel(struct cm_drawing *drawing, const char *title);
void cm_draw_build_panel(struct cm_draw_builder *b);

#endif
