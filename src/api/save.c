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

static enum cm_status save(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct save_call *call = arg;
    const struct cm_save_options options = cm_api_save_options(&call->options);

    (void)scratch;
    return cm_model_save(call->model->file, call->path, &options, &call->report, err);
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
    struct cm_error why = {0};
    enum cm_status status = cm_api_check_save(path, options, report, &call.options, &why);

    if (status == CM_OK)
        status = cm_api_guarded(model, save, &call, &why);
    if (status == CM_OK)
        cm_api_log_saved(model, path, &call.report);
    if (status == CM_OK && report)
        cm_api_give_report(&call.report, report);
    return cm_api_done(status, &why, err);
}

struct write_call {
    const struct cameo_model *model;
    const struct cameo_write_options *given;
    struct cm_api_writer writer;
};

enum cm_status cm_api_write(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    const struct cm_api_writer *writer = to;

    if (size && writer->write(writer->to, bytes, size) != 0)
        return cm_fail(err, CM_IO, "the writer refused %zu bytes", size);
    return CM_OK;
}

static enum cm_status write_binary(struct write_call *call, struct cm_arena *scratch,
                                   struct cm_error *err)
{
    struct cm_encoding *plan;

    CM_TRY(cm_encode_plan(&cm_model_info, &call->model->file->model, scratch, &plan, err));
    return cm_encode_write(plan, cm_api_write, &call->writer, err);
}

static enum cm_status write(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct write_call *call = arg;
    struct cameo_write_options o = CAMEO_WRITE_OPTIONS_INIT;

    CM_TRY(cm_api_options(&o, sizeof o, call->given, err));
    if ((unsigned)o.format > CAMEO_FORMAT_MLIR_GENERIC)
        return cm_fail(err, CM_BAD_ARGUMENT, "format %d does not exist", (int)o.format);
    if (!call->writer.write)
        return cm_fail(err, CM_BAD_ARGUMENT, "no function to write with was given");
    const struct cm_model_file *file = call->model->file;
    const struct cm_syntax_options text = {o.upstream, o.elide};
    if (o.format == CAMEO_FORMAT_TEXT)
        return cm_syntax_print_model(&file->model, &text, cm_api_write, &call->writer, err);
    if (o.format == CAMEO_FORMAT_MLIR || o.format == CAMEO_FORMAT_MLIR_GENERIC)
        return cm_api_write_mlir(file, &file->model, o.format == CAMEO_FORMAT_MLIR_GENERIC, o.elide,
                                 scratch, cm_api_write, &call->writer, err);
    return write_binary(call, scratch, err);
}

enum cameo_status cameo_model_write(const struct cameo_model *model,
                                    const struct cameo_write_options *options, cameo_write_fn *fn,
                                    void *to, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct write_call call = {.model = model, .given = options, .writer = {fn, to}};
    struct cm_error why = {0};
    const enum cm_status status =
        cm_api_about(model, cm_api_guarded(NULL, write, &call, &why), &why);

    return cm_api_done(status, &why, err);
}
