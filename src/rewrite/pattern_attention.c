/* Attention written as products: MatMul(Softmax(MatMul(q, k') * scale + mask), v) with heads on an
 * axis of their own, or one head without such an axis. The parts come in too many orders for rows
 * of text; this goes through them from the last product backwards. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pass.h"
#include "rewrite/pattern_masks.h"
#include "rewrite/patterns.h"

#include <float.h>

enum { MOST_MASKS = 3 };

/* What the last product was found to be made of. */
struct attention_parts {
    struct cm_graph *graph;
    int rank;                   /* 4: batch, heads, places, size; 3: one head, no axis of heads */
    cm_value query, key, value; /* of this rank */
    cm_value source;            /* what becomes key, where key is 0: by a transpose, or .. */
    int64_t key_perm[4];
    bool is_flat; /* .. by a reshape to these dimensions */
    int64_t key_dims[4];
    cm_value masks[MOST_MASKS]; /* to be added to the scores */
    int n_masks;
    bool causal, partly; /* each query sees those up to its own place; a mask leaves some unseen */
    cm_value hidden, never; /* where the bool `hidden` holds the score is `never`; 0: none */
    bool hidden_if_false;
    double scale;
    bool guarded; /* rows of NaN become 0, as the operator has it */
    struct cm_group *group;
    size_t n_inner; /* nodes of the group that nobody else may read; the rest may stay */
};

/* The node of this graph that makes value, if it is this operator; NULL otherwise. */
static struct cm_node *maker(const struct attention_parts *p, cm_value value, const char *op)
{
    struct cm_node *node = value ? cm_value_get(p->graph->module, value)->node : NULL;
    return cm_node_is(node, op) && node->graph == p->graph ? node : NULL;
}

static bool note(struct attention_parts *p, struct cm_node *node)
{
    if (p->group->n_nodes == CM_GROUP_NODES)
        return false;
    p->group->nodes[p->group->n_nodes++] = node;
    return true;
}

/* ---- The parts ---- */

static bool same_dims(const struct cm_type *a, int i, const struct cm_type *b, int k)
{
    return cm_dim_same(a->dims[i], b->dims[k]);
}

/* The same batch, and heads where there is an axis of them? */
static bool same_batch(const struct attention_parts *p, const struct cm_type *a,
                       const struct cm_type *b)
{
    return same_dims(a, 0, b, 0) && (p->rank == 3 || same_dims(a, 1, b, 1));
}

/* Takes a constant factor off a product, into the scale; else *value stays. */
static bool take_factor(struct attention_parts *p, cm_value *value)
{
    const struct cm_module *module = p->graph->module;
    struct cm_node *product = maker(p, *value, "Mul"), *ratio = maker(p, *value, "Div");
    double number;
    for (int i = 0; product && i < 2; i++) {
        const cm_value rest = product->inputs[1 - i].value;
        if (cm_constant_number(module, product->inputs[i].value, &number) && number > 0 &&
            cm_value_type(p->graph->module, rest)->rank == p->rank) {
            p->scale *= number;
            *value = rest;
            return note(p, product);
        }
    }
    if (ratio && cm_constant_number(module, ratio->inputs[1].value, &number) && number > 0 &&
        cm_value_type(p->graph->module, ratio->inputs[0].value)->rank == p->rank) {
        p->scale /= number;
        *value = ratio->inputs[0].value;
        return note(p, ratio);
    }
    return false;
}

/* Are the last two axes swapped by a transpose of rank 3, batch and heads being one axis? */
static bool read_flat_transpose(struct attention_parts *p, cm_value turned)
{
    static const int64_t swap[] = {0, 2, 1};
    struct cm_node *last = maker(p, turned, "Reshape");
    struct cm_node *middle = last ? maker(p, last->inputs[0].value, "Transpose") : NULL;
    if (!middle || p->rank != 4)
        return false;
    const struct cm_int64s perm = cm_node_ints(middle, "perm");
    const cm_value source = middle->inputs[0].value;
    const struct cm_type *to = cm_value_type(p->graph->module, turned),
                         *flat = cm_value_type(p->graph->module, source);
    if (perm.count != 3 || memcmp(perm.items, swap, sizeof swap) != 0 || flat->rank != 3 ||
        !same_dims(to, 2, flat, 2) || !same_dims(to, 3, flat, 1) || !note(p, last) ||
        !note(p, middle))
        return false;
    struct cm_node *first = maker(p, source, "Reshape");
    const struct cm_type *from =
        first ? cm_value_type(p->graph->module, first->inputs[0].value) : NULL;
    if (from && from->rank == 4 && same_dims(to, 0, from, 0) && same_dims(to, 1, from, 1) &&
        same_dims(to, 2, from, 3) && same_dims(to, 3, from, 2)) {
        p->key = first->inputs[0].value;
        return note(p, first);
    }
    p->source = source;
    p->is_flat = true;
    for (int i = 0; i < 4; i++) {
        p->key_dims[i] = to->dims[i < 2 ? i : 5 - i].value;
        if (p->key_dims[i] <= 0)
            return false;
    }
    return true;
}

