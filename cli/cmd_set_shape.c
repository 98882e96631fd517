/* cameo set-shape: other shapes of inputs. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path;

/* The first '=' after which no other input's or dimension's name could end is as good as any: names
 * with '=' are rare, dims have none, so the last one parts them. */
static bool parse(char *text, struct cameo_reshaping *out)
{
    char *equals = strrchr(text, '=');

    *out = (struct cameo_reshaping)CAMEO_RESHAPING_INIT;
    if (!equals || equals == text)
        return false;
    *equals = 0;
    out->name = text;
    out->dims = equals + 1;
    return true;
}

/* What the shapes are now, for the eye. */
static void show(const struct cameo_model *model)
{
    const struct cameo_value_info *value;

    for (int side = 0; side < 2; side++)
        for (size_t i = 0;
             (value = side ? cameo_model_output(model, i) : cameo_model_input(model, i)) != NULL;
             i++) {
            if (value->has_default)
                continue;
            printf("%-6s ", side ? "output" : "input");
            cli_put_padded(stdout, value->name, 20);
            putchar(' ');
            cli_put_line(stdout, value->type);
        }
}

static int set_shape_main(char **operands, int count)
{
    const struct cameo_edit *report = NULL;
    struct cameo_reshaping *shapes = cli_alloc((size_t)count, sizeof *shapes);
    struct cameo_model *model;
    struct cameo_error err;

    for (int i = 1; i < count; i++)
        if (!parse(operands[i], &shapes[i - 1])) {
            cli_complain("set-shape: '%s' is neither INPUT=DIMS nor DIMENSION=SIZE", operands[i]);
            free(shapes);
            return CLI_USAGE;
        }
    int code = cli_edit_begin("set-shape", operands[0], out_path, &model);
    if (code == CLI_YES) {
        const enum cameo_status status =
            cameo_model_set_shapes(model, shapes, (size_t)count - 1, &report, &err);
        code = cli_edit_end("set-shape", model, status, report, &err, out_path);
        if (code == CLI_YES)
            show(model);
        cameo_model_free(model);
    }
    free(shapes);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {0},
};

CLI_COMMAND_AS(
    set_shape, "set-shape", set_shape_main, "MODEL INPUT=DIMS.. -o FILE",
    "fix or free the shapes of inputs",
    "Changes the shapes of inputs: numbers fix dimensions, names and ? free them. A name\n"
    "that is a dimension's and no input's is replaced wherever it stands. Outputs and\n"
    "value_info that depend on the change are inferred again, and dropped where that\n"
    "cannot be. Nodes that the new shapes do not fit are listed, and nothing is written\n"
    "then.",
    "cameo set-shape net.onnx image=1,3,224,224 -o fixed.onnx # a runtime wants sizes\n"
    "cameo set-shape net.onnx image=N,3,H,W -o open.onnx # any batch, any image\n"
    "cameo set-shape net.onnx batch_size=8 -o eight.onnx # one dimension, everywhere",
    "0 if it was written, 1 if the shapes do not fit the model", options, 2, 4096);
