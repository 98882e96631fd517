/* Transposes moved, merged and cancelled.
 *
 * A node that can be computed on transposed operands (transpose_rules.h) may stand before a
 * Transpose or after it. For one permutation at a time, starting from its Transpose nodes, all such
 * nodes that hang together are found; each is then computed either as it is ("far" from the
 * operands of those Transposes) or in their operands' layout ("near"). A value whose maker and
 * readers are not all of one kind needs a Transpose, which costs its bytes. The cheapest choice is
 * a minimum cut, and the graph is changed only where that costs less than what is there. So
 * Transposes that cancel go, however many nodes, sums and concatenations stand between them, the
 * others move to where they are small, and the pass comes to an end.
 *
 * The same numbers are moved and computed, in another order. Only reductions over several axes
 * may add up in another order and differ in rounding. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "rewrite/pass.h"

#include "base/number.h"
#include "rewrite/min_cut.h"
#include "rewrite/permutation.h"
#include "rewrite/transpose_rules.h"
#include "rewrite/transpose_steps.h"

enum {
    MAX_ROUNDS = 4,        /* one choice may make room for another */
    MAX_PERMUTATIONS = 16, /* looked at in one graph and round */
    USUAL_SIZE = 64,       /* of a dimension that is not known */
    NODE_COST = 256,       /* bytes that could be moved while a node is started */
};
/* Edges looked at by all searches for a cut. */
static const uint64_t SEARCH_BUDGET = 50000000;
/* Bytes of constants made here, where the caller sets no limit. */
static const size_t OWN_LIMIT = (size_t)1 << 30;

/* What the problem at hand says of a value. */
struct place {
    const struct cm_perm *perm; /* the value is this Transpose of what is on the near side */
    cm_value near;              /* what that is, once it is there */
    uint32_t problem;           /* a number for those members that hang together */
    bool moved;                 /* some of those go to the near side */
};

struct side {
    const struct cm_perm *perm; /* how the operands of a member are transposed */
    bool near;
};

struct transposes {
    struct cm_transpose_steps steps;
    struct cm_marks marks;
    uint64_t budget;               /* edges that searches may still look at */
    struct cm_arena lasting;       /* the table of places */
    struct cm_arena scratch;       /* for one permutation */
    struct cm_arena search;        /* for one problem */
    CM_ARRAY(struct place) places; /* by value; those in `touched` are set */
    CM_ARRAY(cm_value) touched;
    CM_ARRAY(struct cm_node *)
    members; /* nodes that may go to either side: the mark of one is its index + CM_CUT_FIRST */
    CM_ARRAY(struct side) sides; /* by member */
    uint32_t problem;            /* the one at hand */
    size_t reserved;             /* bytes of constants that the members will need */
    bool changed;
};

static const uint32_t REFUSED = UINT32_MAX; /* a mark: no member of this problem */

/* ---- the problem: which nodes, which values ---- */

static struct place place_of(const struct transposes *t, cm_value value)
{
    return value < t->places.count ? t->places.items[value] : (struct place){0};
}

/* Says that value is this Transpose of what is near; its maker and readers may become members. */
static void place_value(struct transposes *t, cm_value value, const struct cm_perm *perm)
{
    while (t->places.count <= value)
        *CM_PUSH(&t->lasting, &t->places) = (struct place){0};
    t->places.items[value] = (struct place){.perm = perm, .problem = t->problem};
    *CM_PUSH(&t->scratch, &t->touched) = value;
}

static bool is_constant(const struct transposes *t, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(t->steps.module, value);
    return !def->is_state && (def->fact.constant || def->role == CM_ROLE_INITIALIZER);
}

/* How one operand goes along when its node changes sides. */
enum operand_kind { OPERAND_STAYS, OPERAND_CONSTANT, OPERAND_MOVES, OPERAND_HINDERS };

