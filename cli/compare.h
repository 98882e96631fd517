/* What the files of `cameo compare` share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "derive.h"
#include "values.h"

enum compare_part { COMPARE_STRUCTURE, COMPARE_WEIGHTS, COMPARE_RESULTS, COMPARE_PARTS };

/* One thing that differs, or is worth telling. */
struct compare_row {
    enum compare_part part;
    bool differs;     /* else it is a remark */
    const char *kind; /* "added", "removed", "changed", "value", "first", "note" */
    char *name, *text;
    bool measured; /* difference counts */
    struct cameo_difference difference;
};

struct comparison {
    struct cameo_model *a, *b; /* b: NULL when recorded values are compared with */
    bool wanted[COMPARE_PARTS];
    double relative, absolute; /* of results */
    bool tolerant;             /* the tolerances were given, so they hold for weights too */
    struct compare_row *rows;
    size_t count, room;
    size_t looked[COMPARE_PARTS], differing[COMPARE_PARTS]; /* nodes, tensors, values */
    bool random;                                            /* inputs were made up */
};

/* Ends the program when there is no memory. The text may be NULL. */
void compare_add(struct comparison *c, enum compare_part part, const char *kind, const char *name,
                 const struct cameo_difference *difference, const char *format, ...)
    CLI_PRINTF(6, 7);
void compare_free(struct comparison *c); /* the rows */
void compare_structure(struct comparison *c);
void compare_weights(struct comparison *c);
/* Exit codes of what kept it from comparing; differences are rows. */
int compare_results(struct comparison *c, const struct cli_texts *inputs,
                    const struct cli_make *make, size_t seed);
int compare_recorded(struct comparison *c, const char *path, const struct cli_texts *inputs,
                     const struct cli_make *make, size_t seed);
void compare_print(const struct comparison *c);
void compare_json(const struct comparison *c);

#endif
