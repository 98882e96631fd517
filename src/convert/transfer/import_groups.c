/* Groups of weights as the user gives them: settings, and which weights are in which. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_item.h"
#include "convert/transfer/import_parts.h"

static const char *const group_keys[] = {"names", "betas", "eps"};

static bool is_group_key(struct cm_str key)
{
    for (size_t i = 0; i < cm_group_field_count; i++)
        if (cm_str_is(key, cm_group_fields[i].name))
            return true;
    return cm_str_is(key, "betas") || cm_str_is(key, "eps");
}

void cm_import_check_keys(struct cm_importing *in, const struct cm_item *map,
                          const char *const *keys, size_t count)
{
    for (size_t i = 0; i < map->entries.count; i++) {
        struct cm_str key;

        if (cm_item_is_text(map->entries.items[i].key, &key) &&
            cm_str_place(key, keys, count) < 0 && !is_group_key(key))
            cm_import_block(in, "--set: there is no setting '%.*s'", CM_STR_FMT(key));
    }
}

/* Settings of one group, or of all. */
void cm_import_set_group(struct cm_importing *in, const struct cm_item *from,
                         struct cm_plan_group *group)
{
    struct cm_error why;
    const struct cm_item *betas = cm_item_get(from, "betas"), *eps = cm_item_get(from, "eps");

    if (cm_group_from_item(from, group, &why))
        cm_import_block(in, "--set: %s", why.text);
    if (betas && !(cm_item_is_real(cm_item_at(betas, 0), &group->beta1) &&
                   cm_item_is_real(cm_item_at(betas, 1), &group->beta2)))
        cm_import_block(in, "--set: betas must be two numbers");
    if (eps && !cm_item_is_real(eps, &group->epsilon))
        cm_import_block(in, "--set: eps must be a number");
}

/* The group that has a name, or NULL. */
static struct cm_saved_group *group_of(struct cm_saved *saved, struct cm_str name)
{
    for (size_t g = 0; g < saved->groups.count; g++)
        for (size_t i = 0; i < saved->groups.items[g].names.count; i++)
            if (cm_str_equal(saved->groups.items[g].names.items[i], name))
                return &saved->groups.items[g];
    return NULL;
}

/* Takes names out of the groups that the checkpoint has. */
static void take_names(struct cm_saved *saved, const struct cm_map *taken)
{
    for (size_t g = 0; g < saved->groups.count; g++) {
        struct cm_saved_group *group = &saved->groups.items[g];
        size_t kept = 0;

        for (size_t i = 0; i < group->names.count; i++)
            if (!cm_map_find(taken, group->names.items[i]))
                group->names.items[kept++] = group->names.items[i];
        group->names.count = kept;
    }
}

/* The new group begins with what the old one of its weights had, rates of the schedule too. */
static struct cm_saved_group *begin_group(struct cm_importing *in, struct cm_saved *old,
                                          const struct cm_item *names, size_t number, size_t *from)
{
    struct cm_saved *saved = in->saved;
    struct cm_saved_group *same = group_of(old, cm_item_text_or_none(cm_item_at(names, 0)));

    if (!same && old->groups.count)
        same = &old->groups.items[number < old->groups.count ? number : 0];
    struct cm_saved_group *group = cm_saved_add_group(saved);
    if (same)
        group->settings = same->settings;
    *from = same ? (size_t)(same - old->groups.items) : 0;
    return group;
}

/* Rates of the schedule for the new groups. */
static void reorder_phases(struct cm_importing *in, const size_t *from)
{
    struct cm_saved *saved = in->saved;
    const size_t count = saved->groups.count;

    for (size_t p = 0; p < saved->schedule.count; p++) {
        struct cm_phase *phase = &saved->schedule.items[p];
        const double **const lists[] = {&phase->from, &phase->to};

        for (size_t l = 0; l < 2; l++) {
            double *list = CM_NEW_ARRAY(in->arena, double, count);

            for (size_t g = 0; *lists[l] && g < count; g++)
                list[g] = (*lists[l])[from[g]];
            if (*lists[l])
                *lists[l] = list;
        }
        if (phase->shape == CM_PHASE_TABLE)
            cm_import_block(in, "--set: groups cannot be changed where the schedule is a table; "
                                "give 'rates'");
    }
}