static enum operand_kind operand_kind(const struct transposes *t, const struct cm_node *node, int i,
                                      int rank)
{
    const cm_value value = node->inputs[i].value;
    if (!value || !cm_transpose_moves(node, i))
        return OPERAND_STAYS;
    const struct cm_type *type = cm_value_type(t->steps.module, value);
    if (type->kind != CM_KIND_TENSOR || type->rank == CM_RANK_UNKNOWN || type->rank > rank)
        return OPERAND_HINDERS;
    if (is_constant(t, value))
        return cm_type_is_single(type)    ? OPERAND_STAYS
               : type->dtype == CM_STRING ? OPERAND_HINDERS
                                          : OPERAND_CONSTANT;
    if (type->rank == rank)
        return OPERAND_MOVES;
    return type->rank == 0 ? OPERAND_STAYS : OPERAND_HINDERS;
}

static bool outputs_agree(struct transposes *t, const struct cm_node *node,
                          const struct cm_perm *out)
{
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        const struct cm_perm *perm = place_of(t, node->outputs[o]).perm;
        if (cm_value_type(t->steps.module, node->outputs[o])->rank != out->rank ||
            (perm && !cm_perm_equal(perm, out)))
            return false;
    }
    return true;
}

static bool reserve(struct transposes *t, cm_value constant)
{
    const struct cm_type *type = cm_value_type(t->steps.module, constant);
    struct cm_shape shape;
    int64_t count;
    size_t bytes;

    if (!cm_type_shape(type, &shape) || !cm_shape_count(&shape, &count) ||
        !cm_dtype_bytes(type->dtype, count, &bytes) || !cm_size_add(t->reserved, bytes, &bytes) ||
        bytes > t->steps.bytes)
        return false;
    t->reserved = bytes;
    return true;
}

/* Makes node a member, its operands transposed by perm, if it can be. */
static void consider(struct transposes *t, struct cm_graph *graph, struct cm_node *node,
                     const struct cm_perm *perm, bool from_result)
{
    struct cm_transposed how;

    if (!node || node->graph != graph || cm_mark_get(&t->marks, node))
        return;
    cm_mark_set(&t->marks, node, REFUSED);
    if (!cm_transpose_through(node, perm, &how) || !outputs_agree(t, node, &how.out) ||
        (from_result && !cm_perm_equal(&how.out, perm)))
        return;
    for (int i = 0; i < node->n_inputs; i++) {
        const enum operand_kind kind = operand_kind(t, node, i, perm->rank);
        const struct cm_perm *other =
            kind == OPERAND_MOVES ? place_of(t, node->inputs[i].value).perm : NULL;
        if (kind == OPERAND_HINDERS || (other && !cm_perm_equal(other, perm)) ||
            (kind == OPERAND_CONSTANT && !reserve(t, node->inputs[i].value)))
            return;
    }
    struct cm_perm *out = NULL;
    if (!cm_perm_equal(&how.out, perm)) {
        out = CM_NEW(&t->scratch, struct cm_perm);
        *out = how.out;
    }
    cm_mark_set(&t->marks, node, (uint32_t)t->members.count + CM_CUT_FIRST);
    *CM_PUSH(&t->scratch, &t->sides) = (struct side){.perm = perm};
    *CM_PUSH(&t->scratch, &t->members) = node;
    for (int i = 0; i < node->n_inputs; i++)
        if (operand_kind(t, node, i, perm->rank) == OPERAND_MOVES &&
            !place_of(t, node->inputs[i].value).perm)
            place_value(t, node->inputs[i].value, perm);
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && !place_of(t, node->outputs[o]).perm)
            place_value(t, node->outputs[o], out ? out : perm);
}

static bool is_member(const struct transposes *t, const struct cm_node *node)
{
    const uint32_t mark = node ? cm_mark_get(&t->marks, node) : REFUSED;

    return mark >= CM_CUT_FIRST && mark != REFUSED;
}

