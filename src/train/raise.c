/* Bringing a model to where it can hold training info: opset and IR version, and functions whose
 * insides compute otherwise in training. The graph goes through the working copy and comes back
 * with each node as it was, where that means the same; names and weights stay. */
// SPDX-License-Identifier: Apache-2.0
#include "train/preparation.h"

#include "graph/function.h"
#include "graph/import.h"
#include "graph/registry.h"
#include "rewrite/portable.h"
#include "rewrite/write_model.h"

enum { OPSET_LEAST = 17, IR_LEAST = 7, DEPTH_MAX = 64 };

static struct cm_opset_proto *default_import(struct cm_model_proto *model)
{
    for (size_t i = 0; i < model->opset_import.count; i++)
        if (!cm_domain_plain(model->opset_import.items[i].domain).size)
            return &model->opset_import.items[i];
    return NULL;
}

/* Whether a mode is set in a function, and to what, is seen when it is expanded. */
static bool nodes_change(const struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count && depth < DEPTH_MAX; i++) {
        const struct cm_graph_proto *body;

        if (cm_builtin_op(&nodes->items[i])->training)
            return true;
        for (size_t b = 0; (body = cm_node_subgraph(&nodes->items[i], b)); b++)
            if (nodes_change(&body->node, depth + 1))
                return true;
    }
    return false;
}

static bool graph_changes(const struct cm_graph *graph, void *arg);

/* Calls on the way to such a node count too. How deep they go is limited when they are made. */
static bool changes_inside(const struct cm_node *node, void *arg)
{
    if (!node->function)
        return false;
    if (nodes_change(&node->function->node, 0))
        return true;
    return node->instance && graph_changes(node->instance, arg);
}

static bool graph_changes(const struct cm_graph *graph, void *arg)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        if (changes_inside(node, arg))
            return true;
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph && graph_changes(node->bodies[b].graph, arg))
                return true;
    }
    return false;
}

static bool function_changes(const struct cm_model_proto *model)
{
    for (size_t i = 0; i < model->functions.count; i++)
        if (nodes_change(&model->functions.items[i].node, 0))
            return true;
    return false;
}

/* The versions that the graph was written under; what else the model imports stays. */
static void take_imports(struct cm_preparation *p, const struct cm_opsets *written)
{
    struct cm_opsets *imports = &p->model->opset_import;
    const size_t count = imports->count;

    for (size_t i = 0; i < written->count; i++) {
        const struct cm_str domain = cm_domain_plain(written->items[i].domain);
        struct cm_opset_proto *import = NULL;

        for (size_t k = 0; k < count && !import; k++)
            if (cm_str_equal(cm_domain_plain(imports->items[k].domain), domain))
                import = &imports->items[k];
        if (!import)
            *CM_LIST_ADD(p->arena, imports) = written->items[i];
        else if (import->version != written->items[i].version)
            *import = written->items[i];
    }
    cm_msg_set(&p->model->msg, CM_MODEL_OPSET_IMPORT);
}

/* The graph under an opset that can hold training takes the place of the model's. */
static enum cm_status replace_graph(struct cm_preparation *p, struct cm_graph *graph)
{
    const struct cm_write_options options = {.untouched = true};
    struct cm_model_proto *model = p->model;
    struct cm_model_file *written;
    struct cm_write_report report;

    /* A training form inside a function may hold others: all calls on the way are expanded. */
    CM_TRY(cm_graph_inline_all(graph, changes_inside, NULL, p->err));
    CM_TRY(cm_write_model(graph, p->file, &options, p->arena, &written, &report, p->err));
    model->graph = written->model.graph;
    cm_msg_set(&model->msg, CM_MODEL_GRAPH);
    take_imports(p, &written->model.opset_import);
    if (report.functions) { /* for operators that the opset does not have */
        model->functions = written->model.functions;
        cm_msg_set(&model->msg, CM_MODEL_FUNCTIONS);
    }
    return CM_OK;
}

static enum cm_status rebuild(struct cm_preparation *p)
{
    const size_t known = p->blockers.count;
    struct cm_graph *graph;

    CM_TRY(cm_preparation_import(p, NULL, &graph));
    const enum cm_status status = replace_graph(p, graph);
    if (status == CM_OK || !known)
        return status;
    cm_preparation_block(p, "%s", p->err->text);
    return cm_preparation_verdict(p);
}

/* Before IR version 4 every initializer was an input as well; now that would make it a default. */
static void drop_covered_inputs(struct cm_preparation *p)
{
    struct cm_graph_proto *graph = p->model->graph;
    struct cm_map initializers = {0};
    size_t kept = 0;

    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&initializers, p->arena, graph->initializer.items[i].name, NULL);
    struct cm_value_info_proto *inputs =
        CM_NEW_ARRAY(p->arena, struct cm_value_info_proto, graph->input.count);
    for (size_t i = 0; i < graph->input.count; i++)
        if (!cm_map_find(&initializers, graph->input.items[i].name))
            inputs[kept++] = graph->input.items[i];
    if (kept == graph->input.count)
        return;
    graph->input.items = inputs;
    graph->input.count = kept;
    cm_msg_set(&graph->msg, CM_GRAPH_INPUT);
}

static void raise_ir(struct cm_preparation *p, int64_t opset, bool rebuilt)
{
    struct cm_model_proto *model = p->model;
    const int64_t old = model->ir_version, needed = rebuilt ? cm_ir_of_opset(opset) : IR_LEAST;

    if (old >= needed)
        return;
    if (old < 4)
        drop_covered_inputs(p);
    model->ir_version = needed;
    cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    cm_preparation_note(p, "IR version raised from %lld to %lld", (long long)old,
                        (long long)needed);
}

enum cm_status cm_raise(struct cm_preparation *p)
{
    struct cm_model_proto *model = p->model;
    const struct cm_opset_proto *import = default_import(model);
    const int64_t opset = import ? import->version : 1;
    const bool old = opset < OPSET_LEAST, inside = function_changes(model);
    const size_t n_inputs = model->graph->input.count;

    if (p->options->keep_opset) {
        if (old)
            cm_preparation_block(p, "the model imports opset %lld, training needs at least %d",
                                 (long long)opset, OPSET_LEAST);
        if (model->ir_version < IR_LEAST)
            cm_preparation_block(p,
                                 "the model has IR version %lld, training info needs at least %d",
                                 (long long)model->ir_version, IR_LEAST);
    } /* and on, to see what else stands in the way */
    if (old || inside) {
        CM_TRY(rebuild(p));
        if (inside)
            cm_preparation_note(p,
                                "calls of functions that hold BatchNormalization or Dropout were "
                                "expanded");
        import = default_import(model);
        if (import && import->version != opset)
            cm_preparation_note(p, "opset raised from %lld to %lld", (long long)opset,
                                (long long)import->version);
    }
    raise_ir(p, import ? import->version : OPSET_LEAST, old || inside);
    const size_t fewer = n_inputs - model->graph->input.count;
    if (fewer)
        cm_preparation_note(p, "%zu initializer%s no longer listed as input too", fewer,
                            fewer == 1 ? " is" : "s are");
    return CM_OK;
}
