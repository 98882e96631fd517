/* Best fit over a sorted list of gaps. */
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
    if (storages->end > SIZE_MAX / 4)
        storages->too_large = true;
    if (need == 0 || storages->too_large)
        return 0;
    size_t best = storages->gaps.count;
    for (size_t i = 0; i < storages->gaps.count; i++) {
        const size_t has = storages->gaps.items[i].size;
        if (has >= need && (best == storages->gaps.count || has < storages->gaps.items[best].size))
            best = i;
    }
    if (best < storages->gaps.count) {
        struct cm_gap *gap = &storages->gaps.items[best];
        const size_t offset = gap->offset;
        gap->offset += need;
        gap->size -= need;
        if (gap->size == 0)
            memmove(gap, gap + 1, (--storages->gaps.count - best) * sizeof *gap);
        return offset;
    }
    /* A gap at the very end grows. */
    struct cm_gap *last =
        storages->gaps.count ? &storages->gaps.items[storages->gaps.count - 1] : NULL;
    size_t offset = storages->end;
    if (last && last->offset + last->size == storages->end) {
        offset = last->offset;
        storages->gaps.count--;
    }
    storages->end = offset + need;
    if (storages->end > storages->peak)
        storages->peak = storages->end;
    return offset;
}

void cm_storage_give_back(struct cm_storages *storages, size_t offset, size_t size)
{
    const size_t has = lines(storages, size);
    if (has == 0 || storages->too_large)
        return;
    size_t at = storages->gaps.count; /* searched from the end: what was taken last goes first */
    while (at > 0 && storages->gaps.items[at - 1].offset > offset)
        at--;
    (void)CM_PUSH(storages->arena, &storages->gaps);
    struct cm_gap *gaps = storages->gaps.items;
    memmove(&gaps[at + 1], &gaps[at], (storages->gaps.count - 1 - at) * sizeof *gaps);
    gaps[at] = (struct cm_gap){offset, has};
    if (at + 1 < storages->gaps.count && gaps[at].offset + gaps[at].size == gaps[at + 1].offset) {
        gaps[at].size += gaps[at + 1].size;
        memmove(&gaps[at + 1], &gaps[at + 2], (--storages->gaps.count - at - 1) * sizeof *gaps);
    }
    if (at > 0 && gaps[at - 1].offset + gaps[at - 1].size == gaps[at].offset) {
        gaps[at - 1].size += gaps[at].size;
        memmove(&gaps[at], &gaps[at + 1], (--storages->gaps.count - at) * sizeof *gaps);
    }
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