/* All members that hang together with the values touched from the given one on. */
static void collect(struct transposes *t, struct cm_graph *graph, size_t first)
{
    for (size_t i = first; i < t->touched.count; i++) {
        const cm_value value = t->touched.items[i];
        const struct cm_value_def *def = cm_value_get(t->steps.module, value);
        const struct cm_perm *at = place_of(t, value).perm;
        for (const struct cm_use *use = def->uses; use; use = use->next)
            if (use->node && use->graph == graph && cm_transpose_moves(use->node, use->index))
                consider(t, graph, use->node, at, false);
        if (def->graph == graph)
            consider(t, graph, def->node, at, true);
    }
}

/* What a Transpose of value costs. */
static int64_t cost_of(const struct transposes *t, cm_value value, const struct cm_perm *perm)
{
    const struct cm_type *type = cm_value_type(t->steps.module, value);
    const int64_t most = INT64_C(1) << 40;
    int64_t cost = (int64_t)cm_dtype_size(type->dtype);

    if (cm_perm_keeps_order(perm, type))
        return NODE_COST / 16; /* a Reshape */
    cost = cost ? cost : 1;
    for (int a = 0; a < type->rank && cost < most; a++) {
        const int64_t size = cm_dim_known(type->dims[a]) ? type->dims[a].value : USUAL_SIZE;
        cost = size > most / cost ? most : cost * (size ? size : 1);
    }
    return cost + NODE_COST;
}

/* Members that hang together, each to go to one of two sides. */
struct problem {
    struct cm_graph *graph;
    size_t first_member, first_value; /* of the lists of members and touched values */
    struct cm_min_cut *cut;
};

/* Which side the maker of a value is on, as a member of a cut; false: it makes no difference. */
static bool maker_side(const struct transposes *t, const struct problem *problem, cm_value value,
                       const struct cm_perm *perm, size_t *side)
{
    const struct cm_value_def *def = cm_value_get(t->steps.module, value);
    struct cm_perm p;

    *side = CM_CUT_FAR;
    if (def->graph != problem->graph || !def->node)
        return true;
    if (is_member(t, def->node)) {
        *side = cm_mark_get(&t->marks, def->node) - problem->first_member;
        return true;
    }
    if (!cm_perm_of_node(def->node, &p))
        return true;
    if (!cm_perm_equal(&p, perm))
        return false; /* it is transposed once, this way or that */
    /* A Transpose is taken away once: where a problem before counts on it, it is not there. */
    *side = place_of(t, def->node->inputs[0].value).moved ? CM_CUT_FAR : CM_CUT_NEAR;
    return true;
}

static bool reader_side(const struct transposes *t, const struct problem *problem,
                        const struct cm_use *use, const struct cm_perm *perm, size_t *side)
{
    const struct cm_perm inverse = cm_perm_inverse(perm);
    struct cm_perm p;

    *side = CM_CUT_FAR;
    if (!use->node || use->graph != problem->graph)
        return true;
    if (is_member(t, use->node)) {
        if (cm_transpose_moves(use->node, use->index))
            *side = cm_mark_get(&t->marks, use->node) - problem->first_member;
        return true;
    }
    if (cm_perm_of_node(use->node, &p)) {
        /* Where its result is part of this problem, or of one before that counts on it, the
         * Transpose is taken away there, which needs the value as it is. */
        const struct place result = place_of(t, use->node->outputs[0]);
        if (!result.moved && !(result.perm && result.problem == t->problem))
            *side = CM_CUT_NEAR;
        return cm_perm_equal(&p, &inverse) || *side == CM_CUT_FAR; /* else the two become one */
    }
    if (cm_is_matrix_product(use->node) && use->index < 2)
        return false;
    return !cm_is_shape(use->node);
}

