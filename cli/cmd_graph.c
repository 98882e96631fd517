/* cameo graph: a picture of a model. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

static const char *out_path;
static struct cli_texts folds;

static const struct {
    const char *ending;
    enum cameo_drawing_format format;
} formats[] = {
    {".svg", CAMEO_DRAWING_SVG}, {".html", CAMEO_DRAWING_HTML}, {".dot", CAMEO_DRAWING_DOT}};

static bool find_format(const char *path, enum cameo_drawing_format *out)
{
    const size_t size = strlen(path);

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t ending = strlen(formats[i].ending);
        if (size > ending && strcmp(path + size - ending, formats[i].ending) == 0) {
            *out = formats[i].format;
            return true;
        }
    }
    return false;
}

static int put(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) != size;
}

static int draw(const struct cameo_model *model, enum cameo_drawing_format format)
{
    struct cameo_drawing_options options = CAMEO_DRAWING_OPTIONS_INIT;
    struct cameo_drawing_report report = CAMEO_DRAWING_REPORT_INIT;
    struct cli_output output;
    struct cameo_error err;

    options.format = format;
    options.folds = folds.items;
    options.fold_count = folds.count;
    int code = cli_output_begin(&output, out_path);
    if (code != CLI_YES)
        return code;
    const enum cameo_status status =
        cameo_model_draw(model, &options, put, output.to, &report, &err);
    if (status != CAMEO_OK && status != CAMEO_IO) /* that is said by cli_output_end */
        code = cli_fail(&err);
    code = cli_output_end(&output, code);
    if (code == CLI_YES) {
        fputs("wrote ", stderr);
        cli_put_text(stderr, out_path, strlen(out_path));
        fprintf(stderr, ": %zu boxes for %zu nodes\n", report.boxes,
                cameo_model_summary(model)->node_count);
    }
    return code;
}

static int graph_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;
    enum cameo_drawing_format format;

    (void)count;
    if (!out_path || !find_format(out_path, &format)) {
        cli_complain("graph: say where to with -o FILE.svg, FILE.html or FILE.dot");
        return CLI_USAGE;
    }
    int code = cli_check_writable(out_path);
    if (code != CLI_YES)
        return code;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    code = cli_may_write("graph: -o", out_path);
    cameo_model_infer(model, NULL, NULL, NULL); /* where it fails, there are fewer shapes */
    if (code == CLI_YES)
        code = draw(model, format);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--fold", NULL, "WHAT", "one box for names that begin so; auto, functions, none (auto)",
     CLI_TEXTS, &folds},
    {"--output", "-o", "FILE", "the file to write: .svg, .html or .dot", CLI_TEXT, &out_path},
    {0},
};

CLI_COMMAND(graph, graph_main, "MODEL -o FILE.svg|.html|.dot [--fold WHAT]", "draw a model",
            "Draws the nodes in the order in which values flow, coloured by kind, with shapes of\n"
            "values and weights; training info is a part of its own. Calls of functions are one\n"
            "box. In models of more than 150 nodes, nodes whose names begin alike are one box too\n"
            "(auto); in the page, a click on it shows what is inside. The page needs no other\n"
            "files.",
            "cameo graph net.onnx -o net.svg # a picture\n"
            "cameo graph bert.onnx -o bert.html # layers that open\n"
            "cameo graph net.onnx -o net.svg --fold /layer1 --fold /layer2 # parts of one's own",
            "0 if it was drawn, 1 if it is not an ONNX model", options, 1, 1);
