/* Runs the operator cases in the given folders: run_cases [--export TO] FOLDER... A folder is a
 * family; OPS=NAME,.. in the environment picks families, files or operators. With --export nothing
 * is checked: gradients are written to folder TO as models. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"
#include "op_check.h"
#include "op_export.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

struct kind {
    const char *name;
    op_check_fn *check;
};

static const struct kind checks[] = {
    {"kernel", check_kernel},
    {"body", check_body},
    {"executor", check_executor},
    {"gradient", check_gradient},
    {"second gradient", check_second_gradient},
    {"portable", check_portable},
    {"types", check_types},
};

static const struct kind exporting = {"export", export_gradients};

enum { KINDS = sizeof checks / sizeof checks[0] };

static const struct kind *kinds = checks;
static size_t n_kinds = KINDS;

static struct {
    size_t passed[KINDS], failed[KINDS], unreadable, cases;
} counts;

static char now[512]; /* the case under way, for when it crashes */

static void say_where(int signal)
{
    static const char text[] = ": crashed here\n";
    if (write(STDOUT_FILENO, now, strlen(now)) < 0 ||
        write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(3);
    (void)signal;
    _exit(1);
}

static bool is_picked(const char *family, const char *file, struct cm_str op_type)
{
    const char *list = getenv("OPS");
    if (!list || !*list)
        return true;
    while (*list) {
        const size_t size = strcspn(list, ",");
        const struct cm_str one = {list, size};
        if (cm_str_is(one, family) || cm_str_equal(one, op_type) ||
            (strncmp(file, list, size) == 0 && strcmp(file + size, ".txt") == 0))
            return true;
        list += size + (list[size] == ',');
    }
    return false;
}

static void fail(const struct op_case *what, const char *kind, const char *why)
{
    printf("%s:%d: %.*s: %s: %s\n", what->file, what->line, CM_STR_FMT(what->op_type), kind, why);
}

struct one_check {
    const struct op_case *what;
    op_check_fn *check;
    bool ran;
    struct cm_error *err;
};

static enum cm_status run_check(struct cm_guard *guard, void *arg)
{
    struct one_check *one = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    const enum cm_status status = one->check(one->what, &arena, &one->ran, one->err);
    cm_arena_release(&arena);
    return status;
}

static void run_case(const struct op_case *what)
{
    counts.cases++;
    for (size_t k = 0; k < n_kinds; k++) {
        struct cm_error err = {0};
        struct one_check one = {what, kinds[k].check, false, &err};
        snprintf(now, sizeof now, "%s:%d: %s", what->file, what->line, kinds[k].name);
        alarm(120);
        const enum cm_status status = cm_guarded((size_t)2 << 30, &err, run_check, &one);
        if (status)
            fail(what, kinds[k].name, err.text);
        counts.failed[k] += status != CM_OK;
        counts.passed[k] += status == CM_OK && one.ran;
    }
    alarm(0);
}

struct one_file {
    const char *family, *path;
    struct cm_error *err;
};

static void run_text(struct cm_arena *arena, const struct one_file *file, struct cm_str text)
{
    struct case_reader reader = {.file = file->path, .rest = text, .line = 1};
    bool found = true;

    while (found) {
        struct op_case what;
        const enum cm_status status = case_next(&reader, arena, &what, &found, file->err);
        if (status) {
            fail(&what, "text", file->err->text);
            counts.unreadable++;
        } else if (found && is_picked(file->family, cm_path_name(file->path), what.op_type)) {
            run_case(&what);
        }
    }
}

static enum cm_status run_file(struct cm_guard *guard, void *arg)
{
    const struct one_file *file = arg;
    struct cm_mapping mapping = {0};
    struct cm_arena arena;

    CM_TRY(cm_file_map(file->path, false, &mapping, file->err));
    cm_arena_init(&arena, guard);
    run_text(&arena, file, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_arena_release(&arena);
    cm_mapping_release(&mapping);
    return CM_OK;
}

static int is_text(const struct dirent *entry)
{
    return cm_str_ends(cm_str(entry->d_name), ".txt");
}

static void run_folder(const char *folder)
{
    struct dirent **names;
    const int n = scandir(folder, &names, is_text, alphasort);

    if (n < 0) {
        perror(folder);
        counts.unreadable++;
        return;
    }
    for (int i = 0; i < n; i++) {
        struct cm_error err = {0};
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        free(names[i]);
        struct one_file file = {cm_path_name(folder), path, &err};
        if (cm_guarded((size_t)1 << 30, &err, run_file, &file)) {
            printf("%s: %s\n", path, err.text);
            counts.unreadable++;
        }
    }
    free(names);
}

int main(int argc, char **argv)
{
    size_t passed = 0, failed = 0;

    if (argc > 2 && strcmp(argv[1], "--export") == 0) {
        export_to(argv[2]);
        kinds = &exporting;
        n_kinds = 1;
        argc -= 2;
        argv += 2;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: run_cases [--export TO] FOLDER...\n");
        return 2;
    }
    signal(SIGSEGV, say_where);
    signal(SIGFPE, say_where);
    signal(SIGALRM, say_where);
    for (int i = 1; i < argc; i++) {
        size_t size = strlen(argv[i]);
        while (size > 1 && argv[i][size - 1] == '/') /* the last name is the family's */
            argv[i][--size] = 0;
        run_folder(argv[i]);
    }
    printf("%zu cases", counts.cases);
    for (size_t k = 0; k < n_kinds; k++) {
        printf("%s %s %zu", k ? "," : ":", kinds[k].name, counts.passed[k]);
        passed += counts.passed[k];
        failed += counts.failed[k];
    }
    printf("\n");
    failed += counts.unreadable;
    if (counts.cases == 0) {
        const char *picked = getenv("OPS");
        printf("there is no case%s%s\n", picked ? " of OPS=" : "", picked ? picked : "");
        failed++;
    }
    printf("# counts: %zu passed, %zu failed\n", passed, failed);
    return failed != 0;
}
