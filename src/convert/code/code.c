/* From a model to the folder. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include "base/folder_save.h"
#include "graph/function.h"
#include "graph/import.h"
#include "graph/registry.h"
#include "lower/lower.h"

#include <string.h>

extern const struct cm_code_framework cm_code_torch, cm_code_jax;

const struct cm_code_framework *const cm_code_frameworks[] = {&cm_code_torch, &cm_code_jax};
const size_t cm_code_framework_count = CM_COUNT(cm_code_frameworks);

const struct cm_code_framework *cm_code_framework_find(const char *name)
{
    for (size_t i = 0; i < cm_code_framework_count; i++)
        if (strcmp(cm_code_frameworks[i]->name, name) == 0)
            return cm_code_frameworks[i];
    return NULL;
}

/* ---- the graph ---- */

static bool has_no_row(const struct cm_node *node, void *arg)
{
    const struct cm_code *code = arg;

    return node->function ||
           (cm_node_has_function(node) && !cm_code_row(code->to, node->domain, node->op_type));
}

static enum cm_status expand(struct cm_code *code, struct cm_error *err)
{
    return cm_graph_inline_all(code->graph, has_no_row, code, err);
}

/* What exporters spell out becomes one operator again, and arithmetic on sizes is computed. */
static enum cm_status prepare_graph(struct cm_code *code, struct cm_error *err)
{
    const struct cm_lower_options options = {
        .table = &cm_code_passes, .keep_operators = true, .pass = {.training = true}};

    CM_TRY(cm_graph_inline_calls(code->graph, err));
    CM_TRY(cm_code_take_tensors(code, err));
    CM_TRY(cm_lower_graph(code->graph, &options, err));
    CM_TRY(expand(code, err));
    CM_TRY(cm_lower_tidy(code->graph, &options, true, err));
    CM_TRY(expand(code, err));
    cm_graph_remove_dead(code->graph);
    return CM_OK;
}

static enum cm_status import_graph(struct cm_code *code, struct cm_error *err)
{
    const struct cm_module_options options = {.registry = code->options->registry,
                                              .files = code->file->files,
                                              .node_budget = code->options->node_budget};
    const struct cm_import_options import = {.constant_defaults = true,
                                             .findings = code->options->findings};

    code->module = cm_module_new(code->arena, &options);
    CM_TRY(cm_lower_import_as(code->module, &code->file->model, &import, &code->graph, err));
    code->originals = cm_originals_read(code->arena, code->file->model.graph);
    return CM_OK;
}

/* ---- lines ---- */

/* Variables must not hide what the code calls. */
void cm_code_reserve_names(struct cm_code *code)
{
    const struct cm_str folder = cm_arena_printf(code->arena, "%s/helpers/", code->to->folder);

    for (size_t i = 0; i < cm_framework_text_count; i++) {
        const struct cm_str name = cm_str(cm_framework_texts[i].name);
        if (cm_str_starts(name, cm_str_text(folder)))
            cm_map_add(&code->names, code->arena, cm_str_from(name, folder.size));
    }
    for (size_t i = 0; cm_code_builtins[i]; i++)
        cm_map_add(&code->names, code->arena, cm_str(cm_code_builtins[i]));
    for (size_t i = 0; code->to->taken[i]; i++)
        cm_map_add(&code->names, code->arena, cm_str(code->to->taken[i]));
}

/* Inputs keep their names, as far as they can be had. */
static void take_inputs(struct cm_code *code)
{
    for (size_t i = 0; i < code->graph->n_inputs; i++) {
        const cm_value value = code->graph->inputs[i];
        const struct cm_str ref = cm_code_value(code, value);
        size_t at = 0, number;
        char kind;

        if (!cm_code_read_ref(ref, &at, &kind, &number) || kind != CM_CODE_VAR)
            continue;
        struct cm_code_var *var = &code->vars.items[number];
        struct cm_str name = cm_value_get(code->module, value)->name;
        if (code->is_function && cm_str_ends(name, CM_CODE_CUT))
            name.size -= strlen(CM_CODE_CUT);
        var->name = cm_code_unique(code, &code->names, cm_code_identifier(code->arena, name));
        var->hint = var->name;
        *CM_PUSH(code->arena, &code->inputs) = number;
    }
}

