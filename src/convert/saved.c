/* A training that another framework saved: making one. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved.h"

#include <stdarg.h>

struct cm_saved *cm_saved_new(struct cm_arena *arena, struct cm_str path)
{
    struct cm_saved *saved = CM_NEW(arena, struct cm_saved);

    *saved = (struct cm_saved){.arena = arena,
                               .path = path,
                               .clip = {.limit = NAN},
                               .step = -1,
                               .epoch = -1,
                               .loss_scale = NAN,
                               .schedule_known = CM_SCHEDULE_NONE};
    return saved;
}

struct cm_saved_entry *cm_saved_add(struct cm_saved *saved, enum cm_saved_role role,
                                    struct cm_str name, struct cm_saved_tensor *tensor)
{
    struct cm_saved_entry *entry = CM_PUSH(saved->arena, &saved->entries);

    *entry = (struct cm_saved_entry){.role = role, .name = name, .tensor = tensor};
    tensor->home = &saved->mapped;
    return entry;
}

struct cm_saved_entry *cm_saved_add_slot(struct cm_saved *saved, struct cm_str weight,
                                         struct cm_str slot, const char *meaning,
                                         struct cm_saved_tensor *tensor)
{
    struct cm_saved_entry *entry = cm_saved_add(saved, CM_SAVED_SLOT, weight, tensor);

    entry->slot = slot;
    entry->meaning = meaning;
    return entry;
}

struct cm_saved_group *cm_saved_add_group(struct cm_saved *saved)
{
    struct cm_saved_group *group = CM_PUSH(saved->arena, &saved->groups);

    *group = (struct cm_saved_group){.settings = CM_PLAN_GROUP};
    return group;
}

void cm_saved_tell(struct cm_saved *saved, const char *key, const struct cm_item *value)
{
    *CM_PUSH(saved->arena, &saved->facts) =
        (struct cm_saved_fact){cm_arena_str(saved->arena, cm_str(key)), value};
}

static void say(struct cm_arena *arena, struct cm_saved_texts *texts, const char *format,
                va_list args)
{
    char text[CM_ERROR_SIZE];

    vsnprintf(text, sizeof text, format, args);
    *CM_PUSH(arena, texts) = cm_arena_str(arena, cm_str(text));
}

const struct cm_item *cm_saved_fact(const struct cm_saved *saved, const char *key)
{
    for (size_t i = 0; i < saved->facts.count; i++)
        if (cm_str_is(saved->facts.items[i].key, key))
            return saved->facts.items[i].value;
    return NULL;
}

void cm_saved_note(struct cm_arena *arena, struct cm_saved_texts *texts, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(arena, texts, format, args);
    va_end(args);
}

void cm_saved_unknown(struct cm_saved *saved, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(saved->arena, &saved->unknown, format, args);
    va_end(args);
}

void cm_saved_missing(struct cm_saved *saved, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(saved->arena, &saved->missing, format, args);
    va_end(args);
}

bool cm_saved_has_slot(const struct cm_saved *saved, const char *meaning)
{
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];

        if (entry->role == CM_SAVED_SLOT && entry->meaning &&
            (!meaning || strcmp(entry->meaning, meaning) == 0))
            return true;
    }
    return false;
}

/* ---- by name ---- */

static struct cm_str index_key(struct cm_arena *arena, const char *kind, struct cm_str name)
{
    return cm_arena_printf(arena, "%s %.*s", kind, CM_STR_ALL(name));
}

struct cm_saved_index cm_saved_index(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_saved_index index = {.arena = arena, .saved = saved};

    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];
        const char *kind = entry->role == CM_SAVED_SLOT      ? entry->meaning
                           : entry->role == CM_SAVED_AVERAGE ? "average"
                                                             : "";
        if (!kind)
            continue;
        uint64_t *found =
            cm_map_insert(&index.map, arena, index_key(arena, kind, entry->name), NULL);
        if (!*found || entry->role == CM_SAVED_MASTER)
            *found = i + 1;
    }
    return index;
}

const struct cm_saved_entry *cm_saved_entry(const struct cm_saved_index *index, const char *kind,
                                            struct cm_str name)
{
    const uint64_t found = cm_map_get(&index->map, index_key(index->arena, kind, name), 0);

    return found ? &index->saved->entries.items[found - 1] : NULL;
}

const struct cm_saved_tensor *cm_saved_tensor_of(const struct cm_saved_index *index,
                                                 const char *kind, struct cm_str name)
{
    const struct cm_saved_entry *entry = cm_saved_entry(index, kind, name);

    return entry ? entry->tensor : NULL;
}