/* Keys as the second factor has them, their last two axes swapped. */
static bool read_keys(struct attention_parts *p, cm_value turned)
{
    struct cm_node *transpose = maker(p, turned, "Transpose");
    if (!transpose)
        return read_flat_transpose(p, turned);
    const struct cm_int64s perm = cm_node_ints(transpose, "perm");
    const int rank = p->rank;
    if (perm.count != (size_t)rank)
        return false;
    p->source = transpose->inputs[0].value;
    for (int i = 0; i < rank; i++)
        p->key_perm[i] = perm.items[i < rank - 2 ? i : 2 * rank - 3 - i];
    bool in_order = true;
    for (int i = 0; i < rank; i++)
        in_order = in_order && p->key_perm[i] == i;
    if (in_order)
        p->key = p->source;
    return note(p, transpose);
}

/* The scores before any mask: a product of queries and keys, scaled here or there. */
static bool read_product(struct attention_parts *p, cm_value scores)
{
    take_factor(p, &scores);
    struct cm_node *product = maker(p, scores, "MatMul");
    if (!product || !note(p, product))
        return false;
    p->query = product->inputs[0].value;
    cm_value turned = product->inputs[1].value;
    const struct cm_type *q = cm_value_type(p->graph->module, p->query),
                         *k = cm_value_type(p->graph->module, turned);
    if (q->rank != p->rank || k->rank != p->rank || !same_batch(p, q, k))
        return false;
    p->n_inner = p->group->n_nodes; /* scaled operands and transposes may be read by others */
    take_factor(p, &p->query);
    take_factor(p, &turned);
    return read_keys(p, turned);
}

static bool fits_mask(const struct attention_parts *p, cm_value mask, cm_value scores)
{
    const struct cm_type *m = cm_value_type(p->graph->module, mask),
                         *s = cm_value_type(p->graph->module, scores);
    /* The operator puts the axis of heads before the last two. */
    const int most = p->rank == 3 ? 2 : 4;
    if (m->kind != CM_KIND_TENSOR || m->rank < 1 || m->rank > most)
        return false;
    for (int d = 0; d < m->rank; d++) {
        const bool is_last = d == m->rank - 1; /* a shorter last axis means something else */
        if (!same_dims(m, d, s, p->rank - m->rank + d) && (is_last || m->dims[d].value != 1))
            return false;
    }
    return true;
}

static bool add_mask(struct attention_parts *p, cm_value mask, cm_value scores)
{
    if (p->n_masks == MOST_MASKS || cm_value_type(p->graph->module, mask)->dtype != CM_FLOAT ||
        !fits_mask(p, mask, scores))
        return false;
    const enum cm_mask_kind kind = cm_mask_kind(p->graph->module, p->group->memo, mask);
    const struct cm_type *s = cm_value_type(p->graph->module, scores);
    if (kind == CM_MASK_CAUSAL && !p->causal && same_dims(s, p->rank - 2, s, p->rank - 1)) {
        p->causal = true;
        return true;
    }
    p->partly = p->partly || kind == CM_MASK_OPEN || kind == CM_MASK_CAUSAL;
    p->masks[p->n_masks++] = mask;
    return p->guarded || kind != CM_MASK_ANY;
}

/* Two masks that each leave something of a row may together leave nothing. */
static bool leave_something(const struct attention_parts *p)
{
    return p->guarded || p->causal + p->partly + (p->hidden != 0) < 2;
}

static bool read_scores(struct attention_parts *p, cm_value scores, int depth);

/* Goes on with operand i of a node; as if nothing had happened where that leads nowhere. */
static bool read_through(struct attention_parts *p, struct cm_node *node, int i, int depth)
{
    const struct attention_parts before = *p;
    const size_t n_nodes = p->group->n_nodes;
    if (note(p, node) && read_scores(p, node->inputs[i].value, depth - 1))
        return true;
    *p = before;
    p->group->n_nodes = n_nodes;
    return false;
}

/* Scores that are replaced by the most negative number: adding that number does the same, as long
 * as no score counts beside it. */
static bool read_hidden(struct attention_parts *p, struct cm_node *node, cm_value scores, int depth)
{
    double never;
    for (int i = 1; i <= 2; i++) {
        const cm_value other = node->inputs[3 - i].value;
        if (p->hidden || !cm_constant_number(p->graph->module, other, &never) || never > -1e30 ||
            !fits_mask(p, node->inputs[0].value, scores))
            continue;
        if (read_through(p, node, i, depth)) {
            p->hidden = node->inputs[0].value;
            p->hidden_if_false = i == 1;
            p->never = other;
            return true;
        }
    }
    return false;
}

static bool read_scores(struct attention_parts *p, cm_value scores, int depth)
{
    struct cm_node *sum = maker(p, scores, "Add"), *choice = maker(p, scores, "Where");
    if (depth == 0 || cm_value_type(p->graph->module, scores)->rank != p->rank)
        return false;
    for (int i = 0; sum && i < 2; i++)
        if (read_through(p, sum, i, depth))
            return add_mask(p, sum->inputs[1 - i].value, scores);
    if (choice)
        return read_hidden(p, choice, scores, depth);
    return read_product(p, scores);
}

