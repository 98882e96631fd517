/* What passes share: putting one value in the place of another. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pass.h"

bool cm_is_output(const struct cm_graph *graph, cm_value value)
{
    for (const struct cm_use *use = cm_value_get(graph->module, value)->uses; use; use = use->next)
        if (!use->node && use->graph == graph)
            return true;
    return false;
}

/* May replacement be called as an output of the graph is called? */
static bool takes_name(const struct cm_graph *graph, cm_value replacement)
{
    const struct cm_value_def *def = cm_value_get(graph->module, replacement);
    return def->node && def->graph == graph && !cm_is_output(graph, replacement);
}

bool cm_replace_value(struct cm_graph *graph, cm_value old, cm_value replacement)
{
    struct cm_module *module = graph->module;
    struct cm_value_def *from = cm_value_get(module, old), *to = cm_value_get(module, replacement);
    const bool is_output = cm_is_output(graph, old);

    if (is_output && !takes_name(graph, replacement))
        return false;
    const struct cm_str name = from->name;
    cm_value_replace(module, old, replacement);
    if (name.size && to->node && to->graph == graph && (is_output || !to->name.size)) {
        cm_value_set_name(module, old, CM_STR_NONE);
        cm_value_set_name(module, replacement, name);
    }
    return true;
}
