/* Product regions: a convolution or matrix product with what follows it element by element, as
 * backends compute it while a result is in registers.
 *
 * From a product a chain goes from reader to reader, as long as there is only one and it keeps the
 * shape. Its last value is the region's one result and the region stands where that was computed:
 * everything it reads is there, and nobody else has read what went into it. Products are taken from
 * the last to the first, so that of two which are added the later one adds, when the other's result
 * is there.
 *
 * A MatMul of more than two axes by a matrix transposed, as converters write a layer of weights,
 * has the Transpose in its region too: weights that are trained are read as they lie. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pass.h"
#include "rewrite/permutation.h"
#include "rewrite/region_pass.h"

enum { FOLLOWERS = 6 };

struct product_row {
    const char *op;
    enum cm_dtype dtype; /* of operands and result */
    bool columns;        /* bias lies along the last axis; else along axis 1 */
};

static const struct product_row products[] = {
    {"Conv", CM_FLOAT, false},
    {"ConvTranspose", CM_FLOAT, false},
    {"Gemm", CM_FLOAT, true},
    {"MatMul", CM_FLOAT, true},
};

/* A chain under way. */
struct product_chain {
    const struct cm_region_work *work;
    const struct product_row *row;
    struct cm_node *members[FOLLOWERS + 1];
    size_t count;
    cm_value result; /* of the last member */
};

/* ---- what may follow ---- */

typedef bool follows_fn(const struct product_chain *chain, const struct cm_node *node);

/* The operand of a node of two that is not the chain's. */
static cm_value other_operand(const struct product_chain *chain, const struct cm_node *node)
{
    const int chains = cm_node_input(node, 0) == chain->result ? 0 : 1;
    return cm_node_input(node, 1 - chains);
}

/* One number a channel or column of the result. */
static bool is_bias(const struct product_chain *chain, const struct cm_type *type)
{
    const struct cm_type *result = cm_value_type(chain->work->graph->module, chain->result);
    const int missing = result->rank - type->rank;
    const int axis = chain->row->columns ? result->rank - 1 : 1;

    if (type->rank < 0 || missing < 0 || axis >= result->rank || axis < missing)
        return false;
    for (int i = 0; i < type->rank; i++) {
        const bool same = cm_dim_same(type->dims[i], result->dims[i + missing]);
        if (i + missing == axis ? !same : type->dims[i].value != 1)
            return false;
    }
    return true;
}

/* A product must not wait for another operand as large as its result. */
static bool is_there(const struct product_chain *chain, cm_value value)
{
    const struct cm_node *maker = cm_value_get(chain->work->graph->module, value)->node;
    const struct cm_marks *marks = &chain->work->marks;
    return !maker || maker->graph != chain->work->graph ||
           cm_mark_get(marks, maker) < cm_mark_get(marks, chain->members[0]);
}

static bool is_operand(const struct cm_node *node, cm_value value)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value == value)
            return true;
    return false;
}

static bool is_bias_or_residual(const struct product_chain *chain, const struct cm_node *node)
{
    const cm_value other = other_operand(chain, node);
    const struct cm_type *type = cm_value_type(chain->work->graph->module, other);
    if (is_operand(chain->members[0], other)) /* backends want it in two layouts */
        return false;
    return cm_type_is_single(type) || is_bias(chain, type) ||
           (cm_type_same_shape(type, cm_value_type(chain->work->graph->module, chain->result)) &&
            is_there(chain, other));
}

/* Sum of two is Add. */
static bool is_sum(const struct product_chain *chain, const struct cm_node *node)
{
    return node->n_inputs == 2 && is_bias_or_residual(chain, node);
}

static bool is_scale(const struct product_chain *chain, const struct cm_node *node)
{
    return cm_region_is_number(node->module, other_operand(chain, node));
}

static bool reads_first(const struct product_chain *chain, const struct cm_node *node)
{
    return cm_node_input(node, 0) == chain->result;
}

static bool has_constant_limits(const struct product_chain *chain, const struct cm_node *node)
{
    for (int i = 1; i < node->n_inputs; i++)
        if (node->inputs[i].value && !cm_region_is_number(node->module, node->inputs[i].value))
            return false;
    return reads_first(chain, node);
}

static const struct {
    const char *op;
    follows_fn *follows;
} followers[] = {
    {"Add", is_bias_or_residual},
    {"Clip", has_constant_limits},
    {"Elu", reads_first},
    {"Gelu", reads_first},
    {"HardSigmoid", reads_first},
    {"HardSwish", reads_first},
    {"LeakyRelu", reads_first},
    {"Mish", reads_first},
    {"Mul", is_scale},
    {"Relu", reads_first},
    {"Sigmoid", reads_first},
    {"Softplus", reads_first},
    {"Sum", is_sum},
    {"Swish", reads_first},
    {"Tanh", reads_first},
};

