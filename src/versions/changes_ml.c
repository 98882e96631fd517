/* How the operators of ai.onnx.ml changed. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* Version 1 numbers a list of strings and works in whichever direction its input asks for. */
static enum cm_status label_encoder_2_up(struct cm_upgrade *up)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    const size_t count = cm_node_strs(&up->node, "classes_strings").count;
    const bool from_text = cm_upgrade_type(up, 0)->dtype == CM_STRING;
    int64_t *numbers = CM_NEW_ARRAY(arena, int64_t, count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (int64_t)i;
    cm_upgrade_rename(up, "classes_strings", from_text ? "keys_strings" : "values_strings");
    cm_upgrade_set(
        up, cm_attr_ints(arena, from_text ? "values_int64s" : "keys_int64s", count, numbers));
    return CM_OK;
}

/* Version 1 numbers a list of strings, from 0 on. */
static enum cm_status label_encoder_2_down(struct cm_upgrade *down)
{
    static const char *const pairs[][2] = {{"keys_strings", "values_int64s"},
                                           {"values_strings", "keys_int64s"}};
    for (size_t p = 0; p < CM_COUNT(pairs); p++) {
        const struct cm_int64s numbers = cm_node_ints(&down->node, pairs[p][1]);
        bool counted = cm_upgrade_given(down, pairs[p][0]) && cm_upgrade_given(down, pairs[p][1]);
        for (size_t i = 0; counted && i < numbers.count; i++)
            counted = numbers.items[i] == (int64_t)i;
        if (!counted)
            continue;
        cm_upgrade_drop(down, pairs[p][1]);
        cm_upgrade_rename(down, pairs[p][0], "classes_strings");
        return CM_OK;
    }
    return cm_upgrade_fail(down, CM_UNSUPPORTED,
                           "LabelEncoder version 1 numbers a list of strings from 0 on, and does "
                           "nothing else");
}

static const struct cm_version_row rows[] = {
    {"LabelEncoder", 2, .up = label_encoder_2_up,
     .up_note = "keys and values, not a list that is numbered", .down = label_encoder_2_down,
     .down_note = "a list that is numbered"},
};
const struct cm_version_table cm_changes_ml = CM_VERSION_TABLE("ai.onnx.ml", rows);
