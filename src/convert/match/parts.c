/* Tensors of a model made of tensors of a framework, and back: pieces are cut and turned, nothing
 * is copied. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/parts.h"

/* ---- making parts ---- */

struct cm_part *cm_part_add(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                            int source_rank, int rank)
{
    struct cm_part *part = CM_PUSH(arena, parts);
    const size_t mine = (size_t)(source_rank > 0 ? source_rank : 1);
    const size_t theirs = (size_t)(rank > 0 ? rank : 1);

    *part = (struct cm_part){.source = source,
                             .source_rank = source_rank,
                             .rank = rank,
                             .from = CM_NEW_ARRAY(arena, int64_t, mine),
                             .size = CM_NEW_ARRAY(arena, int64_t, mine),
                             .axes = CM_NEW_ARRAY(arena, int, theirs),
                             .at = CM_NEW_ARRAY(arena, int64_t, theirs)};
    for (int d = 0; d < source_rank; d++)
        part->size[d] = -1;
    for (int i = 0; i < rank; i++)
        part->axes[i] = i < source_rank ? i : -1;
    return part;
}

void cm_parts_whole(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                    const struct cm_shape *shape)
{
    (void)cm_part_add(arena, parts, source, shape->rank, shape->rank);
}

void cm_parts_transposed(struct cm_arena *arena, struct cm_parts *parts, struct cm_str source,
                         const struct cm_shape *source_shape, const int *axes, int rank)
{
    const struct cm_part *part = cm_part_add(arena, parts, source, source_shape->rank, rank);

    for (int i = 0; i < rank; i++)
        part->axes[i] = axes[i];
}

static bool in_order(const struct cm_part *part)
{
    for (int i = 0; i < part->rank; i++)
        if (part->axes[i] != i)
            return false;
    return part->rank == part->source_rank;
}

static bool all_are(const int64_t *numbers, int count, int64_t wanted)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] != wanted)
            return false;
    return true;
}

bool cm_parts_are_whole(const struct cm_parts *parts)
{
    const struct cm_part *part = parts->items;

    return parts->count == 1 && in_order(part) && all_are(part->from, part->source_rank, 0) &&
           all_are(part->size, part->source_rank, -1) && all_are(part->at, part->rank, 0);
}

/* ---- runs as boxes ---- */

/* One side of a cut: a box of a tensor whose elements lie with strides from offset on. */
struct box {
    const struct cm_saved_piece *piece;
    int64_t offset;
    int64_t first[CM_MAX_RANK], size[CM_MAX_RANK], stride[CM_MAX_RANK];
};

typedef enum cm_status box_fn(void *arg, const struct box *box);

struct run {
    const struct cm_shape *shape;
    const struct cm_saved_piece *piece;
    int64_t whole[CM_MAX_RANK];
    box_fn *tell;
    void *arg;
    struct box box;
};

/* Elements [low, high) of what is left below axis d, the axes before it being fixed in box. */
static enum cm_status cut_run(struct run *run, int d, int64_t low, int64_t high)
{
    struct box *box = &run->box;
    const int64_t inner = d < run->shape->rank ? run->whole[d] : 1;

    if (low >= high)
        return CM_OK;
    if (d == run->shape->rank)
        return run->tell(run->arg, box);
    int64_t begin = low / inner, end = high / inner;
    const int64_t head = low % inner, tail = high % inner;
    box->size[d] = 1;
    if (head) {
        box->first[d] = begin;
        CM_TRY(cut_run(run, d + 1, head, begin == end ? tail : inner));
        begin++;
    }
    if (begin < end) {
        box->first[d] = begin;
        box->size[d] = end - begin;
        for (int e = d + 1; e < run->shape->rank; e++) {
            box->first[e] = 0;
            box->size[e] = run->shape->dims[e];
        }
        CM_TRY(run->tell(run->arg, box));
        box->size[d] = 1;
    }
    if (tail && begin <= end) {
        box->first[d] = end;
        return cut_run(run, d + 1, 0, tail);
    }
    return CM_OK;
}

struct placed_run {
    struct run run;
    box_fn *tell;
    void *arg;
};

static enum cm_status place_run(void *arg, const struct box *box)
{
    struct placed_run *p = arg;
    struct box placed = *box;
    const int64_t step = p->run.piece->stride ? p->run.piece->stride[0] : 1;
    int64_t at = -p->run.piece->first[0];

