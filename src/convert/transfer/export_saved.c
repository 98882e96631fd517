/* A model handed to the writer of a format. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/transfer/export_saved.h"

#include "base/diagnostics.h"
#include "convert/code/code.h"

static enum cm_status find_format(const char *name, const struct cm_format **out,
                                  struct cm_error *err)
{
    char known[600];
    size_t used = 0;

    /* Formats of code have a writer of their own, but the user chooses among all. */
    for (size_t i = 0; i < cm_code_framework_count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s, ",
                                 cm_code_frameworks[i]->name);
    for (size_t i = 0; i < cm_format_count; i++) {
        const struct cm_format *format = cm_formats[i];

        if (strcmp(format->name, name ? name : "") == 0 && cm_format_is_written(format)) {
            *out = format;
            return CM_OK;
        }
        if (cm_format_is_written(format) && used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s, ", format->name);
    }
    return cm_fail(err, CM_BAD_ARGUMENT, "there is no format '%.60s' to write; there are %.*s",
                   name ? name : "", (int)(used < sizeof known ? used : sizeof known) - 2, known);
}

/* Weights and buffers alone. */
static void leave_optimizer_out(struct cm_saved *saved)
{
    size_t left = 0;

    for (size_t i = 0; i < saved->entries.count; i++)
        if (saved->entries.items[i].role == CM_SAVED_WEIGHT ||
            saved->entries.items[i].role == CM_SAVED_BUFFER)
            saved->entries.items[left++] = saved->entries.items[i];
    saved->entries.count = left;
    saved->groups.count = 0;
    saved->has_optimizer = false;
    saved->schedule_known = CM_SCHEDULE_NONE;
    saved->schedule.count = 0;
    saved->facts.count = 0;
    saved->step = -1;
}

/* Formats that have no place for an optimizer. */
static bool is_weights_only(const struct cm_format *format)
{
    return strcmp(format->name, "safetensors") == 0;
}

static enum cm_status gather_for(struct cm_arena *arena, const struct cm_model_file *file,
                                 const struct cm_checkpoint_export *options,
                                 struct cm_export_report *report, struct cm_saved **out,
                                 struct cm_error *err)
{
    const enum cm_family to = cm_family_of(report->format->system);
    const bool without = options->weights_only || is_weights_only(report->format);

    CM_TRY(cm_gather(arena, file,
                     (struct cm_gathering){.own_names = to == CM_FAMILY_ORT,
                                           .optimizer = !without,
                                           .originals = to == CM_FAMILY_TORCH,
                                           .notes = &report->notes},
                     out, err));
    const enum cm_family from = cm_family_of((*out)->system);
    if (from != CM_FAMILY_NONE && from != to)
        CM_TRY(cm_gather(arena, file,
                         (struct cm_gathering){.as_graph = true, .own_names = to == CM_FAMILY_ORT},
                         out, err));
    struct cm_saved *saved = *out;
    report->saved = saved;
    if (!saved->entries.count)
        return cm_fail(err, CM_UNSUPPORTED, "the model has no weights to export");
    if (without)
        leave_optimizer_out(saved);
    else if (!saved->has_optimizer)
        return cm_fail(err, CM_UNSUPPORTED,
                       "the model lacks %.*s; --weights-only exports its weights",
                       CM_STR_FMT(saved->missing.items[0]));
    else
        CM_TRY(cm_export_fit(saved, report->format, to, &report->notes, err));
    if (from == CM_FAMILY_NONE)
        saved->system = report->format->system;
    return CM_OK;
}

enum cm_status cm_export(struct cm_arena *arena, const struct cm_model_file *file, const char *path,
                         const struct cm_checkpoint_export *options,
                         struct cm_export_report *report, struct cm_error *err)
{
    struct cm_saved *saved;

    *report = (struct cm_export_report){0};
    CM_TRY(find_format(options->to, &report->format, err));
    if (report->format->write_model) {
        struct cm_findings findings = {
            .arena = arena, .rule = "export", .what = "the model cannot be exported"};
        report->saved = saved = cm_saved_new(arena, cm_str(path ? path : ""));
        saved->cancel = options->cancel;
        return report->format->write_model(file, saved, path, &findings, &report->notes, err);
    }
    CM_TRY(gather_for(arena, file, options, report, &saved, err));
    if (!path)
        return CM_OK;
    saved->cancel = options->cancel;
    return report->format->write(saved, path, err);
}
