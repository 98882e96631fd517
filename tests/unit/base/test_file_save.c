/* Writing: a file is replaced whole or not at all. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "folder.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static enum cm_status save_text(const char *path, const char *text, struct cm_error *err)
{
    struct cm_save save;

    CM_TRY(cm_save_begin(&save, path, err));
    enum cm_status status = cm_save_write(&save, text, strlen(text), err);
    if (status == CM_OK)
        status = cm_save_commit(&save, err);
    cm_save_abandon(&save);
    return status;
}

void test_save__replaces_the_content_and_leaves_nothing_else(void)
{
    struct cm_error err = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, "model", path);
    CHECK_OK(save_text(path, "first", &err), &err);
    CHECK(folder_holds(&folder, "model", "first"));
    CHECK_OK(save_text(path, "second", &err), &err);
    CHECK(folder_holds(&folder, "model", "second"));
    CHECK_OK(save_text(path, "", &err), &err);
    CHECK(folder_holds(&folder, "model", ""));
    CHECK_INT(folder_count(&folder), 1);
    folder_remove(&folder);
}

void test_save__the_old_file_stays_until_the_commit(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_save save;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_write(&folder, "model", "old");
    CHECK_OK(cm_save_begin(&save, folder_path(&folder, "model", path), &err), &err);
    CHECK_OK(cm_save_write(&save, "new", 3, &err), &err);
    CHECK(folder_holds(&folder, "model", "old"));
    CHECK_INT(folder_count(&folder), 2);
    cm_save_abandon(&save);
    CHECK(folder_holds(&folder, "model", "old"));
    CHECK_INT(folder_count(&folder), 1);
    cm_save_abandon(&save);
    CHECK_FAILS(cm_save_commit(&save, &err), CM_IO, &err, "an earlier write failed");
    folder_remove(&folder);
}

void test_save__files_that_belong_together_are_complete_before_one_takes_its_name(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_save first, second;
    struct cm_save *const both[] = {&first, &second};
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_write(&folder, "model", "old");
    CHECK_OK(cm_save_begin(&first, folder_path(&folder, "model", path), &err), &err);
    CHECK_OK(cm_save_write(&first, "newer", 5, &err), &err);
    CHECK_OK(cm_save_begin_any(&second, "/dev/full", &err), &err);
    CHECK_OK(cm_save_write(&second, "bytes", 5, &err), &err);
    CHECK_FAILS(cm_save_commit_all(both, 2, &err), CM_IO, &err, "'/dev/full': No space left");
    CHECK(folder_holds(&folder, "model", "old"));
    CHECK_INT(folder_count(&folder), 1);

    CHECK_OK(cm_save_begin(&first, folder_path(&folder, "model", path), &err), &err);
    CHECK_OK(cm_save_write(&first, "newer", 5, &err), &err);
    CHECK_OK(cm_save_begin(&second, folder_path(&folder, "header", path), &err), &err);
    CHECK_OK(cm_save_write(&second, "bytes", 5, &err), &err);
    CHECK_OK(cm_save_commit_all(both, 2, &err), &err);
    CHECK(folder_holds(&folder, "model", "newer"));
    CHECK(folder_holds(&folder, "header", "bytes"));
    CHECK_INT(folder_count(&folder), 2);
    folder_remove(&folder);
}

void test_save__a_name_that_cannot_be_taken_is_told_with_those_that_are(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_save first, second;
    struct cm_save *const both[] = {&first, &second};
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    CHECK_OK(cm_save_begin(&first, folder_path(&folder, "header", path), &err), &err);
    CHECK_OK(cm_save_write(&first, "newer", 5, &err), &err);
    CHECK_OK(cm_save_begin(&second, folder_path(&folder, "model", path), &err), &err);
    CHECK_OK(cm_save_write(&second, "bytes", 5, &err), &err);
    CHECK_INT(mkdir(path, 0700), 0); /* a file cannot be renamed over a folder */
    CHECK_FAILS(cm_save_commit_all(both, 2, &err), CM_IO, &err, "header' is the new one already");
    CHECK(strstr(err.text, "model': Is a directory") != NULL);
    CHECK(folder_holds(&folder, "header", "newer"));
    CHECK_INT(folder_count(&folder), 2);
    CHECK_INT(rmdir(path), 0);
    folder_remove(&folder);
}

void test_save__a_zeroed_save_may_be_abandoned(void)
{
    struct cm_save save = {0};
    struct stat facts;
    const int before = fstat(0, &facts);

    cm_save_abandon(&save);
    CHECK_INT(fstat(0, &facts), before);
}

