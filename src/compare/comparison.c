/* Rows of a comparison. */
// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.h"

#include <stdarg.h>

void cm_compare_add(struct cm_comparison *c, enum cm_compare_part part, enum cm_compare_kind kind,
                    struct cm_str name, const struct cm_difference *difference, const char *format,
                    ...)
{
    char text[1600] = ""; /* the longest has three names */
    va_list args;

    va_start(args, format);
    if (format)
        cm_vformat(text, sizeof text, format, args);
    va_end(args);
    struct cm_compare_row row = {.part = part,
                                 .kind = kind,
                                 .name = cm_arena_str(c->arena, name),
                                 .text = cm_arena_str(c->arena, cm_str(text)),
                                 .measured = difference != NULL};
    if (difference)
        row.difference = *difference;
    *CM_PUSH(c->arena, c) = row;
}

struct cm_str cm_compare_node(struct cm_arena *arena, const struct cm_outline_node *node)
{
    const struct cm_node_proto *proto = node->proto;

    if (proto->name.size)
        return cm_arena_printf(arena, "node '%.*s' (%.*s)", CM_STR_FMT(proto->name),
                               CM_STR_FMT(proto->op_type));
    return cm_arena_printf(arena, "node %zu (%.*s)", node->index, CM_STR_FMT(proto->op_type));
}
