/* cameo print: a model as text. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool upstream, allow_links;
static size_t elide;
static const char *out_path, *form_name;

static const struct {
    const char *name;
    enum cameo_format format;
} forms[] = {
    {"text", CAMEO_FORMAT_TEXT},
    {"mlir", CAMEO_FORMAT_MLIR},
    {"mlir-generic", CAMEO_FORMAT_MLIR_GENERIC},
};
static enum cameo_format format;

struct target {
    FILE *file;
    bool terminal;
    bool failed;
    char last; /* byte written */
};

static int put_bytes(void *to, const void *bytes, size_t size)
{
    struct target *target = to;

    target->last = ((const char *)bytes)[size - 1];
    /* The official form has no escapes, so on its way to a terminal it gets some. */
    if (target->terminal)
        cli_put_lines(target->file, bytes, size);
    /* A buffer that could not be emptied shows in ferror alone. */
    target->failed = !(target->terminal || fwrite(bytes, 1, size, target->file) == size) ||
                     ferror(target->file) != 0;
    return target->failed;
}

/* What cannot be written is told by whoever closes the file. */
static int print_to(FILE *file, bool terminal, const struct cameo_model *model)
{
    struct cameo_write_options options = CAMEO_WRITE_OPTIONS_INIT;
    struct target target = {.file = file, .terminal = upstream && terminal};
    struct cameo_error err;

    options.format = format;
    options.upstream = upstream;
    options.elide = elide;
    if (cameo_model_write(model, &options, put_bytes, &target, &err) != CAMEO_OK && !target.failed)
        return cli_fail(&err);
    if (!upstream && target.last != '\n')
        fputc('\n', file);
    return CLI_YES;
}

static int print_model(const struct cameo_model *model)
{
    struct cli_output output;
    struct stat facts;
    int code;

    if (!out_path) {
        code = print_to(stdout, isatty(STDOUT_FILENO), model);
        return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
    }
    if (cli_may_write("print: -o", out_path) != CLI_YES)
        return CLI_USAGE;
    const bool device = stat(out_path, &facts) == 0 && S_ISCHR(facts.st_mode);
    code = cli_output_begin(&output, out_path);
    if (code != CLI_YES)
        return code;
    return cli_output_end(&output, print_to(output.to, device, model));
}

static bool has_ending(const char *name, const char *ending)
{
    const size_t size = strlen(name), tail = strlen(ending);

    return size > tail && strcmp(name + size - tail, ending) == 0;
}

/* The form that was asked for, or that the name of the file to write has. */
static int choose_form(void)
{
    format = out_path && has_ending(out_path, ".mlir") ? CAMEO_FORMAT_MLIR : CAMEO_FORMAT_TEXT;
    for (size_t i = 0; form_name && i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(form_name, forms[i].name) != 0)
            continue;
        format = forms[i].format;
        form_name = NULL;
    }
    if (form_name) {
        cli_complain("print: --form is '%s', expected 'text', 'mlir' or 'mlir-generic'", form_name);
        return CLI_USAGE;
    }
    if (upstream && format != CAMEO_FORMAT_TEXT) {
        cli_complain("print: --upstream is for the text form of ONNX, not for MLIR");
        return CLI_USAGE;
    }
    return CLI_YES;
}

static int print_main(char **operands, int count)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (choose_form() != CLI_YES)
        return CLI_USAGE;
    if (out_path && cli_same_file(operands[0], out_path)) {
        cli_complain("print: %s is the model itself; 'cameo copy' can write over it", out_path);
        return CLI_USAGE;
    }
    if (out_path && has_ending(out_path, ".onnx")) {
        cli_complain("print: %s would be taken for a binary model; call the text %.*s.onnxtxt, or "
                     "use 'cameo copy'",
                     out_path, (int)(strlen(out_path) - strlen(".onnx")), out_path);
        return CLI_USAGE;
    }
    load.allow_links = allow_links;
    if (cli_load_model(operands[0], &load, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    const int code = print_model(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--elide", NULL, "N", "shorten tensors of more than N elements; for reading only", CLI_SIZE,
     &elide},
    {"--form", NULL, "FORM", "text, mlir or mlir-generic (text; mlir if FILE ends in .mlir)",
     CLI_TEXT, &form_name},
    {"--upstream", NULL, NULL, "only what ONNX's own parser reads; the rest is left out", CLI_FLAG,
     &upstream},
    {"--output", "-o", "FILE", "write to FILE instead of standard output", CLI_TEXT, &out_path},
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(
    print, print_main, "[--form FORM] [--elide N] [--upstream] [-o FILE] MODEL",
    "print a model as text",
    "Prints the ONNX text form of the model. Without options nothing is left out, training\n"
    "info included, and every command reads the text back when its name ends in .onnxtxt.\n"
    "The form mlir is the ONNX dialect of MLIR, as ONNX-MLIR writes it, and is read back from\n"
    "names that end in .mlir; mlir-generic is for tools that do not know the dialect.",
    "cameo print --elide 8 net.onnx # to look at\n"
    "cameo print --form mlir --elide 8 net.onnx # as a module of MLIR\n"
    "cameo print net.onnx -o net.onnxtxt # to edit and to compare\n"
    "cameo copy net.onnxtxt -o net.onnx # and back",
    "0 if it was printed, 1 if the model is broken or has what text cannot hold", options, 1, 1);
