/* What upgrade and downgrade share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_CONVERT_OPSETS_H
#define CLI_CONVERT_OPSETS_H

#include "cli.h"

struct cli_conversion {
    const char *command; /* "upgrade" or "downgrade" */
    const char *out_path;
    const struct cli_texts *opsets; /* "18", "ai.onnx.ml=3" */
    bool json;
};

int cli_convert(const struct cli_conversion *how, const char *path);

#endif
