/* What the parts of the template engine share: lines (template.c), expressions (template_expr.c)
 * and directives of hosts. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TEMPLATE_RUN_H
#define CM_TEMPLATE_RUN_H

#include "base/array.h"
#include "template/template.h"

enum { CM_TEMPLATE_DEPTH = 60 }; /* of expressions in each other, and of macros */

struct cm_template_variable {
    struct cm_str name;
    struct cm_term term;
};

/* The variables of a template or of one use of a macro. */
struct cm_template_scope {
    CM_ARRAY(struct cm_template_variable);
    struct cm_str prefix;
    struct cm_template_scope *caller; /* of a macro: who gets what it gives */
};

struct cm_template_run {
    const struct cm_template_use *use;
    const struct cm_template_text *text; /* the template or macro at hand */
    struct cm_template_scope *scope;
    struct cm_error *err;
    enum cm_status status;
    size_t line; /* from 1 */
    size_t fresh;
    int depth;
};

struct cm_term *cm_template_variable(struct cm_template_scope *scope, struct cm_str name);
void cm_template_set(struct cm_template_run *run, struct cm_template_scope *scope,
                     struct cm_str name, struct cm_term term);

/* The value of the expression that text is, all of it. */
struct cm_term cm_template_eval(struct cm_template_run *run, struct cm_str text);
bool cm_term_is_true(const struct cm_term *term);
/* As it stands in the text: "3", "%7", "a, b" for a list. */
struct cm_str cm_term_print(struct cm_template_run *run, const struct cm_term *term);
/* A name of the template ("%sum" or "sum") as the program has it. is_part: more of it follows. */
struct cm_str cm_template_name(struct cm_template_run *run, struct cm_str name, bool is_part);

static inline bool cm_template_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

#endif