/* Adds what a value costs where not all agree on its layout; returns what it costs now. */
static int64_t add_net(const struct transposes *t, const struct problem *problem, cm_value value)
{
    const struct cm_perm *perm = place_of(t, value).perm;
    bool near = false, others = false;
    size_t side;

    if (cm_perm_is_identity(perm))
        return 0;
    const int64_t cost = cost_of(t, value, perm);
    cm_min_cut_net(problem->cut, cost);
    if (maker_side(t, problem, value, perm, &side)) {
        cm_min_cut_join(problem->cut, side);
        *(side == CM_CUT_NEAR ? &near : &others) = true;
    }
    for (const struct cm_use *use = cm_value_get(t->steps.module, value)->uses; use;
         use = use->next)
        if (reader_side(t, problem, use, perm, &side)) {
            cm_min_cut_join(problem->cut, side);
            *(side == CM_CUT_NEAR ? &near : &others) = true;
        }
    return near && others ? cost : 0;
}

/* ---- the answer ---- */

/* Value as it is on the near side. */
static enum cm_status near_value(struct transposes *t, struct cm_node *before, cm_value value,
                                 cm_value *out)
{
    const struct place place = place_of(t, value);
    const struct cm_value_def *def = cm_value_get(t->steps.module, value);
    struct cm_perm p, inverse = cm_perm_inverse(place.perm);

    *out = place.near;
    if (*out)
        return CM_OK;
    if (cm_perm_is_identity(&inverse)) {
        *out = value;
    } else if (def->node && def->graph == before->graph && cm_perm_of_node(def->node, &p)) {
        p = cm_perm_compose(&p, &inverse);
        *out = def->node->inputs[0].value;
        if (!cm_perm_is_identity(&p))
            CM_TRY(cm_transpose_emit(&t->steps, before, *out, &p, out));
    } else {
        CM_TRY(cm_transpose_emit(&t->steps, before, value, &inverse, out));
    }
    t->places.items[value].near = *out;
    return CM_OK;
}

static enum cm_status new_list(struct transposes *t, struct cm_graph *graph,
                               const struct cm_transposed *how, cm_value *out)
{
    const struct cm_shape shape = how->is_scalar ? CM_SCALAR : CM_SHAPE((int64_t)how->count);
    struct cm_tensor tensor;

    CM_TRY(cm_tensor_new(how->type, &shape, &tensor, t->steps.err));
    for (size_t i = 0; i < how->count; i++) {
        if (how->type == CM_INT32)
            ((int32_t *)tensor.data)[i] = (int32_t)how->items[i];
        else
            ((int64_t *)tensor.data)[i] = how->items[i];
    }
    *out = cm_graph_add_constant(graph, CM_STR_NONE, &tensor);
    cm_tensor_drop(&tensor);
    return CM_OK;
}

static enum cm_status near_operands(struct transposes *t, struct cm_node *node,
                                    const struct cm_perm *perm, const struct cm_transposed *how,
                                    cm_value *operands)
{
    const struct cm_perm inverse = cm_perm_inverse(perm);
    const struct cm_tensor *constant;

    for (int i = 0; i < node->n_inputs; i++) {
        operands[i] = node->inputs[i].value;
        switch (operand_kind(t, node, i, perm->rank)) {
        case OPERAND_MOVES:
            CM_TRY(near_value(t, node, operands[i], &operands[i]));
            break;
        case OPERAND_CONSTANT:
            CM_TRY(cm_value_constant(t->steps.module, operands[i], &constant, t->steps.err));
            CM_TRY(cm_transpose_constant(&t->steps, node->graph, constant, &inverse, &operands[i]));
            break;
        case OPERAND_STAYS:
        case OPERAND_HINDERS:
            break;
        }
    }
    return how->operand < 0 ? CM_OK : new_list(t, node->graph, how, &operands[how->operand]);
}

