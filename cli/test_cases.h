/* Backend test cases: finding them, running their data sets, reporting. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_TEST_CASES_H
#define CLI_TEST_CASES_H

#include "values.h"

enum { TEST_PATH_SIZE = 4096 };

struct test_case {
    char *path, *name; /* owned; name is the path below the operand, for people */
    bool passed, random, expanded;
    bool refused; /* it cannot be compiled, for a reason that is told */
    bool starved; /* memory ran out before it could be judged */
    double seconds;
    char reason[1024];
};

struct test_list {
    struct test_case *items;
    size_t count, room;
};

/* Adds the cases in and under folder, in the order of their names. Gives an exit code. */
int test_find(struct test_list *list, const char *folder);
void test_case_free(struct test_case *test);
void test_list_free(struct test_list *list);

/* folder/name; false when that is too long. */
bool test_path(char path[TEST_PATH_SIZE], const char *folder, const char *name);
/* Notes why the library could not run the case. Returns false. */
bool test_failed(struct test_case *test, const struct cameo_error *err);
/* What data.json of the case says, if anything. */
void test_read_tolerance(const char *folder, struct cli_tolerance *tolerance);
/* Runs every data set; false with a reason in test when one differs. */
bool test_run_sets(struct test_case *test, struct cameo_session *session,
                   const struct cli_tolerance *tolerance);
/* The model compiled for this machine, in a folder that is gone again; pure: without our kernels.
 * False with a reason in test. */
bool test_compile(struct test_case *test, const struct cameo_model *model, bool pure,
                  struct cameo_compiled **out);
double test_seconds(void); /* of a clock that only goes forward */
int test_write_junit(const char *path, const struct test_list *list);

#endif
