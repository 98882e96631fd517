/* Which files a command reads, so that none of its outputs destroys one: an output is compared with
 * all of them by device and inode, whatever they are called. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096, FOLDER_FILES_MAX = 100000 };

struct read_file {
    dev_t device;
    ino_t inode;
    bool is_model; /* a save may replace it: it writes beside it first, and renames */
};

static struct read_file *files;
static size_t count, room;

static void add(const struct stat *facts, bool is_model)
{
    files = cli_grow(files, count, &room, sizeof *files);
    files[count++] = (struct read_file){facts->st_dev, facts->st_ino, is_model};
}

static void add_folder(const char *path)
{
    DIR *folder = cli_or_absent(opendir(path));
    const struct dirent *entry;
    struct stat facts;

    for (size_t n = 0; folder && n < FOLDER_FILES_MAX && (entry = readdir(folder)); n++)
        if (fstatat(dirfd(folder), entry->d_name, &facts, 0) == 0 && S_ISREG(facts.st_mode))
            add(&facts, false);
    if (folder)
        closedir(folder);
}

static void read_path(const char *path, bool is_model)
{
    struct stat facts;

    if (stat(path, &facts) != 0)
        return;
    if (S_ISDIR(facts.st_mode))
        add_folder(path);
    else if (S_ISREG(facts.st_mode))
        add(&facts, is_model);
}

bool cli_is_library(const char *path)
{
    const size_t size = strlen(path);

    return size > 3 && strcmp(path + size - 3, ".so") == 0;
}

void cli_reads(const char *path)
{
    char part[PATH_SIZE];

    if (!path)
        return;
    read_path(path, false);
    /* IMAGES:LABELS are two files. */
    for (const char *colon = strchr(path, ':'); colon; colon = strchr(colon + 1, ':')) {
        if ((size_t)(colon - path) >= sizeof part)
            break;
        snprintf(part, sizeof part, "%.*s", (int)(colon - path), path);
        read_path(part, false);
        read_path(colon + 1, false);
    }
}

static void read_external(const char *path, const struct cameo_model *model)
{
    const char *slash = strrchr(path, '/');
    const struct cameo_external_file *file;
    char whole[PATH_SIZE];

    for (size_t i = 0; (file = cameo_model_external_file(model, i)); i++) {
        const int size = snprintf(whole, sizeof whole, "%.*s%s",
                                  slash ? (int)(slash - path) + 1 : 0, path, file->location.data);

        if (size > 0 && (size_t)size < sizeof whole)
            read_path(whole, false);
    }
}

enum cameo_status cli_load_model(const char *path, const struct cameo_load_options *options,
                                 struct cameo_model **out, struct cameo_error *err)
{
    const enum cameo_status status = cameo_model_load(path, options, out, err);

    cli_sarif_about(path);
    if (status == CAMEO_OK) {
        read_path(path, true);
        read_external(path, *out);
    }
    return status;
}

static bool is_read(const char *path, bool may_replace_model)
{
    struct stat facts;

    if (!path || stat(path, &facts) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (files[i].device == facts.st_dev && files[i].inode == facts.st_ino &&
            !(may_replace_model && files[i].is_model))
            return true;
    return false;
}

static int refuse(const char *what, const char *path, bool may_replace_model)
{
    if (!is_read(path, may_replace_model))
        return CLI_YES;
    cli_complain("%s would overwrite %s, which is read here; give it another name", what, path);
    return CLI_USAGE;
}

int cli_may_write(const char *what, const char *path)
{
    return refuse(what, path, false);
}

int cli_may_write_in(const char *what, const char *folder)
{
    DIR *open = folder ? cli_or_absent(opendir(folder)) : NULL;
    const struct dirent *entry;
    char path[PATH_SIZE];
    int code = CLI_YES;

    while (open && code == CLI_YES && (entry = readdir(open))) {
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_SIZE ||
            !is_read(path, false))
            continue;
        cli_complain("%s needs a folder of its own: %s is read here", what, path);
        code = CLI_USAGE;
    }
    if (open)
        closedir(open);
    return code;
}

int cli_may_write_file_of_folder(const char *what, const char *path)
{
    struct stat facts;

    if (lstat(path, &facts) != 0 || S_ISREG(facts.st_mode))
        return CLI_YES;
    if (S_ISLNK(facts.st_mode))
        cli_complain("%s does not write '%s': it is a symbolic link. Remove the link or name "
                     "another folder",
                     what, path);
    else
        cli_complain("%s does not write '%s': it is not a regular file. Remove it or name another "
                     "folder",
                     what, path);
    return CLI_MACHINE;
}

int cli_may_save(const char *what, const char *path)
{
    return refuse(what, path, true);
}

void cli_reads_all(const struct cli_texts *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        cli_reads(paths->items[i]);
}
