/* Models as the passes leave them. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/custom.h"
#include "lower/lower.h"
#include "models/inference_modes.h"
#include "models/write_model.h"
#include "train/prepare/prepare.h"

#include <string.h>

static bool tell_pass(const struct cm_pass_table *table, size_t index, struct cameo_pass *out)
{
    struct cm_error ignored = {0};

    if (index >= table->count || !out || cm_api_check_out(out, &ignored) != CM_OK)
        return false;
    const struct cm_pass_row *pass = cm_pass_at(table, index);
    const struct cameo_pass all = {.name = pass->name,
                                   .summary = pass->does,
                                   .required = pass->kind == CM_PASS_REQUIRED,
                                   .on_request = pass->kind == CM_PASS_ON_REQUEST};
    cm_api_give(out, &all, sizeof all);
    return true;
}

bool cameo_pass(size_t index, struct cameo_pass *out)
{
    return tell_pass(&cm_lower_passes, index, out);
}

bool cameo_prepare_pass(size_t index, struct cameo_pass *out)
{
    return tell_pass(&cm_prepare_passes, index, out);
}

struct optimize_call {
    const struct cameo_model *from;
    const struct cameo_optimize_options *given;
    struct cameo_optimize_options options;
    struct cm_arena *arena; /* of the model that is made */
    struct cameo_optimization *report;
    const struct cameo_pass_result **passes;
    struct cm_model_file *file; /* of from, or a copy with training mode turned off */
    struct cm_modes modes;
};

/* Notes what a pass did. */
static enum cm_status note_pass(void *arg, const struct cm_lower_report *pass,
                                struct cm_graph *graph, struct cm_error *err)
{
    struct optimize_call *call = arg;
    struct cameo_optimization *report = call->report;

    (void)graph;
    (void)err;
    if (report->pass_count < cm_pass_count) {
        struct cameo_pass_result *row = CM_NEW(call->arena, struct cameo_pass_result);
        *row = (struct cameo_pass_result){pass->pass, pass->skipped, pass->nodes_before,
                                          pass->nodes_after};
        call->passes[report->pass_count++] = row;
    }
    return CM_OK;
}

static struct cm_lower_options lower_options(struct optimize_call *call)
{
    return (struct cm_lower_options){
        .pass = {.memory_limit = call->options.memory_limit, .for_file = true},
        .passes = {.only = call->options.passes,
                   .without = call->options.without,
                   .until = call->options.until},
        .keep_operators = true,
        .after = note_pass,
        .after_arg = call};
}

static enum cm_status tidy(void *arg, struct cm_graph *graph, bool is_body, struct cm_error *err)
{
    const struct cm_lower_options options = lower_options(arg);

    return cm_lower_tidy(graph, &options, is_body, err);
}

static enum cm_status lower(struct optimize_call *call, struct cm_graph **graph,
                            struct cm_error *err)
{
    const struct cm_model_file *file = call->file;
    const struct cm_lower_options lower = lower_options(call);

    CM_TRY(cm_lower_check(&lower, err));
    const struct cm_registry *registry = cm_api_operators(call->options.registry, file);
    if (!registry)
        return cm_fail(err, CM_NO_MEMORY, "no memory for the operators");
    struct cm_module *module = cm_module_new(
        call->arena, &(struct cm_module_options){.registry = registry, .files = file->files});
    CM_TRY(cm_lower_import(module, &file->model, &lower, graph, err));
    return cm_lower_graph(*graph, &lower, err);
}

/* Passes see the model with training mode off; the caller's own is not changed. */
static void turn_off_modes(struct optimize_call *call)
{
    struct cm_arena *arena = call->arena;

    call->file = call->from->file;
    if (call->options.as_is)
        return;
    cm_modes_find(arena, call->file, &call->modes);
    if (!call->modes.changes.count)
        return;
    call->file = cm_model_copy(arena, call->from->file);
    cm_modes_turn_off(arena, call->file, &call->modes);
}

static const struct cameo_text *tell_changes(const struct optimize_call *call,
                                             const struct cm_write_report *from, size_t *count)
{
    struct cm_arena *arena = call->arena;
    struct cameo_text *list = CM_NEW_ARRAY(arena, struct cameo_text, call->modes.changes.count + 2);
    *count = 0;
    for (size_t i = 0; i < call->modes.changes.count; i++)
        list[(*count)++] = cm_api_text(arena, call->modes.changes.items[i]);
    const struct cm_raised raised = {from->opset_before, from->opset, from->ir_before, from->ir,
                                     from->raised_for};
    cm_api_tell_raised(arena, &raised, list, count);
    return list;
}

static enum cm_status optimize(void *arg, struct cameo_model *made, struct cm_arena *scratch,
                               struct cm_error *err)
{
    struct optimize_call *call = arg;
    const struct cm_write_options write = {
        .tidy = tidy, .tidy_arg = call, .portable = call->options.portable};
    struct cm_write_report written;
    struct cm_graph *graph;

    (void)scratch;
    call->options = (struct cameo_optimize_options)CAMEO_OPTIMIZE_OPTIONS_INIT;
    CM_TRY(cm_api_options(&call->options, sizeof call->options, call->given, err));
    if (call->from->file->model.training_info.count)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the model carries its training: strip it, or write its step, and optimize "
                       "that");
    call->arena = &made->arena;
    struct cameo_optimization *report = call->report =
        CM_NEW(call->arena, struct cameo_optimization);
    report->passes = call->passes =
        CM_NEW_ARRAY(call->arena, const struct cameo_pass_result *, cm_pass_count);
    turn_off_modes(call);
    CM_TRY(lower(call, &graph, err));
    CM_TRY(cm_write_model(graph, call->file, &write, call->arena, &made->file, &written, err));
    made->file->to_ship = true;
    report->nodes_before = cm_count_nodes(&call->from->file->model.graph->node);
    report->nodes = written.nodes;
    report->nodes_inlined = written.nodes_inlined;
    report->function_count = written.functions;
    report->changes = tell_changes(call, &written, &report->change_count);
    return CM_OK;
}

enum cameo_status cameo_model_optimize(const struct cameo_model *model,
                                       const struct cameo_optimize_options *options,
                                       struct cameo_model **out,
                                       const struct cameo_optimization **report,
                                       struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct optimize_call call = {.from = model, .given = options};
    const enum cameo_status status = cm_api_derive_call(model, optimize, &call, out, err);

    if (report)
        *report = status == CAMEO_OK ? call.report : NULL;
    return status;
}
