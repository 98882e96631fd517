/* Findings by number, for tests. */
// SPDX-License-Identifier: Apache-2.0
#ifndef TEST_FINDINGS_H
#define TEST_FINDINGS_H

#include "base/diagnostics.h"
#include "cameo.h"

#include <stdio.h>
#include <string.h>

/* The reason of number n of those of a severity; "": there are fewer. */
static inline const char *nth_reason(const struct cm_findings *list, enum cm_severity severity,
                                     size_t n)
{
    const struct cm_finding *item;

    for (size_t i = 0; (item = cm_findings_next(list, severity, &i)) != NULL; n--)
        if (n == 0)
            return cm_str_text(item->reason);
    return "";
}

static inline size_t count_reasons(const struct cm_findings *list, enum cm_severity severity)
{
    size_t count = 0;

    for (size_t i = 0; cm_findings_next(list, severity, &i);)
        count++;
    return count;
}

/* Does a violation say this? */
static inline bool is_told(const struct cameo_findings *list, const char *part)
{
    const struct cameo_finding *item;

    for (size_t i = 0; (item = cameo_findings_at(list, i)) != NULL; i++) {
        char text[2000];

        snprintf(text, sizeof text, "%s%s%s", item->place.data, item->place.size ? ": " : "",
                 item->reason.data);
        if (item->severity == CAMEO_VIOLATION && strstr(text, part))
            return true;
    }
    return false;
}

#endif
