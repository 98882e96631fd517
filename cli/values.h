/* What `run` and `test` share: printing values, comparing them, feeding them to sessions. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "cli.h"

/* "y: float[2,3]" and the elements below, large tensors with their middles left out. */
void cli_print_value(FILE *to, struct cameo_text name, const struct cameo_value *value);
/* "float[2,3]", "sequence of 2"; cut to fit. Returns text. */
const char *cli_describe_value(char *text, size_t size, const struct cameo_value *value);

/* When two numbers count as equal: |a - b| <= atol + rtol * |b|, or scaled times the largest
 * expected magnitude of the tensor when scaled is not 0. Floats and doubles up to two units in the
 * last place of that magnitude are equal too: both are zero but for rounding. */
struct cli_tolerance {
    double rtol, atol, scaled;
    bool loose; /* random results: type, shape, and zeros and ones where all were */
};

/* Writes the first difference as a phrase into reason and returns false when there is one. */
bool cli_same_value(const struct cameo_value *actual, const struct cameo_value *expected,
                    const struct cli_tolerance *tolerance, char *reason, size_t size);

/* Inputs from files, and made up: one feed for each, and what holds their values. */
struct cli_inputs {
    const char *command; /* that wants them, for messages */
    const struct cameo_session *session;
    struct cameo_feed *feeds;
    size_t count, room;
    bool *given; /* per input of the session */
    struct cameo_arrays **files;
    size_t file_count, file_room;
    struct cameo_made_inputs *made;
    size_t given_count; /* feeds that come from files; those behind are made up */
};

/* How inputs are made up: the values of CLI_MAKE_OPTIONS. */
struct cli_make {
    bool wanted;
    struct cli_texts dims, shapes; /* "N=8", "x=1,3,224,224" */
};

/* Rows of a table of options; make is a struct cli_make. */
#define CLI_MAKE_OPTIONS(make)                                                                     \
    {"--dim",   NULL,        "NAME=N", "the size of an open dimension of inputs that are made up", \
     CLI_TEXTS, &(make).dims},                                                                     \
    {                                                                                              \
        "--shape", NULL, "NAME=N,N,..", "the shape of an input that is made up", CLI_TEXTS,        \
            &(make).shapes                                                                         \
    }

void cli_inputs_begin(struct cli_inputs *inputs, const char *command,
                      const struct cameo_session *session);
void cli_inputs_end(struct cli_inputs *inputs);
/* "NAME=FILE" or "FILE"; gives an exit code. */
int cli_inputs_add(struct cli_inputs *inputs, const char *text);
/* Says that there is no input of this name, and which there are. */
int cli_inputs_unknown(const struct cli_inputs *inputs, const char *name, size_t size);
/* Values for what is still missing. options has seed, batch and the like; sizes and shapes come
 * from make. May be called again, with another attempt. */
int cli_inputs_make(struct cli_inputs *inputs, const struct cli_make *make,
                    const struct cameo_make_options *options);
/* Could other guesses make a difference? */
bool cli_inputs_guessed(const struct cli_inputs *inputs);
/* Says which sizes were made up, and how to set them. */
void cli_inputs_note_sizes(const struct cli_inputs *inputs);
/* Adds a feed of an input by its number. */
void cli_inputs_feed(struct cli_inputs *inputs, size_t index, struct cameo_feed feed);
/* Says all that is wrong with the feeds; where one is missing, with an example for the model at
 * this path, unless it is NULL. Gives an exit code. */
int cli_inputs_check(const struct cli_inputs *inputs, struct cameo_session *session,
                     const char *model);

/* A name from a model as the name of a file: nothing of it may lead elsewhere. */
void cli_file_name(char *to, size_t size, struct cameo_text name, size_t index);
/* Writes values that a run gave to numbered files in a folder, and index.json that says which is
 * what: those named, or all outputs, the first `last` of them behind the others. Exit codes. */
int cli_dump_values(const char *folder, const struct cli_texts *only, size_t last,
                    const struct cameo_session *session, const struct cameo_fetch *fetches);

/* What a run did, step by step. */
struct cli_steps {
    struct cli_step *items;
    size_t count, room;
    bool lost; /* there was no memory for all */
};

struct cli_step {
    char node[64], op[64];
    const char *kernel;
    char declined[160];
    uint64_t id, begin_ns, end_ns, live_bytes;
    double flops;
    int depth;
};

cameo_step_fn cli_steps_add; /* arg is a struct cli_steps * */
void cli_steps_free(struct cli_steps *steps);
/* A table: which kernel ran each node, how long, at which share of the machine's peak (operations a
 * second), who declined and why. */
void cli_steps_explain(FILE *to, const struct cli_steps *steps, double peak);
/* The same by operator and kernel, those that took longest first. */
void cli_steps_summary(FILE *to, const struct cli_steps *steps, double peak);
/* Chrome's trace event format. */
int cli_steps_profile(const char *path, const struct cli_steps *steps);

#endif
