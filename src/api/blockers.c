/* What stands in the way of running a model, all of it at once. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "graph/function.h"
#include "graph/registry.h"

enum { DEPTH_MAX = 64 };

/* One sentence after another, until there is no room; then their number says the rest. */
struct complaints {
    char text[CM_ERROR_SIZE - 100];
    size_t used, count, shown;
};

static void complain(struct complaints *list, const char *node, const char *reason)
{
    const size_t room = sizeof list->text - list->used;

    list->count++;
    if (list->shown + 1 < list->count) /* one did not fit: later ones would look like all */
        return;
    const int size =
        snprintf(list->text + list->used, room, "%s%s: %s", list->used ? "; " : "", node, reason);
    if (size > 0 && (size_t)size < room) {
        list->used += (size_t)size;
        list->shown++;
    } else {
        list->text[list->used] = 0;
    }
}

static enum cm_status tell(const struct complaints *list, struct cm_error *err)
{
    char more[64] = "";

    if (list->count == 0)
        return CM_OK;
    if (list->shown < list->count)
        snprintf(more, sizeof more, "; and %zu more", list->count - list->shown);
    return cm_fail(err, CM_UNSUPPORTED, "%zu node%s cannot run: %s%s", list->count,
                   list->count == 1 ? "" : "s", list->text, more);
}

/* ---- before the graph is built ---- */

struct search {
    const struct cm_model_proto *model;
    const struct cm_registry *registry;
    struct complaints list;
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
        return "there is no such operator";
    return schema->deprecated ? NULL : "there is no kernel and no function body for it";
}

static void search_nodes(struct search *search, const struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count && depth < DEPTH_MAX; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const char *reason = why_not(search, node);
        char name[300];

        if (reason) {
            if (node->name.size)
                snprintf(name, sizeof name, "node '%.*s' (%.*s)",
                         (int)(node->name.size < 100 ? node->name.size : 100), node->name.data,
                         CM_STR_FMT(node->op_type));
            else
                snprintf(name, sizeof name, "node %zu (%.*s)", i, CM_STR_FMT(node->op_type));
            complain(&search->list, name, reason);
        }
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                search_nodes(search, &node->attribute.items[a].g->node, depth + 1);
    }
}

enum cm_status cm_api_check_nodes(struct cm_arena *scratch, const struct cm_model_proto *model,
                                  const struct cm_registry *registry, struct cm_error *err)
{
    struct search *search = CM_NEW(scratch, struct search);

    if (!model->graph)
        return CM_OK; /* the importer says so */
    search->model = model;
    search->registry = registry;
    search_nodes(search, &model->graph->node, 0);
    for (size_t i = 0; i < model->functions.count; i++)
        search_nodes(search, &model->functions.items[i].node, 0);
    return tell(&search->list, err);
}

/* ---- after it ---- */

static void search_graph(const struct cm_graph *graph, struct complaints *list)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const bool kernel = !node->function && node->op && node->op->run;

        if (kernel && !cm_node_is_current(node))
            complain(list, cm_node_describe(node).text, "its version cannot be brought up to date");
        else if (!kernel && !cm_node_has_function(node))
            complain(list, cm_node_describe(node).text,
                     "there is no kernel and no function body for it");
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                search_graph(node->bodies[i].graph, list);
    }
}

enum cm_status cm_api_check_graph(const struct cm_graph *graph, struct cm_error *err)
{
    struct complaints list = {.used = 0};

    search_graph(graph, &list);
    return tell(&list, err);
}
