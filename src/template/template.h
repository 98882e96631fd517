/* Templates: how a node becomes text of another language (MLIR, Python). One file for each
 * operator, and one for each macro that several operators use; docs/mlir-templates.md describes
 * lines, directives and expressions.
 *
 * A template is text of that language with three additions. ${expression} inserts what is known of
 * the node: ranks, sizes, types, attributes. Lines that begin with @ decide (@if, @for, @set, @do
 * MACRO, @refuse); a host adds directives of its own. A name like %sum belongs to the template:
 * each use of the template gives it a prefix, so that two nodes never share a name. Names of
 * operands and results are those of the schema.
 *
 * The engine knows text, numbers and lists only. The host answers what expressions ask about nodes.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TEMPLATE_H
#define CM_TEMPLATE_H

#include "base/arena.h"

/* A text that the build embeds. */
struct cm_template_text {
    const char *name; /* "Conv"; "lib/range" for a macro */
    const char *text;
    size_t size;
};
/* NULL if no text has the name. */
const struct cm_template_text *cm_template_find(const struct cm_template_text *texts, size_t count,
                                                struct cm_str name);

enum cm_term_kind {
    CM_TERM_NONE, /* absent, or not known before it runs */
    CM_TERM_INT,  /* and truth */
    CM_TERM_FLOAT,
    CM_TERM_TEXT,
    CM_TERM_LIST,
    CM_TERM_VALUE, /* an operand or a result */
};

/* What an expression gives. */
struct cm_term {
    enum cm_term_kind kind;
    int64_t i; /* also the host's number of a value */
    double f;
    struct cm_str text; /* of a value: its name, "%7" */
    const struct cm_term *items;
    size_t count;
};

struct cm_template_run;

/* Who uses a template. */
struct cm_template_host {
    void *arg;
    const char *sigil; /* stands before the names that belong to a template: "%" in MLIR */
    /* The macro of a name ("lib/range"); NULL if there is none. */
    const struct cm_template_text *(*macro)(void *arg, struct cm_str name);
    /* A name that is neither a variable nor a macro's parameter; false: unknown. */
    bool (*name)(void *arg, struct cm_str name, struct cm_term *out);
    /* A function that is not one of the built-in ones. Sets *known to false where there is none. It
     * may emit lines, which come before the line it stands in. */
    struct cm_term (*call)(void *arg, struct cm_template_run *run, struct cm_str function,
                           const struct cm_term *args, size_t count, bool *known);
    void (*emit)(void *arg, struct cm_str line);
    /* A line that begins with @ and is none of the engine's directives. False: it is unknown. */
    bool (*directive)(void *arg, struct cm_template_run *run, struct cm_str line);
    /* A float as the language writes it. The result may live in the use's arena. */
    struct cm_str (*print_float)(struct cm_template_run *run, double value);
    /* A name that belongs to the template, of a use or of a macro's use that prefix tells from all
     * others. NULL: it is sigil, prefix, '_' and the name. */
    struct cm_str (*own)(void *arg, struct cm_str prefix, struct cm_str name);
};

/* One use of a template. Fails with the template's name and line. */
struct cm_template_use {
    const struct cm_template_text *text;
    struct cm_str prefix; /* of names that are the template's own: "n7" */
    const struct cm_template_host *host;
    struct cm_arena *arena;
};
enum cm_status cm_template_expand(const struct cm_template_use *use,
                                  struct cm_error *err) CM_MUST_CHECK;
/* Does an expression hold that could stand in the template? One that is wrong does not. */
bool cm_template_holds(const struct cm_template_use *use, struct cm_str expression);

/* ---- for hosts ---- */

/* Is the line the directive "@name"? *rest is the text after its name. */
bool cm_template_directive(struct cm_str line, const char *name, struct cm_str *rest);
/* The text with names and ${..} put in. */
struct cm_str cm_template_substitute(struct cm_template_run *run, struct cm_str text);

/* A name that is used nowhere else: "%n7_size3". */
struct cm_str cm_template_fresh(struct cm_template_run *run, const char *hint);
void cm_template_emitf(struct cm_template_run *run, const char *format, ...) CM_PRINTF(2, 3);
/* Fails the expansion with a sentence about the template's place, or, refused, about the node. */
void cm_template_wrong(struct cm_template_run *run, const char *format, ...) CM_PRINTF(2, 3);
void cm_template_refuse(struct cm_template_run *run, const char *format, ...) CM_PRINTF(2, 3);

/* Toward zero; the nearest there is where it does not fit, and 0 for NaN. */
int64_t cm_template_whole(double value);

static inline struct cm_term cm_term_int(int64_t i)
{
    return (struct cm_term){.kind = CM_TERM_INT, .i = i};
}

static inline struct cm_term cm_term_text(struct cm_str text)
{
    return (struct cm_term){.kind = CM_TERM_TEXT, .text = text};
}

#define CM_TERM_ABSENT ((struct cm_term){.kind = CM_TERM_NONE})

#endif
