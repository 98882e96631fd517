/* Rules of `simplify` for operators that take parts of a tensor or put it beside others. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/simplify.h"

enum { PARAMETERS_MAX = 4 * CM_MAX_RANK };

static bool all_are(const struct cm_tensor *list, int64_t number)
{
    for (int64_t i = 0; i < cm_tensor_count(list); i++)
        if (cm_tensor_int(list, i) != number)
            return false;
    return true;
}

/* ---- the whole as a part ---- */

static bool takes_everything(struct cm_candidate *m)
{
    const struct cm_tensor *steps = cm_candidate_constant(m, 4, PARAMETERS_MAX);
    for (int i = 1; i < m->node->n_inputs; i++)
        if (m->node->inputs[i].value && !cm_candidate_constant(m, i, PARAMETERS_MAX) &&
            !cm_value_get(m->module, m->node->inputs[i].value)->fact.known)
            return false; /* a list that is fed may be refused */
    return cm_candidate_keeps_shape(m) &&
           (!cm_node_input(m->node, 4) || (steps && all_are(steps, 1)));
}

static bool pads_nothing(struct cm_candidate *m)
{
    const struct cm_tensor *pads = cm_candidate_constant(m, 1, PARAMETERS_MAX);
    return pads && all_are(pads, 0);
}

static bool one_part(struct cm_candidate *m)
{
    return m->node->n_outputs == 1 && cm_candidate_keeps_shape(m);
}

/* ---- parts of parts ---- */

/* What a Slice with steps of 1 leaves of an axis. */
struct cut {
    int64_t start, end;
    bool made;
    bool counted; /* from the front, within the axis, whose length is known */
};

static int64_t from_front(int64_t at, int64_t dim)
{
    at = at < 0 ? at + dim : at;
    return at < 0 ? 0 : at > dim ? dim : at;
}

static struct cut cut_of(struct cm_dim dim, int64_t start, int64_t end)
{
    struct cut cut = {start, end, true, cm_dim_known(dim)};
    if (!cut.counted)
        return cut;
    cut.start = from_front(start, dim.value);
    cut.end = from_front(end, dim.value);
    if (cut.end < cut.start)
        cut.end = cut.start;
    return cut;
}

/* By axis; false where that is not constant, or a step is not 1. */
static bool read_cuts(struct cm_candidate *m, const struct cm_node *node, struct cut *cuts)
{
    const struct cm_type *x = cm_value_get(m->module, cm_node_input(node, 0))->fact.type;
    const struct cm_tensor *lists[5] = {NULL};
    for (int i = 1; i < 5; i++) {
        lists[i] = cm_candidate_contents(m, cm_node_input(node, i), CM_MAX_RANK);
        if (cm_node_input(node, i) && !lists[i])
            return false;
    }
    if (x->rank == CM_RANK_UNKNOWN || !lists[1] || !lists[2] || (lists[4] && !all_are(lists[4], 1)))
        return false;
    for (int64_t k = 0; k < cm_tensor_count(lists[1]); k++) {
        int axis;
        if (!cm_axis_fix(lists[3] ? cm_tensor_int(lists[3], k) : k, x->rank, &axis) ||
            cuts[axis].made)
            return false;
        cuts[axis] = cut_of(x->dims[axis], cm_tensor_int(lists[1], k), cm_tensor_int(lists[2], k));
    }
    return true;
}

/* Both cuts of each axis as one, in `first`. */
static bool join_cuts(struct cut *first, const struct cut *second)
{
    for (int i = 0; i < CM_MAX_RANK; i++) {
        if (!second[i].made)
            continue;
        if (!first[i].made) {
            first[i] = second[i];
            continue;
        }
        if (!first[i].counted || !second[i].counted)
            return false;
        first[i].end = first[i].start + second[i].end;
        first[i].start += second[i].start;
    }
    return true;
}

/* The node of this operator that nobody else reads. */
static const struct cm_node *own_maker(const struct cm_candidate *m, const char *op_type)
{
    return m->operand && cm_value_get(m->module, m->operand)->n_uses == 1
               ? cm_candidate_maker(m, m->operand, op_type)
               : NULL;
}

