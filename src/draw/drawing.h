/* Drawings of models: panels of vertices and edges, laid out in ranks, written as SVG, as a page of
 * HTML and as DOT. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_DRAW_DRAWING_H
#define CM_DRAW_DRAWING_H

#include "base/array.h"
#include "onnx/model_outline.h"
#include "onnx/syntax_print.h"

enum cm_draw_shape { CM_DRAW_BOX, CM_DRAW_OVAL, CM_DRAW_OUTER, CM_DRAW_GROUP };
enum { CM_DRAW_LINES = 3, CM_DRAW_TEXT = 48 };

/* A box or oval. Texts are cut to fit; they are from the model and may hold any bytes. */
struct cm_draw_vertex {
    enum cm_draw_shape shape;
    char title[CM_DRAW_TEXT], lines[CM_DRAW_LINES][CM_DRAW_TEXT];
    int line_count;
    char label[CM_DRAW_TEXT];           /* the type of its result, under it */
    const struct cm_outline_node *node; /* or NULL */
    struct cm_str name;                 /* of a value or group, for tips */
    int family;                         /* of its operator, see cm_draw_families */
    int panel;                          /* that shows what is inside; -1: none */
    int group;                          /* of a group: its number, and how many nodes it has */
    size_t node_count;
    /* Layout: the centre, the size of the box, the room that it takes with its label. */
    int rank;
    double x, y, width, height, room;
};

struct cm_draw_edge {
    size_t from, to;
    size_t first_bend, bend_count; /* among the bends of the panel, downwards */
};

/* Where an edge passes a rank without a vertex. */
struct cm_draw_bend {
    double x, top, bottom;
};

struct cm_draw_panel {
    char title[200];
    CM_ARRAY(struct cm_draw_vertex) vertices;
    CM_ARRAY(struct cm_draw_edge) edges;
    struct cm_draw_bend *bends;
    double width, height;
};

struct cm_drawing {
    struct cm_arena *arena, *scratch; /* scratch is empty between the functions below */
    const struct cm_model_proto *model;
    const struct cm_outlines *outlines;
    struct cm_map initializers; /* names to numbers of dims */
    CM_ARRAY(const struct cm_int64s *) dims;
    /* The first is the model, then training info, then what is folded. */
    CM_ARRAY(struct cm_draw_panel) panels;
    bool with_inner; /* what is folded is drawn too */
    size_t shown;    /* panels that are drawn at once; a click opens one of the others */
};

struct cm_draw_family {
    const char *name, *fill, *operators; /* names, each between two blanks */
};
extern const struct cm_draw_family cm_draw_families[];
extern const int cm_draw_family_count;

/* Prefixes of names; or one of "auto", "functions" and "none". */
struct cm_draw_folds {
    const char *const *items;
    size_t count;
};

/* Fills a drawing. The caller has set arena, scratch, model and with_inner. */
void cm_draw_build(struct cm_drawing *drawing, const struct cm_draw_folds *folds);
/* Sets sizes and places. */
void cm_draw_layout(struct cm_drawing *drawing, struct cm_draw_panel *panel);
/* Boxes that are drawn at once. */
size_t cm_draw_count(const struct cm_drawing *drawing);

void cm_draw_write_svg(struct cm_printer *to, const struct cm_drawing *drawing);
void cm_draw_write_html(struct cm_printer *to, const struct cm_drawing *drawing);
void cm_draw_write_dot(struct cm_printer *to, const struct cm_drawing *drawing);

#endif
