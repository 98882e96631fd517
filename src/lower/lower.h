/* From a model to the graph that exec/ compiles: one list of named passes, in order. Sessions,
 * trainers and optimize go through it; step, grad and gradcheck, whose graphs are written or
 * differentiated again, take the import from here and expand gradients only. Models that become
 * code have a list of their own.
 *
 * Any pass can be left out by its name, but for those that are required; what is on request runs
 * only where it is asked for. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_LOWER_LOWER_H
#define CM_LOWER_LOWER_H

#include "lower/pass_table.h"
#include "rewrite/pass.h"

struct cm_findings;

struct cm_pass {
    struct cm_pass_row row;
    cm_pass_fn *run; /* NULL: done while the graph is built */
};

/* In the order they run. A name may stand twice: leaving it out leaves out both. */
extern const struct cm_pass cm_passes[];
extern const size_t cm_pass_count;
extern const struct cm_pass_table cm_lower_passes; /* of them */
/* The passes from a model to the core operators that mlir/ makes code of. */
extern const struct cm_pass_table cm_compile_passes;
/* The passes before a graph becomes code of another framework. */
extern const struct cm_pass_table cm_code_passes;

struct cm_lower_report {
    const char *pass;
    bool skipped;
    size_t nodes_before, nodes_after; /* of the graph and its bodies; a region counts as one */
};

/* Called after each pass of the list, skipped ones included; an error ends the lowering. */
typedef enum cm_status cm_lower_after_fn(void *arg, const struct cm_lower_report *report,
                                         struct cm_graph *graph, struct cm_error *err);

struct cm_lower_options {
    struct cm_pass_options pass;
    const struct cm_pass_table *table; /* NULL: cm_lower_passes */
    struct cm_pass_choice passes;      /* of the table */
    bool keep_operators;      /* those without a kernel too: the graph is written, not run */
    cm_lower_after_fn *after; /* may be NULL */
    void *after_arg;
    struct cm_findings *findings; /* receives what cannot be built; may be NULL */
};

/* Refuses what cm_pass_check refuses. options may be NULL. */
enum cm_status cm_lower_check(const struct cm_lower_options *options,
                              struct cm_error *err) CM_MUST_CHECK;

/* The model's graph, every node in its newest version. model must outlive the module. options may
 * be NULL. */
enum cm_status cm_lower_import(struct cm_module *module, const struct cm_model_proto *model,
                               const struct cm_lower_options *options, struct cm_graph **out,
                               struct cm_error *err) CM_MUST_CHECK;

/* The same, imported as options say; its upgrade and adopts are set here. */
struct cm_import_options;
enum cm_status cm_lower_import_as(struct cm_module *module, const struct cm_model_proto *model,
                                  const struct cm_import_options *options, struct cm_graph **out,
                                  struct cm_error *err) CM_MUST_CHECK;

/* Runs the passes over a graph that came from cm_lower_import. Afterwards calls of functions and,
 * unless keep_operators says otherwise, operators that have no kernel but a body, are inlined, and
 * nodes that nobody reads are gone; not so where the options stop after a pass. */
enum cm_status cm_lower_graph(struct cm_graph *graph, const struct cm_lower_options *options,
                              struct cm_error *err) CM_MUST_CHECK;

/* Runs simplify and, unless only that is asked for, fold, merge and simplify over what was put in
 * the place of other nodes after the passes, as far as options do not leave them out. */
enum cm_status cm_lower_tidy(struct cm_graph *graph, const struct cm_lower_options *options,
                             bool simplify_only, struct cm_error *err) CM_MUST_CHECK;

/* cannot_run.c: each adds all that cannot run to a list of findings. Operators of a model that
 * nobody knows how to run, before the graph is built: */
struct cm_registry;
void cm_lower_list_unknown(struct cm_findings *list, const struct cm_model_proto *model,
                           const struct cm_registry *registry);
/* nodes of a graph that the plain interpreter cannot run: */
void cm_lower_list_unrunnable(struct cm_findings *list, const struct cm_graph *graph);
/* nodes of a graph that are no core operators. */
void cm_lower_list_others(struct cm_findings *list, const struct cm_graph *graph);

#endif
