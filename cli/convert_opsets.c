/* cameo upgrade and cameo downgrade: a model under other opset versions. */
// SPDX-License-Identifier: Apache-2.0
#include "convert_opsets.h"

#include "derive.h"

#include <stdlib.h>
#include <string.h>

enum { DOMAIN_MAX = 200 };

struct target {
    char domain[DOMAIN_MAX];
    int64_t version;
};

/* "18", or "ai.onnx.ml=3" */
static int read_target(const struct cli_conversion *how, const char *text, struct target *out)
{
    const char *equals = strrchr(text, '='), *number = equals ? equals + 1 : text;
    char *end;

    if (equals && (size_t)(equals - text) < sizeof out->domain)
        snprintf(out->domain, sizeof out->domain, "%.*s", (int)(equals - text), text);
    if (strcmp(out->domain, "ai.onnx") == 0)
        out->domain[0] = 0;
    out->version = strtoll(number, &end, 10);
    if (*number && !*end && out->version > 0)
        return CLI_YES;
    cli_complain("%s: --opset needs a version, or DOMAIN=VERSION, not '%s'", how->command, text);
    return CLI_USAGE;
}

static int64_t imported(const struct cameo_model *model, const char *domain)
{
    const struct cameo_opset *opset;

    for (size_t i = 0; (opset = cameo_model_opset(model, i)); i++)
        if (strcmp(opset->domain.data, domain) == 0 ||
            (!domain[0] && strcmp(opset->domain.data, "ai.onnx") == 0))
            return opset->version;
    return 0;
}

/* Versions that lie in the other direction are a slip of the pen. */
static int check_direction(const struct cli_conversion *how, const struct cameo_model *model,
                           const struct target *target)
{
    const int64_t now = imported(model, target->domain);
    const bool down = strcmp(how->command, "downgrade") == 0;

    if (!now || (down ? target->version <= now : target->version >= now))
        return CLI_YES;
    cli_complain("%s: the model imports opset %lld of %s, which is %s than %lld; use 'cameo %s'",
                 how->command, (long long)now, target->domain[0] ? target->domain : "ai.onnx",
                 down ? "older" : "newer", (long long)target->version,
                 down ? "upgrade" : "downgrade");
    return CLI_USAGE;
}

static void put_report(const struct cameo_conversion *report)
{
    for (size_t i = 0; i < report->change_count; i++) {
        const struct cameo_version_change *change = report->changes[i];
        cli_put_text(stdout, change->op.data, change->op.size);
        printf(" %lld -> ", (long long)change->from);
        if (change->to)
            printf("%lld", (long long)change->to);
        else
            printf("none");
        printf(": %zu node%s", change->nodes, change->nodes == 1 ? "" : "s");
        if (change->how.size) {
            printf(" (");
            cli_put_text(stdout, change->how.data, change->how.size);
            putchar(')');
        }
        putchar('\n');
    }
    printf("%zu of %zu nodes changed\n", report->nodes_changed,
           report->nodes_changed + report->nodes_kept);
}

static void put_texts(struct cli_json *json, const char *name, const struct cameo_text *items,
                      size_t count)
{
    cli_json_open(json, name, '[');
    for (size_t i = 0; i < count; i++)
        cli_json_text(json, NULL, items[i]);
    cli_json_close(json, ']');
}

static void put_json(const struct cameo_conversion *report, const struct cli_saved *saved)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "changes", '[');
    for (size_t i = 0; i < report->change_count; i++) {
        const struct cameo_version_change *change = report->changes[i];
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "domain", change->domain);
        cli_json_text(&json, "op", change->op);
        cli_json_count(&json, "from", (size_t)change->from);
        cli_json_count(&json, "to", (size_t)change->to);
        cli_json_count(&json, "nodes", change->nodes);
        cli_json_text(&json, "how", change->how);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_count(&json, "nodes_changed", report->nodes_changed);
    cli_json_count(&json, "nodes_kept", report->nodes_kept);
    put_texts(&json, "notes", report->notes, report->note_count);
    cli_saved_json(&json, saved);
    cli_json_close(&json, '}');
}

static int convert(const struct cli_conversion *how, struct cameo_model *model,
                   const struct cameo_convert_options *options)
{
    const struct cameo_conversion *report;
    struct cameo_error err;

    const enum cameo_status status = cameo_model_convert(model, options, &report, &err);
    if (status != CAMEO_OK)
        return cli_refuse(report ? report->findings : NULL, &err);
    if (!cli_as_json)
        put_report(report);
    fflush(stdout); /* what follows goes elsewhere; a failure is found at the end */
    for (size_t i = 0; i < report->note_count; i++)
        cli_put_line(stderr, report->notes[i]);
    struct cli_saved saved;
    const int code = cli_save_files(model, how->out_path, &saved);
    if (cli_as_json && code == CLI_YES)
        put_json(report, &saved);
    cli_saved_free(&saved);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}

static int convert_to(const struct cli_conversion *how, struct cameo_model *model)
{
    struct target targets[CLI_TEXTS_MAX] = {0};
    struct cameo_target_opset opsets[CLI_TEXTS_MAX];
    struct cameo_convert_options options = CAMEO_CONVERT_OPTIONS_INIT;
    int code = cli_may_save(how->command, how->out_path);

    for (size_t i = 0; i < how->opsets.count && code == CLI_YES; i++) {
        code = read_target(how, how->opsets.items[i], &targets[i]);
        if (code == CLI_YES)
            code = check_direction(how, model, &targets[i]);
        opsets[i] = (struct cameo_target_opset)CAMEO_TARGET_OPSET_INIT;
        opsets[i].domain = targets[i].domain;
        opsets[i].version = targets[i].version;
    }
    if (how->opsets.count) {
        options.opsets = opsets;
        options.opset_count = how->opsets.count;
    }
    options.as_is = how->as_is;
    return code == CLI_YES ? convert(how, model, &options) : code;
}

int cli_convert(const struct cli_conversion *how, const char *path)
{
    struct cameo_model *model;
    struct cameo_error err;

    if (!how->out_path) {
        cli_complain("%s: no file to write was given, add -o FILE", how->command);
        return CLI_USAGE;
    }
    int code = cli_placement_check(how->command);
    if (code == CLI_YES)
        code = cli_check_writable(how->out_path); /* before the work, not after it */
    if (code != CLI_YES)
        return code;
    if (cli_load_model(path, NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    code = convert_to(how, model);
    cameo_model_free(model);
    return code;
}
