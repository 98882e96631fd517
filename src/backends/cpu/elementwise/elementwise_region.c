/* A whole region of elementwise operators as one step. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/elementwise/element_program.h"
#include "graph/backend.h"

static bool accepts(struct cm_call *call)
{
    return cm_element_program_build(call) != NULL;
}

static enum cm_status prepare(struct cm_call *call)
{
    cm_element_program_choose_layouts(call->state, call);
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    cm_element_program_run(call->state, call);
    return CM_OK;
}

static int64_t pieces(const struct cm_call *call)
{
    return cm_element_program_pieces(call->state);
}

static bool run_pieces(const struct cm_call *call, int64_t begin, int64_t end, bool check)
{
    return cm_element_program_run_pieces(call->state, call, begin, end, check);
}

/* A result is written, block by block, when the node that computes it has run; and it has all of
 * the block's elements of an operand read that no later node reads. As many elements as wide are
 * the same elements: an operand of as many bytes repeats none. */
static enum cm_sharing share(const struct cm_node *node, int output, int input)
{
    const struct cm_graph *body = node->bodies[0].graph;
    const cm_value x = body->inputs[input];
    const struct cm_value_def *y = cm_value_get(body->module, body->outputs[output].value);
    const size_t width = cm_dtype_size(y->fact.type->dtype);

    if (!y->node || width == 0 ||
        cm_dtype_size(cm_value_get(body->module, x)->fact.type->dtype) != width)
        return CM_SHARE_NOTHING;
    for (const struct cm_node *later = y->node->next; later; later = later->next)
        for (int i = 0; i < later->n_inputs; i++)
            if (cm_node_input(later, i) == x)
                return CM_SHARE_NOTHING;
    return CM_SHARE_OVERWRITE;
}

CM_KERNEL_IN(cpu, "ai.cameo", ElementwiseRegion, .label = "elementwise loop", .accepts = accepts,
             .prepare = prepare, .run = run, .share = share, .layouts = CM_LAYOUT_CHOSEN,
             .pieces = pieces, .run_pieces = run_pieces);
