/* cameo run: a model on arrays from files. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "derive.h"
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct cli_texts input_texts;
static struct cli_texts only;
static const char *output_dir, *dump_dir, *backend, *profile_path, *format, *without;
static size_t threads, seed, memory_limit;
static bool explain, expanded, allow_links;
static struct cli_make make;
static struct cameo_cancel *cancel;
static size_t own_outputs; /* of the model; values that are dumped come after them */

static void stop(int number)
{
    (void)number;
    cameo_cancel_set(cancel);
}

enum { NAME_SIZE = 256, ATTEMPTS = 6 };

/* Names of files for all outputs: a number is added where a name is taken. */
static char (*name_outputs(const struct cameo_session *session))[NAME_SIZE]
{
    const size_t count = own_outputs;
    char(*names)[NAME_SIZE] = cli_alloc(count, sizeof *names);

    for (size_t i = 0; i < count; i++) {
        cli_file_name(names[i], NAME_SIZE - 32, cameo_session_output(session, i)->name, i);
        const size_t plain = strlen(names[i]);
        size_t number = i;

        for (size_t j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) != 0)
                continue;
            snprintf(names[i] + plain, 24, "_%zu", number++);
            j = SIZE_MAX; /* from the start: an earlier name may be the new one */
        }
    }
    return names;
}

static bool output_path(char *path, size_t room, const char *name, const struct cameo_value *value)
{
    const char *ending = cameo_value_kind(value) == CAMEO_KIND_TENSOR ? format : "pb";
    const int size = snprintf(path, room, "%s/%s.%s", output_dir, name, ending);

    return size > 0 && (size_t)size < room;
}

static int save_output(const struct cameo_session *session, size_t index, const char *name,
                       const struct cameo_value *value)
{
    const struct cameo_value_info *output = cameo_session_output(session, index);
    const char *const names[] = {output->name.data};
    struct cameo_error err;
    char path[4096];

    if (!output_path(path, sizeof path, name, value)) {
        cli_complain("run: the path to '%s' is too long", name);
        return CLI_USAGE;
    }
    const int may = cli_may_write_file_of_folder("run: --output", path);
    if (may != CLI_YES)
        return may;
    if (cameo_arrays_save(path, names, &value, 1, &err) != CAMEO_OK)
        return cli_fail(&err);
    char type[400];
    fputs("wrote ", stderr);
    cli_put_text(stderr, path, strlen(path));
    fprintf(stderr, ": %s\n", cli_describe_value(type, sizeof type, value));
    return CLI_YES;
}

