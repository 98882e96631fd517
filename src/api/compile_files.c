/* The files of a compiled model: the code, its header, its weights. */
// SPDX-License-Identifier: Apache-2.0
#include "api/compiling.h"

#include "api/running.h"
#include "base/file.h"
#include "base/memory.h"

#include <string.h>

enum cm_produce_kind cm_api_produce_kind(enum cameo_emit emit)
{
    static const enum cm_produce_kind kinds[] = {
        [CAMEO_EMIT_BUFFERS] = CM_PRODUCE_BUFFERS,   [CAMEO_EMIT_LLVM] = CM_PRODUCE_LLVM,
        [CAMEO_EMIT_ASSEMBLY] = CM_PRODUCE_ASSEMBLY, [CAMEO_EMIT_OBJECT] = CM_PRODUCE_OBJECT,
        [CAMEO_EMIT_ARCHIVE] = CM_PRODUCE_ARCHIVE,   [CAMEO_EMIT_LIBRARY] = CM_PRODUCE_LIBRARY,
    };

    return kinds[emit];
}

struct cm_clang_target cm_api_compile_target(const struct cm_api_compile *c)
{
    const struct cameo_compile_options *o = &c->options;

    return (struct cm_clang_target){o->target ? o->target : "", o->cpu ? o->cpu : ""};
}

static const char *name_of(struct cm_api_compile *c, struct cm_arena *arena)
{
    const struct cm_model_file *file = c->model->file;

    if (c->options.name)
        return c->options.name;
    if (file->path.size)
        return cm_glue_name(arena, cm_str(cm_path_name(cm_arena_str(arena, file->path).data))).data;
    return cm_glue_name(arena, file->model.graph ? file->model.graph->name : CM_STR_NONE).data;
}

void cm_api_compile_tell(void *arg, const char *what)
{
    const struct cm_api_compile *c = arg;

    if (c->options.tell)
        c->options.tell(c->options.tell_arg, what);
}

enum cm_status cm_api_produce(struct cm_api_compile *c, struct cm_arena *arena,
                              struct cm_produced *out)
{
    const struct cameo_compile_options *o = &c->options;
    const struct cm_str source = c->model->file->path;
    struct cm_produce_options options = {
        .kind = cm_api_produce_kind(c->emit),
        .name = name_of(c, arena),
        .source = source.size ? cm_path_name(cm_arena_str(arena, source).data) : "a model",
        .file = o->path ? cm_path_name(o->path) : "",
        .target = cm_api_compile_target(c),
        .weights = (enum cm_glue_weights)o->weights,
        .module = c->module,
        .tell = cm_api_compile_tell,
        .tell_arg = c,
        .cancel = o->cancel ? &o->cancel->set : NULL};
    struct cm_glue_state state;
    const struct cm_tensor **initial;

    if (c->options.train_step) {
        CM_TRY(cm_api_find_state(c, arena, &state, &initial));
        options.state = &state;
        options.initial = initial;
    }
    return cm_produce(&c->program, &options, arena, out, &c->err);
}

/* ---- writing ---- */

enum { OUTPUTS = 3 };

struct output_file {
    const char *path; /* NULL: not written */
    struct cm_str bytes;
    struct cm_save save;
};

/* path with another ending. */
static const char *beside(struct cm_arena *arena, const char *path, const char *ending)
{
    const char *name = cm_path_name(path), *dot = strrchr(name, '.');
    const size_t size = dot && dot != name ? (size_t)(dot - path) : strlen(path);

    return cm_arena_printf(arena, "%.*s%s", (int)size, path, ending).data;
}

static bool has_weights_file(const struct cm_api_compile *c, const struct cm_produced *produced)
{
    return c->emit >= CAMEO_EMIT_OBJECT && c->options.weights == CAMEO_WEIGHTS_BESIDE &&
           produced->weights.size;
}

