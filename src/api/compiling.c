/* From a model to compiled files: the training step where that is asked for, core operators, a
 * program, code. */
// SPDX-License-Identifier: Apache-2.0
#include "api/compiling.h"

#include "api/running.h"
#include "base/clock.h"
#include "base/diagnostics.h"
#include "base/file.h"
#include "base/memory.h"
#include "graph/import.h"
#include "lower/lower.h"
#include "mlir/toolchain/open.h"
#include "train/step.h"

/* ---- what is asked for ---- */

static const struct ending {
    const char *text;
    enum cameo_emit emit;
} endings[] = {
    {".o", CAMEO_EMIT_OBJECT},  {".a", CAMEO_EMIT_ARCHIVE},    {".so", CAMEO_EMIT_LIBRARY},
    {".ll", CAMEO_EMIT_LLVM},   {".wasm", CAMEO_EMIT_LIBRARY}, {".s", CAMEO_EMIT_ASSEMBLY},
    {".mlir", CAMEO_EMIT_ONNX},
};

static enum cm_status choose_emit(struct cm_api_compile *c)
{
    const struct cameo_compile_options *o = &c->options;
    const struct cm_str path = cm_str(o->path);
    enum cameo_emit named = CAMEO_EMIT_BY_NAME;

    c->emit = o->emit;
    for (size_t i = 0; i < CM_COUNT(endings); i++)
        if (path.size > strlen(endings[i].text) && cm_str_ends(path, endings[i].text))
            named = endings[i].emit;
    if (c->emit == CAMEO_EMIT_BY_NAME)
        c->emit = named;
    if (c->emit == CAMEO_EMIT_BY_NAME)
        return cm_fail(&c->err, CM_BAD_ARGUMENT,
                       "%.300s: what to write is not clear from the ending of its name; endings "
                       "are .so, .o, .a, .wasm, .ll, .s and .mlir",
                       o->path ? o->path : "the text");
    /* An archive is an object to those who ask for one, and the other way round. */
    if (c->emit == CAMEO_EMIT_OBJECT && named == CAMEO_EMIT_ARCHIVE)
        c->emit = named;
    const bool is_mlir = named == CAMEO_EMIT_ONNX && c->emit <= CAMEO_EMIT_BUFFERS;
    if (named != CAMEO_EMIT_BY_NAME && named != c->emit && !is_mlir)
        return cm_fail(&c->err, CM_BAD_ARGUMENT,
                       "%.300s: the ending of its name does not fit what is to be written",
                       o->path);
    return CM_OK;
}

/* WebAssembly has an ending and a target of its own, which go together. */
static enum cm_status choose_target(struct cm_api_compile *c)
{
    struct cameo_compile_options *o = &c->options;
    const struct cm_str path = cm_str(o->path);
    const bool by_name = cm_str_ends(path, ".wasm");

    if (by_name && !o->target)
        o->target = "wasm32";
    const bool by_target = o->target && cm_str_starts(cm_str(o->target), "wasm");
    if (c->emit != CAMEO_EMIT_LIBRARY || by_name == by_target)
        return CM_OK;
    return cm_fail(&c->err, CM_BAD_ARGUMENT,
                   by_name ? "%.300s: a .wasm file is for the target wasm32, not for %.100s"
                           : "%.300s: what is written for %.100s is a .wasm file",
                   o->path ? o->path : "the library", o->target ? o->target : "this machine");
}

static enum cm_status check_options(struct cm_api_compile *c,
                                    const struct cameo_compile_options *given)
{
    struct cameo_compile_options *o = &c->options;

    *o = (struct cameo_compile_options)CAMEO_COMPILE_OPTIONS_INIT;
    CM_TRY(cm_api_options(o, sizeof *o, given, &c->err));
    if (o->findings)
        *o->findings = NULL;
    if (!o->path && !o->write)
        return cm_fail(&c->err, CM_BAD_ARGUMENT, "there is neither a path nor a writer");
    if ((unsigned)o->emit > CAMEO_EMIT_LIBRARY || (unsigned)o->weights > CAMEO_WEIGHTS_CALLER)
        return cm_fail(&c->err, CM_BAD_ARGUMENT, "emit %d or weights %d does not exist",
                       (int)o->emit, (int)o->weights);
    if (o->name && !cm_glue_name_is_valid(o->name))
        return cm_fail(&c->err, CM_BAD_ARGUMENT,
                       "'%.100s' is not a C identifier of at most 100 letters", o->name);
    if (o->path && !*o->path)
        return cm_fail(&c->err, CM_BAD_ARGUMENT, "the name of the file to write is empty");
    if (o->initialize && !o->train_step)
        return cm_fail(&c->err, CM_BAD_ARGUMENT,
                       "initialize is for training steps, and train_step is not set");
    CM_TRY(choose_emit(c));
    CM_TRY(choose_target(c));
    if (c->emit >= CAMEO_EMIT_OBJECT &&
        (cm_str_ends(cm_str(o->path), ".h") || cm_str_ends(cm_str(o->path), ".weights")))
        return cm_fail(&c->err, CM_BAD_ARGUMENT,
                       "%.300s: the code cannot go by the name of its header or of its weights",
                       o->path);
    if (!o->path && c->emit >= CAMEO_EMIT_OBJECT)
        return cm_fail(&c->err, CM_BAD_ARGUMENT, "an object needs a path");
    return CM_OK;
}

