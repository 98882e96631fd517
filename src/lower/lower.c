/* The lists of passes, and running them. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include "autodiff/gradient_nodes.h"
#include "graph/function.h"
#include "graph/import.h"
#include "versions/upgrade.h"

static enum cm_status gradients(struct cm_graph *graph, const struct cm_pass_options *options,
                                struct cm_error *err)
{
    (void)options;
    return cm_gradient_expand(graph, err);
}

static bool has_no_kernel(const struct cm_node *node, void *arg)
{
    (void)arg;
    return !cm_node_has_kernel(node);
}

/* Of another domain, it is what its body is and nothing else: patterns may be found in that. */
static bool is_shorthand(const struct cm_node *node, void *arg)
{
    return node->domain.size && !(node->op && node->op->grad) && has_no_kernel(node, arg);
}

/* Functions hide what passes look for, and random nodes, which get a number before any pass that
 * changes nodes. */
static enum cm_status open_bodies(struct cm_graph *graph, bool keep_operators, struct cm_error *err)
{
    CM_TRY(cm_graph_inline_calls(graph, err));
    if (!keep_operators && cm_module_had(graph->module, CM_HAD_BODIES_ONLY))
        CM_TRY(cm_graph_inline_all(graph, is_shorthand, NULL, err));
    cm_graph_number_random(graph);
    return CM_OK;
}

static enum cm_status core(struct cm_graph *graph, const struct cm_pass_options *options,
                           struct cm_error *err)
{
    CM_TRY(cm_pass_core(graph, options, err));
    return open_bodies(graph, false, err);
}

static const char SIMPLIFY[] = "no-ops and dead code removed, shape arithmetic computed once";
static const char CORE[] = "core operators only, and those that are compiled whole";

const struct cm_pass cm_passes[] = {
    {{"upgrade", "every node in its newest version", CM_PASS_REQUIRED, NULL}, NULL},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
    {{"patterns", "what exporters spell out becomes one operator", CM_PASS_USUAL, NULL},
     cm_pass_patterns},
    {{"gradients", "Gradient nodes become graph", CM_PASS_REQUIRED, NULL}, gradients},
    {{"quantized", "products of dequantized codes multiply codes; not in training", CM_PASS_USUAL,
      NULL},
     cm_pass_quantized},
    {{"fold", "constants computed", CM_PASS_USUAL, NULL}, cm_pass_fold},
    {{"merge", "common sub-expressions", CM_PASS_USUAL, NULL}, cm_pass_merge},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
    {{"inference", "weights take what follows them, Dropout removed; not in training",
      CM_PASS_USUAL, NULL},
     cm_pass_inference},
    {{"transposes", "moved, merged, cancelled", CM_PASS_USUAL, NULL}, cm_pass_transposes},
    {{"regions", "groups that one kernel may compute", CM_PASS_USUAL, NULL}, cm_pass_regions},
    {{"recompute", "cheap activations computed again in the backward pass", CM_PASS_ON_REQUEST,
      NULL},
     cm_pass_recompute},
};
const size_t cm_pass_count = CM_COUNT(cm_passes);
const struct cm_pass_table cm_lower_passes = {cm_passes, CM_COUNT(cm_passes), sizeof *cm_passes};

/* No pass that makes operators of its own, which mlir/ does not know. Bodies are simplified before
 * what is left of them is expanded: much of them is arithmetic of shapes. */
static const struct cm_pass compile_passes[] = {
    {{"upgrade", "every node in its newest version", CM_PASS_REQUIRED, NULL}, NULL},
    {{"core", CORE, CM_PASS_REQUIRED, NULL}, core},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
    {{"fold", "constants computed", CM_PASS_USUAL, NULL}, cm_pass_fold},
    {{"merge", "common sub-expressions", CM_PASS_USUAL, NULL}, cm_pass_merge},
    {{"core", CORE, CM_PASS_REQUIRED, NULL}, core},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
    {{"fold", "constants computed", CM_PASS_USUAL, NULL}, cm_pass_fold},
    {{"merge", "common sub-expressions", CM_PASS_USUAL, NULL}, cm_pass_merge},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
    {{"inference", "weights take what follows them", CM_PASS_USUAL, NULL}, cm_pass_inference},
    {{"transposes", "moved, merged, cancelled", CM_PASS_USUAL, NULL}, cm_pass_transposes},
    {{"regions", "groups that one kernel may compute", CM_PASS_USUAL, NULL}, cm_pass_regions},
};
const struct cm_pass_table cm_compile_passes = {compile_passes, CM_COUNT(compile_passes),
                                                sizeof *compile_passes};

