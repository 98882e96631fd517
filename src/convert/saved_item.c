/* Settings of a training as items, and back. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_item.h"

#include "train/rules.h"

#include <stddef.h>

/* ---- words ---- */

static const char *const arithmetics[] = {"torch", "keras", "optax", "onnxruntime"};
static const char *const clips[] = {"global", "global-exact", "each", "value"};
static const char *const phases[] = {"constant", "linear", "cosine", "exponential", "polynomial",
                                     "inverse",  "root",   "log",    "table"};
static const char *const roles[] = {"weight",  "buffer", "master", "slot",
                                    "average", "random", "other"};

#define WORDS(scope, name_of, named, type, list)                                                   \
    scope const char *name_of(type number)                                                         \
    {                                                                                              \
        return (size_t)number < CM_COUNT(list) ? (list)[number] : NULL;                            \
    }                                                                                              \
    scope int named(struct cm_str word)                                                            \
    {                                                                                              \
        for (size_t i = 0; i < CM_COUNT(list); i++)                                                \
            if (cm_str_is(word, (list)[i]))                                                        \
                return (int)i;                                                                     \
        return -1;                                                                                 \
    }
WORDS(extern, cm_arithmetic_name, cm_arithmetic_named, enum cm_arithmetic, arithmetics)
WORDS(extern, cm_clip_name, cm_clip_named, enum cm_clip_kind, clips)
WORDS(static, phase_name, phase_named, enum cm_phase_shape, phases)
WORDS(extern, cm_role_name, cm_role_named, enum cm_saved_role, roles)

const char *cm_rule_name(enum cm_update_rule rule)
{
    return rule < CM_RULES ? cm_optimizer_rules[rule].name : NULL;
}

int cm_rule_named(struct cm_str word)
{
    for (int rule = 0; rule < CM_RULES; rule++)
        if (cm_str_is(word, cm_optimizer_rules[rule].name))
            return rule;
    return -1;
}

/* ---- groups ---- */

/* Steps that a file may speak of: sums of them fit. */
#define COUNT_MAX INT64_C(1000000000000)

static bool is_count(const struct cm_item *item, int64_t least, int64_t *out)
{
    return cm_item_is_int(item, out) && *out >= least && *out <= COUNT_MAX;
}

struct cm_item *cm_group_item(struct cm_arena *arena, const struct cm_plan_group *group)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);

    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_group_field *field = &cm_group_fields[i];
        const double value = cm_group_field_get(group, field);

        if (!isnan(value))
            cm_item_put(arena, item, field->name,
                        field->is_flag ? cm_item_bool(arena, value != 0)
                                       : cm_item_real(arena, value));
    }
    if (group->step_offset)
        cm_item_put(arena, item, "step_offset", cm_item_int(arena, group->step_offset));
    return item;
}

enum cm_status cm_group_from_item(const struct cm_item *item, struct cm_plan_group *group,
                                  struct cm_error *err)
{
    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_item *found = cm_item_get(item, cm_group_fields[i].name);
        double value;

        if (!found || found->kind == CM_ITEM_NONE)
            continue;
        if (!cm_item_is_real(found, &value))
            return cm_fail(err, CM_BAD_MODEL, "'%s' is not a number", cm_group_fields[i].name);
        cm_group_field_set(group, &cm_group_fields[i], value);
    }
    const struct cm_item *offset = cm_item_get(item, "step_offset");
    if (offset && !is_count(offset, -COUNT_MAX, &group->step_offset))
        return cm_fail(err, CM_BAD_MODEL, "'step_offset' is not a whole number of steps");
    return CM_OK;
}

void cm_group_take(struct cm_plan_group *group, const struct cm_item *config,
                   const struct cm_setting_word *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double value = cm_item_get_real(config, words[i].key, NAN);

        if (!isnan(value))
            cm_group_field_set(group, cm_group_field_find(words[i].setting), value);
    }
}

/* ---- schedules ---- */

