/* Concrete shapes: counting, strides, broadcasting, axes. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "tensor/shape.h"

void test_shape__count_multiplies_and_a_scalar_has_one(void)
{
    int64_t count;
    CHECK(cm_shape_count(&CM_SHAPE(2, 3, 4), &count));
    CHECK_INT(count, 24);
    CHECK(cm_shape_count(&CM_SCALAR, &count));
    CHECK_INT(count, 1);
    CHECK(cm_shape_count(&CM_SHAPE(5, 0, 7), &count));
    CHECK_INT(count, 0);
}

void test_shape__count_refuses_overflow_and_negative_dims(void)
{
    int64_t count = 7;
    CHECK(!cm_shape_count(&CM_SHAPE(INT64_C(1) << 32, INT64_C(1) << 31), &count));
    CHECK(!cm_shape_count(&CM_SHAPE(2, -1), &count));
    CHECK(!cm_shape_count(&CM_SHAPE(0, INT64_MAX, 2), &count));
    CHECK_INT(count, 7);
    CHECK(!cm_shape_count(&CM_SHAPE(0, CM_MAX_DIM + 1), &count));
    CHECK_INT(count, 7);
    CHECK(cm_shape_count(&CM_SHAPE(CM_MAX_DIM, 1 << 14), &count));
    CHECK_INT(count, INT64_C(1) << 62);
}

void test_shape__span_is_the_product_of_a_range(void)
{
    const struct cm_shape shape = CM_SHAPE(2, 3, 4);
    CHECK_INT(cm_shape_span(&shape, 1, 3), 12);
    CHECK_INT(cm_shape_span(&shape, 1, 1), 1);
    CHECK_INT(cm_shape_elements(&shape), 24);
}

void test_shape__equal_looks_at_rank_and_dims(void)
{
    CHECK(cm_shape_equal(&CM_SHAPE(2, 3), &CM_SHAPE(2, 3)));
    CHECK(!cm_shape_equal(&CM_SHAPE(2, 3), &CM_SHAPE(3, 2)));
    CHECK(!cm_shape_equal(&CM_SHAPE(2), &CM_SHAPE(2, 1)));
    CHECK(cm_shape_equal(&CM_SCALAR, &CM_SCALAR));
}

void test_shape__strides_are_row_major(void)
{
    int64_t strides[3];
    cm_shape_strides(&CM_SHAPE(2, 3, 4), strides);
    CHECK(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
}

void test_shape__prints_and_is_cut_to_fit(void)
{
    char text[32], small[6];
    CHECK_STRING(cm_shape_print(&CM_SHAPE(2, 3, 40), text, sizeof text), "2x3x40");
    CHECK_STRING(cm_shape_print(&CM_SCALAR, text, sizeof text), "scalar");
    CHECK_STRING(cm_shape_print(&CM_SHAPE(1000, 2000, 3000), small, sizeof small), "1000x");
}

void test_broadcast__missing_leading_dims_count_as_one(void)
{
    struct cm_shape out;
    CHECK(cm_broadcast(&CM_SHAPE(2, 1, 4), &CM_SHAPE(3, 1), &out));
    CHECK(cm_shape_equal(&out, &CM_SHAPE(2, 3, 4)));
    CHECK(cm_broadcast(&CM_SCALAR, &CM_SHAPE(5), &out));
    CHECK(cm_shape_equal(&out, &CM_SHAPE(5)));
    CHECK(cm_broadcast(&CM_SHAPE(0), &CM_SHAPE(1), &out));
    CHECK(cm_shape_equal(&out, &CM_SHAPE(0)));
}

void test_broadcast__refuses_dims_that_differ(void)
{
    struct cm_shape out;
    CHECK(!cm_broadcast(&CM_SHAPE(2, 3), &CM_SHAPE(2, 4), &out));
    CHECK(!cm_broadcast(&CM_SHAPE(0), &CM_SHAPE(2), &out));
}

void test_broadcast__strides_stand_still_along_repeated_axes(void)
{
    int64_t strides[3];
    cm_broadcast_strides(&CM_SHAPE(3, 1), &CM_SHAPE(2, 3, 4), strides);
    CHECK(strides[0] == 0 && strides[1] == 1 && strides[2] == 0);
}

void test_axis__negative_counts_from_the_end(void)
{
    int axis = 9;
    CHECK(cm_axis_fix(-1, 3, &axis));
    CHECK_INT(axis, 2);
    CHECK(cm_axis_fix(0, 3, &axis));
    CHECK_INT(axis, 0);
    CHECK(!cm_axis_fix(3, 3, &axis));
    CHECK(!cm_axis_fix(-4, 3, &axis));
    CHECK(!cm_axis_fix(INT64_MIN, 3, &axis));
    CHECK(!cm_axis_fix(0, 0, &axis));
}

void test_shape__an_axis_is_put_in_anywhere_until_the_rank_is_full(void)
{
    struct cm_shape shape = CM_SHAPE(2, 3);

    CHECK(cm_shape_insert(&shape, 0, 7));
    CHECK(cm_shape_insert(&shape, 3, 9));
    CHECK(cm_shape_insert(&shape, 2, 8));
    CHECK(cm_shape_equal(&shape, &CM_SHAPE(7, 2, 8, 3, 9)));
    CHECK(!cm_shape_insert(&shape, 6, 1));
    CHECK(!cm_shape_insert(&shape, -1, 1));
    while (shape.rank < CM_MAX_RANK)
        CHECK(cm_shape_insert(&shape, shape.rank, 1));
    const struct cm_shape full = shape;
    CHECK(!cm_shape_insert(&shape, 0, 1));
    CHECK(!cm_shape_insert(&shape, CM_MAX_RANK, 1));
    CHECK(cm_shape_equal(&shape, &full));
}
