/* The oldest opset a graph can be written under. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/portable.h"

#include "graph/function.h"
#include "graph/registry.h"
#include "versions/upgrade.h"
#include "versions/upgrade_step.h"

/* Does a node that is legal in both mean the same in version `to` and in the one before it? */
static bool is_same(const struct cm_node *node, int to)
{
    const struct cm_version_row *row = cm_version_find_row(node->domain, node->op_type, to);
    if (row && row->same_where_legal)
        return true;
    return !(row && row->up_note) && cm_version_is_unchanged(node->domain, node->op_type, to) &&
           !cm_version_new_word(node, to);
}

int64_t cm_portable_version(const struct cm_node *node, int64_t at_least)
{
    const struct cm_registry *registry = cm_module_registry(node->module);
    const struct cm_schema *schema = node->schema;

    while (schema && schema->since_version > at_least) {
        const struct cm_schema *before =
            cm_registry_schema(registry, node->domain, node->op_type, schema->since_version - 1);
        if (!before || !is_same(node, schema->since_version) || !cm_node_fits(node, before))
            return schema->since_version;
        schema = before;
    }
    return at_least;
}

bool cm_operator_means_same(const struct cm_registry *registry, struct cm_str domain,
                            struct cm_str op_type, int64_t original, int64_t version)
{
    const struct cm_schema *schema = cm_registry_schema(registry, domain, op_type, version);

    if (!schema || schema->deprecated || schema->since_version < original)
        return false;
    while (schema->since_version > original) {
        if (cm_upgrade_known(domain, op_type, schema->since_version) != CM_UPGRADE_SAME)
            return false;
        schema = cm_registry_schema(registry, domain, op_type, schema->since_version - 1);
        if (!schema)
            return false;
    }
    return true;
}

struct lowest {
    int64_t opset;
    const struct cm_node *why;
};

static void raise_to(struct lowest *lowest, const struct cm_graph *graph)
{
    for (const struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));) {
        const int64_t needed = cm_domain_plain(node->domain).size
                                   ? lowest->opset
                                   : cm_portable_version(node, lowest->opset);
        if (needed > lowest->opset)
            *lowest = (struct lowest){needed, node};
    }
}

enum cm_status cm_portable_opset(const struct cm_graph *graph, int64_t at_least, int64_t *opset,
                                 struct cm_error *err)
{
    struct lowest lowest = {at_least, NULL};
    raise_to(&lowest, graph);
    *opset = lowest.opset;
    if (lowest.opset > cm_schema_newest_opset(CM_STR("")))
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no opset %lld of ai.onnx",
                       (long long)lowest.opset);
    return CM_OK;
}

const struct cm_node *cm_portable_blocker(const struct cm_graph *graph, int64_t at_least)
{
    struct lowest lowest = {at_least, NULL};
    raise_to(&lowest, graph);
    return lowest.why;
}

void cm_portable_label(struct cm_arena *arena, struct cm_opsets *imports, int64_t opset)
{
    struct cm_opset_proto *import = cm_opsets_find(imports, CM_STR_NONE);
    if (!import)
        import = CM_LIST_ADD(arena, imports);
    import->version = opset;
    cm_msg_set(&import->msg, CM_OPSET_DOMAIN);
    cm_msg_set(&import->msg, CM_OPSET_VERSION);
}

static bool is_ours(const struct cm_node *node, void *arg)
{
    (void)arg;
    return cm_str_is(node->domain, "ai.cameo");
}

enum cm_status cm_portable_inline(struct cm_graph *graph, struct cm_error *err)
{
    return cm_graph_inline_all(graph, is_ours, NULL, err);
}

int64_t cm_ir_of_opset(int64_t opset)
{
    static const struct {
        int opset, ir;
    } steps[] = {{25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};

    for (size_t i = 0; i < CM_COUNT(steps); i++)
        if (opset >= steps[i].opset)
            return steps[i].ir;
    return 7;
}
