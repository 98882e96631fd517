/* A rule of `simplify` for matrix products whose batch axes were flattened into one before and are
 * unfolded after them: how converters write an Einsum. The product takes several batch axes as they
 * are, and as the operators around it have them, what they are together can be recognized. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/dims/dim_math.h"
#include "rewrite/permutation.h"
#include "rewrite/simplify.h"

enum { VIEWS_MAX = 8, BATCH_MAX = 8 };

/* An operand of the product: before its batch axes were flattened. */
struct operand {
    cm_value source;
    struct cm_type type; /* the source with its batch axes and two more */
    struct cm_dim dims[BATCH_MAX + 2];
    int n_batch;
    bool turned; /* its last two axes change places afterwards */
};

/* Are the last two axes of a rank 3 tensor exchanged by the node? */
static bool turns_matrix(const struct cm_node *transpose)
{
    static const struct cm_perm turn = {3, {0, 2, 1}};
    struct cm_perm perm;
    return cm_perm_of_node(transpose, &perm) && cm_perm_equal(&perm, &turn);
}

/* Does a type begin with axes whose product is the batch, and hold nothing but the matrix after
 * them? Then dims receives those that are not 1, and the matrix. */
static bool unfold(const struct cm_candidate *m, const struct cm_type *type,
                   const struct cm_type *flat, struct operand *out)
{
    struct cm_symbols *symbols = cm_module_symbols(m->module);
    const struct cm_quantity batch = cm_type_product(symbols, flat, 0, 1),
                             matrix = cm_type_product(symbols, flat, 1, 3);
    out->n_batch = 0;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i].value == 1)
            continue;
        if (out->n_batch == BATCH_MAX)
            return false;
        out->dims[out->n_batch++] = type->dims[i];
        if (!cm_quantity_same(cm_type_product(symbols, type, 0, i + 1), batch))
            continue;
        out->dims[out->n_batch] = flat->dims[1];
        out->dims[out->n_batch + 1] = flat->dims[2];
        return cm_quantity_same(cm_type_product(symbols, type, i + 1, type->rank), matrix);
    }
    return false;
}

/* What operand i of the product was before it was flattened: the nearest view that shows several
 * batch axes. */
static bool find_operand(struct cm_candidate *m, const struct cm_node *product, int i,
                         struct operand *out)
{
    cm_value value = cm_node_input(product, i);
    const struct cm_node *turn = cm_candidate_maker(m, value, "Transpose");
    out->turned = turn && turns_matrix(turn);
    if (out->turned)
        value = cm_node_input(turn, 0);
    const struct cm_type *flat = cm_value_type(m->module, value);
    if (flat->rank != 3)
        return false;
    out->source = value;
    for (int k = 0; k < VIEWS_MAX && (out->source = cm_candidate_viewed(m, out->source)); k++) {
        const struct cm_type *type = cm_value_type(m->module, out->source);
        if (type->rank == CM_RANK_UNKNOWN || !unfold(m, type, flat, out) || out->n_batch < 2)
            continue;
        out->type = *flat;
        out->type.rank = out->n_batch + 2;
        out->type.dims = out->dims;
        return cm_candidate_can_reshape(type, &out->type);
    }
    return false;
}

static bool same_batch(const struct operand *a, const struct operand *b)
{
    return a->n_batch == b->n_batch && cm_dims_same(a->dims, b->dims, a->n_batch);
}

/* The product's type with its batch axes. */
static void result_type(const struct operand *a, const struct operand *b, struct operand *out)
{
    *out = *a;
    out->type.dims = out->dims;
    out->dims[a->n_batch] = a->dims[a->n_batch + a->turned];
    out->dims[a->n_batch + 1] = b->dims[b->n_batch + !b->turned];
}

/* Does a view show the batch axes that the operands have? */
static bool shows_batch(const struct cm_type *type, const struct operand *operand)
{
    int found = 0;
    for (int i = 0; i < type->rank && found < operand->n_batch; i++) {
        if (type->dims[i].value == 1)
            continue;
        if (!cm_dim_same(type->dims[i], operand->dims[found]))
            return false;
        found++;
    }
    return found == operand->n_batch;
}

static const struct cm_node *find_product(struct cm_candidate *m, struct operand *a,
                                          struct operand *b)
{
    const struct cm_node *product = cm_candidate_maker(m, m->operand, "MatMul");
    if (!product || cm_value_get(m->module, m->operand)->n_uses != 1 ||
        cm_value_type(m->module, m->operand)->rank != 3 || !find_operand(m, product, 0, a) ||
        !find_operand(m, product, 1, b) || !same_batch(a, b))
        return NULL;
    return product;
}

static bool is_unfolded(struct cm_candidate *m)
{
    struct operand a, b, y;
    const struct cm_type *result = cm_candidate_result_type(m, 0);
    if (!result || result->rank < 4 || !find_product(m, &a, &b) || !shows_batch(result, &a))
        return false;
    result_type(&a, &b, &y);
    return cm_same_tensor_type(&y.type, result) || cm_candidate_can_reshape(&y.type, result);
}

static cm_value build_operand(struct cm_candidate *m, const struct operand *operand)
{
    const cm_value value = cm_candidate_reshape(m, operand->source, &operand->type);
    const int n = operand->n_batch;
    struct cm_perm perm = {.rank = n + 2};
    if (!operand->turned || !value)
        return value;
    for (int i = 0; i < n + 2; i++)
        perm.axes[i] = (unsigned char)(i < n ? i : 2 * n + 1 - i);
    return cm_perm_build(&m->build, value, &perm);
}

static void build_product(struct cm_candidate *m)
{
    struct operand a, b;
    if (!find_product(m, &a, &b))
        return;
    const cm_value left = build_operand(m, &a), right = build_operand(m, &b);
    if (!left || !right)
        return;
    const cm_value product =
        cm_build(&m->build, &(struct cm_emission){.op = "MatMul", CM_INPUTS(left, right)});
    if (product)
        m->results[0] = cm_candidate_reshape(m, product, cm_candidate_result_type(m, 0));
}

const struct cm_simplify_rule cm_simplify_products[] = {
    {"product-of-flattened-batches", "Reshape", is_unfolded, build_product},
    {0},
};
