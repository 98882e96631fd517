/* How things fail. What can fail returns enum cm_status; the sentence for the user is written once,
 * into a struct cm_error, where the reason is known, and each caller on the way up may put a place
 * before it. Nothing here prints. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_STATUS_H
#define CM_BASE_STATUS_H

#include "base/compiler.h"

/* The numbers are public (cameo.h repeats them) and only ever added to. */
enum cm_status {
    CM_OK = 0,
    CM_BAD_MODEL = 1,    /* the file, or data in it, breaks a rule */
    CM_BAD_ARGUMENT = 2, /* the caller asked for something that makes no sense */
    CM_NOT_FOUND = 3,    /* a file or a name that is not there */
    CM_UNSUPPORTED = 4,  /* legal, but not something we can do */
    CM_LIMIT = 5,        /* a budget against hostile or oversized input was exceeded */
    CM_NO_MEMORY = 6,
    CM_IO = 7, /* the operating system refused a read or a write */
    CM_CANCELLED = 8,
    CM_DIVERGED = 9, /* training left the finite numbers: a loss, a gradient or a new value */
};

enum { CM_ERROR_SIZE = 1024 };

struct cm_error {
    enum cm_status status;
    char text[CM_ERROR_SIZE]; /* lower case, no full stop; cut with "..." when too long */
};

/* Writes the reason and returns status. err may be NULL. */
enum cm_status cm_fail(struct cm_error *err, enum cm_status status, const char *format, ...)
    CM_PRINTF(3, 4);

/* Puts "<context>: " before the reason when status is a failure; returns status either way. */
enum cm_status cm_error_context(struct cm_error *err, enum cm_status status, const char *format,
                                ...) CM_PRINTF(3, 4);

const char *cm_status_name(enum cm_status status);

#define CM_TRY(expression)                                                                         \
    do {                                                                                           \
        const enum cm_status try_ = (expression);                                                  \
        if (try_ != CM_OK)                                                                         \
            return try_;                                                                           \
    } while (0)

#endif