    for (int d = 0; d < p->run.shape->rank; d++) {
        at += box->first[d] * p->run.whole[d];
        placed.stride[d] = p->run.whole[d] * step;
    }
    placed.offset = p->run.piece->offset + at * step;
    return p->tell(p->arg, &placed);
}

static enum cm_status each_box(const struct cm_saved_tensor *tensor, box_fn *tell, void *arg)
{
    for (size_t i = 0; i < tensor->pieces.count; i++) {
        const struct cm_saved_piece *piece = &tensor->pieces.items[i];
        struct placed_run p = {.tell = tell, .arg = arg};
        struct box *box = &p.run.box;
        int64_t dense = 1;

        box->piece = piece;
        if (piece->is_run) {
            p.run = (struct run){.shape = &tensor->shape,
                                 .piece = piece,
                                 .tell = place_run,
                                 .arg = &p,
                                 .box = {.piece = piece}};
            cm_shape_strides(&tensor->shape, p.run.whole);
            CM_TRY(cut_run(&p.run, 0, piece->first[0], piece->first[0] + piece->size[0]));
            continue;
        }
        box->offset = piece->offset;
        for (int d = tensor->shape.rank - 1; d >= 0; d--) {
            box->first[d] = piece->first[d];
            box->size[d] = piece->size[d];
            box->stride[d] = piece->stride ? piece->stride[d] : dense;
            dense *= piece->size[d];
        }
        CM_TRY(tell(arg, box));
    }
    return CM_OK;
}

/* ---- gathering and scattering ---- */

struct cutting {
    struct cm_arena *arena;
    const struct cm_part *part;
    const int64_t *size; /* of the part's box, none -1 */
    struct cm_saved_tensor *out;
};

/* What is in both the box and [from, from + size)? */
static bool cut_box(struct box *box, int rank, const int64_t *from, const int64_t *size)
{
    for (int d = 0; d < rank; d++) {
        const int64_t low = box->first[d] > from[d] ? box->first[d] : from[d];
        const int64_t end = box->first[d] + box->size[d], until = from[d] + size[d];
        const int64_t high = end < until ? end : until;

        if (low >= high)
            return false;
        box->offset += (low - box->first[d]) * box->stride[d];
        box->first[d] = low;
        box->size[d] = high - low;
    }
    return true;
}

static struct cm_saved_piece *add_piece(const struct cutting *c, const struct box *box)
{
    struct cm_saved_piece *piece = cm_saved_piece_add(c->arena, c->out, true);

    piece->bytes = box->piece->bytes;
    piece->packing = box->piece->packing;
    piece->unpacked_size = box->piece->unpacked_size;
    piece->file = box->piece->file;
    piece->offset = box->offset;
    return piece;
}

static enum cm_status gather_box(void *arg, const struct box *whole)
{
    const struct cutting *c = arg;
    const struct cm_part *part = c->part;
    struct box box = *whole;

    if (!cut_box(&box, part->source_rank, part->from, c->size))
        return CM_OK;
    const struct cm_saved_piece *piece = add_piece(c, &box);
    for (int i = 0; i < part->rank; i++) {
        const int d = part->axes[i];

        piece->first[i] = part->at[i] + (d < 0 ? 0 : box.first[d] - part->from[d]);
        piece->size[i] = d < 0 ? 1 : box.size[d];
        piece->stride[i] = d < 0 ? 0 : box.stride[d];
    }
    return CM_OK;
}

static enum cm_status scatter_box(void *arg, const struct box *whole)
{
    const struct cutting *c = arg;
    const struct cm_part *part = c->part;
    int64_t size[CM_MAX_RANK];
    struct box box = *whole;

    for (int i = 0; i < part->rank; i++)
        size[i] = part->axes[i] < 0 ? 1 : c->size[part->axes[i]];
    if (!cut_box(&box, part->rank, part->at, size))
        return CM_OK;
    const struct cm_saved_piece *piece = add_piece(c, &box);
    for (int d = 0; d < part->source_rank; d++) {
        piece->first[d] = part->from[d];
        piece->size[d] = 1;
    }
    for (int i = 0; i < part->rank; i++) {
        const int d = part->axes[i];

        if (d < 0)
            continue;
        piece->first[d] = part->from[d] + box.first[i] - part->at[i];
        piece->size[d] = box.size[i];
        piece->stride[d] = box.stride[i];
    }
    return CM_OK;
}

