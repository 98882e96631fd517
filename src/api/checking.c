/* Checking, and the list of what was found. */
// SPDX-License-Identifier: Apache-2.0
#include "api/checking.h"

#include "base/memory.h"
#include "check/check.h"
#include "check/check_rules.h"
#include "graph/obstacles.h"

#include <assert.h>

static_assert((int)CAMEO_WARNING == (int)CM_WARNING && (int)CAMEO_VIOLATION == (int)CM_VIOLATION &&
                  (int)CAMEO_NOTE == (int)CM_NOTE,
              "public numbers are the library's own");

struct cameo_findings {
    struct cm_arena arena;
    struct cameo_finding *items;
    size_t count, violations;
    bool cut;
};

struct check_call {
    const struct cameo_model *model;
    struct cameo_check_options options;
    struct cameo_findings *findings;
    struct cm_error err;
};

/* The check may point into the model, which need not live as long: texts are copied. */
static enum cm_status check_in(struct check_call *call, struct cm_arena *scratch)
{
    const struct cm_model_file *file = call->model->file;
    struct cameo_findings *out = call->findings;
    struct cm_findings found = {0};

    /* A model in memory has no folder whose files could be looked at. */
    struct cm_external_files *files = file->path.size ? file->files : NULL;
    const unsigned flags = (call->options.strict ? (unsigned)CM_CHECK_STRICT : 0) |
                           (call->options.tool ? (unsigned)CM_CHECK_FOR_RUNTIME : 0);
    CM_TRY(cm_check_model(&file->model, files, flags, scratch, &found, &call->err));
    cm_api_check_modes(file, flags, scratch, &found);
    cm_api_check_held(file, flags, scratch, &found);
    struct cm_model_file *today;
    struct cm_error unused = {0};
    /* Calls of the inference graph that cannot be replaced were reported. */
    if (!call->options.structure_only &&
        cm_api_today(call->model->file, scratch, &today, &unused) == CM_OK)
        CM_TRY(cm_api_check_types(today, flags, scratch, scratch, &found, &call->err));
    out->items = CM_NEW_ARRAY(&out->arena, struct cameo_finding, found.count);
    for (size_t i = 0; i < found.count; i++) {
        out->items[i] = (struct cameo_finding){
            .rule = cm_api_text(&out->arena, cm_str(found.items[i].rule)),
            .severity = (enum cameo_severity)found.items[i].severity,
            .place = cm_api_text(&out->arena, found.items[i].place),
            .reason = cm_api_text(&out->arena, found.items[i].reason),
            .help = cm_api_text(&out->arena, cm_str(found.items[i].help)),
            .node = cm_api_text(&out->arena, found.items[i].node),
            .op_type = cm_api_text(&out->arena, found.items[i].op_type),
            .value = cm_api_text(&out->arena, found.items[i].value),
        };
    }
    out->count = found.count;
    out->violations = found.violations;
    out->cut = found.cut;
    return CM_OK;
}

static enum cm_status check_guarded(struct cm_guard *guard, void *arg)
{
    struct check_call *call = arg;
    struct cm_arena scratch;

    cm_arena_init(&call->findings->arena, guard);
    cm_arena_init(&scratch, guard);
    const enum cm_status status = check_in(call, &scratch);
    cm_arena_release(&scratch);
    return status;
}

static enum cm_status check(struct check_call *call, const struct cameo_check_options *options)
{
    call->options = (struct cameo_check_options)CAMEO_CHECK_OPTIONS_INIT;
    CM_TRY(cm_api_options(&call->options, sizeof call->options, options, &call->err));
    if (call->options.tool && strcmp(call->options.tool, "ort") != 0)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "tool is '%s', expected 'ort'",
                       call->options.tool);
    call->findings = cm_calloc(1, sizeof *call->findings);
    if (!call->findings)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for findings");
    return cm_api_locked(call->model, check_guarded, call, &call->err);
}

enum cameo_status cameo_model_check(const struct cameo_model *model,
                                    const struct cameo_check_options *options,
                                    struct cameo_findings **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct check_call call = {.model = model};
    const enum cm_status status = check(&call, options);

    *out = NULL;
    if (status == CM_OK)
        *out = call.findings;
    else
        cameo_findings_free(call.findings);
    return cm_api_done(status, &call.err, err);
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
    findings->count = kept;
}

/* ---- what stands in the way of a run ---- */

struct blockers_call {
    const struct cm_obstacles *list;
    struct cameo_findings *findings;
};

static enum cm_status blockers_guarded(struct cm_guard *guard, void *arg)
{
    const struct blockers_call *call = arg;
    struct cameo_findings *out = call->findings;

    cm_arena_init(&out->arena, guard);
    out->items = CM_NEW_ARRAY(&out->arena, struct cameo_finding, call->list->count);
    for (size_t i = 0; i < call->list->count; i++)
        out->items[i] = (struct cameo_finding){
            .rule = cm_api_text(&out->arena, CM_STR("run")),
            .severity = CAMEO_VIOLATION,
            .place = cm_api_text(&out->arena, call->list->items[i].place),
            .reason = cm_api_text(&out->arena, call->list->items[i].reason),
            .help = {"", 0},
            .node = {"", 0},
            .op_type = {"", 0},
            .value = {"", 0},
        };
    out->count = call->list->count;
    out->violations = call->list->total;
    out->cut = call->list->total > call->list->count;
    return CM_OK;
}

enum cm_status cm_api_findings(const struct cm_obstacles *list, struct cameo_findings **out,
                               struct cm_error *err)
{
    struct blockers_call call = {list, cm_calloc(1, sizeof *call.findings)};

    if (!call.findings)
        return cm_fail(err, CM_NO_MEMORY, "no memory for findings");
    const enum cm_status status = cm_guarded(0, err, blockers_guarded, &call);
    if (status)
        cameo_findings_free(call.findings);
    else
        *out = call.findings;
    return status;
}

/* ---- the rules ---- */

/* Made when somebody asks: as constants they would take more room than the code. */
static struct cameo_check_rule rules[CM_RULE_COUNT];
static pthread_once_t rules_made = PTHREAD_ONCE_INIT;

static struct cameo_text text_of(const char *text)
{
    return (struct cameo_text){text, strlen(text)};
}

static void make_rules(void)
{
    for (size_t i = 0; i < CM_RULE_COUNT; i++) {
        const struct cm_check_rule *rule = cm_check_rule_at(i);

        rules[i] = (struct cameo_check_rule){
            .id = text_of(rule->id),
            .severity = (enum cameo_severity)rule->severity,
            .strict_severity = (enum cameo_severity)rule->strict_severity,
            .text = text_of(rule->text),
            .help = text_of(rule->help),
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
    return findings->cut;
}

const struct cameo_finding *cameo_findings_at(const struct cameo_findings *findings, size_t index)
{
    return index < findings->count ? &findings->items[index] : NULL;
}
