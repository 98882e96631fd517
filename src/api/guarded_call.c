/* What all public functions share: their arguments checked, options copied, the lock of a model,
 * the guard, scratch memory, and the common way out. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/api.h"

#include "base/memory.h"

#include <errno.h>

/* ---- arguments ---- */

enum cameo_status cm_api_done(enum cm_status status, const struct cm_error *from,
                              struct cameo_error *to)
{
    if (to) {
        to->status = (enum cameo_status)status;
        snprintf(to->message, sizeof to->message, "%s", status == CM_OK ? "" : from->text);
    }
    return (enum cameo_status)status;
}

enum cameo_status cm_api_missing(const char *argument, struct cameo_error *to)
{
    struct cm_error err = {0};

    return cm_api_done(cm_fail(&err, CM_BAD_ARGUMENT, "argument '%s' is NULL", argument), &err, to);
}

enum cm_status cm_api_options(void *out, size_t size, const void *from, struct cm_error *err)
{
    size_t given;

    if (!from)
        return CM_OK;
    memcpy(&given, from, sizeof given);
    if (given <= sizeof given)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a struct has struct_size %zu; make it with its _INIT macro", given);
    memcpy(out, from, given < size ? given : size);
    return CM_OK;
}

enum cm_status cm_api_check_out(const void *out, struct cm_error *err)
{
    size_t given = SIZE_MAX;

    if (out)
        memcpy(&given, out, sizeof given);
    if (given <= sizeof given)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a struct for results has struct_size %zu; make it with its _INIT macro",
                       given);
    return CM_OK;
}

void cm_api_give(void *out, const void *all, size_t size)
{
    size_t given;

    memcpy(&given, out, sizeof given);
    memcpy((char *)out + sizeof given, (const char *)all + sizeof given,
           (given < size ? given : size) - sizeof given);
}

/* ---- under a guard ---- */

bool cm_api_lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;

    if (pthread_mutexattr_init(&kind) != 0)
        return false;
    const bool made = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK) == 0 &&
                      pthread_mutex_init(lock, &kind) == 0;
    pthread_mutexattr_destroy(&kind);
    return made;
}

struct job {
    const struct cameo_model *model; /* or NULL */
    cm_guarded_fn *guarded;          /* or */
    cm_api_fn *fn;
    void *call;
    struct cm_error *err;
};

/* Handles come from cm_calloc, so casting const away is sound. */
static struct cameo_model *own(const struct cameo_model *model)
{
    return (struct cameo_model *)(uintptr_t)model;
}

static enum cm_status do_job(struct cm_guard *guard, void *arg)
{
    const struct job *job = arg;
    struct cm_arena scratch;

    if (job->model)
        cm_arena_lend(&own(job->model)->arena, guard);
    if (job->guarded)
        return job->guarded(guard, job->call);
    cm_arena_init(&scratch, guard);
    const enum cm_status status = job->fn(job->call, &scratch, job->err);
    cm_arena_release(&scratch);
    return status;
}

static enum cm_status run(struct job *job)
{
    if (!job->model)
        return cm_guarded(0, job->err, do_job, job);
    if (pthread_mutex_lock(&own(job->model)->lock) == EDEADLK)
        return cm_fail(job->err, CM_BAD_ARGUMENT,
                       "the model is in use by the call that this function is called from");
    const enum cm_status status = cm_guarded(0, job->err, do_job, job);
    pthread_mutex_unlock(&own(job->model)->lock);
    return status;
}

enum cm_status cm_api_locked(const struct cameo_model *model, cm_guarded_fn *fn, void *arg,
                             struct cm_error *err)
{
    struct job job = {.model = model, .guarded = fn, .call = arg, .err = err};

    return run(&job);
}

enum cm_status cm_api_guarded(const struct cameo_model *model, cm_api_fn *fn, void *call,
                              struct cm_error *err)
{
    struct job job = {.model = model, .fn = fn, .call = call, .err = err};

