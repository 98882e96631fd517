/* The bytes of a fuzzed input as a file, for readers that take a path. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_IN_FILE_H
#define CM_FUZZ_IN_FILE_H

#include <stddef.h>

/* A path that holds these bytes until the next call; NULL when the machine has no room for it. */
const char *in_file(const void *bytes, size_t size);

#endif
