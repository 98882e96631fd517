/* cameo extract: the part of a model between some values and others. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

static const char *out_path;
static struct cli_texts input_texts, output_texts;

static int extract_main(char **operands, int count)
{
    const struct cameo_edit *report = NULL;
    struct cameo_model *model;
    struct cli_names inputs, outputs;
    struct cameo_error err;

    (void)count;
    if (!input_texts.count && !output_texts.count) {
        cli_complain("extract: say which part: --inputs NAME,.. or --outputs NAME,.. or both");
        return CLI_USAGE;
    }
    int code = cli_edit_begin("extract", operands[0], out_path, &model);
    if (code != CLI_YES)
        return code;
    cli_names_split(&input_texts, &inputs);
    cli_names_split(&output_texts, &outputs);
    const enum cameo_status status = cameo_model_extract(
        model, inputs.items, inputs.count, outputs.items, outputs.count, &report, &err);
    code = cli_edit_end("extract", model, status, report, &err, out_path);
    cli_names_free(&inputs);
    cli_names_free(&outputs);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--inputs", "-i", "NAME,..", "values the part begins with (the inputs it needs)", CLI_TEXTS,
     &input_texts},
    {"--outputs", NULL, "NAME,..", "values the part ends with (the outputs of the model)",
     CLI_TEXTS, &output_texts},
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {0},
};

CLI_COMMAND(extract, extract_main, "MODEL [--inputs NAME,..] [--outputs NAME,..] -o FILE",
            "write a part of a model",
            "Writes the nodes that lead from the inputs to the outputs, which may be any values\n"
            "of the graph, with the initializers, types and functions that they use. Types that\n"
            "the file does not say are inferred. Entries of training info that read nothing but\n"
            "what is left stay; others are dropped, and that is told.",
            "cameo extract net.onnx --outputs features -o head.onnx # up to a value\n"
            "cameo extract net.onnx --inputs features -o tail.onnx # from a value on\n"
            "cameo extract net.onnx --inputs a,b --outputs c -o part.onnx # what is between",
            "0 if it was written, 1 if there is no such part", options, 1, 1);
