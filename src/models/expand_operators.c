/* Operators by the bodies they stand for. */
// SPDX-License-Identifier: Apache-2.0
#include "models/expansion.h"

#include "base/diagnostics.h"
#include "graph/function.h"
#include "graph/import.h"
#include "graph/node_order.h"
#include "graph/registry.h"
#include "models/write_model.h"
#include "onnx/defined_names.h"
#include "rewrite/pass.h"
#include "schema/levels.h"
#include "versions/portable.h"
#include "versions/upgrade.h"

/* ---- what is to be expanded ---- */

static int64_t imported(const struct cm_expansion *x, struct cm_str domain)
{
    const struct cm_opset_proto *import = cm_opsets_find(&x->model->opset_import, domain);

    return import ? import->version : 0;
}

/* Does the node, as it stands, mean something else under the opset that is written? */
static bool is_outdated(const struct cm_expansion *x, const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);
    const int64_t version = imported(x, domain);

    if (domain.size || x->opset == version)
        return false;
    const struct cm_schema *schema =
        cm_registry_schema(x->registry, domain, node->op_type, version);
    return !schema || !cm_operator_means_same(x->registry, domain, node->op_type,
                                              schema->since_version, x->opset);
}

static bool is_picked(struct cm_expansion *x, const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);
    const bool is_call = cm_expansion_function(x, node) != NULL;

    if (!cm_expansion_picks(x, domain, node->op_type, is_call))
        return false;
    if (is_call || cm_expansion_must(x))
        return true;
    /* With all operators meant, those that have no body, as far as one can tell, stay. */
    const struct cm_op *op = cm_registry_op(x->registry, domain, node->op_type);
    return (op && op->body) || cm_registry_body(x->registry, domain, node->op_type);
}

static bool any_picked(struct cm_expansion *x, const struct cm_nodes *nodes)
{
    bool any = false;

    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        any = is_picked(x, node) || is_outdated(x, node) || any;
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                any = any_picked(x, &node->attribute.items[a].g->node) || any;
    }
    return any;
}

bool cm_expansion_has_operators(struct cm_expansion *x)
{
    const struct cm_graph_proto *graph;
    bool any = false;

    for (size_t at = 0; (graph = cm_model_next_graph(x->model, &at));)
        any = any_picked(x, &graph->node) || any;
    return any;
}

/* ---- one node alone ---- */

/* Names that a node reads from outside, graphs inside it included. */
struct reads {
    struct cm_arena *arena;
    struct cm_map seen;
    struct cm_strs names;
};

static bool note_read(void *arg, struct cm_str name)
{
    struct reads *r = arg;

    if (cm_map_add(&r->seen, r->arena, name))
        *CM_LIST_ADD(r->arena, &r->names) = name;
    return true;
}

static struct cm_fact operand_fact(const struct cm_module *module, cm_value value)
{
    struct cm_fact fact = cm_value_get(module, value)->fact;

    if (!cm_expansion_is_arithmetic(fact.type))
        fact.constant = NULL;
    return fact;
}

/* The node as the body of a function of what it reads: outputs that it does not have are no
 * outputs of that. */
static struct cm_function_proto as_function(struct cm_expansion *x,
                                            const struct cm_node_proto *node)
{
    struct reads reads = {.arena = x->arena};
    struct cm_function_proto function = {.name = node->op_type,
                                         .opset_import = x->model->opset_import};
    struct cm_node_proto *copy = CM_NEW(x->arena, struct cm_node_proto);

    cm_node_each_read(x->arena, node, note_read, &reads);
    function.input = reads.names;
    for (size_t o = 0; o < node->output.count; o++)
        if (node->output.items[o].size)
            *CM_LIST_ADD(x->arena, &function.output) = node->output.items[o];
    *copy = *node;
    function.node = (struct cm_nodes){copy, 1};
    return function;
}