    return run(&job);
}

enum cameo_status cm_api_call(const struct cameo_model *model, cm_api_fn *fn, void *call,
                              struct cameo_error *err)
{
    struct cm_error why = {0};
    const enum cm_status status = cm_api_guarded(model, fn, call, &why);

    return cm_api_done(status, &why, err);
}

enum cm_status cm_api_about(const struct cameo_model *model, enum cm_status status,
                            struct cm_error *err)
{
    const struct cm_str path = model->file->path;
    const bool about = status == CM_BAD_MODEL || status == CM_UNSUPPORTED || status == CM_LIMIT ||
                       status == CM_NOT_FOUND;

    return about && path.size ? cm_error_context(err, status, "%.*s", CM_STR_FMT(path)) : status;
}

/* ---- models that change, models that are made ---- */

static enum cm_status describe_again(struct cameo_model *model, struct cm_arena *scratch,
                                     struct cm_error *err)
{
    model->summary = (struct cameo_summary){0};
    model->by_name = (struct cm_map){0};
    model->prepared = NULL;
    model->graphs = NULL;
    model->inputs = model->outputs = NULL;
    return cm_describe_model(model, scratch, err);
}

struct change {
    struct cameo_model *model;
    cm_api_fn *fn;
    void *call;
};

static enum cm_status change(void *call, struct cm_arena *scratch, struct cm_error *err)
{
    const struct change *c = call;

    CM_TRY(c->fn(c->call, scratch, err));
    return describe_again(c->model, scratch, err);
}

enum cm_status cm_api_change(struct cameo_model *model, cm_api_fn *fn, void *call,
                             struct cm_error *err)
{
    struct change c = {model, fn, call};

    return cm_api_guarded(model, change, &c, err);
}

enum cameo_status cm_api_change_call(struct cameo_model *model, cm_api_fn *fn, void *call,
                                     struct cameo_error *err)
{
    struct cm_error why = {0};
    const enum cm_status status = cm_api_change(model, fn, call, &why);

    return cm_api_done(status, &why, err);
}

struct derivation {
    struct cameo_model *made;
    cm_api_derive_fn *fn;
    void *call;
    struct cm_error *err;
};

static enum cm_status derive(struct cm_guard *guard, void *arg)
{
    const struct derivation *d = arg;
    struct cm_arena scratch;

    cm_arena_init(&d->made->arena, guard);
    cm_arena_init(&scratch, guard);
    enum cm_status status = d->fn(d->call, d->made, &scratch, d->err);
    cm_arena_release(&scratch); /* puts back what was exchanged for the call */
    if (status)
        return status;
    cm_arena_init(&scratch, guard);
    status = describe_again(d->made, &scratch, d->err);
    cm_arena_release(&scratch);
    return status;
}

enum cm_status cm_api_derive(const struct cameo_model *from, cm_api_derive_fn *fn, void *call,
                             struct cameo_model **out, struct cm_error *err)
{
    struct cameo_model *made = cm_calloc(1, sizeof *made);
    struct derivation d = {made, fn, call, err};

    *out = NULL;
    if (!made || !cm_api_lock_init(&made->lock)) {
        cm_free(made);
        return cm_fail(err, CM_NO_MEMORY, "no memory for a model");
    }
    made->log = from->log;
    const enum cm_status status = cm_api_locked(from, derive, &d, err);
    if (status) {
        cameo_model_free(made);
        return status;
    }
    made->file->registry = from->file->registry;
    *out = made;
    return CM_OK;
}

enum cameo_status cm_api_derive_call(const struct cameo_model *from, cm_api_derive_fn *fn,
                                     void *call, struct cameo_model **out, struct cameo_error *err)
{
    struct cm_error why = {0};
    const enum cm_status status = cm_api_derive(from, fn, call, out, &why);

    return cm_api_done(status, &why, err);
}
