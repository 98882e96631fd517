/* Folders that come into being whole or not at all. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder_save.h"
#include "base/unfinished.h"
#include "check.h"
#include "folder.h"

#include <sys/stat.h>
#include <unistd.h>

static void replace_empty(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_folder_save save;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    CHECK_INT(mkdir(folder_path(&folder, "out", path), 0755), 0);
    CHECK_OK(cm_folder_begin(&save, path, &err), &err);
    CHECK_OK(cm_folder_put(&save, arena, "deep/deeper/file", CM_STR("bytes"), &err), &err);
    CHECK_INT(rmdir(path), 0); /* it was still there */
    CHECK_INT(mkdir(path, 0755), 0);
    cm_folder_abandon(&save);
    CHECK_INT(folder_count(&folder), 1);
    CHECK_OK(cm_folder_begin(&save, path, &err), &err);
    CHECK_OK(cm_folder_put(&save, arena, "file", CM_STR("bytes"), &err), &err);
    CHECK_OK(cm_folder_commit(&save, &err), &err);
    CHECK(folder_holds(&folder, "out/file", "bytes"));
    CHECK_INT(folder_count(&folder), 1);

    CHECK_FAILS(cm_folder_begin(&save, path, &err), CM_BAD_ARGUMENT, &err, "is there already");
    cm_remove_tree(path);
    CHECK_INT(folder_count(&folder), 0);
    folder_remove(&folder);
}

static void leave_without_unwinding(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_folder_save save;
    struct folder folder;
    char path[FOLDER_PATH_SIZE], name[24];

    folder_make(&folder);
    CHECK_OK(cm_folder_begin(&save, folder_path(&folder, "out", path), &err), &err);
    for (int i = 0; i < 300; i++) { /* more than one call lists */
        snprintf(name, sizeof name, "deep/file %d", i);
        CHECK_OK(cm_folder_put(&save, arena, name, CM_STR("bytes"), &err), &err);
    }
    CHECK_INT(folder_count(&folder), 1);
    cm_unfinished_remove();
    CHECK_INT(folder_count(&folder), 0);
    cm_folder_abandon(&save);
    folder_remove(&folder);
}

void test_folder_save__replaces_an_empty_folder_at_its_end_only(void)
{
    check_in_arena(replace_empty);
}

void test_folder_save__is_removed_where_the_process_ends_without_unwinding(void)
{
    check_in_arena(leave_without_unwinding);
}