/* For code of other frameworks: nothing that a person would not write. */
static const struct cm_pass code_passes[] = {
    {{"upgrade", "every node in its newest version", CM_PASS_REQUIRED, NULL}, NULL},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
    {{"patterns", "what exporters spell out becomes one operator", CM_PASS_USUAL, NULL},
     cm_pass_patterns},
    {{"fold", "constants computed", CM_PASS_USUAL, NULL}, cm_pass_fold},
    {{"simplify", SIMPLIFY, CM_PASS_USUAL, NULL}, cm_pass_simplify},
};
const struct cm_pass_table cm_code_passes = {code_passes, CM_COUNT(code_passes),
                                             sizeof *code_passes};

static const struct cm_pass_table *table_of(const struct cm_lower_options *options)
{
    return options->table ? options->table : &cm_lower_passes;
}

enum cm_status cm_lower_check(const struct cm_lower_options *options, struct cm_error *err)
{
    return options ? cm_pass_check(table_of(options), &options->passes, err) : CM_OK;
}

/* ---- import ---- */

enum cm_status cm_lower_import(struct cm_module *module, const struct cm_model_proto *model,
                               const struct cm_lower_options *options, struct cm_graph **out,
                               struct cm_error *err)
{
    const struct cm_import_options import = {.findings = options ? options->findings : NULL};
    return cm_lower_import_as(module, model, &import, out, err);
}

enum cm_status cm_lower_import_as(struct cm_module *module, const struct cm_model_proto *model,
                                  const struct cm_import_options *options, struct cm_graph **out,
                                  struct cm_error *err)
{
    struct cm_import_options import = *options;

    import.upgrade = cm_upgrade_node;
    import.adopts = cm_upgrade_adopts;
    return cm_module_import(module, model, &import, out, err);
}

/* ---- passes ---- */

struct lowering {
    struct cm_graph *graph;
    const struct cm_lower_options *options;
};

/* Gradients are taken of operators as they are; what follows wants what runs. */
static enum cm_status inline_bodies(const struct lowering *l, struct cm_error *err)
{
    if (l->options->keep_operators || !cm_module_had(l->graph->module, CM_HAD_BODIES_ONLY))
        return CM_OK;
    return cm_graph_inline_all(l->graph, has_no_kernel, NULL, err);
}

static enum cm_status run_pass(void *state, const struct cm_pass_row *row, bool is_wanted,
                               struct cm_error *err)
{
    const struct lowering *l = state;
    const struct cm_pass *pass = (const struct cm_pass *)row; /* its first member */
    const struct cm_lower_options *options = l->options;
    struct cm_lower_report report = {.pass = row->name, .skipped = !is_wanted};

    if (options->after)
        report.nodes_before = cm_graph_count(l->graph);
    if (pass->run && is_wanted) {
        CM_TRY(pass->run(l->graph, &options->pass, err));
        cm_graph_remove_dead(l->graph); /* counts as the pass's doing */
    }
    if (options->after) {
        report.nodes_after = cm_graph_count(l->graph);
        CM_TRY(options->after(options->after_arg, &report, l->graph, err));
    }
    return pass->run == gradients ? inline_bodies(l, err) : CM_OK;
}

static enum cm_status run_passes(struct cm_graph *graph, const struct cm_lower_options *options,
                                 struct cm_error *err)
{
    struct lowering lowering = {graph, options};
    bool stopped;

    if (table_of(options) == &cm_lower_passes)
        CM_TRY(open_bodies(graph, options->keep_operators, err));
    CM_TRY(cm_pass_run(table_of(options), &options->passes, run_pass, &lowering, &stopped, err));
    if (!stopped)
        cm_graph_remove_dead(graph);
    return CM_OK;
}

enum cm_status cm_lower_graph(struct cm_graph *graph, const struct cm_lower_options *options,
                              struct cm_error *err)
{
    static const struct cm_lower_options none = {0};

    CM_TRY(cm_lower_check(options, err));
    const bool before = cm_module_be_lenient(graph->module, true);
    const enum cm_status status = run_passes(graph, options ? options : &none, err);
    cm_module_be_lenient(graph->module, before);
    return status;
}

enum cm_status cm_lower_tidy(struct cm_graph *graph, const struct cm_lower_options *options,
                             bool simplify_only, struct cm_error *err)
{
    static const char *const names[] = {"simplify", "fold", "merge", "simplify"};
    const bool before = cm_module_be_lenient(graph->module, true);
    enum cm_status status = CM_OK;

    for (size_t i = 0; i < (simplify_only ? 1 : CM_COUNT(names)) && !status; i++) {
        const struct cm_pass *pass = &cm_passes[cm_pass_find(&cm_lower_passes, cm_str(names[i]))];
        if (cm_pass_is_wanted(&pass->row, &options->passes))
            status = pass->run(graph, &options->pass, err);
    }
    cm_module_be_lenient(graph->module, before);
    return status;
}
