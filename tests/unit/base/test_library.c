/* Libraries opened at run time: which are found, which are not, and what is said then. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "check.h"

#include "base/library.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const math[] = {"libm.so.6", NULL};
static const char *const nothing[] = {"libcameo-none.so.1", "libcameo-none.so", NULL};

void test_library__is_found_where_the_system_has_it(void)
{
    struct cm_library library;
    double (*cosine)(double) = NULL;
    const struct cm_symbol symbols[] = {{"cos", &cosine}};

    unsetenv("CAMEO_TEST_LIBRARY");
    CHECK(cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    CHECK(library.path[0] == '/' && strstr(library.path, "libm.so.6") && !library.why[0]);
    CHECK(cm_library_find(&library, symbols, 1));
    CHECK(cosine(0) == 1);
}

void test_library__that_is_missing_is_named(void)
{
    struct cm_library library;

    unsetenv("CAMEO_TEST_LIBRARY");
    CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", nothing, &library));
    CHECK(!library.handle && !library.path[0]);
    CHECK_STRING(library.why, "libcameo-none.so.1 or libcameo-none.so is not installed");
}

void test_library__is_located_without_being_opened(void)
{
    static const char *const names[] = {"libcameo-none.so.1", "libm.so.6", NULL};
    struct cm_library library;

    /* Where no folder of ours has it, it has to be opened to be found. */
    unsetenv("CAMEO_TEST_LIBRARY");
    CHECK(cm_library_locate("CAMEO_TEST_LIBRARY", names, &library) && library.handle);
    setenv("CAMEO_TEST_LIBRARY", "off", 1);
    CHECK(!cm_library_locate("CAMEO_TEST_LIBRARY", math, &library));
    CHECK_STRING(library.why, "CAMEO_TEST_LIBRARY is off");
    unsetenv("CAMEO_TEST_LIBRARY");
    /* This program lies in a folder of its own. */
    char self[1024];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    const char *slash = strrchr(self, '/');
    const char *const own[] = {slash ? slash + 1 : "", NULL};
    CHECK(cm_library_locate("CAMEO_TEST_LIBRARY", own, &library));
    CHECK(!library.handle);
    CHECK_STRING(library.path, self);
}

void test_library__a_later_name_will_do(void)
{
    static const char *const names[] = {"libcameo-none.so.1", "libm.so.6", NULL};
    struct cm_library library;

    CHECK(cm_library_open("CAMEO_TEST_LIBRARY", names, &library));
    CHECK(!library.why[0]);
}

void test_library__names_the_function_it_lacks(void)
{
    struct cm_library library;
    void (*function)(void) = NULL;
    const struct cm_symbol symbols[] = {{"cm_no_such_function", &function}};

    CHECK(cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    CHECK(!cm_library_find(&library, symbols, 1));
    CHECK(strstr(library.why, "libm.so.6 has no function cm_no_such_function"));
}

void test_library__the_environment_overrules(void)
{
    struct cm_library library;

    setenv("CAMEO_TEST_LIBRARY", "off", 1);
    CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    CHECK_STRING(library.why, "CAMEO_TEST_LIBRARY is off");
    setenv("CAMEO_TEST_LIBRARY", "/nowhere/libm.so.6", 1);
    CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    CHECK_STRING(library.why, "CAMEO_TEST_LIBRARY: there is no file '/nowhere/libm.so.6'");
    setenv("CAMEO_TEST_LIBRARY", "libm.so.6", 1); /* the working folder? the system's? */
    CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    CHECK_STRING(library.why, "CAMEO_TEST_LIBRARY is 'libm.so.6', expected a path or off");
    setenv("CAMEO_TEST_LIBRARY", TESTS_DIR "/unit/base/test_library.c", 1);
    CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    CHECK(strstr(library.why, "test_library.c"));
    unsetenv("CAMEO_TEST_LIBRARY");
    CHECK(cm_library_open("CAMEO_TEST_LIBRARY", math, &library));
    setenv("CAMEO_TEST_LIBRARY", library.path, 1);
    CHECK(cm_library_open("CAMEO_TEST_LIBRARY", nothing, &library));
    unsetenv("CAMEO_TEST_LIBRARY");
}

/* The dynamic loader reads LD_LIBRARY_PATH when the program starts; we read it as it is. */
void test_library__is_not_looked_for_in_the_working_folder(void)
{
    static const char *const paths[] = {":/usr/lib", "/usr/lib:", "/usr/lib::/lib", ".", "lib"};
    struct cm_library library;
    const char *before = getenv("LD_LIBRARY_PATH");
    char *const kept = before ? strdup(before) : NULL;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        setenv("LD_LIBRARY_PATH", paths[i], 1);
        CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", nothing, &library));
        CHECK(strstr(library.why, "LD_LIBRARY_PATH has an empty or relative element"));
    }
    setenv("LD_LIBRARY_PATH", "/usr/lib:/lib", 1);
    CHECK(!cm_library_open("CAMEO_TEST_LIBRARY", nothing, &library));
    CHECK(strstr(library.why, "is not installed"));
    if (kept)
        setenv("LD_LIBRARY_PATH", kept, 1);
    else
        unsetenv("LD_LIBRARY_PATH");
    free(kept);
}
