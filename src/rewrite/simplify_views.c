/* Rules of `simplify` for operators that move elements or only change the shape: those that change
 * nothing go, and several after each other become one. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/simplify.h"

#include "graph/dims/dim_math.h"
#include "rewrite/permutation.h"

enum {
    CHAIN_MAX = 16,  /* views after each other that are looked at */
    SHAPES_MAX = 64, /* nodes that compute one shape */
};

/* Is item k of what is known of a shape surely 1 or this dimension? */
static bool says_the_same(struct cm_quantity item, struct cm_dim dim)
{
    return (item.is_number && item.number == 1) || cm_dim_same(cm_quantity_dim(item), dim);
}

/* Inference takes it that a shape fits; only a shape that is known surely does. */
static bool expands_nothing(struct cm_candidate *m)
{
    const struct cm_type *x = cm_candidate_type(m, 0);
    const struct cm_tensor *shape = cm_candidate_constant(m, 1, CM_MAX_RANK);
    const struct cm_known *known = cm_value_get(m->module, m->node->inputs[1].value)->fact.known;
    const int64_t count = shape ? cm_tensor_count(shape) : known ? (int64_t)known->count : -1;

    if (!cm_candidate_keeps_shape(m) || count < 0 || count > x->rank)
        return false;
    for (int64_t k = 0; k < count; k++) {
        const struct cm_quantity item =
            shape ? (struct cm_quantity){.is_number = true, .number = cm_tensor_int(shape, k)}
                  : known->items[k];
        if (!says_the_same(item, x->dims[x->rank - count + k]))
            return false;
    }
    return true;
}

static bool repeats_nothing(struct cm_candidate *m)
{
    const struct cm_tensor *times = cm_candidate_constant(m, 1, CM_MAX_RANK);
    for (int64_t k = 0; times && k < cm_tensor_count(times); k++)
        if (cm_tensor_int(times, k) != 1)
            return false;
    return times && cm_candidate_keeps_shape(m);
}

/* ---- views: the same elements in the same order ---- */

static const char *const view_ops[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};

/* The product of all dimensions but one (-1: of all); unknown where one may be 0. */
static struct cm_quantity size_without(struct cm_symbols *symbols, const struct cm_type *type,
                                       int without)
{
    struct cm_quantity product = {1, 0, type->rank != CM_RANK_UNKNOWN};
    for (int i = 0; i < type->rank; i++)
        if (i != without)
            product = cm_quantity_product(symbols, product, cm_dim_quantity(type->dims[i]));
    return product.is_number && product.number == 0 ? (struct cm_quantity){0} : product;
}

/* Can `from` surely be given the shape `to`, whose dimension `open` (-1: none) is what is left? */
static bool holds_as_many(struct cm_symbols *symbols, const struct cm_type *from,
                          const struct cm_type *to, int open)
{
    struct cm_shape a, b;
    int64_t n_a, n_b;
    if (cm_type_shape(from, &a) && cm_type_shape(to, &b))
        return cm_shape_count(&a, &n_a) && cm_shape_count(&b, &n_b) && n_a == n_b;
    const struct cm_quantity all = size_without(symbols, from, -1),
                             rest = size_without(symbols, to, open),
                             left = cm_quantity_floor(symbols, all, rest);
    return open < 0 ? cm_quantity_same(all, rest)
                    : cm_quantity_same(all, cm_quantity_product(symbols, left, rest));
}

/* Which dimension a Reshape is told to find by itself; -1: none, or that is not known. */
static int open_dim(struct cm_candidate *m, const struct cm_node *reshape)
{
    const cm_value value = cm_node_input(reshape, 1);
    const struct cm_tensor *list = cm_candidate_contents(m, value, CM_MAX_RANK);
    const struct cm_known *known = cm_value_get(m->module, value)->fact.known;
    const size_t count = list ? (size_t)cm_tensor_count(list) : known ? known->count : 0;
    for (size_t i = 0; i < count && i < CM_MAX_RANK; i++)
        if (list ? cm_tensor_int(list, (int64_t)i) == -1
                 : known->items[i].is_number && known->items[i].number == -1)
            return (int)i;
    return -1;
}

/* Does the node, a view, never refuse what it is given? Else it may not go: a result would come
 * where there was none. */
