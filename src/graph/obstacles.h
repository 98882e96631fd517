/* What stands in the way of running a model: every reason with its place, in one list, so that the
 * user is told all of it at once. The list holds the first CM_OBSTACLES_MAX and counts the rest; a
 * reason that comes up twice at one place counts once. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_OBSTACLES_H
#define CM_GRAPH_OBSTACLES_H

#include "base/map.h"
#include "base/status.h"

enum { CM_OBSTACLES_MAX = 10000 };

enum cm_obstacle_kind {
    CM_OBSTACLE_RULE,     /* an inference rule refuses, or nobody knows how to go on */
    CM_OBSTACLE_TYPE,     /* a type that the operator does not allow in its version */
    CM_OBSTACLE_DECLARED, /* a type that the file declares is not the one that is inferred */
};

struct cm_obstacle {
    enum cm_status status;
    struct cm_str place, reason; /* the place may be empty; both end with NUL */
    enum cm_obstacle_kind kind;
    const void *subject; /* the message it is about, a node, tensor or value info; or NULL */
};

struct cm_obstacles {
    struct cm_arena *arena; /* items and their texts live here */
    struct cm_obstacle *items;
    size_t count, room;
    size_t total; /* with those past the limit */
    struct cm_map seen;
};

/* The new item, whose kind and subject are the caller's to set; NULL: it is there already, or does
 * not fit. */
struct cm_obstacle *cm_obstacles_add(struct cm_obstacles *list, enum cm_status status,
                                     struct cm_str place, const char *reason);

/* CM_OK when there is none; else the status of the first, with as many of them in the message as
 * there is room for. */
enum cm_status cm_obstacles_fail(const struct cm_obstacles *list,
                                 struct cm_error *err) CM_MUST_CHECK;
/* The same for what is to be done with it other than running: "the model cannot be compiled". */
enum cm_status cm_obstacles_fail_as(const struct cm_obstacles *list, const char *what,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif
