/* Writing models to files and through the caller's function. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/running.h"
#include "onnx/encode.h"
#include "onnx/syntax.h"

struct save_call {
    const struct cameo_model *model;
    const char *path;
    struct cameo_save_options options;
    struct cm_save_report report;
    struct cm_error err;
};

static void tell_file(void *arg, const struct cm_save_file *file)
{
    const struct cameo_save_options *options = arg;
    const struct cameo_data_file told = {.struct_size = sizeof told,
                                         .name = {cm_str_text(file->name), file->name.size},
                                         .bytes = file->bytes,
                                         .written = file->written};

    options->file(options->file_arg, &told);
}

struct cm_save_options cm_api_save_options(const struct cameo_save_options *options)
{
    return (struct cm_save_options){
        .format = (enum cm_model_format)options->format,
        .placement = (enum cm_save_placement)options->placement,
        .external_name = options->external_name,
        .one_file_per_tensor = options->one_file_per_tensor,
        .threshold = options->threshold,
        .alignment = options->alignment,
        .cancel = options->cancel ? &options->cancel->set : NULL,
        .mlir = &cm_api_mlir,
        .file = options->file ? tell_file : NULL,
        .file_arg = (void *)(uintptr_t)options,
    };
}

static enum cm_status save_guarded(struct cm_guard *guard, void *arg)
{
    struct save_call *call = arg;
    const struct cm_save_options options = cm_api_save_options(&call->options);

    (void)guard;
    return cm_model_save(call->model->file, call->path, &options, &call->report, &call->err);
}

enum cm_status cm_api_check_save(const char *path, const struct cameo_save_options *given,
                                 const struct cameo_save_report *report,
                                 struct cameo_save_options *out, struct cm_error *err)
{
    *out = (struct cameo_save_options)CAMEO_SAVE_OPTIONS_INIT;
    CM_TRY(cm_api_options(out, sizeof *out, given, err));
    const size_t alignment = out->alignment;
    if (!path || !*path)
        return cm_fail(err, CM_BAD_ARGUMENT, "no path to save to was given");
    if ((unsigned)out->format > CAMEO_FORMAT_MLIR_GENERIC)
        return cm_fail(err, CM_BAD_ARGUMENT, "format %d does not exist", (int)out->format);
    if ((unsigned)out->placement > CAMEO_PLACE_AUTO)
        return cm_fail(err, CM_BAD_ARGUMENT, "placement %d does not exist", (int)out->placement);
    if (alignment & (alignment - 1))
        return cm_fail(err, CM_BAD_ARGUMENT, "alignment %zu is not a power of two", alignment);
    if (report && report->struct_size <= sizeof report->struct_size)
        return cm_fail(err, CM_BAD_ARGUMENT, "the report was not made with its _INIT macro");
    return CM_OK;
}

void cm_api_give_report(const struct cm_save_report *from, struct cameo_save_report *to)
{
    struct cameo_save_report all = {
        .struct_size = to->struct_size,
        .model_bytes = from->model_bytes,
        .external_bytes = from->external_bytes,
        .moved_out = from->moved_out,
        .moved_in = from->moved_in,
        .forced_external = from->forced_external,
        .external_files = from->external_files,
        .old_removed = from->old_removed,
        .old_left = from->old_left,
    };

    snprintf(all.external_name, sizeof all.external_name, "%s", from->external_name);
    snprintf(all.old_name, sizeof all.old_name, "%s", from->old_name);
    memcpy(to, &all, to->struct_size < sizeof all ? to->struct_size : sizeof all);
}

enum cameo_status cameo_model_save(const struct cameo_model *model, const char *path,
                                   const struct cameo_save_options *options,
                                   struct cameo_save_report *report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct save_call call = {.model = model, .path = path};
    enum cm_status status = cm_api_check_save(path, options, report, &call.options, &call.err);

    if (status == CM_OK)
        status = cm_api_locked(model, save_guarded, &call, &call.err);
    if (status == CM_OK)
        cm_api_log_saved(model, path, &call.report);
    if (status == CM_OK && report)
        cm_api_give_report(&call.report, report);
    return cm_api_done(status, &call.err, err);
}

struct write_call {
    const struct cameo_model *model;
    struct cameo_write_options options;
    struct cm_api_writer writer;
    struct cm_error err;
};

enum cm_status cm_api_write(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    const struct cm_api_writer *writer = to;

    if (size && writer->write(writer->to, bytes, size) != 0)
        return cm_fail(err, CM_IO, "the writer refused %zu bytes", size);
    return CM_OK;
}

static enum cm_status write_binary(struct write_call *call, struct cm_arena *scratch)
{
    struct cm_encoding *plan;

    CM_TRY(cm_encode_plan(&cm_model_info, &call->model->file->model, scratch, &plan, &call->err));
    return cm_encode_write(plan, cm_api_write, &call->writer, &call->err);
}

static enum cm_status write_guarded(struct cm_guard *guard, void *arg)
{
    struct write_call *call = arg;
    const struct cm_syntax_options text = {call->options.upstream, call->options.elide};
    struct cm_arena scratch;

    if (call->options.format == CAMEO_FORMAT_TEXT)
        return cm_syntax_print_model(&call->model->file->model, &text, cm_api_write, &call->writer,
                                     &call->err);
    cm_arena_init(&scratch, guard);
    const enum cm_status status =
        call->options.format == CAMEO_FORMAT_MLIR ||
                call->options.format == CAMEO_FORMAT_MLIR_GENERIC
            ? cm_api_write_mlir(call->model->file, &call->model->file->model,
                                call->options.format == CAMEO_FORMAT_MLIR_GENERIC,
                                call->options.elide, &scratch, cm_api_write, &call->writer,
                                &call->err)
            : write_binary(call, &scratch);
    cm_arena_release(&scratch);
    return status;
}

static enum cm_status check_write(struct write_call *call,
                                  const struct cameo_write_options *options)
{
    call->options = (struct cameo_write_options)CAMEO_WRITE_OPTIONS_INIT;
    CM_TRY(cm_api_options(&call->options, sizeof call->options, options, &call->err));
    if ((unsigned)call->options.format > CAMEO_FORMAT_MLIR_GENERIC)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "format %d does not exist",
                       (int)call->options.format);
    if (!call->writer.write)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "no function to write with was given");
    return CM_OK;
}

enum cameo_status cameo_model_write(const struct cameo_model *model,
                                    const struct cameo_write_options *options,
                                    cameo_write_fn *write, void *to, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct write_call call = {.model = model, .writer = {write, to}};
    enum cm_status status = check_write(&call, options);

    if (status == CM_OK)
        status = cm_api_about(model, cm_guarded(0, &call.err, write_guarded, &call), &call.err);
    return cm_api_done(status, &call.err, err);
}
