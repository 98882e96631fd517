/* cameo checkpoint: what another framework saved. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool as_json, show_all, allow_links;
static const char *dump_folder;

static const char *const roles[] = {"weight",  "buffer", "master copy", "slot",
                                    "average", "random", "other"};
enum { FEW = 40, FACT_WIDTH = 160 };

/* ---- for people ---- */

static const char *shape_text(const struct cameo_saved_tensor *tensor, char *text, size_t size)
{
    size_t used = 0;

    if (tensor->rank == 0)
        return "scalar";
    for (size_t i = 0; i < tensor->rank && used + 24 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "x" : "",
                                 (long long)tensor->dims[i]);
    return text;
}

static void print_tensor(const struct cameo_saved_tensor *tensor, size_t width)
{
    char shape[200];

    printf("  %-11s ", roles[tensor->role]);
    cli_put_padded(stdout, tensor->name, width);
    printf("  ");
    if (tensor->role == CAMEO_SAVED_SLOT)
        cli_put_padded(stdout, tensor->slot, 16);
    printf(" %s %s", cameo_dtype_name(tensor->dtype), shape_text(tensor, shape, sizeof shape));
    if (tensor->piece_count != 1)
        printf(", %zu pieces", tensor->piece_count);
    putchar('\n');
}

static void print_tensors(const struct cameo_saved *saved)
{
    const size_t all = cameo_saved_summary(saved)->tensor_count;
    const size_t shown = show_all || all <= FEW ? all : FEW;
    size_t counts[7] = {0}, width = 0;

    for (size_t i = 0; i < all; i++) {
        const struct cameo_saved_tensor *tensor = cameo_saved_tensor(saved, i);

        counts[tensor->role]++;
        if (i < shown && cli_text_width(tensor->name) > width)
            width = cli_text_width(tensor->name);
    }
    printf("tensors:");
    for (size_t i = 0, said = 0; i < 7; i++)
        if (counts[i])
            printf("%s %zu %s%s", said++ ? "," : "", counts[i], roles[i],
                   counts[i] == 1                         ? ""
                   : strcmp(roles[i], "master copy") == 0 ? " (copies)"
                                                          : "s");
    putchar('\n');
    for (size_t i = 0; i < shown; i++)
        print_tensor(cameo_saved_tensor(saved, i), width < 60 ? width : 60);
    if (shown < all)
        printf("  .. and %zu more (--all lists them)\n", all - shown);
}

static void print_group(size_t index, const struct cameo_saved_group *group)
{
    printf("  group %zu:", index);
    for (size_t i = 0; i < group->setting_count; i++)
        printf("%s %s %.10g", i ? "," : "", group->settings[i].name, group->settings[i].value);
    printf("%s%zu weights", group->setting_count ? "; " : " ", group->name_count);
    for (size_t i = 0; i < group->name_count && (show_all || i < 4); i++) {
        printf("%s", i ? ", " : ": ");
        cli_put_text(stdout, group->names[i].data, group->names[i].size);
    }
    printf("%s\n", !show_all && group->name_count > 4 ? ", .." : "");
}

static void print_optimizer(const struct cameo_saved *saved)
{
    const struct cameo_saved_summary *s = cameo_saved_summary(saved);

    if (!s->has_optimizer) {
        printf("optimizer: none\n");
        return;
    }
    printf("optimizer: ");
    if (s->optimizer.size)
        cli_put_text(stdout, s->optimizer.data, s->optimizer.size);
    else
        printf("not named");
    printf(" (%s, arithmetic of %s)\n", s->rule, s->arithmetic);
    for (size_t i = 0; i < s->group_count; i++)
        print_group(i, cameo_saved_group(saved, i));
    if (s->schedule.size || strcmp(s->schedule_known, "none") != 0) {
        printf("schedule: ");
        cli_put_text(stdout, s->schedule.data, s->schedule.size);
        printf("%s%s\n", s->schedule.size ? " " : "",
               strcmp(s->schedule_known, "unknown") == 0 ? "(how it goes on is not stored)" : "");
        if (s->phases.size) {
            printf("  ");
            cli_put_short(stdout, s->phases, show_all ? 100000 : FACT_WIDTH);
            putchar('\n');
        }
    }
    if (!isnan(s->clip_limit) && s->clip_limit > 0)
        printf("clipping: %s, %.10g\n", s->clip, s->clip_limit);
    if (s->accumulate > 1)
        printf("accumulation: %lld batches to an update\n", (long long)s->accumulate);
    if (!isnan(s->loss_scale))
        printf("loss scale: %.10g\n", s->loss_scale);
}

static void print_texts(const char *title, const struct cameo_saved *saved,
                        const struct cameo_text *(*get)(const struct cameo_saved *, size_t))
{
    const struct cameo_text *text;

    for (size_t i = 0; (text = get(saved, i)); i++) {
        if (i == 0)
            printf("%s:\n", title);
        printf("  ");
        cli_put_line(stdout, *text);
    }
}

