/* Opening and freeing models. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/api.h"

#include "base/memory.h"

#include <errno.h>

struct load_call {
    struct cameo_model *model;
    const char *path; /* NULL: from bytes */
    struct cm_str bytes;
    struct cameo_load_options options;
    struct cm_error err;
};

static enum cm_status open_file(struct load_call *call)
{
    struct cameo_model *model = call->model;
    const struct cm_load_options options = {
        .format = (enum cm_model_format)call->options.format,
        .copy = call->options.copy_files,
        .allow_links = call->options.allow_links,
        .mlir = &cm_api_mlir,
    };

    if (call->path)
        return cm_model_open(&model->arena, call->path, &options, &model->file, &call->err);
    if (!call->options.borrow_bytes)
        call->bytes = cm_arena_str(&model->arena, call->bytes);
    return cm_model_parse(&model->arena, call->bytes, &options, &model->file, &call->err);
}

static enum cm_status load_guarded(struct cm_guard *guard, void *arg)
{
    struct load_call *call = arg;
    struct cm_arena scratch;

    cm_arena_init(&call->model->arena, guard);
    CM_TRY(open_file(call));
    cm_arena_init(&scratch, guard);
    const enum cm_status status = cm_describe_model(call->model, &scratch, &call->err);
    cm_arena_release(&scratch);
    return status;
}

static enum cm_status load(struct load_call *call, const struct cameo_load_options *options,
                           struct cameo_model **out)
{
    call->options = (struct cameo_load_options)CAMEO_LOAD_OPTIONS_INIT;
    CM_TRY(cm_api_options(&call->options, sizeof call->options, options, &call->err));
    if ((unsigned)call->options.format > CAMEO_FORMAT_MLIR_GENERIC)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "format %d does not exist",
                       (int)call->options.format);
    call->model = cm_calloc(1, sizeof *call->model);
    if (!call->model)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for a model");
    if (!cm_api_lock_init(&call->model->lock)) {
        cm_free(call->model);
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for a lock");
    }
    const enum cm_status status =
        cm_guarded(call->options.memory_limit, &call->err, load_guarded, call);
    if (status)
        cameo_model_free(call->model);
    else
        *out = call->model;
    return status;
}

enum cameo_status cameo_model_load(const char *path, const struct cameo_load_options *options,
                                   struct cameo_model **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct load_call call = {.path = path};

    *out = NULL;
    if (!path)
        return cm_api_done(cm_fail(&call.err, CM_BAD_ARGUMENT, "no path was given"), &call.err,
                           err);
    const enum cm_status status = load(&call, options, out);
    return cm_api_done(status, &call.err, err);
}

enum cameo_status cameo_model_load_memory(const void *bytes, size_t size,
                                          const struct cameo_load_options *options,
                                          struct cameo_model **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct load_call call = {.bytes = {bytes, size}};

    *out = NULL;
    if (!bytes && size)
        return cm_api_done(cm_fail(&call.err, CM_BAD_ARGUMENT, "no bytes were given"), &call.err,
                           err);
    const enum cm_status status = load(&call, options, out);
    return cm_api_done(status, &call.err, err);
}

void cameo_model_free(struct cameo_model *model)
{
    if (!model)
        return;
    cm_arena_release(&model->arena);
    pthread_mutex_destroy(&model->lock);
    cm_free(model);
}
