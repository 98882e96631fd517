/* GraphCall of ONNX 1.7, with which an algorithm that is complete in itself calls the inference
 * graph. Version 1.8 took the operator away, and has the inference graph complete algorithms. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "graph/node_order.h"

static struct cm_str name_called(const struct cm_node_proto *node)
{
    const struct cm_attribute_proto *name = cm_node_attribute(node, CM_STR("graph_name"));

    return name ? name->s : CM_STR_NONE;
}

static void examine_arity(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_node_proto *node, const struct cm_graph_proto *graph)
{
    if (node->input.count > graph->input.count)
        cm_report(c, CM_RULE_TR19, place, "has %zu inputs, but the inference graph takes %zu",
                  node->input.count, graph->input.count);
    if (node->output.count > graph->output.count)
        cm_report(c, CM_RULE_TR19, place, "has %zu outputs, but the inference graph gives %zu",
                  node->output.count, graph->output.count);
    for (size_t i = 0; i < graph->input.count; i++) {
        const struct cm_str name = graph->input.items[i].name;
        const bool given = i < node->input.count && node->input.items[i].size;

        if (!given && !cm_scope_find(c->variables, name))
            cm_report(c, CM_RULE_TR19, place,
                      "leaves out input '%.*s' of the inference graph, which has no initializer",
                      CM_STR_FMT(name));
    }
}

void cm_examine_graph_call(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_node_proto *node)
{
    const struct cm_graph_proto *graph = c->model ? c->model->graph : NULL;
    const struct cm_str name = name_called(node);

    if (!graph || !c->calls_graph || c->scope->depth != c->calls_depth) {
        cm_report(c, CM_RULE_TR19, place, "stands elsewhere than in an algorithm of training_info");
        return;
    }
    if (!name.size)
        cm_report(c, CM_RULE_TR19, place, "the required attribute 'graph_name' is missing");
    else if (!cm_str_equal(name, graph->name))
        cm_report(c, CM_RULE_TR19, place,
                  "calls graph '%.*s', but the inference graph is called '%.*s'", CM_STR_FMT(name),
                  CM_STR_FMT(graph->name));
    examine_arity(c, place, node, graph);
}

void cm_examine_self_contained(struct cm_checker *c, const struct cm_model_place *place,
                               const struct cm_graph_proto *algorithm)
{
    for (size_t n = 0; n < algorithm->node.count; n++) {
        const struct cm_strs *inputs = &algorithm->node.items[n].input;

        for (size_t i = 0; i < inputs->count; i++) {
            const struct cm_def *def = cm_scope_find(c->scope, inputs->items[i]);

            if (def && def->depth < c->scope->depth &&
                !(def->kind & (CM_DEF_INITIALIZER | CM_DEF_SPARSE)))
                cm_report(c, CM_RULE_TR19, place,
                          "node %zu reads '%.*s' of the inference graph: with GraphCall an "
                          "algorithm sees only its own values and the model's initializers",
                          n, CM_STR_FMT(inputs->items[i]));
        }
    }
}