static void print_facts(const struct cameo_saved *saved)
{
    const struct cameo_entry *fact;

    for (size_t i = 0; (fact = cameo_saved_fact(saved, i)); i++) {
        if (i == 0)
            printf("also in it:\n");
        printf("  ");
        cli_put_text(stdout, fact->key.data, fact->key.size);
        printf(": ");
        cli_put_short(stdout, fact->value, show_all ? 100000 : FACT_WIDTH);
        putchar('\n');
    }
}

static void print_all(const char *path, const struct cameo_saved *saved)
{
    const struct cameo_saved_summary *s = cameo_saved_summary(saved);

    printf("%s: %s, %s", path, s->system, s->format);
    if (s->version.size) {
        printf(" (version ");
        cli_put_text(stdout, s->version.data, s->version.size);
        printf(")");
    }
    putchar('\n');
    if (s->step >= 0)
        printf("position: step %lld", (long long)s->step);
    if (s->epoch >= 0)
        printf("%s epoch %lld", s->step >= 0 ? "," : "position:", (long long)s->epoch);
    if (s->step >= 0 || s->epoch >= 0)
        putchar('\n');
    if (s->ranks > 1)
        printf("spread over: %lld ranks, %zu files\n", (long long)s->ranks, s->file_count);
    print_optimizer(saved);
    print_tensors(saved);
    print_facts(saved);
    print_texts("not understood", saved, cameo_saved_unknown);
    print_texts("missing, if training is to go on (see cameo import --help)", saved,
                cameo_saved_missing);
}

/* ---- for programs ---- */

static void json_texts(struct cli_json *json, const char *key, const struct cameo_saved *saved,
                       const struct cameo_text *(*get)(const struct cameo_saved *, size_t))
{
    const struct cameo_text *text;

    cli_json_open(json, key, '[');
    for (size_t i = 0; (text = get(saved, i)); i++)
        cli_json_text(json, NULL, *text);
    cli_json_close(json, ']');
}

static void json_tensor(struct cli_json *json, const struct cameo_saved_tensor *tensor)
{
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "role", roles[tensor->role]);
    cli_json_text(json, "name", tensor->name);
    if (tensor->role == CAMEO_SAVED_SLOT) {
        cli_json_text(json, "slot", tensor->slot);
        cli_json_string(json, "meaning", tensor->meaning);
    }
    cli_json_string(json, "type", cameo_dtype_name(tensor->dtype));
    cli_json_open(json, "shape", '[');
    for (size_t i = 0; i < tensor->rank; i++)
        cli_json_int(json, NULL, tensor->dims[i]);
    cli_json_close(json, ']');
    cli_json_count(json, "pieces", tensor->piece_count);
    cli_json_text(json, "file", tensor->file);
    cli_json_close(json, '}');
}

