/* Settings of a training in an Orbax folder that Cameo wrote. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/orbax.h"
#include "convert/saved_item.h"
#include "train/rules.h"

static const char our_key[] = "ai.cameo.training";

const struct cm_item *cm_orbax_settings(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *custom = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *settings = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *groups = cm_item_new(arena, CM_ITEM_LIST);

    const bool same = saved->arithmetic == CM_LIKE_OPTAX ||
                      (saved->arithmetic == CM_LIKE_TORCH &&
                       !cm_optimizer_epsilon_differs(saved->rule, CM_LIKE_TORCH, CM_LIKE_OPTAX));

    if (!saved->has_optimizer || !same)
        return NULL; /* optax would go on in another arithmetic */
    for (size_t g = 0; g < saved->groups.count; g++)
        cm_item_append(arena, groups, cm_group_item(arena, &saved->groups.items[g].settings));
    cm_item_put(arena, settings, "groups", groups);
    if (!isnan(saved->clip.limit))
        cm_item_put(arena, settings, "clip_norm", cm_item_real(arena, saved->clip.limit));
    if (saved->schedule_known == CM_SCHEDULE_KNOWN)
        cm_item_put(arena, settings, "schedule",
                    cm_schedule_item(arena, &saved->schedule, saved->groups.count));
    cm_item_put(arena, settings, "schedule_known", cm_item_int(arena, saved->schedule_known));
    cm_item_put(arena, custom, our_key, settings);
    return custom;
}

enum cm_status cm_orbax_take_settings(struct cm_saved *saved, struct cm_error *err)
{
    const struct cm_item *settings = cm_item_get(cm_saved_fact(saved, CM_ORBAX_CUSTOM), our_key);
    const struct cm_item *groups = cm_item_get(settings, "groups");
    const struct cm_item *schedule = cm_item_get(settings, "schedule");
    int64_t known = CM_SCHEDULE_UNKNOWN;

    if (!settings || !saved->has_optimizer || cm_item_count(groups) != saved->groups.count)
        return CM_OK;
    for (size_t g = 0; g < saved->groups.count; g++)
        CM_TRY(cm_error_context(
            err, cm_group_from_item(cm_item_at(groups, g), &saved->groups.items[g].settings, err),
            "custom_metadata"));
    if (schedule)
        CM_TRY(cm_error_context(err,
                                cm_schedule_from_item(saved->arena, schedule, saved->groups.count,
                                                      &saved->schedule, err),
                                "custom_metadata"));
    (void)cm_item_is_int(cm_item_get(settings, "schedule_known"), &known);
    if (known == CM_SCHEDULE_NONE || (known == CM_SCHEDULE_KNOWN && schedule))
        saved->schedule_known = (enum cm_schedule_known)known;
    saved->clip.limit = cm_item_get_real(settings, "clip_norm", saved->clip.limit);
    if (saved->schedule_known != CM_SCHEDULE_UNKNOWN)
        saved->missing.count = 0;
    return CM_OK;
}
