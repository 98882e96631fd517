/* Rules of `simplify` for shape arithmetic: what is known of a result before anything runs becomes
 * a constant, and small constants are computed with. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/simplify.h"

#include "graph/eval.h"

enum {
    KNOWN_MAX = 1024, /* elements of a result that inference knows */
    SMALL_IN = 64,    /* elements of an operand that is computed with */
    SMALL_OUT = 256,  /* elements of what comes out */
    OPERANDS_MAX = 64,
};

/* ---- what inference knows ---- */

/* May number be an element of this type? */
static bool fits(enum cm_dtype dtype, int64_t number)
{
    return dtype == CM_INT64 || (dtype == CM_INT32 && number == (int32_t)number);
}

/* Are all elements of the value known, and is it worth a constant? */
static bool is_known(const struct cm_value_def *def)
{
    const struct cm_known *known = def->fact.known;
    const struct cm_type *type = def->fact.type;
    if (!known || def->fact.constant || known->count > KNOWN_MAX || type->rank != known->rank ||
        (known->rank == 1 && type->dims[0].value != (int64_t)known->count))
        return false;
    for (size_t i = 0; i < known->count; i++)
        if (!known->items[i].is_number || !fits(type->dtype, known->items[i].number))
            return false;
    return true;
}

/* Output o, if it is known and somebody reads it; NULL otherwise. */
static const struct cm_value_def *known_result(const struct cm_candidate *m, int o)
{
    const cm_value value = m->node->outputs[o];
    const struct cm_value_def *def = value ? cm_value_get(m->module, value) : NULL;
    return def && def->fact.known && def->n_uses && is_known(def) &&
                   !cm_is_output(m->node->graph, value)
               ? def
               : NULL;
}

static bool knows_result(struct cm_candidate *m)
{
    const struct cm_node *node = m->node;
    if (!node->op || node->n_bodies || node->op->effects & CM_RANDOM)
        return false;
    for (int o = 0; o < node->n_outputs; o++)
        if (known_result(m, o))
            return true;
    return false;
}

static cm_value build_known(struct cm_candidate *m, const struct cm_value_def *def)
{
    const struct cm_known *known = def->fact.known;
    const struct cm_shape shape = {known->rank, {(int64_t)known->count}};
    int64_t *wide = CM_NEW_ARRAY(&m->all->scratch, int64_t, known->count + 1);
    int32_t *narrow = CM_NEW_ARRAY(&m->all->scratch, int32_t, known->count + 1);
    for (size_t i = 0; i < known->count; i++) {
        wide[i] = known->items[i].number;
        narrow[i] = (int32_t)known->items[i].number;
    }
    const bool is_wide = def->fact.type->dtype == CM_INT64;
    const struct cm_tensor tensor = cm_tensor_borrow(is_wide ? CM_INT64 : CM_INT32, &shape,
                                                     is_wide ? (void *)wide : (void *)narrow);
    return cm_build_tensor(&m->build, &tensor);
}

static void known_results(struct cm_candidate *m)
{
    for (int o = 0; o < m->node->n_outputs; o++) {
        const struct cm_value_def *def = known_result(m, o);
        if (def)
            m->results[o] = build_known(m, def);
    }
}

/* ---- computing with small constants ---- */

static bool is_small(const struct cm_type *type, int64_t most)
{
    struct cm_shape shape;
    int64_t count;
    return type && type->kind == CM_KIND_TENSOR && type->dtype != CM_STRING &&
           cm_type_shape(type, &shape) && cm_shape_count(&shape, &count) && count <= most;
}

static bool has_small_operands(struct cm_candidate *m)
{
    const struct cm_node *node = m->node;
    if (node->n_inputs == 0 || node->n_inputs > OPERANDS_MAX)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value && !cm_candidate_constant(m, i, SMALL_IN))
            return false;
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && (!is_small(cm_candidate_result_type(m, o), SMALL_OUT) ||
                                 cm_is_output(node->graph, node->outputs[o])))
            return false;
    return true;
}

/* What fails is left to fail when it runs, if it ever does. */
static void compute(struct cm_candidate *m)
{
    struct cm_node *node = m->node;
    struct cm_datum in[OPERANDS_MAX];
    const struct cm_datum *args[OPERANDS_MAX] = {NULL};
    for (int i = 0; i < node->n_inputs; i++) {
        const struct cm_tensor *constant =
            node->inputs[i].value ? cm_candidate_constant(m, i, SMALL_IN) : NULL;
        if (!constant)
            continue;
        in[i] = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *constant};
        args[i] = &in[i];
    }
    struct cm_datum *out = cm_data_new(&m->all->scratch, (size_t)node->n_outputs);
    if (cm_op_eval(node, args, out, NULL))
        return;
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            m->results[o] = cm_build_tensor(&m->build, &out[o].tensor);
}

/* clang-format off */
const struct cm_simplify_rule cm_simplify_shapes[] = {
    {"known-result", "*", knows_result, known_results},
    {"small-operands",
     "Abs Add And Cast Ceil Concat ConstantOfShape Div Equal Expand Floor Gather Greater "
     "GreaterOrEqual Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Range ReduceMax "
     "ReduceMin ReduceProd ReduceSum Reshape Round Slice Split Sqrt Squeeze Sub Transpose "
     "Unsqueeze Where",
     has_small_operands, compute},
    {0},
};
/* clang-format on */
