/* Searching for a pattern: the earliest match, the longest of those, and a bound on the work. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/memory.h"
#include "ops/text/regex.h"

#include <string.h>

static enum cm_status find_with(const char *pattern, struct cm_str text, size_t from, int64_t *work,
                                struct cm_regex_part *part, bool *found)
{
    struct cm_regex *regex = cm_malloc(sizeof *regex);
    struct cm_error err = {0};
    CHECK(regex);
    CHECK(cm_regex_compile(cm_str(pattern), regex, &err) == CM_OK);
    void *scratch = cm_malloc(cm_regex_find_scratch(regex));
    CHECK(scratch);
    const enum cm_status status =
        cm_regex_find(regex, text, from, scratch, work, part, found, &err);
    cm_free(scratch);
    cm_free(regex);
    return status;
}

static void check_found(const char *pattern, const char *text, size_t from, size_t start,
                        size_t end)
{
    struct cm_regex_part part = {0};
    int64_t work = 1000000;
    bool found;
    CHECK(find_with(pattern, cm_str(text), from, &work, &part, &found) == CM_OK);
    CHECK(found);
    CHECK(part.start == start);
    CHECK(part.end == end);
}

static void check_not_found(const char *pattern, const char *text, size_t from)
{
    struct cm_regex_part part;
    int64_t work = 1000000;
    bool found;
    CHECK(find_with(pattern, cm_str(text), from, &work, &part, &found) == CM_OK);
    CHECK(!found);
}

void test_regex_find__takes_the_earliest_match_then_the_longest(void)
{
    check_found("a|ab|abc", "xabcd", 0, 1, 4);
    check_found("bcd|ab", "abcd", 0, 0, 2);
    check_found("b+|abbx", "abbb", 0, 1, 4);
    check_found("a*", "baa", 0, 0, 0);
    check_not_found("d", "abc", 0);
}

void test_regex_find__sees_what_is_before_its_start(void)
{
    check_found("\\Bb", "ab", 1, 1, 2);
    check_not_found("\\bb", "ab", 1);
    check_not_found("^b", "ab", 1);
    check_found("$", "ab", 2, 2, 2);
}

void test_regex_find__stops_when_its_work_has_run_out(void)
{
    enum { SIZE = 10000 };
    char *text = cm_malloc(SIZE);
    struct cm_regex_part part;
    int64_t work = 5 * SIZE;
    bool found;
    CHECK(text);
    memset(text, 'a', SIZE);
    enum cm_status status = CM_OK;
    /* Each match is one letter, but is known only when the rest has been read. */
    for (size_t at = 0; at < SIZE && !status; at++)
        status = find_with("a.*b|a", (struct cm_str){text, SIZE}, at, &work, &part, &found);
    CHECK(status == CM_LIMIT);
    CHECK(work < 0);
    cm_free(text);
}
