/* Sessions: a model made ready to run, and what can be asked of it. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/array.h"
#include "base/diagnostics.h"
#include "base/memory.h"
#include "exec/session.h"
#include "graph/backend.h"
#include "graph/function.h"
#include "lower/lower.h"

struct new_call {
    struct cameo_session *session;
    struct cameo_session_options options;
    struct cm_findings findings; /* in the session's arena */
    struct cm_error err;
};

/* ---- expanding ---- */

struct expansion {
    size_t count; /* nodes that gave way to their bodies */
    struct cm_error err;
};

/* A body may decline the case at hand; then the operator stays, as it does for everybody. */
static bool has_body(const struct cm_node *node, void *arg)
{
    struct expansion *expansion = arg;
    struct cm_error reason = {0};
    struct cm_node *own = (struct cm_node *)(uintptr_t)node; /* nodes are never const objects */

    if (expansion->err.status || !cm_node_has_function(node))
        return false;
    const enum cm_status status = cm_node_instantiate(own, &reason);
    if (status && status != CM_UNSUPPORTED)
        expansion->err = reason;
    expansion->count += status == CM_OK;
    return status == CM_OK;
}

static enum cm_status expand(struct cameo_session *session, struct cm_error *err)
{
    struct expansion expansion = {0};

    CM_TRY(cm_graph_inline_all(session->graph, has_body, &expansion, err));
    if (expansion.err.status)
        *err = expansion.err;
    session->expanded = expansion.count;
    return expansion.err.status;
}

/* ---- making ---- */

/* What the model declares, with the type that was inferred. */
static void describe_output(struct cm_arena *arena, const struct cm_module *module,
                            const struct cm_type *type, struct cameo_value_info *out)
{
    struct cm_type_proto proto = {0};
    struct cameo_value_info inferred;

    cm_type_to_proto(arena, cm_module_symbols(module), type, &proto);
    cm_describe_value(arena, &(struct cm_value_info_proto){.type = &proto}, &inferred);
    out->type = inferred.type;
    out->kind = inferred.kind;
    out->dtype = inferred.dtype;
    out->rank = inferred.rank;
    out->dims = inferred.dims;
}

/* Pairs each dimension that has a name with the first one of that name. */
static void pair_symbols(struct cameo_session *session, const struct cm_module *module)
{
    struct {
        CM_ARRAY(struct cm_api_same);
    } same = {0};
    struct {
        CM_ARRAY(struct cm_api_axis);
    } named = {0};
    struct cm_map numbers = {0}; /* by name: of its first dimension, in named */

    for (size_t i = 0; i < session->n_inputs; i++) {
        const struct cm_type *type = session->input_types[i];

        for (int axis = 0; type->kind == CM_KIND_TENSOR && axis < type->rank; axis++) {
            const struct cm_dim dim = type->dims[axis];
            const struct cm_api_axis at = {i, axis};
            bool added;

            const struct cm_str name = cm_dim_known(dim) || !dim.symbol
                                           ? CM_STR_NONE
                                           : cm_symbol_name(cm_module_symbols(module), dim.symbol);
            if (!name.size)
                continue;
            uint64_t *number = cm_map_insert(&numbers, &session->arena, name, &added);
            if (added) {
                *number = named.count;
                *CM_PUSH(&session->arena, &named) = at;
            } else {
                *CM_PUSH(&session->arena, &same) = (struct cm_api_same){named.items[*number], at};
            }
        }
    }
    session->same = same.items;
    session->n_same = same.count;
}

/* What is known before the graph is changed for speed. */
static enum cm_status describe(struct cameo_session *session, struct cm_error *err)
{
    const struct cameo_model *model = session->model;
    const struct cm_graph *graph = session->graph;
    struct cm_arena *arena = &session->arena;