static bool is_sound(struct cm_candidate *m, const struct cm_node *node)
{
    const struct cm_type *from = cm_value_get(m->module, cm_node_input(node, 0))->fact.type;
    const struct cm_type *to = cm_value_get(m->module, cm_node_output(node, 0))->fact.type;
    if (cm_str_is(node->op_type, "Flatten") || cm_str_is(node->op_type, "Transpose"))
        return true;
    if (cm_str_is(node->op_type, "Unsqueeze"))
        return cm_candidate_contents(m, cm_node_input(node, 1), CM_MAX_RANK) != NULL;
    return holds_as_many(cm_module_symbols(m->module), from, to,
                         cm_str_is(node->op_type, "Reshape") ? open_dim(m, node) : -1);
}

cm_value cm_candidate_viewed(struct cm_candidate *m, cm_value value)
{
    for (size_t i = 0; i < CM_COUNT(view_ops); i++) {
        const struct cm_node *maker = cm_candidate_maker(m, value, view_ops[i]);
        if (maker)
            return is_sound(m, maker) ? cm_node_input(maker, 0) : 0;
    }
    return 0;
}

/* A view of views that ends with the shape one of them began with. */
static bool back_again(struct cm_candidate *m)
{
    const struct cm_type *result = cm_candidate_result_type(m, 0);
    cm_value value = m->operand;
    for (int i = 0; value && i < CHAIN_MAX; i++) {
        if (cm_same_tensor_type(cm_value_get(m->module, value)->fact.type, result)) {
            m->operand = value;
            return true;
        }
        value = cm_candidate_viewed(m, value);
    }
    return false;
}

/* ---- Reshape ---- */

/* A constant shape for Reshape. */
struct target {
    int64_t dims[CM_MAX_RANK];
    int rank;
    int open;       /* which is -1; -1: none */
    bool allowzero; /* 0 is a number, not "as in the input" */
};

/* The shape that makes `to` of `from`, in numbers, with 0 for dimensions that stay where they are
 * and -1 for one that is left. */
static bool express(const struct cm_type *from, const struct cm_type *to, struct target *target)
{
    bool copies = false, empty = false;
    target->open = -1;
    if (to->rank == CM_RANK_UNKNOWN || from->rank == CM_RANK_UNKNOWN)
        return false;
    target->rank = to->rank;
    for (int i = 0; i < to->rank; i++) {
        if (cm_dim_known(to->dims[i])) {
            target->dims[i] = to->dims[i].value;
            empty = empty || to->dims[i].value == 0;
        } else if (i < from->rank && cm_dim_same(from->dims[i], to->dims[i])) {
            target->dims[i] = 0;
            copies = true;
        } else {
            if (target->open >= 0)
                return false;
            target->dims[i] = -1;
            target->open = i;
        }
    }
    target->allowzero = empty;
    return !empty || (target->open < 0 && !copies);
}

/* The list that a Reshape is given, when it is constant and says the same whatever is reshaped. */
static bool given_target(struct cm_candidate *m, struct target *target)
{
    const struct cm_tensor *list =
        cm_str_is(m->node->op_type, "Reshape") ? cm_candidate_constant(m, 1, CM_MAX_RANK) : NULL;
    if (!list)
        return false;
    target->allowzero = cm_node_int(m->node, "allowzero") != 0;
    target->rank = (int)cm_tensor_count(list);
    for (int i = 0; i < target->rank; i++) {
        target->dims[i] = cm_tensor_int(list, i);
        if (target->dims[i] == 0 && !target->allowzero)
            return false;
    }
    return true;
}

static cm_value build_reshape(struct cm_candidate *m, cm_value x, const struct target *target)
{
    struct cm_arena *arena = cm_module_arena(m->module);
    const cm_value shape = cm_build_int64s(&m->build, (size_t)target->rank, target->dims);
    const struct cm_attribute_proto allowzero = cm_attr_int(arena, "allowzero", 1);
    return cm_build(&m->build, &(struct cm_emission){.op = "Reshape",
                                                     CM_INPUTS(x, shape),
                                                     .attributes = &allowzero,
                                                     .n_attributes = target->allowzero});
}

bool cm_candidate_can_reshape(const struct cm_type *from, const struct cm_type *to)
{
    struct target target;
    return express(from, to, &target);
}

cm_value cm_candidate_reshape(struct cm_candidate *m, cm_value x, const struct cm_type *type)
{
    struct target target;
    const struct cm_type *from = cm_value_get(m->module, x)->fact.type;
    if (cm_same_tensor_type(from, type))
        return x;
    return express(from, type, &target) ? build_reshape(m, x, &target) : 0;
}

