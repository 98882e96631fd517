/* Calls become bodies. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/function.h"

#include "graph/module.h"
#include "graph/registry.h"

bool cm_node_has_kernel(const struct cm_node *node)
{
    return !node->function && node->op && node->op->run && cm_node_is_current(node);
}

bool cm_node_has_function(const struct cm_node *node)
{
    return node->function || (node->op && node->op->body) ||
           cm_registry_body(node->module->registry, node->domain, node->op_type);
}

cm_value cm_body_input(const struct cm_body *b, int i)
{
    return i < b->node->n_inputs ? b->in[i] : 0;
}

bool cm_body_wants(const struct cm_body *b, int o)
{
    return cm_node_output(b->node, o) != 0;
}

enum cm_status cm_body_return(struct cm_body *b, int o, cm_value value)
{
    if (!b->build.status && o < b->node->n_outputs)
        b->out[o] = value;
    return b->build.status;
}

enum cm_status cm_body_decline(struct cm_body *b, const char *format, ...)
{
    char text[CM_ERROR_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cm_builder_fail(&b->build, CM_UNSUPPORTED, "no function body for this case: %s", text);
}

static enum cm_status expand(struct cm_node *node, struct cm_graph *graph, struct cm_node *before,
                             const cm_value *actuals, cm_value *results, struct cm_error *err)
{
    if (node->function)
        return cm_import_function(graph, before, node->function, node, actuals, results, err);
    if (node->op && node->op->body) {
        struct cm_body body = {.build = {.graph = graph, .before = before, .err = err},
                               .node = node,
                               .in = actuals,
                               .out = results};
        CM_TRY(node->op->body(&body));
        return body.build.status;
    }
    const struct cm_function_proto *text =
        cm_registry_body(node->module->registry, node->domain, node->op_type);
    if (!text)
        return cm_fail(err, CM_UNSUPPORTED, "it has no function body");
    return cm_import_function(graph, before, text, node, actuals, results, err);
}

/* Expands the body of node before `before` in graph, reading actuals; results has node->n_outputs
 * values. */
static enum cm_status function_expand(struct cm_node *node, struct cm_graph *graph,
                                      struct cm_node *before, const cm_value *actuals,
                                      cm_value *results, struct cm_error *err)
{
    struct cm_module *module = node->module;
    if (module->call_depth >= CM_CALL_DEPTH)
        return cm_fail(err, CM_LIMIT, "functions call each other more than %d deep", CM_CALL_DEPTH);
    module->call_depth++;
    const enum cm_status status = expand(node, graph, before, actuals, results, err);
    module->call_depth--;
    CM_TRY(status);
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && !results[o])
            return cm_fail(err, CM_BAD_MODEL, "its function body gives no output %d", o);
    return CM_OK;
}

/* The importer asks the call for its attributes and for how many operands there are. */
static enum cm_status apply(struct cm_builder *build, const struct cm_function_proto *function,
                            struct cm_node as_called, const cm_value *actuals, cm_value *results)
{
    CM_TRY(build->status);
    as_called.n_inputs = (int)function->input.count;
    as_called.n_outputs = (int)function->output.count;
    build->status = cm_import_function(build->graph, build->before, function, &as_called, actuals,
                                       results, build->err);
    for (size_t o = 0; o < function->output.count && !build->status; o++) {
        if (!results[o])
            build->status =
                cm_fail(build->err, CM_BAD_MODEL, "function '%.*s' never sets '%.*s'",
                        CM_STR_FMT(function->name), CM_STR_FMT(function->output.items[o]));
    }
    return build->status;
}

enum cm_status cm_function_apply(struct cm_builder *build, const struct cm_function_proto *function,
                                 const struct cm_node *call, const cm_value *actuals,
                                 cm_value *results)
{
    struct cm_node as_called = *call;

    as_called.function = NULL;
    return apply(build, function, as_called, actuals, results);
}

enum cm_status cm_function_apply_alone(struct cm_builder *build,
                                       const struct cm_function_proto *function,
                                       const cm_value *actuals, cm_value *results)
{
    return apply(build, function,
                 (struct cm_node){.module = build->graph->module, .function = function}, actuals,
                 results);
}

/* Says of the nodes from first up to, not including, end what they are part of (the outermost call
 * counts) and what for. */