/* Is everything there that the work ahead needs? */
static enum cm_status check_tools(struct cm_guard *guard, void *arg)
{
    struct cm_api_compile *c = arg;
    const struct cm_clang_target target = cm_api_compile_target(c);
    struct cm_arena arena;

    if (c->emit <= CAMEO_EMIT_LINALG)
        return CM_OK;
    CM_TRY(cm_mlir_open(&c->module, &c->err));
    cm_arena_init(&arena, guard);
    const enum cm_status status =
        cm_produce_check(cm_api_produce_kind(c->emit), &target, &arena, &c->err);
    cm_arena_release(&arena);
    return status;
}

/* ---- the program ---- */

static enum cm_status next_step(struct cm_api_compile *c, const char *what)
{
    if (c->options.cancel && cm_cancelled(&c->options.cancel->set))
        return cm_fail(&c->err, CM_CANCELLED, "it was cancelled before %s", what);
    cm_api_compile_tell(c, what);
    return CM_OK;
}

/* Outputs are called what the model calls them: the value behind one may be a constant by now, or
 * stand for two. */
static enum cm_status name_outputs(struct cm_api_compile *c, const struct cm_str *names,
                                   size_t n_names, struct cm_arena *arena)
{
    const size_t count = c->program.n_outputs;
    struct cm_mlir_port *ports = CM_NEW_ARRAY(arena, struct cm_mlir_port, count);

    if (count != n_names)
        return cm_fail(&c->err, CM_BAD_MODEL, "the program has %zu outputs, not %zu", count,
                       n_names);
    if (!count)
        return cm_fail(&c->err, CM_UNSUPPORTED,
                       "the model has no outputs: there is nothing to run");
    for (size_t i = 0; i < count; i++) {
        ports[i] = c->program.outputs[i];
        ports[i].name = names[i];
        for (size_t k = 0; k < c->program.n_inputs; k++)
            if (cm_str_equal(ports[i].name, c->program.inputs[k].name))
                return cm_fail(&c->err, CM_UNSUPPORTED,
                               "output '%.*s' is an input as well: a copy of it would need a name "
                               "of its own",
                               CM_STR_FMT(ports[i].name));
    }
    c->program.outputs = ports;
    return CM_OK;
}

/* What code is made of: the model or its training step. */
static enum cm_status make_graph(struct cm_api_compile *c, struct cm_arena *arena,
                                 struct cm_findings *findings, struct cm_graph **out)
{
    /* Weights that old files list as inputs are weights all the same. */
    const struct cm_import_options import = {
        .constant_defaults = true, .ranks_only = true, .findings = findings};
    struct cm_model_file *file = c->model->file;
    const struct cm_registry *registry = cm_api_operators(NULL, file);

    if (c->options.train_step) {
        CM_TRY(cm_api_today(file, arena, &file, &c->err));
        return cm_step_graph(arena, file, out, &c->err);
    }
    if (!registry)
        return cm_fail(&c->err, CM_NO_MEMORY, "no memory for the operators");
    const struct cm_module_options options = {.registry = registry, .files = file->files};
    return cm_lower_import_as(cm_module_new(arena, &options), &file->model, &import, out, &c->err);
}

static enum cm_status make_program(struct cm_api_compile *c, struct cm_arena *arena)
{
    struct cm_findings findings = {
        .arena = arena, .rule = "compile", .what = "the model cannot be compiled"};
    struct cm_api_origins origins;
    const struct cm_lower_options lower = {
        .table = &cm_compile_passes, .pass = {.keeps = cm_mlir_takes_whole, .findings = &findings}};
    struct cm_mlir_lower_options options = {.is_pure = c->options.pure,
                                            .keeps_weights =
                                                c->options.weights != CAMEO_WEIGHTS_INSIDE,
                                            .findings = &findings,
                                            .origin = cm_api_origin,
                                            .origin_arg = &origins};
    struct cm_graph *graph = NULL;

