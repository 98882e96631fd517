/* cameo copy: the same model saved again. */
// SPDX-License-Identifier: Apache-2.0
#include "saved_files.h"

#include <string.h>

static const char *out_path;
static bool per_tensor, allow_links;
static size_t threshold = SIZE_MAX, alignment; /* SIZE_MAX: not given */

static bool same_bytes(const char *a, const char *b)
{
    static char first[1 << 16], second[1 << 16];
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    bool same = x && y;

    while (same) {
        const size_t got = fread(first, 1, sizeof first, x);

        same = fread(second, 1, sizeof second, y) == got && memcmp(first, second, got) == 0 &&
               !ferror(x) && !ferror(y);
        if (got < sizeof first)
            break;
    }
    if (x)
        fclose(x);
    if (y)
        fclose(y);
    return same;
}

/* Says on stderr what was done; stdout stays empty, as the result is the file. */
static void report_save(const struct cli_saved *saved, const char *same_as)
{
    fputs("wrote ", stderr);
    cli_put_text(stderr, out_path, strlen(out_path));
    fputs(": ", stderr);
    cli_saved_put_size(stderr, saved);
    if (same_as) {
        fputs(", the same bytes as ", stderr);
        cli_put_text(stderr, same_as, strlen(same_as));
    }
    fputc('\n', stderr);
    cli_saved_put_files(stderr, saved);
}

static int check_options(void)
{
    if (!out_path)
        cli_complain("copy: no file to write was given, add -o FILE");
    else if (strcmp(out_path, "-") == 0)
        cli_complain("copy: a model is written to a file, not to standard output; ./- is a file of "
                     "that name");
    else if (!cli_placement.external && (per_tensor || threshold != SIZE_MAX || alignment))
        cli_complain("copy: %s goes with --external FILE", per_tensor              ? "--per-tensor"
                                                           : threshold != SIZE_MAX ? "--threshold"
                                                                                   : "--align");
    else
        return cli_placement_check("copy");
    return CLI_USAGE;
}

static int copy_model(const char *from, const struct cameo_model *model)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cli_saved saved;
    struct cameo_error err;
    const bool onto_itself = cli_same_file(from, out_path);

    const int code = cli_may_save("copy: -o", out_path);
    if (code != CLI_YES)
        return code;
    cli_saved_begin(&saved, out_path, &options);
    options.one_file_per_tensor = per_tensor;
    if (threshold != SIZE_MAX)
        options.threshold = threshold ? threshold : 1; /* 0 would be the default */
    options.alignment = alignment;
    options.cancel = cli_stop_on_signal();
    if (cameo_model_save(model, out_path, &options, &saved.report, &err) != CAMEO_OK) {
        cli_saved_free(&saved);
        return cli_fail(&err);
    }
    report_save(&saved, !onto_itself && same_bytes(from, out_path) ? from : NULL);
    cli_saved_free(&saved);
    return CLI_YES;
}

static int copy_main(char **operands, int count)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (check_options() != CLI_YES)
        return CLI_USAGE;
    load.allow_links = allow_links;
    if (cli_load_model(operands[0], &load, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    const int code = copy_model(operands[0], model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write; text if it ends in .onnxtxt or .mlir", CLI_TEXT,
     &out_path},
    CLI_PLACEMENT_OPTIONS,
    {"--per-tensor", NULL, NULL, "with --external: a file for each tensor", CLI_FLAG, &per_tensor},
    {"--threshold", NULL, "N", "with --external: smaller tensors stay inside (1024 bytes)",
     CLI_SIZE, &threshold},
    {"--align", NULL, "N", "with --external: where tensors begin (multiples of 4096)", CLI_SIZE,
     &alignment},
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(
    copy, copy_main, "MODEL -o FILE [--external FILE | --inline]", "save a model again",
    "Reads the model and writes it to another file, in binary or text form. Unless asked to\n"
    "move tensors in or out, the bytes stay as they are. FILE comes into being whole or not\n"
    "at all, and may be MODEL itself.",
    "cameo copy net.onnx -o same.onnx # byte for byte\n"
    "cameo copy net.onnx -o small.onnx --external small.data # weights apart\n"
    "cameo copy small.onnx -o whole.onnx --inline # and together again",
    "0 if it was written, 1 if the model is broken", options, 1, 1);