static int make_folder(const char *path)
{
    struct stat facts;

    if (!path || mkdir(path, 0777) == 0)
        return CLI_YES;
    if (errno == EEXIST && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return CLI_YES;
    const int why = errno;
    cli_complain("run: cannot make the folder '%s': %s", path, strerror(why));
    return cli_errno_code(why);
}

static int make_folders(void)
{
    int code = cli_may_write("run: --profile", profile_path);

    if (code == CLI_YES)
        code = make_folder(output_dir);
    if (code == CLI_YES)
        code = make_folder(dump_dir);
    if (code == CLI_YES && dump_dir)
        code = cli_may_write_in("run: --dump", dump_dir);
    return code;
}

static void json_element(struct cli_json *json, const struct cameo_value *value, int64_t index)
{
    const enum cameo_dtype dtype = cameo_value_dtype(value);

    if (dtype == CAMEO_STRING)
        cli_json_text(json, NULL, cameo_value_string(value, index));
    else if (dtype == CAMEO_BOOL)
        cli_json_bool(json, NULL, cameo_value_integer(value, index) != 0);
    else if (dtype == CAMEO_UINT64)
        cli_json_count(json, NULL, (uint64_t)cameo_value_integer(value, index));
    else if (dtype == CAMEO_INT64)
        cli_json_int(json, NULL, cameo_value_integer(value, index));
    else if (isfinite(cameo_value_real(value, index)))
        cli_json_real(json, NULL, cameo_value_real(value, index));
    else
        cli_json_null(json, NULL);
}

/* path: of its file; NULL: its elements are printed, in one list. */
static void json_output(struct cli_json *json, struct cameo_text name,
                        const struct cameo_value *value, const char *path)
{
    char type[400];

    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", name);
    cli_json_string(json, "type", cli_describe_value(type, sizeof type, value));
    if (path) {
        cli_json_string(json, "file", path);
    } else {
        cli_json_open(json, "values", '[');
        for (int64_t i = 0; i < cameo_value_count(value); i++)
            json_element(json, value, i);
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
}

/* What JSON has no form for goes to files. */
static int json_outputs(const struct cameo_session *session, const struct cameo_fetch *fetches,
                        char (*names)[NAME_SIZE])
{
    struct cli_json json = {.to = stdout, .flat = true};
    char path[4096];

    for (size_t i = 0; i < own_outputs && !names; i++) {
        const struct cameo_value *value = fetches[i].value;
        const enum cameo_dtype dtype = cameo_value_dtype(value);

        if (cameo_value_kind(value) == CAMEO_KIND_TENSOR && dtype != CAMEO_COMPLEX64 &&
            dtype != CAMEO_COMPLEX128)
            continue;
        cli_complain("run: --json cannot print output '%s': write it to a file with --output DIR",
                     cameo_session_output(session, i)->name.data);
        return CLI_USAGE;
    }
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "outputs", '[');
    for (size_t i = 0; i < own_outputs; i++) {
        const bool is_file = names && output_path(path, sizeof path, names[i], fetches[i].value);

        json_output(&json, cameo_session_output(session, i)->name, fetches[i].value,
                    is_file ? path : NULL);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    return CLI_YES;
}

static int show_outputs(const struct cameo_session *session, const struct cameo_fetch *fetches)
{
    const size_t count = own_outputs;
    char(*names)[NAME_SIZE] = output_dir ? name_outputs(session) : NULL;
    int code = CLI_YES;

    for (size_t i = 0; output_dir && i < count && code == CLI_YES; i++) {
        char path[4096];
        if (output_path(path, sizeof path, names[i], fetches[i].value))
            code = cli_may_write("run: --output", path);
    }
    for (size_t i = 0; i < count && code == CLI_YES; i++) {
        if (output_dir)
            code = save_output(session, i, names[i], fetches[i].value);
        else if (!cli_as_json)
            cli_print_value(stdout, cameo_session_output(session, i)->name, fetches[i].value);
    }
    if (cli_as_json && code == CLI_YES)
        code = json_outputs(session, fetches, names);
    free(names);
    return code;
}

/* What the session says when it fails is left in err, for the caller to tell. */
static int run_once(struct cameo_session *session, const struct cli_inputs *inputs,
                    struct cli_steps *steps, struct cameo_error *err)
{
    const size_t count = cameo_session_output_count(session);
    struct cameo_fetch *fetches = cli_alloc(count, sizeof *fetches);
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    int code;

    err->status = CAMEO_OK;
    if (cameo_cancel_new(&cancel, NULL) != CAMEO_OK)
        cli_no_memory();
    for (size_t i = 0; i < count; i++) {
        fetches[i] = cameo_fetch_value(NULL);
        fetches[i].index = i;
    }
    options.cancel = cancel;
    if (explain || profile_path) {
        options.step = cli_steps_add;
        options.step_arg = steps;
    }
    signal(SIGINT, stop);
    steps->count = 0;
    if (cameo_session_run(session, inputs->feeds, inputs->count, fetches, count, &options, err) !=
        CAMEO_OK)
        code = cli_exit_code(err->status);
    else
        code = show_outputs(session, fetches);
    if (code == CLI_YES && err->status == CAMEO_OK && dump_dir)
        code = cli_dump_values(dump_dir, &only, own_outputs, session, fetches);
    signal(SIGINT, SIG_DFL);
    for (size_t i = 0; i < count; i++)
        cameo_value_free(fetches[i].value);
    free(fetches);
    cameo_cancel_free(cancel);
    return code;
}

/* Sizes that were made up may not be what the model needs: then others are tried. */
static int run_guessing(struct cameo_session *session, struct cli_inputs *inputs,
                        struct cli_steps *steps)
{
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_error first, err;
    int code = run_once(session, inputs, steps, &first);

    options.seed = seed;
    options.memory_limit = cli_memory_limit(memory_limit);
    if (first.status == CAMEO_OK || !cli_inputs_guessed(inputs) ||
        first.status == CAMEO_CANCELLED || first.status == CAMEO_UNSUPPORTED) {
        if (first.status != CAMEO_OK)
            cli_complain("%s", first.message);
        cli_inputs_note_sizes(inputs);
        return code;
    }
    for (options.attempt = 1; options.attempt <= ATTEMPTS; options.attempt++) {
        if (cli_inputs_make(inputs, &make, &options) != CLI_YES)
            break;
        const int again = run_once(session, inputs, steps, &err);
        if (err.status == CAMEO_OK || err.status == CAMEO_CANCELLED) {
            cli_inputs_note_sizes(inputs);
            return again;
        }
    }
    cli_complain("%s", first.message);
    options.attempt = 0;
    if (cli_inputs_make(inputs, &make, &options) == CLI_YES)
        cli_inputs_note_sizes(inputs);
    return code;
}

static int feed_and_run(const char *path, struct cameo_session *session)
{
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct cli_inputs inputs;
    struct cli_steps steps = {0};
    int code = CLI_YES;

    cli_inputs_begin(&inputs, "run", session);
    for (size_t i = 0; i < input_texts.count && code == CLI_YES; i++)
        code = cli_inputs_add(&inputs, input_texts.items[i]);
    options.seed = seed;
    options.memory_limit = cli_memory_limit(memory_limit);
    if (code == CLI_YES && (make.wanted || make.dims.count || make.shapes.count))
        code = cli_inputs_make(&inputs, &make, &options);
    if (code == CLI_YES)
        code = cli_inputs_check(&inputs, session, path);
    if (code == CLI_YES)
        code = make_folders();
    if (code == CLI_YES)
        code = run_guessing(session, &inputs, &steps);
    if (code == CLI_YES && explain)
        cli_steps_explain(stderr, &steps, cameo_machine_peak((int)threads));
    if (code == CLI_YES && profile_path)
        code = cli_steps_profile(profile_path, &steps);
    cli_steps_free(&steps);
    cli_inputs_end(&inputs);
    return code;
}

static bool check_options(void)
{
    if (!format)
        format = "npy";
    if (threads > 4096)
        cli_complain("run: %zu threads are too many", threads);
    else if (strcmp(format, "npy") != 0 && strcmp(format, "npz") != 0 &&
             strcmp(format, "pb") != 0 && strcmp(format, "safetensors") != 0)
        cli_complain("run: --format is npy, npz, pb or safetensors, not '%s'", format);
    else if (only.count && !dump_dir)
        cli_complain("run: --only goes with --dump");
    else
        return true;
    return false;
}

/* Intermediate values as outputs: then no pass takes them away. */
static int expose(struct cameo_model *model)
{
    const struct cameo_edit *report = NULL;
    struct cameo_error err;
    struct cli_names names;
    int code = CLI_YES;

    own_outputs = cameo_model_summary(model)->output_count;
    if (!dump_dir)
        return CLI_YES;
    cli_names_split(&only, &names);
    if (cameo_model_expose(model, names.items, names.count, &report, &err) != CAMEO_OK) {
        code = cli_fail(&err);
        code = code == CLI_USAGE ? CLI_NO : code;
    }
    cli_names_free(&names);
    return code;
}

/* Options about the nodes of a model, which a compiled one has no more. */
static bool check_library_options(const char *path)
{
    const char *given = dump_dir       ? "--dump"
                        : backend      ? "--backend"
                        : without      ? "--without"
                        : expanded     ? "--expanded"
                        : explain      ? "--explain"
                        : profile_path ? "--profile"
                                       : NULL;

    if (given)
        cli_complain("run: %s is compiled, %s is for models with nodes", path, given);
    return !given;
}

/* What 'cameo compile' wrote is run like a model. */
static int run_library(const char *path)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_compiled *compiled = NULL;
    struct cameo_session *session = NULL;
    struct cameo_error err;
    int code;

    if (!check_library_options(path))
        return CLI_USAGE;
    cli_reads(path);
    if (cameo_compiled_open(path, &compiled, &err) != CAMEO_OK)
        return cli_fail(&err);
    own_outputs = cameo_model_summary(cameo_compiled_model(compiled))->output_count;
    options.memory_limit = cli_memory_limit(memory_limit);
    if (cameo_session_new(cameo_compiled_model(compiled), &options, &session, &err) != CAMEO_OK)
        code = cli_fail(&err);
    else
        code = feed_and_run(path, session);
    cameo_session_free(session);
    cameo_compiled_free(compiled);
    return code;
}

static int run_main(char **operands, int count)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_model *model;
    struct cameo_error err;
    int code;

    (void)count;
    if (!check_options())
        return CLI_USAGE;
    code = cli_check_writable(profile_path);
    if (code != CLI_YES)
        return code;
    if (cli_is_library(operands[0]))
        return run_library(operands[0]);
    load.allow_links = allow_links;
    if (cli_load_model(operands[0], &load, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    code = expose(model);
    if (code != CLI_YES) {
        cameo_model_free(model);
        return code;
    }
    options.threads = (int)threads;
    options.memory_limit = cli_memory_limit(memory_limit);
    options.backend = backend;
    options.seed = seed;
    options.expand = expanded;
    options.without_passes = without;
    options.findings = &cli_found;
    const enum cameo_status opened = cameo_session_new(model, &options, &session, &err);
    cli_note_newer(model); /* a session has seen what there is to note of most models */
    if (opened != CAMEO_OK)
        code = cli_fail_found(&err);
    else
        code = feed_and_run(operands[0], session);
    cameo_session_free(session);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--input", "-i", "NAME=FILE", "the value of an input: .npy, .npz, .pb or .safetensors",
     CLI_TEXTS, &input_texts},
    {"--output", "-o", "DIR", "write each output to DIR/NAME.npy", CLI_TEXT, &output_dir},
    {"--output-dir", NULL, NULL, "--output", CLI_OLD, NULL},
    {"--format", NULL, "KIND", "with --output: npy, npz, pb or safetensors", CLI_TEXT, &format},
    {"--dump", NULL, "DIR", "write intermediate values to DIR, with DIR/index.json", CLI_TEXT,
     &dump_dir},
    {"--only", NULL, "NAME,..", "with --dump: these values (all)", CLI_TEXTS, &only},
    {"--random-inputs", NULL, NULL, "make up the inputs that are not given", CLI_FLAG,
     &make.wanted},
    CLI_MAKE_OPTIONS(make),
    {"--seed", NULL, "N", "of random operators and inputs", CLI_SIZE, &seed},
    {"--threads", NULL, "N", "how many work at once (as many as cores)", CLI_SIZE, &threads},
    {"--memory", NULL, "N", "bytes the run may hold beside weights (what is free)", CLI_SIZE,
     &memory_limit},
    {"--backend", NULL, "NAME", "reference: our own kernels; plain: without a plan", CLI_TEXT,
     &backend},
    {"--without", NULL, "PASSES", "leave these passes out, see 'cameo help optimize'", CLI_TEXT,
     &without},
    {"--expanded", NULL, NULL, "run operators by their function bodies where they have one",
     CLI_FLAG, &expanded},
    {"--json", NULL, NULL, "the outputs as JSON, or all that cannot run", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {"--explain", NULL, NULL, "say which kernel ran each node, and why", CLI_FLAG, &explain},
    {"--profile", NULL, "FILE", "write a Chrome trace of time and memory", CLI_TEXT, &profile_path},
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(
    run, run_main, "MODEL [--input NAME=FILE]... [--output DIR]", "run a model",
    "Runs the model once and prints its outputs, large ones with their middles left\n"
    "out, or writes them to files. --input may be given many times; FILE alone works for\n"
    ".npz and .safetensors whose arrays are named after inputs, and for the only input.\n"
    "MODEL may be a library that 'cameo compile' wrote (.so), which is code: run what you trust.\n"
    "Before anything runs, all that cannot is listed. Inputs that are made up have the\n"
    "sizes that the model says; those it leaves open are guessed, told, and set with\n"
    "--dim and --shape, which imply --random-inputs.",
    "cameo run net.onnx --input x=x.npy # prints the outputs\n"
    "cameo run net.onnx --input batch.npz -o out # writes out/NAME.npy\n"
    "cameo run net.onnx --random-inputs --explain # just to try it\n"
    "cameo run net.onnx --random-inputs --dim batch=8 # with a size of your own\n"
    "cameo run net.onnx --shape image=1,3,480,640 # the same for a whole input\n"
    "cameo run net.onnx -i x.npy --dump values --only conv1,relu1 # what is between",
    "0 if it ran, 1 if the model cannot run", options, 1, 1);
