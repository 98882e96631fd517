/* Inputs of a run, from files. */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <stdlib.h>
#include <string.h>

void cli_inputs_begin(struct cli_inputs *inputs, const char *command,
                      const struct cameo_session *session)
{
    const size_t count = cameo_session_input_count(session);

    *inputs = (struct cli_inputs){.command = command, .session = session};
    inputs->given = cli_alloc(count, sizeof *inputs->given);
}

void cli_inputs_end(struct cli_inputs *inputs)
{
    for (size_t i = 0; i < inputs->file_count; i++)
        cameo_arrays_free(inputs->files[i]);
    cameo_made_inputs_free(inputs->made);
    free(inputs->files);
    free(inputs->feeds);
    free(inputs->given);
}

/* The input of this name, or the number of inputs. */
static size_t find_input(const struct cli_inputs *inputs, const char *name, size_t size)
{
    const size_t count = cameo_session_input_count(inputs->session);

    for (size_t i = 0; i < count; i++) {
        const struct cameo_text known = cameo_session_input(inputs->session, i)->name;
        if (known.size == size && memcmp(known.data, name, size) == 0)
            return i;
    }
    return count;
}

void cli_inputs_feed(struct cli_inputs *inputs, size_t index, struct cameo_feed feed)
{
    inputs->given[index] = true;
    inputs->feeds = cli_grow(inputs->feeds, inputs->count, &inputs->room, sizeof *inputs->feeds);
    inputs->feeds[inputs->count++] = feed;
}

static void feed_value(struct cli_inputs *inputs, size_t index, const struct cameo_value *value)
{
    const struct cameo_value_info *input = cameo_session_input(inputs->session, index);

    cli_inputs_feed(inputs, index, cameo_feed_value(input->name.data, value));
}

/* Loads the array of this name, or for NULL those named after inputs, within the limit of a run. */
static int load_arrays(const struct cli_inputs *inputs, const char *path, enum cameo_kind kind,
                       const struct cameo_text *name, struct cameo_arrays **out)
{
    const size_t count = cameo_session_input_count(inputs->session);
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;
    struct cameo_text *names = cli_alloc(count, sizeof *names);
    struct cameo_error err;

    for (size_t i = 0; i < count; i++)
        names[i] = cameo_session_input(inputs->session, i)->name;
    cli_reads(path);
    options.kind = kind;
    options.memory_limit = cli_memory_limit(0);
    options.names = name ? name : names;
    options.name_count = name ? 1 : count;
    options.or_alone = name != NULL;
    const enum cameo_status status = cameo_arrays_load(path, &options, out, &err);
    free(names);
    return status == CAMEO_OK ? CLI_YES : cli_fail(&err);
}

static int open_file(struct cli_inputs *inputs, const char *path, enum cameo_kind kind,
                     const struct cameo_text *name, struct cameo_arrays **out)
{
    inputs->files =
        cli_grow(inputs->files, inputs->file_count, &inputs->file_room, sizeof *inputs->files);
    const int code = load_arrays(inputs, path, kind, name, out);
    if (code != CLI_YES)
        return code;
    inputs->files[inputs->file_count++] = *out;
    return CLI_YES;
}

/* NAME=FILE: the one array of the file, or the one called NAME. */
static int add_named(struct cli_inputs *inputs, size_t index, const char *path)
{
    const struct cameo_value_info *input = cameo_session_input(inputs->session, index);
    struct cameo_arrays *arrays;
    const int code = open_file(inputs, path, input->kind, &input->name, &arrays);

    if (code != CLI_YES)
        return code;
    const size_t count = cameo_arrays_count(arrays);
    size_t i = 0;
    for (; i < count; i++) {
        const struct cameo_text name = cameo_arrays_name(arrays, i);
        if (count == 1 ||
            (name.size == input->name.size && memcmp(name.data, input->name.data, name.size) == 0))
            break;
    }
    if (i < count) {
        feed_value(inputs, index, cameo_arrays_at(arrays, i));
        return CLI_YES;
    }
    cli_complain("%s: %s has %zu arrays, and none is called '%s'", inputs->command, path, count,
                 input->name.data);
    return CLI_USAGE;
}

/* The only input that must be given, or the number of inputs. */
static size_t only_input(const struct cli_inputs *inputs)
{
    const size_t count = cameo_session_input_count(inputs->session);
    size_t found = count;

    for (size_t i = 0; i < count; i++) {
        if (cameo_session_input(inputs->session, i)->has_default)
            continue;
        if (found < count)
            return count;
        found = i;
    }
    return found;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t size = strlen(text), wanted = strlen(ending);
    return size >= wanted && strcmp(text + size - wanted, ending) == 0;
}