/* Where(IsNaN(s), 0, s) */
static bool read_guard(struct attention_parts *p, cm_value *weights)
{
    struct cm_node *choice = maker(p, *weights, "Where");
    double number;
    if (!choice)
        return true;
    struct cm_node *test = maker(p, choice->inputs[0].value, "IsNaN");
    if (!test || test->inputs[0].value != choice->inputs[2].value ||
        !cm_constant_number(p->graph->module, choice->inputs[1].value, &number) || number != 0)
        return false;
    p->guarded = true;
    *weights = choice->inputs[2].value;
    return note(p, choice) && note(p, test);
}

static bool read_parts(struct attention_parts *p, struct cm_node *root)
{
    cm_value weights = root->inputs[0].value;
    p->graph = root->graph;
    p->scale = 1;
    p->value = root->inputs[1].value;
    *p->group = (struct cm_group){.graph = root->graph, .root = root, .memo = p->group->memo};
    const struct cm_type *v = cm_value_type(p->graph->module, p->value);
    p->rank = v->rank;
    if (!note(p, root) || v->kind != CM_KIND_TENSOR || (v->rank != 3 && v->rank != 4) ||
        v->dtype != CM_FLOAT || !read_guard(p, &weights))
        return false;
    struct cm_node *softmax = maker(p, weights, "Softmax");
    if (!softmax || cm_value_type(p->graph->module, weights)->rank != p->rank ||
        (cm_node_int(softmax, "axis") != -1 && cm_node_int(softmax, "axis") != p->rank - 1) ||
        !note(p, softmax) || !read_scores(p, softmax->inputs[0].value, MOST_MASKS + 2))
        return false;
    const struct cm_type *q = cm_value_type(p->graph->module, p->query),
                         *s = cm_value_type(p->graph->module, weights);
    return leave_something(p) && same_batch(p, q, v) && same_dims(s, p->rank - 1, v, p->rank - 2);
}

static bool reads_only(const struct cm_group *group, const struct cm_node *node)
{
    for (const struct cm_use *use = cm_value_get(node->module, node->outputs[0])->uses; use;
         use = use->next) {
        bool inside = false;
        for (size_t i = 0; i < group->n_nodes; i++)
            inside = inside || group->nodes[i] == use->node;
        if (!inside)
            return false;
    }
    return true;
}

bool cm_attention_match(struct cm_node *root, struct cm_mask_memo *memo, struct cm_group *out)
{
    struct attention_parts p = {.group = out};
    out->memo = memo;
    if (!cm_node_is(root, "MatMul") || !read_parts(&p, root) ||
        !(p.scale <= (double)FLT_MAX && p.scale >= (double)FLT_MIN))
        return false;
    for (size_t i = 1; i < p.n_inner; i++)
        if (!reads_only(out, out->nodes[i]))
            return false;
    return true;
}

static cm_value build_mask(const struct attention_parts *p, struct cm_builder *build)
{
    cm_value mask = 0;
    if (p->hidden) {
        const cm_value zero = cm_build_scalar(build, CM_FLOAT, 0);
        mask = cm_build(
            build, &(struct cm_emission){.op = "Where",
                                         CM_INPUTS(p->hidden, p->hidden_if_false ? zero : p->never,
                                                   p->hidden_if_false ? p->never : zero)});
    }
    for (int i = 0; i < p->n_masks; i++)
        mask =
            mask ? cm_build(build, &(struct cm_emission){.op = "Add", CM_INPUTS(p->masks[i], mask)})
                 : p->masks[i];
    return mask;
}

cm_value cm_attention_build(const struct cm_group *group, struct cm_builder *build)
{
    struct cm_arena *arena = cm_builder_arena(build);
    struct cm_group again = {.memo = group->memo};
    struct attention_parts p = {.group = &again};
    if (!read_parts(&p, group->root))
        return 0;
    if (!p.key && p.is_flat) {
        const cm_value dims = cm_build_int64s(build, 4, p.key_dims);
        p.key = cm_build(build, &(struct cm_emission){.op = "Reshape", CM_INPUTS(p.source, dims)});
    } else if (!p.key) {
        const struct cm_attribute_proto perm =
            cm_attr_ints(arena, "perm", (size_t)p.rank, p.key_perm);
        p.key = cm_build(build, &(struct cm_emission){
                                    .op = "Transpose", CM_INPUTS(p.source), CM_ATTRIBUTES(perm)});
    }
    const cm_value mask = build_mask(&p, build);
    const struct cm_attribute_proto attributes[] = {
        cm_attr_float(arena, "scale", (float)p.scale),
        cm_attr_int(arena, "is_causal", p.causal),
        cm_attr_int(arena, "q_num_heads", 1),
        cm_attr_int(arena, "kv_num_heads", 1),
    };
    return cm_build(build,
                    &(struct cm_emission){.op = "Attention",
                                          .inputs = (cm_value[]){p.query, p.key, p.value, mask},
                                          .n_inputs = mask ? 4 : 3,
                                          .attributes = attributes,
                                          .n_attributes = p.rank == 3 ? 4 : 2});
}