/* All are written before the first takes its name, and then it is too late to cancel. */
static enum cm_status write_files(struct output_file *files, size_t count,
                                  const atomic_bool *cancel, struct cm_error *err)
{
    struct cm_save *saves[OUTPUTS];
    size_t begun = 0;

    for (size_t i = 0; i < count; i++) {
        if (!files[i].path)
            continue;
        CM_TRY(cm_save_begin(&files[i].save, files[i].path, err));
        files[i].save.cancel = cancel;
        CM_TRY(cm_save_write(&files[i].save, files[i].bytes.data, files[i].bytes.size, err));
        saves[begun++] = &files[i].save;
    }
    return cm_save_commit_all(saves, begun, err);
}

enum cm_status cm_api_write_compiled(struct cm_api_compile *c, const struct cm_produced *produced,
                                     struct cm_arena *arena)
{
    const char *path = c->options.path;
    struct output_file files[OUTPUTS] = {
        {.path = has_weights_file(c, produced) ? beside(arena, path, ".weights") : NULL,
         .bytes = produced->weights},
        {.path = c->emit >= CAMEO_EMIT_OBJECT ? beside(arena, path, ".h") : NULL,
         .bytes = produced->header},
        {.path = path, .bytes = produced->bytes},
    };
    const enum cm_status status = write_files(
        files, CM_COUNT(files), c->options.cancel ? &c->options.cancel->set : NULL, &c->err);

    for (size_t i = 0; i < CM_COUNT(files); i++)
        cm_save_abandon(&files[i].save);
    return status;
}

/* ---- telling ---- */

/* A report and what its texts lie in. */
struct report_memory {
    struct cameo_compilation report;
    struct cm_arena arena;
};

struct report_call {
    const struct cm_api_compile *compile;
    const struct cm_produced *produced;
    struct report_memory *memory;
};

static enum cm_status report_guarded(struct cm_guard *guard, void *arg)
{
    const struct report_call *call = arg;
    const struct cm_produced *produced = call->produced;
    const struct cm_api_compile *c = call->compile;
    struct cm_arena *arena = &call->memory->arena;
    const bool object = c->emit >= CAMEO_EMIT_OBJECT;

    cm_arena_init(arena, guard);
    struct cameo_text *needs = CM_NEW_ARRAY(arena, struct cameo_text, produced->n_needs);
    for (size_t i = 0; i < produced->n_needs; i++)
        needs[i] = cm_api_text(arena, produced->needs[i]);
    call->memory->report = (struct cameo_compilation){
        .path = cm_arena_str(arena, cm_str(c->options.path)).data,
        .header_path = object ? beside(arena, c->options.path, ".h") : "",
        .weights_path =
            has_weights_file(c, produced) ? beside(arena, c->options.path, ".weights") : "",
        .prototype = cm_arena_str(arena, produced->prototype).data,
        .emit = c->emit,
        .code_bytes = produced->code_bytes,
        .weight_bytes = produced->weights.size,
        .arena_bytes = produced->arena_bytes,
        .state_bytes = produced->state_bytes,
        .arena_is_fixed = produced->arena_is_fixed,
        .needs = needs,
        .need_count = produced->n_needs};
    return CM_OK;
}

enum cm_status cm_api_compile_report(struct cm_api_compile *c, const struct cm_produced *produced)
{
    struct report_call call = {c, produced, cm_calloc(1, sizeof *call.memory)};

    if (!call.memory)
        return cm_fail(&c->err, CM_NO_MEMORY, "no memory for a report");
    const enum cm_status status = cm_guarded(0, &c->err, report_guarded, &call);
    if (status)
        cm_free(call.memory);
    else
        c->report = &call.memory->report;
    return status;
}

void cameo_compilation_free(struct cameo_compilation *report)
{
    struct report_memory *m = (struct report_memory *)(void *)report;

    if (!m)
        return;
    cm_arena_release(&m->arena);
    cm_free(m);
}
