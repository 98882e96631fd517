/* A folder that comes into being whole or not at all: its files are written under a temporary name
 * beside it, which is renamed at the end. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_FOLDER_SAVE_H
#define CM_BASE_FOLDER_SAVE_H

#include "base/file.h"

/* Zeroed is none. */
struct cm_folder_save {
    char *path, *temporary; /* owned */
};

/* Refuses a path where something is already, unless that is an empty folder. */
enum cm_status cm_folder_begin(struct cm_folder_save *save, const char *path,
                               struct cm_error *err) CM_MUST_CHECK;
/* The path to write a file of it under, with cm_save_begin; name may have folders, "a/b.bin", which
 * are made. Lives in arena. */
enum cm_status cm_folder_file(struct cm_folder_save *save, struct cm_arena *arena, const char *name,
                              const char **path, struct cm_error *err) CM_MUST_CHECK;
/* A small file, whole. */
enum cm_status cm_folder_put(struct cm_folder_save *save, struct cm_arena *arena, const char *name,
                             struct cm_str bytes, struct cm_error *err) CM_MUST_CHECK;
/* Syncs and renames. Ends the save either way; on failure nothing is left. */
enum cm_status cm_folder_commit(struct cm_folder_save *save, struct cm_error *err) CM_MUST_CHECK;
/* Removes everything written so far. Harmless after a commit and on a zeroed struct. */
void cm_folder_abandon(struct cm_folder_save *save);
void cm_folder_defer(struct cm_arena *arena, struct cm_folder_save *save); /* when arena ends */

/* Syncs a folder, or the one that something is in: 0 or an errno. A folder may be writable without
 * being readable: then it cannot be synced, and that is no failure. */
int cm_folder_sync(const char *path);
int cm_folder_sync_around(const char *path);

#endif
