/* Regions: a group of nodes as one, its meaning being that of its body. The reference kernel runs
 * the body; the executor never calls it, as it has the body's steps. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "graph/op.h"
#include "ops/control/branch.h"

static enum cm_status region_infer(struct cm_infer *in)
{
    struct cm_fact *facts = CM_NEW_ARRAY(in->arena, struct cm_fact, (size_t)in->n_out);
    CM_TRY(cm_infer_body(in, "body", in->in, (size_t)in->n_in, facts, (size_t)in->n_out));
    for (int o = 0; o < in->n_out; o++)
        in->out[o] = facts[o];
    return CM_OK;
}

static enum cm_status region_prepare(struct cm_call *call)
{
    cm_call_scratch(call, (size_t)call->n_out * sizeof(struct cm_datum));
    return CM_OK;
}

static enum cm_status region_run(struct cm_call *call)
{
    return cm_call_run_into_outputs(call, 0, call->in_datum, (size_t)call->n_in);
}

/* The nodes of the body, where the region stands. */
static enum cm_status region_body(struct cm_body *b)
{
    const struct cm_graph *graph = cm_node_body(b->node, "body");
    struct cm_clone clone;

    cm_clone_init(&clone, b->node->module);
    for (size_t i = 0; i < graph->n_inputs; i++)
        cm_clone_map(&clone, graph->inputs[i], cm_body_input(b, (int)i));
    CM_TRY(cm_clone_graph(&clone, &b->build, graph));
    for (size_t o = 0; o < graph->n_outputs; o++)
        CM_TRY(cm_body_return(b, (int)o, cm_clone_of(&clone, graph->outputs[o].value)));
    return CM_OK;
}

/* Of the nodes that read what the region reads, or what one node makes of it: a product, perhaps of
 * a Transpose, and what follows it element by element. */
static double region_flops(const struct cm_node *region, const struct cm_tensor *const *in,
                           int n_in, const struct cm_tensor *const *out, int n_out)
{
    enum { MOST = 8 };
    const struct cm_graph *graph = cm_node_body(region, "body");
    double sum = 0;
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const struct cm_tensor *operands[MOST] = {0};
        bool all = node->op && node->op->cost.flops && node->n_inputs <= MOST;
        for (int i = 0; all && i < node->n_inputs; i++) {
            const struct cm_node *maker = cm_value_get(node->module, node->inputs[i].value)->node;
            const cm_value x = maker ? cm_node_input(maker, 0) : node->inputs[i].value;
            int at = 0;
            while (at < n_in && graph->inputs[at] != x)
                at++;
            operands[i] = at < n_in ? in[at] : NULL;
            all = operands[i] || i > 1 || !node->inputs[i].value;
        }
        if (all)
            sum += node->op->cost.flops(node, operands, node->n_inputs, out, n_out);
    }
    return sum;
}

#define REGION                                                                                     \
    .infer = region_infer, .prepare = region_prepare, .run = region_run, .body = region_body,      \
    .cost.flops = region_flops, .effects = CM_OUTPUT_SIZE_AT_RUN | CM_REGION

CM_OP_IN(cameo, "ai.cameo", ElementwiseRegion, REGION);
CM_OP_IN(cameo, "ai.cameo", ProductRegion, REGION);
