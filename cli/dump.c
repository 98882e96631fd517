/* Values of a run in files, and an index of them. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>

void cli_file_name(char *to, size_t size, struct cameo_text name, size_t index)
{
    size_t used = 0;

    while (used < name.size && used < 200 && used + 1 < size) {
        const struct cameo_text rest = {name.data + used, name.size - used};
        size_t hidden = cameo_text_unprintable(rest);

        to[used] = name.data[used] == '/' ? '_' : name.data[used];
        for (used += !hidden; hidden > 0 && used + 1 < size; hidden--)
            to[used++] = '_';
    }
    to[used] = 0;
    if (used == 0 || to[0] == '.')
        snprintf(to, size, "output_%zu", index);
}

static bool is_named(const struct cli_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return names->count == 0;
}

static void describe(struct cli_json *json, struct cameo_text name, const char *file,
                     const struct cameo_value *value)
{
    char type[400];

    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", name);
    cli_json_string(json, "file", file);
    cli_json_string(json, "type", cli_describe_value(type, sizeof type, value));
    if (cameo_value_kind(value) == CAMEO_KIND_TENSOR) {
        cli_json_string(json, "dtype", cameo_dtype_name(cameo_value_dtype(value)));
        cli_json_open(json, "dims", '[');
        for (int i = 0; i < cameo_value_rank(value); i++)
            cli_json_int(json, NULL, cameo_value_dims(value)[i]);
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
}

static int dump_value(const char *folder, struct cli_json *json, struct cameo_text name,
                      size_t number, const struct cameo_value *value)
{
    const char *const names[] = {name.data};
    char safe[220], file[260], path[4096];
    struct cameo_error err;

    cli_file_name(safe, sizeof safe, name, number);
    snprintf(file, sizeof file, "%05zu_%s.%s", number, safe,
             cameo_value_kind(value) == CAMEO_KIND_TENSOR ? "npy" : "pb");
    const int size = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (size < 0 || (size_t)size >= sizeof path) {
        cli_complain("run: the path to '%s' is too long", file);
        return CLI_USAGE;
    }
    const int may = cli_may_write_file_of_folder("run: --dump", path);
    if (may != CLI_YES)
        return may;
    if (cameo_arrays_save(path, names, &value, 1, &err) != CAMEO_OK)
        return cli_fail(&err);
    describe(json, name, file, value);
    return CLI_YES;
}

int cli_dump_values(const char *folder, const struct cli_texts *only, size_t last,
                    const struct cameo_session *session, const struct cameo_fetch *fetches)
{
    const size_t count = cameo_session_output_count(session);
    struct cli_names names;
    char path[4096];
    struct cli_output output;
    size_t written = 0;

    snprintf(path, sizeof path, "%s/index.json", folder);
    int code = cli_may_write_file_of_folder("run: --dump", path);
    if (code == CLI_YES)
        code = cli_output_begin(&output, path);
    if (code != CLI_YES)
        return code;
    struct cli_json json = {.to = output.to};
    cli_names_split(only, &names);
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "values", '[');
    for (size_t k = 0; k < count && code == CLI_YES; k++) {
        const size_t i = (k + last) % count;
        const struct cameo_text name = cameo_session_output(session, i)->name;
        if (is_named(&names, name.data))
            code = dump_value(folder, &json, name, written++, fetches[i].value);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_names_free(&names);
    code = cli_output_end(&output, code);
    if (code == CLI_YES) {
        fprintf(stderr, "wrote %zu value%s to ", written, written == 1 ? "" : "s");
        cli_put_text(stderr, folder, strlen(folder));
        fputc('\n', stderr);
    }
    return code;
}