/* Computes a member on the near side too. */
static enum cm_status rebuild(struct transposes *t, struct cm_node *node,
                              const struct cm_perm *perm)
{
    static const char *const moved[] = {"axis", NULL};
    struct cm_transposed how;
    size_t n_inputs = (size_t)node->n_inputs;
    cm_value *operands;

    if (!cm_transpose_through(node, perm, &how))
        return cm_fail(t->steps.err, CM_BAD_MODEL, "%s changed while transposes were moved",
                       cm_node_describe(node).text);
    if (how.operand >= node->n_inputs)
        n_inputs = (size_t)how.operand + 1;
    struct cm_node_spec spec = cm_spec_like(node, moved + !how.has_axis, 1, n_inputs, &operands);
    CM_TRY(near_operands(t, node, perm, &how, operands));
    if (how.has_axis)
        spec.attributes[spec.n_attributes++] =
            cm_attr_int(cm_module_arena(t->steps.module), "axis", how.axis);
    struct cm_node *made;
    CM_TRY(cm_graph_add_node(node->graph, node, &spec, &made, t->steps.err));
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            t->places.items[node->outputs[o]].near = made->outputs[o];
    return CM_OK;
}

/* Takes a member out that is computed on the near side; who still reads its results on the far side
 * gets them transposed. */
static enum cm_status replace_member(struct transposes *t, struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];
        if (!value || !cm_value_get(t->steps.module, value)->n_uses)
            continue;
        const struct place place = place_of(t, value);
        cm_value far = place.near;
        if (!cm_perm_is_identity(place.perm))
            CM_TRY(cm_transpose_emit(&t->steps, node, place.near, place.perm, &far));
        if (!cm_replace_value(node->graph, value, far))
            return cm_fail(t->steps.err, CM_BAD_MODEL, "%s: its result cannot be replaced",
                           cm_node_describe(node).text);
    }
    cm_graph_remove_node(node);
    return CM_OK;
}

static const struct side *near_side(const struct transposes *t, const struct cm_node *node)
{
    const struct side *side =
        is_member(t, node) ? &t->sides.items[cm_mark_get(&t->marks, node) - CM_CUT_FIRST] : NULL;
    return side && side->near ? side : NULL;
}

static enum cm_status move_members(struct transposes *t, struct cm_graph *graph)
{
    for (struct cm_node *node = graph->first; node; node = node->next) {
        const struct side *side = near_side(t, node);
        if (side)
            CM_TRY(rebuild(t, node, side->perm));
    }
    for (struct cm_node *node = graph->last, *prev; node; node = prev) {
        struct cm_perm p;
        prev = node->prev;
        if (near_side(t, node))
            CM_TRY(replace_member(t, node));
        else if (cm_perm_of_node(node, &p) &&
                 !cm_value_get(t->steps.module, node->outputs[0])->n_uses)
            cm_graph_remove_node(node);
    }
    return cm_graph_retype(graph, t->steps.err);
}

/* Chooses sides for the members that hang together with one Transpose. */
static bool choose_sides(struct transposes *t, struct cm_graph *graph, cm_value transposed,
                         const struct cm_perm *p)
{
    struct problem problem = {graph, t->members.count, t->touched.count, NULL};
    const size_t reserved = t->reserved;
    int64_t now = 0, best;

    if (place_of(t, transposed).perm)
        return false; /* part of a problem before */
    t->problem++;
    place_value(t, transposed, p);
    collect(t, graph, problem.first_value);
    const size_t count = t->members.count - problem.first_member;
    bool better = false;
    if (count) {
        problem.cut = cm_min_cut_new(&t->search, count);
        for (size_t i = problem.first_value; i < t->touched.count; i++)
            now += add_net(t, &problem, t->touched.items[i]);
        better = cm_min_cut_solve(problem.cut, &t->budget, &best) && best < now;
    }
    for (size_t i = 0; better && i < count; i++)
        t->sides.items[problem.first_member + i].near =
            cm_min_cut_is_near(problem.cut, i + CM_CUT_FIRST);
    for (size_t i = problem.first_value; better && i < t->touched.count; i++)
        t->places.items[t->touched.items[i]].moved = true;
    if (!better)
        t->reserved = reserved;
    cm_arena_reset(&t->search);
    return better;
}

