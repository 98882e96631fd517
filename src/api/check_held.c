/* Checking what a model holds of its training beside training_info: modes of nodes, metadata. */
// SPDX-License-Identifier: Apache-2.0
#include "api/checking.h"

#include "check/check.h"
#include "convert/transfer/hold.h"
#include "models/inference_modes.h"

struct problems {
    struct cm_arena *arena;
    struct cm_inferred *items;
    size_t count, capacity;
};

static void add(void *arg, const void *subject, struct cm_str reason)
{
    struct problems *list = arg;

    *CM_PUSH(list->arena, list) =
        (struct cm_inferred){.kind = CM_INFERRED_HELD, .subject = subject, .reason = reason};
}

void cm_api_check_modes(const struct cm_model_file *file, unsigned flags, struct cm_arena *arena,
                        struct cm_findings *findings)
{
    struct cm_modes modes;

    cm_modes_find(arena, file, &modes);
    struct cm_inferred *items = CM_NEW_ARRAY(arena, struct cm_inferred, modes.nodes.count);
    for (size_t i = 0; i < modes.nodes.count; i++)
        items[i] = (struct cm_inferred){.kind = CM_INFERRED_MODE,
                                        .subject = modes.nodes.items[i],
                                        .reason = CM_STR("the node is in training mode")};
    if (modes.nodes.count)
        cm_check_add_inferred(&file->model, flags, items, modes.nodes.count, arena, findings);
}

void cm_api_check_held(const struct cm_model_file *file, unsigned flags, struct cm_arena *arena,
                       struct cm_findings *findings)
{
    struct problems list = {.arena = arena};

    cm_hold_check(arena, file, add, &list);
    if (list.count)
        cm_check_add_inferred(&file->model, flags, list.items, list.count, arena, findings);
}
