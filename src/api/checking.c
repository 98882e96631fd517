/* Checking, and the list of what was found. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/diagnostics.h"
#include "base/memory.h"
#include "check/check.h"
#include "check/check_rules.h"
#include "convert/transfer/hold.h"
#include "lower/lower.h"
#include "models/inference_modes.h"

#include <assert.h>

static_assert((int)CAMEO_WARNING == (int)CM_WARNING && (int)CAMEO_VIOLATION == (int)CM_VIOLATION &&
                  (int)CAMEO_NOTE == (int)CM_NOTE,
              "public numbers are the library's own");

struct cameo_findings {
    struct cm_arena arena; /* its own; zeroed in one that belongs to a report */
    struct cameo_finding *items;
    size_t count, total, violations;
    struct cameo_text headline;
};

/* The list as the caller gets it, its texts copied into arena. model: NULL if the findings are
 * about none. */
static void fill(struct cameo_findings *out, struct cm_arena *arena,
                 const struct cameo_model *model, const struct cm_findings *list)
{
    out->items = CM_NEW_ARRAY(arena, struct cameo_finding, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_finding *item = &list->items[i];

        out->items[i] = (struct cameo_finding){
            .rule = cm_api_text(arena, cm_str(item->rule)),
            .severity = (enum cameo_severity)item->severity,
            .place = cm_api_text(arena, item->place),
            .reason = cm_api_text(arena, item->reason),
            .help = cm_api_text(arena, cm_str(item->help)),
            .node = cm_api_text(arena, item->node),
            .op_type = cm_api_text(arena, item->op_type),
            .value = cm_api_text(arena, item->value),
        };
    }
    out->count = list->count;
    out->total = list->total;
    out->violations = list->violations;
    const struct cm_str path = model ? model->file->path : CM_STR_NONE;
    out->headline = cm_api_text(
        arena, cm_arena_printf(arena, "%.*s%s%s", CM_STR_FMT(path), path.size ? ": " : "",
                               cm_str_text(cm_findings_headline(arena, list))));
}

const struct cameo_findings *cm_api_findings_in(struct cm_arena *arena,
                                                const struct cameo_model *model,
                                                const struct cm_findings *list)
{
    struct cameo_findings *out = CM_NEW(arena, struct cameo_findings);

    fill(out, arena, model, list);
    return out;
}

struct list_call {
    const struct cameo_model *model;
    const struct cm_findings *list;
    struct cameo_findings *findings;
};

static enum cm_status list_guarded(struct cm_guard *guard, void *arg)
{
    const struct list_call *call = arg;

    cm_arena_init(&call->findings->arena, guard);
    fill(call->findings, &call->findings->arena, call->model, call->list);
    return CM_OK;
}

/* A list of the caller's. */
static enum cm_status list_findings(const struct cameo_model *model, const struct cm_findings *list,
                                    struct cameo_findings **out, struct cm_error *err)
{
    struct list_call call = {model, list, cm_calloc(1, sizeof *call.findings)};

    if (!call.findings)
        return cm_fail(err, CM_NO_MEMORY, "no memory for findings");
    const enum cm_status status = cm_guarded(0, err, list_guarded, &call);
    if (status)
        cameo_findings_free(call.findings);
    else
        *out = call.findings;
    return status;
}

struct check_call {
    const struct cameo_model *model;
    const struct cameo_check_options *given;
    struct cameo_findings *findings;
};

/* Adds a warning for each node of the inference graph that is in training mode, and what is wrong
 * with what the model holds of a training besides training_info. */
static void check_held(const struct cm_model_file *file, unsigned flags,
                       struct cm_findings *findings)
{
    struct cm_findings found = {.arena = findings->arena};
    struct cm_modes modes;

    cm_modes_find(found.arena, file, &modes);
    for (size_t i = 0; i < modes.nodes.count; i++)
        cm_findings_judge(&found, "ST30", modes.nodes.items[i], "the node is in training mode");
    cm_hold_check(found.arena, file, &found);
    if (found.count)
        cm_check_add_inferred(&file->model, flags, &found, findings);
}

/* The check may point into the model, which need not live as long: texts are copied. */
static enum cm_status check(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct check_call *call = arg;
    struct cm_model_file *file = call->model->file, *today;
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cm_findings found;

    CM_TRY(cm_api_options(&options, sizeof options, call->given, err));
    if (options.tool && strcmp(options.tool, "ort") != 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "tool is '%s', expected 'ort'", options.tool);
    /* A model in memory has no folder whose files could be looked at. */
    struct cm_external_files *files = file->path.size ? file->files : NULL;
    const unsigned flags = (options.strict ? (unsigned)CM_CHECK_STRICT : 0) |
                           (options.tool ? (unsigned)CM_CHECK_FOR_RUNTIME : 0);
    CM_TRY(cm_check_model(&file->model, files, flags, scratch, &found, err));
    check_held(file, flags, &found);
    struct cm_error unused = {0};
    /* Calls of the inference graph that cannot be replaced were reported. */
    if (!options.structure_only && cm_api_today(file, scratch, &today, &unused) == CM_OK)
        CM_TRY(cm_check_types(today, cm_api_operators(NULL, today), cm_lower_import_as, flags,
                              scratch, &found, err));
    return list_findings(call->model, &found, &call->findings, err);
}