struct cm_item *cm_schedule_item(struct cm_arena *arena, const struct cm_rate_schedule *schedule,
                                 size_t n_groups)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    cm_item_put(arena, item, "offset", cm_item_int(arena, schedule->offset));
    for (size_t i = 0; i < schedule->count; i++) {
        const struct cm_phase *phase = &schedule->items[i];
        struct cm_item *map = cm_item_new(arena, CM_ITEM_MAP);

        cm_item_put(arena, map, "shape", cm_item_text(arena, cm_str(phase_name(phase->shape))));
        cm_item_put(arena, map, "first", cm_item_int(arena, phase->first));
        if (phase->length != 0)
            cm_item_put(arena, map, "length", cm_item_real(arena, phase->length));
        if (phase->factor != 0)
            cm_item_put(arena, map, "factor", cm_item_real(arena, phase->factor));
        if (phase->is_stepped)
            cm_item_put(arena, map, "stepped", cm_item_bool(arena, true));
        if (phase->swings_back)
            cm_item_put(arena, map, "swings_back", cm_item_bool(arena, true));
        if (phase->from)
            cm_item_put(arena, map, "from", cm_item_reals(arena, phase->from, n_groups));
        if (phase->to)
            cm_item_put(arena, map, "to", cm_item_reals(arena, phase->to, n_groups));
        if (phase->rates)
            cm_item_put(arena, map, "rates",
                        cm_item_reals(arena, phase->rates, phase->n_rates * n_groups));
        cm_item_append(arena, list, map);
    }
    cm_item_put(arena, item, "phases", list);
    return item;
}

static enum cm_status get_reals(struct cm_arena *arena, const struct cm_item *map, const char *key,
                                size_t multiple, const double **out, size_t *count,
                                struct cm_error *err)
{
    const struct cm_item *list = cm_item_get(map, key);

    *count = cm_item_count(list);
    if (!list)
        return CM_OK;
    double *numbers = CM_NEW_ARRAY(arena, double, *count + 1);
    bool fits = list->kind == CM_ITEM_LIST && multiple && *count % multiple == 0 && *count;
    for (size_t i = 0; fits && i < *count; i++)
        fits = cm_item_is_real(list->entries.items[i].value, &numbers[i]);
    *out = numbers;
    *count = fits ? *count / multiple : 0;
    return fits ? CM_OK
                : cm_fail(err, CM_BAD_MODEL, "'%s' is not a list of numbers, one a group (%zu)",
                          key, multiple);
}

static enum cm_status read_phase(struct cm_arena *arena, const struct cm_item *map, size_t n_groups,
                                 struct cm_phase *phase, struct cm_error *err)
{
    const struct cm_str word = cm_item_get_text(map, "shape");
    size_t count;

    const int shape = phase_named(word);
    if (shape < 0)
        return cm_fail(err, CM_BAD_MODEL, "a phase of a schedule has no shape '%.*s'",
                       CM_STR_FMT(word));
    phase->shape = (enum cm_phase_shape)shape;
    if (!is_count(cm_item_get(map, "first"), 0, &phase->first))
        return cm_fail(err, CM_BAD_MODEL, "a phase of a schedule does not say when it begins");
    phase->length = cm_item_get_real(map, "length", 0);
    phase->factor = cm_item_get_real(map, "factor", 0);
    phase->is_stepped = cm_item_get_real(map, "stepped", 0) != 0;
    phase->swings_back = cm_item_get_real(map, "swings_back", 0) != 0;
    CM_TRY(get_reals(arena, map, "from", n_groups, &phase->from, &count, err));
    CM_TRY(get_reals(arena, map, "to", n_groups, &phase->to, &count, err));
    CM_TRY(get_reals(arena, map, "rates", n_groups, &phase->rates, &phase->n_rates, err));
    if (phase->shape == CM_PHASE_TABLE ? !phase->n_rates : !phase->from)
        return cm_fail(err, CM_BAD_MODEL, "a phase of a schedule has no rates");
    return CM_OK;
}

enum cm_status cm_schedule_from_item(struct cm_arena *arena, const struct cm_item *item,
                                     size_t n_groups, struct cm_rate_schedule *out,
                                     struct cm_error *err)
{
    const struct cm_item *list = cm_item_get(item, "phases");
    const size_t count = cm_item_count(list);

    *out = (struct cm_rate_schedule){.items = CM_NEW_ARRAY(arena, struct cm_phase, count + 1),
                                     .count = count,
                                     .capacity = count + 1};
    if (cm_item_get(item, "offset") &&
        !is_count(cm_item_get(item, "offset"), -COUNT_MAX, &out->offset))
        return cm_fail(err, CM_BAD_MODEL,
                       "the offset of a schedule is not a whole number of steps");
    for (size_t i = 0; i < count; i++)
        CM_TRY(read_phase(arena, cm_item_at(list, i), n_groups, &out->items[i], err));
    return CM_OK;
}

void cm_print_setting(char *out, size_t size, double value)
{
    snprintf(out, size, "%g", value);
    char *zero = strstr(out, "e-0");
    if (zero)
        memmove(zero + 2, zero + 3, strlen(zero + 3) + 1);
}
