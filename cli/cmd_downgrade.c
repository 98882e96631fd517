/* cameo downgrade: a model under older opset versions. */
// SPDX-License-Identifier: Apache-2.0
#include "convert_opsets.h"

static struct cli_conversion how = {.command = "downgrade"};

static int downgrade_main(char **operands, int count)
{
    (void)count;
    if (!how.opsets.count) {
        cli_complain("downgrade: no version was given, add --opset N");
        return CLI_USAGE;
    }
    return cli_convert(&how, operands[0]);
}

static const struct cli_option options[] = {
    CLI_CONVERT_OPTIONS(how),
    {0},
};

CLI_COMMAND(
    downgrade, downgrade_main, "MODEL --opset N -o FILE", "write the model under an older opset",
    "Nodes that mean the same under the older version stay as they are; others become that\n"
    "version's form, or the nodes of their function body. Everything that the older version\n"
    "cannot express is listed, and then nothing is written. docs/converting.md has more.",
    "cameo downgrade new.onnx --opset 13 -o old.onnx # for a runtime that knows opset 13\n"
    "cameo downgrade new.onnx --opset 11 --opset ai.onnx.ml=1 -o old.onnx",
    "0 if it was written, 1 if the model is broken or a node cannot be expressed", options, 1, 1);