    if (graph->n_outputs != model->summary.output_count)
        return cm_fail(err, CM_BAD_MODEL, "the graph has %zu outputs, not %zu", graph->n_outputs,
                       model->summary.output_count);
    /* Initializers that old files list as inputs are none of the graph's, so the two lists differ.
     */
    session->inputs = CM_NEW_ARRAY(arena, size_t, graph->n_inputs);
    size_t at = 0;
    for (size_t i = 0; i < graph->n_inputs; i++, at++) {
        const struct cm_str name = cm_value_get(graph->module, graph->inputs[i])->name;
        while (at < model->summary.input_count &&
               !cm_str_is(name, cameo_model_input(model, at)->name.data))
            at++;
        if (at >= model->summary.input_count)
            return cm_fail(err, CM_BAD_MODEL, "input '%.*s' is not the model's", CM_STR_FMT(name));
        session->inputs[i] = at;
    }
    session->n_inputs = graph->n_inputs;
    session->n_outputs = graph->n_outputs;
    session->input_types = CM_NEW_ARRAY(arena, const struct cm_type *, graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++)
        session->input_types[i] = cm_value_get(graph->module, graph->inputs[i])->fact.type;
    pair_symbols(session, graph->module);
    session->outputs = CM_NEW_ARRAY(arena, struct cameo_value_info, graph->n_outputs);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const struct cm_value_def *def = cm_value_get(graph->module, graph->outputs[i].value);

        session->outputs[i] = model->outputs[i];
        describe_output(arena, graph->module, def->fact.type, &session->outputs[i]);
    }
    return CM_OK;
}

static enum cm_status new_guarded(struct cm_guard *guard, void *arg)
{
    struct new_call *call = arg;
    struct cameo_session *session = call->session;
    const struct cameo_session_options *options = &session->options;
    const struct cm_model_file *file = session->model->file;
    const bool plain = options->backend && strcmp(options->backend, "plain") == 0;
    struct cm_lower_options lower = {
        .pass = {.memory_limit = options->memory_limit},
        /* The plain interpreter judges what passes do; they make operators that are not core. */
        .passes.only = plain || options->core_only ? "" : NULL,
        .passes.without = options->without_passes,
        .findings = &call->findings};
    const struct cm_session_options exec = {.threads = options->threads,
                                            .memory_limit = options->memory_limit,
                                            .backend = options->backend,
                                            .seed = options->seed,
                                            .findings = &call->findings};

    cm_arena_init(&session->arena, guard);
    call->findings.arena = &session->arena;
    if (options->expand) /* patterns would put together again what was expanded */
        lower.passes.without =
            cm_arena_printf(&session->arena, "patterns,%s",
                            options->without_passes ? options->without_passes : "")
                .data;
    const struct cm_registry *registry = cm_api_operators(options->registry, file);
    if (!registry)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for the operators");
    const struct cm_module_options module_options = {.registry = registry, .files = file->files};
    struct cm_module *module = cm_module_new(&session->arena, &module_options);
    cm_lower_list_unknown(&call->findings, &file->model, registry);
    CM_TRY(cm_lower_import(module, &file->model, &lower, &session->graph, &call->err));
    cm_api_saw_order((struct cameo_model *)(uintptr_t)session->model, module); /* it is locked */
    if (options->expand)
        CM_TRY(expand(session, &call->err));
    CM_TRY(describe(session, &call->err));
    CM_TRY(cm_lower_graph(session->graph, &lower, &call->err));
    if (options->core_only) {
        cm_lower_list_others(&call->findings, session->graph);
        CM_TRY(cm_findings_fail(&call->findings, &call->err));
    }
    if (plain) {
        cm_lower_list_unrunnable(&call->findings, session->graph);
        return cm_findings_fail(&call->findings, &call->err);
    }
    CM_TRY(cm_session_new(session->graph, &exec, &session->exec, &call->err));
    const struct cm_mapped_ranges mapped = cm_external_ranges(&session->arena, file->files);
    cm_session_set_mapped(session->exec, mapped.items, mapped.count);
    return CM_OK;
}

enum cm_status cm_api_check_threads(int threads, struct cm_error *err)
{
    return threads >= 0 && threads <= 4096
               ? CM_OK
               : cm_fail(err, CM_BAD_ARGUMENT, "%d threads: expected 0 (all cores) to 4096",
                         threads);
}

enum cm_status cm_api_check_backend(const char *name, struct cm_error *err)
{
    char known[400] = "";
    size_t used = 0;

    if (!name || strcmp(name, "plain") == 0 || strcmp(name, "reference") == 0 ||
        cm_backend_find(name))
        return CM_OK;
    for (size_t i = 0; i < cm_backend_count && used < 300; i++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, ", %.60s", cm_backends[i]->name);
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "there is no backend '%.100s'; there are reference, plain%s", name, known);
}

