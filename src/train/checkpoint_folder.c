/* Files of checkpoints: their names, the newest, the oldest. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGINNING "step-"
#define ENDING    ".safetensors"

static void make_name(uint64_t step, char *name)
{
    snprintf(name, CM_CHECKPOINT_NAME_SIZE, BEGINNING "%010" PRIu64 ENDING, step);
}

void cm_checkpoint_path(const char *folder, uint64_t step, char *path)
{
    const size_t length = strlen(folder);

    memcpy(path, folder, length);
    path[length] = '/';
    make_name(step, path + length + 1);
}

/* The step in a name such as step-0000000300.safetensors. */
static bool step_of(const char *name, uint64_t *step)
{
    char again[CM_CHECKPOINT_NAME_SIZE];

    if (strncmp(name, BEGINNING, sizeof BEGINNING - 1) != 0)
        return false;
    *step = strtoull(name + sizeof BEGINNING - 1, NULL, 10);
    make_name(*step, again);
    return strcmp(name, again) == 0;
}

/* A name that cannot be right, or the machine. */
static enum cm_status fail_folder(const char *what, const char *folder, struct cm_error *err)
{
    const bool is_name = errno == ENOENT || errno == EEXIST || errno == ENOTDIR;

    return cm_fail(err, is_name ? CM_NOT_FOUND : CM_IO, "cannot %s the folder '%.300s': %s", what,
                   folder, strerror(errno));
}

enum cm_status cm_checkpoint_folder_make(const char *folder, struct cm_error *err)
{
    struct stat facts;

    if (mkdir(folder, 0777) == 0 ||
        (errno == EEXIST && stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode)))
        return CM_OK;
    return fail_folder("make", folder, err);
}

struct listing {
    uint64_t count, oldest, newest;
};

/* tidy: what a run that was killed left half-written is removed. */
static struct listing list(DIR *dir, bool tidy)
{
    struct listing all = {.oldest = UINT64_MAX};
    const struct dirent *entry;
    uint64_t step;

    rewinddir(dir);
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (tidy && strncmp(name, BEGINNING, sizeof BEGINNING - 1) == 0 &&
            strstr(name, ENDING ".tmp-"))
            unlinkat(dirfd(dir), name, 0);
        if (!step_of(name, &step))
            continue;
        all.count++;
        all.oldest = step < all.oldest ? step : all.oldest;
        all.newest = step > all.newest ? step : all.newest;
    }
    return all;
}

enum cm_status cm_checkpoint_newest(const char *folder, bool *found, uint64_t *step,
                                    struct cm_error *err)
{
    DIR *dir = opendir(folder);

    *found = false;
    if (!dir)
        return errno == ENOENT ? CM_OK : fail_folder("read", folder, err);
    const struct listing all = list(dir, false);
    closedir(dir);
    *found = all.count > 0;
    *step = all.newest;
    return CM_OK;
}

void cm_checkpoint_folder_prune(const char *folder, uint64_t keep)
{
    DIR *dir = opendir(folder);
    char name[CM_CHECKPOINT_NAME_SIZE];
    bool removed = dir != NULL;

    while (removed) {
        const struct listing all = list(dir, true);

        make_name(all.oldest, name);
        removed = all.count > keep && unlinkat(dirfd(dir), name, 0) == 0;
    }
    if (dir)
        closedir(dir);
}
