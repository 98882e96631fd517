/* What a command tells of the model that it saved: every file that was written, and every file that
 * the model still needs. */
// SPDX-License-Identifier: Apache-2.0
#include "saved_files.h"

#include <stdlib.h>
#include <string.h>

struct cli_placement cli_placement;

int cli_placement_check(const char *command)
{
    if (!cli_placement.external || !cli_placement.inline_all)
        return CLI_YES;
    cli_complain("%s: --external and --inline contradict each other", command);
    return CLI_USAGE;
}

/* The path of a file that lies beside a model. */
static char *beside(const char *model, struct cameo_text name)
{
    const char *slash = strrchr(model, '/');
    const size_t folder = slash ? (size_t)(slash - model) + 1 : 0;
    char *path = cli_alloc(folder + name.size + 1, 1);

    memcpy(path, model, folder);
    memcpy(path + folder, name.data, name.size);
    return path;
}

/* Called when the model is in place: the program may end here for want of memory. */
static void add_file(void *arg, const struct cameo_data_file *file)
{
    struct cli_saved *saved = arg;

    saved->files =
        cli_grow(saved->files, saved->file_count, &saved->file_room, sizeof *saved->files);
    saved->files[saved->file_count++] = (struct cli_saved_file){
        .path = beside(saved->path, file->name), .bytes = file->bytes, .written = file->written};
}

void cli_saved_begin(struct cli_saved *saved, const char *path, struct cameo_save_options *options)
{
    *saved = (struct cli_saved){.path = path, .report = CAMEO_SAVE_REPORT_INIT};
    if (cli_placement.external || cli_placement.inline_all)
        options->placement = cli_placement.inline_all ? CAMEO_PLACE_INLINE : CAMEO_PLACE_EXTERNAL;
    options->external_name = cli_placement.external;
    options->file = add_file;
    options->file_arg = saved;
}

void cli_saved_free(struct cli_saved *saved)
{
    for (size_t i = 0; i < saved->file_count; i++)
        free(saved->files[i].path);
    free(saved->files);
    *saved = (struct cli_saved){0};
}

/* ---- telling ---- */

static void put_path(FILE *to, const char *path)
{
    cli_put_text(to, path, strlen(path));
}

void cli_saved_put_moves(FILE *to, const struct cameo_save_report *report)
{
    if (report->moved_out)
        fprintf(to, ", %zu tensor%s moved out", report->moved_out,
                report->moved_out == 1 ? "" : "s");
    if (report->moved_in)
        fprintf(to, ", %zu tensor%s moved in", report->moved_in, report->moved_in == 1 ? "" : "s");
}

/* It may be anything of the user's, so it is named rather than removed. */
static void put_left(FILE *to, const struct cameo_save_report *report)
{
    fputs("left ", to);
    put_path(to, report->old_name);
    if (report->old_left > 1)
        fprintf(to, " and %zu more external files alone, which", report->old_left - 1);
    else
        fputs(" alone, which", to);
    fputs(" the old model used\n", to);
}

static void put_needed(FILE *to, const struct cli_saved_file *file)
{
    char number[CLI_NUMBER_SIZE];

    fputs("it needs ", to);
    put_path(to, file->path);
    if (file->bytes == UINT64_MAX)
        fputs(" too, which was not looked for\n", to);
    else
        fprintf(to, " too: %s of external data that was there before\n",
                cli_bytes(number, file->bytes));
}

void cli_saved_put_size(FILE *to, const struct cli_saved *saved)
{
    const struct cameo_save_report *report = &saved->report;
    char number[CLI_NUMBER_SIZE];

    fputs(cli_bytes(number, report->model_bytes), to);
    if (report->external_files) {
        fprintf(to, " and %s of external data in ", cli_bytes(number, report->external_bytes));
        if (report->external_files > 1)
            fprintf(to, "%zu files", report->external_files);
        for (size_t i = 0; report->external_files == 1 && i < saved->file_count; i++)
            if (saved->files[i].written)
                put_path(to, saved->files[i].path);
    }
    cli_saved_put_moves(to, report);
}

