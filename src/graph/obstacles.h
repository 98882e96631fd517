/* What stands in the way of running a model: every reason with its place, in one list, so that the
 * user is told all of it at once. The list holds the first CM_OBSTACLES_MAX and counts the rest; a
 * reason that comes up twice at one place counts once. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_OBSTACLES_H
#define CM_GRAPH_OBSTACLES_H

#include "base/map.h"
#include "base/status.h"

enum { CM_OBSTACLES_MAX = 10000 };

struct cm_obstacle {
    enum cm_status status;
    struct cm_str place, reason; /* the place may be empty; both end with NUL */
};

struct cm_obstacles {
    struct cm_arena *arena; /* items and their texts live here */
    struct cm_obstacle *items;
    size_t count, room;
    size_t total; /* with those past the limit */
    struct cm_map seen;
};

void cm_obstacles_add(struct cm_obstacles *list, enum cm_status status, struct cm_str place,
                      const char *reason);

/* CM_OK when there is none; else the status of the first, with as many of them in the message as
 * there is room for. */
enum cm_status cm_obstacles_fail(const struct cm_obstacles *list,
                                 struct cm_error *err) CM_MUST_CHECK;

#endif
