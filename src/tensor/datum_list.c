/* Data, and the lists that sequences share. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "tensor/tensor.h"

#include <stdatomic.h>

/* Items that several sequences look at, each at its own stretch of them. What lies in [first, end)
 * never changes; at both ends items are added as long as there is room, by whoever moves the mark.
 * So a loop that appends to a sequence, or puts items in front of it, copies it but rarely. */
struct cm_list {
    struct cm_buffer *room; /* what it lies in, so that it counts as memory of the run */
    atomic_size_t references;
    size_t capacity;
    atomic_size_t first, end;
    struct cm_datum items[];
};

static enum cm_status no_memory(size_t count, struct cm_error *err)
{
    return cm_fail(err, CM_NO_MEMORY, "no memory for %zu items", count);
}

/* With count items from first on, all of them without a value. */
static enum cm_status new_list(size_t capacity, size_t first, size_t count, struct cm_list **out,
                               struct cm_error *err)
{
    struct cm_buffer *room;

    if (capacity > (SIZE_MAX / 2 - sizeof(struct cm_list)) / sizeof(struct cm_datum))
        return no_memory(capacity, err);
    CM_TRY(cm_buffer_new(sizeof(struct cm_list) + capacity * sizeof(struct cm_datum), &room, err));
    struct cm_list *list = cm_buffer_data(room);
    list->room = room;
    list->capacity = capacity;
    atomic_init(&list->references, 1);
    atomic_init(&list->first, first);
    atomic_init(&list->end, first + count); /* so that whatever is put there is dropped with it */
    memset(&list->items[first], 0, count * sizeof list->items[0]);
    *out = list;
    return CM_OK;
}

static void drop_list(struct cm_list *list)
{
    if (atomic_fetch_sub_explicit(&list->references, 1, memory_order_acq_rel) != 1)
        return;
    const size_t end = atomic_load_explicit(&list->end, memory_order_relaxed);
    for (size_t i = atomic_load_explicit(&list->first, memory_order_relaxed); i < end; i++)
        cm_datum_drop(&list->items[i]);
    cm_buffer_drop(list->room);
}

void cm_datum_drop(struct cm_datum *datum)
{
    cm_tensor_drop(&datum->tensor);
    if (datum->list) {
        drop_list(datum->list);
    } else {
        for (size_t i = 0; i < datum->n_items; i++)
            cm_datum_drop(&datum->items[i]);
        if (datum->room)
            cm_buffer_drop(datum->room);
        else
            cm_free(datum->items);
    }
    *datum = (struct cm_datum){0};
}

static void drop_datum(void *datum)
{
    cm_datum_drop(datum);
}

void cm_datum_defer(struct cm_arena *arena, struct cm_datum *datum)
{
    cm_arena_defer(arena, drop_datum, datum);
}

/* Items of its own, which share their buffers with those of from. */
static enum cm_status copy_items(const struct cm_datum *from, struct cm_datum *out,
                                 struct cm_error *err)
{
    struct cm_datum copy = {.kind = from->kind, .tensor = from->tensor};

    if (from->n_items) {
        CM_TRY(cm_buffer_new(from->n_items * sizeof *copy.items, &copy.room, err));
        copy.items = cm_buffer_data(copy.room);
    }
    cm_tensor_keep(&copy.tensor);
    for (; copy.n_items < from->n_items; copy.n_items++) {
        const enum cm_status status =
            cm_datum_share(&from->items[copy.n_items], &copy.items[copy.n_items], err);
        if (status) {
            cm_datum_drop(&copy);
            return status;
        }
    }
    *out = copy;
    return CM_OK;
}

enum cm_status cm_datum_share(const struct cm_datum *from, struct cm_datum *out,
                              struct cm_error *err)
{
    if (from->n_items && !from->list)
        return copy_items(from, out, err);
    struct cm_datum shared = *from;
    if (shared.list) {
        atomic_fetch_add_explicit(&shared.list->references, 1, memory_order_relaxed);
    } else {
        shared.items = NULL;
        shared.room = NULL;
    }
    cm_tensor_keep(&shared.tensor);
    *out = shared;
    return CM_OK;
}

enum cm_status cm_datum_separate(struct cm_datum *datum, struct cm_error *err)
{
    struct cm_datum own;

    if (!datum->list)
        return CM_OK;
    CM_TRY(copy_items(datum, &own, err));
    cm_datum_drop(datum);
    *datum = own;
    return CM_OK;
}

bool cm_datum_has_strings(const struct cm_datum *datum)
{
    if (datum->tensor.type == CM_STRING && datum->tensor.data)
        return true;
    for (size_t i = 0; i < datum->n_items; i++)
        if (cm_datum_has_strings(&datum->items[i]))
            return true;
    return false;
}

/* ---- sequences ---- */

enum cm_status cm_sequence_new(size_t count, struct cm_datum *out, struct cm_error *err)
{
    struct cm_list *list = NULL;
    CM_TRY(new_list(count, 0, count, &list, err));
    *out = (struct cm_datum){.kind = CM_KIND_SEQUENCE, .items = list->items, .list = list};
    return CM_OK;
}

