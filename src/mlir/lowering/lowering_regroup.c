/* Which axes of a reshaped tensor are made of which axes of the one it was: as many small groups as
 * can be told, each of which tensor.collapse_shape and tensor.expand_shape turn into each other. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "mlir/lowering/lowering_state.h"

/* Axes from `x` on of one tensor, `n_x` of them, and likewise of the other. */
struct axis_group {
    int x, n_x, y, n_y;
};

struct regrouping {
    const struct cm_type *x, *y;
    struct axis_group groups[2 * CM_MLIR_RANK];
    int count;
    bool is_sure;
};

/* Do the axes surely have as many elements on both sides? */
static bool is_equal(const struct regrouping *r, struct axis_group g)
{
    int64_t left = 1, right = 1;
    bool taken[CM_MLIR_RANK] = {false};
    int open = 0;

    for (int j = g.y; j < g.y + g.n_y; j++) {
        if (!cm_dim_known(r->y->dims[j]))
            open++;
        else if (!cm_int64_mul(right, r->y->dims[j].value, &right))
            return false;
    }
    for (int i = g.x; i < g.x + g.n_x; i++) {
        if (cm_dim_known(r->x->dims[i])) {
            if (!cm_int64_mul(left, r->x->dims[i].value, &left))
                return false;
            continue;
        }
        int j = g.y;
        while (j < g.y + g.n_y && (taken[j] || cm_dim_known(r->y->dims[j]) ||
                                   !cm_dim_same(r->x->dims[i], r->y->dims[j])))
            j++;
        if (j == g.y + g.n_y)
            return false;
        taken[j] = true;
        open--;
    }
    return left == right && open == 0;
}

/* The smallest group at the beginning, or the end, of what `rest` leaves; false: there is none. */
static bool find_group(const struct regrouping *r, struct axis_group rest, bool from_end,
                       struct axis_group *out)
{
    for (int sum = 2; sum <= rest.n_x + rest.n_y; sum++) {
        for (int n_x = 1; n_x < sum; n_x++) {
            const int n_y = sum - n_x;
            if (n_x > rest.n_x || n_y > rest.n_y)
                continue;
            *out = (struct axis_group){from_end ? rest.x + rest.n_x - n_x : rest.x, n_x,
                                       from_end ? rest.y + rest.n_y - n_y : rest.y, n_y};
            if (is_equal(r, *out))
                return true;
        }
    }
    return false;
}

static bool has_nothing(const struct cm_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (cm_dim_known(type->dims[i]) && type->dims[i].value == 0)
            return true;
    return false;
}

/* What no group was found for: a group of its own, or, where one side has no axes left, part of a
 * neighbour. */
static void add_rest(struct regrouping *r, struct axis_group rest)
{
    if (rest.n_x && rest.n_y) {
        r->groups[r->count++] = rest;
        r->is_sure &= is_equal(r, rest);
    } else if ((rest.n_x || rest.n_y) && r->count) {
        struct axis_group *last = &r->groups[r->count - 1];
        last->n_x += rest.n_x;
        last->n_y += rest.n_y;
        r->is_sure &= is_equal(r, *last);
    } else {
        r->is_sure &= is_equal(r, rest);
    }
}

static void regroup(struct regrouping *r)
{
    struct axis_group rest = {0, r->x->rank, 0, r->y->rank}, g, tail[CM_MLIR_RANK];
    int n_tail = 0;

    r->is_sure = true;
    /* No elements at all: any two axes of no size look alike, and what stands beside them differs.
     */
    const bool is_plain = !has_nothing(r->x) && !has_nothing(r->y);
    while (is_plain && rest.n_x && rest.n_y && find_group(r, rest, false, &g)) {
        r->groups[r->count++] = g;
        rest =
            (struct axis_group){rest.x + g.n_x, rest.n_x - g.n_x, rest.y + g.n_y, rest.n_y - g.n_y};
    }
    while (is_plain && rest.n_x && rest.n_y && find_group(r, rest, true, &g)) {
        tail[n_tail++] = g;
        rest.n_x -= g.n_x;
        rest.n_y -= g.n_y;
    }
    if (!r->count && n_tail && !(rest.n_x && rest.n_y)) {
        /* Nothing stands before it: the first group of the tail takes it. */
        tail[n_tail - 1].x -= rest.n_x;
        tail[n_tail - 1].y -= rest.n_y;
        tail[n_tail - 1].n_x += rest.n_x;
        tail[n_tail - 1].n_y += rest.n_y;
        r->is_sure &= is_equal(r, tail[n_tail - 1]);
    } else {
        add_rest(r, rest);
    }
    while (n_tail)
        r->groups[r->count++] = tail[--n_tail];
}

static struct cm_term axes_term(struct cm_arena *arena, int begin, int count)
{
    struct cm_term *items = CM_NEW_ARRAY(arena, struct cm_term, (size_t)count + 1);

    for (int i = 0; i < count; i++)
        items[i] = cm_term_int(begin + i);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = (size_t)count};
}

struct cm_term cm_mlir_regroup(struct cm_mlir_lowering *l, cm_value x, cm_value y)
{
    struct regrouping r = {.x = cm_mlir_type(l, x), .y = cm_mlir_type(l, y)};
    struct cm_term *out = CM_NEW_ARRAY(l->arena, struct cm_term, 2);

    regroup(&r);
    struct cm_term *groups = CM_NEW_ARRAY(l->arena, struct cm_term, (size_t)r.count + 1);
    for (int i = 0; i < r.count; i++) {
        struct cm_term *sides = CM_NEW_ARRAY(l->arena, struct cm_term, 2);
        sides[0] = axes_term(l->arena, r.groups[i].x, r.groups[i].n_x);
        sides[1] = axes_term(l->arena, r.groups[i].y, r.groups[i].n_y);
        groups[i] = (struct cm_term){.kind = CM_TERM_LIST, .items = sides, .count = 2};
    }
    out[0] = (struct cm_term){.kind = CM_TERM_LIST, .items = groups, .count = (size_t)r.count};
    out[1] = cm_term_int(r.is_sure);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = out, .count = 2};
}
