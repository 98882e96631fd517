/* What inference finds wrong with a model: the working copy is built as for a run, but to be
 * judged, and every reason why a node could not be typed becomes a finding. Weights are not read.
 */
// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include "graph/import.h"
#include "onnx/defined_names.h"

enum { WORK_MAX = 1000 * 1000 };

struct judging {
    const struct cm_model_proto *model;
    cm_import_fn *import;
    struct cm_module *module;
    struct cm_arena *arena;
    struct cm_findings found;
    struct cm_map variables; /* what bindings assign, so that it is no constant */
    struct cm_map constants; /* initializers of the inference graph, by name */
    size_t work;             /* functions that were listed for initialization graphs so far */
};

/* Failures that say nothing of the model end the check; a limit ends only this part of it. */
static enum cm_status settle(struct judging *j, enum cm_status status, struct cm_error *err)
{
    if (status != CM_LIMIT && status != CM_UNSUPPORTED && status != CM_BAD_MODEL)
        return status;
    cm_findings_judge(&j->found, "TY4", NULL, "%s", err->text);
    return CM_OK;
}

static struct cm_import_options options_of(struct judging *j)
{
    return (struct cm_import_options){.findings = &j->found,
                                      .opens = cm_tensor_is_named,
                                      .opens_arg = &j->variables,
                                      .partial = true,
                                      .judge = true};
}

/* ---- bindings ---- */

static void judge_bindings(struct judging *j, const struct cm_entries *bindings,
                           const struct cm_graph *keys, const struct cm_graph *values)
{
    const struct cm_symbols *symbols = cm_module_symbols(j->module);

    for (size_t i = 0; i < bindings->count; i++) {
        const struct cm_entry_proto *binding = &bindings->items[i];
        const cm_value key = cm_graph_find(keys, binding->key);
        const cm_value value = cm_graph_find(values, binding->value);

        if (!key || !value) /* the checker has said so, or it could not be built */
            continue;
        const struct cm_type *wanted = cm_value_get(j->module, key)->fact.type;
        const struct cm_type *given = cm_value_get(j->module, value)->fact.type;
        if (!cm_type_meet(j->arena, wanted, given))
            cm_findings_judge(
                &j->found, "TR12", binding, "'%.*s' is %s, but the variable '%.*s' is %s",
                CM_STR_FMT(binding->value), cm_type_print(j->arena, symbols, given).data,
                CM_STR_FMT(binding->key), cm_type_print(j->arena, symbols, wanted).data);
    }
}

/* ---- initialization graphs ---- */

/* Adds the initializer of that name which the graph may read from around it. */
static void add_read(struct judging *j, const struct cm_map *own, struct cm_map *seen,
                     struct cm_graph_proto *around, struct cm_str name)
{
    const uint64_t found = cm_map_get(own, name, cm_map_get(&j->constants, name, 0));

    if (!found)
        return;
    if (cm_map_add(seen, j->arena, name))
        *CM_LIST_ADD(j->arena, &around->initializer) =
            *(const struct cm_tensor_proto *)(uintptr_t)found;
}

static void add_reads(struct judging *j, const struct cm_map *own, struct cm_map *seen,
                      struct cm_graph_proto *around, const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];

        for (size_t k = 0; k < node->input.count; k++)
            add_read(j, own, seen, around, node->input.items[k]);
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                add_reads(j, own, seen, around, &node->attribute.items[a].g->node);
    }
}

static void map_initializers(struct judging *j, struct cm_map *out,
                             const struct cm_graph_proto *graph)
{
    for (size_t i = 0; graph && i < graph->initializer.count; i++)
        *cm_map_insert(out, j->arena, graph->initializer.items[i].name, NULL) =
            (uint64_t)(uintptr_t)&graph->initializer.items[i];
}

/* The graph runs alone, but may read initializers of the other two graphs. The import gets only
 * those that it reads, since there may be many entries. */
static enum cm_status judge_initialization(struct judging *j, const struct cm_training_proto *entry,
                                           const struct cm_graph *keys, struct cm_error *err)
{
    struct cm_import_options options = options_of(j);
    struct cm_graph_proto *around = CM_NEW(j->arena, struct cm_graph_proto);
    const struct cm_graph_proto *const arounds[] = {around};
    struct cm_model_proto *model = CM_NEW(j->arena, struct cm_model_proto);
    struct cm_map own = {0}, seen = {0};
    struct cm_graph *graph;

    if (!entry->initialization || j->work > WORK_MAX)
        return CM_OK;
    /* Each import goes through all functions: many of both would take for ever. */
    j->work += j->model->functions.count;
    if (j->work > WORK_MAX) {
        (void)cm_fail(err, CM_LIMIT, "it has too many functions and initialization graphs");
        return settle(j, CM_LIMIT, err);
    }
    map_initializers(j, &own, entry->algorithm);
    add_reads(j, &own, &seen, around, &entry->initialization->node);
    *model = *j->model;
    model->graph = entry->initialization;
    options.around = arounds;
    options.n_around = 1;
    const enum cm_status status = j->import(j->module, model, &options, &graph, err);
    if (status)
        return settle(j, status, err);
    judge_bindings(j, &entry->initialization_binding, keys, graph);
    return CM_OK;
}

/* ---- the whole ---- */

static enum cm_status judge_graphs(struct judging *j, struct cm_error *err)
{
    const struct cm_model_proto *model = j->model;
    const size_t n = model->training_info.count;
    const struct cm_graph_proto **inner = CM_NEW_ARRAY(j->arena, const struct cm_graph_proto *, n);
    struct cm_graph **inner_graphs = CM_NEW_ARRAY(j->arena, struct cm_graph *, n);
    static const struct cm_graph_proto nothing;
    struct cm_import_options options = options_of(j);
    struct cm_graph *graph;

    j->variables = cm_training_variables(j->arena, model);
    for (size_t i = 0; i < n; i++) {
        const struct cm_training_proto *entry = &model->training_info.items[i];

        inner[i] = entry->algorithm ? entry->algorithm : &nothing;
    }
    options.inner = inner;
    options.n_inner = n;
    options.inner_graphs = inner_graphs;
    const enum cm_status status = j->import(j->module, model, &options, &graph, err);
    if (status)
        return settle(j, status, err);
    map_initializers(j, &j->constants, model->graph);
    for (size_t i = 0; i < n; i++) {
        const struct cm_training_proto *entry = &model->training_info.items[i];
        const struct cm_graph *keys = inner_graphs[i] ? inner_graphs[i] : graph;

        judge_bindings(j, &entry->update_binding, keys, keys);
        CM_TRY(judge_initialization(j, entry, keys, err));
    }
    return CM_OK;
}

/* Functions that call each other in a circle cannot be expanded, and the findings say so. */
static bool is_finite(const struct cm_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->items[i].rule, "CK70") == 0)
            return false;
    return true;
}

enum cm_status cm_check_types(const struct cm_model_file *file, const struct cm_registry *registry,
                              cm_import_fn *import, unsigned flags, struct cm_arena *scratch,
                              struct cm_findings *findings, struct cm_error *err)
{
    const struct cm_model_proto *model = &file->model;
    struct judging j = {
        .model = model, .import = import, .arena = scratch, .found = {.arena = scratch}};

    if (!model->graph || !is_finite(findings))
        return CM_OK;
    j.module = cm_module_new(
        scratch, &(struct cm_module_options){.registry = registry, .files = file->files});
    CM_TRY(judge_graphs(&j, err));
    cm_check_add_inferred(model, flags, &j.found, findings);
    return CM_OK;
}
