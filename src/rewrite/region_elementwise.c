/* Elementwise regions: groups of connected elementwise nodes of one shape.
 *
 * A region stands where its last member stood, so whatever else reads a member must stand after
 * that place. Nodes are looked at in order, and a node joins the groups of its operands as long as
 * nothing outside them has read a result: the first reader that does not join closes the group. So
 * whoever reads a group stands behind all of it, the groups with the other nodes stay in an order,
 * and there is no cycle. What a group gives or keeps at once is counted when it is complete; where
 * that is too much it is cut, in order, which leaves such groups. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/region_pass.h"

enum {
    MEMBERS = 64, /* of a group */
    LIVE = 16, /* values of a body that wait for a reader at one time: blocks of them are cached */
    NUMBERS = 128, /* readings of constants in a body */
    SHARED = 3,    /* readers of a single number that join the node that computes it */
    ROUNDS = 4,    /* a region stands behind its first member, so that what this one closed may be
                      open in the next round; hardly any graph has more of these */
};

static const uint32_t NOBODY = UINT32_MAX;

struct element_node {
    struct cm_node *node;
    const struct cm_type *type; /* of its result; NULL: cannot be in a region */
    uint32_t group; /* another node of its group, itself for the one that stands for it */
    /* Of a group: */
    uint32_t count;
    uint32_t before; /* the place of the first node in whose bodies a member is read */
    bool closed;
};

struct element_nodes {
    struct cm_region_work *work;
    struct element_node *items;
    uint32_t count;
};

/* ---- which nodes ---- */

/* Sizes on their way to a Reshape are known before there is data, if the nodes can be seen. */
static bool is_shape_arithmetic(const struct cm_known *known)
{
    for (size_t i = 0; known && i < known->count; i++)
        if (known->items[i].is_number || known->items[i].symbol)
            return true;
    return false;
}

static uint32_t place_of(const struct element_nodes *nodes, const struct cm_node *node)
{
    return node && node->graph == nodes->work->graph ? cm_mark_get(&nodes->work->marks, node)
                                                     : NOBODY;
}

/* The first node of this graph in whose bodies the value is read. */
static uint32_t first_nested_reader(const struct element_nodes *nodes, cm_value value)
{
    const struct cm_graph *graph = nodes->work->graph;
    uint32_t first = NOBODY;
    for (const struct cm_use *use = cm_value_get(graph->module, value)->uses; use;
         use = use->next) {
        const struct cm_graph *at = use->graph;
        while (at != graph && at->owner && at->owner->graph != graph)
            at = at->owner->graph;
        if (at == graph)
            continue;
        const uint32_t place = at->owner ? cm_mark_get(&nodes->work->marks, at->owner) : 0;
        first = place < first ? place : first;
    }
    return first;
}

static void look_at_nodes(struct element_nodes *nodes)
{
    const struct cm_graph *graph = nodes->work->graph;
    nodes->items = CM_NEW_ARRAY(nodes->work->scratch, struct element_node, graph->n_nodes);
    nodes->count = 0;
    nodes->work->marks = cm_marks_begin(graph->module);
    for (struct cm_node *node = graph->first; node; node = node->next) {
        struct element_node *item = &nodes->items[nodes->count];
        cm_mark_set(&nodes->work->marks, node, nodes->count);
        *item = (struct element_node){
            .node = node, .group = nodes->count++, .count = 1, .before = NOBODY};
        if (!cm_region_is_elementwise(node))
            continue;
        const struct cm_fact *fact = &cm_value_get(node->module, node->outputs[0])->fact;
        if (!is_shape_arithmetic(fact->known))
            item->type = fact->type;
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->items[i].type)
            nodes->items[i].before = first_nested_reader(nodes, nodes->items[i].node->outputs[0]);
}

/* ---- groups ---- */

static uint32_t group_of(struct element_nodes *nodes, uint32_t i)
{
    struct element_node *items = nodes->items;
    while (items[i].group != i) {
        items[i].group = items[items[i].group].group;
        i = items[i].group;
    }
    return i;
}

/* A single number for several others, a step size, would tie together whatever reads it: it ends
 * its group. */
static bool is_handed_out(const struct element_nodes *nodes, const struct element_node *maker)
{
    const struct cm_value_def *def = cm_value_get(maker->node->module, maker->node->outputs[0]);
    uint32_t readers = 0;

    if (!cm_type_is_single(maker->type))
        return false;
    if (def->n_uses > (size_t)2 * SHARED)
        return true;
    for (const struct cm_use *use = def->uses; use; use = use->next) {
        if (!use->node) /* an output of a graph joins nobody */
            continue;
        const uint32_t at = place_of(nodes, use->node);
        const struct cm_type *type = at == NOBODY ? NULL : nodes->items[at].type;
        if (!type || !cm_type_same_shape(type, maker->type))
            return true;
        readers++;
    }
    return readers > SHARED;
}

/* Who computes operand i of a node, if that can be in a region; else NOBODY. */
static uint32_t maker_of(const struct element_nodes *nodes, const struct cm_node *node, int i)
{
    const cm_value value = node->inputs[i].value;
    const struct cm_node *maker = value ? cm_value_get(node->module, value)->node : NULL;
    const uint32_t at = place_of(nodes, maker);
    return at != NOBODY && nodes->items[at].type ? at : NOBODY;
}

/* Codes that others read too lie in memory anyhow: what makes wider numbers of them begins a group,
 * so that the codes are read again and the numbers are not stored. */
static bool begins_with_codes(const struct element_node *node, const struct element_node *maker)
{
    const struct cm_value_def *def = cm_value_get(maker->node->module, maker->node->outputs[0]);
    const enum cm_dtype from = maker->type->dtype;
    return def->n_uses > 1 && (from == CM_UINT8 || from == CM_INT8) &&
           cm_dtype_info(node->type->dtype)->bits > 8;
}

