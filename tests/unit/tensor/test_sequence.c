/* Sequences: items shared, put in at either end without copying, and each sequence its own. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "tensor/tensor.h"

static struct cm_datum number(double value)
{
    struct cm_datum datum = {.kind = CM_KIND_TENSOR};
    struct cm_error err = {0};
    CHECK_OK(cm_tensor_new(CM_DOUBLE, &CM_SCALAR, &datum.tensor, &err), &err);
    *(double *)datum.tensor.data = value;
    return datum;
}

static struct cm_datum with(const struct cm_datum *from, size_t position, double value)
{
    struct cm_datum item = number(value), out = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_insert(from, position, &item, &out, &err), &err);
    cm_datum_drop(&item);
    return out;
}

#define CHECK_ITEMS(sequence, ...)                                                                 \
    check_items((sequence), (const double[]){__VA_ARGS__},                                         \
                sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
static void check_items(const struct cm_datum *sequence, const double *expected, size_t count)
{
    CHECK_INT(sequence->kind, CM_KIND_SEQUENCE);
    CHECK_INT(sequence->n_items, count);
    for (size_t i = 0; i < count; i++)
        CHECK(cm_tensor_real(&sequence->items[i].tensor, 0) == expected[i]);
}

void test_sequence__each_keeps_its_items_whatever_becomes_of_others(void)
{
    struct cm_datum empty = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_new(0, &empty, &err), &err);
    struct cm_datum one = with(&empty, 0, 1);
    struct cm_datum two = with(&one, 1, 2), other = with(&one, 1, 3); /* both at the end of one */
    struct cm_datum front = with(&two, 0, 0), again = with(&two, 0, -1);
    struct cm_datum middle = with(&front, 1, 0.5);
    cm_datum_drop(&empty);
    cm_datum_drop(&two);
    CHECK_ITEMS(&one, 1);
    CHECK_ITEMS(&other, 1, 3);
    CHECK_ITEMS(&front, 0, 1, 2);
    CHECK_ITEMS(&again, -1, 1, 2);
    cm_datum_drop(&front);
    CHECK_ITEMS(&middle, 0, 0.5, 1, 2);
    cm_datum_drop(&one);
    cm_datum_drop(&other);
    CHECK_ITEMS(&again, -1, 1, 2);
    cm_datum_drop(&again);
    cm_datum_drop(&middle);
}

void test_sequence__borrowed_bytes_are_copied(void)
{
    double value = 5;
    const struct cm_datum item = {.kind = CM_KIND_TENSOR,
                                  .tensor = cm_tensor_borrow(CM_DOUBLE, &CM_SCALAR, &value)};
    struct cm_datum empty = {0}, one = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_new(0, &empty, &err), &err);
    CHECK_OK(cm_sequence_insert(&empty, 0, &item, &one, &err), &err);
    value = 6;
    CHECK_ITEMS(&one, 5);
    cm_datum_drop(&empty);
    cm_datum_drop(&one);
}

void test_sequence__one_that_is_separated_can_be_changed_alone(void)
{
    struct cm_datum empty = {0}, shared;
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_new(0, &empty, &err), &err);
    struct cm_datum one = with(&empty, 0, 1);
    CHECK_OK(cm_datum_share(&one, &shared, &err), &err);
    CHECK(shared.items == one.items);
    CHECK_OK(cm_datum_separate(&shared, &err), &err);
    cm_datum_drop(&shared.items[0]);
    shared.items[0] = number(9);
    CHECK_ITEMS(&one, 1);
    CHECK_ITEMS(&shared, 9);
    cm_datum_drop(&empty);
    cm_datum_drop(&one);
    cm_datum_drop(&shared);
}

/* Allocations for count items at one end; a copy per item would be one for each. */
static uint64_t cost(size_t count, bool at_end)
{
    struct cm_datum item = number(1), sequence = {0};
    struct cm_error err = {0};
    const uint64_t before = cm_memory_count();
    CHECK_OK(cm_sequence_new(0, &sequence, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct cm_datum longer = {0}, kept;
        CHECK_OK(cm_sequence_insert(&sequence, at_end ? i : 0, &item, &longer, &err), &err);
        CHECK_OK(cm_datum_share(&longer, &kept, &err), &err);
        cm_datum_drop(&sequence);
        cm_datum_drop(&longer);
        sequence = kept;
    }
    CHECK_INT(sequence.n_items, count);
    cm_datum_drop(&sequence);
    cm_datum_drop(&item);
    return cm_memory_count() - before;
}

void test_sequence__growing_at_either_end_copies_it_but_rarely(void)
{
    CHECK(cost(10000, true) < 30);
    CHECK(cost(10000, false) < 30);
}