static enum cm_status keep_item(const struct cm_datum *item, struct cm_datum *out,
                                struct cm_error *err)
{
    if (item->kind == CM_KIND_TENSOR && !item->tensor.buffer && item->tensor.data) {
        CM_TRY(cm_tensor_copy(&item->tensor, &out->tensor, err));
        out->kind = CM_KIND_TENSOR;
        return CM_OK;
    }
    return cm_datum_share(item, out, err);
}

enum cm_status cm_sequence_add(struct cm_datum *sequence, const struct cm_datum *item,
                               struct cm_error *err)
{
    CM_TRY(keep_item(item, &sequence->items[sequence->n_items], err));
    sequence->n_items++;
    return CM_OK;
}

/* Takes the free place at one end of what datum looks at, if there is one. */
static bool extend(const struct cm_datum *datum, bool at_end, size_t *place)
{
    struct cm_list *list = datum->list;
    if (!list)
        return false;
    size_t begin = (size_t)(datum->items - list->items), end = begin + datum->n_items;
    if (at_end) {
        *place = end;
        return end < list->capacity && atomic_compare_exchange_strong(&list->end, &end, end + 1);
    }
    *place = begin - 1;
    return begin > 0 && atomic_compare_exchange_strong(&list->first, &begin, begin - 1);
}

/* A longer list, with as much room again where the next item will come. */
static enum cm_status insert_copying(const struct cm_datum *from, size_t position,
                                     const struct cm_datum *item, struct cm_datum *out,
                                     struct cm_error *err)
{
    const size_t count = from->n_items + 1;
    const size_t capacity = count > SIZE_MAX / 4 ? count : 2 * count + 2;
    const size_t first = position == 0 && count > 1 ? capacity - count : 0;
    struct cm_list *list = NULL;
    CM_TRY(new_list(capacity, first, count, &list, err));
    struct cm_datum made = {.kind = CM_KIND_SEQUENCE, .items = list->items + first, .list = list};
    for (size_t i = 0; i < count; i++) {
        const enum cm_status status = cm_sequence_add(
            &made, i == position ? item : &from->items[i > position ? i - 1 : i], err);
        if (status) {
            cm_datum_drop(&made);
            return status;
        }
    }
    *out = made;
    return CM_OK;
}

enum cm_status cm_sequence_insert(const struct cm_datum *from, size_t position,
                                  const struct cm_datum *item, struct cm_datum *out,
                                  struct cm_error *err)
{
    size_t place;
    const bool at_end = position == from->n_items;

    if ((!at_end && position != 0) || !extend(from, at_end, &place))
        return insert_copying(from, position, item, out, err);
    struct cm_list *list = from->list;
    list->items[place] = (struct cm_datum){0};
    CM_TRY(keep_item(item, &list->items[place], err));
    atomic_fetch_add_explicit(&list->references, 1, memory_order_relaxed);
    *out = (struct cm_datum){.kind = CM_KIND_SEQUENCE,
                             .items = at_end ? from->items : from->items - 1,
                             .n_items = from->n_items + 1,
                             .list = list};
    return CM_OK;
}

static enum cm_status erase_copying(const struct cm_datum *from, size_t position,
                                    struct cm_datum *out, struct cm_error *err)
{
    struct cm_datum made;
    CM_TRY(cm_sequence_new(from->n_items - 1, &made, err));
    for (size_t i = 0; i < from->n_items; i++) {
        const enum cm_status status =
            i == position ? CM_OK : cm_sequence_add(&made, &from->items[i], err);
        if (status) {
            cm_datum_drop(&made);
            return status;
        }
    }
    *out = made;
    return CM_OK;
}

/* Does a list hold no more than twice as many items as a sequence of count would look at? What
 * lies beside them is kept as long as they are. */
static bool is_worth_keeping(const struct cm_list *list, size_t count)
{
    const size_t first = atomic_load_explicit(&list->first, memory_order_relaxed);
    const size_t end = atomic_load_explicit(&list->end, memory_order_relaxed);
    return count >= (end - first) / 2;
}

enum cm_status cm_sequence_erase(const struct cm_datum *from, size_t position, struct cm_datum *out,
                                 struct cm_error *err)
{
    const size_t left = from->n_items - 1;

    if (!from->list || (position != 0 && position != left) || !is_worth_keeping(from->list, left))
        return erase_copying(from, position, out, err);
    atomic_fetch_add_explicit(&from->list->references, 1, memory_order_relaxed);
    *out = (struct cm_datum){.kind = CM_KIND_SEQUENCE,
                             .items = position == left ? from->items : from->items + 1,
                             .n_items = left,
                             .list = from->list};
    return CM_OK;
}

/* ---- data of an arena ---- */

struct data {
    struct cm_datum *items;
    size_t count;
};

static void drop_data(void *what)
{
    const struct data *data = what;
    for (size_t i = 0; i < data->count; i++)
        cm_datum_drop(&data->items[i]);
}

struct cm_datum *cm_data_new(struct cm_arena *arena, size_t count)
{
    struct data *data = CM_NEW(arena, struct data);
    *data = (struct data){CM_NEW_ARRAY(arena, struct cm_datum, count), count};
    cm_arena_defer(arena, drop_data, data);
    return data->items;
}
