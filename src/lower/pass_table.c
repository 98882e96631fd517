/* Lists of pass names, and what they ask for. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/pass_table.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

const struct cm_pass_row *cm_pass_at(const struct cm_pass_table *table, size_t i)
{
    return (const struct cm_pass_row *)((const char *)table->rows + i * table->row_size);
}

size_t cm_pass_find(const struct cm_pass_table *table, struct cm_str name)
{
    size_t i = 0;

    while (i < table->count && !cm_str_is(name, cm_pass_at(table, i)->name))
        i++;
    return i;
}

/* The next name of a list, "" at its end. */
static struct cm_str next_name(const char **list)
{
    const char *at = *list + strspn(*list, ", ");
    const struct cm_str name = {at, strcspn(at, ", ")};
    *list = at + name.size;
    return name;
}

static bool lists(const char *list, const char *name)
{
    struct cm_str one;
    while (list && (one = next_name(&list)).size)
        if (cm_str_is(one, name))
            return true;
    return false;
}

static enum cm_status refuse_name(const struct cm_pass_table *table, struct cm_str name,
                                  struct cm_error *err)
{
    char known[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < table->count; i++) {
        const char *one = cm_pass_at(table, i)->name;
        if (cm_pass_find(table, cm_str(one)) == i && used < sizeof known)
            used +=
                (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", one);
    }
    return cm_fail(err, CM_BAD_ARGUMENT, "there is no pass '%.*s'; the passes are %s",
                   (int)cm_min_size(name.size, 60), name.data, known);
}

static enum cm_status check_list(const struct cm_pass_table *table, const char *list,
                                 bool leaves_out, struct cm_error *err)
{
    struct cm_str name;
    while (list && (name = next_name(&list)).size) {
        const size_t i = cm_pass_find(table, name);
        if (i == table->count)
            return refuse_name(table, name, err);
        const struct cm_pass_row *pass = cm_pass_at(table, i);
        if (leaves_out && pass->kind == CM_PASS_REQUIRED)
            return cm_fail(err, CM_BAD_ARGUMENT, "pass '%s' cannot be left out%s%s", pass->name,
                           pass->reason ? ": " : "", pass->reason ? pass->reason : "");
    }
    return CM_OK;
}

enum cm_status cm_pass_check(const struct cm_pass_table *table, const struct cm_pass_choice *choice,
                             struct cm_error *err)
{
    CM_TRY(check_list(table, choice->only, false, err));
    CM_TRY(check_list(table, choice->with, false, err));
    CM_TRY(check_list(table, choice->until, false, err));
    return check_list(table, choice->without, true, err);
}

bool cm_pass_is_wanted(const struct cm_pass_row *pass, const struct cm_pass_choice *choice)
{
    if (pass->kind == CM_PASS_REQUIRED)
        return true;
    if (lists(choice->without, pass->name))
        return false;
    if (choice->only)
        return lists(choice->only, pass->name);
    return pass->kind == CM_PASS_USUAL || lists(choice->with, pass->name);
}

enum cm_status cm_pass_run(const struct cm_pass_table *table, const struct cm_pass_choice *choice,
                           cm_pass_run_fn *run, void *state, bool *stopped, struct cm_error *err)
{
    size_t left = 0; /* runs of the last pass */
    const size_t first = choice->after ? cm_pass_find(table, cm_str(choice->after)) + 1 : 0;

    *stopped = false;
    for (size_t i = first; choice->until && i < table->count; i++)
        left += strcmp(cm_pass_at(table, i)->name, choice->until) == 0;
    for (size_t i = first; i < table->count && !*stopped; i++) {
        const struct cm_pass_row *pass = cm_pass_at(table, i);

        CM_TRY(run(state, pass, cm_pass_is_wanted(pass, choice), err));
        *stopped = choice->until && strcmp(pass->name, choice->until) == 0 && --left == 0;
    }
    return CM_OK;
}
