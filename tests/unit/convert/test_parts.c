/* Tensors in pieces, cut, turned and put together: whatever way they lie, the same elements come
 * out. */
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "check.h"
#include "convert/match/parts.h"

enum { ROUNDS = 400, ELEMENTS_MAX = 4000 };

static uint64_t draws;

static int64_t below(int64_t limit) /* a repeatable draw */
{
    draws = draws * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)(draws >> 33) % limit;
}

static struct cm_shape some_shape(int rank)
{
    struct cm_shape shape = {.rank = rank};

    for (int d = 0; d < rank; d++)
        shape.dims[d] = 1 + below(d == 0 ? 9 : 6);
    return shape;
}

/* Element i of the tensor is seed + i. */
static const int32_t *numbers(struct cm_arena *arena, int64_t count, int32_t seed)
{
    int32_t *list = CM_NEW_ARRAY(arena, int32_t, (size_t)count + 1);

    for (int64_t i = 0; i < count; i++)
        list[i] = seed + (int32_t)i;
    return list;
}

/* A box of the tensor, copied out in some order of its axes, as a strided piece. */
static void add_box(struct cm_arena *arena, struct cm_saved_tensor *tensor, const int32_t *all,
                    const int64_t *first, const int64_t *size)
{
    const int rank = tensor->shape.rank;
    struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, true);
    int64_t whole[CM_MAX_RANK], count = 1, stride = 1;
    int order[CM_MAX_RANK];

    for (int d = 0; d < rank; d++) {
        order[d] = d;
        piece->first[d] = first[d];
        piece->size[d] = size[d];
        count *= size[d];
    }
    for (int d = rank - 1; d > 0; d--) {
        const int other = (int)below(d + 1), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    for (int i = rank - 1; i >= 0; i--) {
        piece->stride[order[i]] = stride;
        stride *= size[order[i]];
    }
    piece->offset = below(3);
    int32_t *bytes = CM_NEW_ARRAY(arena, int32_t, (size_t)(count + piece->offset));
    cm_shape_strides(&tensor->shape, whole);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0, to = piece->offset;
        for (int d = rank - 1; d >= 0; d--) {
            at += (first[d] + rest % size[d]) * whole[d];
            to += rest % size[d] * piece->stride[d];
            rest /= size[d];
        }
        bytes[to] = all[at];
    }
    piece->bytes =
        (struct cm_str){(const char *)bytes, (size_t)(count + piece->offset) * sizeof *bytes};
}

/* Cut in two along a random axis, again and again. */
static void cut(struct cm_arena *arena, struct cm_saved_tensor *tensor, const int32_t *all,
                int64_t *first, int64_t *size, int depth)
{
    const int d = tensor->shape.rank ? (int)below(tensor->shape.rank) : 0;

    if (depth == 0 || tensor->shape.rank == 0 || size[d] < 2) {
        add_box(arena, tensor, all, first, size);
        return;
    }
    const int64_t whole = size[d], head = 1 + below(whole - 1);
    size[d] = head;
    cut(arena, tensor, all, first, size, depth - 1);
    first[d] += head;
    size[d] = whole - head;
    cut(arena, tensor, all, first, size, depth - 1);
    first[d] -= head;
    size[d] = whole;
}

static void add_runs(struct cm_arena *arena, struct cm_saved_tensor *tensor, const int32_t *all)
{
    const int64_t count = cm_shape_elements(&tensor->shape);

    for (int64_t at = 0; at < count;) {
        const int64_t now = 1 + below(count - at);
        struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, false);

        piece->is_run = true;
        piece->first[0] = at;
        piece->size[0] = now;
        piece->bytes = (struct cm_str){(const char *)(all + at), (size_t)now * sizeof *all};
        at += now;
    }
}

