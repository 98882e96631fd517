/* cameo compile: a model as native code. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *out_path, *emit_text, *target, *cpu, *name, *weights_text;
static bool pure, train_step, initialize, as_is;

/* ---- options ---- */

struct word {
    const char *text;
    int value;
};

static const struct word emits[] = {
    {"onnx", CAMEO_EMIT_ONNX},
    {"core", CAMEO_EMIT_CORE},
    {"linalg", CAMEO_EMIT_LINALG},
    {"buffers", CAMEO_EMIT_BUFFERS},
    {"llvm", CAMEO_EMIT_LLVM},
    {"assembly", CAMEO_EMIT_ASSEMBLY},
    {"object", CAMEO_EMIT_OBJECT},
    {"library", CAMEO_EMIT_LIBRARY},
    {NULL, 0},
};
static const struct word places[] = {
    {"inside", CAMEO_WEIGHTS_INSIDE},
    {"beside", CAMEO_WEIGHTS_BESIDE},
    {"caller", CAMEO_WEIGHTS_CALLER},
    {NULL, 0},
};

static bool read_word(const char *option, const char *text, const struct word *words, int *out)
{
    char all[200] = "";
    size_t used = 0;

    for (size_t i = 0; text && words[i].text; i++) {
        if (strcmp(text, words[i].text) == 0) {
            *out = words[i].value;
            return true;
        }
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
                                 !i                  ? ""
                                 : words[i + 1].text ? ", "
                                                     : " or ",
                                 words[i].text);
    }
    if (text)
        cli_complain("compile: %s is %s, not '%s'", option, all, text);
    return !text;
}

static bool read_options(struct cameo_compile_options *options)
{
    int emit = CAMEO_EMIT_BY_NAME, place = CAMEO_WEIGHTS_INSIDE;

    if (!read_word("--emit", emit_text, emits, &emit) ||
        !read_word("--weights", weights_text, places, &place))
        return false;
    if (!out_path && (emit == CAMEO_EMIT_BY_NAME || emit >= CAMEO_EMIT_OBJECT)) {
        cli_complain("compile: no file to write was given, add -o FILE (.so, .o, .a or .wasm)");
        return false;
    }
    if (cli_as_json && !out_path) {
        cli_complain("compile: --json needs -o FILE, because the text goes to standard output");
        return false;
    }
    if (initialize && !train_step) {
        cli_complain("compile: --init is for --train-step");
        return false;
    }
    options->emit = (enum cameo_emit)emit;
    options->weights = (enum cameo_weight_place)place;
    options->path = out_path;
    if (target && !*target)
        target = NULL;
    options->target = target;
    options->cpu = cpu;
    options->name = name;
    options->pure = pure;
    options->train_step = train_step;
    options->initialize = initialize;
    return true;
}

/* ---- what it says ---- */

static int write_error; /* errno of a text that could not be printed */

static int write_text(void *to, const void *bytes, size_t size)
{
    errno = 0;
    if (fwrite(bytes, 1, size, to) == size)
        return 0;
    write_error = errno;
    return 1;
}

/* For whoever sits and waits: a script reads what comes at the end. */
static void tell(void *arg, const char *what)
{
    (void)arg;
    if (isatty(fileno(stderr)))
        fprintf(stderr, "%s ..\n", what);
}

/* What keeps a model from running at all is found elsewhere. */
static int fail(const struct cameo_model *model, const struct cameo_findings *findings,
                const struct cameo_error *err)
{
    if (ferror(stdout)) {
        errno = write_error;
        return cli_broken("standard output");
    }
    return findings || train_step ? cli_refuse(findings, err) : cli_fail_model(model, err);
}

static void put_size(const char *what, size_t bytes)
{
    char number[CLI_NUMBER_SIZE];

    fprintf(stderr, "  %-8s %s bytes", what, cli_number(number, bytes));
}

static void put_path(const char *before, const char *path)
{
    fputs(before, stderr);
    cli_put_text(stderr, path, strlen(path));
}

/* Is it one of those that come with every compiler, and not of the library of mathematics? */
static bool is_everywhere(struct cameo_text function)
{
    return strcmp(function.data, "memcpy") == 0 || strcmp(function.data, "memset") == 0 ||
           strcmp(function.data, "memmove") == 0 || strncmp(function.data, "__", 2) == 0;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t size = strlen(text), tail = strlen(ending);

    return size >= tail && strcmp(text + size - tail, ending) == 0;
}

