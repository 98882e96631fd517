/* Models under other opset versions. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "graph/registry.h"
#include "models/graph_calls.h"
#include "models/inference_modes.h"
#include "models/opset_change.h"
#include "models/opset_nodes.h"

struct convert_call {
    struct cameo_model *model;
    const struct cameo_convert_options *given;
    struct cameo_convert_options options;
    struct cameo_conversion *report;
    struct cm_modes modes;
    size_t n_calling; /* entries of training info that called the inference graph */
    struct cm_error *err;
};

static struct cm_str shown(struct cm_str domain)
{
    return cm_domain_plain(domain).size ? domain : CM_STR("ai.onnx");
}

static enum cm_status add_target(struct convert_call *call, struct cm_str domain, int64_t version,
                                 struct cm_opsets *targets)
{
    struct cm_arena *arena = &call->model->arena;
    const int64_t newest = cm_schema_newest_opset(domain);

    domain = cm_arena_str(arena, domain);
    if (!cm_target_version(&call->model->file->model.opset_import, domain))
        return cm_fail(call->err, CM_BAD_ARGUMENT, "the model does not import domain '%.*s'",
                       CM_STR_FMT(shown(domain)));
    if (version < 1 || version > newest)
        return cm_fail(call->err, CM_BAD_ARGUMENT,
                       "there is no opset %lld of '%.*s', expected 1 to %lld", (long long)version,
                       CM_STR_FMT(shown(domain)), (long long)newest);
    if (cm_target_version(targets, domain))
        return cm_fail(call->err, CM_BAD_ARGUMENT, "domain '%.*s' is given twice",
                       CM_STR_FMT(shown(domain)));
    *CM_LIST_ADD(arena, targets) = (struct cm_opset_proto){.domain = domain, .version = version};
    return CM_OK;
}

/* A newer opset than we know is left alone: nobody here can say what it changed. */
static enum cm_status find_targets(struct convert_call *call, struct cm_opsets *targets)
{
    const struct cm_opsets *imports = &call->model->file->model.opset_import;

    for (size_t i = 0; i < call->options.opset_count; i++) {
        struct cameo_target_opset target = CAMEO_TARGET_OPSET_INIT;
        CM_TRY(cm_api_item(&target, sizeof target, call->options.opsets, i, call->err));
        CM_TRY(
            add_target(call, cm_str(target.domain ? target.domain : ""), target.version, targets));
    }
    for (size_t i = 0; !call->options.opsets && i < imports->count; i++) {
        const struct cm_str domain = cm_domain_plain(imports->items[i].domain);
        const int64_t newest = cm_schema_newest_opset(domain);
        if ((!domain.size || cm_str_starts(domain, "ai.onnx")) &&
            newest > imports->items[i].version && !cm_target_version(targets, domain))
            CM_TRY(add_target(call, domain, newest, targets));
    }
    for (size_t i = 0; i < targets->count; i++) {
        const struct cm_opset_proto *target = &targets->items[i];
        const int64_t now = cm_target_version(imports, target->domain);
        if (now > cm_schema_newest_opset(target->domain))
            return cm_fail(call->err, CM_UNSUPPORTED,
                           "the model imports opset %lld of '%.*s', the newest known is %lld",
                           (long long)now, CM_STR_FMT(shown(target->domain)),
                           (long long)cm_schema_newest_opset(target->domain));
    }
    return CM_OK;
}

