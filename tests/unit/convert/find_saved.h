/* An entry of what a framework saved. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TEST_FIND_SAVED_H
#define CM_TEST_FIND_SAVED_H

#include "convert/saved.h"

/* By its role (a slot also by its meaning, unless NULL) and name; NULL: there is none. */
static inline const struct cm_saved_entry *find_saved(const struct cm_saved *saved,
                                                      enum cm_saved_role role, struct cm_str name,
                                                      const char *meaning)
{
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];

        if (entry->role == role && cm_str_equal(entry->name, name) &&
            (!meaning || (entry->meaning && strcmp(entry->meaning, meaning) == 0)))
            return entry;
    }
    return NULL;
}

#endif
