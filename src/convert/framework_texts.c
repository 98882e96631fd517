/* Texts under data/frameworks/ by name. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/framework_texts.h"

#include <stdio.h>

const struct cm_template_text *cm_framework_text(const char *framework, struct cm_str kind,
                                                 struct cm_str name)
{
    char path[400];
    const int size = snprintf(path, sizeof path, "%s/%.*s%s%.*s", framework, (int)kind.size,
                              kind.size ? kind.data : "", kind.size ? "/" : "", (int)name.size,
                              name.size ? name.data : "");

    if (size < 0 || (size_t)size >= sizeof path)
        return NULL;
    return cm_template_find(cm_framework_texts, cm_framework_text_count, cm_str(path));
}

const struct cm_template_text *cm_framework_row(const char *framework, struct cm_str domain,
                                                struct cm_str op_type)
{
    return cm_framework_text(framework, cm_str_is(domain, "ai.onnx") ? CM_STR_NONE : domain,
                             op_type);
}
