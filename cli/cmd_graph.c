/* cameo graph: a picture of a model. */
// SPDX-License-Identifier: Apache-2.0
#include "drawing.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path;
static struct cli_texts folds;

void *graph_memory(size_t count, size_t size)
{
    return cli_alloc(count, size);
}

void *graph_grow(void *items, size_t count, size_t *room, size_t size)
{
    return cli_grow(items, count, room, size);
}

typedef void write_fn(FILE *to, const struct graph_drawing *drawing);

static write_fn *writer_of(const char *path)
{
    static const struct {
        const char *ending;
        write_fn *write;
    } formats[] = {
        {".svg", graph_write_svg}, {".html", graph_write_html}, {".dot", graph_write_dot}};
    const size_t size = strlen(path);

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t ending = strlen(formats[i].ending);
        if (size > ending && strcmp(path + size - ending, formats[i].ending) == 0)
            return formats[i].write;
    }
    return NULL;
}

static int draw(const struct cameo_model *model, write_fn *write)
{
    struct graph_drawing drawing = {.model = model, .with_inner = write == graph_write_html};
    struct cli_output output;
    size_t drawn = 0;

    graph_build(&drawing, &folds);
    int code = cli_output_begin(&output, out_path);
    if (code == CLI_YES) {
        write(output.to, &drawing);
        code = cli_output_end(&output, CLI_YES);
    }
    for (size_t p = 0; p < drawing.panel_count; p++) {
        if (p < drawing.shown)
            drawn += drawing.panels[p].vertex_count;
        free(drawing.panels[p].vertices);
        free(drawing.panels[p].edges);
        free(drawing.panels[p].bends);
    }
    if (code == CLI_YES) {
        fputs("wrote ", stderr);
        cli_put_text(stderr, out_path, strlen(out_path));
        fprintf(stderr, ": %zu boxes for %zu nodes\n", drawn,
                cameo_model_summary(model)->node_count);
    }
    free(drawing.panels);
    free(drawing.names);
    return code;
}

static int graph_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (!out_path || !writer_of(out_path)) {
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
        code = draw(model, writer_of(out_path));
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