static void forget_problems(struct transposes *t)
{
    for (size_t i = 0; i < t->touched.count; i++)
        t->places.items[t->touched.items[i]] = (struct place){0};
    memset(&t->touched, 0, sizeof t->touched);
    memset(&t->members, 0, sizeof t->members);
    memset(&t->sides, 0, sizeof t->sides);
    t->reserved = 0;
    cm_arena_reset(&t->scratch);
}

/* The best sides for all nodes around the Transposes by p. */
static enum cm_status solve(struct transposes *t, struct cm_graph *graph, const struct cm_perm *p)
{
    enum cm_status status = CM_OK;
    struct cm_perm perm;
    bool changes = false;

    t->marks = cm_marks_begin(graph->module);
    for (struct cm_node *node = graph->first; node; node = node->next)
        if (cm_perm_of_node(node, &perm) && cm_perm_equal(&perm, p))
            changes = choose_sides(t, graph, node->outputs[0], p) || changes;
    if (changes)
        status = move_members(t, graph);
    forget_problems(t);
    CM_TRY(status);
    t->changed = t->changed || changes;
    return changes ? cm_transpose_merge(&t->steps, graph)
                   : CM_OK; /* pairs that were counted as none go now */
}

static size_t distinct_permutations(const struct cm_graph *graph, struct cm_perm *out)
{
    size_t count = 0;
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        size_t i = 0;
        if (count == MAX_PERMUTATIONS)
            break;
        if (!cm_perm_of_node(node, &out[count]))
            continue;
        while (!cm_perm_equal(&out[i], &out[count]))
            i++;
        count += i == count;
    }
    return count;
}

static enum cm_status work_on(struct transposes *t, struct cm_graph *graph)
{
    struct cm_perm perms[MAX_PERMUTATIONS];

    for (struct cm_node *node = graph->first; node; node = node->next)
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                CM_TRY(work_on(t, node->bodies[i].graph));
    CM_TRY(cm_transpose_merge(&t->steps, graph));
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const size_t count = distinct_permutations(graph, perms);
        t->changed = false;
        for (size_t i = 0; i < count; i++)
            CM_TRY(solve(t, graph, &perms[i]));
        if (!t->changed)
            break;
    }
    for (struct cm_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (cm_is_matrix_product(node))
            CM_TRY(cm_transpose_into_product(&t->steps, node));
        else
            CM_TRY(cm_transpose_of_product(&t->steps, node));
    }
    for (struct cm_node *node = graph->last, *prev; node; node = prev) {
        struct cm_perm p;
        prev = node->prev;
        if (!cm_perm_of_node(node, &p))
            continue;
        CM_TRY(cm_transpose_read_shape(&t->steps, node, &p));
        if (cm_value_get(t->steps.module, node->outputs[0])->n_uses)
            CM_TRY(cm_transpose_as_reshape(&t->steps, node));
        else
            cm_graph_remove_node(node);
    }
    return cm_graph_retype(graph, t->steps.err);
}

enum cm_status cm_pass_transposes(struct cm_graph *graph, const struct cm_pass_options *options,
                                  struct cm_error *err)
{
    struct transposes t = {.budget = SEARCH_BUDGET};

    t.steps = (struct cm_transpose_steps){
        graph->module, options->memory_limit ? options->memory_limit : OWN_LIMIT, err};
    cm_arena_init(&t.lasting, cm_module_arena(graph->module)->guard);
    cm_arena_init(&t.scratch, cm_module_arena(graph->module)->guard);
    cm_arena_init(&t.search, cm_module_arena(graph->module)->guard);
    const enum cm_status status = work_on(&t, graph);
    cm_arena_release(&t.search);
    cm_arena_release(&t.scratch);
    cm_arena_release(&t.lasting);
    return status;
}