static const struct cameo_text *tell_notes(const struct convert_call *call,
                                           const struct cm_version_report *from, size_t *count)
{
    const struct cm_model_proto *model = &call->model->file->model;
    struct cm_arena *arena = &call->model->arena;
    struct cameo_text *list = CM_NEW_ARRAY(arena, struct cameo_text,
                                           from->before.count + from->fixed.count +
                                               from->broken.count + call->modes.changes.count + 2);

    *count = 0;
    for (size_t i = 0; i < call->modes.changes.count; i++)
        list[(*count)++] = cm_api_text(arena, call->modes.changes.items[i]);
    if (call->n_calling)
        list[(*count)++] = cm_api_text(
            arena, cm_arena_printf(arena,
                                   "training info no longer calls the inference graph with "
                                   "GraphCall, as ONNX 1.7 had it (%zu %s)",
                                   call->n_calling, call->n_calling == 1 ? "entry" : "entries"));
    for (size_t i = 0; i < from->before.count; i++)
        list[(*count)++] = cm_api_text(
            arena, cm_arena_printf(arena, "opset of %.*s changed from %lld to %lld",
                                   CM_STR_FMT(shown(from->before.items[i].domain)),
                                   (long long)from->before.items[i].version,
                                   (long long)cm_target_version(&model->opset_import,
                                                                from->before.items[i].domain)));
    if (from->ir != from->ir_before)
        list[(*count)++] =
            cm_api_text(arena, cm_arena_printf(arena, "IR version changed from %lld to %lld",
                                               (long long)from->ir_before, (long long)from->ir));
    for (size_t i = 0; i < from->fixed.count; i++)
        list[(*count)++] = cm_api_text(
            arena, cm_arena_printf(arena,
                                   "input '%.*s' is gone: its default became an attribute, which "
                                   "cannot be fed",
                                   CM_STR_FMT(from->fixed.items[i])));
    for (size_t i = 0; i < from->broken.count; i++)
        list[(*count)++] = cm_api_text(
            arena,
            cm_arena_printf(arena, "left as it is, but broken: %s",
                            cm_str_text(cm_finding_sentence(arena, &from->broken.items[i]))));
    return list;
}

static void tell_report(struct convert_call *call, const struct cm_version_report *from)
{
    struct cm_arena *arena = &call->model->arena;
    struct cameo_conversion *report = CM_NEW(arena, struct cameo_conversion);
    const struct cameo_version_change **rows =
        CM_NEW_ARRAY(arena, const struct cameo_version_change *, from->changes.count);

    for (size_t i = 0; i < from->changes.count; i++) {
        const struct cm_version_change *change = &from->changes.items[i];
        struct cameo_version_change *row = CM_NEW(arena, struct cameo_version_change);
        *row = (struct cameo_version_change){.domain = cm_api_text(arena, change->domain),
                                             .op = cm_api_text(arena, change->op),
                                             .how = cm_api_text(arena, change->how),
                                             .from = change->from,
                                             .to = change->to,
                                             .nodes = change->nodes};
        rows[i] = row;
    }
    report->changes = rows;
    report->change_count = from->changes.count;
    report->nodes_changed = from->changed;
    report->nodes_kept = from->kept;
    report->findings = cm_api_findings_in(arena, call->model, &from->findings);
    report->notes = tell_notes(call, from, &report->note_count);
    call->report = report;
}

/* Returns the model as it was, for a conversion that fails. */
static struct cm_model_proto turn_off_modes(struct convert_call *call)
{
    struct cm_model_file *file = call->model->file;
    struct cm_arena *arena = &call->model->arena;

    if (call->options.as_is)
        return file->model;
    cm_modes_find(arena, file, &call->modes);
    if (!call->modes.changes.count)
        return file->model;
    const struct cm_model_file *before = cm_model_copy(arena, file);
    cm_modes_turn_off(arena, file, &call->modes);
    return before->model;
}

static enum cm_status convert(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct convert_call *call = arg;
    struct cameo_convert_options *o = &call->options;
    struct cm_version_report made;
    struct cm_opsets targets = {NULL, 0};

    (void)scratch;
    call->err = err;
    *o = (struct cameo_convert_options)CAMEO_CONVERT_OPTIONS_INIT;
    CM_TRY(cm_api_options(o, sizeof *o, call->given, err));
    if (o->opset_count && !o->opsets)
        return cm_fail(err, CM_BAD_ARGUMENT, "'opsets' is NULL, but its count is not 0");
    CM_TRY(find_targets(call, &targets));
    CM_TRY(cm_edit_graph_calls(&call->model->file->model, &call->model->arena,
                               &call->model->file->model, &call->n_calling, err));
    const struct cm_model_proto before = turn_off_modes(call);
    const enum cm_status status =
        cm_convert_version(&call->model->arena, call->model->file, &targets, &made, err);
    if (status)
        call->model->file->model = before;
    tell_report(call, &made);
    return status;
}

enum cameo_status cameo_model_convert(struct cameo_model *model,
                                      const struct cameo_convert_options *options,
                                      const struct cameo_conversion **report,
                                      struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct convert_call call = {.model = model, .given = options};
    const enum cameo_status status = cm_api_change_call(model, convert, &call, err);

    if (report)
        *report = status == CAMEO_NO_MEMORY ? NULL : call.report;
    return status;
}
