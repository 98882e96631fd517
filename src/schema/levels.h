/* The level of every operator, from data/levels.list: core operators are what a backend has to
 * implement; all others have a body of operators below them. docs/core-operators.md has the table
 * with the reasons. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_SCHEMA_LEVELS_H
#define CM_SCHEMA_LEVELS_H

#include "base/text.h"

enum cm_level {
    CM_LEVEL_NONE,     /* not in the table: an operator that a user has registered */
    CM_LEVEL_CORE,     /* must have a kernel */
    CM_LEVEL_FUNCTION, /* has a body over lower levels */
    CM_LEVEL_FUSED,    /* ours, for speed; has such a body too */
};

struct cm_level_row {
    const char *domain, *name;
    enum cm_level level;
};

/* Sorted by name, then by domain. Generated. */
extern const struct cm_level_row cm_levels[];
extern const size_t cm_level_count;

enum cm_level cm_level_of(struct cm_str domain, struct cm_str name);

#endif
