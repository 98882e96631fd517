/* Listing folders that a stranger packed. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/folder_list.h"
#include "check.h"
#include "folder.h"

#include <sys/stat.h>
#include <unistd.h>

static void make(struct folder *folder)
{
    char path[FOLDER_PATH_SIZE];

    folder_make(folder);
    CHECK_INT(mkdir(folder_path(folder, "in", path), 0777), 0);
    CHECK_INT(mkdir(folder_path(folder, "in/sub", path), 0777), 0);
    CHECK_INT(mkdir(folder_path(folder, "out", path), 0777), 0);
    folder_write(folder, "in/b", "b");
    folder_write(folder, "in/sub/a", "a");
    folder_write(folder, "out/secret", "secret");
    CHECK_INT(symlink("../out", folder_path(folder, "in/away", path)), 0);
    CHECK_INT(symlink("nowhere", folder_path(folder, "in/dangling", path)), 0);
    for (int i = 0; i < 40; i++) {
        char name[32];

        snprintf(name, sizeof name, "in/here%02d", i);
        CHECK_INT(symlink(".", folder_path(folder, name, path)), 0);
    }
}

static bool lists(const struct cm_folder_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (cm_str_is(names->items[i], name))
            return true;
    return false;
}

static void list_links(struct cm_arena *arena)
{
    struct cm_folder_names names;
    struct cm_error err = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    make(&folder);
    folder_path(&folder, "in", path);
    CHECK_OK(cm_folder_list(arena, path, 6, 0, &names, &err), &err);
    CHECK_INT(names.count, 2 + 42);
    CHECK(lists(&names, "away") && lists(&names, "here39") && lists(&names, "sub/a"));
    CHECK_OK(cm_folder_list(arena, path, 1, 0, &names, &err), &err);
    CHECK_INT(names.count, 1 + 42);

    /* 40 links to the folder itself would be 40 to the power of 5 ways to each file. */
    CHECK_OK(cm_folder_list(arena, path, 6, CM_FOLLOW_LINKS, &names, &err), &err);
    CHECK_INT(names.count, 3);
    CHECK(cm_str_is(names.items[0], "away/secret") && cm_str_is(names.items[1], "b") &&
          cm_str_is(names.items[2], "sub/a"));
    CHECK_FAILS(cm_folder_list(arena, "/nowhere", 1, 0, &names, &err), CM_IO, &err, "No such file");
    folder_remove(&folder);
}

void test_folder_list__links_are_names_unless_they_are_followed(void)
{
    check_in_arena(list_links);
}
