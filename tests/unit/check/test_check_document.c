/* docs/check-rules.md and the table of rules say the same. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/file.h"
#include "check/check.h"

static const char *severity_of(const struct cm_check_rule *rule)
{
    if (rule->severity == CM_VIOLATION)
        return "violation";
    return rule->strict_severity == CM_VIOLATION ? "warning, violation when strict" : "warning";
}

static void release_mapping(void *mapping)
{
    cm_mapping_release(mapping);
}

static struct cm_str read_document(struct cm_arena *arena)
{
    struct cm_mapping *mapping = CM_NEW(arena, struct cm_mapping);
    struct cm_error err = {0};

    CHECK_OK(cm_file_map(TESTS_DIR "/../docs/check-rules.md", true, mapping, &err), &err);
    cm_arena_defer(arena, release_mapping, mapping);
    return cm_arena_str(arena, (struct cm_str){(const char *)mapping->data, mapping->size});
}

static void check_rows(struct cm_arena *arena)
{
    const struct cm_str document = read_document(arena);
    int missing = 0;

    for (size_t i = 0; i < cm_check_rule_count(); i++) {
        const struct cm_check_rule *rule = cm_check_rule_at(i);
        const struct cm_str row =
            cm_arena_printf(arena, "\n| %s | %s | %s |\n", rule->id, severity_of(rule), rule->text);

        if (strstr(document.data, row.data))
            continue;
        print_message("docs/check-rules.md lacks:%s", row.data);
        missing++;
    }
    CHECK_INT(missing, 0);
}

void test_check_document__has_the_row_of_every_rule(void)
{
    check_in_arena(check_rows);
}

static void check_ids(struct cm_arena *arena)
{
    const struct cm_str document = read_document(arena);
    size_t listed = 0;

    for (const char *row = strstr(document.data, "\n| "); row; row = strstr(row + 1, "\n| ")) {
        const char *kinds[] = {"\n| CK", "\n| TR", "\n| GR", "\n| TY", "\n| ST"};

        for (size_t i = 0; i < CM_COUNT(kinds); i++)
            listed += strncmp(row, kinds[i], strlen(kinds[i])) == 0;
    }
    CHECK_INT(listed, cm_check_rule_count());
}

void test_check_document__lists_no_rule_that_is_gone(void)
{
    check_in_arena(check_ids);
}