static struct cm_saved_tensor *some_tensor(struct cm_arena *arena, const struct cm_shape *shape,
                                           int32_t seed)
{
    struct cm_saved_tensor *tensor = CM_NEW(arena, struct cm_saved_tensor);
    const int32_t *all = numbers(arena, cm_shape_elements(shape), seed);
    int64_t first[CM_MAX_RANK] = {0}, size[CM_MAX_RANK];
    struct cm_error err;

    tensor->dtype = CM_INT32;
    tensor->shape = *shape;
    memcpy(size, shape->dims, sizeof size);
    if (below(2))
        add_runs(arena, tensor, all);
    else
        cut(arena, tensor, all, first, size, (int)below(4));
    CHECK_OK(cm_saved_tensor_check(arena, tensor, &err), &err);
    return tensor;
}

static void read_all(const struct cm_saved_tensor *tensor, int32_t *out)
{
    const int64_t count = cm_shape_elements(&tensor->shape);
    struct cm_saved_reader reader = {0};
    struct cm_error err;

    for (int64_t at = 0; at < count;) {
        const int64_t now = 1 + below(count - at);

        CHECK_OK(cm_saved_tensor_read(&reader, tensor, at, now, out + at, &err), &err);
        at += now;
    }
    cm_saved_reader_release(&reader);
}

static void read_in_any_pieces(struct cm_arena *arena)
{
    int32_t out[ELEMENTS_MAX];

    for (int round = 0; round < ROUNDS; round++) {
        const struct cm_shape shape = some_shape((int)below(5));
        const int64_t count = cm_shape_elements(&shape);
        const struct cm_saved_tensor *tensor = some_tensor(arena, &shape, round);

        if (count > ELEMENTS_MAX)
            continue;
        memset(out, 0xff, sizeof out);
        read_all(tensor, out);
        for (int64_t i = 0; i < count; i++)
            CHECK_INT(out[i], round + i);
    }
}

void test_saved_tensor__is_read_the_same_however_it_is_cut(void)
{
    draws = 1;
    check_in_arena(read_in_any_pieces);
}

static const struct cm_saved_tensor *find_source(void *arg, struct cm_str name)
{
    return cm_str_is(name, "w") ? arg : NULL;
}

/* Some axes in another order, some of size 1 added; cut in two parts that change places. */
static void there_and_back(struct cm_arena *arena)
{
    int32_t out[ELEMENTS_MAX];

    for (int round = 0; round < ROUNDS; round++) {
        const struct cm_shape shape = some_shape(1 + (int)below(4));
        const int64_t count = cm_shape_elements(&shape);
        struct cm_saved_tensor *source = some_tensor(arena, &shape, 7), *made, *back;
        struct cm_parts parts = {0}, read;
        struct cm_shape model = {0};
        int axes[CM_MAX_RANK], rank = 0;
        struct cm_error err;

        if (count > ELEMENTS_MAX)
            continue;
        for (int d = 0; d < shape.rank; d++) {
            const int at = (int)below(rank + 1);
            memmove(axes + at + 1, axes + at, (size_t)(rank - at) * sizeof *axes);
            axes[at] = d;
            rank++;
        }
        if (below(3) == 0)
            axes[rank++] = -1;
        model.rank = rank;
        for (int i = 0; i < rank; i++)
            model.dims[i] = axes[i] < 0 ? 1 : shape.dims[axes[i]];
        const int64_t rows = shape.dims[0],
                      head = rows > 1 && below(2) ? 1 + below(rows - 1) : rows;
        for (int half = 0; half < (head < rows ? 2 : 1); half++) {
            struct cm_part *part = cm_part_add(arena, &parts, CM_STR("w"), shape.rank, rank);

            part->from[0] = half ? head : 0;
            part->size[0] = half ? rows - head : head;
            for (int i = 0; i < rank; i++) {
                part->axes[i] = axes[i];
                if (axes[i] == 0)
                    part->at[i] = half || head == rows ? 0 : rows - head;
            }
        }
        const struct cm_item *item = cm_parts_item(arena, &parts);
        CHECK_OK(cm_parts_from_item(arena, item, rank, &read, &err), &err);
        CHECK_OK(cm_parts_gather(arena, &read, &model, CM_INT32, find_source, source, &made, &err),
                 &err);
        struct cm_part_use uses[2];
        for (size_t i = 0; i < parts.count; i++)
            uses[i] = (struct cm_part_use){&parts.items[i], made};
        CHECK_OK(cm_parts_scatter(arena, uses, parts.count, &shape, CM_INT32, &back, &err), &err);
        read_all(back, out);
        for (int64_t i = 0; i < count; i++)
            CHECK_INT(out[i], 7 + i);
    }
}

