/* What stands in the way of running a model, all of it at once. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include "base/diagnostics.h"
#include "graph/function.h"
#include "graph/import_context.h"
#include "graph/registry.h"
#include "schema/levels.h"

enum { DEPTH_MAX = 64 };

/* ---- before the graph is built ---- */

struct search {
    const struct cm_model_proto *model;
    const struct cm_registry *registry;
    struct cm_findings *list;
};

static bool is_function(const struct cm_model_proto *model, const struct cm_node_proto *node)
{
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *function = &model->functions.items[i];
        if (cm_str_equal(function->name, node->op_type) &&
            cm_str_equal(cm_domain_plain(function->domain), cm_domain_plain(node->domain)))
            return true;
    }
    return false;
}

/* Why nobody can run it, or NULL. Operators that were taken out of ONNX are brought up to date by
 * rules, which say what they cannot. */
static const char *why_not(const struct search *search, const struct cm_node_proto *node)
{
    const struct cm_op *op = cm_registry_op(search->registry, node->domain, node->op_type);

    if ((op && (op->run || op->body || op->effects & CM_REPLACED)) ||
        cm_registry_body(search->registry, node->domain, node->op_type) ||
        is_function(search->model, node))
        return NULL;
    const struct cm_schema *schema =
        cm_registry_schema(search->registry, node->domain, node->op_type, 0);
    if (!schema)
        return NULL; /* the importer says so */
    return schema->deprecated ? NULL : "there is no kernel and no function body for it";
}

static void search_nodes(struct search *search, const struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count && depth < DEPTH_MAX; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const char *reason = why_not(search, node);

        if (reason)
            cm_findings_unsupported(search->list, cm_import_name_node(search->list->arena, node),
                                    "%s", reason);
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                search_nodes(search, &node->attribute.items[a].g->node, depth + 1);
    }
}

void cm_lower_list_unknown(struct cm_findings *list, const struct cm_model_proto *model,
                           const struct cm_registry *registry)
{
    struct search search = {model, registry, list};

    if (!model->graph)
        return; /* the importer says so */
    search_nodes(&search, &model->graph->node, 0);
    for (size_t i = 0; i < model->functions.count; i++)
        search_nodes(&search, &model->functions.items[i].node, 0);
}

/* ---- after it ---- */

void cm_lower_list_unrunnable(struct cm_findings *list, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const bool kernel = !node->function && node->op && node->op->run;

        if (kernel && !cm_node_is_current(node))
            cm_findings_unsupported(list, cm_str(cm_node_describe(node).text),
                                    "this version of the operator is not supported");
        else if (!kernel && !cm_node_has_function(node))
            cm_findings_unsupported(list, cm_str(cm_node_describe(node).text),
                                    "there is no kernel and no function body for it");
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                cm_lower_list_unrunnable(list, node->bodies[i].graph);
    }
}

void cm_lower_list_others(struct cm_findings *list, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        if (cm_level_of(node->domain, node->op_type) != CM_LEVEL_CORE)
            cm_findings_unsupported(list, cm_str(cm_node_describe(node).text),
                                    "its operator is not a core operator");
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                cm_lower_list_others(list, node->bodies[i].graph);
    }
}