void test_save__a_place_that_cannot_be_written_is_named(void)
{
    struct cm_error err = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    CHECK_FAILS(save_text(folder_path(&folder, "no/model", path), "x", &err), CM_NOT_FOUND, &err,
                "no/model': its folder does not exist");
    CHECK_FAILS(save_text(folder.path, "x", &err), CM_BAD_ARGUMENT, &err, "is a folder");
    CHECK_FAILS(save_text("", "x", &err), CM_BAD_ARGUMENT, &err, "empty");
    CHECK_INT(mkfifo(folder_path(&folder, "pipe", path), 0600), 0);
    CHECK_FAILS(save_text(path, "x", &err), CM_BAD_ARGUMENT, &err, "not a regular file");
    CHECK_INT(symlink("nowhere", folder_path(&folder, "dangling", path)), 0);
    CHECK_FAILS(save_text(path, "x", &err), CM_NOT_FOUND, &err, "leads nowhere");
    CHECK_INT(folder_count(&folder), 2);
    folder_remove(&folder);
}

void test_save__large_and_small_writes_keep_their_order(void)
{
    enum { LARGE = 3 << 20, SMALL = 1000, SMALLS = 2000 };
    struct cm_error err = {0};
    struct folder folder;
    struct cm_save save;
    struct cm_mapping mapping;
    char path[FOLDER_PATH_SIZE];
    uint8_t *large = cm_malloc(LARGE);
    uint8_t small[SMALL];

    CHECK(large != NULL);
    memset(large, 'L', LARGE);
    folder_make(&folder);
    CHECK_OK(cm_save_begin(&save, folder_path(&folder, "big", path), &err), &err);
    CHECK_OK(cm_save_write(&save, "head", 4, &err), &err);
    CHECK_OK(cm_save_write(&save, large, LARGE, &err), &err);
    for (int i = 0; i < SMALLS; i++) {
        memset(small, i % 251, SMALL);
        CHECK_OK(cm_save_write(&save, small, SMALL, &err), &err);
    }
    CHECK_INT(save.written, 4 + LARGE + SMALL * SMALLS);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_file_map(path, false, &mapping, &err), &err);
    CHECK_INT(mapping.size, 4 + LARGE + SMALL * SMALLS);
    CHECK(memcmp(mapping.data, "headL", 5) == 0 && mapping.data[4 + LARGE - 1] == 'L');
    for (size_t i = 0; i < SMALL * SMALLS; i++)
        CHECK(mapping.data[4 + LARGE + i] == i / SMALL % 251);
    cm_mapping_release(&mapping);
    cm_free(large);
    folder_remove(&folder);
}

void test_save__aligns_with_zeros(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_save save;
    struct cm_mapping mapping;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    CHECK_OK(cm_save_begin(&save, folder_path(&folder, "aligned", path), &err), &err);
    CHECK_OK(cm_save_align(&save, 64, &err), &err);
    CHECK_INT(save.written, 0);
    CHECK_OK(cm_save_write(&save, "abc", 3, &err), &err);
    CHECK_OK(cm_save_align(&save, 65536, &err), &err);
    CHECK_INT(save.written, 65536);
    CHECK_OK(cm_save_align(&save, 4096, &err), &err);
    CHECK_OK(cm_save_write(&save, "d", 1, &err), &err);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    CHECK_INT(mapping.size, 65537);
    CHECK(memcmp(mapping.data, "abc", 3) == 0 && mapping.data[65536] == 'd');
    for (size_t i = 3; i < 65536; i++)
        CHECK(mapping.data[i] == 0);
    cm_mapping_release(&mapping);
    folder_remove(&folder);
}

