/* Compiling the model of a backend test case. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "test_cases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"case.so", "case.h"};
    char path[TEST_PATH_SIZE];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (test_path(path, folder, names[i]))
            unlink(path);
    rmdir(folder);
}

static bool compile_into(struct test_case *test, const struct cameo_model *model, bool pure,
                         const char *folder, struct cameo_compiled **out)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_error err = {0};
    char path[TEST_PATH_SIZE];

    if (!test_path(path, folder, "case.so"))
        return false;
    options.path = path;
    options.name = "compiled_case";
    options.pure = pure;
    if (cameo_model_compile(model, &options, NULL, &err) != CAMEO_OK)
        test->refused = err.status == CAMEO_UNSUPPORTED;
    else if (cameo_compiled_open(path, out, &err) == CAMEO_OK)
        return true;
    return test_failed(test, &err);
}

bool test_compile(struct test_case *test, const struct cameo_model *model, bool pure,
                  struct cameo_compiled **out)
{
    const char *place = secure_getenv("TMPDIR");
    char folder[TEST_PATH_SIZE];

    snprintf(folder, sizeof folder, "%s/cameo-test-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder)) {
        snprintf(test->reason, sizeof test->reason, "cannot make the folder %.300s: %s", folder,
                 strerror(errno));
        return false;
    }
    const bool made = compile_into(test, model, pure, folder, out);
    remove_folder(folder); /* an open library needs its file no more */
    return made;
}
