/* Tables of named passes, and which of their passes run. A table is an array of rows of one type
 * that each begin with a struct cm_pass_row: lower/lower.c has the passes between a model and what
 * exec/ compiles, train/prepare.c those that make a model trainable. Lists of names are separated
 * by commas or spaces. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_LOWER_PASS_TABLE_H
#define CM_LOWER_PASS_TABLE_H

#include "base/compiler.h"
#include "base/status.h"
#include "base/text.h"

enum cm_pass_kind {
    CM_PASS_USUAL,
    CM_PASS_REQUIRED,   /* cannot be left out */
    CM_PASS_ON_REQUEST, /* runs only where `only` or `with` names it */
};

struct cm_pass_row {
    const char *name, *does; /* one line for people */
    enum cm_pass_kind kind;
    const char *reason; /* why it cannot be left out; NULL: the message gives none */
};

struct cm_pass_table {
    const void *rows;
    size_t count, row_size;
};
#define CM_PASS_TABLE(rows) ((struct cm_pass_table){(rows), CM_COUNT(rows), sizeof *(rows)})

/* What the user asked for; NULL: nothing. */
struct cm_pass_choice {
    const char *only;    /* these and the required ones; NULL: all but those on request */
    const char *with;    /* these too, although they are on request */
    const char *without; /* not these */
    const char *until;   /* stop after this pass, its last run */
    const char *after;   /* the graph has been through this pass: begin with the one that follows */
};

const struct cm_pass_row *cm_pass_at(const struct cm_pass_table *table, size_t i);
/* The number of the first pass of this name; table->count: there is none. */
size_t cm_pass_find(const struct cm_pass_table *table, struct cm_str name);
/* Refuses names that no pass has and required ones in `without`. */
enum cm_status cm_pass_check(const struct cm_pass_table *table, const struct cm_pass_choice *choice,
                             struct cm_error *err) CM_MUST_CHECK;
/* Does the choice let this pass run? */
bool cm_pass_is_wanted(const struct cm_pass_row *pass, const struct cm_pass_choice *choice);

/* Runs one pass, or hears that it is left out. */
typedef enum cm_status cm_pass_run_fn(void *state, const struct cm_pass_row *pass, bool is_wanted,
                                      struct cm_error *err);
/* Runs the table in order. stopped: it ended after `until`. */
enum cm_status cm_pass_run(const struct cm_pass_table *table, const struct cm_pass_choice *choice,
                           cm_pass_run_fn *run, void *state, bool *stopped,
                           struct cm_error *err) CM_MUST_CHECK;

#endif
