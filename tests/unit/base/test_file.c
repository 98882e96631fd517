/* Reading: mappings, names that come from a model, paths. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void test_file__maps_and_copies_the_same_bytes(void)
{
    struct cm_error err = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_write(&folder, "a.bin", "some bytes");
    folder_path(&folder, "a.bin", path);
    for (int copy = 0; copy < 2; copy++) {
        struct cm_mapping mapping;

        CHECK_OK(cm_file_map(path, copy, &mapping, &err), &err);
        CHECK_INT(mapping.size, 10);
        CHECK_INT(mapping.copied, copy);
        CHECK(memcmp(mapping.data, "some bytes", 10) == 0);
        cm_mapping_release(&mapping);
        CHECK(mapping.data == NULL);
        cm_mapping_release(&mapping);
    }
    folder_remove(&folder);
}

/* Pages of this process in memory. */
static long resident(void)
{
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file && fscanf(file, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return pages;
}

void test_file__forgotten_bytes_take_no_memory_and_come_back(void)
{
    enum { SIZE = 8 << 20, PAGE = 4096 };
    struct cm_mapping mapping;
    struct folder folder;
    struct cm_error err;
    char path[FOLDER_PATH_SIZE];
    char *bytes = cm_malloc(SIZE + 1);

    CHECK(bytes);
    memset(bytes, 'a', SIZE);
    bytes[SIZE] = 0;
    folder_make(&folder);
    folder_write(&folder, "large.bin", bytes);
    CHECK_OK(cm_file_map(folder_path(&folder, "large.bin", path), false, &mapping, &err), &err);
    const struct cm_str range = {(const char *)mapping.data, mapping.size};
    CHECK(memcmp(mapping.data, bytes, SIZE) == 0);
    const long before = resident();
    cm_mapped_forget(&range, 1, mapping.data + 100, SIZE - 200);
    const long after = resident();
    CHECK(before == 0 || before - after > SIZE / PAGE / 2);
    CHECK(memcmp(mapping.data, bytes, SIZE) == 0);
    /* What lies elsewhere, or reaches out of the range, is left alone. */
    cm_mapped_forget(&range, 1, bytes, SIZE);
    cm_mapped_forget(&range, 1, mapping.data + PAGE, SIZE);
    CHECK(bytes[SIZE / 2] == 'a');
    cm_mapping_release(&mapping);
    cm_free(bytes);
    folder_remove(&folder);
}

void test_file__an_empty_file_maps_to_nothing(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_mapping mapping;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_write(&folder, "empty", "");
    CHECK_OK(cm_file_map(folder_path(&folder, "empty", path), false, &mapping, &err), &err);
    CHECK(mapping.size == 0 && mapping.data == NULL);
    cm_mapping_release(&mapping);
    folder_remove(&folder);
}

void test_file__what_cannot_be_mapped_is_named(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_mapping mapping;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    CHECK_FAILS(cm_file_map(folder_path(&folder, "missing.onnx", path), false, &mapping, &err),
                CM_NOT_FOUND, &err, "missing.onnx");
    CHECK_FAILS(cm_file_map(folder.path, false, &mapping, &err), CM_BAD_ARGUMENT, &err,
                "is a folder");
    CHECK_INT(mkfifo(folder_path(&folder, "pipe", path), 0600), 0);
    CHECK_FAILS(cm_file_map(path, false, &mapping, &err), CM_BAD_ARGUMENT, &err,
                "not a regular file");
    folder_write(&folder, "plain", "x");
    folder_path(&folder, "plain", path);
    cm_memory_fail_after(1);
    const enum cm_status status = cm_file_map(path, true, &mapping, &err);
    cm_memory_fail_after(0);
    CHECK_FAILS(status, CM_NO_MEMORY, &err, "plain");
    CHECK(mapping.data == NULL);
    folder_remove(&folder);
}

void test_file__names_that_leave_the_folder_are_refused(void)
{
    const struct {
        struct cm_str name;
        const char *reason;
    } bad[] = {
        {CM_STR(""), "empty"},
        {CM_STR("/etc/passwd"), "absolute"},
        {CM_STR("\\\\server\\share"), "absolute"},
        {CM_STR("C:\\weights.bin"), "absolute"},
        {CM_STR("c:/weights.bin"), "absolute"},
        {CM_STR(".."), "'..'"},
        {CM_STR("../x"), "'..'"},
        {CM_STR("a/../b"), "'..'"},
        {CM_STR("a/.."), "'..'"},
        {CM_STR("a\\..\\b"), "'..'"},
        {CM_STR("a\0/../../b"), "zero byte"},
    };
    static const char *const good[] = {"a", "a/b.bin", "./a", "..a", "a..", "a/...", "...", "C:x"};
    static char longest[5000];
    struct cm_error err = {0};

    for (size_t i = 0; i < CM_COUNT(bad); i++)
        CHECK_FAILS(cm_file_name_is_inside(bad[i].name, &err), CM_BAD_MODEL, &err, bad[i].reason);
    for (size_t i = 0; i < CM_COUNT(good); i++)
        CHECK_OK(cm_file_name_is_inside(cm_str(good[i]), &err), &err);
    memset(longest, 'x', sizeof longest);
    CHECK_FAILS(cm_file_name_is_inside((struct cm_str){longest, sizeof longest}, &err),
                CM_BAD_MODEL, &err, "5000 bytes");
}

/* inside/: weights, sub/more, link -> weights, out -> ../secret, round -> sub, hard = weights2,
 * pipe. */
static void furnish(const struct folder *folder)
{
    char from[FOLDER_PATH_SIZE], to[FOLDER_PATH_SIZE];

    folder_write(folder, "secret", "secret");
    CHECK_INT(mkdir(folder_path(folder, "inside", to), 0700), 0);
    CHECK_INT(mkdir(folder_path(folder, "inside/sub", to), 0700), 0);
    folder_write(folder, "inside/weights", "weights");
    folder_write(folder, "inside/sub/more", "more");
    folder_write(folder, "inside/weights2", "weights2");
    CHECK_INT(symlink("weights", folder_path(folder, "inside/link", to)), 0);
    CHECK_INT(symlink("../secret", folder_path(folder, "inside/out", to)), 0);
    CHECK_INT(symlink("sub", folder_path(folder, "inside/round", to)), 0);
    CHECK_INT(symlink("loop", folder_path(folder, "inside/loop", to)), 0);
    CHECK_INT(
        link(folder_path(folder, "inside/weights2", from), folder_path(folder, "inside/hard", to)),
        0);
    CHECK_INT(mkfifo(folder_path(folder, "inside/pipe", to), 0600), 0);
}

/* A name, how it is opened, what must come of it, and a part of the sentence or the content. */
static const struct opening {
    const char *name;
    unsigned flags;
    enum cm_status status;
    const char *part;
} openings[] = {
    {"weights", 0, CM_OK, "weights"},
    {"./weights", 0, CM_OK, "weights"},
    {"sub/more", 0, CM_OK, "more"},
    {"sub//more", 0, CM_OK, "more"},
    {"missing", 0, CM_NOT_FOUND, "missing"},
    {"sub/missing", 0, CM_NOT_FOUND, "sub/missing"},
    {"weights/below", 0, CM_NOT_FOUND, "weights/below"},
    {"../secret", 0, CM_BAD_MODEL, "'..'"},
    {"../secret", CM_FOLLOW_LINKS, CM_BAD_MODEL, "'..'"},
    {"link", 0, CM_BAD_MODEL, "--allow-links"},
    {"round/more", 0, CM_BAD_MODEL, "symbolic link"},
    {"out", 0, CM_BAD_MODEL, "symbolic link"},
    {"hard", 0, CM_BAD_MODEL, "2 hard links, must have 1; --allow-links"},
    {"sub", 0, CM_BAD_MODEL, "is a folder"},
    {"pipe", 0, CM_BAD_MODEL, "not a regular file"},
    {"link", CM_FOLLOW_LINKS, CM_OK, "weights"},
    {"round/more", CM_FOLLOW_LINKS, CM_OK, "more"},
    {"hard", CM_FOLLOW_LINKS, CM_OK, "weights2"},
    {"out", CM_FOLLOW_LINKS, CM_OK, "secret"},
    {"loop", 0, CM_BAD_MODEL, "a symbolic link that leads to no file"},
    {"sub", CM_FOLLOW_LINKS, CM_BAD_MODEL, "is a folder"},
    {"loop", CM_FOLLOW_LINKS, CM_IO, "loop"},
    {"pipe", CM_FOLLOW_LINKS, CM_BAD_MODEL, "not a regular file"},
};

static bool opens_as_told(const char *folder, const struct opening *opening)
{
    struct cm_error err = {0};
    char bytes[32] = "";
    int fd;
    const enum cm_status status =
        cm_file_open_beneath(folder, cm_str(opening->name), opening->flags, &fd, &err);

    if (status)
        return status == opening->status && strstr(err.text, opening->part) && fd == -1;
    const ssize_t size = read(fd, bytes, sizeof bytes - 1);
    close(fd);
    return opening->status == CM_OK && size > 0 && strcmp(bytes, opening->part) == 0;
}

/* The number of the first opening that goes wrong, CM_COUNT(openings) when none does. */
static size_t first_wrong(const char *folder)
{
    size_t i = 0;

    while (i < CM_COUNT(openings) && opens_as_told(folder, &openings[i]))
        i++;
    return i;
}

void test_file__opens_beneath_a_folder_and_nowhere_else(void)
{
    struct folder folder;
    char inside[FOLDER_PATH_SIZE];

    folder_make(&folder);
    furnish(&folder);
    const size_t wrong = first_wrong(folder_path(&folder, "inside", inside));
    folder_remove(&folder);
    if (wrong < CM_COUNT(openings))
        fail_msg("opening '%s' goes wrong", openings[wrong].name);
}

static bool hide_openat2(void)
{
#ifdef SYS_openat2
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {CM_COUNT(program), program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
#else
    return true;
#endif
}

void test_file__opens_the_same_way_where_the_kernel_does_not_help(void)
{
    enum { NO_FILTER = 200 };
    struct folder folder;
    char inside[FOLDER_PATH_SIZE];
    int status = 0;

    folder_make(&folder);
    furnish(&folder);
    folder_path(&folder, "inside", inside);
    const pid_t child = fork();
    if (child == 0)
        _exit(hide_openat2() ? (int)first_wrong(inside) : NO_FILTER);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    folder_remove(&folder);
    const size_t wrong = (size_t)WEXITSTATUS(status);
    if (wrong == NO_FILTER)
        skip();
    if (wrong < CM_COUNT(openings))
        fail_msg("opening '%s' goes wrong", openings[wrong].name);
}

void test_file__a_missing_folder_is_named(void)
{
    struct cm_error err = {0};
    int fd;

    CHECK_FAILS(cm_file_open_beneath("no/such/folder", CM_STR("x"), 0, &fd, &err), CM_NOT_FOUND,
                &err, "no/such/folder");
}

void test_file__an_empty_folder_name_is_the_current_folder(void)
{
    struct cm_error err = {0};
    struct folder folder;
    char *before = getcwd(NULL, 0);
    int fd;

    folder_make(&folder);
    folder_write(&folder, "here", "x");
    CHECK(before && chdir(folder.path) == 0);
    const enum cm_status status = cm_file_open_beneath("", CM_STR("here"), 0, &fd, &err);
    const int back = chdir(before);
    free(before);
    CHECK_INT(back, 0);
    CHECK_OK(status, &err);
    close(fd);
    folder_remove(&folder);
}

static void path_body(struct cm_arena *arena)
{
    CHECK_STR(cm_path_folder(arena, "model.onnx"), ".");
    CHECK_STR(cm_path_folder(arena, "a/b/model.onnx"), "a/b");
    CHECK_STR(cm_path_folder(arena, "a//model.onnx"), "a");
    CHECK_STR(cm_path_folder(arena, "/model.onnx"), "/");
    CHECK_STRING(cm_path_name("a/b/model.onnx"), "model.onnx");
    CHECK_STRING(cm_path_name("model.onnx"), "model.onnx");
    CHECK_STRING(cm_path_join(arena, CM_STR("a/b"), CM_STR("w")).data, "a/b/w");
    CHECK_STRING(cm_path_join(arena, CM_STR("/"), CM_STR("w")).data, "/w");
    CHECK_STRING(cm_path_join(arena, CM_STR("."), CM_STR("w")).data, "w");
    CHECK_STRING(cm_path_join(arena, CM_STR(""), CM_STR("w")).data, "w");
    CHECK_STRING(cm_path_join(arena, CM_STR("a"), CM_STR("/w")).data, "/w");
    CHECK_STRING(cm_path_join(arena, CM_STR("a/"), CM_STR("")).data, "a/");
}

void test_path__is_taken_apart_and_joined(void)
{
    check_in_arena(path_body);
}
