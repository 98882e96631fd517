/* What PyTorch's dictionaries have no place for. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/torch_own.h"

#include "convert/saved_item.h"

const struct cm_item *cm_torch_own_item(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);

    if (!saved->has_optimizer)
        return NULL;
    if (saved->schedule_known == CM_SCHEDULE_KNOWN && saved->schedule.count) {
        cm_item_put(arena, item, "schedule",
                    cm_schedule_item(arena, &saved->schedule, saved->groups.count));
        cm_item_put(arena, item, "schedule_name", cm_item_text(arena, saved->schedule_name));
    }
    if (!isnan(saved->clip.limit)) {
        struct cm_item *clip = cm_item_new(arena, CM_ITEM_MAP);
        cm_item_put(arena, clip, "kind",
                    cm_item_text(arena, cm_str(cm_clip_name(saved->clip.kind))));
        cm_item_put(arena, clip, "limit", cm_item_real(arena, saved->clip.limit));
        cm_item_put(arena, item, "clip", clip);
    }
    if (saved->accumulate > 0)
        cm_item_put(arena, item, "accumulate", cm_item_int(arena, saved->accumulate));
    return item->entries.count ? item : NULL;
}

static void drop_missing(struct cm_saved *saved, const char *start)
{
    size_t kept = 0;

    for (size_t i = 0; i < saved->missing.count; i++)
        if (!cm_str_starts(saved->missing.items[i], start))
            saved->missing.items[kept++] = saved->missing.items[i];
    saved->missing.count = kept;
}

enum cm_status cm_torch_take_own(struct cm_saved *saved, const struct cm_item *tree,
                                 struct cm_error *err)
{
    const struct cm_item *item = cm_item_get(tree, CM_TORCH_OWN_KEY);
    const struct cm_item *schedule = cm_item_get(item, "schedule");
    const struct cm_item *clip = cm_item_get(item, "clip");
    struct cm_str kind;
    size_t kept = 0;

    if (!item || item->kind != CM_ITEM_MAP || !saved->has_optimizer)
        return CM_OK;
    for (size_t i = 0; i < saved->facts.count; i++) /* it is no fact of somebody else */
        if (!cm_str_starts(saved->facts.items[i].key, CM_TORCH_OWN_KEY))
            saved->facts.items[kept++] = saved->facts.items[i];
    saved->facts.count = kept;
    if (schedule) {
        CM_TRY(cm_error_context(err,
                                cm_schedule_from_item(saved->arena, schedule, saved->groups.count,
                                                      &saved->schedule, err),
                                CM_TORCH_OWN_KEY));
        saved->schedule_known = CM_SCHEDULE_KNOWN;
        (void)cm_item_is_text(cm_item_get(item, "schedule_name"), &saved->schedule_name);
        drop_missing(saved, "how the learning rate goes on");
    }
    if (cm_item_is_text(cm_item_get(clip, "kind"), &kind) && cm_clip_named(kind) >= 0)
        saved->clip =
            (struct cm_plan_clip){(enum cm_clip_kind)cm_clip_named(kind),
                                  cm_item_real_or(cm_item_get(clip, "limit"), saved->clip.limit)};
    (void)cm_item_is_int(cm_item_get(item, "accumulate"), &saved->accumulate);
    return saved->accumulate >= 0
               ? CM_OK
               : cm_fail(err, CM_BAD_MODEL, CM_TORCH_OWN_KEY ": 'accumulate' is less than 0");
}