static bool target_from(struct cm_candidate *m, cm_value source, struct target *target)
{
    return given_target(m, target) || express(cm_value_get(m->module, source)->fact.type,
                                              cm_candidate_result_type(m, 0), target);
}

/* Does a Reshape to the target refuse what the node refuses? Both find the same dimension, or the
 * node refuses nothing. */
static bool refuses_the_same(struct cm_candidate *m, const struct target *target)
{
    return is_sound(m, m->node) || (target->open >= 0 && cm_str_is(m->node->op_type, "Reshape") &&
                                    target->open == open_dim(m, m->node));
}

/* The view furthest back that can be reshaped at once. */
static bool of_view(struct cm_candidate *m)
{
    struct target target;
    cm_value source = cm_candidate_viewed(m, m->operand), best = 0;
    for (int i = 0; source && i < CHAIN_MAX; i++) {
        if (given_target(m, &target) ||
            (target_from(m, source, &target) && refuses_the_same(m, &target)))
            best = source;
        source = cm_candidate_viewed(m, source);
    }
    m->operand = best;
    return best != 0;
}

static void reshape_operand(struct cm_candidate *m)
{
    struct target target;
    if (target_from(m, m->operand, &target))
        m->results[0] = build_reshape(m, m->operand, &target);
}

/* Is value computed from nothing but constants and the shapes of tensors? */
static bool is_of_shapes(struct cm_candidate *m, cm_value value, int *budget)
{
    const struct cm_value_def *def = value ? cm_value_get(m->module, value) : NULL;
    if (!def)
        return true;
    if (!def->node)
        return def->role == CM_ROLE_INITIALIZER && !def->is_state;
    if (cm_str_is(def->node->op_type, "Shape") || cm_str_is(def->node->op_type, "Size"))
        return true;
    if ((*budget)-- == 0 || def->node->n_bodies || !def->node->op ||
        def->node->op->effects & CM_RANDOM)
        return false;
    for (int i = 0; i < def->node->n_inputs; i++)
        if (!is_of_shapes(m, def->node->inputs[i].value, budget))
            return false;
    return true;
}

/* Is it unknown, or an expression of sizes? */
static bool is_computed(const struct cm_candidate *m, struct cm_quantity item)
{
    return !item.is_number &&
           (!item.symbol || cm_symbol_is_expression(cm_module_symbols(m->module), item.symbol));
}

/* Exporters compute the new shape from that of the input; what is known of it is often all that
 * Reshape needs. A dimension that arithmetic on shapes gives, a product say, is taken to be the one
 * that fits; one of another tensor, or that somebody feeds, is not. */
static bool target_is_known(struct cm_candidate *m)
{
    struct target target;
    int budget = SHAPES_MAX;
    const cm_value list = cm_node_input(m->node, 1);
    const struct cm_value_def *shape = cm_value_get(m->module, list);
    if (shape->fact.constant || !shape->node ||
        !express(cm_candidate_type(m, 0), cm_candidate_result_type(m, 0), &target))
        return false;
    if (refuses_the_same(m, &target))
        return true;
    const struct cm_known *known = shape->fact.known;
    return target.open >= 0 && known && (size_t)target.open < known->count &&
           is_computed(m, known->items[target.open]) && is_of_shapes(m, list, &budget);
}

/* ---- Transpose ---- */

/* What a Transpose node does; false where the rank of its operand is not known. */
static bool permutation(const struct cm_candidate *m, const struct cm_node *node,
                        struct cm_perm *out)
{
    const struct cm_type *x = cm_value_get(m->module, cm_node_input(node, 0))->fact.type;
    return cm_perm_of_node(node, out) && out->rank == x->rank;
}

static bool keeps_order(struct cm_candidate *m)
{
    struct cm_perm perm;
    return permutation(m, m->node, &perm) && cm_perm_is_identity(&perm);
}

/* The Transpose that this one reads, and the permutation of both. */
static const struct cm_node *inner_transpose(struct cm_candidate *m, struct cm_perm *both)
{
    const struct cm_node *inner = cm_candidate_maker(m, m->operand, "Transpose");
    struct cm_perm first, second;
    if (!inner || !permutation(m, inner, &first) || !permutation(m, m->node, &second))
        return NULL;
    *both = cm_perm_compose(&first, &second);
    return inner;
}

static bool of_transpose(struct cm_candidate *m)
{
    struct cm_perm both;
    return inner_transpose(m, &both) != NULL;
}

