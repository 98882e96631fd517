/* Edits of a model in place: parts, merges, names, shapes. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/diagnostics.h"
#include "graph/import.h"
#include "lower/lower.h"
#include "models/edit.h"
#include "onnx/descriptor.h"
#include "train/prepare/prepare.h"

struct edit_call {
    struct cameo_model *model, *second;
    struct cm_arena *scratch;
    enum cm_status (*edit)(struct edit_call *call);
    const void *list; /* what the caller gave: structs, names or options */
    size_t count;
    struct cm_findings findings;
    struct cameo_edit *told;
    struct cm_error *err;
};

/* ---- types by inference ---- */

/* Names of dimensions outlive the module that they come from. */
static enum cm_status own_dims(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    void *any = msg;
    const struct cm_type_proto *type = any;
    const struct cm_tensor_type_proto *tensor = NULL;

    if (info == &cm_type_info)
        tensor = type->tensor_type ? type->tensor_type : type->sparse_tensor_type;
    for (size_t i = 0; tensor && tensor->shape && i < tensor->shape->dim.count; i++)
        tensor->shape->dim.items[i].dim_param =
            cm_arena_str(arg, tensor->shape->dim.items[i].dim_param);
    return CM_OK;
}

static enum cm_status infer_types(void *arg, const struct cm_model_proto *model,
                                  const struct cm_str *names, size_t count,
                                  struct cm_type_proto **types, struct cm_findings *findings,
                                  struct cm_error *err)
{
    const struct edit_call *call = arg;
    struct cm_findings ignored = {.arena = call->scratch};
    struct cm_module *module = cm_module_new(
        call->scratch, &(struct cm_module_options){.files = call->model->file->files,
                                                   .registry = call->model->file->registry});
    const struct cm_import_options options = {.partial = true,
                                              .findings = findings ? findings : &ignored};
    struct cm_graph *graph;

    CM_TRY(cm_lower_import_as(module, model, &options, &graph, err));
    for (size_t i = 0; i < count; i++) {
        const cm_value value = cm_graph_find(graph, names[i]);
        types[i] = NULL;
        if (!value)
            continue;
        types[i] = CM_NEW(&call->model->arena, struct cm_type_proto);
        cm_type_to_proto(&call->model->arena, cm_module_symbols(module),
                         cm_value_get(module, value)->fact.type, types[i]);
        CM_TRY(cm_message_walk(&cm_type_info, types[i], own_dims, &call->model->arena));
    }
    return CM_OK;
}

/* ---- what all edits share ---- */

static enum cm_status edit(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct edit_call *call = arg;
    struct cm_arena *arena = &call->model->arena;

    call->told = CM_NEW(arena, struct cameo_edit);
    call->findings =
        (struct cm_findings){.arena = arena, .rule = "edit", .what = "the model cannot be edited"};
    call->scratch = scratch;
    call->err = err;
    const enum cm_status status = call->edit(call);
    call->told->changes = cm_api_notes(arena, &call->findings, &call->told->change_count);
    call->told->findings = cm_api_findings_in(arena, call->model, &call->findings);
    return status;
}

static enum cameo_status run_edit(struct edit_call *call, const struct cameo_edit **report,
                                  struct cameo_error *err)
{
    struct cm_error why = {0};
    const enum cm_status status =
        cm_api_about(call->model, cm_api_change(call->model, edit, call, &why), &why);

    if (report)
        *report = status == CM_NO_MEMORY ? NULL : call->told;
    for (size_t i = 0; status == CM_OK && i < call->told->change_count; i++)
        cm_api_log(call->model, CAMEO_LOG_INFO, "%s", call->told->changes[i].data);
    return cm_api_done(status, &why, err);
}

/* Copies of the caller's names. */
static struct cm_str_list names_of(struct edit_call *call, const char *const *names, size_t count)
{
    struct cm_str *list = CM_NEW_ARRAY(&call->model->arena, struct cm_str, count);

    for (size_t i = 0; i < count; i++)
        list[i] = cm_arena_str(&call->model->arena, cm_str(names[i]));
    return (struct cm_str_list){list, count};
}

/* ---- parts ---- */

struct part_names {
    const char *const *inputs, *const *outputs;
    size_t n_inputs, n_outputs;
};

static enum cm_status extract_part(struct edit_call *call)
{
    const struct part_names *part = call->list;
    const struct cm_edit_types types = {infer_types, call};

    return cm_edit_extract(call->model->file, names_of(call, part->inputs, part->n_inputs),
                           names_of(call, part->outputs, part->n_outputs), &types, call->scratch,
                           &call->findings, call->err);
}

enum cameo_status cameo_model_extract(struct cameo_model *model, const char *const *inputs,
                                      size_t input_count, const char *const *outputs,
                                      size_t output_count, const struct cameo_edit **report,
                                      struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(inputs, input_count, err);
    CM_API_NEED_ALL(outputs, output_count, err);
    const struct part_names part = {inputs, outputs, input_count, output_count};
    struct edit_call call = {.model = model, .edit = extract_part, .list = &part};

    return run_edit(&call, report, err);
}

static enum cm_status expose_values(struct edit_call *call)
{
    const struct part_names *part = call->list;

    return cm_edit_expose(call->model->file, names_of(call, part->outputs, part->n_outputs),
                          call->scratch, &call->findings, call->err);
}

