/* A folder of its own for each test that touches files. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_FOLDER_H
#define CM_TESTS_FOLDER_H

#include "base/compiler.h"

#include <stdbool.h>

enum { FOLDER_PATH_SIZE = 512 };

struct folder {
    char path[256];
};

void folder_make(struct folder *folder);
void folder_remove(struct folder *folder); /* with all that is in it */
/* folder/name in a buffer of FOLDER_PATH_SIZE; returns it. */
char *folder_path(const struct folder *folder, const char *name, char *buffer);
void folder_write(const struct folder *folder, const char *name, const char *text);
bool folder_holds(const struct folder *folder, const char *name, const char *text);
int folder_count(const struct folder *folder); /* entries in it */

#endif
