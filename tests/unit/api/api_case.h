/* What tests of the public header begin with. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_TESTS_API_CASE_H
#define CAMEO_TESTS_API_CASE_H

#include "cameo.h"
#include "check.h"

#include <string.h>

/* Both read the message in err. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)
#define REFUSED(call, wanted, part)                                                                \
    do {                                                                                           \
        CHECK_INT(call, wanted);                                                                   \
        if (!strstr(err.message, part))                                                            \
            fail_msg("'%s' is not in '%s'", part, err.message);                                    \
    } while (0)

/* A model written as ONNX text. */
static inline struct cameo_model *load_text(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(text, strlen(text), &options, &model, &err));
    return model;
}

#endif