void test_save__a_link_goes_on_pointing_at_the_new_file(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct stat facts;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    CHECK_INT(mkdir(folder_path(&folder, "store", path), 0700), 0);
    folder_write(&folder, "store/real", "old");
    CHECK_INT(symlink("store/real", folder_path(&folder, "link", path)), 0);
    CHECK_OK(save_text(path, "new", &err), &err);
    CHECK(lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK(folder_holds(&folder, "store/real", "new"));
    CHECK_INT(folder_count(&folder), 2);
    folder_remove(&folder);
}

void test_save__permissions_are_kept_and_new_files_follow_the_umask(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct stat facts;
    char path[FOLDER_PATH_SIZE];
    const mode_t before = umask(027);

    folder_make(&folder);
    folder_write(&folder, "old", "x");
    folder_path(&folder, "old", path);
    const bool changed = chmod(path, 0606) == 0 && save_text(path, "y", &err) == CM_OK;
    const mode_t kept = stat(path, &facts) == 0 ? facts.st_mode & 07777 : 0;
    folder_path(&folder, "new", path);
    const bool created = save_text(path, "y", &err) == CM_OK;
    const mode_t fresh = stat(path, &facts) == 0 ? facts.st_mode & 07777 : 0;
    umask(before);
    CHECK(changed && created);
    CHECK_INT(kept, 0606);
    CHECK_INT(fresh, 0640);
    folder_remove(&folder);
}

/* The limit on file sizes lets the first bytes through and then fails, as a full disk does. */
void test_save__a_failed_write_keeps_the_old_file(void)
{
    enum { LARGE = 2 << 20 };
    struct cm_error err = {0}, later = {0};
    struct folder folder;
    struct cm_save save;
    struct rlimit before;
    char path[FOLDER_PATH_SIZE];
    uint8_t *large = cm_calloc(1, LARGE);

    CHECK(large != NULL && getrlimit(RLIMIT_FSIZE, &before) == 0);
    folder_make(&folder);
    folder_write(&folder, "model", "old");
    CHECK_OK(cm_save_begin(&save, folder_path(&folder, "model", path), &err), &err);
    const struct rlimit tight = {5000, before.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const int limited = setrlimit(RLIMIT_FSIZE, &tight);
    const enum cm_status status = cm_save_write(&save, large, LARGE, &err);
    const enum cm_status commit = cm_save_commit(&save, &later);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    cm_free(large);
    CHECK_INT(limited, 0);
    CHECK_FAILS(status, CM_IO, &err, "/model': File too large");
    CHECK_FAILS(commit, CM_IO, &later, "an earlier write failed");
    CHECK(folder_holds(&folder, "model", "old"));
    CHECK_INT(folder_count(&folder), 1);
    folder_remove(&folder);
}

void test_save__each_failing_allocation_is_reported(void)
{
    struct cm_error err = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    enum cm_status status = CM_NO_MEMORY;
    uint64_t nth = 0;

    folder_make(&folder);
    folder_path(&folder, "model", path);
    while (status != CM_OK && nth < 20) {
        cm_memory_fail_after(++nth);
        status = save_text(path, "x", &err);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || (status == CM_NO_MEMORY && folder_count(&folder) == 0));
    }
    CHECK_INT(status, CM_OK);
    CHECK(nth > 2);
    folder_remove(&folder);
}

static enum cm_status save_inside(const char *folder, const char *name, struct cm_error *err)
{
    struct cm_save save;

    CM_TRY(cm_save_begin_inside(&save, folder, cm_str(name), err));
    const enum cm_status status = cm_save_write(&save, "new", 3, err);
    if (status) {
        cm_save_abandon(&save);
        return status;
    }
    return cm_save_commit(&save, err);
}

void test_save__inside_a_folder_follows_no_link(void)
{
    struct cm_error err = {0};
    struct cm_save save;
    struct folder folder;
    char path[FOLDER_PATH_SIZE], link[FOLDER_PATH_SIZE], sub[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, "in", path);
    CHECK_INT(mkdir(path, 0700), 0);
    folder_write(&folder, "outside", "old");
    CHECK_INT(symlink("../outside", folder_path(&folder, "in/link", link)), 0);
    CHECK_INT(symlink("..", folder_path(&folder, "in/up", sub)), 0);
    CHECK_FAILS(save_inside(path, "link", &err), CM_IO, &err, "is a symbolic link");
    CHECK_FAILS(save_inside(path, "up/outside", &err), CM_IO, &err, "is a symbolic link");
    CHECK_FAILS(save_inside(path, "../outside", &err), CM_BAD_MODEL, &err, "'..'");
    CHECK_OK(save_inside(path, "a/b/file", &err), &err);
    CHECK(folder_holds(&folder, "in/a/b/file", "new"));
    /* A link that comes after the check is replaced, and what it leads to stays. */
    CHECK_INT(unlink(link), 0);
    CHECK_OK(cm_save_begin_inside(&save, path, CM_STR("link"), &err), &err);
    CHECK_INT(symlink("../outside", link), 0);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK(folder_holds(&folder, "in/link", ""));
    CHECK(folder_holds(&folder, "outside", "old"));
    folder_remove(&folder);
}