enum cameo_status cameo_model_expose(struct cameo_model *model, const char *const *names,
                                     size_t name_count, const struct cameo_edit **report,
                                     struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(names, name_count, err);
    const struct part_names part = {.outputs = names, .n_outputs = name_count};
    struct edit_call call = {.model = model, .edit = expose_values, .list = &part};

    return run_edit(&call, report, err);
}

/* ---- training taken out ---- */

static enum cm_status strip_training(struct edit_call *call)
{
    struct cm_modes modes;

    cm_strip(&call->model->arena, call->model->file, &modes);
    for (size_t i = 0; i < modes.changes.count; i++)
        cm_findings_note(&call->findings, "%s", cm_str_text(modes.changes.items[i]));
    return CM_OK;
}

enum cameo_status cameo_model_strip_training(struct cameo_model *model,
                                             const struct cameo_edit **report,
                                             struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct edit_call call = {.model = model, .edit = strip_training};

    return run_edit(&call, report, err);
}

enum cameo_status cameo_model_strip(struct cameo_model *model, struct cameo_error *err)
{
    return cameo_model_strip_training(model, NULL, err);
}

/* ---- merging ---- */

static enum cm_status merge_models(struct edit_call *call)
{
    struct cameo_merge_options from = CAMEO_MERGE_OPTIONS_INIT;
    struct cm_arena *arena = &call->model->arena;

    CM_TRY(cm_api_options(&from, sizeof from, call->list, call->err));
    if (call->model == call->second)
        return cm_fail(call->err, CM_BAD_ARGUMENT,
                       "a model cannot be merged with itself: load it twice");
    if (from.pair_count && !from.pairs)
        return cm_fail(call->err, CM_BAD_ARGUMENT, "the list of pairs is NULL");
    struct cm_merge_pair *map = CM_NEW_ARRAY(arena, struct cm_merge_pair, from.pair_count);
    for (size_t i = 0; i < from.pair_count; i++) {
        struct cameo_merge_pair pair = CAMEO_MERGE_PAIR_INIT;

        CM_TRY(cm_api_item(&pair, sizeof pair, from.pairs, i, call->err));
        map[i] = (struct cm_merge_pair){cm_arena_str(arena, cm_str(pair.output)),
                                        cm_arena_str(arena, cm_str(pair.input))};
    }
    const struct cm_merge_options options = {.map = map,
                                             .n_map = from.pair_count,
                                             .prefix1 = cm_arena_str(arena, cm_str(from.prefix1)),
                                             .prefix2 = cm_arena_str(arena, cm_str(from.prefix2))};
    return cm_edit_merge(call->model->file, call->second->file, &options, call->scratch,
                         &call->findings, call->err);
}

enum cameo_status cameo_model_merge(struct cameo_model *model, struct cameo_model *second,
                                    const struct cameo_merge_options *options,
                                    const struct cameo_edit **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(second, err);
    struct edit_call call = {
        .model = model, .second = second, .edit = merge_models, .list = options};

    return run_edit(&call, report, err);
}

/* ---- names and shapes ---- */

static enum cm_status rename_things(struct edit_call *call)
{
    struct cm_renaming *list = CM_NEW_ARRAY(call->scratch, struct cm_renaming, call->count);

    for (size_t i = 0; i < call->count; i++) {
        struct cameo_renaming row = CAMEO_RENAMING_INIT;

        CM_TRY(cm_api_item(&row, sizeof row, call->list, i, call->err));
        if ((unsigned)row.kind > CAMEO_RENAME_DIM)
            return cm_fail(call->err, CM_BAD_ARGUMENT, "kind %d of a renaming does not exist",
                           (int)row.kind);
        list[i] =
            (struct cm_renaming){(enum cm_renaming_kind)row.kind, cm_str(row.from), cm_str(row.to)};
    }
    return cm_edit_rename(call->model->file, list, call->count, call->scratch, &call->findings,
                          call->err);
}

enum cameo_status cameo_model_rename(struct cameo_model *model,
                                     const struct cameo_renaming *renamings, size_t count,
                                     const struct cameo_edit **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(renamings, count, err);
    struct edit_call call = {
        .model = model, .edit = rename_things, .list = renamings, .count = count};

    return run_edit(&call, report, err);
}

static enum cm_status set_shapes(struct edit_call *call)
{
    const struct cm_edit_types types = {infer_types, call};
    struct cm_reshaping *list = CM_NEW_ARRAY(call->scratch, struct cm_reshaping, call->count);

    for (size_t i = 0; i < call->count; i++) {
        struct cameo_reshaping row = CAMEO_RESHAPING_INIT;

        CM_TRY(cm_api_item(&row, sizeof row, call->list, i, call->err));
        list[i] = (struct cm_reshaping){cm_str(row.name), cm_str(row.dims)};
    }
    return cm_edit_set_shapes(call->model->file, list, call->count, &types, call->scratch,
                              &call->findings, call->err);
}

enum cameo_status cameo_model_set_shapes(struct cameo_model *model,
                                         const struct cameo_reshaping *shapes, size_t count,
                                         const struct cameo_edit **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(shapes, count, err);
    struct edit_call call = {.model = model, .edit = set_shapes, .list = shapes, .count = count};

    return run_edit(&call, report, err);
}
