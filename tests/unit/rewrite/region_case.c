/* Graphs with groups to find. */
// SPDX-License-Identifier: Apache-2.0
#include "region_case.h"

#define ADAM(w)                                                                                    \
    w "mk = Mul(b1, " w "m) " w "mn = Mul(r1, " w "g) " w "m2 = Add(" w "mk, " w "mn) " w          \
      "sq = Mul(" w "g, " w "g) " w "vk = Mul(b2, " w "v) " w "vn = Mul(r2, " w "sq) " w           \
      "v2 = Add(" w "vk, " w "vn) " w "sp = Sqrt(" w "v2) " w "co = Div(" w "sp, root) " w         \
      "si = Add(" w "co, eps) " w "di = Div(" w "m2, " w "si) " w "mo = Mul(rate, " w "di) " w     \
      "2 = Sub(" w ", " w "mo)\n"

const char region_adam[] =
    MAIN("(float rate, float root, float[3] x, float[3] xg, float[3] xm, float[3] xv,"
         " float[3] y, float[3] yg, float[3] ym, float[3] yv)"
         " => (float[3] x2, float[3] xm2, float[3] xv2, float[3] y2, float[3] ym2, float[3] yv2)"
         "<float b1 = {0.9}, float b2 = {0.999}, float r1 = {0.1}, float r2 = {0.001},"
         " float eps = {1e-8}>",
         ADAM("x") ADAM("y"));

void region_fuse(struct cm_graph *graph)
{
    const struct cm_pass_options options = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_pass_regions(graph, &options, &err), &err);
}

bool region_is(const struct cm_node *node)
{
    return node->op && node->op->effects & CM_REGION;
}

void region_put_nodes(char *line, size_t room, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const size_t suffix = region_is(node) ? strlen("Region") : 0;
        size_t at = strlen(line);
        snprintf(line + at, room - at, "%s%.*s", node->prev ? " " : "",
                 (int)(node->op_type.size - suffix), node->op_type.data);
        for (size_t i = 0; i < node->n_bodies; i++) {
            at = strlen(line);
            snprintf(line + at, room - at, region_is(node) ? "(" : "[");
            region_put_nodes(line, room, node->bodies[i].graph);
            at = strlen(line);
            snprintf(line + at, room - at, region_is(node) ? ")" : "]");
        }
    }
}

struct cm_graph *region_negated(struct cm_arena *arena, size_t count, size_t n_outputs)
{
    struct cm_graph *graph = graph_new(arena);
    cm_value value = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 3));
    cm_value outputs[256];
    for (size_t i = 0; i < count; i++) {
        value = GRAPH_ADD(graph, "Neg", value);
        if (i < CM_COUNT(outputs))
            outputs[i] = value;
    }
    outputs[n_outputs] = value;
    cm_graph_set_outputs(graph, outputs, n_outputs + 1);
    return graph;
}
