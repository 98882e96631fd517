/* cameo grad: a model that computes derivatives. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

static const char *out_path, *of, *operator_name, *domain;
static struct cli_texts wrt;
static bool portable;
static size_t opset;

static int differentiate(const struct cameo_model *model)
{
    struct cameo_model *made = NULL;
    struct cameo_error err;
    struct cli_names names;
    int code;

    cli_names_split(&wrt, &names);
    if (cameo_model_gradient(model, of, names.items, names.count, portable, &made, &err) !=
        CAMEO_OK)
        code = cli_fail_model(model, &err);
    else
        code = cli_save(made, out_path);
    cameo_model_free(made);
    cli_names_free(&names);
    return code;
}

static int put_text(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) != size;
}

static int describe(int count)
{
    struct cameo_error err;

    if (count || of || wrt.count || out_path || portable) {
        cli_complain("grad: --operator is about an operator, so no model, --of, --wrt or -o goes "
                     "with it");
        return CLI_USAGE;
    }
    const enum cameo_status status = cameo_operator_gradient(
        domain, operator_name, opset > INT32_MAX ? INT32_MAX : (int64_t)opset, put_text, stdout,
        &err);
    if (status == CAMEO_IO)
        return cli_broken("standard output");
    return status == CAMEO_OK ? cli_flush(stdout, "standard output") : cli_fail(&err);
}

static int grad_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    if (operator_name)
        return describe(count);
    if (domain || opset) {
        cli_complain("grad: --domain and --opset go with --operator");
        return CLI_USAGE;
    }
    if (!count) {
        cli_complain("grad: no MODEL was given, 'cameo grad --help' shows how");
        return CLI_USAGE;
    }
    if (!out_path || !of || !wrt.count) {
        cli_complain("grad: say what, by what, and where to: --of NAME --wrt NAME -o FILE");
        return CLI_USAGE;
    }
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    const int code = differentiate(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--of", NULL, "NAME", "the value that is differentiated, all its elements summed", CLI_TEXT,
     &of},
    {"--wrt", NULL, "NAME,..", "by these: inputs, initializers, values in between", CLI_TEXTS,
     &wrt},
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--portable", NULL, NULL, "standard operators only; random masks are fed", CLI_FLAG,
     &portable},
    {"--operator", NULL, "NAME", "instead: show how operator NAME is differentiated", CLI_TEXT,
     &operator_name},
    {"--domain", NULL, "D", "the domain of that operator", CLI_TEXT, &domain},
    {"--opset", NULL, "N", "the opset of that operator", CLI_COUNT, &opset},
    {0},
};

CLI_COMMAND(grad, grad_main, "MODEL --of NAME --wrt NAME[,NAME] -o FILE",
            "write a model that computes derivatives",
            "Writes the model with further outputs, gradient.NAME for each NAME of --wrt. An\n"
            "initializer among them may be fed then; its value is the default. With --operator,\n"
            "prints the formula, the choices at kinks and the nodes that one operator adds.",
            "cameo grad net.onnx --of loss --wrt x -o grad.onnx # how the input moves the loss\n"
            "cameo grad --operator Relu # its derivative, and what is chosen at 0",
            "0 if it was written, 1 if a derivative is not known", options, 0, 1);
