/* Storages: bytes of a block that several slots share, taken by best fit. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/storage.h"

#include "base/number.h"

enum { LINE = 64 };

/* Whole lines for size bytes; 0 and a mark when that is more than any machine has. */
static size_t lines(struct cm_storages *storages, size_t size)
{
    if (size <= SIZE_MAX / 8)
        return cm_round_up(size, LINE);
    storages->too_large = true;
    return 0;
}

size_t cm_storage_take(struct cm_storages *storages, size_t size)
{
    const size_t need = lines(storages, size);
    if (storages->gaps.end > SIZE_MAX / 4)
        storages->too_large = true;
    if (need == 0 || storages->too_large)
        return 0;
    const size_t offset = cm_gaps_take(&storages->gaps, need);
    if (storages->gaps.end > storages->peak)
        storages->peak = storages->gaps.end;
    return offset;
}

void cm_storage_give_back(struct cm_storages *storages, size_t offset, size_t size)
{
    const size_t has = lines(storages, size);
    if (has == 0 || storages->too_large)
        return;
    (void)CM_PUSH(storages->arena, &storages->gaps); /* room for one */
    storages->gaps.count--;
    cm_gaps_give_back(&storages->gaps, offset, has);
}

static void count(struct cm_storages *storages, int kind, size_t bytes)
{
    storages->used[kind] += bytes; /* no more than there are, unless too_large is set */
    if (storages->used[kind] > storages->most[kind])
        storages->most[kind] = storages->used[kind];
}

int cm_storage_new(struct cm_storages *storages, size_t size)
{
    const size_t offset = cm_storage_take(storages, size);
    *CM_PUSH(storages->arena, &storages->all) =
        (struct cm_storage){offset, size, 1, storages->kind};
    count(storages, storages->kind, lines(storages, size));
    return (int)storages->all.count - 1;
}

void cm_storage_adopt(struct cm_storages *storages, int number)
{
    struct cm_storage *storage = &storages->all.items[number];
    const size_t has = lines(storages, storage->size);
    storages->used[storage->kind] -= has;
    storage->kind = storages->kind;
    count(storages, storage->kind, has);
}

void cm_storage_leave(struct cm_storages *storages, int number)
{
    struct cm_storage *storage = &storages->all.items[number];
    if (--storage->live > 0)
        return;
    cm_storage_give_back(storages, storage->offset, storage->size);
    storages->used[storage->kind] -= lines(storages, storage->size);
}