static void transpose_once(struct cm_candidate *m)
{
    struct cm_perm both;
    const struct cm_node *inner = inner_transpose(m, &both);
    if (!inner)
        return;
    const cm_value x = cm_node_input(inner, 0);
    m->results[0] = cm_perm_is_identity(&both) ? x : cm_perm_build(&m->build, x, &both);
}

/* Axes of length 1 may go anywhere: no element moves while the others keep their order. */
static bool moves_ones(struct cm_candidate *m)
{
    const struct cm_type *result = cm_candidate_result_type(m, 0);
    struct cm_perm perm;
    return permutation(m, m->node, &perm) && cm_perm_keeps_order(&perm, result) &&
           cm_candidate_can_reshape(cm_candidate_type(m, 0), result);
}

/* Which axes of a Transpose's result the view of it leaves out: some of length 1, and no other
 * change; false if it is not so. */
static bool left_out(const struct cm_type *moved, const struct cm_type *result, bool *gone)
{
    int at = 0;
    if (moved->rank == CM_RANK_UNKNOWN || result->rank >= moved->rank || result->rank < 0)
        return false;
    for (int i = 0; i < moved->rank; i++) {
        gone[i] = at == result->rank || !cm_dim_same(moved->dims[i], result->dims[at]);
        if (gone[i] && moved->dims[i].value != 1)
            return false;
        at += !gone[i];
    }
    return at == result->rank;
}

/* The same Transpose without axes of length 1 that are left out after it. */
struct shorter {
    cm_value x;
    struct cm_type type; /* of x without those axes */
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_perm perm;
};

static bool shorten(struct cm_candidate *m, struct shorter *out)
{
    const struct cm_node *transpose = cm_candidate_maker(m, m->operand, "Transpose");
    const struct cm_type *result = cm_candidate_result_type(m, 0);
    bool gone[CM_MAX_RANK], gone_before[CM_MAX_RANK];
    int place[CM_MAX_RANK], kept = 0;
    struct cm_perm perm;
    if (!transpose || cm_value_get(m->module, m->operand)->n_uses != 1 || !result ||
        !permutation(m, transpose, &perm) ||
        !left_out(cm_value_get(m->module, m->operand)->fact.type, result, gone))
        return false;
    out->x = cm_node_input(transpose, 0);
    const struct cm_type *x = cm_value_get(m->module, out->x)->fact.type;
    for (int i = 0; i < perm.rank; i++)
        gone_before[perm.axes[i]] = gone[i];
    for (int i = 0; i < perm.rank; i++) {
        place[i] = kept;
        if (!gone_before[i])
            out->dims[kept++] = x->dims[i];
    }
    out->type = *x;
    out->type.rank = kept;
    out->type.dims = out->dims;
    out->perm.rank = 0;
    for (int i = 0; i < perm.rank; i++)
        if (!gone[i])
            out->perm.axes[out->perm.rank++] = (unsigned char)place[perm.axes[i]];
    return cm_candidate_can_reshape(x, &out->type);
}

static bool of_longer_transpose(struct cm_candidate *m)
{
    struct shorter shorter;
    return shorten(m, &shorter);
}

static void transpose_shorter(struct cm_candidate *m)
{
    struct shorter shorter;
    if (!shorten(m, &shorter))
        return;
    const cm_value x = cm_candidate_reshape(m, shorter.x, &shorter.type);
    if (x)
        m->results[0] = cm_perm_build(&m->build, x, &shorter.perm);
}

/* clang-format off */
const struct cm_simplify_rule cm_simplify_views[] = {
    {"back-again", "Reshape Flatten Squeeze Unsqueeze", back_again, cm_candidate_keep},
    {"reshape-to-known-shape", "Reshape", target_is_known, reshape_operand},
    {"of-view", "Reshape Flatten Squeeze Unsqueeze", of_view, reshape_operand},
    {"leaves-out-ones", "Reshape Squeeze", of_longer_transpose, transpose_shorter},
    {"expand-to-same-shape", "Expand", expands_nothing, cm_candidate_keep},
    {"tile-once", "Tile", repeats_nothing, cm_candidate_keep},
    {"transpose-in-order", "Transpose", keeps_order, cm_candidate_keep},
    {"transpose-of-transpose", "Transpose", of_transpose, transpose_once},
    {"transpose-of-ones", "Transpose", moves_ones, reshape_operand},
    {0},
};
/* clang-format on */