static void set_part_of(struct cm_node *first, const struct cm_node *end, struct cm_str call,
                        enum cm_node_phase phase)
{
    for (struct cm_node *node = first; node != end; node = node->next) {
        node->part_of = call;
        node->phase = phase;
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                set_part_of(node->bodies[i].graph->first, NULL, call, phase);
    }
}

static struct cm_str call_text(const struct cm_node *node)
{
    if (node->part_of.size)
        return node->part_of;
    if (!node->name.size)
        return node->op_type;
    return cm_arena_printf(node->module->arena, "%.*s (%.*s)", CM_STR_FMT(node->name),
                           CM_STR_FMT(node->op_type));
}

enum cm_status cm_graph_inline(struct cm_node *node, struct cm_error *err)
{
    struct cm_module *module = node->module;
    const struct cm_node *before = node->prev;
    const size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
    cm_value *actuals = CM_NEW_ARRAY(module->arena, cm_value, n_in);
    cm_value *results = CM_NEW_ARRAY(module->arena, cm_value, n_out);
    for (size_t i = 0; i < n_in; i++)
        actuals[i] = node->inputs[i].value;
    CM_TRY(cm_error_context(err, function_expand(node, node->graph, node, actuals, results, err),
                            "%s", cm_node_describe(node).text));
    set_part_of(before ? before->next : node->graph->first, node, call_text(node), node->phase);
    for (size_t o = 0; o < n_out; o++) {
        const cm_value old = node->outputs[o];
        if (!old)
            continue;
        struct cm_value_def *from = cm_value_get(module, old),
                            *to = cm_value_get(module, results[o]);
        const struct cm_str name = from->name;
        cm_value_replace(module, old, results[o]);
        /* The name goes along, unless the body handed an operand through or gave one value twice.
         */
        if (name.size && to->node && to->graph == node->graph && !to->name.size) {
            cm_value_set_name(module, old, CM_STR_NONE);
            cm_value_set_name(module, results[o], name);
        }
    }
    cm_graph_remove_node(node);
    return cm_graph_retype(node->graph, err);
}

enum cm_status cm_graph_inline_all(struct cm_graph *graph, cm_pick_fn *which, void *arg,
                                   struct cm_error *err)
{
    struct cm_node *node = graph->first;
    while (node) {
        if (which(node, arg) && cm_node_has_function(node)) {
            struct cm_node *before = node->prev;
            CM_TRY(cm_graph_inline(node, err));
            node = before ? before->next
                          : graph->first; /* the body's first node: it may call others */
            continue;
        }
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                CM_TRY(cm_graph_inline_all(node->bodies[i].graph, which, arg, err));
        node = node->next;
    }
    return CM_OK;
}

static bool is_call(const struct cm_node *node, void *arg)
{
    (void)arg;
    return node->function != NULL;
}

enum cm_status cm_graph_inline_calls(struct cm_graph *graph, struct cm_error *err)
{
    return cm_module_had(graph->module, CM_HAD_CALLS)
               ? cm_graph_inline_all(graph, is_call, NULL, err)
               : CM_OK;
}

enum cm_status cm_node_instantiate(struct cm_node *node, struct cm_error *err)
{
    struct cm_module *module = node->module;
    if (node->instance)
        return CM_OK;
    const size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
    cm_value *actuals = CM_NEW_ARRAY(module->arena, cm_value, n_in);
    cm_value *results = CM_NEW_ARRAY(module->arena, cm_value, n_out);
    struct cm_graph *instance = cm_graph_new(module, NULL, node->op_type);
    for (size_t i = 0; i < n_in; i++) {
        const cm_value outside = node->inputs[i].value;
        if (!outside)
            continue;
        /* Constants stay known inside, so that a body's shape arithmetic works as it does inlined.
         */
        const struct cm_tensor *constant;
        CM_TRY(cm_value_constant(module, outside, &constant, err));
        const struct cm_fact *fact = &cm_value_get(module, outside)->fact;
        actuals[i] = cm_graph_add_input(instance, CM_STR_NONE, fact->type);
        cm_value_get(module, actuals[i])->fact = *fact;
    }
    CM_TRY(function_expand(node, instance, NULL, actuals, results, err));
    size_t wanted = 0;
    for (size_t o = 0; o < n_out; o++)
        if (node->outputs[o])
            results[wanted++] = results[o];
    cm_graph_set_outputs(instance, results, wanted);
    instance->owner = node;
    node->instance = instance;
    return CM_OK;
}
