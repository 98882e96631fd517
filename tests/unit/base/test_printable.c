/* Which characters may go to a terminal as they are. */
// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"
#include "base/status.h"
#include "check.h"

void test_printable__what_shows_is_told_from_what_does_not(void)
{
    static const struct {
        const char *text;
        size_t hidden;
    } rows[] = {
        {"a", 0},
        {"\\", 0},
        {"\xc3\xa9", 0},         /* e with an accent */
        {"\xe4\xb8\xad", 0},     /* a Chinese character */
        {"\xf0\x9f\x98\x80", 0}, /* a face */
        {"\x1b[31m", 1},
        {"\n", 1},
        {"\x7f", 1},
        {"\xc2\x9b", 2},         /* U+009B begins orders too */
        {"\xc2\xad", 2},         /* a soft hyphen */
        {"\xe2\x80\x8b", 3},     /* no width */
        {"\xe2\x80\xae", 3},     /* right to left */
        {"\xe2\x81\xa6", 3},     /* isolates */
        {"\xef\xbb\xbf", 3},     /* byte order mark */
        {"\xf3\xa0\x80\xa1", 4}, /* a tag */
        {"\xff", 1},
        {"\xe2\x80", 1}, /* the beginning of one */
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++)
        CHECK_INT(cm_str_unprintable(cm_str(rows[i].text)), rows[i].hidden);
}

void test_printable__messages_hold_none(void)
{
    struct cm_error err = {0};
    char room[12] = "a\xe2\x80\xae", small[12] = "abcdef\x1b[1m";

    CHECK_INT(cm_fail(&err, CM_BAD_MODEL, "'%s'\n", "\xe2\x80\xaex\x1b[2J\xc3\xa9"), CM_BAD_MODEL);
    CHECK_STRING(err.text, "'\\xe2\\x80\\xaex\\x1b[2J\xc3\xa9'\n");
    CHECK_INT(cm_error_context(&err, CM_BAD_MODEL, "%s", "f\x7f"), CM_BAD_MODEL);
    CHECK_STRING(err.text, "f\\x7f: '\\xe2\\x80\\xaex\\x1b[2J\xc3\xa9'\n");
    cm_make_printable(room, sizeof room); /* a character is spelled whole or not at all */
    CHECK_STRING(room, "a");
    cm_make_printable(small, sizeof small);
    CHECK_STRING(small, "abcdef\\x1b[");
}
