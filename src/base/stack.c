/* Asking for the stack of a thread. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/stack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

static _Thread_local struct {
    bool known;
    uintptr_t low, high; /* 0 and 0 if the system does not tell */
} bounds;

static void ask(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;

    bounds.known = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        bounds.low = (uintptr_t)low;
        bounds.high = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

size_t cm_stack_left(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!bounds.known)
        ask();
    return here > bounds.low && here <= bounds.high ? here - bounds.low : SIZE_MAX;
}