static void put_written(FILE *to, const struct cli_saved *saved, const char *what)
{
    char number[CLI_NUMBER_SIZE];

    for (size_t i = 0; i < saved->file_count; i++) {
        if (!saved->files[i].written)
            continue;
        fputs(what, to);
        put_path(to, saved->files[i].path);
        fprintf(to, ": %s\n", cli_bytes(number, saved->files[i].bytes));
    }
}

static void put_others(FILE *to, const struct cli_saved *saved)
{
    const struct cameo_save_report *report = &saved->report;

    for (size_t i = 0; i < saved->file_count; i++)
        if (!saved->files[i].written)
            put_needed(to, &saved->files[i]);
    if (report->forced_external)
        fputs("a model file ends at 2 GiB, so its tensors went to external data\n", to);
    if (report->old_removed)
        fprintf(to, "removed %zu external file%s that the old model used\n", report->old_removed,
                report->old_removed == 1 ? "" : "s");
    if (report->old_left)
        put_left(to, report);
}

void cli_saved_put_files(FILE *to, const struct cli_saved *saved)
{
    if (saved->report.external_files > 1)
        put_written(to, saved, "  ");
    put_others(to, saved);
}

void cli_saved_put_more(FILE *to, const struct cli_saved *saved)
{
    put_written(to, saved, "wrote ");
    put_others(to, saved);
}

void cli_saved_tell(const struct cli_saved *saved)
{
    fputs("wrote ", stderr);
    put_path(stderr, saved->path);
    fputs(": ", stderr);
    cli_saved_put_size(stderr, saved);
    fputc('\n', stderr);
    cli_saved_put_files(stderr, saved);
}

static void put_json_file(struct cli_json *json, const char *path, uint64_t bytes, bool written)
{
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "path", path);
    if (bytes == UINT64_MAX)
        cli_json_null(json, "bytes");
    else
        cli_json_count(json, "bytes", bytes);
    cli_json_bool(json, "written", written);
    cli_json_close(json, '}');
}

void cli_saved_json(struct cli_json *json, const struct cli_saved *saved)
{
    cli_json_open(json, "files", '[');
    if (saved->path)
        put_json_file(json, saved->path, saved->report.model_bytes, true);
    for (size_t i = 0; i < saved->file_count; i++)
        put_json_file(json, saved->files[i].path, saved->files[i].bytes, saved->files[i].written);
    cli_json_close(json, ']');
}

static void put_line_file(FILE *to, const char *path, uint64_t bytes, bool written)
{
    fputs("{\"path\":", to);
    cli_put_quoted(to, path, strlen(path));
    fputs(",\"bytes\":", to);
    if (bytes == UINT64_MAX)
        fputs("null", to);
    else
        fprintf(to, "%llu", (unsigned long long)bytes);
    fprintf(to, ",\"written\":%s}", written ? "true" : "false");
}

void cli_saved_json_line(FILE *to, const struct cli_saved *saved)
{
    fputs("\"files\":[", to);
    put_line_file(to, saved->path, saved->report.model_bytes, true);
    for (size_t i = 0; i < saved->file_count; i++) {
        fputc(',', to);
        put_line_file(to, saved->files[i].path, saved->files[i].bytes, saved->files[i].written);
    }
    fputc(']', to);
}

void cli_saved_put_needs(FILE *to, const char *path)
{
    const struct cameo_external_file *file;
    struct cameo_model *model;
    struct cameo_error err;

    if (cli_load_model(path, NULL, &model, &err) != CAMEO_OK)
        return;
    for (size_t i = 0; (file = cameo_model_external_file(model, i)); i++) {
        struct cli_saved_file one = {.path = beside(path, file->location), .bytes = UINT64_MAX};
        char number[CLI_NUMBER_SIZE];

        cli_file_size(one.path, &one.bytes);
        fputs("it needs ", to);
        put_path(to, one.path);
        fprintf(to, " too: %s of external data\n", cli_bytes(number, one.bytes));
        free(one.path);
    }
    cameo_model_free(model);
}
