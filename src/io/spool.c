/* Memory first, a temporary file without a name when it grows. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "io/spool.h"

#include "base/memory.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { USUAL_LIMIT = 32 << 20, PIECE = 1 << 20 };

static void release(void *what)
{
    struct cm_spool *spool = what;

    cm_mapping_release(&spool->mapping);
    cm_free(spool->pending);
    if (spool->fd >= 0)
        close(spool->fd);
}

struct cm_spool *cm_spool_new(struct cm_arena *arena, size_t limit)
{
    struct cm_spool *spool = CM_NEW(arena, struct cm_spool);

    spool->fd = -1;
    spool->limit = limit ? limit : USUAL_LIMIT;
    cm_arena_defer(arena, release, spool);
    return spool;
}

static int open_in(const char *folder)
{
    char name[4096];
#ifdef O_TMPFILE
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
#endif
    const int size = snprintf(name, sizeof name, "%s/cameo-XXXXXX", folder);
    if (size < 0 || (size_t)size >= sizeof name)
        return -1;
    const int named = mkostemp(name, O_CLOEXEC);
    if (named >= 0)
        unlink(name);
    return named;
}

/* /var/tmp is on a disk where /tmp may be in memory, which is what must not fill up. */
static enum cm_status open_temporary(struct cm_spool *spool, struct cm_error *err)
{
    const char *const folders[] = {secure_getenv("TMPDIR"), "/var/tmp", "/tmp"};
    int why = ENOENT;

    for (size_t i = 0; i < CM_COUNT(folders) && spool->fd < 0; i++) {
        if (!folders[i] || !*folders[i])
            continue;
        spool->fd = open_in(folders[i]);
        why = spool->fd < 0 ? errno : 0;
    }
    return spool->fd >= 0 ? CM_OK
                          : cm_fail(err, CM_IO,
                                    "no temporary file can be made for unpacking: %s (TMPDIR says "
                                    "where)",
                                    strerror(why));
}

static enum cm_status flush(struct cm_spool *spool, struct cm_error *err)
{
    for (size_t done = 0; done < spool->n_pending;) {
        const ssize_t n = write(spool->fd, spool->pending + done, spool->n_pending - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return cm_fail(err, CM_IO,
                           "the temporary file for unpacking cannot hold more than %zu bytes: %s "
                           "(TMPDIR says where it is)",
                           spool->size, strerror(n < 0 ? errno : ENOSPC));
        done += (size_t)n;
    }
    spool->n_pending = 0;
    return CM_OK;
}

/* Room for at least one more byte. */
static enum cm_status make_room(struct cm_spool *spool, struct cm_error *err)
{
    if (spool->fd < 0 && spool->capacity < spool->limit) {
        const size_t wanted = spool->capacity ? spool->capacity * 2 : 4096;
        const size_t capacity = cm_min_size(wanted, spool->limit);
        uint8_t *more = cm_realloc(spool->pending, capacity);

        if (!more)
            return cm_fail(err, CM_NO_MEMORY, "no memory for unpacking %zu bytes", capacity);
        spool->pending = more;
        spool->capacity = capacity;
        return CM_OK;
    }
    if (spool->fd < 0)
        CM_TRY(open_temporary(spool, err));
    return flush(spool, err);
}

enum cm_status cm_spool_write(struct cm_spool *spool, const void *bytes, size_t size,
                              struct cm_error *err)
{
    const uint8_t *from = bytes;

    while (size > 0) {
        if (spool->n_pending == spool->capacity ||
            (spool->fd >= 0 && spool->n_pending >= (size_t)PIECE))
            CM_TRY(make_room(spool, err));
        const size_t n = cm_min_size(size, spool->capacity - spool->n_pending);
        memcpy(spool->pending + spool->n_pending, from, n);
        spool->n_pending += n;
        spool->size += n;
        from += n;
        size -= n;
    }
    return CM_OK;
}

enum cm_status cm_spool_finish(struct cm_spool *spool, struct cm_str *out, struct cm_error *err)
{
    if (spool->fd < 0) {
        *out = (struct cm_str){(const char *)spool->pending, spool->size};
        return CM_OK;
    }
    CM_TRY(flush(spool, err));
    CM_TRY(cm_fd_map(spool->fd, "the temporary file for unpacking", false, &spool->mapping, err));
    cm_free(spool->pending);
    spool->pending = NULL;
    spool->capacity = 0;
    *out = (struct cm_str){(const char *)spool->mapping.data, spool->mapping.size};
    return CM_OK;
}
