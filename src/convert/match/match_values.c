/* Tensors found by what they hold: a weight that was trained stays close to what it was, so the
 * model's present values tell which tensor of the checkpoint they became. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

#include "onnx/tensor_data.h"

#include <math.h>
#include <stdlib.h>

enum {
    ELEMENTS_MAX = 1024, /* that are compared; of more, a sample */
    SCORES_MAX = 300000,
    BLOCKS_MAX = 16
};

/* Correlation that counts as like, and how far the next best must be. */
static const double alike = 0.4, apart = 0.2, same = 0.9999;

static int by_place(const void *a, const void *b)
{
    const struct cm_match_element *x = a, *y = b;

    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Element `number` of a part, in the source's order, as places in both tensors. */
static struct cm_match_element place_of(const struct cm_part *part,
                                        const struct cm_saved_tensor *tensor,
                                        const struct cm_shape *to, int64_t number)
{
    int64_t offset[CM_MAX_RANK], strides[CM_MAX_RANK];
    struct cm_match_element out = {.tensor = tensor};

    cm_shape_strides(&tensor->shape, strides);
    for (int i = part->source_rank - 1; i >= 0; i--) {
        const int64_t size =
            part->size[i] < 0 ? tensor->shape.dims[i] - part->from[i] : part->size[i];
        offset[i] = number % size;
        number /= size;
        out.from += (part->from[i] + offset[i]) * strides[i];
    }
    cm_shape_strides(to, strides);
    for (int i = 0; i < part->rank; i++)
        out.to += (part->at[i] + (part->axes[i] < 0 ? 0 : offset[part->axes[i]])) * strides[i];
    return out;
}

static int64_t part_size(const struct cm_part *part, const struct cm_saved_tensor *tensor)
{
    int64_t size = 1;

    for (int i = 0; i < part->source_rank; i++)
        size *= part->size[i] < 0 ? tensor->shape.dims[i] - part->from[i] : part->size[i];
    return size;
}

/* Elements of all parts, spread evenly. */
static size_t choose(struct cm_matching *m, const struct cm_match_target *target,
                     const struct cm_parts *parts, struct cm_match_element *elements)
{
    const int64_t all = cm_shape_elements(&target->shape);
    const double share = all > ELEMENTS_MAX ? (double)ELEMENTS_MAX / (double)all : 1;
    size_t count = 0;
    uint64_t random = 88172645463325252u;

    for (size_t p = 0; p < parts->count; p++) {
        const struct cm_part *part = &parts->items[p];
        const struct cm_saved_tensor *tensor = cm_match_tensor(m, part->source);
        const int64_t size = part_size(part, tensor);
        const int64_t wanted = share < 1 ? (int64_t)((double)size * share) : size;

        for (int64_t i = 0; i < wanted && count < ELEMENTS_MAX; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            const int64_t number = share < 1 ? (int64_t)(random % (uint64_t)size) : i;
            elements[count++] = place_of(part, tensor, &target->shape, number);
        }
    }
    qsort(elements, count, sizeof *elements, by_place); /* packed pieces are unpacked once */
    return count;
}

static bool read_one(struct cm_matching *m, const struct cm_match_element *element, double *out)
{
    const struct cm_shape scalar = CM_SCALAR;
    _Alignas(16) uint8_t bytes[16];
    const struct cm_tensor view = cm_tensor_borrow(element->tensor->dtype, &scalar, bytes);

    if (cm_saved_tensor_read(&m->reader, element->tensor, element->from, 1, bytes, NULL))
        return false;
    *out = cm_tensor_real(&view, 0);
    return true;
}

/* Of the target whose values are at hand. */
static double own_value(const struct cm_matching *m, int64_t i)
{
    const struct cm_shape scalar = CM_SCALAR;
    const size_t size = cm_dtype_size(m->values.type);
    _Alignas(16) uint8_t bytes[16];
    const struct cm_tensor view = cm_tensor_borrow(m->values.type, &scalar, bytes);

    memcpy(bytes, (const uint8_t *)m->values.data + (size_t)i * size, size); /* may be unaligned */
    return cm_tensor_real(&view, 0);
}

static double correlate(struct cm_matching *m, const struct cm_match_element *elements,
                        size_t count)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0, b;
    const double n = (double)count;

    for (size_t i = 0; i < count; i++) {
        const double a = own_value(m, elements[i].to);

        if (!read_one(m, &elements[i], &b))
            return NAN;
        x += a;
        y += b;
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    m->scale = yy > 0 ? sqrt(xx / yy) : 0;
    const double spread = (xx - x * x / n) * (yy - y * y / n);
    return spread > 1e-24 ? (xy - x * y / n) / sqrt(spread) : NAN;
}

static bool load_values(struct cm_matching *m, const struct cm_match_target *target)
{
    bool aligned;

    if (m->loaded == target)
        return true;
    cm_tensor_drop(&m->values);
    m->loaded = NULL;
    if (cm_dtype_size((enum cm_dtype)target->tensor->data_type) == 0 ||
        cm_tensor_proto_view(target->tensor, m->file->files, &m->values, &aligned, NULL))
        return false;
    m->loaded = target;
    return true;
}

double cm_match_score(struct cm_matching *m, const struct cm_match_target *target,
                      const struct cm_parts *parts, double *least)
{
    if (!m->elements)
        m->elements = CM_NEW_ARRAY(m->arena, struct cm_match_element, ELEMENTS_MAX);
    const size_t count = choose(m, target, parts, m->elements);

    m->scores++;
    *least = fmax(alike, 4 / sqrt((double)count));
    if (count < 2 || m->scores > SCORES_MAX || !load_values(m, target))
        return NAN;
    const double score = correlate(m, m->elements, count);
    return score > same ? 1 : score;
}

/* ---- one source for one tensor ---- */

/* The best that was met, and the best of other sources. */
struct best {
    struct cm_match_source *source;
    struct cm_parts parts;
    double score, second, least;
};

/* A second tensor of a source is equal to the first, not a multiple of it, which a graph may hold
 * too: a table that was scaled for the output layer. */
static bool is_another_scale(const struct cm_matching *m, const struct cm_match_source *source)
{
    return source->uses > 0 && !(m->scale > 0.5 && m->scale < 2);
}

static void compare(struct cm_matching *m, const struct cm_match_target *target,
                    struct cm_match_source *source, const struct cm_parts *parts, struct best *best)
{
    double least;
    const double score = cm_match_score(m, target, parts, &least);

    if (is_another_scale(m, source))
        return;
    if (score > best->score) {
        if (best->source != source)
            best->second = best->score;
        best->score = score;
        best->source = source;
        best->parts = *parts;
        best->least = least;
    } else if (best->source != source && score > best->second) {
        best->second = score;
    }
}

static bool is_clear(const struct best *best)
{
    return best->source && best->score >= best->least &&
           (best->second < best->score - apart || (best->score == 1 && best->second < 1));
}

static bool is_open(const struct cm_match_target *target)
{
    return !target->parts.count && target->is_needed;
}

static bool is_float(const struct cm_match_source *source)
{
    return cm_dtype_is_float(source->tensor->dtype) && cm_dtype_size(source->tensor->dtype);
}

static int by_elements(const void *a, const void *b)
{
    struct cm_match_source *const *x = a, *const *y = b;
    const int64_t m = cm_shape_elements(&(*x)->tensor->shape);
    const int64_t n = cm_shape_elements(&(*y)->tensor->shape);

    return m != n ? (m > n) - (m < n) : (*x > *y) - (*x < *y);
}

/* Sources by their number of elements, those of equal number in the checkpoint's order. */
static struct cm_match_source **sort_sources(struct cm_matching *m)
{
    struct cm_match_source **sorted =
        CM_NEW_ARRAY(m->arena, struct cm_match_source *, m->sources.count + 1);

    for (size_t i = 0; i < m->sources.count; i++)
        sorted[i] = &m->sources.items[i];
    qsort(sorted, m->sources.count, sizeof *sorted, by_elements);
    return sorted;
}

/* The first of those that have as many elements as the target. */
static struct cm_match_source **first_alike(const struct cm_matching *m,
                                            struct cm_match_source **sorted,
                                            const struct cm_match_target *target)
{
    const int64_t wanted = cm_shape_elements(&target->shape);
    size_t low = 0, high = m->sources.count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (cm_shape_elements(&sorted[middle]->tensor->shape) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->sources.count && cm_shape_elements(&sorted[low]->tensor->shape) == wanted
               ? &sorted[low]
               : NULL;
}

#define EACH_ALIKE(m, sorted, target, at)                                                          \
    for (struct cm_match_source **at = first_alike((m), (sorted), (target));                       \
         at && at < (sorted) + (m)->sources.count &&                                               \
         cm_shape_elements(&(*at)->tensor->shape) == cm_shape_elements(&(target)->shape);          \
         at++)

static void find_alike(struct cm_matching *m, struct cm_match_source **sorted,
                       struct cm_match_target *target, bool is_tied)
{
    struct best best = {.score = -1, .second = -1};
    struct cm_parts layouts[CM_LAYOUTS_MAX];

    EACH_ALIKE(m, sorted, target, at)
    {
        if (!is_float(*at) || ((*at)->uses > 0) != is_tied)
            continue;
        const size_t count =
            cm_layouts(m->arena, (*at)->name, &(*at)->tensor->shape, &target->shape, layouts);
        for (size_t i = 0; i < count; i++)
            compare(m, target, *at, &layouts[i], &best);
    }
    if (is_clear(&best))
        cm_match_take(m, target, &best.parts, "%s%s (%.2f)",
                      is_tied ? "tied, by value" : "by value", cm_layout_word(&best.parts),
                      best.score);
}

/* ---- several sources for one tensor, several tensors of one source ---- */

/* Block `number` of `count` along an axis of the source (or, if the tensor is merged, of the
 * tensor); of matrices the other way round if turned. */
static void add_block(struct cm_arena *arena, struct cm_parts *parts,
                      const struct cm_match_source *source, int rank, int axis, int64_t size,
                      int64_t number, bool is_merged, bool turned)
{
    struct cm_part *part = cm_part_add(arena, parts, source->name, rank, rank);

    for (int i = 0; turned && i < rank; i++)
        part->axes[i] = rank - 1 - i;
    if (is_merged) {
        part->at[axis] = number * size;
        return;
    }
    const int from = part->axes[axis];
    part->from[from] = number * size;
    part->size[from] = size;
}

/* The number of blocks along axis of the tensor; 0: the shapes do not go together so. */
static int64_t blocks(const struct cm_shape *to, const struct cm_shape *from, int axis,
                      bool is_merged, bool turned)
{
    int64_t large = 0, small = 0;

    for (int i = 0; i < to->rank; i++) {
        const int64_t theirs = from->dims[turned ? to->rank - 1 - i : i];

        if (i != axis && to->dims[i] != theirs)
            return 0;
        if (i == axis) {
            large = is_merged ? to->dims[i] : theirs;
            small = is_merged ? theirs : to->dims[i];
        }
    }
    return small > 0 && large % small == 0 && large / small > 1 && large / small <= BLOCKS_MAX
               ? large / small
               : 0;
}

static void try_split(struct cm_matching *m, struct cm_match_target *target,
                      struct cm_match_source *source, int axis, bool turned, struct best *best)
{
    const int rank = target->shape.rank;
    const int64_t count = blocks(&target->shape, &source->tensor->shape, axis, false, turned);

    for (int64_t b = 0; b < count; b++) {
        struct cm_parts parts = {0};

        add_block(m->arena, &parts, source, rank, axis, target->shape.dims[axis], b, false, turned);
        compare(m, target, source, &parts, best);
    }
}

/* The model splits what the framework has in one: q, k and v. */
static void find_split(struct cm_matching *m, struct cm_match_target *target)
{
    struct best best = {.score = -1, .second = -1};
    const int rank = target->shape.rank;

    for (size_t i = 0; i < m->sources.count; i++) {
        struct cm_match_source *source = &m->sources.items[i];

        if (source->tensor->shape.rank != rank || !is_float(source))
            continue;
        for (int axis = 0; axis < rank; axis++)
            for (int turned = 0; turned < (rank == 2 ? 2 : 1); turned++)
                try_split(m, target, source, axis, turned, &best);
    }
    if (is_clear(&best))
        cm_match_take(m, target, &best.parts, "by value, a part of it (%.2f)", best.score);
}

/* The model has in one what the framework has in several: each block is looked for. */
static bool find_blocks(struct cm_matching *m, const struct cm_match_target *target, int axis,
                        int64_t count, bool turned, struct cm_parts *found)
{
    const int rank = target->shape.rank;
    const int64_t size = target->shape.dims[axis] / count;

    for (int64_t b = 0; b < count; b++) {
        struct best best = {.score = -1, .second = -1};

        for (size_t i = 0; i < m->sources.count; i++) {
            struct cm_match_source *source = &m->sources.items[i];
            struct cm_parts parts = {0};

            if (source->uses || source->tensor->shape.rank != rank || !is_float(source) ||
                blocks(&target->shape, &source->tensor->shape, axis, true, turned) != count)
                continue;
            add_block(m->arena, &parts, source, rank, axis, size, b, true, turned);
            compare(m, target, source, &parts, &best);
        }
        if (!is_clear(&best))
            return false;
        *CM_PUSH(m->arena, found) = best.parts.items[0];
    }
    return true;
}

static void find_merged(struct cm_matching *m, struct cm_match_target *target)
{
    const int rank = target->shape.rank;

    for (int axis = 0; axis < rank; axis++)
        for (int turned = 0; turned < (rank == 2 ? 2 : 1); turned++)
            for (int64_t count = 2; count <= 4; count++) {
                struct cm_parts found = {0};

                if (target->shape.dims[axis] % count == 0 &&
                    find_blocks(m, target, axis, count, turned, &found)) {
                    cm_match_take(m, target, &found, "by value, merged");
                    return;
                }
            }
}

void cm_match_by_values(struct cm_matching *m)
{
    struct cm_match_source **sorted = sort_sources(m);

    for (size_t i = 0; i < m->targets.count; i++)
        if (is_open(&m->targets.items[i]))
            find_alike(m, sorted, &m->targets.items[i], false);
    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];

        if (is_open(target))
            find_alike(m, sorted, target, true);
        if (is_open(target))
            find_split(m, target);
        if (is_open(target))
            find_merged(m, target);
    }
    cm_tensor_drop(&m->values);
    m->loaded = NULL;
}

