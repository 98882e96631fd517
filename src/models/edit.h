/* Edits of the file's own messages: parts of a model cut out, two joined, names and shapes changed.
 * What an edit does not touch keeps its bytes. Every edit looks first and changes afterwards: when
 * something stands in the way, the findings have all of it as violations and no message was
 * changed; notes say what an edit did besides what it was asked for. Nothing here knows what an
 * operator does; types that the file does not say are asked of the caller. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_EDIT_H
#define CM_MODELS_EDIT_H

#include "base/diagnostics.h"
#include "graph/type.h"
#include "onnx/defined_names.h"
#include "onnx/model_file.h"

/* ---- names ---- */

/* Called for each place of a graph, and of the graphs inside its nodes, that names a value. The
 * place is rewritten when it returns true, having set *name. */
typedef bool cm_edit_name_fn(void *arg, struct cm_str *name);
enum cm_status cm_edit_names(struct cm_graph_proto *graph, cm_edit_name_fn *fn,
                             void *arg) CM_MUST_CHECK;
/* The same for all graphs of a model but functions, whose names are their own; training info with
 * its bindings included. */
enum cm_status cm_edit_model_names(struct cm_model_proto *model, cm_edit_name_fn *fn,
                                   void *arg) CM_MUST_CHECK;

/* The name among candidates that is nearest to what was typed; best is empty when none is near. */
struct cm_nearest {
    struct cm_str typed, best;
    size_t distance;
};
void cm_nearest_try(struct cm_nearest *nearest, struct cm_str candidate);
/* ", did you mean 'x'?" or nothing; for the end of a sentence. Lives in arena. */
const char *cm_nearest_hint(const struct cm_nearest *nearest, struct cm_arena *arena);

/* ---- edits ---- */

/* Finds the types of values of the main graph by inference, as far as that can be: types[i] is NULL
 * where nothing is known of names[i]. findings, unless NULL, receives what cannot be typed. */
typedef enum cm_status cm_edit_infer_fn(void *arg, const struct cm_model_proto *model,
                                        const struct cm_str *names, size_t count,
                                        struct cm_type_proto **types, struct cm_findings *findings,
                                        struct cm_error *err);

struct cm_edit_types {
    cm_edit_infer_fn *infer;
    void *arg;
};

struct cm_str_list {
    const struct cm_str *items;
    size_t count;
};

/* Leaves of the graph what leads from inputs to outputs. */
enum cm_status cm_edit_extract(struct cm_model_file *file, struct cm_str_list inputs,
                               struct cm_str_list outputs, const struct cm_edit_types *types,
                               struct cm_arena *scratch, struct cm_findings *findings,
                               struct cm_error *err) CM_MUST_CHECK;

/* Makes values of the graph outputs as well, after those it has; none named: all that nodes
 * compute. */
enum cm_status cm_edit_expose(struct cm_model_file *file, struct cm_str_list names,
                              struct cm_arena *scratch, struct cm_findings *findings,
                              struct cm_error *err) CM_MUST_CHECK;

enum cm_renaming_kind { CM_RENAME_VALUE, CM_RENAME_NODE, CM_RENAME_DIM };

struct cm_renaming {
    enum cm_renaming_kind kind;
    struct cm_str from, to; /* each may hold one '*', for any text, the same in both */
};

enum cm_status cm_edit_rename(struct cm_model_file *file, const struct cm_renaming *renamings,
                              size_t count, struct cm_arena *scratch, struct cm_findings *findings,
                              struct cm_error *err) CM_MUST_CHECK;

struct cm_merge_pair {
    struct cm_str output, input; /* of the first model, of the second; without prefix */
};

struct cm_merge_options {
    const struct cm_merge_pair *map;
    size_t n_map;
    struct cm_str prefix1, prefix2; /* put before all names of a model; may be empty */
};

/* Joins second to file. Messages of second become part of it: second must outlive file, and is
 * good for nothing else any more. */
enum cm_status cm_edit_merge(struct cm_model_file *file, struct cm_model_file *second,
                             const struct cm_merge_options *options, struct cm_arena *scratch,
                             struct cm_findings *findings, struct cm_error *err) CM_MUST_CHECK;

struct cm_reshaping {
    struct cm_str name; /* of an input, or of a dimension */
    struct cm_str dims; /* "1,3,H,?": a number, a name, or "?" for any size */
};

/* Changes the shapes of inputs, and of what follows from them. */
enum cm_status cm_edit_set_shapes(struct cm_model_file *file, const struct cm_reshaping *changes,
                                  size_t count, const struct cm_edit_types *types,
                                  struct cm_arena *scratch, struct cm_findings *findings,
                                  struct cm_error *err) CM_MUST_CHECK;

#endif
