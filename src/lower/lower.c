/* The list of passes, and running it. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include "autodiff/gradient_nodes.h"
#include "base/number.h"
#include "graph/function.h"
#include "graph/import.h"
#include "versions/upgrade.h"

static enum cm_status gradients(struct cm_graph *graph, const struct cm_pass_options *options,
                                struct cm_error *err)
{
    (void)options;
    return cm_gradient_expand(graph, err);
}

static const char SIMPLIFY[] = "no-ops and dead code removed, shape arithmetic computed once";

const struct cm_pass cm_passes[] = {
    {"upgrade", "every node in its newest version", CM_PASS_REQUIRED, NULL},
    {"simplify", SIMPLIFY, CM_PASS_USUAL, cm_pass_simplify},
    {"patterns", "what exporters spell out becomes one operator", CM_PASS_USUAL, cm_pass_patterns},
    {"gradients", "Gradient nodes become graph", CM_PASS_REQUIRED, gradients},
    {"quantized", "products of dequantized codes multiply codes; not in training", CM_PASS_USUAL,
     cm_pass_quantized},
    {"fold", "constants computed", CM_PASS_USUAL, cm_pass_fold},
    {"merge", "common sub-expressions", CM_PASS_USUAL, cm_pass_merge},
    {"simplify", SIMPLIFY, CM_PASS_USUAL, cm_pass_simplify},
    {"inference", "weights take what follows them, Dropout removed; not in training", CM_PASS_USUAL,
     cm_pass_inference},
    {"transposes", "moved, merged, cancelled", CM_PASS_USUAL, cm_pass_transposes},
    {"regions", "groups that one kernel may compute", CM_PASS_USUAL, cm_pass_regions},
    {"recompute", "cheap activations computed again in the backward pass", CM_PASS_ON_REQUEST,
     cm_pass_recompute},
};
const size_t cm_pass_count = CM_COUNT(cm_passes);

/* ---- lists of names ---- */

/* The next name of a list, "" at its end. */
static struct cm_str next_name(const char **list)
{
    const char *at = *list + strspn(*list, ", ");
    const struct cm_str name = {at, strcspn(at, ", ")};
    *list = at + name.size;
    return name;
}

static bool lists(const char *list, const char *name)
{
    struct cm_str one;
    while (list && (one = next_name(&list)).size)
        if (cm_str_is(one, name))
            return true;
    return false;
}

static const struct cm_pass *find_pass(struct cm_str name)
{
    for (size_t i = 0; i < cm_pass_count; i++)
        if (cm_str_is(name, cm_passes[i].name))
            return &cm_passes[i];
    return NULL;
}

static enum cm_status refuse_name(struct cm_str name, struct cm_error *err)
{
    char known[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < cm_pass_count; i++)
        if (find_pass(cm_str(cm_passes[i].name)) == &cm_passes[i] && used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     cm_passes[i].name);
    return cm_fail(err, CM_BAD_ARGUMENT, "there is no pass '%.*s'; the passes are %s",
                   (int)cm_min_size(name.size, 60), name.data, known);
}

static enum cm_status check_list(const char *list, bool leaves_out, struct cm_error *err)
{
    struct cm_str name;
    while (list && (name = next_name(&list)).size) {
        const struct cm_pass *pass = find_pass(name);
        if (!pass)
            return refuse_name(name, err);
        if (leaves_out && pass->kind == CM_PASS_REQUIRED)
            return cm_fail(err, CM_BAD_ARGUMENT, "pass '%s' cannot be left out", pass->name);
    }
    return CM_OK;
}

enum cm_status cm_lower_check(const struct cm_lower_options *options, struct cm_error *err)
{
    if (!options)
        return CM_OK;
    CM_TRY(check_list(options->only, false, err));
    CM_TRY(check_list(options->with, false, err));
    return check_list(options->without, true, err);
}

static bool is_wanted(const struct cm_pass *pass, const struct cm_lower_options *options)
{
    if (pass->kind == CM_PASS_REQUIRED)
        return true;
    if (lists(options->without, pass->name))
        return false;
    if (options->only)
        return lists(options->only, pass->name);
    return pass->kind == CM_PASS_USUAL || lists(options->with, pass->name);
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

size_t cm_lower_count(const struct cm_graph *graph)
{
    size_t count = graph->n_nodes;
    for (const struct cm_node *node = graph->first; node; node = node->next)
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph && !(node->op && node->op->effects & CM_REGION))
                count += cm_lower_count(node->bodies[b].graph);
    return count;
}

static enum cm_status run_pass(const struct cm_pass *pass, struct cm_graph *graph,
                               const struct cm_lower_options *options, struct cm_error *err)
{
    struct cm_lower_report report = {.pass = pass->name};

    report.skipped = !is_wanted(pass, options);
    if (options->after)
        report.nodes_before = cm_lower_count(graph);
    if (pass->run && !report.skipped) {
        CM_TRY(pass->run(graph, &options->pass, err));
        cm_graph_remove_dead(graph); /* counts as the pass's doing */
    }
    if (!options->after)
        return CM_OK;
    report.nodes_after = cm_lower_count(graph);
    return options->after(options->after_arg, &report, graph, err);
}

static enum cm_status run_passes(struct cm_graph *graph, const struct cm_lower_options *options,
                                 struct cm_error *err)
{
    /* Functions hide what passes look for, and random nodes, which are numbered before any pass. */
    CM_TRY(cm_graph_inline_calls(graph, err));
    if (!options->keep_operators && cm_module_had(graph->module, CM_HAD_BODIES_ONLY))
        CM_TRY(cm_graph_inline_all(graph, is_shorthand, NULL, err));
    cm_graph_number_random(graph);
    for (size_t i = 0; i < cm_pass_count; i++) {
        CM_TRY(run_pass(&cm_passes[i], graph, options, err));
        if (cm_passes[i].run != gradients)
            continue;
        /* Gradients are taken of operators as they are; what follows wants what runs. */
        if (!options->keep_operators && cm_module_had(graph->module, CM_HAD_BODIES_ONLY))
            CM_TRY(cm_graph_inline_all(graph, has_no_kernel, NULL, err));
    }
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
        const struct cm_pass *pass = find_pass(cm_str(names[i]));
        if (is_wanted(pass, options))
            status = pass->run(graph, &options->pass, err);
    }
    cm_module_be_lenient(graph->module, before);
    return status;
}
