/* What upgrade and downgrade share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_CONVERT_OPSETS_H
#define CLI_CONVERT_OPSETS_H

#include "saved_files.h"

struct cli_conversion {
    const char *command; /* "upgrade" or "downgrade" */
    const char *out_path;
    struct cli_texts opsets; /* "18", "ai.onnx.ml=3" */
    bool as_is;
};

/* The options of both, into how. */
#define CLI_CONVERT_OPTIONS(how)                                                                     \
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &(how).out_path},                      \
        CLI_PLACEMENT_OPTIONS,                                                                       \
        {"--opset",    NULL,                                                                         \
         "[DOMAIN=]N", "the version to go to; may be given for each domain",                         \
         CLI_TEXTS,    &(how).opsets},                                                               \
        {"--as-is", NULL, NULL, "leave nodes in training mode as they are", CLI_FLAG, &(how).as_is}, \
    {                                                                                                \
        "--json", NULL, NULL, "print JSON", CLI_FLAG, &cli_as_json                                   \
    }

int cli_convert(const struct cli_conversion *how, const char *path);

#endif
