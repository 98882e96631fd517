/* Permutations of axes. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/permutation.h"

#include "rewrite/pass.h"
#include "tensor/bits.h"

#include <assert.h>

bool cm_perm_equal(const struct cm_perm *a, const struct cm_perm *b)
{
    return a->rank == b->rank && !memcmp(a->axes, b->axes, (size_t)a->rank);
}

bool cm_perm_is_identity(const struct cm_perm *p)
{
    for (int a = 0; a < p->rank; a++)
        if (p->axes[a] != a)
            return false;
    return true;
}

struct cm_perm cm_perm_inverse(const struct cm_perm *p)
{
    struct cm_perm out = {.rank = p->rank};
    for (int a = 0; a < p->rank; a++)
        out.axes[p->axes[a]] = (unsigned char)a;
    return out;
}

struct cm_perm cm_perm_compose(const struct cm_perm *first, const struct cm_perm *second)
{
    struct cm_perm out = {.rank = first->rank};
    assert(first->rank == second->rank);
    for (int a = 0; a < out.rank; a++)
        out.axes[a] = first->axes[second->axes[a]];
    return out;
}

bool cm_perm_keeps_order(const struct cm_perm *p, const struct cm_type *result)
{
    int last = -1;
    for (int a = 0; a < p->rank; a++) {
        if (result->rank == p->rank && result->dims[a].value == 1)
            continue;
        if (p->axes[a] < last)
            return false;
        last = p->axes[a];
    }
    return true;
}

bool cm_perm_of_node(const struct cm_node *node, struct cm_perm *out)
{
    if (!cm_node_is(node, "Transpose"))
        return false;
    const struct cm_type *type = cm_value_get(node->module, node->inputs[0].value)->fact.type;
    const struct cm_int64s perm = cm_node_ints(node, "perm");
    const int rank = cm_node_has_attr(node, "perm") ? (int)perm.count : type->rank;
    unsigned char seen[CM_MAX_RANK] = {0};

    *out = (struct cm_perm){.rank = rank};
    if (rank < 0 || rank > CM_MAX_RANK || type->kind != CM_KIND_TENSOR)
        return false;
    for (int a = 0; a < rank; a++) {
        int axis;
        if (!cm_axis_fix(cm_node_has_attr(node, "perm") ? perm.items[a] : rank - 1 - a, rank,
                         &axis) ||
            seen[axis]++)
            return false;
        out->axes[a] = (unsigned char)axis;
    }
    return true;
}

cm_value cm_perm_build(struct cm_builder *build, cm_value x, const struct cm_perm *p)
{
    int64_t perm[CM_MAX_RANK];

    for (int a = 0; a < p->rank; a++)
        perm[a] = p->axes[a];
    return cm_build(
        build, &(struct cm_emission){.op = "Transpose",
                                     CM_INPUTS(x),
                                     CM_ATTRIBUTES(cm_attr_ints(cm_builder_arena(build), "perm",
                                                                (size_t)p->rank, perm))});
}

enum cm_status cm_perm_apply(const struct cm_perm *p, const struct cm_tensor *from,
                             struct cm_tensor *out, struct cm_error *err)
{
    const int rank = p->rank, missing = rank - from->shape.rank;
    int64_t strides[CM_MAX_RANK], steps[CM_MAX_RANK], index[CM_MAX_RANK] = {0};
    struct cm_shape full = {.rank = rank}, shape = {.rank = rank};

    assert(missing >= 0 && from->type != CM_STRING);
    for (int a = 0; a < rank; a++)
        full.dims[a] = a < missing ? 1 : from->shape.dims[a - missing];
    cm_shape_strides(&full, strides);
    for (int a = 0; a < rank; a++) {
        shape.dims[a] = full.dims[p->axes[a]];
        steps[a] = strides[p->axes[a]];
    }
    CM_TRY(cm_tensor_new(from->type, &shape, out, err));
    const int64_t count = cm_tensor_count(out);
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        cm_elements_copy(from->type, out->data, i, from->data, at, 1);
        for (int a = rank - 1; a >= 0; a--) {
            at += steps[a];
            if (++index[a] < shape.dims[a])
                break;
            at -= steps[a] * shape.dims[a];
            index[a] = 0;
        }
    }
    return CM_OK;
}