static void list_inputs(const struct cli_inputs *inputs)
{
    const size_t count = cameo_session_input_count(inputs->session);

    fputs("the model takes", stderr);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : " ", stderr);
        const struct cameo_value_info *input = cameo_session_input(inputs->session, i);
        cli_put_text(stderr, input->name.data, input->name.size);
    }
    fputs(count ? "\n" : " no inputs\n", stderr);
}

/* FILE alone: arrays named after inputs, or the value of the only input. */
static int add_file(struct cli_inputs *inputs, const char *path)
{
    const size_t n_inputs = cameo_session_input_count(inputs->session);
    struct cameo_arrays *arrays;
    size_t used = 0;

    if (!ends_with(path, ".npz") && !ends_with(path, ".safetensors")) {
        const size_t only = only_input(inputs);
        if (only < n_inputs)
            return add_named(inputs, only, path);
        cli_complain("%s: which input is %s? write --input NAME=%s", inputs->command, path, path);
        return CLI_USAGE;
    }
    int code = open_file(inputs, path, CAMEO_KIND_NONE, NULL, &arrays);
    for (size_t i = 0; code == CLI_YES && i < cameo_arrays_count(arrays); i++) {
        const struct cameo_text name = cameo_arrays_name(arrays, i);
        const size_t index = find_input(inputs, name.data, name.size);

        if (index < n_inputs) {
            feed_value(inputs, index, cameo_arrays_at(arrays, i));
            used++;
        } else {
            cli_complain("note: array '%s' of %s names no input and is not used", name.data, path);
        }
    }
    if (code == CLI_YES && used == 0) {
        cli_complain("%s: no array of %s is named after an input", inputs->command, path);
        list_inputs(inputs);
        return CLI_USAGE;
    }
    return code;
}

int cli_inputs_unknown(const struct cli_inputs *inputs, const char *name, size_t size)
{
    const size_t count = cameo_session_input_count(inputs->session);
    const char *names[CLI_TEXTS_MAX];
    char typed[200];

    for (size_t i = 0; i < count && i < CLI_TEXTS_MAX; i++)
        names[i] = cameo_session_input(inputs->session, i)->name.data;
    snprintf(typed, sizeof typed, "%.*s", (int)(size < sizeof typed ? size : sizeof typed), name);
    const char *meant = cli_suggest(typed, names, count < CLI_TEXTS_MAX ? count : CLI_TEXTS_MAX);
    if (meant)
        cli_complain("%s: there is no input '%s', did you mean '%s'?", inputs->command, typed,
                     meant);
    else
        cli_complain("%s: there is no input '%s'", inputs->command, typed);
    list_inputs(inputs);
    return CLI_USAGE;
}

int cli_inputs_add(struct cli_inputs *inputs, const char *text)
{
    const size_t n_inputs = cameo_session_input_count(inputs->session);
    uint64_t bytes;

    /* A name may hold '=' itself, so every one of them is tried. */
    for (const char *sign = strchr(text, '='); sign; sign = strchr(sign + 1, '=')) {
        const size_t index = find_input(inputs, text, (size_t)(sign - text));
        if (index < n_inputs)
            return add_named(inputs, index, sign + 1);
    }
    const char *sign = strchr(text, '=');
    if (!sign || cli_file_size(text, &bytes))
        return add_file(inputs, text);
    return cli_inputs_unknown(inputs, text, (size_t)(sign - text));
}

/* How to give what is missing. */
static void show_example(const struct cli_inputs *inputs, const char *model)
{
    const size_t count = cameo_session_input_count(inputs->session);

    fputs("give them as files, or try --random-inputs:\n  cameo run ", stderr);
    cli_put_text(stderr, model, strlen(model));
    for (size_t i = 0; i < count; i++) {
        const struct cameo_value_info *input = cameo_session_input(inputs->session, i);
        if (input->has_default)
            continue;
        fputs(" --input ", stderr);
        cli_put_text(stderr, input->name.data, input->name.size);
        fputc('=', stderr);
        cli_put_text(stderr, input->name.data, input->name.size);
        fputs(input->kind == CAMEO_KIND_TENSOR ? ".npy" : ".pb", stderr);
    }
    fputc('\n', stderr);
}

int cli_inputs_check(const struct cli_inputs *inputs, struct cameo_session *session,
                     const char *model)
{
    struct cameo_error err;
    bool missing = false;

    if (cameo_session_check(session, inputs->feeds, inputs->count, &cli_found, &err) == CAMEO_OK)
        return CLI_YES;
    for (size_t i = 0; i < cameo_session_input_count(session); i++)
        missing |= !inputs->given[i] && !cameo_session_input(session, i)->has_default;
    const int code = cli_fail_found(&err);
    if (missing && model)
        show_example(inputs, model);
    return code;
}
