/* cameo rename: other names for values, nodes and dimensions. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path;

/* [node:|dim:]OLD=NEW; text is cut up. */
static bool parse(char *text, struct cameo_renaming *out)
{
    static const struct {
        const char *mark;
        enum cameo_renaming_kind kind;
    } kinds[] = {
        {"node:", CAMEO_RENAME_NODE}, {"dim:", CAMEO_RENAME_DIM}, {"value:", CAMEO_RENAME_VALUE}};
    char *equals = strchr(text, '=');

    *out = (struct cameo_renaming)CAMEO_RENAMING_INIT;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(text, kinds[i].mark, strlen(kinds[i].mark)) == 0) {
            out->kind = kinds[i].kind;
            text += strlen(kinds[i].mark);
            break;
        }
    if (!equals || equals <= text)
        return false;
    *equals = 0;
    out->from = text;
    out->to = equals + 1;
    return true;
}

static int rename_main(char **operands, int count)
{
    const struct cameo_edit *report = NULL;
    struct cameo_renaming *renamings = cli_alloc((size_t)count, sizeof *renamings);
    struct cameo_model *model;
    struct cameo_error err;

    for (int i = 1; i < count; i++)
        if (!parse(operands[i], &renamings[i - 1])) {
            cli_complain("rename: '%s' is not OLD=NEW", operands[i]);
            free(renamings);
            return CLI_USAGE;
        }
    int code = cli_edit_begin("rename", operands[0], out_path, &model);
    if (code == CLI_YES) {
        const enum cameo_status status =
            cameo_model_rename(model, renamings, (size_t)count - 1, &report, &err);
        code = cli_edit_end("rename", model, status, report, &err, out_path);
        cameo_model_free(model);
    }
    free(renamings);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {0},
};

CLI_COMMAND(rename, rename_main, "MODEL OLD=NEW.. -o FILE", "rename values, nodes or dimensions",
            "Renames values (inputs, outputs, initializers and what is between), nodes where OLD\n"
            "is node:NAME, dimensions where it is dim:NAME. Every place is changed: graphs inside\n"
            "nodes, value_info, annotations, training info with its bindings, and what Gradient\n"
            "nodes name. A * in OLD stands for any text and in NEW for the same text; of several\n"
            "that fit, the first counts. Two things that would get one name are refused.",
            "cameo rename net.onnx input.1=image 495=scores -o net.onnx # names people can read\n"
            "cameo rename net.onnx dim:batch_size=N -o named.onnx # a dimension\n"
            "cameo rename net.onnx 'onnx::*=*' 'node:*=net/*' -o tidy.onnx # by pattern",
            "0 if it was written, 1 if a name is not there or taken", options, 2, 4096);