static void add_names(struct cm_importing *in, struct cm_saved_group *group,
                      const struct cm_item *names, struct cm_map *taken)
{
    for (size_t i = 0; i < cm_item_count(names); i++) {
        struct cm_str name;
        bool added = true;

        if (!cm_item_is_text(cm_item_at(names, i), &name)) {
            cm_import_block(in, "--set: names of weights must be texts");
            return;
        }
        (void)cm_map_insert(taken, in->arena, name, &added);
        if (!added)
            cm_import_block(in, "--set: '%.*s' is in two groups", CM_STR_FMT(name));
        *CM_PUSH(in->arena, &group->names) = name;
    }
}

/* Groups with names are new ones, before what is left of the old ones. */
static void regroup(struct cm_importing *in, const struct cm_item *groups, bool *given)
{
    struct cm_saved *saved = in->saved;
    struct cm_saved old = *saved;
    struct cm_map taken = {0};
    size_t *from = CM_NEW_ARRAY(in->arena, size_t, cm_item_count(groups) + old.groups.count + 1);

    memset(&saved->groups, 0, sizeof saved->groups);
    for (size_t g = 0; g < cm_item_count(groups); g++) {
        const struct cm_item *one = cm_item_at(groups, g), *names = cm_item_get(one, "names");
        struct cm_saved_group *group = begin_group(in, &old, names, g, &from[g]);

        add_names(in, group, names, &taken);
        cm_import_set_group(in, one, &group->settings);
        given[g] = cm_item_get(one, "lr") != NULL;
    }
    take_names(&old, &taken);
    for (size_t g = 0; g < old.groups.count; g++)
        if (old.groups.items[g].names.count) {
            from[saved->groups.count] = g;
            *CM_PUSH(saved->arena, &saved->groups) = old.groups.items[g];
        }
    reorder_phases(in, from);
}

/* A group whose weights have no names yet ("parameter 3") gets them, in order; so does their state.
 */
static void name_parameters(struct cm_importing *in, const struct cm_item *groups)
{
    struct cm_saved *saved = in->saved;
    struct cm_map names = {0}; /* to the new name: number of the group, and in it */

    for (size_t g = 0; g < saved->groups.count; g++) {
        struct cm_saved_group *group = &saved->groups.items[g];
        const struct cm_item *list = cm_item_get(cm_item_at(groups, g), "names");
        bool is_known = cm_item_count(list) != group->names.count;

        for (size_t i = 0; i < group->names.count && !is_known; i++)
            is_known = cm_match_find_source(in->matching, group->names.items[i]) != NULL;
        for (size_t i = 0; i < group->names.count && !is_known; i++) {
            struct cm_str name;

            if (!cm_item_is_text(cm_item_at(list, i), &name))
                continue; /* which is said when the group is made */
            *cm_map_insert(&names, in->arena, group->names.items[i], NULL) = (uint64_t)g << 32 | i;
            group->names.items[i] = name;
        }
    }
    for (size_t i = 0; names.count && i < saved->entries.count; i++) {
        struct cm_saved_entry *entry = &saved->entries.items[i];
        const uint64_t *place =
            entry->role == CM_SAVED_SLOT ? cm_map_find(&names, entry->name) : NULL;

        if (place)
            entry->name = saved->groups.items[*place >> 32].names.items[*place & UINT32_MAX];
    }
}

void cm_import_groups(struct cm_importing *in, const struct cm_item *groups, bool *given)
{
    struct cm_saved *saved = in->saved;
    const size_t count = cm_item_count(groups);
    bool has_names = false;

    for (size_t g = 0; g < count; g++) {
        const struct cm_item *one = cm_item_at(groups, g);

        if (one->kind != CM_ITEM_MAP) {
            cm_import_block(in, "--set: groups must be a list of objects");
            return;
        }
        cm_import_check_keys(in, one, group_keys, CM_COUNT(group_keys));
        has_names = has_names || cm_item_count(cm_item_get(one, "names"));
    }
    if (has_names) {
        name_parameters(in, groups);
        regroup(in, groups, given);
        return;
    }
    if (count != saved->groups.count) {
        cm_import_block(in,
                        "--set has %zu groups without names, the checkpoint has %zu: give the "
                        "names of their weights",
                        count, saved->groups.count);
        return;
    }
    for (size_t g = 0; g < count; g++) {
        cm_import_set_group(in, cm_item_at(groups, g), &saved->groups.items[g].settings);
        given[g] = cm_item_get(cm_item_at(groups, g), "lr") != NULL;
    }
}
