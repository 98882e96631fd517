/* Shared libraries that are opened when they are needed and never closed. They come from the folder
 * that this library (or the program it is linked into) lies in, from the folder of libraries that
 * is installed beside that, from the folder the build was configured with, or from where the system
 * keeps its libraries; never from the working folder or from a model's. What one of the first two
 * needs, and the system does not have, may lie beside it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_LIBRARY_H
#define CM_BASE_LIBRARY_H

#include "base/status.h"

#include <stdbool.h>

struct cm_library {
    void *handle;    /* NULL: not opened */
    char path[1024]; /* of what was opened */
    char why[512];   /* why nothing was: "libx.so.1 is not installed" */
    bool no_memory;  /* it is there, but memory ran out while it was opened */
};

/* Opens the first of `names` (NULL after the last) that can be opened. The environment variable
 * `variable` overrules: "off" opens nothing, a path opens that and nothing else. It is ignored in
 * programs that run with more rights than their caller. */
bool cm_library_open(const char *variable, const char *const *names, struct cm_library *out);

/* With what to fail for want of it: a library that memory was too short for is not one that is
 * missing. */
/* Notes that memory was too short to open or to ready it. */
void cm_library_note_starved(struct cm_library *library);
/* Was memory too short for any library so far? */
bool cm_library_any_starved(void);
enum cm_status cm_library_status(const struct cm_library *library);

/* The path of the file that cm_library_open would open, without opening it: for those who only want
 * to know whether it is there. Where no folder of ours has it, the system is asked by opening it.
 */
bool cm_library_locate(const char *variable, const char *const *names, struct cm_library *out);

/* A function to look up; `where` is the address of a function pointer. */
struct cm_symbol {
    const char *name;
    void *where;
};

/* Finds all `count` functions in the library or in what it is linked to; else says in library->why
 * which one is missing. */
bool cm_library_find(struct cm_library *library, const struct cm_symbol *symbols, size_t count);

#endif