static void join_operand(struct element_nodes *nodes, uint32_t at, uint32_t maker)
{
    struct element_node *items = nodes->items;
    if (begins_with_codes(&items[at], &items[maker]) ||
        !cm_type_same_shape(items[maker].type, items[at].type) ||
        items[maker].node->phase != items[at].node->phase || is_handed_out(nodes, &items[maker]))
        return;
    const uint32_t from = group_of(nodes, maker), to = group_of(nodes, at);
    if (from == to || items[from].closed || at >= items[from].before ||
        items[from].count + items[to].count > MEMBERS)
        return;
    /* The smaller joins the larger, so that ways to the node that stands for all stay short. */
    const uint32_t root = items[from].count > items[to].count ? from : to;
    const uint32_t other = root == from ? to : from;
    items[other].group = root;
    items[root].count += items[other].count;
    if (items[other].before < items[root].before)
        items[root].before = items[other].before;
}

static void find_groups(struct element_nodes *nodes)
{
    for (uint32_t at = 0; at < nodes->count; at++) {
        const struct element_node *item = &nodes->items[at];
        for (int i = 0; item->type && i < item->node->n_inputs; i++) {
            const uint32_t maker = maker_of(nodes, item->node, i);
            if (maker != NOBODY)
                join_operand(nodes, at, maker);
        }
        for (int i = 0; i < item->node->n_inputs; i++) {
            const uint32_t maker = maker_of(nodes, item->node, i);
            if (maker != NOBODY && group_of(nodes, maker) != group_of(nodes, at))
                nodes->items[group_of(nodes, maker)].closed = true;
        }
    }
}

/* ---- regions ---- */

struct element_sums {
    size_t operands, numbers, results, live, edges;
};

static void add_operand(cm_value *seen, struct element_sums *sums, cm_value value)
{
    for (size_t i = 0; i < sums->operands && i < CM_REGION_OPERANDS; i++)
        if (seen[i] == value)
            return;
    if (sums->operands < CM_REGION_OPERANDS)
        seen[sums->operands] = value;
    sums->operands++;
}

static struct element_sums sum_up(const struct cm_region_group *group)
{
    cm_value seen[CM_REGION_OPERANDS];
    size_t last[MEMBERS] = {0}, ends[MEMBERS] = {0};
    struct element_sums sums = {0};

    for (size_t m = 0; m < group->count; m++) {
        const struct cm_node *node = group->members[m];
        for (int i = 0; i < node->n_inputs; i++) {
            const cm_value value = node->inputs[i].value;
            const struct cm_node *maker = value ? cm_value_get(node->module, value)->node : NULL;
            if (cm_region_is_member(group, maker)) {
                last[cm_mark_get(group->marks, maker)] = m;
                sums.edges++;
            } else if (value && cm_region_is_number(node->module, value)) {
                sums.numbers++;
            } else if (value) {
                add_operand(seen, &sums, value);
            }
        }
        sums.results += cm_region_is_result(group, node);
    }
    for (size_t m = 0; m < group->count; m++)
        ends[last[m]] += last[m] > m;
    for (size_t m = 0, live = 0; m < group->count; m++) {
        live += last[m] > m;
        live -= ends[m];
        sums.live = live > sums.live ? live : sums.live;
    }
    return sums;
}

/* A region, or several where one would be too large. */
static enum cm_status make_regions(struct cm_region_work *work, struct cm_node *const *members,
                                   size_t count)
{
    const struct cm_region_group group = {&work->marks, members, count};
    if (count < 2)
        return CM_OK;
    cm_region_mark(&group);
    const struct element_sums sums = sum_up(&group);
    if (sums.operands > CM_REGION_OPERANDS || sums.numbers > NUMBERS ||
        sums.results > CM_REGION_RESULTS || sums.live > LIVE) {
        CM_TRY(make_regions(work, members, count / 2));
        return make_regions(work, members + count / 2, count - count / 2);
    }
    /* Nothing to gain; nothing to compute at run time; nobody who reads it. */
    if (!sums.edges || !sums.operands || !sums.results)
        return CM_OK;
    return cm_region_make(work, "ElementwiseRegion", &group, 0);
}

/* Members by group, each group in the order of the graph. */
static enum cm_status make_groups(struct element_nodes *nodes)
{
    struct cm_arena *scratch = nodes->work->scratch;
    struct cm_node **members = CM_NEW_ARRAY(scratch, struct cm_node *, nodes->count);
    uint32_t *ends = CM_NEW_ARRAY(scratch, uint32_t, nodes->count);
    uint32_t next = 0;

    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->items[i].group == i && nodes->items[i].count > 1) {
            ends[i] = next;
            next += nodes->items[i].count;
        }
    for (uint32_t i = 0; i < nodes->count; i++) {
        const uint32_t group = group_of(nodes, i);
        if (nodes->items[group].count > 1)
            members[ends[group]++] = nodes->items[i].node;
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->items[i].group == i && nodes->items[i].count > 1)
            CM_TRY(make_regions(nodes->work, members + ends[i] - nodes->items[i].count,
                                nodes->items[i].count));
    return CM_OK;
}

enum cm_status cm_region_elementwise(struct cm_region_work *work)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct element_nodes nodes = {.work = work};
        const size_t made = work->made;
        look_at_nodes(&nodes);
        find_groups(&nodes);
        CM_TRY(make_groups(&nodes));
        if (work->made == made || work->full)
            break;
        CM_TRY(cm_graph_retype(work->graph, work->err));
    }
    return CM_OK;
}
