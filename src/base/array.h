/* A growable array. CM_ARRAY(type) declares its three members: give it a name for a member of its
 * own, or none to make the struct around it an array. CM_PUSH in base/arena.h adds an item. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_ARRAY_H
#define CM_BASE_ARRAY_H

#include <stddef.h>

#define CM_ARRAY(type)                                                                             \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }

#endif
