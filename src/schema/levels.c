/* Looking up the level of an operator. */
// SPDX-License-Identifier: Apache-2.0
#include "schema/levels.h"

enum cm_level cm_level_of(struct cm_str domain, struct cm_str name)
{
    size_t from = 0, to = cm_level_count;

    if (cm_str_is(domain, "ai.onnx"))
        domain = CM_STR("");
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const struct cm_level_row *row = &cm_levels[middle];
        int difference = cm_str_compare(name, cm_str(row->name));

        if (!difference)
            difference = cm_str_compare(domain, cm_str(row->domain));
        if (!difference)
            return row->level;
        if (difference < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return CM_LEVEL_NONE;
}
