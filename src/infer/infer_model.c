/* Inference over a whole model: every graph of it is imported into one module, which types it; what
 * names of the file became is noted on the way, and at the end their types are written down. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/infer_model.h"

#include "infer/infer_write.h"
#include "onnx/defined_names.h"

#include <stdlib.h>

enum { IR_WITH_FUNCTION_TYPES = 10, NODES_MAX = 1000000 };

/* ---- which values the names of the file became ---- */

static struct cm_str key_of(struct cm_arena *arena, const void *owner, struct cm_str name)
{
    char *key = cm_arena_alloc(arena, sizeof owner + name.size);
    memcpy(key, &owner, sizeof owner);
    if (name.size)
        memcpy(key + sizeof owner, name.data, name.size);
    return (struct cm_str){key, sizeof owner + name.size};
}

static void note_value(void *arg, const void *owner, struct cm_str name, cm_value value)
{
    struct cm_inferring *i = arg;
    uint64_t *last = cm_map_insert(&i->names, i->scratch, key_of(i->scratch, owner, name), NULL);
    *CM_PUSH(i->scratch, &i->noted) = (struct cm_noted_value){value, (size_t)*last};
    *last = i->noted.count; /* one past, so that 0 is none */
}

static bool is_live(const struct cm_inferring *i, const struct cm_graph *graph)
{
    return cm_map_find_number(&i->live, CM_ADDRESS(graph)) != NULL;
}

/* The graphs that are there: the instance of a call that was typed again is another one. */
static void mark_live(struct cm_inferring *i, const struct cm_graph *graph)
{
    if (!graph)
        return;
    bool added;
    cm_map_insert_number(&i->live, i->scratch, CM_ADDRESS(graph), &added);
    if (!added)
        return;
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        for (size_t b = 0; b < node->n_bodies; b++)
            mark_live(i, node->bodies[b].graph);
        if (node->function)
            mark_live(i, node->instance);
    }
}

const struct cm_type *cm_inferring_type(struct cm_inferring *i, const void *owner,
                                        struct cm_str name)
{
    struct cm_arena *arena = i->scratch;
    const struct cm_type *type = NULL;
    bool any = false;
    for (size_t at = (size_t)cm_map_get(&i->names, key_of(arena, owner, name), 0); at;
         at = i->noted.items[at - 1].next) {
        const struct cm_value_def *def = cm_value_get(i->module, i->noted.items[at - 1].value);
        if (!is_live(i, def->graph))
            continue;
        if (any)
            type = type ? cm_type_join(arena, type, def->fact.type) : NULL;
        else
            type = def->fact.type;
        any = true;
    }
    return type;
}

/* ---- importing ---- */

static struct cm_import_options import_options(struct cm_inferring *i)
{
    struct cm_infer_report *report = i->report;
    return (struct cm_import_options){.findings = &report->findings,
                                      .lists_unsupported = true,
                                      .opens = cm_tensor_is_named,
                                      .opens_arg = &i->variables,
                                      .constant_defaults = !i->options->open_inputs,
                                      .defines = note_value,
                                      .defines_arg = i,
                                      .partial = true,
                                      .judge = true};
}

static enum cm_status import(struct cm_inferring *i, const struct cm_model_proto *model,
                             const struct cm_import_options *options, struct cm_graph **graph,
                             struct cm_error *err)
{
    CM_TRY(i->options->import(i->module, model, options, graph, err));
    mark_live(i, *graph);
    return CM_OK;
}

/* What a binding assigns must be of the type of its variable. */
static void check_bindings(struct cm_inferring *i, size_t entry, const struct cm_entries *bindings,
                           const struct cm_graph *variables, const struct cm_graph *results)
{
    struct cm_arena *arena = i->report->findings.arena;
    const struct cm_symbols *symbols = cm_module_symbols(i->module);
    for (size_t b = 0; b < bindings->count; b++) {
        const struct cm_entry_proto *binding = &bindings->items[b];
        const cm_value key = variables ? cm_graph_find(variables, binding->key) : 0;
        const cm_value value = results ? cm_graph_find(results, binding->value) : 0;
        if (!key || !value)
            continue; /* the checker's business, or listed already */
        const struct cm_type *wanted = cm_value_get(i->module, key)->fact.type;
        const struct cm_type *given = cm_value_get(i->module, value)->fact.type;
        if (cm_type_meet(i->scratch, wanted, given))
            continue;
        cm_findings_add(&i->report->findings, CM_BAD_MODEL,
                        cm_arena_printf(arena, "training info %zu", entry),
                        "'%.*s' is %s, but the variable '%.*s' is %s", CM_STR_FMT(binding->value),
                        cm_type_print(arena, symbols, given).data, CM_STR_FMT(binding->key),
                        cm_type_print(arena, symbols, wanted).data);
    }
}