static void put_linking(const struct cameo_compilation *report)
{
    bool math = false;

    for (size_t i = 0; i < report->need_count; i++)
        math = math || !is_everywhere(report->needs[i]);
    if (!ends_with(report->path, ".wasm")) {
        if (target)
            fprintf(stderr, "link it: clang-19 --target=%.100s main.c ", target);
        put_path(target ? "" : "link it: cc main.c ", report->path);
        fputs(math ? " -lm" : "", stderr);
        fputs(ends_with(report->path, ".so") ? " -Wl,-rpath,'$ORIGIN'\n" : "\n", stderr);
    }
    if (report->need_count) {
        fputs("it calls", stderr);
        for (size_t i = 0; i < report->need_count; i++) {
            fputs(i ? ", " : " ", stderr);
            cli_put_text(stderr, report->needs[i].data, report->needs[i].size);
        }
        fputc('\n', stderr);
    }
}

static void json_describe(const struct cameo_compilation *report)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "path", report->path);
    cli_json_string(&json, "header", report->header_path);
    cli_json_string(&json, "weights", report->weights_path);
    cli_json_string(&json, "prototype", report->prototype);
    cli_json_count(&json, "code_bytes", report->code_bytes);
    cli_json_count(&json, "weight_bytes", report->weight_bytes);
    cli_json_count(&json, "arena_bytes", report->arena_bytes);
    cli_json_bool(&json, "arena_is_fixed", report->arena_is_fixed);
    cli_json_count(&json, "state_bytes", report->state_bytes);
    cli_json_open(&json, "needs", '[');
    for (size_t i = 0; i < report->need_count; i++)
        cli_json_text(&json, NULL, report->needs[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static void describe(const struct cameo_compilation *report)
{
    put_path("wrote ", report->path);
    if (*report->header_path)
        put_path(", ", report->header_path);
    if (*report->weights_path)
        put_path(", ", report->weights_path);
    fputc('\n', stderr);
    if (report->emit < CAMEO_EMIT_OBJECT)
        return;
    put_size("code", report->code_bytes);
    fputc('\n', stderr);
    put_size("weights", report->weight_bytes);
    fputs(*report->weights_path ? ", in a file of their own\n"
          : weights_text && report->weight_bytes && strcmp(weights_text, "caller") == 0
              ? ", which the caller gives\n"
              : "\n",
          stderr);
    put_size("arena", report->arena_bytes);
    fputs(report->arena_is_fixed ? "\n" : " at least\n", stderr);
    if (report->state_bytes) {
        put_size("state", report->state_bytes);
        fputc('\n', stderr);
    }
    cli_put_lines(stderr, report->prototype, strlen(report->prototype));
    fputc('\n', stderr);
    put_linking(report);
}

/* ---- the command ---- */

/* Native code is shipped: it computes what the model of 'cameo strip' computes. The dialects keep
 * all of the model. */
static enum cameo_status turn_off_modes(struct cameo_model *model,
                                        const struct cameo_compile_options *options,
                                        struct cameo_error *err)
{
    const struct cameo_edit *report;

    if (as_is || options->train_step || options->emit == CAMEO_EMIT_ONNX ||
        options->emit == CAMEO_EMIT_CORE || cameo_model_summary(model)->training_count)
        return CAMEO_OK;
    const enum cameo_status status = cameo_model_strip_training(model, &report, err);
    for (size_t i = 0; !status && i < report->change_count; i++)
        cli_put_line(stderr, report->changes[i]);
    return status;
}

static int compile(const struct cameo_model *model, const char *path,
                   struct cameo_compile_options *options)
{
    struct cameo_compilation *report = NULL;
    struct cameo_findings *findings = NULL;
    struct cameo_error err;

    if (train_step && cameo_model_summary(model)->training_count == 0) {
        cli_complain("compile: %s carries no training; 'cameo prepare' adds one", path);
        return CLI_NO;
    }
    if (out_path) {
        options->tell = tell;
    } else {
        options->write = write_text;
        options->write_to = stdout;
    }
    cli_note_newer(model);
    options->cancel = cli_stop_on_signal();
    options->findings = &findings;
    const enum cameo_status status = cameo_model_compile(model, options, &report, &err);
    const int code = status ? fail(model, findings, &err) : CLI_YES;
    cameo_findings_free(findings);
    if (status)
        return code;
    if (report)
        (cli_as_json ? json_describe : describe)(report);
    cameo_compilation_free(report);
    return cli_flush(stdout, "standard output");
}

/* Is there a file that is not a header of ours? */
static bool is_foreign_header(const char *path)
{
    char line[400] = "";
    FILE *file = cli_or_absent(fopen(path, "r"));

    if (!file)
        return false;
    const bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    return !read || !strstr(line, "compiled by cameo");
}

/* Is text written, which has nothing beside it? */
static bool is_text(const struct cameo_compile_options *options)
{
    return options->emit == CAMEO_EMIT_BY_NAME
               ? ends_with(out_path, ".ll") || ends_with(out_path, ".s") ||
                     ends_with(out_path, ".mlir")
               : options->emit < CAMEO_EMIT_OBJECT;
}

/* What is written beside FILE must not take the place of what is read, or of others' headers. */
static int check_neighbours(const struct cameo_compile_options *options)
{
    const char *slash = out_path ? strrchr(out_path, '/') : NULL;
    const char *file = slash ? slash + 1 : out_path;
    const char *dot = file ? strrchr(file, '.') : NULL;
    char header[4096], weights[4096];

    if (!out_path || is_text(options))
        return CLI_YES;
    const int size = dot && dot != file ? (int)(dot - out_path) : (int)strlen(out_path);
    snprintf(header, sizeof header, "%.*s.h", size, out_path);
    snprintf(weights, sizeof weights, "%.*s.weights", size, out_path);
    int code = cli_may_write("compile: the header", header);
    if (code == CLI_YES && options->weights == CAMEO_WEIGHTS_BESIDE)
        code = cli_may_write("compile: the weights", weights);
    if (code == CLI_YES && is_foreign_header(header)) {
        cli_complain("compile: %s is there and was not written by cameo compile; its header goes "
                     "by that name: choose another name for -o",
                     header);
        return CLI_USAGE;
    }
    return code;
}

static int compile_main(char **operands, int count)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;
    int code;

    (void)count;
    if (!read_options(&options))
        return CLI_USAGE;
    code = cli_check_writable(out_path);
    if (code != CLI_YES)
        return code;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    code = cli_may_write("compile: -o", out_path);
    if (code == CLI_YES)
        code = check_neighbours(&options);
    if (code == CLI_YES && turn_off_modes(model, &options, &err) != CAMEO_OK)
        code = cli_fail(&err);
    if (code == CLI_YES)
        code = compile(model, operands[0], &options);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write: .so, .o, .a, .wasm, .ll, .s, .mlir", CLI_TEXT,
     &out_path},
    {"--emit", NULL, "STAGE", "onnx, core, linalg, buffers, llvm, assembly, object or library",
     CLI_TEXT, &emit_text},
    {"--target", NULL, "TRIPLE", "the machine it is for, as LLVM spells it (this one)", CLI_TEXT,
     &target},
    {"--cpu", NULL, "NAME", "its processor; native is this one (the least of its kind)", CLI_TEXT,
     &cpu},
    {"--name", NULL, "ID", "what the C functions are called (after the model's file)", CLI_TEXT,
     &name},
    {"--weights", NULL, "WHERE", "inside the file, beside it, or the caller's (inside)", CLI_TEXT,
     &weights_text},
    {"--pure", NULL, NULL, "generated code only, without our kernels", CLI_FLAG, &pure},
    {"--json", NULL, NULL, "what was written as JSON, or all that cannot be compiled", CLI_FLAG,
     &cli_as_json},
    CLI_SARIF_OPTION,
    {"--train-step", NULL, NULL, "the training step of a model that carries its training", CLI_FLAG,
     &train_step},
    {"--init", NULL, NULL, "its state begins as the training's initialization says", CLI_FLAG,
     &initialize},
    {"--as-is", NULL, NULL, "leave nodes in training mode as they are", CLI_FLAG, &as_is},
    {0},
};

CLI_COMMAND(
    compile, compile_main, "MODEL [-o FILE] [--emit STAGE] [--target TRIPLE]",
    "compile a model to native code",
    "Writes the model as native code with one C function, for any program to call: it needs\n"
    "no runtime, works in memory that the caller gives, and uses nothing but memcpy, memset\n"
    "and math.h. A header beside it says how it is called. The ending of FILE says what is\n"
    "written; --emit stops at a stage before, which without -o is printed. It needs Cameo's\n"
    "module for MLIR and clang, and for libraries lld, all of LLVM 19.",
    "cameo compile net.onnx -o net.so --cpu native # a library, for this machine\n"
    "cameo run net.so --input x=x.npy # runs it\n"
    "cameo compile net.onnx -o net.o --target aarch64-linux-gnu # for another machine\n"
    "cameo compile net.onnx -o net.wasm --target wasm32 # for a browser\n"
    "cameo compile net.onnx --emit linalg # the stage in between, as text\n"
    "cameo compile trainable.onnx -o net.a --train-step # one step of its training",
    "0 if it was written, 1 if a part of the model cannot be compiled or a tool is missing",
    options, 1, 1);