/* A part's box with sizes filled in; refuses one that the source, or the model's tensor, has no
 * room for. */
static enum cm_status settle(const struct cm_part *part, const struct cm_shape *source,
                             const struct cm_shape *model, int64_t *size, struct cm_error *err)
{
    bool named[CM_MAX_RANK] = {false};

    if (part->source_rank != source->rank || part->rank != model->rank)
        return cm_fail(err, CM_BAD_MODEL, "'%.*s' has %d axes, not %d", CM_STR_FMT(part->source),
                       source->rank, part->source_rank);
    for (int d = 0; d < source->rank; d++) {
        const int64_t room = source->dims[d] - part->from[d];

        size[d] = part->size[d] == -1 ? room : part->size[d];
        if (part->from[d] < 0 || room < 0 || size[d] < 0 || size[d] > room)
            return cm_fail(err, CM_BAD_MODEL,
                           "a part of '%.*s' is from %lld with a size of %lld along axis %d, which "
                           "has %lld",
                           CM_STR_FMT(part->source), (long long)part->from[d], (long long)size[d],
                           d, (long long)source->dims[d]);
    }
    for (int i = 0; i < model->rank; i++) {
        const int d = part->axes[i];

        if (d >= source->rank || (d >= 0 && named[d]))
            return cm_fail(err, CM_BAD_MODEL, "a part of '%.*s' names axis %d wrongly",
                           CM_STR_FMT(part->source), d);
        if (d >= 0)
            named[d] = true;
        const int64_t extent = d < 0 ? 1 : size[d];
        if (part->at[i] < 0 || part->at[i] > model->dims[i] - extent)
            return cm_fail(err, CM_BAD_MODEL,
                           "a part of '%.*s' goes to %lld with a size of %lld along axis %d, which "
                           "has %lld",
                           CM_STR_FMT(part->source), (long long)part->at[i], (long long)extent, i,
                           (long long)model->dims[i]);
    }
    for (int d = 0; d < source->rank; d++)
        if (!named[d] && size[d] != 1)
            return cm_fail(err, CM_BAD_MODEL, "a part of '%.*s' leaves axis %d out, of size %lld",
                           CM_STR_FMT(part->source), d, (long long)size[d]);
    return CM_OK;
}

static struct cm_saved_tensor *begin(struct cutting *c, const struct cm_shape *shape,
                                     enum cm_dtype dtype)
{
    c->out = CM_NEW(c->arena, struct cm_saved_tensor);
    c->out->shape = *shape;
    c->out->dtype = dtype;
    return c->out;
}

static enum cm_status same_type(const struct cm_saved_tensor *tensor, enum cm_dtype dtype,
                                struct cm_str name, struct cm_error *err)
{
    if (tensor->dtype == dtype)
        return CM_OK;
    return cm_fail(err, CM_BAD_MODEL, "'%.*s' is of %s, not of %s", CM_STR_FMT(name),
                   cm_dtype_name(tensor->dtype), cm_dtype_name(dtype));
}

enum cm_status cm_parts_gather(struct cm_arena *arena, const struct cm_parts *parts,
                               const struct cm_shape *shape, enum cm_dtype dtype,
                               cm_part_source_fn *find, void *arg, struct cm_saved_tensor **out,
                               struct cm_error *err)
{
    struct cutting c = {.arena = arena};
    int64_t size[CM_MAX_RANK];

    *out = begin(&c, shape, dtype);
    for (size_t i = 0; i < parts->count; i++) {
        c.part = &parts->items[i];
        c.size = size;
        const struct cm_saved_tensor *source = find(arg, c.part->source);
        if (!source)
            return cm_fail(err, CM_NOT_FOUND, "there is no tensor '%.*s'",
                           CM_STR_FMT(c.part->source));
        CM_TRY(same_type(source, dtype, c.part->source, err));
        if (source->home)
            (*out)->home = source->home;
        CM_TRY(settle(c.part, &source->shape, shape, size, err));
        CM_TRY(each_box(source, gather_box, &c));
    }
    return cm_saved_tensor_check(arena, *out, err);
}

enum cm_status cm_parts_scatter(struct cm_arena *arena, const struct cm_part_use *uses,
                                size_t count, const struct cm_shape *shape, enum cm_dtype dtype,
                                struct cm_saved_tensor **out, struct cm_error *err)
{
    struct cutting c = {.arena = arena};
    int64_t size[CM_MAX_RANK];

