/* What `cameo evaluate` and `cameo predict` share: a data set on its way through a model. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli.h"

/* As they were given. */
struct cli_stream {
    struct cli_texts data; /* files */
    const char *columns, *backend;
    size_t batch_size, threads, memory_limit;
    bool raw_bytes, as_is, allow_links;
    /* Filled by cli_stream_open. */
    struct cameo_model *model;
    struct cameo_dataset *dataset;
    struct cameo_session_options session;
    struct cameo_stream_options options;
    double began, shown;
};
extern struct cli_stream cli_stream;

/* Rows of an option table. */
#define CLI_STREAM_OPTIONS                                                                          \
    {"--columns", NULL,                                                                             \
     "TEXT",      "CSV: which columns make which array, \"x=a,b y=label\"",                         \
     CLI_TEXT,    &cli_stream.columns},                                                             \
        {"--allow-links",                                                                           \
         NULL,                                                                                      \
         NULL,                                                                                      \
         "files in a folder of data may be behind links",                                           \
         CLI_FLAG,                                                                                  \
         &cli_stream.allow_links},                                                                  \
        {"--batch-size",        "-b", "N", "rows at once; 32 unless the model fixes it", CLI_COUNT, \
         &cli_stream.batch_size},                                                                   \
        {"--raw-bytes", NULL,                                                                       \
         NULL,          "feed images of bytes as 0 to 255, not as 0 to 1",                          \
         CLI_FLAG,      &cli_stream.raw_bytes},                                                     \
        {"--as-is",        NULL, NULL, "leave nodes in training mode as they are", CLI_FLAG,        \
         &cli_stream.as_is},                                                                        \
        {"--threads",        NULL, "N", "threads; as many as there are cores", CLI_COUNT,           \
         &cli_stream.threads},                                                                      \
        {"--backend", NULL,                                                                         \
         "NAME",      "kernels to use: reference, plain, or a backend",                             \
         CLI_TEXT,    &cli_stream.backend},                                                         \
    {                                                                                               \
        "--memory-limit", NULL, "BYTES", "what one run may hold (what memory is free)", CLI_COUNT,  \
            &cli_stream.memory_limit                                                                \
    }

/* Opens both, with a sentence if it cannot, and makes options ready; command is for messages. */
int cli_stream_open(const char *command, const char *model);
void cli_stream_clear(void); /* the progress line */
void cli_stream_close(void);
/* Says why it failed, after the progress line. */
int cli_stream_fail(const struct cameo_error *err);

#endif