void test_parts__lead_back_to_where_they_came_from(void)
{
    draws = 2;
    check_in_arena(there_and_back);
}

static void transpose(struct cm_arena *arena)
{
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6};
    const struct cm_shape shape = CM_SHAPE(2, 3), turned = CM_SHAPE(3, 2);
    const int axes[] = {1, 0};
    struct cm_saved_tensor *source, *made;
    struct cm_parts parts = {0};
    struct cm_error err;
    int32_t out[6];

    CHECK_OK(cm_saved_tensor_new(arena, CM_INT32, &shape, (struct cm_str){(const char *)rows, 24},
                                 CM_STR("f"), &source, &err),
             &err);
    cm_parts_transposed(arena, &parts, CM_STR("w"), &shape, axes, 2);
    CHECK(!cm_parts_are_whole(&parts));
    CHECK_OK(cm_parts_gather(arena, &parts, &turned, CM_INT32, find_source, source, &made, &err),
             &err);
    read_all(made, out);
    CHECK_INT(out[0] * 100000 + out[1] * 10000 + out[2] * 1000 + out[3] * 100 + out[4] * 10 +
                  out[5],
              142536);
    parts.items[0].at[0] = 1;
    CHECK_FAILS(cm_parts_gather(arena, &parts, &turned, CM_INT32, find_source, source, &made, &err),
                CM_BAD_MODEL, &err, "a part of 'w' goes to 1");
    parts.items[0].at[0] = 0;
    parts.items[0].size[1] = 2;
    CHECK_FAILS(cm_parts_gather(arena, &parts, &turned, CM_INT32, find_source, source, &made, &err),
                CM_BAD_MODEL, &err, "2 of its 6 elements are in none");
}

void test_parts__may_turn_a_matrix_and_must_fill_it(void)
{
    check_in_arena(transpose);
}

static void refuse(struct cm_arena *arena)
{
    const struct cm_shape shape = CM_SHAPE(4);
    struct cm_saved_tensor *tensor = CM_NEW(arena, struct cm_saved_tensor), *short_of;
    struct cm_error err;
    static const char bytes[16];

    CHECK_FAILS(cm_saved_tensor_new(arena, CM_INT32, &shape, (struct cm_str){bytes, 15}, CM_STR(""),
                                    &short_of, &err),
                CM_BAD_MODEL, &err, "needs 16 bytes, there are 15");
    tensor->dtype = CM_INT32;
    tensor->shape = shape;
    for (int i = 0; i < 2; i++) {
        struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, false);
        piece->first[0] = i;
        piece->size[0] = 3;
        piece->bytes = (struct cm_str){bytes, 12};
    }
    CHECK_FAILS(cm_saved_tensor_check(arena, tensor, &err), CM_BAD_MODEL, &err, "overlap");
    tensor->pieces.items[1].first[0] = 2;
    CHECK_FAILS(cm_saved_tensor_check(arena, tensor, &err), CM_BAD_MODEL, &err, "is at 2");
    tensor->pieces.items[1] = tensor->pieces.items[0];
    tensor->pieces.items[1].bytes.size = 11;
    CHECK_FAILS(cm_saved_tensor_check(arena, tensor, &err), CM_BAD_MODEL, &err, "has 11 bytes");
}

void test_saved_tensor__refuses_pieces_that_do_not_fit(void)
{
    check_in_arena(refuse);
}
