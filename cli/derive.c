/* Saving a model that was made or edited. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <stdlib.h>
#include <string.h>

int cli_save_files(const struct cameo_model *model, const char *path, struct cli_saved *saved)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_error err;

    *saved = (struct cli_saved){0};
    const int code = cli_may_save("-o", path);
    if (code != CLI_YES)
        return code;
    cli_saved_begin(saved, path, &options);
    options.cancel = cli_stop_on_signal();
    if (cameo_model_save(model, path, &options, &saved->report, &err) != CAMEO_OK) {
        cli_saved_free(saved);
        return cli_fail(&err);
    }
    cli_saved_tell(saved);
    return CLI_YES;
}

int cli_save(const struct cameo_model *model, const char *path)
{
    struct cli_saved saved;
    const int code = cli_save_files(model, path, &saved);

    cli_saved_free(&saved);
    return code;
}

enum { PASS_NAME_MAX = 64 };

int cli_dump_after(const char *command, const struct cli_texts *dumps, cli_dump_fn *write,
                   const void *arg)
{
    int code = CLI_YES;

    for (size_t i = 0; i < dumps->count && code == CLI_YES; i++) {
        const char *equals = strchr(dumps->items[i], '=');
        char what[80];

        snprintf(what, sizeof what, "%s: --dump-after", command);
        code = cli_may_save(what, equals ? equals + 1 : NULL);
    }
    for (size_t i = 0; i < dumps->count && code == CLI_YES; i++) {
        const char *text = dumps->items[i], *equals = strchr(text, '=');
        const size_t size = equals ? (size_t)(equals - text) : 0;
        char name[PASS_NAME_MAX];

        if (!size || !equals[1]) {
            cli_complain("%s: --dump-after needs PASS=FILE, not '%s'", command, text);
            return CLI_USAGE;
        }
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        code = write(arg, name, equals + 1);
    }
    return code;
}

int cli_list_passes(bool (*tell)(size_t index, struct cameo_pass *out))
{
    struct cameo_pass pass = CAMEO_PASS_INIT;
    int width = 12;

    for (size_t i = 0; tell(i, &pass); i++)
        width = (int)strlen(pass.name) > width ? (int)strlen(pass.name) : width;
    for (size_t i = 0; tell(i, &pass); i++)
        printf("%-*s %s%s\n", width, pass.name, pass.summary,
               pass.required     ? " (cannot be left out)"
               : pass.on_request ? " (on request)"
                                 : "");
    return cli_flush(stdout, "standard output");
}

int cli_edit_begin(const char *command, const char *path, const char *out,
                   struct cameo_model **model)
{
    struct cameo_error err;

    if (!out) {
        cli_complain("%s: no file to write was given, add -o FILE", command);
        return CLI_USAGE;
    }
    const int code = cli_check_writable(out); /* before the work, not after it */
    if (code != CLI_YES)
        return code;
    return cli_load_model(path, NULL, model, &err) == CAMEO_OK ? CLI_YES : cli_fail(&err);
}

int cli_edit_end(const char *command, struct cameo_model *model, enum cameo_status status,
                 const struct cameo_edit *report, const struct cameo_error *err, const char *out)
{
    if (status == CAMEO_OK) {
        for (size_t i = 0; i < report->change_count; i++)
            cli_put_line(stderr, report->changes[i]);
        return cli_save(model, out);
    }
    if (!report || !cameo_findings_violations(report->findings))
        return cli_fail(err);
    if (cameo_findings_violations(report->findings) == 1)
        cli_complain("%s: %s", command, err->message);
    else
        (void)cli_refuse(report->findings, err);
    return CLI_NO;
}

void cli_names_split(const struct cli_texts *texts, struct cli_names *out)
{
    size_t room = 1, most = 1;

    for (size_t i = 0; i < texts->count; i++) {
        room += strlen(texts->items[i]) + 1;
        for (const char *at = texts->items[i]; at; at = strchr(at + 1, ','))
            most++;
    }
    *out = (struct cli_names){.items = cli_alloc(most, sizeof *out->items),
                              .text = cli_alloc(room, 1)};
    char *to = out->text;
    for (size_t i = 0; i < texts->count; i++) {
        memcpy(to, texts->items[i], strlen(texts->items[i]) + 1);
        for (char *at = to; at;) {
            char *comma = strchr(at, ',');
            if (comma)
                *comma = 0;
            if (*at)
                out->items[out->count++] = at;
            at = comma ? comma + 1 : NULL;
        }
        to += strlen(texts->items[i]) + 1;
    }
}

void cli_names_free(struct cli_names *names)
{
    free(names->items);
    free(names->text);
}
