/* A whole run and its checkpoints, for the loop of train/. */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"

#include "base/diagnostics.h"
#include "train/checkpoint.h"
#include "train/checkpoint_folder.h"
#include "train/training_loop.h"

#include <assert.h>

static_assert((int)CAMEO_AFTER_STEP == (int)CM_AFTER_STEP &&
                  (int)CAMEO_AFTER_EPOCH == (int)CM_AFTER_EPOCH &&
                  (int)CAMEO_AFTER_CHECKPOINT == (int)CM_AFTER_CHECKPOINT &&
                  (int)CAMEO_AT_START == (int)CM_AT_START && (int)CAMEO_AT_END == (int)CM_AT_END &&
                  (int)CAMEO_NOT_WRITTEN == (int)CM_NOT_WRITTEN,
              "public numbers are the library's own");

static void log_checkpoint(const struct cameo_trainer *trainer, const char *path)
{
    cm_api_log(trainer->model, CAMEO_LOG_INFO, "checkpoint '%s' is written after step %llu", path,
               (unsigned long long)cameo_trainer_steps(trainer));
}

static enum cm_status take_notes(struct cm_arena *arena, const struct cameo_note *from,
                                 size_t count, struct cm_notes *to, struct cm_error *err)
{
    for (size_t i = 0; from && i < count; i++) {
        struct cameo_note note = CAMEO_NOTE_INIT;

        CM_TRY(cm_api_item(&note, sizeof note, from, i, err));
        *CM_PUSH(arena, to) =
            (struct cm_note){{note.key.data, note.key.size}, {note.value.data, note.value.size}};
    }
    return CM_OK;
}

static enum cm_status take_resuming(const struct cameo_resume_options *given,
                                    struct cm_resume_options *out, struct cm_error *err)
{
    struct cameo_resume_options all = CAMEO_RESUME_OPTIONS_INIT;

    CM_TRY(cm_api_options(&all, sizeof all, given, err));
    *out = (struct cm_resume_options){
        .anyway = all.anyway, .difference = all.difference, .difference_arg = all.difference_arg};
    return CM_OK;
}

/* ---- the run ---- */

struct run_call {
    struct cameo_trainer *trainer;
    struct cameo_batches *batches;
    struct cameo_loop_options options;
    struct cm_loop_result result;
    struct cm_error err;
};

static bool pass_on(void *arg, const struct cm_loop_progress *at)
{
    const struct run_call *call = arg;
    const struct cameo_measure measure =
        at->measure ? cm_api_measure(at->measure) : (struct cameo_measure)CAMEO_MEASURE_INIT;
    const struct cameo_progress progress = {.moment = (enum cameo_moment)at->moment,
                                            .step = at->step,
                                            .steps = at->steps,
                                            .epoch = at->epoch,
                                            .scalars = at->scalars,
                                            .loss = at->loss,
                                            .measure = at->measure ? &measure : NULL,
                                            .best = at->best,
                                            .checkpoint = at->checkpoint,
                                            .means = at->means,
                                            .best_loss = at->best_loss,
                                            .unwritten = at->unwritten,
                                            .problem = at->problem};

    if (at->moment == CM_AFTER_CHECKPOINT)
        log_checkpoint(call->trainer, at->checkpoint);
    return !call->options.progress || call->options.progress(call->options.progress_arg, &progress);
}

static enum cm_status save_best(void *arg, const char *path, struct cm_error *err)
{
    struct cameo_error why;
    const enum cameo_status status = cameo_trainer_save(arg, path, NULL, NULL, &why);

    return status ? cm_fail(err, (enum cm_status)status, "%s", why.message) : CM_OK;
}

static struct cm_loop_options loop_options(const struct cameo_loop_options *o)
{
    return (struct cm_loop_options){.epochs = o->epochs,
                                    .steps = o->steps,
                                    .further = o->further,
                                    .validation = o->validation ? o->validation->feeder : NULL,
                                    .patience = o->patience,
                                    .best = o->best,
                                    .checkpoint = o->checkpoint,
                                    .checkpoint_every = o->checkpoint_every,
                                    .keep = o->keep,
                                    .resume = o->resume};
}

