/* Models as checkpoints of other frameworks. */
// SPDX-License-Identifier: Apache-2.0
#include "api/handing_over.h"
#include "api/running.h"
#include "convert/saved_item.h"
#include "convert/transfer/export_saved.h"

#include <pthread.h>

/* ---- which formats there are ---- */

enum { FORMAT_MAX = 32 };

static struct cameo_export_format formats[FORMAT_MAX];
static size_t format_count;
static pthread_once_t formats_listed = PTHREAD_ONCE_INIT;

static void list_formats(void)
{
    for (size_t i = 0; i < cm_format_count && format_count < FORMAT_MAX; i++)
        if (cm_format_is_written(cm_formats[i]))
            formats[format_count++] =
                (struct cameo_export_format){cm_api_view(cm_str(cm_formats[i]->name)),
                                             cm_api_view(cm_str(cm_formats[i]->system)),
                                             cm_api_view(cm_str(cm_formats[i]->what))};
    for (size_t i = 0; i < cm_code_framework_count && format_count < FORMAT_MAX; i++)
        formats[format_count++] =
            (struct cameo_export_format){cm_api_view(cm_str(cm_code_frameworks[i]->name)),
                                         cm_api_view(cm_str(cm_code_frameworks[i]->system)),
                                         cm_api_view(cm_str(cm_code_frameworks[i]->what))};
}

const struct cameo_export_format *cameo_export_format(size_t index)
{
    (void)pthread_once(&formats_listed, list_formats);
    return index < format_count ? &formats[index] : NULL;
}

/* ---- exporting ---- */

struct export_call {
    const struct cameo_model *model;
    const char *path;
    const struct cameo_export_options *given;
    const struct cameo_exported *report;
};

static struct cameo_text tensor_type(struct cm_arena *arena, const struct cm_saved_tensor *tensor)
{
    char text[CM_MAX_RANK * 21 + 64];
    size_t at = (size_t)snprintf(text, sizeof text, "%s[", cm_dtype_name(tensor->dtype));

    for (int i = 0; i < tensor->shape.rank; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? "," : "",
                               (long long)tensor->shape.dims[i]);
    snprintf(text + at, sizeof text - at, "]");
    return cm_api_text(arena, cm_str(text));
}

const struct cameo_exported *cm_api_exported(struct cm_arena *arena, const struct cm_saved *saved,
                                             const struct cm_saved_texts *from)
{
    const size_t count = saved->entries.count;
    struct cameo_exported *to = CM_NEW(arena, struct cameo_exported);
    struct cameo_exported_tensor *tensors =
        CM_NEW_ARRAY(arena, struct cameo_exported_tensor, count);
    const struct cameo_exported_tensor **rows =
        CM_NEW_ARRAY(arena, const struct cameo_exported_tensor *, count);
    struct cameo_text *notes = CM_NEW_ARRAY(arena, struct cameo_text, from->count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];
        size_t bytes = 0;

        tensors[i] = (struct cameo_exported_tensor){
            cm_api_text(arena, entry->name), cm_api_text(arena, entry->slot),
            cm_api_text(arena, cm_str(cm_role_name(entry->role))),
            tensor_type(arena, entry->tensor)};
        rows[i] = &tensors[i];
        if (cm_dtype_bytes(entry->tensor->dtype, cm_shape_elements(&entry->tensor->shape), &bytes))
            to->bytes += bytes;
    }
    for (size_t i = 0; i < from->count; i++)
        notes[i] = cm_api_text(arena, from->items[i]);
    to->tensors = rows;
    to->tensor_count = count;
    to->notes = notes;
    to->note_count = from->count;
    to->optimizer = cm_api_text(arena, saved->has_optimizer ? saved->optimizer : CM_STR_NONE);
    to->step = saved->step;
    return to;
}

static enum cm_status export_checkpoint(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct export_call *call = arg;
    struct cameo_export_options given = CAMEO_EXPORT_OPTIONS_INIT;
    struct cm_export_report report;

    CM_TRY(cm_api_options(&given, sizeof given, call->given, err));
    if (call->path && !*call->path)
        return cm_fail(err, CM_BAD_ARGUMENT, "no path to write to was given");
    const struct cm_checkpoint_export options = {
        .to = given.to,
        .weights_only = given.weights_only,
        .cancel = given.cancel ? &given.cancel->set : NULL,
    };
    CM_TRY(cm_export(scratch, call->model->file, call->path, &options, &report, err));
    call->report = cm_api_exported(call->model->file->arena, report.saved, &report.notes);
    return CM_OK;
}

enum cameo_status cameo_model_export(const struct cameo_model *model, const char *path,
                                     const struct cameo_export_options *options,
                                     const struct cameo_exported **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(options, err);
    struct export_call call = {.model = model, .path = path, .given = options};
    const struct cm_code_framework *code = options->to ? cm_code_framework_find(options->to) : NULL;
    const enum cameo_status status =
        code ? cm_api_export_code(model, path, options, &call.report, err)
             : cm_api_call(model, export_checkpoint, &call, err);

    if (status == CAMEO_OK && path)
        cm_api_log(model, CAMEO_LOG_INFO, "wrote %s", path);
    if (report)
        *report = status == CAMEO_OK ? call.report : NULL;
    return status;
}
