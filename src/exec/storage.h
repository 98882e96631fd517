/* Places in a block's memory: taken and given back while binding walks the steps, so that values
 * that do not live at the same time share bytes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EXEC_STORAGE_H
#define CM_EXEC_STORAGE_H

#include "base/arena.h"
#include "base/best_fit.h"

#include <stdbool.h>

enum { CM_STORAGE_KINDS = 4 };

struct cm_storage {
    size_t offset, size;
    int live; /* slots that are in it; 0: given back */
    int kind;
};

struct cm_storages {
    struct cm_arena *arena;
    CM_ARRAY(struct cm_storage) all;
    struct cm_gaps gaps;
    size_t peak;
    /* For those who want to know what the bytes are for: the kind of what is made now, bytes of
     * each kind in use, and the most there ever were. */
    int kind;
    size_t used[CM_STORAGE_KINDS], most[CM_STORAGE_KINDS];
    bool too_large; /* more was taken than can be counted; offsets mean nothing any more */
};

/* Bytes that nothing alive uses; size 0 takes none. */
size_t cm_storage_take(struct cm_storages *storages, size_t size);
void cm_storage_give_back(struct cm_storages *storages, size_t offset, size_t size);

/* The same as a numbered storage with one slot in it. */
int cm_storage_new(struct cm_storages *storages, size_t size);
/* What is made now takes it over: it is of that kind from here on. */
void cm_storage_adopt(struct cm_storages *storages, int number);
/* One slot less; gives the bytes back with the last. */
void cm_storage_leave(struct cm_storages *storages, int number);

#endif
