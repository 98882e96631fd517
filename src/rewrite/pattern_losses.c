/* Cross-entropy written as a softmax, its logarithm and the negative log-likelihood. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/patterns.h"

#include "base/number.h"
#include "rewrite/pass.h"

/* Enough nodes to look past for a reader of the logarithms that comes before the loss. */
enum { NEARBY = 64 };

/* Is the class axis, 1, the one that the softmax goes along? */
static bool along_classes(const struct cm_group *m, const char *name)
{
    const struct cm_node *node = cm_value_get(m->graph->module, cm_group_value(m, name))->node;
    const struct cm_type *x = cm_group_type(m, "x");
    int axis;
    return x->rank >= 2 && cm_axis_fix(cm_node_int(node, "axis"), x->rank, &axis) && axis == 1;
}

/* The loss can give the logarithms too, to readers that come after it. */
static bool readers_come_later(const struct cm_group *m)
{
    const cm_value logs = cm_group_value(m, "logs");
    const struct cm_value_def *def = cm_value_get(m->graph->module, logs);
    const struct cm_node *node = def->node;
    size_t inside = 0, steps = 0;
    for (const struct cm_use *use = def->uses; use; use = use->next) {
        if (use->node && use->node->graph != m->graph)
            return false;
        inside += use->node == m->root;
    }
    if (def->n_uses == inside)
        return true;
    for (node = node->next; node != m->root; node = node->next) {
        if (!node || ++steps > NEARBY)
            return false;
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i].value == logs)
                return false;
    }
    return true;
}

static bool is_loss(const struct cm_group *m)
{
    return along_classes(m, "logs") && readers_come_later(m);
}

static bool is_loss_of_softmax(const struct cm_group *m)
{
    return along_classes(m, "soft");
}

static cm_value build_loss(const struct cm_group *m, struct cm_builder *build)
{
    struct cm_arena *arena = cm_builder_arena(build);
    const cm_value logs = cm_group_value(m, "logs"), weights = cm_group_value(m, "weights");
    const struct cm_attribute_proto attributes[] = {
        cm_attr_str(arena, "reduction", cm_node_str(m->root, "reduction")),
        cm_attr_int(arena, "ignore_index", cm_node_int(m->root, "ignore_index"))};
    const bool gives_logs = logs && cm_value_get(m->graph->module, logs)->n_uses > 1;
    cm_value results[2] = {0, 0};
    const cm_value loss = cm_build(
        build,
        &(struct cm_emission){
            .op = "SoftmaxCrossEntropyLoss",
            .inputs = (cm_value[]){cm_group_value(m, "x"), cm_group_value(m, "classes"), weights},
            .n_inputs = weights ? 3 : 2,
            .attributes = attributes,
            .n_attributes = cm_node_has_attr(m->root, "ignore_index") ? 2 : 1,
            .n_outputs = gives_logs ? 2 : 1,
            .outputs = results});
    if (loss && gives_logs)
        return cm_replace_value(m->graph, logs, results[1]) ? loss : 0;
    return loss;
}

const struct cm_pattern_row cm_loss_patterns[] = {
    {"cross-entropy", "(NegativeLogLikelihoodLoss (LogSoftmax!logs x) classes weights?)", is_loss,
     build_loss},
    {"cross-entropy-softmax", "(NegativeLogLikelihoodLoss (Log (Softmax!soft x)) classes weights?)",
     is_loss_of_softmax, build_loss},
    {0},
};
