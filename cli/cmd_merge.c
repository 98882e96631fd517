/* cameo merge: two models as one. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path, *prefix1, *prefix2;
static struct cli_texts map_texts, output_texts;

/* OUT:IN; where a name holds ':' itself, the first split whose halves are an output and an input.
 */
static bool split_pair(const struct cameo_model *a, const struct cameo_model *b, char *text,
                       struct cameo_merge_pair *pair)
{
    char *fallback = strchr(text, ':');

    for (char *at = fallback; at; at = strchr(at + 1, ':')) {
        bool output = false, input = false;
        const struct cameo_value_info *value;

        for (size_t i = 0; (value = cameo_model_output(a, i)) != NULL; i++)
            output = output || (value->name.size == (size_t)(at - text) &&
                                memcmp(value->name.data, text, value->name.size) == 0);
        for (size_t i = 0; (value = cameo_model_input(b, i)) != NULL; i++)
            input = input || strcmp(value->name.data, at + 1) == 0;
        if (output && input) {
            fallback = at;
            break;
        }
    }
    if (!fallback || fallback == text || !fallback[1])
        return false;
    *fallback = 0;
    pair->output = text;
    pair->input = fallback + 1;
    return true;
}

/* Without --map, outputs and inputs of the same name belong together. */
static size_t same_names(const struct cameo_model *a, const struct cameo_model *b,
                         struct cameo_merge_pair *pairs)
{
    const struct cameo_value_info *output, *input;
    size_t count = 0;

    for (size_t i = 0; (input = cameo_model_input(b, i)) != NULL; i++)
        for (size_t o = 0; (output = cameo_model_output(a, o)) != NULL; o++)
            if (strcmp(output->name.data, input->name.data) == 0) {
                if (pairs) {
                    pairs[count] = (struct cameo_merge_pair)CAMEO_MERGE_PAIR_INIT;
                    pairs[count].output = output->name.data;
                    pairs[count].input = input->name.data;
                }
                count++;
                break;
            }
    return count;
}

/* Leaves the outputs that are asked for. */
static int keep_outputs(struct cameo_model *model, const struct cameo_edit *merged)
{
    const struct cameo_edit *report = NULL;
    struct cli_names names;
    struct cameo_error err;

    if (!output_texts.count)
        return cli_edit_end("merge", model, CAMEO_OK, merged, NULL, out_path);
    for (size_t i = 0; i < merged->change_count; i++)
        cli_put_line(stderr, merged->changes[i]);
    cli_names_split(&output_texts, &names);
    const enum cameo_status status =
        cameo_model_extract(model, NULL, 0, names.items, names.count, &report, &err);
    const int code = cli_edit_end("merge", model, status, report, &err, out_path);
    cli_names_free(&names);
    return code;
}

static int merge_models(struct cameo_model *a, struct cameo_model *b)
{
    struct cameo_merge_options options = CAMEO_MERGE_OPTIONS_INIT;
    const struct cameo_edit *report = NULL;
    struct cli_names texts;
    struct cameo_error err;
    int code = CLI_YES;

    cli_names_split(&map_texts, &texts);
    const size_t count = texts.count ? texts.count : same_names(a, b, NULL);
    struct cameo_merge_pair *pairs = cli_alloc(count, sizeof *pairs);
    if (!texts.count)
        same_names(a, b, pairs);
    for (size_t i = 0; i < texts.count && code == CLI_YES; i++) {
        pairs[i] = (struct cameo_merge_pair)CAMEO_MERGE_PAIR_INIT;
        if (!split_pair(a, b, (char *)(uintptr_t)texts.items[i], &pairs[i])) {
            cli_complain("merge: --map needs OUTPUT:INPUT, not '%s'", texts.items[i]);
            code = CLI_USAGE;
        }
    }
    if (code == CLI_YES && !count) {
        cli_complain("merge: no output of the first model is called like an input of the second: "
                     "connect them with --map OUTPUT:INPUT");
        code = CLI_USAGE;
    }
    options.pairs = pairs;
    options.pair_count = count;
    options.prefix1 = prefix1;
    options.prefix2 = prefix2;
    if (code == CLI_YES) {
        const enum cameo_status status = cameo_model_merge(a, b, &options, &report, &err);
        code = status == CAMEO_OK ? keep_outputs(a, report)
                                  : cli_edit_end("merge", a, status, report, &err, out_path);
    }
    free(pairs);
    cli_names_free(&texts);
    return code;
}

static int merge_main(char **operands, int count)
{
    struct cameo_model *a, *b;

    (void)count;
    int code = cli_edit_begin("merge", operands[0], out_path, &a);
    if (code != CLI_YES)
        return code;
    code = cli_edit_begin("merge", operands[1], out_path, &b);
    if (code == CLI_YES) {
        code = merge_models(a, b);
        cameo_model_free(a); /* before the one that it borrows from */
        cameo_model_free(b);
        return code;
    }
    cameo_model_free(a);
    return code;
}

static const struct cli_option options[] = {
    {"--map", "-m", "OUT:IN,..", "outputs of A that feed inputs of B (those of the same name)",
     CLI_TEXTS, &map_texts},
    {"--prefix1", NULL, "TEXT", "put before all names of A", CLI_TEXT, &prefix1},
    {"--prefix2", NULL, "TEXT", "put before all names of B", CLI_TEXT, &prefix2},
    {"--outputs", NULL, "NAME,..", "outputs of the result, and nothing that only others need",
     CLI_TEXTS, &output_texts},
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {0},
};

CLI_COMMAND(merge, merge_main, "A B [--map OUT:IN,..] -o FILE", "make one model of two",
            "Writes a model in which outputs of A feed inputs of B. Other inputs and outputs stay\n"
            "those of the whole. Functions, metadata and training info of both come along. Types\n"
            "that do not match, names in both models, and opsets that differ are listed, and\n"
            "nothing is written then; --prefix1 and --prefix2 part names that both have.",
            "cameo merge encoder.onnx decoder.onnx --map code:z -o net.onnx # z is what code is\n"
            "cameo merge a.onnx b.onnx --map y:x --prefix2 b/ -o net.onnx # b/ parts the names",
            "0 if it was written, 1 if the models do not fit together", options, 2, 2);
