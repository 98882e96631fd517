/* Settings of a training as items, which print as JSON, and back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_SAVED_ITEM_H
#define CM_CONVERT_SAVED_ITEM_H

#include "convert/saved.h"

/* Words for enumerations: "adam", "torch", "global". NULL: no such number; -1: no such word. */
const char *cm_rule_name(enum cm_update_rule rule);
const char *cm_arithmetic_name(enum cm_arithmetic arithmetic);
const char *cm_clip_name(enum cm_clip_kind kind);
const char *cm_role_name(enum cm_saved_role role);
int cm_rule_named(struct cm_str word);
int cm_arithmetic_named(struct cm_str word);
int cm_clip_named(struct cm_str word);
int cm_role_named(struct cm_str word);

/* {"lr": 0.1, ..}: what is known. */
struct cm_item *cm_group_item(struct cm_arena *arena, const struct cm_plan_group *group);
/* Sets what item has; keys that are none are left for the caller. Refuses numbers that are none. */
enum cm_status cm_group_from_item(const struct cm_item *item, struct cm_plan_group *group,
                                  struct cm_error *err) CM_MUST_CHECK;
/* What a framework calls settings of a group, and taking those that a configuration has. */
struct cm_setting_word {
    const char *key, *setting;
};
void cm_group_take(struct cm_plan_group *group, const struct cm_item *config,
                   const struct cm_setting_word *words, size_t count);
/* {"offset": 0, "phases": [{"shape": "cosine", "first": 0, "length": 100, "from": [..], "to":
 * [..]}]} */
struct cm_item *cm_schedule_item(struct cm_arena *arena, const struct cm_rate_schedule *schedule,
                                 size_t n_groups);
enum cm_status cm_schedule_from_item(struct cm_arena *arena, const struct cm_item *item,
                                     size_t n_groups, struct cm_rate_schedule *out,
                                     struct cm_error *err) CM_MUST_CHECK;

/* A number as people write it: 1e-7. */
void cm_print_setting(char *out, size_t size, double value);

#endif