/* The initialization graph reads initializers of the other two. */
static enum cm_status import_initialization(struct cm_inferring *i, size_t entry,
                                            const struct cm_graph *step, struct cm_error *err)
{
    const struct cm_model_proto *model = &i->file->model;
    const struct cm_training_proto *info = &model->training_info.items[entry];
    const struct cm_graph_proto *const around[] = {model->graph, info->algorithm};
    struct cm_import_options options = import_options(i);
    struct cm_model_proto *other = CM_NEW(i->scratch, struct cm_model_proto);
    struct cm_graph *initialization;

    *other = *model;
    other->graph = info->initialization;
    options.around = around;
    options.n_around = info->algorithm ? 2 : 1;
    CM_TRY(import(i, other, &options, &initialization, err));
    check_bindings(i, entry, &info->initialization_binding, step, initialization);
    return CM_OK;
}

/* Algorithms read the inference graph, which is imported once, and not each other. */
static enum cm_status import_all(struct cm_inferring *i, struct cm_error *err)
{
    const struct cm_model_proto *model = &i->file->model;
    const size_t count = model->training_info.count;
    const struct cm_graph_proto **inner =
        CM_NEW_ARRAY(i->scratch, const struct cm_graph_proto *, count + 1);
    struct cm_graph **steps = CM_NEW_ARRAY(i->scratch, struct cm_graph *, count + 1), *graph;
    struct cm_import_options options = import_options(i);

    i->variables = cm_training_variables(i->scratch, model);
    for (size_t t = 0; t < count; t++) {
        const struct cm_training_proto *info = &model->training_info.items[t];
        inner[t] = info->algorithm ? info->algorithm : CM_NEW(i->scratch, struct cm_graph_proto);
    }
    options.inner = inner;
    options.n_inner = count;
    options.inner_graphs = steps;
    CM_TRY(import(i, model, &options, &graph, err));
    for (size_t t = 0; t < count; t++) {
        mark_live(i, steps[t]);
        check_bindings(i, t, &model->training_info.items[t].update_binding, steps[t], steps[t]);
        if (model->training_info.items[t].initialization)
            CM_TRY(import_initialization(i, t, steps[t], err));
    }
    return CM_OK;
}

/* The importer counts graphs that continue the main one; here they are algorithms. */
static void name_algorithms(struct cm_findings *list)
{
    static const char before[] = "inner graph ";
    for (size_t o = 0; o < list->count; o++) {
        struct cm_str *place = &list->items[o].place;
        char *end;
        if (!cm_str_starts(*place, before))
            continue;
        const unsigned long number = strtoul(cm_str_text(*place) + sizeof before - 1, &end, 10);
        *place = cm_arena_printf(list->arena, "training info %lu: algorithm%s", number - 1, end);
    }
}

/* ---- writing ---- */

static void write_all(struct cm_inferring *i)
{
    struct cm_model_proto *model = &i->file->model;
    struct cm_arena *arena = i->scratch;

    cm_infer_write_graph(i, model->graph, CM_STR(""), 0);
    for (size_t f = 0; f < model->functions.count; f++)
        cm_infer_write_function(i, &model->functions.items[f],
                                model->ir_version >= IR_WITH_FUNCTION_TYPES);
    for (size_t t = 0; t < model->training_info.count; t++) {
        const struct cm_training_proto *info = &model->training_info.items[t];
        if (info->initialization)
            cm_infer_write_graph(i, info->initialization,
                                 cm_arena_printf(arena, "training info %zu: initialization: ", t),
                                 0);
        if (info->algorithm)
            cm_infer_write_graph(i, info->algorithm,
                                 cm_arena_printf(arena, "training info %zu: algorithm: ", t), 0);
    }
}

enum cm_status cm_infer_model(struct cm_arena *arena, struct cm_model_file *file,
                              const struct cm_infer_model_options *options,
                              struct cm_infer_report *report, struct cm_error *err)
{
    struct cm_arena scratch;
    struct cm_inferring i = {
        .arena = arena, .scratch = &scratch, .file = file, .options = options, .report = report};

    *report = (struct cm_infer_report){.findings = {.arena = arena,
                                                    .rule = "infer",
                                                    .what = "types and shapes cannot be inferred"}};
    cm_arena_init(&scratch, arena->guard);
    i.module = cm_module_new(
        &scratch,
        &(struct cm_module_options){.registry = options->registry,
                                    .files = file->files,
                                    .computes_contents = true,
                                    .node_budget = (1 + 2 * file->model.training_info.count) *
                                                   (size_t)NODES_MAX});
    enum cm_status status = import_all(&i, err);
    if (status == CM_OK) {
        name_algorithms(&report->findings);
        if (options->strict)
            cm_findings_raise(&report->findings);
        if (!options->partial)
            status = cm_findings_fail(&report->findings, err);
    }
    if (status == CM_OK)
        write_all(&i);
    cm_arena_release(&scratch);
    return status;
}
