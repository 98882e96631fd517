/* How exporters lay out the tensors of a framework: turned, squeezed, reshaped. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

enum { PARTS_MAX = 4096 };

/* Axes whose size is not 1. */
static int own_axes(const struct cm_shape *shape, int *axes)
{
    int count = 0;

    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1)
            axes[count++] = i;
    return count;
}

/* Without regard to axes of size 1: the same order, or for matrices the other. */
static bool squeeze(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                    const struct cm_shape *from, const struct cm_shape *to, bool turned)
{
    int mine[CM_MAX_RANK], theirs[CM_MAX_RANK], axes[CM_MAX_RANK];
    const int count = own_axes(from, theirs);

    if (own_axes(to, mine) != count || (turned && count != 2))
        return false;
    for (int i = 0; i < to->rank; i++)
        axes[i] = -1;
    for (int i = 0; i < count; i++) {
        const int axis = theirs[turned ? 1 - i : i];

        if (to->dims[mine[i]] != from->dims[axis])
            return false;
        axes[mine[i]] = axis;
    }
    cm_parts_transposed(arena, parts, source, from, axes, to->rank);
    return true;
}

static bool permute(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                    const struct cm_shape *from, const struct cm_shape *to, const int *axes)
{
    for (int i = 0; i < to->rank; i++)
        if (to->dims[i] != from->dims[axes[i]])
            return false;
    cm_parts_transposed(arena, parts, source, from, axes, to->rank);
    return true;
}

/* Weights of a convolution: TensorFlow and flax have the window first and the output channels
 * last, ONNX output channels, input channels, window. */
static bool turn_window(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                        const struct cm_shape *from, const struct cm_shape *to)
{
    const int rank = from->rank;
    int axes[CM_MAX_RANK] = {rank - 1, rank - 2};

    for (int i = 2; i < rank; i++)
        axes[i] = i - 2;
    return permute(arena, parts, source, from, to, axes);
}

/* A run of elements that is one in the source and in the target, or a count of such runs. */
struct factor {
    int64_t size, from_step, to_step; /* steps along its axis, in elements of that axis */
    int from_axis, to_axis;
};

/* Both shapes as products of the same factors, the fastest first; 0: there are none. */
static int factorize(const struct cm_shape *from, const struct cm_shape *to, struct factor *factors)
{
    int64_t from_step = 1, to_step = 1;
    int count = 0, i = from->rank - 1, j = to->rank - 1;

    while (i >= 0 && j >= 0) {
        const int64_t a = from->dims[i] / from_step, b = to->dims[j] / to_step;
        const int64_t size = a < b ? a : b;

        if (size == 0 || a % size || b % size || count == CM_MAX_RANK)
            return 0;
        if (size > 1)
            factors[count++] = (struct factor){size, from_step, to_step, i, j};
        from_step *= size;
        to_step *= size;
        if (from_step == from->dims[i]) {
            from_step = 1;
            i--;
        }
        if (to_step == to->dims[j]) {
            to_step = 1;
            j--;
        }
    }
    for (; i >= 0; i--)
        if (from->dims[i] != 1)
            return 0;
    for (; j >= 0; j--)
        if (to->dims[j] != 1)
            return 0;
    return count;
}

/* The same elements in the same order under another shape: heads of attention apart or together. */
static bool reshape(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                    const struct cm_shape *from, const struct cm_shape *to)
{
    struct factor factors[CM_MAX_RANK];
    int64_t places[CM_MAX_RANK] = {0}, n_parts = 1;
    const int count = factorize(from, to, factors);

    for (int f = 0; f < count; f++)
        if (factors[f].from_step > 1 || factors[f].to_step > 1)
            n_parts = n_parts > PARTS_MAX ? n_parts : n_parts * factors[f].size;
    if (count == 0 || n_parts == 1 || n_parts > PARTS_MAX)
        return false;
    for (int64_t n = 0; n < n_parts; n++) {
        struct cm_part *part = cm_part_add(arena, parts, source, from->rank, to->rank);

        for (int i = 0; i < from->rank; i++)
            part->size[i] = 1;
        for (int i = 0; i < to->rank; i++)
            part->axes[i] = -1;
        for (int f = 0; f < count; f++) {
            const struct factor *one = &factors[f];

            if (one->from_step == 1 && one->to_step == 1) {
                part->size[one->from_axis] = one->size;
                part->axes[one->to_axis] = one->from_axis;
            } else {
                part->from[one->from_axis] += places[f] * one->from_step;
                part->at[one->to_axis] += places[f] * one->to_step;
            }
        }
        for (int f = 0; f < count; f++) {
            if (factors[f].from_step == 1 && factors[f].to_step == 1)
                continue;
            if (++places[f] < factors[f].size)
                break;
            places[f] = 0;
        }
    }
    return true;
}

size_t cm_layouts(struct cm_arena *arena, struct cm_str source, const struct cm_shape *from,
                  const struct cm_shape *to, struct cm_parts out[CM_LAYOUTS_MAX])
{
    static const int depthwise[] = {2, 3, 0, 1};
    size_t count = 0;
    const bool same = cm_shape_equal(from, to);

    memset(out, 0, CM_LAYOUTS_MAX * sizeof *out);
    if (cm_shape_elements(from) != cm_shape_elements(to))
        return 0;
    if (same)
        cm_parts_whole(arena, &out[count++], source, from);
    else if (squeeze(arena, &out[count], source, from, to, false))
        count++;
    if (from->rank == to->rank && from->rank >= 3) {
        count += turn_window(arena, &out[count], source, from, to);
        count += from->rank == 4 && permute(arena, &out[count], source, from, to, depthwise);
    }
    count += squeeze(arena, &out[count], source, from, to, true);
    if (count == 0)
        count += reshape(arena, &out[count], source, from, to);
    return count;
}

const char *cm_layout_word(const struct cm_parts *parts)
{
    const struct cm_part *part = parts->items;
    int last = -1;

    if (parts->count > 1)
        return ", reshaped";
    for (int i = 0; i < part->rank; i++) {
        if (part->axes[i] < 0)
            continue;
        if (part->axes[i] < last)
            return ", transposed";
        last = part->axes[i];
    }
    return "";
}
