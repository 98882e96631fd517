/* Losses that bring their own Softmax or Sigmoid read what is before the model's: applied twice,
 * they train slowly and to something else. What stands between it and the output, a Cast or a
 * Reshape, is done again behind it. */
// SPDX-License-Identifier: Apache-2.0
#include "train/draft.h"

#include "graph/op.h"
#include "graph/registry.h"

enum { CHAIN_MAX = 32 };

struct chain {
    struct cm_draft *draft;
    const struct cm_graph *graph;
    const struct cm_node_proto *nodes[CHAIN_MAX]; /* from the output to the one being looked at */
    size_t count;
    const struct cm_node_proto *last; /* the Softmax or Sigmoid */
};

static const struct cm_type *type_of(const struct chain *c, struct cm_str name)
{
    const cm_value value = cm_graph_find(c->graph, name);

    return value ? cm_value_get(c->graph->module, value)->fact.type : NULL;
}

static bool has_rank(const struct cm_type *type)
{
    return type && type->kind == CM_KIND_TENSOR && type->rank != CM_RANK_UNKNOWN;
}

/* Walks back over nodes that hand on each element; true when a Softmax or Sigmoid is behind them.
 */
static bool find_last(struct chain *c, struct cm_str name)
{
    while (c->count < CHAIN_MAX) {
        const struct cm_draft_source *source = cm_draft_source(c->draft, name);
        const struct cm_node_proto *node = source ? source->node : NULL;
        const struct cm_op *op = node ? cm_builtin_op(node) : NULL;

        if (!op || !node->input.count || node->output.count != 1)
            return false;
        if (op->probability_axis || op->is_logistic) {
            c->last = node;
            return true;
        }
        if (!op->keeps_values)
            return false;
        c->nodes[c->count++] = node;
        name = node->input.items[0];
    }
    return false;
}

static int64_t softmax_axis(const struct chain *c, const struct cm_type *type)
{
    const char *name = cm_builtin_op(c->last)->probability_axis;
    const struct cm_attribute_proto *given = cm_node_find_attribute(c->last, name);
    const int64_t axis = given ? given->i : -1;

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
static bool keeps_order(const struct chain *c, bool *same_shape)
{
    *same_shape = true;
    for (size_t i = 0; i < c->count; i++) {
        const cm_value value = cm_graph_find(c->graph, c->nodes[i]->output.items[0]);
        const struct cm_node *node = value ? cm_value_get(c->graph->module, value)->node : NULL;
        const struct cm_op *op = node ? node->op : NULL;

        if (op && op->elementwise)
            continue;
        *same_shape = false;
        if (!op || !op->share || op->share(node, 0, 0) != CM_SHARE_VIEW)
            return false;
    }
    return true;
}

/* Do the classes of a Softmax end up along the axis that the loss takes for them? */
static bool is_over_classes(const struct chain *c, struct cm_str prediction, int class_axis)
{
    const struct cm_type *before = type_of(c, c->last->output.items[0]);
    const struct cm_type *after = type_of(c, prediction);

    bool same_shape;

    if (!before || !keeps_order(c, &same_shape))
        return false;
    if (same_shape) /* also where sizes are not known */
        return softmax_axis(c, before) == class_axis;
    return has_rank(before) && has_rank(after) &&
           is_same_axis(before, softmax_axis(c, before), after, class_axis);
}

/* The nodes between it and the output, behind what is before it. */
static struct cm_str replay(const struct chain *c, struct cm_str value)
{
    struct cm_draft *draft = c->draft;

    for (size_t i = c->count; i-- > 0;) {
        const struct cm_node_proto *from = c->nodes[i];
        const struct cm_str out =
            cm_draft_name(draft, "%.*s.scores", CM_STR_FMT(from->output.items[0]));

        if (cm_builtin_op(from)->is_copy)
            continue;
        struct cm_str *inputs = CM_NEW_ARRAY(draft->arena, struct cm_str, from->input.count);
        memcpy(inputs, from->input.items, from->input.count * sizeof *inputs);
        inputs[0] = value;
        struct cm_node_proto *node =
            cm_draft_node(draft, "", "", from->input.count, inputs, 1, &out);
        node->op_type = from->op_type;
        node->domain = from->domain;
        if (from->domain.size)
            cm_msg_set(&node->msg, CM_NODE_DOMAIN);
        node->attribute = from->attribute;
        if (from->attribute.count)
            cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
        value = out;
    }
    return value;
}

/* A loss reads `takes`; the model gives something else, and it cannot be bypassed. */
static void warn(const struct chain *c, struct cm_str prediction, const char *takes)
{
    cm_draft_note(c->draft,
                  "warning: '%.*s' comes from a %.*s, but %s takes %s; name the value before it "
                  "with --output",
                  CM_STR_FMT(prediction), CM_STR_FMT(c->last->op_type), c->draft->options->loss,
                  takes);
}

struct cm_str cm_draft_bypass(struct cm_draft *draft, const struct cm_graph *graph,
                              struct cm_str prediction, int class_axis)
{
    const char *loss = draft->options->loss;
    const bool scores = strcmp(loss, "cross-entropy") == 0;
    const bool logits = strcmp(loss, "bce-logits") == 0;
    struct chain c = {.draft = draft, .graph = graph};
    bool fits = false;

    if ((scores || logits || strcmp(loss, "nll") == 0) && find_last(&c, prediction)) {
        const bool is_softmax = cm_builtin_op(c.last)->probability_axis != NULL;

        fits = (scores && is_softmax && is_over_classes(&c, prediction, class_axis)) ||
               (logits && !is_softmax);
        if (!fits)
            warn(&c, prediction,
                 scores || logits ? "scores before a Softmax or Sigmoid, of its own axis"
                                  : "logarithms of probabilities");
    }
    const struct cm_str from = fits ? c.last->input.items[0] : prediction;
    cm_draft_training_mode(draft, from);
    if (!fits)
        return cm_draft_moved(draft, from);
    cm_draft_note(draft, "the loss reads '%.*s', before the final %.*s: %s contains one",
                  CM_STR_FMT(from), CM_STR_FMT(c.last->op_type), loss);
    return replay(&c, cm_draft_moved(draft, from));
}
