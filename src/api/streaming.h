/* A data set on its way through a session, for what evaluates and predicts. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_STREAMING_H
#define CM_API_STREAMING_H

#include "api/training.h"

struct cm_api_stream {
    struct cameo_stream_options options;
    struct cameo_model *model; /* a copy with training mode turned off, or NULL */
    struct cameo_session *session;
    struct cm_feeder *feeder;
    char note[400];     /* what was turned off; or "" */
    const char *target; /* the array for an input that none is named after, or NULL */
    /* What is fed: inputs of the session, then others. */
    struct cm_trainer_input *inputs;
    size_t *numbers; /* of the session's inputs, in the model */
    size_t n_inputs, n_fed;
    struct cameo_feed *feeds; /* one for each, of these tensors */
    struct cameo_tensor *tensors;
    const struct cm_tensor *const *batch;
    int64_t rows;  /* of the batch that count */
    int64_t fixed; /* rows that the model takes at once; 0: any number */
    int64_t done, samples;
};

/* A failure of a public function, once more. */
enum cm_status cm_api_again(const struct cameo_error *from, struct cm_error *err) CM_MUST_CHECK;

/* Opens a session, on a copy of the model with training mode off unless options say otherwise. */
enum cm_status cm_api_stream_open(const struct cameo_model *model,
                                  const struct cameo_stream_options *options,
                                  struct cm_api_stream *out, struct cm_error *err) CM_MUST_CHECK;
/* Then the data: its inputs, and extra ones, which no session is fed. */
enum cm_status cm_api_stream_feed(struct cm_api_stream *stream, struct cameo_dataset *dataset,
                                  const struct cm_trainer_input *extra, size_t n_extra,
                                  struct cm_error *err) CM_MUST_CHECK;
/* The next batch; rows is 0 at the end. */
enum cm_status cm_api_stream_next(struct cm_api_stream *stream, struct cm_error *err) CM_MUST_CHECK;
/* Runs the session on it. */
enum cm_status cm_api_stream_run(struct cm_api_stream *stream, struct cameo_fetch *fetches,
                                 size_t fetch_count, struct cm_error *err) CM_MUST_CHECK;
/* Do rows from the beginning fill up the last batch? */
bool cm_api_stream_fills_up(const struct cm_api_stream *stream);
/* A sentence on that, and on bytes that are scaled; or "". */
void cm_api_stream_note(const struct cm_api_stream *stream, char *text, size_t size);
void cm_api_stream_close(struct cm_api_stream *stream);

#endif
