/* Opening models, and finding the tensors in them. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_file.h"

#include "onnx/decode.h"
#include "onnx/model_save.h"
#include "onnx/syntax.h"

enum cm_model_format cm_model_format_of(enum cm_model_format format, const char *path)
{
    if (format != CM_FORMAT_BY_NAME)
        return format;
    const struct cm_str name = cm_str(path);
    return cm_str_ends(name, ".onnxtxt") || cm_str_ends(name, ".onnxtext") ? CM_FORMAT_TEXT
           : cm_str_ends(name, ".mlir")                                    ? CM_FORMAT_MLIR
                                                                           : CM_FORMAT_BINARY;
}

enum cm_status cm_model_refuse_mlir(struct cm_error *err)
{
    return cm_fail(err, CM_UNSUPPORTED, "models in the form of MLIR are not supported here");
}

static struct cm_model_file *new_file(struct cm_arena *arena, struct cm_str path,
                                      struct cm_str folder, const struct cm_load_options *options)
{
    struct cm_model_file *file = CM_NEW(arena, struct cm_model_file);

    file->arena = arena;
    file->path = path;
    file->folder = folder;
    file->files = cm_external_files_new(arena, folder, options->allow_links ? CM_FOLLOW_LINKS : 0,
                                        options->copy);
    return file;
}

/* A file of another kind is told by what it looks like rather than by where decoding failed. Some
 * even decode, into nothing that a model has. */
static enum cm_status refuse_others(struct cm_str bytes, const struct cm_model_proto *model,
                                    enum cm_status status, struct cm_error *err)
{
    const bool empty =
        status == CM_OK && !model->graph && !model->ir_version && !model->opset_import.count;
    const char *guess = status == CM_BAD_MODEL || empty ? cm_model_guess(bytes) : NULL;
    char detail[CM_ERROR_SIZE / 2] = "";

    if (!guess)
        return status;
    if (status && err)
        snprintf(detail, sizeof detail, " (%.400s)", err->text);
    return cm_fail(err, CM_BAD_MODEL, "this is not an ONNX model but %s%s", guess, detail);
}

static bool is_mlir(enum cm_model_format format)
{
    return format == CM_FORMAT_MLIR || format == CM_FORMAT_MLIR_GENERIC;
}

/* The form of bytes whose name says nothing, unless it was chosen. */
static enum cm_model_format format_of_bytes(const struct cm_load_options *options,
                                            enum cm_model_format format, struct cm_str bytes)
{
    return options->format == CM_FORMAT_BY_NAME && format != CM_FORMAT_TEXT && options->mlir &&
                   options->mlir->is_text(bytes)
               ? CM_FORMAT_MLIR
               : format;
}

static enum cm_status read_model(struct cm_arena *arena, struct cm_str bytes,
                                 const struct cm_load_options *options, enum cm_model_format format,
                                 struct cm_model_proto *out, struct cm_error *err)
{
    if (bytes.size == 0)
        return cm_fail(err, CM_BAD_MODEL, "this is not an ONNX model: the file is empty");
    if (is_mlir(format))
        return options->mlir ? options->mlir->parse(bytes, arena, out, err)
                             : cm_model_refuse_mlir(err);
    if (format == CM_FORMAT_TEXT)
        return cm_syntax_parse_model(bytes, arena, out, err);
    return refuse_others(bytes, out, cm_decode(&cm_model_info, bytes, arena, out, err), err);
}

enum cm_status cm_model_open(struct cm_arena *arena, const char *path,
                             const struct cm_load_options *options, struct cm_model_file **out,
                             struct cm_error *err)
{
    static const struct cm_load_options defaults;
    const struct cm_load_options *how = options ? options : &defaults;
    struct cm_model_file *file =
        new_file(arena, cm_arena_str(arena, cm_str(path)), cm_path_folder(arena, path), how);

    const enum cm_model_format format = cm_model_format_of(how->format, path);
    /* The parser of text looks at it more than once, so nobody may change it meanwhile. */
    const bool copy = how->copy || format == CM_FORMAT_TEXT || is_mlir(format);

    CM_TRY(cm_file_map(path, copy, &file->mapping, err));
    cm_mapping_defer(arena, &file->mapping);
    cm_external_set_model(file->files, &file->mapping);
    const struct cm_str bytes = {(const char *)file->mapping.data, file->mapping.size};
    CM_TRY(cm_error_context(err, read_model(arena, bytes, how, format, &file->model, err), "%.600s",
                            path));
    *out = file;
    return CM_OK;
}

enum cm_status cm_model_parse(struct cm_arena *arena, struct cm_str bytes,
                              const struct cm_load_options *options, struct cm_model_file **out,
                              struct cm_error *err)
{
    static const struct cm_load_options defaults;
    const struct cm_load_options *how = options ? options : &defaults;
    struct cm_model_file *file = new_file(arena, CM_STR(""), CM_STR(""), how);

    const enum cm_model_format format = format_of_bytes(how, how->format, bytes);
    CM_TRY(read_model(arena, bytes, how, format, &file->model, err));
    *out = file;
    return CM_OK;
}

struct each {
    cm_visit_tensor_fn *visit;
    void *arg;
};

static enum cm_status visit_message(void *arg, const struct cm_message_info *info,
                                    struct cm_msg *msg)
{
    const struct each *each = arg;
    return info == &cm_tensor_info ? each->visit(each->arg, (struct cm_tensor_proto *)msg) : CM_OK;
}

enum cm_status cm_model_each_tensor(struct cm_model_proto *model, cm_visit_tensor_fn *visit,
                                    void *arg)
{
    struct each each = {visit, arg};
    return cm_message_walk(&cm_model_info, model, visit_message, &each);
}
