/* The files in a folder, by name. What is in a folder may come from a stranger's archive, so links
 * are told from files, every entry counts, and no folder is entered twice. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_FOLDER_LIST_H
#define CM_BASE_FOLDER_LIST_H

#include "base/array.h"
#include "base/file.h"

enum { CM_FOLDER_ENTRIES = 100000 }; /* in all folders together; more are refused */

struct cm_folder_names {
    CM_ARRAY(
        struct cm_str); /* relative to the folder, with '/', each with a zero byte at its end */
};

/* Lists the files of path and of the folders in it, `levels` deep (1: path alone), sorted, so that
 * nothing depends on the order in which they were made. A symbolic link is listed like a file, and
 * cm_file_open_beneath refuses it by name; with CM_FOLLOW_LINKS it counts as what it leads to. */
enum cm_status cm_folder_list(struct cm_arena *arena, const char *path, int levels, unsigned flags,
                              struct cm_folder_names *out, struct cm_error *err) CM_MUST_CHECK;

#endif
