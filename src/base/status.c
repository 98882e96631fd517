/* Failure texts. */
// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include "base/printable.h"

static void cut_mark(char *text, size_t size, int wanted)
{
    if (wanted >= 0 && (size_t)wanted >= size && size > 4)
        memcpy(text + size - 4, "...", 4);
}

enum cm_status cm_fail(struct cm_error *err, enum cm_status status, const char *format, ...)
{
    if (!err)
        return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    const int wanted = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    cut_mark(err->text, sizeof err->text, wanted);
    cm_make_printable(err->text, sizeof err->text);
    return status;
}

enum cm_status cm_error_context(struct cm_error *err, enum cm_status status, const char *format,
                                ...)
{
    if (status == CM_OK || !err)
        return status;
    char place[CM_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    const int wanted = vsnprintf(place, sizeof place, format, args);
    va_end(args);
    cut_mark(place, sizeof place, wanted);
    cm_make_printable(place, sizeof place);

    char reason[CM_ERROR_SIZE];
    memcpy(reason, err->text, sizeof reason);
    reason[sizeof reason - 1] = 0;
    /* A place of half the room is cut. When the rest is too long it loses its middle: it begins
     * with the places put before it, and ends with the reason, which matters more. */
    const int room = (int)sizeof err->text / 2;
    const int joined = snprintf(err->text, sizeof err->text, "%.*s: %s", room, place, reason);
    if (joined >= (int)sizeof err->text) {
        const size_t over = (size_t)joined + sizeof " ... " - sizeof err->text;
        const size_t length = strlen(reason), head = length / 4;
        snprintf(err->text, sizeof err->text, "%.*s: %.*s ... %s", room, place, (int)head, reason,
                 reason + head + over);
    }
    return status;
}

const char *cm_status_name(enum cm_status status)
{
    static const char *const names[] = {
        [CM_OK] = "ok",
        [CM_BAD_MODEL] = "bad model",
        [CM_BAD_ARGUMENT] = "bad argument",
        [CM_NOT_FOUND] = "not found",
        [CM_UNSUPPORTED] = "unsupported",
        [CM_LIMIT] = "limit exceeded",
        [CM_NO_MEMORY] = "out of memory",
        [CM_IO] = "input/output error",
        [CM_CANCELLED] = "cancelled",
        [CM_DIVERGED] = "diverged",
    };
    return (size_t)status < CM_COUNT(names) ? names[status] : "unknown status";
}
