/* Models with their functions inlined. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/custom.h"
#include "base/diagnostics.h"
#include "models/expand_model.h"
#include "schema/levels.h"

struct expand_call {
    const struct cameo_model *from;
    struct cameo_expand_options options;
    const char *rule, *what;
    struct cameo_expansion *report; /* in the arena of the model that is made */
};

static struct cameo_expansion *tell(struct cm_arena *arena, const struct cm_expand_report *from,
                                    const struct cm_findings *left)
{
    struct cameo_expansion *report = CM_NEW(arena, struct cameo_expansion);
    struct cameo_text *changes = CM_NEW_ARRAY(arena, struct cameo_text, 2);
    struct cameo_text *lines = CM_NEW_ARRAY(arena, struct cameo_text, left->count);

    report->nodes_before = from->nodes_before;
    report->nodes = from->nodes;
    report->call_count = from->calls;
    report->operator_count = from->operators;
    report->function_count = from->functions;
    const struct cm_raised raised = {from->opset_before, from->opset, from->ir_before, from->ir,
                                     from->raised_for};
    cm_api_tell_raised(arena, &raised, changes, &report->change_count);
    report->changes = changes;
    for (size_t i = 0; i < left->count; i++)
        lines[i] = cm_api_text(arena, cm_arena_printf(arena, "%.*s stays: %.*s",
                                                      CM_STR_FMT(left->items[i].place),
                                                      CM_STR_FMT(left->items[i].reason)));
    report->left = lines;
    report->left_count = left->count;
    return report;
}

static enum cm_status expand(void *arg, struct cameo_model *made, struct cm_arena *scratch,
                             struct cm_error *err)
{
    struct expand_call *call = arg;
    struct cm_arena *arena = &made->arena;
    struct cm_findings left = {.arena = arena, .rule = call->rule, .what = call->what};
    struct cm_expand_report report;

    (void)scratch;
    const struct cm_registry *registry = cm_api_operators(call->options.registry, call->from->file);
    if (!registry)
        return cm_fail(err, CM_NO_MEMORY, "no memory for the operators");
    const struct cm_expand_options options = {.only = call->options.only,
                                              .except = call->options.except,
                                              .operators = call->options.operators,
                                              .core = call->options.core,
                                              .registry = registry};
    const enum cm_status status =
        cm_expand_model(call->from->file, &options, arena, &made->file, &report, &left, err);
    if (status && left.violations)
        return cm_api_refuse(call->from, &left, call->options.findings, err);
    CM_TRY(status);
    call->report = tell(arena, &report, &left);
    return CM_OK;
}

enum cameo_status cameo_model_expand(const struct cameo_model *model,
                                     const struct cameo_expand_options *options,
                                     struct cameo_model **out,
                                     const struct cameo_expansion **report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct expand_call call = {.from = model,
                               .rule = "expand",
                               .what = "the model cannot be expanded",
                               .options = (struct cameo_expand_options)CAMEO_EXPAND_OPTIONS_INIT};
    struct cm_error why = {0};

    *out = NULL;
    enum cm_status status = cm_api_options(&call.options, sizeof call.options, options, &why);
    if (call.options.findings)
        *call.options.findings = NULL;
    if (status == CM_OK)
        status = cm_api_derive(model, expand, &call, out, &why);
    if (report)
        *report = status ? NULL : call.report;
    return cm_api_done(status, &why, err);
}

enum cm_status cm_api_expand_core(const struct cameo_model *model, struct cameo_model **out,
                                  struct cameo_findings **findings, struct cm_error *err)
{
    struct expand_call call = {.from = model,
                               .rule = "compile",
                               .what = "the model cannot be compiled",
                               .options = (struct cameo_expand_options)CAMEO_EXPAND_OPTIONS_INIT};

    call.options.core = true;
    call.options.findings = findings;
    return cm_api_derive(model, expand, &call, out, err);
}

enum cameo_level cameo_operator_level(const char *domain, const char *name)
{
    return domain && name ? (enum cameo_level)cm_level_of(cm_str(domain), cm_str(name))
                          : CAMEO_LEVEL_NONE;
}
