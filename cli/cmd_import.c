/* cameo import: a checkpoint of another framework goes into a model. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"
#include "training_flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *out_path, *map_path, *set_path;
static bool weights_only, partial, list, allow_links;

enum { TEXT_MAX = 64 << 20 };

/* The whole of a text file; NULL after saying why not. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0, room = 0, got = 1;

    while (file && got && size < TEXT_MAX) {
        text = cli_grow(text, size + 1, &room, 1);
        got = fread(text + size, 1, room - size - 1, file);
        size += got;
    }
    if (!file || ferror(file))
        cli_complain("import: cannot read '%s': %s", path, strerror(errno));
    if (!file || ferror(file)) {
        free(text);
        text = NULL;
    }
    if (text)
        text[size] = 0;
    if (file)
        fclose(file);
    return text;
}

/* ---- what was done ---- */

static void print_json(const struct cameo_import_report *report, const struct cli_saved *saved)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "system", (struct cameo_text){report->system, strlen(report->system)});
    cli_json_text(&json, "format", (struct cameo_text){report->format, strlen(report->format)});
    cli_json_open(&json, "tensors", '[');
    for (size_t i = 0; i < report->match_count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "initializer", report->matches[i].initializer);
        cli_json_text(&json, "source", report->matches[i].source);
        cli_json_text(&json, "how", report->matches[i].how);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_open(&json, "notes", '[');
    for (size_t i = 0; i < report->note_count; i++)
        cli_json_text(&json, NULL, report->notes[i]);
    cli_json_close(&json, ']');
    cli_saved_json(&json, saved);
    cli_json_close(&json, '}');
}

static void print_table(const struct cameo_import_report *report)
{
    size_t left = 0, right = 0;

    for (size_t i = 0; i < report->match_count; i++) {
        const size_t a = cli_text_width(report->matches[i].initializer);
        const size_t b = cli_text_width(report->matches[i].source);

        left = a > left ? a : left;
        right = b > right && b < 80 ? b : right;
    }
    for (size_t i = 0; i < report->match_count; i++) {
        const struct cameo_import_match *match = &report->matches[i];

        cli_put_padded(stdout, match->initializer, left);
        fputs(match->initializer.size && match->source.size ? " = " : "   ", stdout);
        cli_put_padded(stdout, match->source, right + 2);
        cli_put_text(stdout, match->how.data, match->how.size);
        fputc('\n', stdout);
    }
}

static void show(const struct cameo_import_report *report)
{
    size_t matched = 0;

    if (list && !cli_as_json)
        print_table(report);
    for (size_t i = 0; i < report->match_count; i++)
        matched += report->matches[i].initializer.size && report->matches[i].source.size;
    if (report->match_count)
        fprintf(stderr, "%s, %s: %zu tensors of the model are in it\n", report->system,
                report->format, matched);
    for (size_t i = 0; i < report->note_count; i++) {
        cli_put_text(stderr, report->notes[i].data, report->notes[i].size);
        fputc('\n', stderr);
    }
}

static int refuse(const struct cameo_import_report *report, const struct cameo_error *err)
{
    const bool is_own =
        !report || !report->preparation || cameo_findings_violations(report->findings) > 0;

    return is_own ? cli_refuse(report ? report->findings : NULL, err)
                  : cli_training_refuse(report->preparation, true, err);
}

static int import(const char *model_path, const char *checkpoint,
                  const struct cameo_import_options *options)
{
    const struct cameo_import_report *report = NULL;
    struct cameo_model *model;
    struct cameo_error err;
    int code = CLI_YES;

    if (cli_load_model(model_path, NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    const enum cameo_status status = cameo_model_import(model, checkpoint, options, &report, &err);
    if (report)
        show(report);
    if (status != CAMEO_OK)
        code = refuse(report, &err);
    else if (report->preparation)
        cli_training_tell(report->preparation);
    struct cli_saved saved = {0};
    if (code == CLI_YES && out_path)
        code = cli_save_files(model, out_path, &saved);
    if (cli_as_json && code == CLI_YES)
        print_json(report, &saved);
    cli_saved_free(&saved);
    cameo_model_free(model);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}

static int import_main(char **operands, int count)
{
    struct cameo_prepare_options prepare = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_import_options options = CAMEO_IMPORT_OPTIONS_INIT;
    const struct cli_training_flags *f = &cli_training;
    int code = cli_training_read("import", &prepare);
    char *map = NULL, *set = NULL;

    (void)count;
    if (!out_path && !list && !cli_as_json) {
        cli_complain("import: no file to write was given, add -o FILE, or --list");
        code = CLI_USAGE;
    }
    if (!weights_only && !prepare.loss) {
        cli_complain("import: no checkpoint knows its loss, say it with --loss; or --weights-only");
        code = CLI_USAGE;
    }
    if (prepare.train || prepare.freeze) {
        cli_complain("import: the checkpoint says which weights are trained; --train and --freeze "
                     "do not apply");
        code = CLI_USAGE;
    }
    if (code != CLI_YES)
        return code;
    if ((map_path && !(map = read_text(map_path))) || (set_path && !(set = read_text(set_path)))) {
        free(map);
        return CLI_USAGE;
    }
    options.prepare = &prepare;
    options.use_schedule =
        f->schedule || f->warmup || f->schedule_steps || f->warmup_epochs || f->schedule_epochs;
    options.use_clip_norm = f->clip_norm != NULL;
    options.use_accumulate = f->accumulate != NULL;
    options.weights_only = weights_only;
    options.partial = partial;
    options.map = map;
    options.settings = set;
    options.allow_links = allow_links;
    code = import(operands[0], operands[1], &options);
    free(map);
    free(set);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--out", NULL, NULL, "--output", CLI_OLD, NULL},
    {"--weights-only", NULL, NULL, "weights and statistics, no training", CLI_FLAG, &weights_only},
    {"--partial", NULL, NULL, "let initializers and tensors that are left over be", CLI_FLAG,
     &partial},
    {"--allow-links", NULL, NULL, "files of a folder may be behind links", CLI_FLAG, &allow_links},
    {"--map", NULL, "FILE", "rules for names: lines INITIALIZER = NAME, /REGEX/ = REPLACEMENT",
     CLI_TEXT, &map_path},
    {"--set", NULL, "FILE.json", "settings that the checkpoint does not have", CLI_TEXT, &set_path},
    {"--list", NULL, NULL, "print how each tensor was found", CLI_FLAG, &list},
    {"--json", NULL, NULL, "the same as JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    CLI_TRAINING_OPTIONS,
    {0},
};

CLI_COMMAND(
    import, import_main, "MODEL CHECKPOINT --loss LOSS -o FILE",
    "continue a training of another framework",
    "Gives MODEL, exported from the same network, the weights of CHECKPOINT and its training:\n"
    "optimizer with its state, step, schedule, clipping. `cameo train` goes on from there.\n"
    "CHECKPOINT is a file or folder of PyTorch, Hugging Face, Lightning, DeepSpeed, FSDP, Ray,\n"
    "NeMo, TensorFlow, Keras, JAX or ONNX Runtime; the format is recognized. What it does not\n"
    "say is listed and must be given by flags or with --set; both win over what it says.",
    "cameo import net.onnx checkpoint-500 --loss cross-entropy -o net-train.onnx\n"
    "cameo import net.onnx last.ckpt --weights-only -o net-new.onnx\n"
    "cameo import net.onnx ckpt --loss mse --optimizer adam --lr 0.001 -o net-train.onnx",
    "0 if it was written, 1 if something is left over or missing", options, 2, 2);
