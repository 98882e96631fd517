/* The list of what stands in the way. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/obstacles.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_ROOM = 16 };

struct cm_obstacle *cm_obstacles_add(struct cm_obstacles *list, enum cm_status status,
                                     struct cm_str place, const char *reason)
{
    if (list->count == CM_OBSTACLES_MAX) {
        list->total++;
        return NULL;
    }
    bool added;
    const struct cm_str own = cm_arena_str(list->arena, place);
    cm_map_insert(&list->seen, list->arena, own, &added);
    if (!added &&
        status == CM_UNSUPPORTED) /* it was known not to run; this is why in other words */
        return NULL;
    const struct cm_str key = cm_arena_printf(list->arena, "%s\n%s", cm_str_text(own), reason);
    cm_map_insert(&list->seen, list->arena, key, &added);
    if (!added)
        return NULL;
    if (list->count == list->room) {
        const size_t room = list->room ? list->room * 2 : FIRST_ROOM;
        struct cm_obstacle *grown = CM_NEW_ARRAY(list->arena, struct cm_obstacle, room);
        if (list->count)
            memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->room = room;
    }
    struct cm_obstacle *item = &list->items[list->count++];
    *item = (struct cm_obstacle){status, own, cm_arena_str(list->arena, cm_str(reason)),
                                 CM_OBSTACLE_RULE, NULL};
    list->total++;
    return item;
}

/* One sentence after another while there is room; the number says how many there are in all. */
enum cm_status cm_obstacles_fail_as(const struct cm_obstacles *list, const char *what,
                                    struct cm_error *err)
{
    char text[CM_ERROR_SIZE - 100], more[64] = "";
    size_t used = 0, shown = 0;

    if (list->total == 0)
        return CM_OK;
    for (; shown < list->count; shown++) {
        const struct cm_obstacle *item = &list->items[shown];
        const size_t room = sizeof text - used;
        const int size =
            snprintf(text + used, room, "%s%s%s%s", shown ? "; " : "", cm_str_text(item->place),
                     item->place.size ? ": " : "", cm_str_text(item->reason));
        if (size < 0 || (size_t)size >= room) {
            if (shown) /* half a sentence after whole ones says nothing */
                text[used] = 0;
            else
                shown++;
            break;
        }
        used += (size_t)size;
    }
    if (list->total == 1)
        return cm_fail(err, list->items[0].status, "%s", text);
    if (shown < list->total)
        snprintf(more, sizeof more, "; and %zu more", list->total - shown);
    return cm_fail(err, list->items[0].status, "%s, for %zu reasons: %s%s", what, list->total, text,
                   more);
}

enum cm_status cm_obstacles_fail(const struct cm_obstacles *list, struct cm_error *err)
{
    return cm_obstacles_fail_as(list, "the model cannot run", err);
}
