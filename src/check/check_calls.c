/* Calls of model functions: whether a call fits, and whether functions call each other in circles
 * or too deeply. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "check/checker.h"

static struct cm_str first_missing(struct cm_checker *c, const struct cm_node_proto *node,
                                   const struct cm_function_proto *function)
{
    struct cm_map given = {0};

    for (size_t i = 0; i < node->attribute.count; i++)
        cm_map_insert(&given, c->scratch, node->attribute.items[i].name, NULL);
    for (size_t i = 0; i < function->attribute.count; i++) {
        if (!cm_map_find(&given, function->attribute.items[i]))
            return function->attribute.items[i];
    }
    return CM_STR_NONE;
}

static void examine_arguments(struct cm_checker *c, const struct cm_model_place *place,
                              const struct cm_node_proto *node,
                              const struct cm_function_proto *function)
{
    const size_t index = (size_t)(function - c->model->functions.items);
    const struct cm_map *declared = &c->function_attributes[index];
    size_t given = 0;

    for (size_t i = 0; i < node->attribute.count; i++) {
        const struct cm_str name = node->attribute.items[i].name;
        const uint64_t found = cm_map_get(declared, name, 0);

        given += found == 1;
        if (!found && !cm_str_starts(name, "__"))
            cm_report(c, CM_RULE_ST13, place, "the function it calls has no attribute '%.*s'",
                      CM_STR_FMT(name));
    }
    /* Looked for by name only when it will be told, so that many calls stay cheap. */
    if (given < function->attribute.count && c->findings->count < CM_FINDINGS_MAX) {
        const struct cm_str name = first_missing(c, node, function);

        if (name.size)
            cm_report(c, CM_RULE_ST13, place, "gives no value to the function's attribute '%.*s'",
                      CM_STR_FMT(name));
    }
}

void cm_examine_call(struct cm_checker *c, const struct cm_model_place *place,
                     const struct cm_node_proto *node, const struct cm_function_proto *function)
{
    if (node->input.count > function->input.count)
        cm_report(c, CM_RULE_ST13, place, "has %zu inputs, the function it calls takes %zu",
                  node->input.count, function->input.count);
    if (node->output.count > function->output.count)
        cm_report(c, CM_RULE_ST13, place, "has %zu outputs, the function it calls gives %zu",
                  node->output.count, function->output.count);
    examine_arguments(c, place, node, function);
}

/* Who calls whom: calls[first[f]] to calls[first[f + 1] - 1] are the functions that f calls. */
struct call_graph {
    size_t *first;
    CM_ARRAY(size_t) calls;
};

static void collect_calls(struct cm_checker *c, struct call_graph *graph,
                          const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const struct cm_function_proto *function = cm_called_function(c, node);

        if (function)
            *CM_PUSH(c->scratch, &graph->calls) = (size_t)(function - c->model->functions.items);
        for (size_t k = 0; k < node->attribute.count; k++) {
            const struct cm_attribute_proto *attribute = &node->attribute.items[k];

            if (attribute->g)
                collect_calls(c, graph, &attribute->g->node);
            for (size_t g = 0; g < attribute->graphs.count; g++)
                collect_calls(c, graph, &attribute->graphs.items[g].node);
        }
    }
}

struct visit {
    size_t next;   /* the call to follow next */
    size_t height; /* functions in the longest chain from here, this one included */
    bool open, done;
};

static void report_circle(struct cm_checker *c, size_t from, size_t to)
{
    const struct cm_function_proto *functions = c->model->functions.items;
    const struct cm_model_place here = CM_PLACE(NULL, "function", functions[from].name, from);

    cm_report(c, CM_RULE_CK70, &here,
              "calls '%.*s', which calls it again, directly or through others",
              CM_STR_FMT(functions[to].name));
}

/* Depth first from one function, with a stack of our own: chains may be as long as the file likes.
 */
static void walk_calls(struct cm_checker *c, const struct call_graph *graph, struct visit *visits,
                       size_t *stack, size_t start)
{
    size_t depth = 0;

    if (visits[start].done)
        return;
    stack[depth++] = start;
    visits[start] = (struct visit){.next = graph->first[start], .height = 1, .open = true};
    while (depth) {
        const size_t at = stack[depth - 1];
        struct visit *visit = &visits[at];

        if (visit->next == graph->first[at + 1]) {
            visit->open = false;
            visit->done = true;
            depth--;
            if (depth && visits[stack[depth - 1]].height <= visit->height)
                visits[stack[depth - 1]].height = visit->height + 1;
            continue;
        }
        const size_t to = graph->calls.items[visit->next++];
        if (visits[to].open) {
            report_circle(c, at, to);
        } else if (visits[to].done) {
            if (visit->height <= visits[to].height)
                visit->height = visits[to].height + 1;
        } else {
            stack[depth++] = to;
            visits[to] = (struct visit){.next = graph->first[to], .height = 1, .open = true};
        }
    }
}

void cm_examine_call_graph(struct cm_checker *c)
{
    enum { DEEPEST = 100 };
    const size_t count = c->model->functions.count;
    struct call_graph graph = {.first = CM_NEW_ARRAY(c->scratch, size_t, count + 1)};
    struct visit *visits = CM_NEW_ARRAY(c->scratch, struct visit, count);
    size_t *stack = CM_NEW_ARRAY(c->scratch, size_t, count);
    size_t deepest = 0;

    for (size_t i = 0; i < count; i++) {
        graph.first[i] = graph.calls.count;
        collect_calls(c, &graph, &c->model->functions.items[i].node);
    }
    graph.first[count] = graph.calls.count;
    for (size_t i = 0; i < count; i++) {
        walk_calls(c, &graph, visits, stack, i);
        if (visits[i].height > visits[deepest].height)
            deepest = i;
    }
    if (count && visits[deepest].height > DEEPEST) {
        const struct cm_model_place here =
            CM_PLACE(NULL, "function", c->model->functions.items[deepest].name, deepest);

        cm_report(c, CM_RULE_CK70, &here, "its calls are %zu deep, at most %d are allowed",
                  visits[deepest].height, DEEPEST);
    }
}
