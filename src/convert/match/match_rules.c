/* The user's rules for names: a text file, one rule to a line. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

#include <regex.h>

enum { GROUPS_MAX = 10, RULES_MAX = 10000 };

static void problem(struct cm_matching *m, size_t line, const char *what)
{
    cm_findings_add(&m->problems, CM_UNSUPPORTED, CM_STR_NONE, "--map, line %zu: %s", line, what);
}

static struct cm_str trim(struct cm_str text)
{
    while (text.size && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = cm_str_from(text, 1);
    while (text.size && strchr(" \t\r", text.data[text.size - 1]))
        text.size--;
    return text;
}

/* One initializer, one tensor. */
static void apply_pair(struct cm_matching *m, size_t line, struct cm_str name, struct cm_str source)
{
    struct cm_match_target *target = cm_match_find_target(m, name);
    struct cm_match_source *found = cm_match_find_source(m, source);

    if (!target)
        problem(m, line,
                cm_arena_printf(m->arena, "the model has no initializer '%.*s'", CM_STR_FMT(name))
                    .data);
    else if (!found)
        problem(m, line,
                cm_arena_printf(m->arena, "the checkpoint has no weight '%.*s'", CM_STR_FMT(source))
                    .data);
    else if (!target->parts.count && !cm_match_accept(m, target, found, "by --map"))
        problem(m, line, cm_arena_printf(m->arena, "%.*s", CM_STR_FMT(target->misfit)).data);
}

/* The replacement with \1 .. \9 filled in, between what is before and behind the place that
 * matched. */
static struct cm_str replaced(struct cm_arena *arena, struct cm_str name, const regmatch_t *groups,
                              struct cm_str by)
{
    struct cm_str out = cm_arena_printf(arena, "%.*s", (int)groups[0].rm_so, name.data);

    for (size_t i = 0; i < by.size; i++) {
        const bool escaped = by.data[i] == '\\' && i + 1 < by.size;
        const char c = escaped ? by.data[++i] : by.data[i];
        const regmatch_t *group = escaped && c >= '0' && c <= '9' ? &groups[c - '0'] : NULL;

        if (!group)
            out = cm_arena_printf(arena, "%s%c", cm_str_text(out), c);
        else if (group->rm_so >= 0)
            out = cm_arena_printf(arena, "%s%.*s", cm_str_text(out),
                                  (int)(group->rm_eo - group->rm_so), name.data + group->rm_so);
    }
    return cm_arena_printf(arena, "%s%s", cm_str_text(out), cm_str_text(name) + groups[0].rm_eo);
}

static void free_pattern(void *what)
{
    regfree(what);
}

/* Every initializer whose name the expression matches. */
static void apply_pattern(struct cm_matching *m, size_t line, struct cm_str pattern,
                          struct cm_str by)
{
    regex_t *compiled = CM_NEW(m->arena, regex_t);
    regmatch_t groups[GROUPS_MAX];
    char why[200];
    const int code = regcomp(compiled, cm_arena_str(m->arena, pattern).data, REG_EXTENDED);

    if (code) {
        regerror(code, compiled, why, sizeof why);
        problem(m, line,
                cm_arena_printf(m->arena, "'%.*s' is not a regular expression: %s",
                                CM_STR_FMT(pattern), why)
                    .data);
        return;
    }
    cm_arena_defer(m->arena, free_pattern, compiled);
    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];
        const struct cm_str name = cm_arena_str(m->arena, target->name);

        if (target->parts.count || regexec(compiled, cm_str_text(name), GROUPS_MAX, groups, 0) != 0)
            continue;
        struct cm_match_source *source =
            cm_match_find_source(m, replaced(m->arena, name, groups, by));
        if (source)
            (void)cm_match_accept(m, target, source, "by --map");
    }
}

void cm_match_by_rules(struct cm_matching *m, struct cm_str map)
{
    size_t number = 0;

    for (size_t begin = 0; begin < map.size; number++) {
        size_t end = begin;

        while (end < map.size && map.data[end] != '\n')
            end++;
        const struct cm_str line = trim((struct cm_str){map.data + begin, end - begin});
        begin = end + 1;
        if (!line.size || line.data[0] == '#')
            continue;
        if (number == RULES_MAX) {
            problem(m, number + 1, "too many rules");
            return;
        }
        size_t equals = 0; /* the last " = ": names may hold '=' */
        for (size_t i = 1; i + 1 < line.size; i++)
            if (line.data[i] == '=' && line.data[i - 1] == ' ' && line.data[i + 1] == ' ')
                equals = i;
        const struct cm_str left = trim((struct cm_str){line.data, equals});
        const struct cm_str right = trim(cm_str_from(line, equals + 1));
        if (!equals || !left.size || !right.size)
            problem(m, number + 1, "expected 'INITIALIZER = NAME' or '/REGEX/ = REPLACEMENT'");
        else if (left.size > 2 && left.data[0] == '/' && left.data[left.size - 1] == '/')
            apply_pattern(m, number + 1, (struct cm_str){left.data + 1, left.size - 2}, right);
        else
            apply_pair(m, number + 1, left, right);
    }
}