static void write_result(struct cm_code *code)
{
    struct cm_code_text out = {0};

    cm_code_put(code, &out, CM_STR("return "));
    for (size_t i = 0; i < code->graph->n_outputs; i++) {
        cm_code_put(code, &out, i ? CM_STR(", ") : CM_STR(""));
        cm_code_put(code, &out, cm_code_value(code, code->graph->outputs[i].value));
    }
    if (!code->graph->n_outputs)
        cm_code_put(code, &out, CM_STR("None"));
    cm_code_line(code, 0, cm_code_text_str(&out));
}

enum cm_status cm_code_make_lines(struct cm_code *code, struct cm_error *err)
{
    cm_code_reserve_names(code);
    take_inputs(code);
    CM_TRY(cm_code_nodes(code, code->graph, err));
    write_result(code);
    cm_code_remove_dead(code);
    cm_code_note_live(code);
    if (code->to->layer && !code->is_function)
        cm_code_find_blocks(code);
    cm_code_tidy(code);
    return cm_code_settle_tensors(code, err);
}

/* ---- the whole ---- */

static void list_tensors(struct cm_code *code)
{
    code->saved = cm_saved_new(code->arena, code->file->path);
    code->saved->system = code->to->system;
    code->saved->cancel = code->options->cancel;
    for (size_t i = 0; i < code->tensors.count; i++) {
        const struct cm_code_tensor *tensor = &code->tensors.items[i];

        if (tensor->is_used && tensor->saved)
            cm_saved_add(code->saved, tensor->is_parameter ? CM_SAVED_WEIGHT : CM_SAVED_BUFFER,
                         tensor->path, tensor->saved);
    }
}

static enum cm_status write_folder(struct cm_code *code, const char *path, struct cm_error *err)
{
    struct cm_folder_save *folder = CM_NEW(code->arena, struct cm_folder_save);

    CM_TRY(cm_folder_begin(folder, path, err));
    cm_folder_defer(code->arena, folder);
    CM_TRY(code->to->write(code, folder, err));
    return cm_folder_commit(folder, err);
}

static enum cm_status make(struct cm_arena *arena, const struct cm_model_file *file,
                           const struct cm_code_options *options, struct cm_code **out,
                           struct cm_error *err)
{
    struct cm_code *code = *out = CM_NEW(arena, struct cm_code);

    *code = (struct cm_code){.arena = arena,
                             .to = options->to,
                             .options = options,
                             .file = file,
                             .lists = CM_NEW(arena, struct cm_map),
                             .err = err};
    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    CM_TRY(import_graph(code, err));
    CM_TRY(prepare_graph(code, err));
    CM_TRY(cm_code_make_lines(code, err));
    CM_TRY(cm_findings_fail(options->findings, err));
    list_tensors(code);
    if (options->unchecked)
        cm_saved_note(arena, &code->notes, "no check is written, because the model did not run: %s",
                      options->unchecked);
    return CM_OK;
}

enum cm_status cm_code_text(struct cm_arena *arena, const struct cm_model_file *file,
                            const struct cm_code_options *options, struct cm_str *out,
                            struct cm_error *err)
{
    struct cm_code *code;

    CM_TRY(make(arena, file, options, &code, err));
    *out = options->to->model(code);
    return CM_OK;
}

enum cm_status cm_code_export(struct cm_arena *arena, const struct cm_model_file *file,
                              const char *path, const struct cm_code_options *options,
                              struct cm_code_report *report, struct cm_error *err)
{
    struct cm_code *code;

    CM_TRY(make(arena, file, options, &code, err));
    report->saved = code->saved;
    if (path)
        CM_TRY(write_folder(code, path, err));
    report->notes = code->notes;
    return CM_OK;
}
