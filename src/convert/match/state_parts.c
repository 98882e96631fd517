/* States that have not the shape of their weight. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/state_parts.h"

bool cm_parts_keep_tensor(const struct cm_part *parts, size_t count, const struct cm_shape *source)
{
    if (count != 1 || parts->rank != source->rank || parts->source_rank != source->rank)
        return false;
    for (int d = 0; d < source->rank; d++) {
        const int64_t size = parts->size[d];

        if (parts->from[d] || parts->at[d] || (size != -1 && size != source->dims[d]) ||
            parts->axes[d] < 0 || (d >= source->rank - 2) != (parts->axes[d] >= source->rank - 2))
            return false;
    }
    return true;
}

/* The state of the same rule with the other shape. */
static const struct cm_optimizer_state *other_state(enum cm_update_rule rule,
                                                    const struct cm_optimizer_state *is)
{
    const char *wanted = strcmp(is->shape, "rows") == 0 ? "columns" : "rows";

    for (const struct cm_optimizer_state *s = cm_optimizer_rules[rule].states; s->name; s++)
        if (s->shape && strcmp(s->shape, wanted) == 0)
            return s;
    return is;
}

struct cm_state_parts cm_state_parts(struct cm_arena *arena, enum cm_update_rule rule,
                                     const struct cm_optimizer_state *is,
                                     const struct cm_part *part, const struct cm_shape *source)
{
    struct cm_state_parts out = {.there = is, .shape = *source};
    const int last = part->rank - 1;

    if (is->shape && strcmp(is->shape, "scalar") == 0) {
        out.shape = CM_SCALAR;
        cm_parts_whole(arena, &out.parts, part->source, &out.shape);
        return out;
    }
    if (is->shape && part->axes[last] != last)
        out.there = other_state(rule, is);
    if (is->shape)
        out.shape.dims[strcmp(out.there->shape, "rows") == 0 ? last : last - 1] = 1;
    cm_parts_transposed(arena, &out.parts, part->source, &out.shape, part->axes, part->rank);
    return out;
}
