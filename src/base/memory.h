/* The only door to malloc. Every allocation of the library passes here, so that tests can make each
 * one fail in turn and arenas can be counted. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_MEMORY_H
#define CM_BASE_MEMORY_H

#include "base/compiler.h"

#include <stdbool.h>

void *cm_malloc(size_t size); /* NULL when there is none */
void *cm_calloc(size_t count, size_t size);
void *cm_realloc(void *memory, size_t size);
/* Allocations that this thread asked for and did not get, so far. Absurd sizes do not count. */
uint64_t cm_memory_refused(void);
void cm_memory_note_refused(void); /* one that was asked for elsewhere */
/* Freed with cm_free. From 2 MiB on it lies on large pages where the system has them: they take
 * fewer faults to get, and a run through them does not spend its time translating addresses. */
void *cm_malloc_aligned(size_t alignment, size_t size);
/* The same on pages of the usual size. A large page is cheap to get only where the system has one
 * at hand: virtual machines that give free memory back to their host take ten times as long. */
void *cm_malloc_on_pages(size_t alignment, size_t size);
void cm_free(void *memory);
/* From now on what lies at address stays there until the process ends: cm_free and unmapping leave
 * the block that holds it alone. For memory that somebody outside refers to and should not. */
void cm_memory_pin(const void *address);
bool cm_memory_is_pinned(const void *memory, size_t size); /* any of these bytes? */
/* Could so many bytes be had now? Asks the system for them and gives them back at once. For those
 * about to call a library that ends the process when memory runs out. */
bool cm_memory_is_left(size_t size);
/* Has the system give fresh memory its pages now, all at once: what will be written soon, from one
 * end to the other, then costs a fraction of the faults. A wish, no more. */
void cm_memory_populate(void *memory, size_t size);

/* For tests: the nth allocation from now (1 is the next) and all after it fail. 0 turns that off,
 * and cm_memory_refused() forgets the failures of the calling thread since then. */
void cm_memory_fail_after(uint64_t n);
/* Allocations since the process began. */
uint64_t cm_memory_count(void);

#endif
