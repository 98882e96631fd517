/* What the commands that make models out of models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_DERIVE_H
#define CLI_DERIVE_H

#include "saved_files.h"

/* Saves and says on stderr which files were written and which are needed; exit codes. */
int cli_save(const struct cameo_model *model, const char *path);
/* The same. saved is the caller's to free, whatever the outcome; its path is NULL if nothing was
 * saved. */
int cli_save_files(const struct cameo_model *model, const char *path, struct cli_saved *saved);

/* PASS=FILE, any number of times: all files are checked, then write is called for each, until it
 * gives another exit code than CLI_YES. */
typedef int cli_dump_fn(const void *arg, const char *pass, const char *path);
int cli_dump_after(const char *command, const struct cli_texts *dumps, cli_dump_fn *write,
                   const void *arg);

/* The passes as lines: name, what it does, whether it always runs. */
int cli_list_passes(bool (*tell)(size_t index, struct cameo_pass *out));

/* What edits share: loads the model, or says why not; checks that there is a file to write. */
int cli_edit_begin(const char *command, const char *path, const char *out,
                   struct cameo_model **model);
/* Ends an edit of model: says what stood in its way, or what it did, and saves it. */
int cli_edit_end(const char *command, struct cameo_model *model, enum cameo_status status,
                 const struct cameo_edit *report, const struct cameo_error *err, const char *out);

/* Names parted by commas, in any number of flags. */
struct cli_names {
    const char **items;
    size_t count;
    char *text;
};
/* Ends the program when there is no memory. */
void cli_names_split(const struct cli_texts *texts, struct cli_names *out);
void cli_names_free(struct cli_names *names);

#endif