/* A closed graph of the node alone, upgraded, for the types that its operands have in graph. */
static enum cm_status build_alone(struct cm_expansion *x, const struct cm_graph *graph,
                                  const struct cm_function_proto *function, struct cm_graph **out)
{
    struct cm_module *module = graph->module;
    struct cm_graph *alone = cm_graph_new(module, NULL, function->name);
    struct cm_builder build = {.graph = alone, .err = x->err};
    const size_t n_in = function->input.count;
    cm_value *actuals = CM_NEW_ARRAY(x->arena, cm_value, n_in);
    cm_value *results = CM_NEW_ARRAY(x->arena, cm_value, function->output.count);
    for (size_t i = 0; i < n_in; i++) {
        const struct cm_str name = function->input.items[i];
        const cm_value value = cm_graph_find(graph, name);
        const struct cm_tensor *constant;
        if (!value)
            return cm_fail(x->err, CM_UNSUPPORTED,
                           "the type of its operand '%.*s' cannot be inferred", CM_STR_FMT(name));
        if (cm_expansion_is_arithmetic(cm_value_get(module, value)->fact.type))
            CM_TRY(cm_value_constant(module, value, &constant, x->err));
        const struct cm_fact fact = operand_fact(module, value);
        actuals[i] = cm_graph_add_input(alone, CM_STR_NONE, fact.type);
        cm_value_get(module, actuals[i])->fact = fact;
    }
    CM_TRY(cm_function_apply_alone(&build, function, actuals, results));
    cm_graph_set_outputs(alone, results, function->output.count);
    *out = alone;
    return CM_OK;
}

/* ---- expanding it ---- */

static bool goes(struct cm_expansion *x, const struct cm_node *node)
{
    return node->function || cm_expansion_picks(x, node->domain, node->op_type, false);
}

static struct cm_str place_of(struct cm_expansion *x, const struct cm_node_proto *node)
{
    if (!node->name.size)
        return cm_arena_printf(x->arena, "node of '%.*s' (%.*s)",
                               node->output.count ? (int)node->output.items[0].size : 0,
                               node->output.count ? node->output.items[0].data : "",
                               CM_STR_FMT(node->op_type));
    return cm_arena_printf(x->arena, "node '%.*s' (%.*s)", CM_STR_FMT(node->name),
                           CM_STR_FMT(node->op_type));
}

static void note_left(struct cm_expansion *x, const struct cm_node_proto *node, const char *reason)
{
    cm_findings_unsupported(x->findings, place_of(x, node), "%s", reason);
    x->failed = x->failed || cm_expansion_must(x);
}

/* Puts bodies in their places until nothing is left that should go. A body that declines leaves its
 * operator, which is noted. */
static enum cm_status expand_graph(struct cm_expansion *x, const struct cm_node_proto *from,
                                   struct cm_graph *graph, size_t *count)
{
    struct cm_node *node = graph->first;

    while (node) {
        struct cm_node *before = node->prev;
        const bool has_body = cm_node_has_function(node);
        if (goes(x, node) && (has_body || cm_expansion_must(x))) {
            struct cm_error reason = {0};
            const enum cm_status status =
                has_body ? cm_graph_inline(node, &reason)
                         : cm_fail(&reason, CM_UNSUPPORTED, "%.*s%s%.*s has no function body",
                                   CM_STR_FMT(node->domain), node->domain.size ? "::" : "",
                                   CM_STR_FMT(node->op_type));
            if (status == CM_OK) {
                ++*count;
                node = before ? before->next : graph->first;
                continue;
            }
            if (status != CM_UNSUPPORTED) {
                *x->err = reason;
                return status;
            }
            note_left(x, from, reason.text);
        }
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                CM_TRY(expand_graph(x, from, node->bodies[b].graph, count));
        node = node->next;
    }
    return CM_OK;
}

/* Shape arithmetic computed where shapes are known, no-ops and what nobody reads removed. */
static enum cm_status tidy(struct cm_graph *graph, bool simplify, struct cm_error *err)
{
    const struct cm_pass_options options = {.for_file = true};

    cm_graph_remove_dead(graph);
    if (simplify)
        CM_TRY(cm_pass_simplify(graph, &options, err));
    CM_TRY(cm_pass_fold(graph, &options, err));
    CM_TRY(cm_pass_merge(graph, &options, err));
    cm_graph_remove_dead(graph);
    return CM_OK;
}

