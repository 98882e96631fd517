/* Two-operand elementwise loops as rows. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"

static void run_loop(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    cm_binary_fn *const *fn = loop->arg;
    (*fn)(e->count, e->in[0], e->step[0], e->in[1], e->step[1], e->out, loop->p);
}

bool cm_binary_loop(cm_binary_fn *const *loops, enum cm_dtype type, struct cm_element_loop *loop)
{
    cm_binary_fn *const *fn = &loops[cm_element_type(type)];
    *loop = (struct cm_element_loop){.run = run_loop, .arg = fn};
    return *fn;
}

bool cm_binary_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                           struct cm_element_loop *loop)
{
    const struct cm_binary *row = node->op->arg;
    (void)out;
    if (!cm_binary_loop(row->loops, in[0], loop))
        return false;
    for (int i = 0; i < CM_ELEMENT_PARAMETERS && row->parameters[i]; i++)
        loop->p[i] = (double)cm_node_float(node, row->parameters[i]);
    return true;
}

static void infer_known(struct cm_infer *in)
{
    const struct cm_binary *row = in->node->op->arg;
    if (row->of_numbers)
        cm_infer_quantities(in, row->of_numbers);
}

enum cm_status cm_binary_infer(struct cm_infer *in)
{
    CM_TRY(cm_infer_broadcast(in));
    infer_known(in);
    return CM_OK;
}

enum cm_status cm_binary_infer_bool(struct cm_infer *in)
{
    CM_TRY(cm_infer_broadcast_bool(in));
    infer_known(in);
    return CM_OK;
}
