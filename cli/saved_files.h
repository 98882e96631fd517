/* What a command tells of the model that it saved: every file that was written, and every file that
 * the model still needs. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_SAVED_FILES_H
#define CLI_SAVED_FILES_H

#include "cli.h"

/* Where tensors go; nothing given: as CAMEO_PLACE_AUTO says. */
struct cli_placement {
    const char *external;
    bool inline_all;
};
extern struct cli_placement cli_placement;

/* Rows of a command's options. */
#define CLI_PLACEMENT_OPTIONS                                                                      \
    {"--external",           NULL, "FILE", "put tensors into FILE, beside the model", CLI_TEXT,    \
     &cli_placement.external},                                                                     \
    {                                                                                              \
        "--inline", NULL, NULL, "put all tensors into the model", CLI_FLAG,                        \
            &cli_placement.inline_all                                                              \
    }

/* Refuses options that contradict each other; exit codes. */
int cli_placement_check(const char *command);

struct cli_saved_file {
    char *path;
    uint64_t bytes; /* UINT64_MAX: unknown */
    bool written;
};

/* A model that was saved at path, which is borrowed. */
struct cli_saved {
    const char *path;
    struct cameo_save_report report;
    struct cli_saved_file *files; /* external ones */
    size_t file_count, file_room;
};

/* Before the save: options get the placement that the user asked for, and tell files to saved. */
void cli_saved_begin(struct cli_saved *saved, const char *path, struct cameo_save_options *options);
void cli_saved_free(struct cli_saved *saved);

/* "wrote FILE: SIZE", data files, files that are needed; on stderr. */
void cli_saved_tell(const struct cli_saved *saved);
/* Its parts: "6.4 KiB and 2 MiB of external data in FILE, 3 tensors moved out", then lines on
 * files. */
void cli_saved_put_size(FILE *to, const struct cli_saved *saved);
void cli_saved_put_moves(FILE *to, const struct cameo_save_report *report);
void cli_saved_put_files(FILE *to, const struct cli_saved *saved);
/* The same where the line before names the model alone. */
void cli_saved_put_more(FILE *to, const struct cli_saved *saved);
/* "files": what was written and is needed, the model first; empty if nothing was saved. */
void cli_saved_json(struct cli_json *json, const struct cli_saved *saved);
/* The same within an object that is a line. */
void cli_saved_json_line(FILE *to, const struct cli_saved *saved);
/* Lines on the external files of a model that somebody else saved. */
void cli_saved_put_needs(FILE *to, const char *path);

#endif