static enum cm_status run_guarded(struct cm_guard *guard, void *arg)
{
    struct run_call *call = arg;
    const struct cameo_loop_options *o = &call->options;
    struct cm_loop_options loop = loop_options(o);
    struct cm_arena arena;
    struct cm_findings found = {.arena = &arena};

    loop.save = save_best;
    loop.save_arg = call->trainer;
    loop.progress = pass_on;
    loop.progress_arg = call;
    loop.findings = &found;
    CM_TRY(take_resuming(o->resuming, &loop.resuming, &call->err));
    cm_arena_init(&arena, guard);
    enum cm_status status = take_notes(&arena, o->conditions, o->condition_count,
                                       &loop.resuming.conditions, &call->err);
    if (status == CM_OK)
        status = cm_training_run(&arena, call->trainer->trainer, call->batches->feeder, &loop,
                                 &call->result, &call->err);
    if (found.violations)
        status = cm_api_refuse(call->trainer->model, &found, o->findings, &call->err);
    cm_arena_release(&arena);
    return status;
}

struct loop_check {
    struct cameo_loop_options options;
    bool validates;
    struct cameo_findings **findings;
    struct cm_error err;
};

static enum cm_status check_guarded(struct cm_guard *guard, void *arg)
{
    struct loop_check *call = arg;
    const struct cm_loop_options loop = loop_options(&call->options);
    struct cm_arena arena;
    struct cm_findings found = {.arena = &arena};

    cm_arena_init(&arena, guard);
    cm_loop_check(&loop, call->validates || loop.validation, &found);
    const enum cm_status status = cm_api_refuse(NULL, &found, call->findings, &call->err);
    cm_arena_release(&arena);
    return status;
}

enum cameo_status cameo_loop_check(const struct cameo_loop_options *options, bool validates,
                                   struct cameo_findings **findings, struct cameo_error *err)
{
    struct loop_check call = {CAMEO_LOOP_OPTIONS_INIT, validates, findings, {0}};
    enum cm_status status = cm_api_options(&call.options, sizeof call.options, options, &call.err);

    if (findings)
        *findings = NULL;
    if (status == CM_OK)
        status = cm_guarded(0, &call.err, check_guarded, &call);
    return cm_api_done(status, &call.err, err);
}

enum cameo_status cameo_trainer_run(struct cameo_trainer *trainer, struct cameo_batches *batches,
                                    const struct cameo_loop_options *options,
                                    struct cameo_loop_result *result, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED(batches, err);
    struct run_call call = {
        .trainer = trainer, .batches = batches, .options = CAMEO_LOOP_OPTIONS_INIT};
    enum cm_status status = cm_api_check_out(result, &call.err);

    if (status == CM_OK)
        status = cm_api_options(&call.options, sizeof call.options, options, &call.err);
    if (status == CM_OK && call.options.findings)
        *call.options.findings = NULL;
    if (status == CM_OK && call.options.validation)
        status = cm_api_prepare_evaluation(trainer, &call.err);
    if (status)
        return cm_api_done(status, &call.err, err);
    status = cm_guarded(0, &call.err, run_guarded, &call);
    const struct cameo_loop_result all = {.loss = call.result.loss,
                                          .best_loss = call.result.best_loss,
                                          .stopped = call.result.stopped,
                                          .out_of_patience = call.result.out_of_patience,
                                          .first_loss = call.result.first_loss,
                                          .finished = call.result.finished,
                                          .unwritten = call.result.unwritten,
                                          .best_step = call.result.best_step,
                                          .best_epoch = call.result.best_epoch};
    if (result)
        cm_api_give(result, &all, sizeof all);
    return cm_api_done(status, &call.err, err);
}

/* ---- checkpoints ---- */

struct checkpoint_call {
    struct cameo_trainer *trainer;
    const char *path;
    const struct cameo_note *notes;
    size_t n_notes;
    cameo_note_fn *note;
    void *arg;
    struct cm_resume_options resuming;
    struct cm_error err;
};

