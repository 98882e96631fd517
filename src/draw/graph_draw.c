/* A drawing as SVG, as a page with folds that open, and as DOT. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/drawing.h"

#include <math.h>
#include <stdlib.h>

enum { TITLE_ROOM = 34, LEGEND_ROOM = 30, PANEL_GAP = 40 };

/* Text as XML has it; control characters and bytes that are no UTF-8 become "?". */
static void draw_put_xml(struct cm_printer *to, struct cm_str text)
{
    for (size_t i = 0; i < text.size;) {
        const struct cm_str rest = {text.data + i, text.size - i};
        const unsigned char c = (unsigned char)rest.data[0];
        const size_t length = cm_str_character(rest);

        if (c == '<')
            cm_put_text(to, "&lt;");
        else if (c == '>')
            cm_put_text(to, "&gt;");
        else if (c == '&')
            cm_put_text(to, "&amp;");
        else if (c == '"')
            cm_put_text(to, "&quot;");
        else if (!length || c < 32 || c == 127)
            cm_put_text(to, "?");
        else
            cm_put_str(to, (struct cm_str){rest.data, length});
        i += length ? length : 1;
    }
}

static const char *fill_of(const struct cm_draw_vertex *v)
{
    return v->shape == CM_DRAW_BOX     ? cm_draw_families[v->family].fill
           : v->shape == CM_DRAW_GROUP ? "#ffffff"
           : v->shape == CM_DRAW_OUTER ? "#fbfbfd"
                                       : "#eef1f6";
}

static void put_tip(struct cm_printer *to, const struct cm_draw_vertex *v)
{
    const struct cm_node_proto *node = v->node ? v->node->proto : NULL;

    cm_put_text(to, "<title>");
    draw_put_xml(to, node ? node->op_type : v->name);
    if (node && node->name.size) {
        cm_put_text(to, "\n");
        draw_put_xml(to, node->name);
    }
    for (size_t i = 0; node && i < node->input.count && i < 12; i++) {
        cm_put_text(to, "\nin ");
        draw_put_xml(to, node->input.items[i]);
    }
    for (size_t i = 0; node && i < node->output.count && i < 12; i++) {
        cm_put_text(to, "\nout ");
        draw_put_xml(to, node->output.items[i]);
    }
    cm_put_text(to, "</title>");
}

