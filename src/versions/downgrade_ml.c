/* Older forms of the operators of ai.onnx.ml. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

/* Version 1 numbers a list of strings, from 0 on. */
static enum cm_status label_encoder_2(struct cm_upgrade *down)
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

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"LabelEncoder", 2, label_encoder_2, "a list that is numbered"},
};
/* clang-format on */
const struct cm_upgrade_table cm_downgrade_ml = CM_UPGRADE_TABLE("ai.onnx.ml", rows);