static enum cm_status check_options(struct cameo_session_options *options,
                                    const struct cameo_session_options *given, struct cm_error *err)
{
    *options = (struct cameo_session_options)CAMEO_SESSION_OPTIONS_INIT;
    CM_TRY(cm_api_options(options, sizeof *options, given, err));
    CM_TRY(cm_api_check_threads(options->threads, err));
    return cm_api_check_backend(options->backend, err);
}

/* call->session is what there is of the session, for cameo_session_free; or NULL. */
static enum cm_status open_session(struct new_call *call, const struct cameo_model *model,
                                   const struct cameo_session_options *options)
{
    const enum cm_status status = check_options(&call->options, options, &call->err);

    if (call->options.findings)
        *call->options.findings = NULL;
    CM_TRY(status);
    call->session = cm_calloc(1, sizeof *call->session);
    if (!call->session)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for a session");
    call->session->model = model;
    call->session->options = call->options;
    return cm_api_locked(model, new_guarded, call, &call->err);
}

/* Did it end in what the list holds? When a budget gave out, the list is gone with its arena. */
static bool is_listed(enum cm_status status, const struct cm_findings *list)
{
    return status == CM_OK || status == CM_BAD_MODEL || status == CM_UNSUPPORTED ||
           ((status == CM_BAD_ARGUMENT || status == CM_NOT_FOUND) && list->total);
}

enum cameo_status cameo_session_new(const struct cameo_model *model,
                                    const struct cameo_session_options *options,
                                    struct cameo_session **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct new_call call = {.session = NULL};
    enum cm_status status = open_session(&call, model, options);

    *out = status ? NULL : call.session;
    if (status == CM_OK)
        cm_api_log_ready(model, "a session", call.options.backend);
    else if (call.options.findings && is_listed(status, &call.findings))
        status = cm_api_refused(model, &call.findings, status, call.options.findings, &call.err);
    status = cm_api_about(model, status, &call.err);
    if (status)
        cameo_session_free(call.session);
    return cm_api_done(status, &call.err, err);
}

enum cameo_status cameo_model_blockers(const struct cameo_model *model,
                                       const struct cameo_session_options *options,
                                       struct cameo_findings **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct new_call call = {.session = NULL};
    enum cm_status status = open_session(&call, model, options);

    *out = NULL;
    if (is_listed(status, &call.findings))
        status = cm_api_findings(model, &call.findings, status, out, &call.err);
    cameo_session_free(call.session);
    return cm_api_done(status, &call.err, err);
}

void cameo_session_free(struct cameo_session *session)
{
    if (!session)
        return;
    if (session->exec)
        cm_session_free(session->exec);
    cm_arena_release(&session->arena);
    cm_free(atomic_load(&session->spare));
    cm_free(session);
}

/* ---- asking ---- */

size_t cameo_session_input_count(const struct cameo_session *session)
{
    return session->n_inputs;
}

size_t cameo_session_output_count(const struct cameo_session *session)
{
    return session->n_outputs;
}

const struct cameo_value_info *cameo_session_input(const struct cameo_session *session,
                                                   size_t index)
{
    return index < session->n_inputs ? cameo_model_input(session->model, session->inputs[index])
                                     : NULL;
}

const struct cameo_value_info *cameo_session_output(const struct cameo_session *session,
                                                    size_t index)
{
    return index < session->n_outputs ? &session->outputs[index] : NULL;
}

size_t cameo_session_expanded(const struct cameo_session *session)
{
    return session->expanded;
}

/* ---- cancelling ---- */

enum cameo_status cameo_cancel_new(struct cameo_cancel **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct cm_error reason = {0};

    *out = cm_malloc(sizeof **out);
    if (!*out)
        return cm_api_done(cm_fail(&reason, CM_NO_MEMORY, "no memory for a flag"), &reason, err);
    atomic_init(&(*out)->set, false);
    return cm_api_done(CM_OK, &reason, err);
}

void cameo_cancel_free(struct cameo_cancel *cancel)
{
    cm_free(cancel);
}

void cameo_cancel_set(struct cameo_cancel *cancel)
{
    atomic_store(&cancel->set, true);
}

void cameo_cancel_clear(struct cameo_cancel *cancel)
{
    atomic_store(&cancel->set, false);
}
