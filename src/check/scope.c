/* Names that are visible at one point of a model. One map serves all enclosing graphs: a definition
 * remembers the one it hides, and leaving a graph takes its definitions back, so a lookup costs the
 * same at any depth. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"

size_t cm_scope_enter(struct cm_scope *scope)
{
    scope->depth++;
    return scope->count;
}

void cm_scope_leave(struct cm_scope *scope, size_t mark)
{
    while (scope->count > mark) {
        const struct cm_def *def = &scope->items[--scope->count];
        uint64_t *slot = cm_map_find(&scope->map, def->name);

        if (slot)
            *slot = def->hidden;
    }
    scope->depth--;
}

struct cm_def *cm_scope_find(const struct cm_scope *scope, struct cm_str name)
{
    const uint64_t index = cm_map_get(&scope->map, name, 0);

    return index ? &scope->items[index - 1] : NULL;
}

struct cm_def *cm_scope_find_here(const struct cm_scope *scope, struct cm_str name)
{
    struct cm_def *def = cm_scope_find(scope, name);

    return def && def->depth == scope->depth ? def : NULL;
}

struct cm_def *cm_scope_add(struct cm_checker *c, struct cm_str name, unsigned kind)
{
    struct cm_scope *scope = c->scope;
    uint64_t *slot = cm_map_insert(&scope->map, c->scratch, name, NULL);

    if (*slot && scope->items[*slot - 1].depth == scope->depth) {
        scope->items[*slot - 1].kind |= kind;
        return &scope->items[*slot - 1];
    }
    struct cm_def *def = CM_PUSH(c->scratch, scope);
    *def =
        (struct cm_def){.name = name, .hidden = (size_t)*slot, .depth = scope->depth, .kind = kind};
    *slot = scope->count;
    return def;
}
