/* Findings: what is wrong with a model or a request, or worth knowing about it. A list of findings
 * is the only carrier of reasons: every engine adds to one, and the edges of the library print it.
 * A list holds the first CM_FINDINGS_MAX findings and counts the rest; a reason that is added twice
 * at one place counts once. Nothing here prints, and nobody reads a sentence back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_DIAGNOSTICS_H
#define CM_BASE_DIAGNOSTICS_H

#include "base/array.h"
#include "base/map.h"
#include "base/status.h"

#include <stdarg.h>

enum { CM_FINDINGS_MAX = 10000 };

/* The numbers are public. */
enum cm_severity { CM_WARNING, CM_VIOLATION, CM_NOTE };

/* Texts end with NUL. */
struct cm_finding {
    enum cm_status status; /* what a call fails with because of it; CM_OK: it keeps nothing back */
    enum cm_severity severity;
    const char *rule;    /* static: "CK15" of docs/check-rules.md, or who refuses: "run", "train" */
    struct cm_str place; /* "graph 'main', node 'conv1' (Conv)"; may be empty */
    struct cm_str reason;        /* "reads 'x', which nothing before it defines" */
    const char *help;            /* static: what to do about it; "": nothing general */
    struct cm_str node, op_type; /* the innermost node of the place; "" where there is none */
    struct cm_str value; /* of a graph, that it is about: an input, initializer, output; or "" */
    const void *subject; /* the message that it is about; or NULL */
};

struct cm_findings {
    struct cm_arena *arena; /* findings and their texts live here */
    const char *rule;       /* static: of findings that name none; NULL: "run" */
    const char *what;       /* static: what violations prevent; NULL: "the model cannot run" */
    CM_ARRAY(struct cm_finding);
    size_t total;      /* with those past the limit */
    size_t violations; /* .. of this severity */
    struct cm_map seen, places;
    struct cm_map blamed; /* addresses of messages that are known to be wrong inside */
};

/* A copy of the finding, with copies of its texts. NULL: it is there already, or does not fit. */
struct cm_finding *cm_findings_put(struct cm_findings *list, const struct cm_finding *finding);
/* A violation, under the rule of the list. */
struct cm_finding *cm_findings_add(struct cm_findings *list, enum cm_status status,
                                   struct cm_str place, const char *format, ...) CM_PRINTF(4, 5);
struct cm_finding *cm_findings_add_args(struct cm_findings *list, enum cm_status status,
                                        struct cm_str place, const char *format, va_list args);
/* The same without a place: what was asked for makes no sense. */
void cm_findings_refuse(struct cm_findings *list, const char *format, ...) CM_PRINTF(2, 3);
/* Is there a finding at this place? */
bool cm_findings_has(const struct cm_findings *list, struct cm_str place);
/* The same with CM_UNSUPPORTED, unless there is a finding at this place already: it was known not
 * to work, and this is why in other words. */
void cm_findings_unsupported(struct cm_findings *list, struct cm_str place, const char *format, ...)
    CM_PRINTF(3, 4);
/* The same against a rule of docs/check-rules.md, about a message whose place the checker knows. */
void cm_findings_judge(struct cm_findings *list, const char *rule, const void *subject,
                       const char *format, ...) CM_PRINTF(4, 5);
/* A note: what was changed or assumed. */
void cm_findings_note(struct cm_findings *list, const char *format, ...) CM_PRINTF(2, 3);
void cm_findings_note_args(struct cm_findings *list, const char *format, va_list args);
/* Adds the findings of another list, with "<place>: " before their places unless place is empty.
 */
void cm_findings_merge(struct cm_findings *list, const struct cm_findings *from,
                       struct cm_str place);

/* Warnings become violations. */
void cm_findings_raise(struct cm_findings *list);
/* The next finding of this severity at or after *index, which moves behind it; NULL: the end. */
const struct cm_finding *cm_findings_next(const struct cm_findings *list, enum cm_severity severity,
                                          size_t *index);
/* "<place>: <reason>", or the reason alone. */
struct cm_str cm_finding_sentence(struct cm_arena *arena, const struct cm_finding *finding);
/* "the model cannot run, for 3 reasons". */
struct cm_str cm_findings_headline(struct cm_arena *arena, const struct cm_findings *list);

/* CM_OK when there are no violations. Otherwise the status of the first, with one sentence: the
 * reason where there is one; else the headline and as many reasons as there is room for. */
enum cm_status cm_findings_fail(const struct cm_findings *list, struct cm_error *err) CM_MUST_CHECK;

#endif
