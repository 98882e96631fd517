/* Old forms of the operators of ai.onnx.ml. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* Version 1 numbers a list of strings and works in whichever direction its input asks for. */
static enum cm_status label_encoder_2(struct cm_upgrade *up)
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

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"LabelEncoder", 2, label_encoder_2, "keys and values, not a list that is numbered"},
    {"LabelEncoder", 4, NULL, NULL},
    {"TreeEnsembleClassifier", 3, NULL, NULL},
    {"TreeEnsembleClassifier", 5, NULL, NULL}, /* only deprecated by it */
    {"TreeEnsembleRegressor", 3, NULL, NULL},
    {"TreeEnsembleRegressor", 5, NULL, NULL},
};
/* clang-format on */
const struct cm_upgrade_table cm_upgrade_ml = CM_UPGRADE_TABLE("ai.onnx.ml", rows);
