/* Gradient nodes: what xs, zs and y name, and whether y depends on them as the operator asks. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "check/checker.h"
#include "graph/node_order.h"

struct step {
    struct cm_str name, origin; /* origin: the listed tensor the walk came from */
};

/* A walk from values back to what they are computed from. */
struct walk {
    struct cm_checker *c;
    CM_ARRAY(struct step);
    bool calls; /* past a call of the inference graph: it reads any initializer */
};

static struct cm_strs find_names(const struct cm_node_proto *node, const char *name)
{
    const struct cm_attribute_proto *attribute = cm_node_attribute(node, cm_str(name));

    return attribute ? attribute->strings : (struct cm_strs){NULL, 0};
}

static bool push(struct walk *walk, struct cm_str name, struct cm_str origin)
{
    if (!walk->c->walk_budget)
        return false;
    walk->c->walk_budget--;
    if (name.size)
        *CM_PUSH(walk->c->scratch, walk) = (struct step){name, origin};
    return true;
}

/* Everything a node reads, also inside its graphs. */
static bool push_reads(struct walk *walk, const struct cm_node_proto *node, struct cm_str origin)
{
    for (size_t i = 0; i < node->input.count; i++) {
        if (!push(walk, node->input.items[i], origin))
            return false;
    }
    for (size_t i = 0; i < node->attribute.count; i++) {
        const struct cm_graph_proto *graph = node->attribute.items[i].g;

        for (size_t k = 0; graph && k < graph->node.count; k++) {
            if (!push_reads(walk, &graph->node.items[k], origin))
                return false;
        }
    }
    return true;
}

/* Follows all steps, not past the listed tensors, each of which is marked 2 in listed when reached;
 * *from is then the origin of the first such arrival, *to what was reached. False if the budget is
 * used up. */
static bool follow(struct walk *walk, struct cm_map *listed, struct cm_str *from, struct cm_str *to)
{
    const uint32_t id = ++walk->c->walk;

    while (walk->count) {
        const struct step step = walk->items[--walk->count];
        struct cm_def *def = cm_scope_find(walk->c->scope, step.name);
        uint64_t *mark = cm_map_find(listed, step.name);

        if (mark && !to->size) {
            *from = step.origin;
            *to = step.name;
        }
        if (mark)
            *mark = 2;
        if (mark || !def || def->visited == id)
            continue;
        def->visited = id;
        walk->calls = walk->calls || (def->producer && cm_is_graph_call(def->producer));
        if (def->producer && !push_reads(walk, def->producer, step.origin))
            return false;
    }
    return true;
}

static void examine_paths(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_strs *xs, struct cm_str y, struct cm_map *listed)
{
    struct walk walk = {.c = c};
    struct cm_str from = CM_STR_NONE;
    struct cm_str to = CM_STR_NONE;
    bool any = false;

    if (!push(&walk, y, y) || !follow(&walk, listed, &from, &to)) {
        cm_report(c, CM_RULE_GR7, place, "not followed: there are too many Gradient nodes");
        return;
    }
    if (walk.calls)
        return;
    for (size_t i = 0; i < xs->count; i++)
        any = any || cm_map_get(listed, xs->items[i], 0) == 2;
    if (!any)
        cm_report(c, CM_RULE_GR9, place, "y '%.*s' depends on none of xs", CM_STR_FMT(y));
    for (size_t i = 0; any && i < xs->count; i++) {
        if (cm_map_get(listed, xs->items[i], 0) != 2)
            cm_report(c, CM_RULE_GR7, place, "y '%.*s' does not depend on '%.*s'", CM_STR_FMT(y),
                      CM_STR_FMT(xs->items[i]));
    }
}

static void examine_dependence(struct cm_checker *c, const struct cm_model_place *place,
                               const struct cm_strs *names, struct cm_map *listed)
{
    struct walk walk = {.c = c};
    struct cm_str from = CM_STR_NONE;
    struct cm_str to = CM_STR_NONE;
    bool within = true;

    for (int list = 0; list < 2; list++) {
        for (size_t i = 0; within && i < names[list].count; i++) {
            const struct cm_def *def = cm_scope_find(c->scope, names[list].items[i]);

            if (def && def->producer)
                within = push_reads(&walk, def->producer, names[list].items[i]);
        }
    }
    if (within && follow(&walk, listed, &from, &to) && to.size)
        cm_report(c, CM_RULE_GR8, place,
                  "'%.*s' is computed from '%.*s'; only one of them can be listed",
                  CM_STR_FMT(from), CM_STR_FMT(to));
}

static bool examine_names(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_strs *names, struct cm_map *listed)
{
    bool good = true;
    bool added;

    for (size_t i = 0; i < names->count; i++) {
        const struct cm_str name = names->items[i];

        *cm_map_insert(listed, c->scratch, name, &added) = 1;
        if (!added)
            cm_report(c, CM_RULE_GR2, place, "names '%.*s' twice", CM_STR_FMT(name));
        if (!c->names_ignored && !cm_scope_find(c->scope, name)) {
            cm_report(c, CM_RULE_GR3, place, "names '%.*s', which nothing before it defines",
                      CM_STR_FMT(name));
            good = false;
        }
    }
    return good;
}

void cm_examine_gradient(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_node_proto *node)
{
    const struct cm_strs names[2] = {find_names(node, "xs"), find_names(node, "zs")};
    const struct cm_attribute_proto *y = cm_node_attribute(node, CM_STR("y"));
    struct cm_map listed = {0};
    bool good = true;

    if (!names[0].count)
        cm_report(c, CM_RULE_GR1, place, "names no xs");
    if (!y || !y->s.size)
        cm_report(c, CM_RULE_GR1, place, "names no y");
    if (node->input.count != names[0].count + names[1].count)
        cm_report(c, CM_RULE_GR4, place, "has %zu inputs for %zu names in xs and zs",
                  node->input.count, names[0].count + names[1].count);
    if (node->output.count > names[0].count)
        cm_report(c, CM_RULE_GR5, place, "has %zu outputs for %zu xs", node->output.count,
                  names[0].count);
    for (size_t i = 0; i < node->input.count; i++) {
        if (!node->input.items[i].size)
            cm_report(c, CM_RULE_GR6, place, "input %zu has an empty name", i);
    }
    good = examine_names(c, place, &names[0], &listed);
    good = examine_names(c, place, &names[1], &listed) && good;
    if (!y || !y->s.size || c->names_ignored)
        return;
    if (!cm_scope_find(c->scope, y->s)) {
        cm_report(c, CM_RULE_GR3, place, "its y is '%.*s', which nothing before it defines",
                  CM_STR_FMT(y->s));
        return;
    }
    if (!good)
        return;
    examine_paths(c, place, &names[0], y->s, &listed);
    examine_dependence(c, place, names, &listed);
}
