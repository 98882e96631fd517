/* What the files of `cameo graph` share: panels of vertices and edges, laid out in ranks. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_DRAWING_H
#define CLI_DRAWING_H

#include "cli.h"

enum graph_shape { GRAPH_BOX, GRAPH_OVAL, GRAPH_OUTER, GRAPH_GROUP };
enum { GRAPH_LINES = 3, GRAPH_TEXT = 48 };

/* A box or oval. Texts are cut to fit; they are from the model and may hold any bytes. */
struct graph_vertex {
    enum graph_shape shape;
    char title[GRAPH_TEXT], lines[GRAPH_LINES][GRAPH_TEXT];
    int line_count;
    char label[GRAPH_TEXT];        /* the type of its result, under it */
    const struct cameo_node *node; /* or NULL */
    struct cameo_text name;        /* of a value or group, for tips */
    int family;                    /* of its operator, see graph_families */
    int panel;                     /* that shows what is inside; -1: none */
    int group;                     /* of a group: its number, and how many nodes it has */
    size_t node_count;
    /* Layout: the centre, the size of the box, the room that it takes with its label. */
    int rank;
    double x, y, width, height, room;
};

struct graph_edge {
    size_t from, to;
    size_t first_bend, bend_count; /* among the bends of the panel, downwards */
};

/* Where an edge passes a rank without a vertex. */
struct graph_bend {
    double x, top, bottom;
};

struct graph_panel {
    char title[200];
    struct graph_vertex *vertices;
    struct graph_edge *edges;
    struct graph_bend *bends;
    size_t vertex_count, vertex_room, edge_count, edge_room;
    double width, height;
};

struct graph_drawing {
    const struct cameo_model *model;
    struct graph_panel
        *panels; /* the first is the model, then training info, then what is folded */
    size_t panel_count, panel_room;
    void *names;     /* of groups, which vertices show */
    bool with_inner; /* what is folded is drawn too */
    size_t shown;    /* panels that are drawn at once; the others are behind clicks */
};

struct graph_family {
    const char *name, *fill, *operators; /* names with a blank before and behind each */
};
extern const struct graph_family graph_families[];
extern const int graph_family_count;

/* Zeroed memory; does not return when there is none. Who draws defines both: the command ends then.
 */
void *graph_memory(size_t count, size_t size);
/* Room for one more item. */
void *graph_grow(void *items, size_t count, size_t *room, size_t size);

/* Fills the drawing. folds are prefixes of names, "auto", "functions" or "none". */
void graph_build(struct graph_drawing *drawing, const struct cli_texts *folds);
/* Sets sizes and places. */
void graph_layout(struct graph_panel *panel);

void graph_write_svg(FILE *to, const struct graph_drawing *drawing);
void graph_write_html(FILE *to, const struct graph_drawing *drawing);
void graph_write_dot(FILE *to, const struct graph_drawing *drawing);

#endif
