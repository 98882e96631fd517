/* One-operand elementwise loops as rows. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include "graph/node_formula.h"

static void run_loop(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    cm_unary_fn *const *fn = loop->arg;
    (*fn)(e->count, e->in[0], e->out, loop->p);
}

bool cm_unary_loop(cm_unary_fn *const *loops, enum cm_dtype type, struct cm_element_loop *loop)
{
    cm_unary_fn *const *fn = &loops[cm_element_type(type)];
    *loop = (struct cm_element_loop){.run = run_loop, .arg = fn};
    return *fn;
}

bool cm_unary_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                          struct cm_element_loop *loop)
{
    const struct cm_unary *row = node->op->arg;
    (void)out;
    if (!cm_unary_loop(row->loops, in[0], loop))
        return false;
    for (int i = 0; i < CM_ELEMENT_PARAMETERS && row->parameters[i]; i++)
        loop->p[i] = (double)cm_node_float(node, row->parameters[i]);
    return true;
}

enum cm_status cm_unary_grad(struct cm_grad *g)
{
    const struct cm_unary *row = g->node->op->arg;
    const cm_value slope =
        cm_emit_formula(g, row->slope, cm_grad_input(g, 0), cm_grad_output(g, 0));
    return cm_grad_set(g, 0, cm_emit(g, "Mul", cm_grad_incoming(g, 0), slope));
}
