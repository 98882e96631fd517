/* Functions inlined in a model file: calls of the model's own functions, and operators by the
 * bodies they stand for. It works on the file's messages, in the inference graph, in training info
 * and in the functions that stay: a node that is not expanded keeps its bytes, and every name of
 * the file stays what it was.
 *
 * Calls need no types. Operators do, since their bodies depend on them: the graph is imported, each
 * node to expand is built again alone, expanded there and written under the model's opset. Where
 * that opset has no form for what the body needs it is raised, and nodes that mean something else
 * under the new one are written in their new form. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_EXPAND_MODEL_H
#define CM_MODELS_EXPAND_MODEL_H

#include "onnx/model_file.h"

struct cm_findings;
struct cm_registry;

/* What is expanded: the model's functions, and with operators every operator that has a body; with
 * only, what it names. Lists are parted by commas: "Name", "domain::Name" or "domain::*". */
struct cm_expand_options {
    const char *only, *except; /* may be NULL */
    bool operators;
    bool core; /* all that is not a core operator; needs `only` to be NULL */
    const struct cm_registry *registry; /* NULL: the built-in operators */
};

struct cm_expand_report {
    size_t calls;     /* of functions that were inlined */
    size_t operators; /* nodes that gave way to their bodies */
    size_t rewritten; /* nodes written otherwise because the opset was raised */
    size_t functions; /* that are no longer in the model */
    size_t nodes_before,
        nodes; /* of the whole model, training and bodies of control flow included */
    int64_t opset_before, opset; /* of ai.onnx; 0: not imported */
    int64_t ir_before, ir;
    struct cm_str raised_for; /* the operator that the opset was raised for last */
};

/* The new model reads the bytes of file; it lives in arena. findings receives what has no body, or
 * none for the case at hand: with core or named by `only` that is a failure, and nothing is made;
 * otherwise such nodes stay. */
enum cm_status cm_expand_model(const struct cm_model_file *file,
                               const struct cm_expand_options *options, struct cm_arena *arena,
                               struct cm_model_file **out, struct cm_expand_report *report,
                               struct cm_findings *findings, struct cm_error *err) CM_MUST_CHECK;

#endif
