/* Sequences: items shared, put in at either end without copying, and each sequence its own. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "tensor/pool.h"

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

static struct cm_datum without(const struct cm_datum *from, size_t position)
{
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_erase(from, position, &out, &err), &err);
    return out;
}

void test_sequence__what_is_erased_stays_in_the_others(void)
{
    struct cm_datum empty = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_new(0, &empty, &err), &err);
    struct cm_datum one = with(&empty, 0, 1), two = with(&one, 1, 2), three = with(&two, 2, 3);
    struct cm_datum head = without(&three, 2), tail = without(&three, 0);
    struct cm_datum ends = without(&three, 1), last = without(&tail, 0), none = without(&last, 0);
    /* A place that was erased here is still somebody else's. */
    struct cm_datum head4 = with(&head, 2, 4), tail5 = with(&tail, 0, 5), alone = with(&none, 0, 6);
    cm_datum_drop(&empty);
    cm_datum_drop(&one);
    cm_datum_drop(&two);
    CHECK_ITEMS(&three, 1, 2, 3);
    cm_datum_drop(&three);
    CHECK_ITEMS(&head, 1, 2);
    CHECK_ITEMS(&tail, 2, 3);
    CHECK_ITEMS(&ends, 1, 3);
    CHECK_ITEMS(&last, 3);
    CHECK_INT(none.kind, CM_KIND_SEQUENCE);
    CHECK_INT(none.n_items, 0);
    CHECK_ITEMS(&head4, 1, 2, 4);
    CHECK_ITEMS(&tail5, 5, 2, 3);
    CHECK_ITEMS(&alone, 6);
    struct cm_datum *const all[] = {&head, &tail, &ends, &last, &none, &head4, &tail5, &alone};
    for (size_t i = 0; i < CM_COUNT(all); i++)
        cm_datum_drop(all[i]);
}

/* However a sequence came to its items, where they lie is memory of the thread's source. */
void test_sequence__its_items_are_counted(void)
{
    enum { COUNT = 100 };
    struct cm_pool *pool = cm_pool_new(0);
    const struct cm_buffer_source source = cm_pool_source(pool);
    const size_t least = COUNT * sizeof(struct cm_datum);
    struct cm_datum item = number(1), list = {0}, alone = {0}, copy = {0}, longer = {0};
    struct cm_error err = {0};
    cm_buffer_enter(&source);
    CHECK_OK(cm_sequence_new(COUNT, &list, &err), &err);
    CHECK(cm_pool_used(pool) >= least);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_OK(cm_sequence_add(&list, &item, &err), &err);
    CHECK_OK(cm_datum_share(&list, &alone, &err), &err);
    CHECK_OK(cm_datum_separate(&alone, &err), &err);
    CHECK(cm_pool_used(pool) >= 2 * least);
    CHECK_OK(cm_datum_share(&alone, &copy, &err), &err);
    CHECK(cm_pool_used(pool) >= 3 * least);
    CHECK_OK(cm_sequence_insert(&list, 1, &item, &longer, &err), &err);
    CHECK(cm_pool_used(pool) >= 4 * least);
    cm_buffer_enter(NULL);
    cm_datum_drop(&list);
    cm_datum_drop(&alone);
    cm_datum_drop(&copy);
    cm_datum_drop(&longer);
    cm_datum_drop(&item);
    CHECK_INT(cm_pool_used(pool), 0);
    cm_pool_free(pool);
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

/* Allocations for taking count items away at one end, one after the other. */
static uint64_t cost_of_erasing(size_t count, bool at_end)
{
    struct cm_datum item = number(1), sequence = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_new(count, &sequence, &err), &err);
    for (size_t i = 0; i < count; i++)
        CHECK_OK(cm_sequence_add(&sequence, &item, &err), &err);
    const uint64_t before = cm_memory_count();
    while (sequence.n_items) {
        struct cm_datum shorter = without(&sequence, at_end ? sequence.n_items - 1 : 0);
        cm_datum_drop(&sequence);
        sequence = shorter;
    }
    cm_datum_drop(&sequence);
    cm_datum_drop(&item);
    return cm_memory_count() - before;
}

void test_sequence__shrinking_at_either_end_copies_it_but_rarely(void)
{
    CHECK(cost_of_erasing(10000, true) < 30);
    CHECK(cost_of_erasing(10000, false) < 30);
}

/* What is no longer in a sequence must not be kept for as long as something is. */
void test_sequence__what_everybody_erased_goes(void)
{
    enum { COUNT = 1000, LEFT = 10 };
    struct cm_pool *pool = cm_pool_new(0);
    const struct cm_buffer_source source = cm_pool_source(pool);
    const struct cm_buffer_source *before = cm_buffer_enter(&source);
    struct cm_datum sequence = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_sequence_new(COUNT, &sequence, &err), &err);
    for (size_t i = 0; i < COUNT; i++)
        sequence.items[sequence.n_items++] = number((double)i);
    cm_buffer_enter(before);
    const size_t one = cm_pool_used(pool) / COUNT;
    while (sequence.n_items > LEFT) {
        struct cm_datum shorter = without(&sequence, 0);
        cm_datum_drop(&sequence);
        sequence = shorter;
    }
    CHECK(one > 0);
    CHECK(cm_pool_used(pool) <= (2 * LEFT + 1) * one);
    cm_datum_drop(&sequence);
    CHECK_INT(cm_pool_used(pool), 0);
    cm_pool_free(pool);
}