/* Simplifying may bring in what should go. */
static enum cm_status expand_and_tidy(struct cm_expansion *x, const struct cm_node_proto *node,
                                      struct cm_graph *alone, size_t *count)
{
    const size_t before = *count;

    CM_TRY(expand_graph(x, node, alone, count));
    if (*count == before)
        return CM_OK; /* written in another version only */
    CM_TRY(tidy(alone, true, x->err));
    const size_t once = *count;
    CM_TRY(expand_graph(x, node, alone, count));
    return *count == once ? CM_OK : tidy(alone, false, x->err);
}

static enum cm_status expand_alone(struct cm_expansion *x, const struct cm_node_proto *node,
                                   struct cm_graph *alone, struct cm_function_proto *out,
                                   size_t *count)
{
    struct cm_module *module = alone->module;
    struct cm_str needed_by;
    int64_t needed = x->opset;
    const bool lenient = cm_module_be_lenient(module, true);
    const enum cm_status status = expand_and_tidy(x, node, alone, count);

    cm_module_be_lenient(module, lenient);
    CM_TRY(status);
    CM_TRY(cm_write_function(alone, x->arena, &x->model->opset_import, x->opset, out, &needed,
                             &needed_by, x->err));
    if (needed > x->needed) {
        x->needed = needed;
        x->needed_by = needed_by;
    }
    return CM_OK;
}

/* Is there something to expand in a graph inside the node, whose types nobody knows? Then the whole
 * node is written anew. */
static bool hides_work(struct cm_expansion *x, const struct cm_graph *graph,
                       const struct cm_node_proto *node)
{
    for (size_t a = 0; a < node->attribute.count; a++)
        if (node->attribute.items[a].g && any_picked(x, &node->attribute.items[a].g->node) &&
            !cm_expansion_body(graph, node, &node->attribute.items[a]))
            return true;
    return false;
}

static bool is_known(const struct cm_expansion *x, const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);

    return cm_expansion_function(x, node) || cm_upgrade_adopts(domain, node->op_type) ||
           cm_registry_schema(x->registry, domain, node->op_type, imported(x, domain));
}

/* ---- replacing ---- */

/* What the node becomes; NULL: it stays, or the opset is raised and all begins anew. */
static enum cm_status make_function(struct cm_expansion *x, const struct cm_graph *graph,
                                    const struct cm_node_proto *node,
                                    const struct cm_function_proto *whole,
                                    const struct cm_function_proto **out)
{
    const size_t left_before = x->findings->total;
    struct cm_function_proto *function;
    struct cm_str key;
    size_t count = 0;

    *out = NULL;
    CM_TRY(cm_expansion_key(x, graph, node, whole, &key));
    const uint64_t *known = key.size ? cm_map_find(&x->alike, key) : NULL;
    if (known) {
        *out = (const struct cm_function_proto *)(uintptr_t)*known;
        return CM_OK;
    }
    struct cm_graph *alone = NULL;
    function = CM_NEW(x->arena, struct cm_function_proto);
    enum cm_status status = build_alone(x, graph, whole, &alone);
    if (status == CM_OK)
        status = expand_alone(x, node, alone, function, &count);
    if (status == CM_UNSUPPORTED || status == CM_BAD_MODEL) {
        note_left(x, node, x->err->text);
        return CM_OK;
    }
    CM_TRY(status);
    const bool something_stays = x->findings->total > left_before;
    if ((something_stays && !count) || x->needed > x->opset)
        return CM_OK;
    if (key.size && !something_stays)
        *cm_map_insert(&x->alike, x->arena, key, NULL) = (uint64_t)(uintptr_t)function;
    *out = function;
    return CM_OK;
}

