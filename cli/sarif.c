/* The findings of a command as a SARIF 2.1.0 log: one run, all rules with their help, a result for
 * each finding with its file and its place in the model. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <stdlib.h>
#include <string.h>

const char *cli_sarif_path;

static struct {
    struct cli_output output; /* .to is NULL while there is no log */
    struct cli_json json;
    char *about; /* the model that was loaded last */
    bool failed; /* something could not be done, so that findings may be missing */
} sarif;

/* Rules that are not about the model but about this program. */
static const struct {
    const char *id, *text, *help;
} own_rules[] = {
    {"run", "the model cannot run here", "replace the node, or register the operator"},
    {"train", "the model cannot be trained here", "replace the node, or register the operator"},
};
enum { OWN_RULES = sizeof own_rules / sizeof *own_rules };

static void put_message(struct cli_json *json, const char *key, struct cameo_text text)
{
    cli_json_open(json, key, '{');
    cli_json_text(json, "text", text);
    cli_json_close(json, '}');
}

static struct cameo_text text_of(const char *text)
{
    return (struct cameo_text){text, strlen(text)};
}

static void put_rule(struct cli_json *json, struct cameo_text id, struct cameo_text text,
                     struct cameo_text help, enum cameo_severity severity)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "id", id);
    put_message(json, "shortDescription", text);
    put_message(json, "help", help);
    cli_json_open(json, "defaultConfiguration", '{');
    cli_json_string(json, "level", severity == CAMEO_VIOLATION ? "error" : "warning");
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

static void put_driver(struct cli_json *json)
{
    cli_json_open(json, "tool", '{');
    cli_json_open(json, "driver", '{');
    cli_json_string(json, "name", "cameo");
    cli_json_string(json, "version", cameo_version_string());
    cli_json_open(json, "rules", '[');
    for (size_t i = 0; i < cameo_check_rule_count(); i++) {
        const struct cameo_check_rule *rule = cameo_check_rule_at(i);

        put_rule(json, rule->id, rule->text, rule->help, rule->severity);
    }
    for (size_t i = 0; i < OWN_RULES; i++)
        put_rule(json, text_of(own_rules[i].id), text_of(own_rules[i].text),
                 text_of(own_rules[i].help), CAMEO_VIOLATION);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

int cli_sarif_begin(void)
{
    struct cli_json *json = &sarif.json;

    if (!cli_sarif_path)
        return CLI_YES;
    const int code = cli_output_begin(&sarif.output, cli_sarif_path);
    if (code != CLI_YES)
        return code;
    json->to = sarif.output.to;
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    cli_json_string(json, "version", "2.1.0");
    cli_json_open(json, "runs", '[');
    cli_json_open(json, NULL, '{');
    put_driver(json);
    cli_json_open(json, "results", '[');
    return CLI_YES;
}

/* A path as a relative URI reference: what has a meaning in URIs is written as %XX. */
static void put_uri(struct cli_json *json, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~/";
    static const char digits[] = "0123456789ABCDEF";
    char uri[3 * 4096 + 1];
    size_t size = 0;

    for (; *path && size + 3 < sizeof uri; path++) {
        const unsigned char byte = (unsigned char)*path;

        if (strchr(plain, *path)) {
            uri[size++] = *path;
            continue;
        }
        uri[size++] = '%';
        uri[size++] = digits[byte >> 4];
        uri[size++] = digits[byte & 15];
    }
    cli_json_text(json, "uri", (struct cameo_text){uri, size});
}

static void put_logical(struct cli_json *json, struct cameo_text name, const char *kind,
                        struct cameo_text place)
{
    cli_json_open(json, NULL, '{');
    if (name.size)
        cli_json_text(json, "name", name);
    cli_json_text(json, "fullyQualifiedName", place);
    cli_json_string(json, "kind", kind);
    cli_json_close(json, '}');
}

static void put_location(struct cli_json *json, const struct cameo_finding *finding)
{
    const bool is_value = finding->value.size > 0, is_node = finding->op_type.size > 0;

    cli_json_open(json, "locations", '[');
    cli_json_open(json, NULL, '{');
    cli_json_open(json, "physicalLocation", '{');
    cli_json_open(json, "artifactLocation", '{');
    put_uri(json, sarif.about);
    cli_json_close(json, '}');
    cli_json_open(json, "region", '{'); /* services that show findings ask for a line */
    cli_json_int(json, "startLine", 1);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
    if (finding->place.size) {
        cli_json_open(json, "logicalLocations", '[');
        if (is_value)
            put_logical(json, finding->value, "value", finding->place);
        else
            put_logical(json, finding->node, is_node ? "node" : "element", finding->place);
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
    cli_json_close(json, ']');
}

static bool same_text(struct cameo_text a, struct cameo_text b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Of the rules as put_driver lists them; their number: it is none of them. */
static size_t index_of(struct cameo_text id)
{
    const size_t count = cameo_check_rule_count();
    size_t i = 0;

    while (i < count && !same_text(cameo_check_rule_at(i)->id, id))
        i++;
    while (i >= count && i < count + OWN_RULES && !same_text(text_of(own_rules[i - count].id), id))
        i++;
    return i;
}

static const char *severity_level(enum cameo_severity severity)
{
    return severity == CAMEO_VIOLATION ? "error" : severity == CAMEO_NOTE ? "note" : "warning";
}

void cli_sarif_add(const struct cameo_finding *finding)
{
    struct cli_json *json = &sarif.json;
    char text[4096];

    if (!sarif.output.to)
        return;
    const size_t index = index_of(finding->rule);
    const int size = snprintf(text, sizeof text, "%s%s%s", finding->place.data,
                              finding->place.size ? ": " : "", finding->reason.data);
    const size_t used = size < 0 ? 0 : (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "ruleId", finding->rule);
    if (index < cameo_check_rule_count() + OWN_RULES)
        cli_json_count(json, "ruleIndex", index);
    cli_json_string(json, "level", severity_level(finding->severity));
    put_message(json, "message", (struct cameo_text){text, used});
    if (sarif.about)
        put_location(json, finding);
    cli_json_close(json, '}');
}

void cli_sarif_about(const char *path)
{
    if (!sarif.output.to)
        return;
    free(sarif.about);
    sarif.about = cli_copy(path);
}

void cli_sarif_failed(void)
{
    sarif.failed = true;
}

int cli_sarif_end(int code)
{
    struct cli_json *json = &sarif.json;

    if (!sarif.output.to)
        return code;
    cli_json_close(json, ']');
    cli_json_open(json, "invocations", '[');
    cli_json_open(json, NULL, '{');
    cli_json_bool(json, "executionSuccessful", !sarif.failed && code < CLI_USAGE);
    cli_json_close(json, '}');
    cli_json_close(json, ']');
    cli_json_close(json, '}');
    cli_json_close(json, ']');
    cli_json_close(json, '}');
    free(sarif.about);
    sarif.about = NULL;
    const int may = cli_may_write("--sarif", cli_sarif_path);
    const int written = cli_output_end(&sarif.output, code == CLI_MACHINE ? CLI_MACHINE : may);
    return written > code ? written : code;
}
