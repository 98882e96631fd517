/* A data set on its way through a model: opening both, and the progress line. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "stream.h"
#include "train.h"

#include <unistd.h>

struct cli_stream cli_stream;

static bool line_is_shown;

void cli_stream_clear(void)
{
    if (line_is_shown)
        fputs("\r\033[K", stderr);
    line_is_shown = false;
}

/* As `cameo train` does: a terminal's line is drawn over, elsewhere lines are few. */
static bool show(void *arg, int64_t done, int64_t samples)
{
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const double now = train_seconds(), seconds = now - cli_stream.began;
    char text[2][CLI_NUMBER_SIZE];

    (void)arg;
    if (now - cli_stream.shown < (terminal ? 0.1 : 5.0))
        return true;
    cli_stream.shown = now;
    cli_stream_clear();
    fprintf(stderr, "%s of %s samples  %.4g samples/s", cli_number(text[0], (uint64_t)done),
            cli_number(text[1], (uint64_t)samples), (double)done / seconds);
    fprintf(stderr, "  left %.0f s%s", (double)(samples - done) * seconds / (double)done,
            terminal ? "" : "\n");
    line_is_shown = terminal;
    fflush(stderr);
    return true;
}

int cli_stream_fail(const struct cameo_error *err)
{
    cli_stream_clear();
    return cli_fail_found(err);
}

int cli_stream_open(const char *command, const char *path)
{
    struct cameo_dataset_options data = CAMEO_DATASET_OPTIONS_INIT;
    struct cli_stream *s = &cli_stream;
    struct cameo_error err;

    if (!s->data.count) {
        cli_complain("%s: no data was given, add --data FILE", command);
        return CLI_USAGE;
    }
    data.columns = s->columns;
    data.allow_links = s->allow_links;
    if (cli_load_model(path, NULL, &s->model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(s->model);
    s->session = (struct cameo_session_options)CAMEO_SESSION_OPTIONS_INIT;
    s->session.threads = (int)(s->threads < 1024 ? s->threads : 1024);
    s->session.memory_limit = cli_memory_limit(s->memory_limit);
    s->session.backend = s->backend;
    s->session.findings = &cli_found;
    cli_reads_all(&s->data);
    if (cameo_dataset_open_files(s->data.items, s->data.count, &data, &s->dataset, &err) !=
        CAMEO_OK)
        return cli_fail(&err);
    s->options = (struct cameo_stream_options)CAMEO_STREAM_OPTIONS_INIT;
    s->options.batch_size = (int64_t)s->batch_size;
    s->options.raw_bytes = s->raw_bytes;
    s->options.as_is = s->as_is;
    s->options.session = &s->session;
    s->options.cancel = cli_stop_on_signal();
    s->options.progress = show;
    s->began = s->shown = train_seconds();
    return CLI_YES;
}

void cli_stream_close(void)
{
    cli_stream_clear();
    cameo_dataset_free(cli_stream.dataset);
    cameo_model_free(cli_stream.model);
    cli_stream.dataset = NULL;
    cli_stream.model = NULL;
}