static void put_text(struct cm_printer *to, double x, double y, const char *style, const char *text)
{
    cm_put_format(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
    draw_put_xml(to, cm_str(text));
    cm_put_text(to, "</text>\n");
}

static void put_vertex(struct cm_printer *to, const struct cm_draw_vertex *v, bool links)
{
    const bool round = v->shape == CM_DRAW_OVAL || v->shape == CM_DRAW_OUTER;
    const double left = v->x - v->width / 2, top = v->y - v->height / 2;

    if (links && v->panel >= 0)
        cm_put_format(to, "<a href=\"#p%d\">", v->panel);
    cm_put_text(to, "<g>");
    put_tip(to, v);
    if (v->shape == CM_DRAW_GROUP) /* a second sheet under it */
        cm_put_format(to,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"5\" "
                      "class=\"box\" fill=\"#f0f0f4\"/>\n",
                      left + 4, top + 4, v->width, v->height);
    cm_put_format(to,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" "
                  "class=\"%s\" fill=\"%s\"/>\n",
                  left, top, v->width, v->height, round ? v->height / 2 : 5.0,
                  v->shape == CM_DRAW_OUTER ? "outer" : "box", fill_of(v));
    put_text(to, v->x, top + 18, round ? "value" : "op", v->title);
    for (int i = 0; i < v->line_count; i++)
        put_text(to, v->x, top + 33 + 14 * i, "line", v->lines[i]);
    if (v->label[0])
        for (int pass = 0; pass < 2; pass++) /* the first parts it from edges */
            put_text(to, v->x + 7, top + v->height + 14, pass ? "label" : "label halo", v->label);
    cm_put_text(to, "</g>");
    cm_put_text(to, links && v->panel >= 0 ? "</a>\n" : "\n");
}

/* Where edges enter a vertex: side by side, in the order of where they come from. */
struct entry {
    size_t edge, to;
    double x;
};

static int by_target(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;

    if (p->to != q->to)
        return (p->to > q->to) - (p->to < q->to);
    return (p->x > q->x) - (p->x < q->x);
}

static double *find_entries(struct cm_arena *scratch, const struct cm_draw_panel *panel)
{
    struct entry *entries = CM_NEW_ARRAY(scratch, struct entry, panel->edges.count + 1);
    double *out = CM_NEW_ARRAY(scratch, double, panel->edges.count + 1);

    for (size_t e = 0; e < panel->edges.count; e++) {
        const struct cm_draw_edge *edge = &panel->edges.items[e];
        entries[e] = (struct entry){e, edge->to,
                                    edge->bend_count
                                        ? panel->bends[edge->first_bend + edge->bend_count - 1].x
                                        : panel->vertices.items[edge->from].x};
    }
    if (panel->edges.count)
        qsort(entries, panel->edges.count, sizeof *entries, by_target);
    for (size_t i = 0, end; i < panel->edges.count; i = end) {
        const struct cm_draw_vertex *v = &panel->vertices.items[entries[i].to];
        for (end = i + 1; end < panel->edges.count && entries[end].to == entries[i].to;)
            end++;
        const double count = (double)(end - i), step = fmin(16, v->width * 0.8 / count);
        for (size_t k = i; k < end; k++)
            out[entries[k].edge] = v->x + ((double)(k - i) - (count - 1) / 2) * step;
    }
    return out;
}

static void put_edge(struct cm_printer *to, const struct cm_draw_panel *panel,
                     const struct cm_draw_edge *edge, double end_x)
{
    const struct cm_draw_vertex *a = &panel->vertices.items[edge->from],
                                *b = &panel->vertices.items[edge->to];
    double x = a->x, y = a->y + a->height / 2;

    cm_put_format(to, "<path class=\"edge\" d=\"M%.1f %.1f", x, y);
    for (size_t i = 0; i <= edge->bend_count; i++) {
        const struct cm_draw_bend *bend =
            i < edge->bend_count ? &panel->bends[edge->first_bend + i] : NULL;
        const double next_x = bend ? bend->x : end_x;
        const double next_y = bend ? bend->top : b->y - b->height / 2 - 4;

        if (fabs(next_x - x) < 0.5)
            cm_put_format(to, "L%.1f %.1f", next_x, next_y);
        else
            cm_put_format(to, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, (y + next_y) / 2, next_x,
                          (y + next_y) / 2, next_x, next_y);
        x = next_x;
        y = next_y;
        if (bend && bend->bottom > bend->top) {
            cm_put_format(to, "L%.1f %.1f", x, bend->bottom);
            y = bend->bottom;
        }
    }
    cm_put_text(to, "\" marker-end=\"url(#tip)\"/>\n");
}

static void put_panel(struct cm_printer *to, struct cm_arena *scratch,
                      const struct cm_draw_panel *panel, bool links)
{
    const double *entries = find_entries(scratch, panel);

    for (size_t e = 0; e < panel->edges.count; e++)
        put_edge(to, panel, &panel->edges.items[e], entries[e]);
    for (size_t v = 0; v < panel->vertices.count; v++)
        put_vertex(to, &panel->vertices.items[v], links);
    cm_arena_reset(scratch);
}

static void put_style(struct cm_printer *to)
{
    cm_put_text(
        to, "<style>\n"
            "text{font-family:Helvetica,Arial,sans-serif;text-anchor:middle;fill:#1c2430}\n"
            ".op{font-size:13px;font-weight:600}.value{font-size:12px}\n"
            ".line{font-size:10.5px;fill:#4a5363}\n"
            ".label{font-size:10px;fill:#5b6a86;text-anchor:start}\n"
            ".halo{fill:#fdfdfe;stroke:#fdfdfe;stroke-width:3px}\n"
            ".head{font-size:14px;font-weight:600;text-anchor:start}\n"
            ".key{font-size:11px;text-anchor:start;fill:#4a5363}\n"
            ".box{stroke:#8a94a6;stroke-width:1}\n"
            ".outer{stroke:#8a94a6;stroke-width:1;stroke-dasharray:4 3}\n"
            ".cluster{fill:none;stroke:#c3cad6;stroke-width:1}\n"
            ".edge{fill:none;stroke:#8a94a6;stroke-width:1.2}\n"
            "</style>\n"
            "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"3\" refY=\"4\" markerWidth=\"7\" "
            "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#8a94a6\"/>"
            "</marker></defs>\n");
}

static double put_legend(struct cm_printer *to, const struct cm_drawing *drawing)
{
    bool used[32] = {false};
    double x = 20;

    for (size_t p = 0; p < drawing->shown; p++)
        for (size_t v = 0; v < drawing->panels.items[p].vertices.count; v++)
            if (drawing->panels.items[p].vertices.items[v].shape == CM_DRAW_BOX)
                used[drawing->panels.items[p].vertices.items[v].family] = true;
    for (int f = 0; f < cm_draw_family_count; f++) {
        if (!used[f])
            continue;
        if (to) {
            cm_put_format(
                to,
                "<rect x=\"%.1f\" y=\"12\" width=\"12\" height=\"12\" rx=\"2\" class=\"box\" "
                "fill=\"%s\"/>",
                x, cm_draw_families[f].fill);
            put_text(to, x + 17, 22, "key", cm_draw_families[f].name);
        }
        x += 30 + 6.2 * (double)strlen(cm_draw_families[f].name);
    }
    return x;
}

/* Panels side by side, those of training info in frames. */
static void put_svg(struct cm_printer *to, const struct cm_drawing *drawing, size_t first,
                    size_t count, bool links)
{
    const bool framed = count > 1;
    double width = 0, height = 0, x = 0;

    for (size_t p = first; p < first + count; p++) {
        width += drawing->panels.items[p].width + (p > first ? PANEL_GAP : 0);
        height = fmax(height, drawing->panels.items[p].height);
    }
    const double top = (first == 0 ? LEGEND_ROOM : 0) + (framed ? TITLE_ROOM : 0);
    if (first == 0)
        width = fmax(width, put_legend(NULL, drawing));
    width += framed ? 20 : 0;
    height += top + (framed ? 12 : 0);
    cm_put_format(to,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\">\n",
                  width, height, width, height);
    put_style(to);
    cm_put_format(to, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fdfdfe\"/>\n", width, height);
    if (first == 0)
        put_legend(to, drawing);
    for (size_t p = first; p < first + count; p++) {
        const struct cm_draw_panel *panel = &drawing->panels.items[p];
        cm_put_format(to, "<g transform=\"translate(%.1f %.1f)\">\n", x + (framed ? 10 : 0), top);
        if (framed) {
            cm_put_format(to,
                          "<rect x=\"0\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" rx=\"8\" "
                          "class=\"cluster\"/>\n",
                          -TITLE_ROOM + 4, panel->width, panel->height + TITLE_ROOM - 4);
            put_text(to, 14, -TITLE_ROOM + 24, "head", panel->title);
        }
        put_panel(to, drawing->scratch, panel, links);
        cm_put_text(to, "</g>\n");
        x += panel->width + PANEL_GAP;
    }
    cm_put_text(to, "</svg>\n");
}

void cm_draw_write_svg(struct cm_printer *to, const struct cm_drawing *drawing)
{
    put_svg(to, drawing, 0, drawing->shown, false);
}

void cm_draw_write_html(struct cm_printer *to, const struct cm_drawing *drawing)
{
    cm_put_text(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>");
    draw_put_xml(to, cm_str(drawing->panels.items[0].title));
    cm_put_text(to,
                "</title>\n<style>body{margin:16px;background:#fdfdfe;font-family:Helvetica,Arial,"
                "sans-serif;color:#1c2430}summary{cursor:pointer;padding:6px;font-weight:600}"
                "details{border:1px solid #c3cad6;border-radius:8px;margin:10px 0;padding:4px;"
                "overflow:auto}a:hover rect{stroke:#2b5fb3}</style></head><body>\n<h1>");
    draw_put_xml(to, cm_str(drawing->panels.items[0].title));
    cm_put_text(to, "</h1>\n<div style=\"overflow:auto\">\n");
    put_svg(to, drawing, 0, drawing->shown, true);
    cm_put_text(to, "</div>\n");
    for (size_t p = drawing->shown; p < drawing->panels.count; p++) {
        cm_put_format(to, "<details id=\"p%zu\"><summary>", p);
        draw_put_xml(to, cm_str(drawing->panels.items[p].title));
        cm_put_text(to, " <a href=\"#\">top</a></summary>\n");
        put_svg(to, drawing, p, 1, true);
        cm_put_text(to, "</details>\n");
    }
    cm_put_text(to, "<script>\n"
                    "function show(){var d=document.getElementById(location.hash.slice(1));"
                    "if(d&&'open'in d){d.open=true;d.scrollIntoView()}}\n"
                    "addEventListener('hashchange',show);addEventListener('load',show);\n"
                    "</script></body></html>\n");
}

/* ---- DOT ---- */

static void put_dot_text(struct cm_printer *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            cm_put_text(to, "\\");
        cm_put(to, (unsigned char)*text < 32 ? "?" : text, 1);
    }
}

void cm_draw_write_dot(struct cm_printer *to, const struct cm_drawing *drawing)
{
    cm_put_text(
        to,
        "digraph model {\nnode [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n");
    for (size_t p = 0; p < drawing->shown; p++) {
        const struct cm_draw_panel *panel = &drawing->panels.items[p];

        cm_put_format(to, "subgraph cluster_%zu {\nlabel=\"", p);
        put_dot_text(to, panel->title);
        cm_put_text(to, "\";\n");
        for (size_t v = 0; v < panel->vertices.count; v++) {
            const struct cm_draw_vertex *vertex = &panel->vertices.items[v];
            cm_put_format(to, "n%zu_%zu [fillcolor=\"%s\"%s, label=\"", p, v, fill_of(vertex),
                          vertex->shape == CM_DRAW_OVAL || vertex->shape == CM_DRAW_OUTER
                              ? ", shape=oval"
                              : "");
            put_dot_text(to, vertex->title);
            for (int i = 0; i < vertex->line_count; i++) {
                cm_put_text(to, "\\n");
                put_dot_text(to, vertex->lines[i]);
            }
            cm_put_text(to, "\"];\n");
        }
        for (size_t e = 0; e < panel->edges.count; e++) {
            cm_put_format(to, "n%zu_%zu -> n%zu_%zu [label=\"", p, panel->edges.items[e].from, p,
                          panel->edges.items[e].to);
            put_dot_text(to, panel->vertices.items[panel->edges.items[e].from].label);
            cm_put_text(to, "\"];\n");
        }
        cm_put_text(to, "}\n");
    }
    cm_put_text(to, "}\n");
}
