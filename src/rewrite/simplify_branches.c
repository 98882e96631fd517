/* Rules of `simplify` for control flow: an If whose condition is constant is the branch it takes.
 */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/simplify.h"

static bool branch_is_taken(struct cm_candidate *m)
{
    const struct cm_tensor *condition = cm_candidate_constant(m, 0, 1);
    return condition && cm_tensor_count(condition) == 1 && condition->type == CM_BOOL;
}

/* Results of a branch that it did not compute itself, or gives twice, get nodes of their own: the
 * If's results may have names that must stay. */
static cm_value result_of(struct cm_candidate *m, const struct cm_graph *branch, size_t o)
{
    const cm_value given = branch->outputs[o].value;
    const cm_value value = cm_clone_of(&m->all->clone, given);
    bool own =
        cm_value_get(m->module, given)->graph == branch && cm_value_get(m->module, value)->node;
    for (size_t i = 0; i < o && own; i++)
        own = branch->outputs[i].value != given;
    return own ? value
               : cm_build(&m->build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
}

static void take_branch(struct cm_candidate *m)
{
    const struct cm_tensor *condition = cm_candidate_constant(m, 0, 1);
    if (!condition)
        return;
    const struct cm_graph *branch =
        cm_node_body(m->node, cm_tensor_int(condition, 0) ? "then_branch" : "else_branch");
    if (!branch || branch->n_outputs < (size_t)m->node->n_outputs ||
        cm_graph_has_effect(branch, CM_REPLACED)) /* copies would not be known as named values */
        return;
    if (!m->all->clone.arena)
        cm_clone_init(&m->all->clone, m->module);
    if (cm_clone_graph(&m->all->clone, &m->build, branch))
        return; /* the builder has the reason */
    for (int o = 0; o < m->node->n_outputs; o++)
        if (m->node->outputs[o])
            m->results[o] = result_of(m, branch, (size_t)o);
}

const struct cm_simplify_rule cm_simplify_branches[] = {
    {"if-decided", "If", branch_is_taken, take_branch},
    {0},
};