static enum cm_status replace_operator(struct cm_expansion *x, const struct cm_graph *graph,
                                       const struct cm_node_proto *node, struct cm_replacement *out)
{
    const bool picked = is_picked(x, node);

    if (!graph || !(picked || is_outdated(x, node) || hides_work(x, graph, node)))
        return CM_OK;
    if (!is_known(x, node)) {
        note_left(x, node,
                  cm_arena_printf(x->arena, "operator '%.*s' of domain '%.*s' is not known",
                                  CM_STR_FMT(node->op_type), CM_STR_FMT(node->domain))
                      .data);
        return CM_OK;
    }
    const struct cm_function_proto whole = as_function(x, node), *function;
    CM_TRY(make_function(x, graph, node, &whole, &function));
    if (!function)
        return CM_OK;
    struct cm_node_proto *call = CM_NEW(x->arena, struct cm_node_proto);
    *call = (struct cm_node_proto){
        .name = node->name, .op_type = node->op_type, .input = whole.input, .output = whole.output};
    x->report->operators += picked;
    x->report->rewritten += !picked;
    for (size_t i = 0; i < function->opset_import.count; i++) {
        const struct cm_opset_proto *import = &function->opset_import.items[i];
        if (imported(x, cm_domain_plain(import->domain)) || !import->domain.size)
            continue;
        *CM_LIST_ADD(x->arena, &x->model->opset_import) = *import;
        cm_msg_set(&x->model->msg, CM_MODEL_OPSET_IMPORT);
    }
    *out = (struct cm_replacement){function, call, false};
    return CM_OK;
}

/* ---- the graphs of a model ---- */

/* Graph and what is appended to it, typed as far as it can be. */
static enum cm_status import(struct cm_expansion *x, const struct cm_model_proto *model,
                             struct cm_import_options *options, struct cm_graph **out)
{
    const struct cm_module_options module_options = {
        .registry = x->registry, .files = x->file->files, .node_budget = 8 * x->room + 1000};
    struct cm_findings *ignored = CM_NEW(x->arena, struct cm_findings);
    struct cm_map names = cm_training_variables(x->arena, x->model);

    ignored->arena = x->arena;
    options->upgrade = cm_upgrade_node;
    options->adopts = cm_upgrade_adopts;
    options->findings = ignored;
    options->partial = true;
    options->opens = cm_tensor_is_named;
    options->opens_arg = &names;
    return cm_module_import(cm_module_new(x->arena, &module_options), model, options, out, x->err);
}

static enum cm_status expand_training(struct cm_expansion *x, const struct cm_model_proto *from,
                                      struct cm_training_proto *entry)
{
    const struct cm_graph_proto *const around[] = {from->graph, entry->algorithm};
    struct cm_graph *typed;

    if (entry->algorithm && any_picked(x, &entry->algorithm->node)) {
        struct cm_import_options options = {.appended = entry->algorithm,
                                            .constant_defaults = true};
        CM_TRY(import(x, from, &options, &typed));
        CM_TRY(cm_expansion_walk_graph(x, replace_operator, typed, &entry->algorithm));
        cm_msg_set(&entry->msg, CM_TRAINING_ALGORITHM);
    }
    if (entry->initialization && any_picked(x, &entry->initialization->node)) {
        struct cm_model_proto *alone = CM_NEW(x->arena, struct cm_model_proto);
        struct cm_import_options options = {
            .around = around, .n_around = entry->algorithm ? 2 : 1, .constant_defaults = true};
        *alone = *from;
        alone->graph = entry->initialization;
        CM_TRY(import(x, alone, &options, &typed));
        CM_TRY(cm_expansion_walk_graph(x, replace_operator, typed, &entry->initialization));
        cm_msg_set(&entry->msg, CM_TRAINING_INITIALIZATION);
    }
    return CM_OK;
}

enum cm_status cm_expansion_operators(struct cm_expansion *x)
{
    struct cm_model_proto *model = x->model;
    struct cm_model_proto *from = CM_NEW(x->arena, struct cm_model_proto);
    struct cm_graph *typed;

    *from = *model; /* what types are inferred from, while model changes */
    x->alike = (struct cm_map){0};
    if (any_picked(x, &model->graph->node)) {
        struct cm_import_options options = {.partial = true};
        CM_TRY(import(x, from, &options, &typed));
        CM_TRY(cm_expansion_walk_graph(x, replace_operator, typed, &model->graph));
    }
    for (size_t i = 0; i < model->training_info.count; i++)
        CM_TRY(expand_training(x, from, &model->training_info.items[i]));
    return CM_OK;
}
