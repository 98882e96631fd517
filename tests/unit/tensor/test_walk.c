/* Walks over broadcast operands, against indices counted one by one. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "tensor/walk.h"

enum { MOST = 3 };

/* The place of the operand's element that goes with element i of the result. */
static int64_t place_of(const struct cm_shape *operand, const struct cm_shape *result, int64_t i)
{
    int64_t strides[CM_MAX_RANK], at = 0;
    cm_broadcast_strides(operand, result, strides);
    for (int axis = result->rank - 1; axis >= 0; axis--) {
        at += i % result->dims[axis] * strides[axis];
        i /= result->dims[axis];
    }
    return at;
}

/* Goes through all elements, once from run to run and once by seeking each; returns the length of a
 * run. */
static int64_t check_walk(const struct cm_shape *result, int n, const struct cm_shape *operands)
{
    _Alignas(int64_t) char memory[4096];
    const struct cm_shape *shapes[MOST];
    int64_t index[CM_MAX_RANK], found[CM_MAX_RANK], at[MOST], sought[MOST];
    for (int i = 0; i < n; i++)
        shapes[i] = &operands[i];
    CHECK(cm_walk_size(n, result->rank) <= sizeof memory);
    const struct cm_walk *walk = cm_walk_plan(memory, result, n, shapes);
    CHECK_INT(walk->count, cm_shape_elements(result));
    CHECK_INT(walk->count % walk->run, 0);
    cm_walk_seek(walk, 0, index, at);
    for (int64_t to = 0; to < walk->count; to += walk->run) {
        cm_walk_seek(walk, to / walk->run, found, sought);
        for (int i = 0; i < n; i++) {
            CHECK_INT(sought[i], at[i]);
            for (int64_t k = 0; k < walk->run; k++)
                CHECK_INT(at[i] + k * walk->step[i], place_of(&operands[i], result, to + k));
        }
        cm_walk_next(walk, index, at);
    }
    return walk->run;
}

#define RUN_OF(result, ...)                                                                        \
    check_walk(&(result), (int)CM_COUNT(((const struct cm_shape[]){__VA_ARGS__})),                 \
               (const struct cm_shape[]){__VA_ARGS__})

void test_walk__equal_shapes_are_one_run(void)
{
    const struct cm_shape y = CM_SHAPE(2, 3, 4);
    CHECK_INT(RUN_OF(y, y, y), 24);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(1, 3, 4)), 12);
    CHECK_INT(RUN_OF(y, y, CM_SCALAR), 24);
}

void test_walk__axes_are_merged_where_all_operands_go_on(void)
{
    const struct cm_shape y = CM_SHAPE(2, 3, 4, 5);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(4, 5)), 20);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(2, 3, 1, 1)), 20);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(3, 1, 5)), 5);
    CHECK_INT(RUN_OF(y, CM_SHAPE(2, 1, 4, 1), CM_SHAPE(3, 1, 5)), 5);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(3, 1, 1), CM_SHAPE(4, 1)), 5);
}

void test_walk__axes_of_one_element_are_no_axes(void)
{
    const struct cm_shape y = CM_SHAPE(1, 6, 1, 2, 1);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(6, 1, 2, 1)), 12);
    CHECK_INT(RUN_OF(y, y, CM_SHAPE(1, 2, 1)), 2);
    CHECK_INT(RUN_OF(CM_SHAPE(1, 1), CM_SCALAR, CM_SHAPE(1)), 1);
    CHECK_INT(RUN_OF(CM_SCALAR, CM_SCALAR), 1);
}

void test_walk__an_empty_result_has_no_runs(void)
{
    _Alignas(int64_t) char memory[1024];
    const struct cm_shape y = CM_SHAPE(3, 0, 2), x = CM_SHAPE(0, 1);
    const struct cm_shape *const shapes[] = {&x, NULL};
    CHECK_INT(cm_walk_plan(memory, &y, 2, shapes)->count, 0);
}

/* Single elements repeat whatever their rank is, and absent operands count as such. */
void test_walk__single_elements_may_have_a_higher_rank(void)
{
    _Alignas(int64_t) char memory[1024];
    const struct cm_shape y = CM_SHAPE(7), x = CM_SHAPE(1, 1, 1);
    const struct cm_shape *const shapes[] = {&x, NULL, &y};
    const struct cm_walk *walk = cm_walk_plan(memory, &y, 3, shapes);
    CHECK_INT(walk->run, 7);
    CHECK_INT(walk->step[0], 0);
    CHECK_INT(walk->step[1], 0);
    CHECK_INT(walk->step[2], 1);
}
