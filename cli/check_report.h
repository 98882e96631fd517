/* What `cameo check` found, for those who print it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_CHECK_REPORT_H
#define CLI_CHECK_REPORT_H

#include "cli.h"

/* One model that was checked. */
struct check_report {
    const char *path;
    struct cameo_findings *findings; /* NULL: it could not be checked, and err says why */
    struct cameo_error err;
    struct cameo_findings *run, *train; /* what keeps it from running here; NULL: not asked */
    bool trains;                        /* it has training info */
    char producer[128];                 /* who wrote the file, as the file says; "": it does not */
};

/* Number i of the blockers of a run or a training that the findings do not name already; NULL past
 * the end. */
const struct cameo_finding *check_blocker(const struct check_report *report,
                                          const struct cameo_findings *blockers, size_t *i);
size_t check_blocker_count(const struct check_report *report);

/* Writes a SARIF log, for services that show findings beside the code. */
struct sarif {
    struct cli_output output;
    struct cli_json json;
};
int sarif_begin(struct sarif *sarif, const char *path);
void sarif_add(struct sarif *sarif, const struct check_report *report);
/* all: every model could be checked. whole: memory sufficed; without it no file is written. */
int sarif_end(struct sarif *sarif, bool all, bool whole);

#endif
