/* Temporary files and folders of this process, to be removed where it ends without unwinding: by a
 * signal, or in a library that calls exit. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_UNFINISHED_H
#define CM_BASE_UNFINISHED_H

/* path is borrowed until it is dropped. The first 64 are remembered. */
void cm_unfinished_add(const char *path);
void cm_unfinished_drop(const char *path);

/* Removes all that were added and not dropped. A signal handler may call it. */
void cm_unfinished_remove(void);

/* Removes a file, or a folder with what is in it, some levels deep; links are not followed. A
 * signal handler may call it. */
void cm_remove_tree(const char *path);

#endif
