/* A fuzzed input as a folder of files: records of a file's number, its size in two bytes, its
 * bytes. mutate_records changes such inputs. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_IN_FOLDER_H
#define CM_FUZZ_IN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct in_folder_names {
    const char *const *files; /* relative to the folder */
    size_t file_count;
    const char *const *folders; /* that the files are in, outer ones first */
    size_t folder_count;
    /* What a file holds instead of the bytes of its record, NULL: those. room has 64 KiB and some.
     * Returns the size. */
    size_t (*wrap)(size_t file, const uint8_t *bytes, size_t size, uint8_t *room);
};

/* A new folder, in memory where the system has a file system there: targets write files for each
 * input, and readers sync them. */
enum { IN_FOLDER_PATH = 64 };
bool in_folder_make(char path[IN_FOLDER_PATH]);

/* The folder, which holds these files until the next call and is removed when the process ends;
 * NULL when the machine has no room for it. */
const char *in_folder(const struct in_folder_names *names, const uint8_t *data, size_t size);

#endif
