/* Minimum cut by maximum flow, level by level (Dinic). A net is an edge of its weight between two
 * nodes of its own, which all its members lead into and out of. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/min_cut.h"

#include "base/array.h"
#include "base/compiler.h"

static const int64_t UNLIMITED = INT64_MAX / 4;

/* Edges come in pairs: number e ^ 1 goes back. */
struct edge {
    uint32_t to, next; /* the next edge from the same node; 0: none */
    int64_t room;
};

struct cm_min_cut {
    struct cm_arena *arena;
    CM_ARRAY(struct edge) edges;
    CM_ARRAY(uint32_t) nodes; /* first edge of each node */
    uint32_t *level;          /* steps from the near side, +1; 0: not reached */
    uint32_t net;             /* the node that members of the last net lead into; out of the next */
};

static uint32_t new_node(struct cm_min_cut *cut)
{
    *CM_PUSH(cut->arena, &cut->nodes) = 0;
    return (uint32_t)cut->nodes.count - 1;
}

static void half_edge(struct cm_min_cut *cut, uint32_t from, uint32_t to, int64_t room)
{
    *CM_PUSH(cut->arena, &cut->edges) = (struct edge){to, cut->nodes.items[from], room};
    cut->nodes.items[from] = (uint32_t)cut->edges.count - 1;
}

static void new_edge(struct cm_min_cut *cut, uint32_t from, uint32_t to, int64_t room)
{
    half_edge(cut, from, to, room);
    half_edge(cut, to, from, 0);
}

struct cm_min_cut *cm_min_cut_new(struct cm_arena *arena, size_t members)
{
    struct cm_min_cut *cut = CM_NEW(arena, struct cm_min_cut);
    cut->arena = arena;
    for (size_t i = 0; i < members + CM_CUT_FIRST; i++)
        new_node(cut);
    for (int i = 0; i < 2; i++) /* edge 0 ends lists: nobody uses the first pair */
        *CM_PUSH(arena, &cut->edges) = (struct edge){0};
    return cut;
}

void cm_min_cut_net(struct cm_min_cut *cut, int64_t weight)
{
    cut->net = new_node(cut);
    new_edge(cut, cut->net, new_node(cut), weight);
}

void cm_min_cut_join(struct cm_min_cut *cut, size_t member)
{
    new_edge(cut, (uint32_t)member, cut->net, UNLIMITED);
    new_edge(cut, cut->net + 1, (uint32_t)member, UNLIMITED);
}

/* Says how far every node is from the near side; true when the far side can be reached. */
static bool find_levels(struct cm_min_cut *cut, uint32_t *queue, uint64_t *budget)
{
    size_t head = 0, tail = 0;

    memset(cut->level, 0, cut->nodes.count * sizeof *cut->level);
    queue[tail++] = CM_CUT_NEAR;
    cut->level[CM_CUT_NEAR] = 1;
    while (head < tail) {
        const uint32_t at = queue[head++];
        for (uint32_t e = cut->nodes.items[at]; e; e = cut->edges.items[e].next) {
            const struct edge *edge = &cut->edges.items[e];
            *budget -= *budget > 0;
            if (!edge->room || cut->level[edge->to])
                continue;
            cut->level[edge->to] = cut->level[at] + 1;
            queue[tail++] = edge->to;
        }
    }
    return cut->level[CM_CUT_FAR] != 0;
}

/* Sends what fits along a path of edges, and returns how many of them may be used again. */
static size_t send(struct cm_min_cut *cut, const uint32_t *path, size_t length, int64_t *weight)
{
    int64_t flow = UNLIMITED;
    size_t keep = length;

    for (size_t i = 0; i < length; i++)
        if (cut->edges.items[path[i]].room < flow)
            flow = cut->edges.items[path[i]].room;
    for (size_t i = length; i-- > 0;) {
        cut->edges.items[path[i]].room -= flow;
        cut->edges.items[path[i] ^ 1].room += flow;
        if (!cut->edges.items[path[i]].room)
            keep = i;
    }
    *weight += flow;
    return keep;
}

/* Fills all paths that go up one level with every edge. arcs has the edge that each node tries
 * next: what failed once is not tried again. */
static void fill_paths(struct cm_min_cut *cut, uint32_t *arcs, uint32_t *path, uint64_t *budget,
                       int64_t *weight)
{
    uint32_t at = CM_CUT_NEAR;
    size_t length = 0;

    memcpy(arcs, cut->nodes.items, cut->nodes.count * sizeof *arcs);
    while (*budget) {
        if (at == CM_CUT_FAR) {
            length = send(cut, path, length, weight);
            at = cut->edges.items[path[length] ^ 1].to;
            continue;
        }
        const uint32_t e = arcs[at];
        const struct edge *edge = &cut->edges.items[e];
        *budget -= 1;
        if (e && edge->room && cut->level[edge->to] == cut->level[at] + 1) {
            path[length++] = e;
            at = edge->to;
        } else if (e) {
            arcs[at] = edge->next;
        } else if (length) { /* a dead end */
            at = cut->edges.items[path[--length] ^ 1].to;
            arcs[at] = cut->edges.items[arcs[at]].next;
        } else {
            return;
        }
    }
}

bool cm_min_cut_solve(struct cm_min_cut *cut, uint64_t *budget, int64_t *weight)
{
    uint32_t *queue = CM_NEW_ARRAY(cut->arena, uint32_t, cut->nodes.count);
    uint32_t *arcs = CM_NEW_ARRAY(cut->arena, uint32_t, cut->nodes.count);

    cut->level = CM_NEW_ARRAY(cut->arena, uint32_t, cut->nodes.count);
    *weight = 0;
    while (find_levels(cut, queue, budget) && *budget)
        fill_paths(cut, arcs, queue, budget, weight);
    return *budget > 0;
}

bool cm_min_cut_is_near(const struct cm_min_cut *cut, size_t member)
{
    return cut->level[member] != 0;
}