enum cameo_status cameo_model_check(const struct cameo_model *model,
                                    const struct cameo_check_options *options,
                                    struct cameo_findings **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct check_call call = {.model = model, .given = options};
    const enum cameo_status status = cm_api_call(model, check, &call, err);

    *out = call.findings;
    return status;
}

void cm_api_keep_findings(struct cameo_findings *findings, const char *place)
{
    size_t kept = 0;

    findings->violations = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct cm_str at = {findings->items[i].place.data, findings->items[i].place.size};

        if (!cm_str_starts(at, place))
            continue;
        findings->violations += findings->items[i].severity == CAMEO_VIOLATION;
        findings->items[kept++] = findings->items[i];
    }
    findings->count = findings->total = kept;
}

/* ---- what stands in the way of a run ---- */

enum cm_status cm_api_findings(const struct cameo_model *model, const struct cm_findings *list,
                               enum cm_status status, struct cameo_findings **out,
                               struct cm_error *err)
{
    struct cm_finding whole = {.status = status,
                               .severity = CM_VIOLATION,
                               .rule = list->rule ? list->rule : "run",
                               .place = CM_STR(""),
                               .reason = cm_str(err->text),
                               .help = "",
                               .node = CM_STR(""),
                               .op_type = CM_STR(""),
                               .value = CM_STR("")};
    const struct cm_findings one = {
        .what = list->what, .items = &whole, .count = 1, .total = 1, .violations = 1};

    return list_findings(model, status && !list->violations ? &one : list, out, err);
}

enum cm_status cm_api_refused(const struct cameo_model *model, const struct cm_findings *list,
                              enum cm_status status, struct cameo_findings **out,
                              struct cm_error *err)
{
    struct cm_error why = *err;

    if (out && status && cm_api_findings(model, list, status, out, &why) != CM_OK)
        *out = NULL; /* the message has as many as fit */
    return status;
}

enum cm_status cm_api_refuse(const struct cameo_model *model, const struct cm_findings *list,
                             struct cameo_findings **out, struct cm_error *err)
{
    return cm_api_refused(model, list, cm_findings_fail(list, err), out, err);
}

/* ---- the rules ---- */

/* Made when somebody asks: as constants they would take more room than the code. */
static struct cameo_check_rule rules[CM_RULE_COUNT];
static pthread_once_t rules_made = PTHREAD_ONCE_INIT;

static void make_rules(void)
{
    for (size_t i = 0; i < CM_RULE_COUNT; i++) {
        const struct cm_check_rule *rule = cm_check_rule_at(i);

        rules[i] = (struct cameo_check_rule){
            .id = cm_api_view(cm_str(rule->id)),
            .severity = (enum cameo_severity)rule->severity,
            .strict_severity = (enum cameo_severity)rule->strict_severity,
            .text = cm_api_view(cm_str(rule->text)),
            .help = cm_api_view(cm_str(rule->help)),
        };
    }
}

size_t cameo_check_rule_count(void)
{
    return CM_RULE_COUNT;
}

const struct cameo_check_rule *cameo_check_rule_at(size_t index)
{
    if (index >= CM_RULE_COUNT)
        return NULL;
    (void)pthread_once(&rules_made, make_rules);
    return &rules[index];
}

/* ---- reading the list ---- */

void cameo_findings_free(struct cameo_findings *findings)
{
    if (!findings)
        return;
    cm_arena_release(&findings->arena);
    cm_free(findings);
}

size_t cameo_findings_count(const struct cameo_findings *findings)
{
    return findings->count;
}

size_t cameo_findings_violations(const struct cameo_findings *findings)
{
    return findings->violations;
}

size_t cameo_findings_warnings(const struct cameo_findings *findings)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->count; i++)
        count += findings->items[i].severity == CAMEO_WARNING;
    return count;
}

bool cameo_findings_cut(const struct cameo_findings *findings)
{
    return findings->total > findings->count;
}

struct cameo_text cameo_findings_headline(const struct cameo_findings *findings)
{
    return findings->headline;
}

const struct cameo_finding *cameo_findings_at(const struct cameo_findings *findings, size_t index)
{
    return index < findings->count ? &findings->items[index] : NULL;
}
