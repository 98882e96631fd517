/* Losses that bring their own Softmax or Sigmoid read what is before the model's: applied twice,
 * they train slowly and to something else. What stands between it and the output, a Cast or a
 * Reshape, is done again behind it. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "graph/op.h"

enum { CHAIN_MAX = 32 };

struct cm_loss_chain {
    struct cm_preparation *p;
    const struct cm_node *nodes[CHAIN_MAX]; /* from the output to the one being looked at */
    size_t count;
    const struct cm_node *last; /* the Softmax or Sigmoid */
};

static bool has_rank(const struct cm_type *type)
{
    return type && type->kind == CM_KIND_TENSOR && type->rank != CM_RANK_UNKNOWN;
}

/* Walks back over nodes that hand on each element; true when a Softmax or Sigmoid is behind them.
 */
static bool find_last(struct cm_loss_chain *c, cm_value value)
{
    while (c->count < CHAIN_MAX) {
        const struct cm_node *node = cm_value_get(c->p->inference->module, value)->node;
        const struct cm_op *op = node ? node->op : NULL;

        if (!op || !cm_node_input(node, 0) || node->n_outputs != 1)
            return false;
        if (op->scores.probability_axis || op->scores.is_logistic) {
            c->last = node;
            return true;
        }
        if (!op->values.kept)
            return false;
        c->nodes[c->count++] = node;
        value = node->inputs[0].value;
    }
    return false;
}

static int64_t softmax_axis(const struct cm_loss_chain *c, const struct cm_type *type)
{
    const int64_t axis = cm_node_int(c->last, c->last->op->scores.probability_axis);

    return axis < 0 ? axis + type->rank : axis;
}

/* How many elements lie between neighbours along an axis; -1: not known. */
static int64_t stride(const struct cm_type *type, int64_t axis)
{
    int64_t count = 1;

    for (int64_t i = axis + 1; i < type->rank; i++) {
        if (!cm_dim_known(type->dims[i]))
            return -1;
        count *= type->dims[i].value;
    }
    return count;
}

/* Is axis b of one tensor axis a of another that has the same elements in the same order? */
static bool is_same_axis(const struct cm_type *a, int64_t axis_a, const struct cm_type *b,
                         int64_t axis_b)
{
    return axis_a >= 0 && axis_a < a->rank && axis_b >= 0 && axis_b < b->rank &&
           cm_dim_known(a->dims[axis_a]) && a->dims[axis_a].value == b->dims[axis_b].value &&
           stride(a, axis_a) >= 0 && stride(a, axis_a) == stride(b, axis_b);
}

/* Do the nodes of the chain keep the order of elements, and their shape too? */
static bool keeps_order(const struct cm_loss_chain *c, bool *same_shape)
{
    *same_shape = true;
    for (size_t i = 0; i < c->count; i++) {
        const struct cm_op *op = c->nodes[i]->op;

        if (op->elementwise)
            continue;
        *same_shape = false;
        if (!op->memory.share || op->memory.share(c->nodes[i], 0, 0) != CM_SHARE_VIEW)
            return false;
    }
    return true;
}

/* Do the classes of a Softmax end up along the axis that the loss takes for them? */
static bool is_over_classes(const struct cm_loss_chain *c, cm_value prediction, int class_axis)
{
    const struct cm_type *before = cm_preparation_type(c->p, c->last->outputs[0]);
    const struct cm_type *after = cm_preparation_type(c->p, prediction);
    bool same_shape;

    if (!keeps_order(c, &same_shape))
        return false;
    if (same_shape) /* also where sizes are not known */
        return softmax_axis(c, before) == class_axis;
    return has_rank(before) && has_rank(after) &&
           is_same_axis(before, softmax_axis(c, before), after, class_axis);
}

/* The nodes between it and the output, behind what is before it. */
static cm_value replay(const struct cm_loss_chain *c, cm_value value)
{
    struct cm_preparation *p = c->p;

    for (size_t i = c->count; i-- > 0;) {
        const struct cm_node *from = c->nodes[i];
        const struct cm_str name = cm_preparation_name_of(p, from->outputs[0]);
        struct cm_clone clone;

        if (from->op->values.is_copy)
            continue;
        cm_clone_init(&clone, p->inference->module);
        cm_clone_map(&clone, from->inputs[0].value, value);
        if (cm_clone_node(&clone, &p->build, from))
            return 0; /* the builder remembers */
        if (from->name.size)
            p->build.graph->last->name =
                cm_arena_printf(p->arena, "%.*s.scores", CM_STR_FMT(from->name));
        value = cm_preparation_term(p, name, "scores", p->build.graph->last->outputs[0]);
    }
    return value;
}

/* A loss reads `takes`; the model gives something else, and it cannot be bypassed. */
static void warn(const struct cm_loss_chain *c, cm_value prediction, const char *takes)
{
    const struct cm_str name = cm_preparation_name_of(c->p, prediction);

    cm_preparation_note(
        c->p,
        "warning: '%.*s' comes from a %.*s, but %s takes %s; name the value before it with "
        "--of",
        CM_STR_FMT(name), CM_STR_FMT(c->last->op_type), c->p->options->loss, takes);
}

/* Is the node the one that the loss contains? */
static bool is_contained(const struct cm_loss_chain *c, const struct cm_loss_rule *rule,
                         cm_value prediction, int class_axis)
{
    const bool is_softmax = c->last->op->scores.probability_axis != NULL;

    return rule->contains == CM_CONTAINS_SOFTMAX
               ? is_softmax && is_over_classes(c, prediction, class_axis)
               : rule->contains == CM_CONTAINS_SIGMOID && !is_softmax;
}

void cm_bypass(struct cm_preparation *p, const struct cm_loss_rule *rule, int class_axis)
{
    struct cm_loss_chain *c = CM_NEW(p->arena, struct cm_loss_chain);
    bool fits = false;

    *c = (struct cm_loss_chain){.p = p};
    if (rule && rule->reads && find_last(c, p->prediction)) {
        fits = is_contained(c, rule, p->prediction, class_axis);
        if (!fits)
            warn(c, p->prediction, rule->reads);
    }
    p->bypassed = fits ? c : NULL;
    p->read = fits ? c->last->inputs[0].value : p->prediction;
}

cm_value cm_bypass_end(struct cm_preparation *p, const struct cm_loss_rule *rule)
{
    const struct cm_loss_chain *c = p->bypassed;
    const cm_value value = cm_clone_of(&p->moved, p->read);

    if (!c)
        return value;
    const struct cm_str name = cm_preparation_name_of(p, p->read);
    cm_preparation_note(p, "the loss reads '%.*s', before the final %.*s: %s contains one",
                        CM_STR_FMT(name), CM_STR_FMT(c->last->op_type), rule->name);
    return replay(c, value);
}
