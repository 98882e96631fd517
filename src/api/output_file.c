/* Files that a caller writes: whole or not at all, or record by record. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/unfinished.h"

struct cameo_file {
    bool grows;
    struct cm_save whole;
    struct cm_stream stream;
};

static enum cm_status open_file(struct cameo_file *file, const char *path,
                                const struct cameo_file_options *options, struct cm_error *err)
{
    struct cameo_file_options all = CAMEO_FILE_OPTIONS_INIT;

    CM_TRY(cm_api_options(&all, sizeof all, options, err));
    file->grows = all.grows;
    return all.grows ? cm_stream_open(&file->stream, path, all.keep, err)
                     : cm_save_begin_any(&file->whole, path, err);
}

enum cameo_status cameo_file_new(const char *path, const struct cameo_file_options *options,
                                 struct cameo_file **out, struct cameo_error *err)
{
    CM_API_NEED(path, err);
    CM_API_NEED(out, err);
    struct cm_error reason = {0};
    struct cameo_file *file = cm_calloc(1, sizeof *file);
    const enum cm_status status = file ? open_file(file, path, options, &reason)
                                       : cm_fail(&reason, CM_NO_MEMORY, "no memory for a file");

    if (status) {
        cm_free(file);
        file = NULL;
    }
    *out = file;
    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_file_write(struct cameo_file *file, const void *bytes, size_t size,
                                   struct cameo_error *err)
{
    CM_API_NEED(file, err);
    CM_API_NEED_ALL(bytes, size, err);
    struct cm_error reason = {0};
    const enum cm_status status = file->grows
                                      ? cm_stream_append(&file->stream, bytes, size, &reason)
                                      : cm_save_write(&file->whole, bytes, size, &reason);

    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_file_commit(struct cameo_file *file, struct cameo_error *err)
{
    CM_API_NEED(file, err);
    struct cm_error reason = {0};

    return cm_api_done(file->grows ? cm_stream_finish(&file->stream, &reason)
                                   : cm_save_commit(&file->whole, &reason),
                       &reason, err);
}

void cameo_remove_unfinished(void)
{
    cm_unfinished_remove();
}

void cameo_file_free(struct cameo_file *file)
{
    if (!file)
        return;
    cm_save_abandon(&file->whole);
    cm_stream_close(&file->stream);
    cm_free(file);
}