    *out = begin(&c, shape, dtype);
    for (size_t i = 0; i < count; i++) {
        c.part = uses[i].part;
        c.size = size;
        CM_TRY(same_type(uses[i].tensor, dtype, c.part->source, err));
        CM_TRY(settle(c.part, shape, &uses[i].tensor->shape, size, err));
        CM_TRY(each_box(uses[i].tensor, scatter_box, &c));
    }
    return cm_saved_tensor_check(arena, *out, err);
}

/* ---- as JSON ---- */

static void put_list(struct cm_arena *arena, struct cm_item *map, const char *key,
                     const int64_t *numbers, int count)
{
    cm_item_put(arena, map, key, cm_item_ints(arena, numbers, (size_t)count));
}

const struct cm_item *cm_parts_item(struct cm_arena *arena, const struct cm_parts *parts)
{
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t i = 0; i < parts->count; i++) {
        const struct cm_part *part = &parts->items[i];
        struct cm_item *map = cm_item_new(arena, CM_ITEM_MAP);
        int64_t axes[CM_MAX_RANK];

        cm_item_put(arena, map, "source", cm_item_text(arena, part->source));
        if (!all_are(part->from, part->source_rank, 0))
            put_list(arena, map, "from", part->from, part->source_rank);
        if (!all_are(part->size, part->source_rank, -1))
            put_list(arena, map, "size", part->size, part->source_rank);
        for (int d = 0; d < part->rank; d++)
            axes[d] = part->axes[d];
        if (!in_order(part)) {
            put_list(arena, map, "axes", axes, part->rank);
            cm_item_put(arena, map, "rank", cm_item_int(arena, part->source_rank));
        }
        if (!all_are(part->at, part->rank, 0))
            put_list(arena, map, "at", part->at, part->rank);
        cm_item_append(arena, list, map);
    }
    return list;
}

static enum cm_status read_list(const struct cm_item *list, const char *key, int64_t *numbers,
                                int count, struct cm_error *err)
{
    if (!list)
        return CM_OK;
    bool fits = list->kind == CM_ITEM_LIST && list->entries.count == (size_t)count;
    for (int i = 0; fits && i < count; i++)
        fits = cm_item_is_int(list->entries.items[i].value, &numbers[i]);
    return fits ? CM_OK
                : cm_fail(err, CM_BAD_MODEL, "'%s' is not a list of %d whole numbers", key, count);
}

enum cm_status cm_parts_from_item(struct cm_arena *arena, const struct cm_item *item, int rank,
                                  struct cm_parts *out, struct cm_error *err)
{
    *out = (struct cm_parts){0};
    if (!item || item->kind != CM_ITEM_LIST)
        return cm_fail(err, CM_BAD_MODEL, "parts are not a list");
    for (size_t i = 0; i < item->entries.count; i++) {
        const struct cm_item *map = item->entries.items[i].value;
        const struct cm_item *axes = cm_item_get(map, "axes");
        int64_t source_rank = rank, numbers[CM_MAX_RANK];
        struct cm_str source;

        if (!cm_item_is_text(cm_item_get(map, "source"), &source))
            return cm_fail(err, CM_BAD_MODEL, "part %zu does not name its source", i);
        if (cm_item_get(map, "rank") && (!cm_item_is_int(cm_item_get(map, "rank"), &source_rank) ||
                                         source_rank < 0 || source_rank > CM_MAX_RANK))
            return cm_fail(err, CM_BAD_MODEL, "the rank of '%.*s' is none", CM_STR_FMT(source));
        const struct cm_part *part = cm_part_add(arena, out, source, (int)source_rank, rank);
        CM_TRY(read_list(cm_item_get(map, "from"), "from", part->from, part->source_rank, err));
        CM_TRY(read_list(cm_item_get(map, "size"), "size", part->size, part->source_rank, err));
        CM_TRY(read_list(cm_item_get(map, "at"), "at", part->at, rank, err));
        CM_TRY(read_list(axes, "axes", numbers, rank, err));
        for (int d = 0; axes && d < rank; d++) {
            if (numbers[d] < -1 || numbers[d] >= source_rank)
                return cm_fail(err, CM_BAD_MODEL, "'%.*s' has no axis %lld", CM_STR_FMT(source),
                               (long long)numbers[d]);
            part->axes[d] = (int)numbers[d];
        }
    }
    return CM_OK;
}
