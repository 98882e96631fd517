/* Failure texts: places are put before the reason, and the reason survives them. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <string.h>

void test_status__places_go_before_the_reason(void)
{
    struct cm_error err;

    CHECK_INT(cm_fail(&err, CM_BAD_MODEL, "size %d", 3), CM_BAD_MODEL);
    CHECK_INT(cm_error_context(&err, CM_BAD_MODEL, "tensor '%s'", "w"), CM_BAD_MODEL);
    CHECK_STRING(err.text, "tensor 'w': size 3");
    CHECK_INT(cm_error_context(&err, CM_OK, "nothing"), CM_OK);
    CHECK_STRING(err.text, "tensor 'w': size 3");
    CHECK_INT(cm_fail(NULL, CM_IO, "unheard"), CM_IO);
}

void test_status__the_reason_survives_any_number_of_places(void)
{
    struct cm_error err;

    CHECK_INT(cm_fail(&err, CM_LIMIT, "the reason itself"), CM_LIMIT);
    for (int i = 0; i < 500; i++) {
        CHECK_INT(cm_error_context(&err, CM_LIMIT, "place number %d", i), CM_LIMIT);
        CHECK(strlen(err.text) < CM_ERROR_SIZE);
    }
    CHECK(cm_str_ends(cm_str(err.text), ": the reason itself"));
    CHECK(cm_str_starts(cm_str(err.text), "place number 499: place number 498: "));
    CHECK(strstr(err.text, " ... "));
}

void test_status__long_reasons_and_long_places_are_cut(void)
{
    struct cm_error err;
    char text[3000];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK_INT(cm_fail(&err, CM_IO, "%s", text), CM_IO);
    CHECK_INT(strlen(err.text), CM_ERROR_SIZE - 1);
    CHECK(cm_str_ends(cm_str(err.text), "a..."));
    CHECK_INT(cm_error_context(&err, CM_IO, "%s", text), CM_IO);
    CHECK_INT(strlen(err.text), CM_ERROR_SIZE - 1);
    CHECK_INT(cm_fail(&err, CM_IO, "short"), CM_IO);
    CHECK_INT(cm_error_context(&err, CM_IO, "%s", text), CM_IO);
    CHECK(cm_str_ends(cm_str(err.text), ": short"));
}
