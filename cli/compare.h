/* What the files of `cameo compare` share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "derive.h"
#include "values.h"

enum { COMPARE_PARTS = 3 };

struct compare_request {
    struct cameo_model *a, *b; /* b: NULL when recorded values are compared with */
    bool wanted[COMPARE_PARTS];
    double relative, absolute;     /* below 0: not given */
    struct cameo_session *session; /* of a, for reading inputs; NULL: none was needed */
    struct cli_inputs inputs;
    bool random; /* inputs were made up */
    /* Values that files hold, by the names of values of a. */
    struct cameo_feed *recorded;
    size_t recorded_count, recorded_room;
    bool any_known; /* one of them is a value of a */
    struct cameo_arrays **files;
    size_t file_count, file_room;
};

/* The parts that are wanted, for people. */
void compare_print(const struct compare_request *r, const struct cameo_comparison *c);
/* Arrays of a file, or of the .npy files of a folder. Exit codes. */
int compare_read_recorded(struct compare_request *r, const char *path);
void compare_free_recorded(struct compare_request *r);

#endif