/* ---- chains ---- */

/* Is it a node of the graph that keeps shape and type, and runs when the product does? */
static bool is_alike(const struct product_chain *chain, const struct cm_node *node)
{
    if (!node || node->graph != chain->work->graph || node->phase != chain->members[0]->phase ||
        !cm_region_is_elementwise(node))
        return false;
    const struct cm_type *type = cm_value_type(chain->work->graph->module, node->outputs[0]);
    return type->dtype == chain->row->dtype &&
           cm_type_same_shape(type, cm_value_type(chain->work->graph->module, chain->result));
}

static void append(struct product_chain *chain, struct cm_node *node)
{
    chain->members[chain->count++] = node;
    chain->result = node->outputs[0];
}

static bool may_follow(const struct product_chain *chain, const struct cm_node *node)
{
    if (!is_alike(chain, node))
        return false;
    for (size_t i = 0; i < CM_COUNT(followers); i++)
        if (cm_node_is(node, followers[i].op))
            return followers[i].follows(chain, node);
    return false;
}

/* x * Sigmoid(x): the two readers of x, in order; false when they are not that. */
static bool is_gate(const struct product_chain *chain, struct cm_node *sigmoid,
                    struct cm_node *product)
{
    if (!is_alike(chain, sigmoid) || !is_alike(chain, product) || !cm_node_is(sigmoid, "Sigmoid") ||
        !cm_node_is(product, "Mul"))
        return false;
    const cm_value gate = sigmoid->outputs[0];
    return cm_value_get(sigmoid->module, gate)->n_uses == 1 &&
           other_operand(chain, product) == gate;
}

static bool extend(struct product_chain *chain)
{
    const struct cm_value_def *def = cm_value_get(chain->work->graph->module, chain->result);
    const struct cm_use *use = def->uses;

    if (def->n_uses == 1 && may_follow(chain, use->node)) {
        append(chain, use->node);
        return true;
    }
    if (def->n_uses != 2 || chain->count + 2 > CM_COUNT(chain->members))
        return false;
    struct cm_node *a = use->node, *b = use->next->node;
    const bool turned = !is_gate(chain, a, b);
    if (turned && !is_gate(chain, b, a))
        return false;
    append(chain, turned ? b : a);
    append(chain, turned ? a : b);
    return true;
}

/* What kind of product the node is; NULL when it is none. */
static const struct product_row *row_of(const struct cm_node *node)
{
    if (!node->op || node->op->elementwise || node->function || node->n_outputs != 1)
        return NULL;
    for (size_t i = 0; i < CM_COUNT(products); i++)
        if (cm_node_is(node, products[i].op))
            return &products[i];
    return NULL;
}

/* The Transpose of a matrix that the right operand of a MatMul is, if nobody else reads it; a
 * product reads its operand instead. */
static struct cm_node *turned_operand(const struct cm_node *product)
{
    const struct cm_value_def *b = cm_value_get(product->module, cm_node_input(product, 1));
    struct cm_perm p;
    return cm_node_is(product, "MatMul") && b->n_uses == 1 && b->node &&
                   b->node->graph == product->graph && b->node->phase == product->phase &&
                   cm_perm_of_node(b->node, &p) && p.rank == 2 && p.axes[0] == 1
               ? b->node
               : NULL;
}

static enum cm_status work_on(struct cm_region_work *work, const struct product_row *row,
                              struct cm_node *product)
{
    struct product_chain chain = {.work = work, .row = row};
    append(&chain, product);
    const struct cm_type *type = cm_value_type(work->graph->module, chain.result);
    if (type->kind != CM_KIND_TENSOR || type->dtype != row->dtype || type->rank < 0)
        return CM_OK;
    while (chain.count < CM_COUNT(chain.members) && extend(&chain))
        ;
    struct cm_node *members[FOLLOWERS + 2] = {turned_operand(product)};
    const size_t before = members[0] ? 1 : 0;
    memcpy(members + before, chain.members, chain.count * sizeof *members);
    const struct cm_region_group group = {&work->marks, members, chain.count + before};
    return group.count < 2 ? CM_OK : cm_region_make(work, "ProductRegion", &group, before + 1);
}

enum cm_status cm_region_products(struct cm_region_work *work)
{
    uint32_t place = 0;
    work->marks = cm_marks_begin(work->graph->module);
    for (struct cm_node *node = work->graph->first; node; node = node->next)
        cm_mark_set(&work->marks, node, place++);
    for (struct cm_node *node = work->graph->last, *prev; node && !work->full; node = prev) {
        const struct product_row *row = row_of(node);
        prev = node->prev;
        if (row && prev && prev == turned_operand(node)) /* it leaves the graph */
            prev = prev->prev;
        if (row)
            CM_TRY(work_on(work, row, node));
    }
    return CM_OK;
}
