/* Backend test cases on disk: which folders are cases, and what they tolerate. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "test_cases.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { DEPTH_MAX = 8 };

bool test_path(char path[TEST_PATH_SIZE], const char *folder, const char *name)
{
    const int size = snprintf(path, TEST_PATH_SIZE, "%s/%s", folder, name);
    return size > 0 && size < TEST_PATH_SIZE;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static void add_case(struct test_list *list, const char *path, const char *name)
{
    list->items = cli_grow(list->items, list->count, &list->room, sizeof *list->items);
    struct test_case *test = &list->items[list->count++];
    memset(test, 0, sizeof *test);
    test->path = cli_copy(path);
    test->name = cli_copy(name);
}

void test_case_free(struct test_case *test)
{
    free(test->path);
    free(test->name);
}

void test_list_free(struct test_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        test_case_free(&list->items[i]);
    free(list->items);
}

/* name begins where the operand ends. */
static int walk(struct test_list *list, const char *path, size_t skip, int depth)
{
    char below[TEST_PATH_SIZE];
    struct dirent **entries;
    uint64_t bytes;
    int code = CLI_YES;

    if (test_path(below, path, "model.onnx") && cli_file_size(below, &bytes)) {
        const char *last = strrchr(path, '/');
        add_case(list, path, path[skip] ? path + skip : last && last[1] ? last + 1 : path);
        return CLI_YES;
    }
    if (depth == DEPTH_MAX)
        return CLI_YES;
    const int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        const int why = errno;

        cli_complain("test: cannot read the folder %s: %s", path, strerror(why));
        return cli_errno_code(why);
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' && code == CLI_YES &&
            test_path(below, path, entries[i]->d_name) && is_folder(below))
            code = walk(list, below, skip, depth + 1);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int test_find(struct test_list *list, const char *folder)
{
    char path[TEST_PATH_SIZE];
    size_t size = strlen(folder);

    if (!is_folder(folder) || size + 1 >= sizeof path) {
        cli_complain("test: there is no folder '%s'", folder);
        return CLI_USAGE;
    }
    while (size > 1 && folder[size - 1] == '/')
        size--;
    memcpy(path, folder, size);
    path[size] = 0;
    /* A case given by itself has only its own name. */
    char model[TEST_PATH_SIZE];
    uint64_t bytes;
    if (test_path(model, path, "model.onnx") && cli_file_size(model, &bytes))
        return walk(list, path, size, 0);
    return walk(list, path, size + 1, 0);
}

/* The number after "key": in a small JSON object. */
static void read_number(const char *text, const char *key, double *out)
{
    const char *at = strstr(text, key);
    char *end;

    if (!at)
        return;
    at += strlen(key);
    at += strspn(at, " \t\r\n:");
    const double number = strtod(at, &end);
    if (end != at && number >= 0)
        *out = number;
}

void test_read_tolerance(const char *folder, struct cli_tolerance *tolerance)
{
    char path[TEST_PATH_SIZE], text[4096];
    FILE *file = test_path(path, folder, "data.json") ? cli_or_absent(fopen(path, "rb")) : NULL;

    if (!file)
        return;
    const size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = 0;
    fclose(file);
    read_number(text, "\"rtol\"", &tolerance->rtol);
    read_number(text, "\"atol\"", &tolerance->atol);
}

double test_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
