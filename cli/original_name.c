/* What the framework calls an initializer. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

static const char *prefix_of(struct cameo_text folding)
{
    static const struct {
        const char *folding, *prefix;
    } prefixes[] = {{"transposed", "transposed "},  {"unsqueezed", "unsqueezed "},
                    {"gates", "gates of "},         {"rows", "rows of "},
                    {"computed", "computed from "}, {"module", "in "}};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strcmp(folding.data, prefixes[i].folding) == 0)
            return prefixes[i].prefix;
    return "";
}

size_t cli_original_width(struct cameo_text original, struct cameo_text folding)
{
    return original.size ? strlen(prefix_of(folding)) + cli_text_width(original) : 0;
}

void cli_put_original(FILE *to, struct cameo_text original, struct cameo_text folding, size_t width)
{
    const char *prefix = original.size ? prefix_of(folding) : "";
    const size_t used = strlen(prefix);

    fputs(prefix, to);
    cli_put_padded(to, original, used < width ? width - used : 0);
}

void cli_json_original(struct cli_json *json, struct cameo_text original, struct cameo_text folding)
{
    if (!original.size)
        return;
    cli_json_text(json, "original", original);
    if (folding.size)
        cli_json_text(json, "folding", folding);
}