static bool joined_cuts(struct cm_candidate *m, struct cut *cuts)
{
    struct cut second[CM_MAX_RANK] = {{0}};
    const struct cm_node *inner = own_maker(m, "Slice");
    return inner && read_cuts(m, inner, cuts) && read_cuts(m, m->node, second) &&
           join_cuts(cuts, second);
}

static bool of_slice(struct cm_candidate *m)
{
    struct cut cuts[CM_MAX_RANK] = {{0}};
    return joined_cuts(m, cuts);
}

static void slice_once(struct cm_candidate *m)
{
    struct cut cuts[CM_MAX_RANK] = {{0}};
    int64_t starts[CM_MAX_RANK], ends[CM_MAX_RANK], axes[CM_MAX_RANK];
    size_t n = 0;
    if (!joined_cuts(m, cuts))
        return;
    for (int i = 0; i < CM_MAX_RANK; i++) {
        if (!cuts[i].made)
            continue;
        starts[n] = cuts[i].start;
        ends[n] = cuts[i].end;
        axes[n++] = i;
    }
    const cm_value x = cm_node_input(own_maker(m, "Slice"), 0);
    const cm_value lists[3] = {cm_build_int64s(&m->build, n, starts),
                               cm_build_int64s(&m->build, n, ends),
                               cm_build_int64s(&m->build, n, axes)};
    m->results[0] =
        cm_build(&m->build,
                 &(struct cm_emission){.op = "Slice", CM_INPUTS(x, lists[0], lists[1], lists[2])});
}

/* ---- Gather of one, with its axis put back ---- */

/* The index of a Gather that takes one place of an axis, and that axis; false for any other. */
static bool one_place(struct cm_candidate *m, const struct cm_node *gather, int64_t *index,
                      int *axis, int *rank)
{
    const struct cm_tensor *indices =
        gather ? cm_candidate_contents(m, cm_node_input(gather, 1), 1) : NULL;
    if (!indices || indices->shape.rank != 0)
        return false;
    *index = cm_tensor_int(indices, 0);
    *rank = cm_value_get(m->module, cm_node_input(gather, 0))->fact.type->rank;
    return *rank != CM_RANK_UNKNOWN && cm_axis_fix(cm_node_int(gather, "axis"), *rank, axis);
}

static bool of_gather(struct cm_candidate *m)
{
    const struct cm_tensor *axes = cm_candidate_constant(m, 1, 1);
    int64_t index;
    int axis, rank, put_back;
    return axes && cm_tensor_count(axes) == 1 &&
           one_place(m, own_maker(m, "Gather"), &index, &axis, &rank) &&
           cm_axis_fix(cm_tensor_int(axes, 0), rank, &put_back) && put_back == axis;
}

static void gather_with_axis(struct cm_candidate *m)
{
    const struct cm_node *gather = own_maker(m, "Gather");
    int64_t index;
    int axis, rank;
    if (!one_place(m, gather, &index, &axis, &rank))
        return;
    const cm_value indices = cm_build_int64s(&m->build, 1, &index);
    m->results[0] = cm_build(
        &m->build, &(struct cm_emission){
                       .op = "Gather",
                       CM_INPUTS(cm_node_input(gather, 0), indices),
                       CM_ATTRIBUTES(cm_attr_int(cm_module_arena(m->module), "axis", axis))});
}

/* clang-format off */
const struct cm_simplify_rule cm_simplify_parts[] = {
    {"slice-of-everything", "Slice", takes_everything, cm_candidate_keep},
    {"slice-of-slice", "Slice", of_slice, slice_once},
    {"pad-of-nothing", "Pad", pads_nothing, cm_candidate_keep},
    {"split-into-one", "Split", one_part, cm_candidate_keep},
    {"unsqueeze-of-gather", "Unsqueeze", of_gather, gather_with_axis},
    {0},
};
/* clang-format on */