/* ---- what is left ---- */

/* Sources that are not used and fit the target; the first of them in *found. */
static size_t count_fitting(struct cm_matching *m, struct cm_match_source **sorted,
                            const struct cm_match_target *target, struct cm_match_source **found)
{
    size_t count = 0;

    EACH_ALIKE(m, sorted, target, at)
    if (!(*at)->uses && cm_match_fits(m, *at, &target->shape) && count++ == 0)
        *found = *at;
    return count;
}

/* Does it hold one number everywhere? */
static bool repeats(struct cm_matching *m, const struct cm_match_target *target)
{
    const int64_t count = cm_shape_elements(&target->shape);

    if (!load_values(m, target))
        return false;
    for (int64_t i = 1; i < count; i++)
        if (own_value(m, i) != own_value(m, 0))
            return false;
    return count > 0;
}

void cm_match_the_rest(struct cm_matching *m)
{
    struct cm_match_source **sorted = sort_sources(m), *source = NULL;

    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];
        size_t rivals = 0;

        if (!is_open(target))
            continue;
        const size_t fitting = count_fitting(m, sorted, target, &source);
        if (fitting == 0 && target->read.op->layer.entry == CM_ENTERS_AFTER_NORM &&
            repeats(m, target))
            target->is_needed = false; /* a norm without scale and shift of its own */
        if (fitting != 1)
            continue;
        for (size_t k = 0; k < m->targets.count && rivals < 2; k++)
            rivals +=
                is_open(&m->targets.items[k]) &&
                cm_shape_elements(&m->targets.items[k].shape) == cm_shape_elements(&target->shape);
        if (rivals == 1)
            (void)cm_match_accept(m, target, source, "the only one left that fits");
    }
}