static void json_group(struct cli_json *json, const struct cameo_saved_group *group)
{
    cli_json_open(json, NULL, '{');
    for (size_t i = 0; i < group->setting_count; i++)
        cli_json_real(json, group->settings[i].name, group->settings[i].value);
    cli_json_open(json, "names", '[');
    for (size_t i = 0; i < group->name_count; i++)
        cli_json_text(json, NULL, group->names[i]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void json_known(struct cli_json *json, const char *key, int64_t number, int64_t least)
{
    if (number >= least)
        cli_json_int(json, key, number);
}

static void json_all(const char *path, const struct cameo_saved *saved)
{
    const struct cameo_saved_summary *s = cameo_saved_summary(saved);
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "path", path);
    cli_json_string(&json, "system", s->system);
    cli_json_string(&json, "format", s->format);
    cli_json_text(&json, "version", s->version);
    json_known(&json, "step", s->step, 0);
    json_known(&json, "epoch", s->epoch, 0);
    json_known(&json, "ranks", s->ranks, 1);
    json_known(&json, "accumulate", s->accumulate, 1);
    if (!isnan(s->loss_scale))
        cli_json_real(&json, "loss_scale", s->loss_scale);
    if (s->clip_limit > 0) {
        cli_json_string(&json, "clip", s->clip);
        cli_json_real(&json, "clip_norm", s->clip_limit);
    }
    if (s->has_optimizer) {
        cli_json_text(&json, "optimizer", s->optimizer);
        cli_json_string(&json, "rule", s->rule);
        cli_json_string(&json, "arithmetic", s->arithmetic);
        cli_json_open(&json, "groups", '[');
        for (size_t i = 0; i < s->group_count; i++)
            json_group(&json, cameo_saved_group(saved, i));
        cli_json_close(&json, ']');
        cli_json_text(&json, "schedule", s->schedule);
        cli_json_string(&json, "schedule_known", s->schedule_known);
        cli_json_text(&json, "phases", s->phases);
    }
    cli_json_open(&json, "tensors", '[');
    for (size_t i = 0; i < s->tensor_count; i++)
        json_tensor(&json, cameo_saved_tensor(saved, i));
    cli_json_close(&json, ']');
    cli_json_open(&json, "facts", '{');
    for (size_t i = 0; i < s->fact_count; i++) {
        const struct cameo_entry *fact = cameo_saved_fact(saved, i);
        cli_json_text(&json, fact->key.data, fact->value);
    }
    cli_json_close(&json, '}');
    json_texts(&json, "files", saved, cameo_saved_file);
    json_texts(&json, "not_understood", saved, cameo_saved_unknown);
    json_texts(&json, "missing", saved, cameo_saved_missing);
    cli_json_close(&json, '}');
}

/* ---- all tensors as files ---- */

/* Names become file names: what is no letter, digit, point, dash or underscore becomes one. */
static void append_plain(char *to, size_t size, struct cameo_text text)
{
    size_t at = strlen(to);

    for (size_t i = 0; i < text.size && at + 1 < size; i++) {
        const char c = text.data[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '-';
        to[at++] = plain ? c : '_';
    }
    to[at] = 0;
}

static int dump(const struct cameo_saved *saved)
{
    const struct cameo_saved_tensor *tensor;
    struct cameo_error err;

    if (mkdir(dump_folder, 0777) != 0 && errno != EEXIST) {
        cli_complain("checkpoint: cannot make the folder '%s': %s", dump_folder, strerror(errno));
        return cli_errno_code(errno);
    }
    for (size_t i = 0; (tensor = cameo_saved_tensor(saved, i)); i++) {
        const char *name = "value";
        struct cameo_value *value;
        char path[4096];

        snprintf(path, sizeof path, "%s/%05zu.%s.", dump_folder, i, roles[tensor->role]);
        append_plain(path, sizeof path - 300, tensor->name);
        if (tensor->slot.size) {
            append_plain(path, sizeof path - 100, (struct cameo_text){"..", 2});
            append_plain(path, sizeof path - 50, tensor->slot);
        }
        append_plain(path, sizeof path, (struct cameo_text){".npy", 4});
        const int may = cli_may_write_file_of_folder("checkpoint: --dump", path);
        if (may != CLI_YES)
            return may;
        if (cameo_saved_read(saved, i, &value, &err) != CAMEO_OK)
            return cli_fail(&err);
        const struct cameo_value *values[] = {value};
        const enum cameo_status status = cameo_arrays_save(path, &name, values, 1, &err);
        cameo_value_free(value);
        if (status != CAMEO_OK)
            return cli_fail(&err);
    }
    return CLI_YES;
}

static int checkpoint_main(char **operands, int count)
{
    struct cameo_saved_options reading = CAMEO_SAVED_OPTIONS_INIT;
    struct cameo_saved *saved;
    struct cameo_error err;

    (void)count;
    reading.allow_links = allow_links;
    if (strcmp(operands[0], "info") != 0) {
        cli_complain("checkpoint: there is no '%s', only: cameo checkpoint info PATH", operands[0]);
        return CLI_USAGE;
    }
    cli_reads(operands[1]);
    if (cameo_saved_open_with(operands[1], &reading, &saved, &err) != CAMEO_OK)
        return cli_fail(&err);
    int code = CLI_YES;
    if (dump_folder)
        code = dump(saved);
    else if (as_json)
        json_all(operands[1], saved);
    else
        print_all(operands[1], saved);
    cameo_saved_free(saved);
    return code ? code : cli_flush(stdout, "stdout");
}

static const struct cli_option options[] = {
    {"--json", NULL, NULL, "everything, for programs", CLI_FLAG, &as_json},
    {"--all", NULL, NULL, "all tensors and facts, however many and long", CLI_FLAG, &show_all},
    {"--allow-links", NULL, NULL, "files of a folder may be behind links", CLI_FLAG, &allow_links},
    {"--dump", NULL, "DIR", "write every tensor into this folder as .npy instead", CLI_TEXT,
     &dump_folder},
    {0},
};

CLI_COMMAND(
    checkpoint, checkpoint_main, "info PATH [--json] [--all] [--dump DIR]",
    "show what another framework saved",
    "Recognizes a checkpoint by its content and lists its tensors, optimizer, schedule and\n"
    "position, what was not understood, and what training cannot go on without. PATH is a\n"
    "file or a folder of: PyTorch (torch.save, torch.distributed.checkpoint), FSDP,\n"
    "DeepSpeed, Hugging Face, PyTorch Lightning, Ray, NVIDIA NeMo, TensorFlow, Keras, JAX\n"
    "(flax, Orbax) and ONNX Runtime Training. Nothing in it is executed.",
    "cameo checkpoint info checkpoint-500 # a folder of the Trainer's\n"
    "cameo checkpoint info last.ckpt --json # for a program",
    "0 if it was read, 1 if it is not a checkpoint, or a broken one", options, 2, 2);