typedef enum cm_status checkpoint_fn(struct checkpoint_call *call, struct cm_arena *scratch);

static enum cm_status write_checkpoint(struct checkpoint_call *call, struct cm_arena *scratch)
{
    struct cm_checkpoint file = {.path = call->path};

    CM_TRY(take_notes(scratch, call->notes, call->n_notes, &file.notes, &call->err));
    return cm_checkpoint_write(&file, call->trainer->trainer, scratch, &call->err);
}

static enum cm_status resume(struct checkpoint_call *call, struct cm_arena *scratch)
{
    struct cm_checkpoint file;

    CM_TRY(cm_checkpoint_open(scratch, call->path, &file, &call->err));
    return cm_checkpoint_resume(&file, &call->resuming, call->trainer->trainer, scratch,
                                &call->err);
}

static enum cm_status read_notes(struct checkpoint_call *call, struct cm_arena *scratch)
{
    struct cm_checkpoint file;

    CM_TRY(cm_checkpoint_open(scratch, call->path, &file, &call->err));
    for (size_t i = 0; i < file.notes.count; i++)
        call->note(call->arg, cm_str_text(file.notes.items[i].key),
                   cm_str_text(file.notes.items[i].value));
    return CM_OK;
}

static enum cm_status in_scratch(struct cm_guard *guard, void *arg)
{
    struct checkpoint_call *call = arg;
    checkpoint_fn *fn = call->note ? read_notes : call->notes ? write_checkpoint : resume;
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    const enum cm_status status = fn(call, &scratch);
    cm_arena_release(&scratch);
    return status;
}

static enum cameo_status checkpoint(struct checkpoint_call *call, struct cameo_error *err)
{
    const enum cm_status status = *call->path
                                      ? cm_guarded(0, &call->err, in_scratch, call)
                                      : cm_fail(&call->err, CM_BAD_ARGUMENT, "no path was given");

    return cm_api_done(status, &call->err, err);
}

enum cameo_status cameo_checkpoint_save(struct cameo_trainer *trainer, const char *path,
                                        const struct cameo_note *notes, size_t note_count,
                                        struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED(path, err);
    CM_API_NEED_ALL(notes, note_count, err);
    static const struct cameo_note none;
    struct checkpoint_call call = {.trainer = trainer,
                                   .path = path,
                                   .notes = notes ? notes : &none,
                                   .n_notes = notes ? note_count : 0};
    const enum cameo_status status = checkpoint(&call, err);

    if (status == CAMEO_OK)
        log_checkpoint(trainer, path);
    return status;
}

enum cameo_status cameo_checkpoint_resume(struct cameo_trainer *trainer, const char *path,
                                          const struct cameo_resume_options *options,
                                          struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED(path, err);
    struct checkpoint_call call = {.trainer = trainer, .path = path};
    const enum cm_status status = take_resuming(options, &call.resuming, &call.err);

    return status ? cm_api_done(status, &call.err, err) : checkpoint(&call, err);
}

enum cameo_status cameo_checkpoint_notes(const char *path, cameo_note_fn *note, void *arg,
                                         struct cameo_error *err)
{
    CM_API_NEED(path, err);
    CM_API_NEED(note, err);
    struct checkpoint_call call = {.path = path, .note = note, .arg = arg};

    return checkpoint(&call, err);
}

enum cameo_status cameo_checkpoint_newest(const char *folder, char *path, size_t size,
                                          struct cameo_error *err)
{
    CM_API_NEED(folder, err);
    CM_API_NEED(path, err);
    struct cm_error reason = {0};
    uint64_t step;
    bool found;
    enum cm_status status = cm_checkpoint_newest(folder, &found, &step, &reason);

    if (status == CM_OK && size < (found ? strlen(folder) + CM_CHECKPOINT_NAME_SIZE : 1))
        status = cm_fail(&reason, CM_BAD_ARGUMENT, "the path needs more than %zu bytes", size);
    if (size)
        *path = 0;
    if (status == CM_OK && found)
        cm_checkpoint_path(folder, step, path);
    return cm_api_done(status, &reason, err);
}