    options.n_entries = cm_api_step_entries(c, arena, &options.entries);
    cm_api_list_origins(&origins, &c->model->file->model, arena);
    CM_TRY(next_step(c, "lowering to linalg"));
    enum cm_status status = make_graph(c, arena, &findings, &graph);
    const size_t n_names = status == CM_OK ? graph->n_outputs : 0;
    struct cm_str *names = CM_NEW_ARRAY(arena, struct cm_str, n_names);
    for (size_t i = 0; i < n_names; i++)
        names[i] = cm_value_get(graph->module, graph->outputs[i].value)->name;
    if (status == CM_OK)
        status = cm_lower_graph(graph, &lower, &c->err);
    if (status == CM_OK)
        status = cm_mlir_lower(graph, &options, arena, &c->program, &c->err);
    if (status && findings.violations)
        return cm_api_refuse(c->model, &findings, c->options.findings, &c->err);
    CM_TRY(status);
    return name_outputs(c, names, n_names, arena);
}

/* ---- the whole ---- */

static enum cm_status write_text(struct cm_api_compile *c, struct cm_str text)
{
    if (c->options.write(c->options.write_to, text.data, text.size) != 0)
        return cm_fail(&c->err, CM_IO, "the writer refused %zu bytes", text.size);
    return CM_OK;
}

static enum cm_status compile_in(struct cm_api_compile *c, struct cm_arena *arena)
{
    struct cm_produced produced = {0};

    CM_TRY(make_program(c, arena));
    if (c->emit == CAMEO_EMIT_LINALG)
        produced.bytes = c->program.text;
    else
        CM_TRY(cm_api_produce(c, arena, &produced));
    if (!c->options.path)
        return write_text(c, produced.bytes);
    CM_TRY(cm_api_write_compiled(c, &produced, arena));
    return c->wants_report ? cm_api_compile_report(c, &produced) : CM_OK;
}

static enum cm_status compile_guarded(struct cm_guard *guard, void *arg)
{
    struct cm_api_compile *c = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    const enum cm_status status = compile_in(c, &arena);
    cm_arena_release(&arena);
    return status;
}

static enum cm_status taken(struct cm_api_compile *c, enum cameo_status status,
                            const struct cameo_error *err)
{
    return status == CAMEO_OK ? CM_OK
                              : cm_fail(&c->err, (enum cm_status)status, "%.1000s", err->message);
}

/* The dialect is a form of models, so it is saved like one. */
static enum cm_status write_dialect(struct cm_api_compile *c, const struct cameo_model *model)
{
    struct cameo_save_options save = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_write_options write = CAMEO_WRITE_OPTIONS_INIT;
    struct cm_produced produced = {0};
    struct cameo_error err;

    save.format = write.format = CAMEO_FORMAT_MLIR;
    if (!c->options.path)
        return taken(
            c, cameo_model_write(model, &write, c->options.write, c->options.write_to, &err), &err);
    CM_TRY(taken(c, cameo_model_save(model, c->options.path, &save, NULL, &err), &err));
    return c->wants_report ? cm_api_compile_report(c, &produced) : CM_OK;
}

/* As a model: as it is, or of core operators alone, where code takes some others whole. */
static enum cm_status write_model(struct cm_api_compile *c)
{
    const struct cameo_model *model = c->model;
    struct cameo_error err;

    if (c->options.train_step) {
        CM_TRY(taken(c, cameo_model_step(c->model, false, &c->step, &err), &err));
        model = c->step;
    }
    if (c->emit == CAMEO_EMIT_ONNX)
        return write_dialect(c, model);
    CM_TRY(next_step(c, "expanding to core operators"));
    CM_TRY(cm_api_expand_core(model, &c->core, c->options.findings, &c->err));
    return write_dialect(c, c->core);
}

static enum cm_status compile(struct cm_api_compile *c, const struct cameo_compile_options *options)
{
    CM_TRY(check_options(c, options));
    CM_TRY(cm_guarded(0, &c->err, check_tools, c));
    if (c->emit <= CAMEO_EMIT_CORE)
        return write_model(c);
    if (c->options.train_step)
        CM_TRY(cm_api_begin_state(c));
    return cm_api_about(c->model, cm_api_locked(c->model, compile_guarded, c, &c->err), &c->err);
}

enum cameo_status cameo_model_compile(const struct cameo_model *model,
                                      const struct cameo_compile_options *options,
                                      struct cameo_compilation **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(options, err);
    struct cm_api_compile c = {.model = model, .wants_report = report != NULL};

    if (report)
        *report = NULL;
    const enum cm_status status = compile(&c, options);
    cm_api_end_state(&c);
    cameo_model_free(c.core);
    cameo_model_free(c.step);
    if (status)
        cameo_compilation_free(c.report);
    else if (report)
        *report = c.report;
    return cm_api_done(status, &c.err, err);
}
