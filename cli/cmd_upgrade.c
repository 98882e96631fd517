/* cameo upgrade: a model under newer opset versions. */
// SPDX-License-Identifier: Apache-2.0
#include "convert_opsets.h"

static struct cli_conversion how = {.command = "upgrade"};

static int upgrade_main(char **operands, int count)
{
    (void)count;
    return cli_convert(&how, operands[0]);
}

static const struct cli_option options[] = {
    CLI_CONVERT_OPTIONS(how),
    {0},
};

CLI_COMMAND(
    upgrade, upgrade_main, "MODEL -o FILE [--opset N]", "write the model under a newer opset",
    "Nodes that mean the same under the newer version stay as they are; others become that\n"
    "version's form, in graphs, functions and training info alike. Without --opset every\n"
    "domain that ONNX defines goes to the newest version known. docs/converting.md has more.",
    "cameo upgrade old.onnx -o new.onnx # to the newest opset\n"
    "cameo upgrade old.onnx -o new.onnx --opset 18 --opset ai.onnx.ml=3",
    "0 if it was written, 1 if the model is broken or a node cannot be expressed", options, 1, 1);
