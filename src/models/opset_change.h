/* A model under other opset versions, newer or older: the inference graph, what training info
 * holds, model-local functions, and the graphs inside all of them.
 *
 * It works on the file's messages. A node that means the same under the new version keeps its
 * bytes; one that does not becomes that version's form, its names kept (models/opset_nodes.h).
 * Types and constants come from the working copy; weights are not read unless an operand must
 * become an attribute. What has no form in the new version is listed, every node with the reason,
 * and then nothing of the model is changed. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_OPSET_CHANGE_H
#define CM_MODELS_OPSET_CHANGE_H

#include "base/array.h"
#include "base/diagnostics.h"
#include "onnx/model_file.h"

/* Nodes of one operator that were written in another version. */
struct cm_version_change {
    struct cm_str domain, op, how; /* how: "axes are an input"; may be empty */
    int from, to;                  /* versions of the operator; 0: it has none there */
    size_t nodes;
};

struct cm_version_report {
    CM_ARRAY(struct cm_version_change) changes;
    struct cm_opsets before;     /* what the model imported, of the domains that changed */
    struct cm_findings findings; /* what cannot be written */
    struct cm_findings broken;   /* what could not be typed, and is left as it is */
    struct cm_strs fixed;        /* inputs whose default became an attribute, and are gone */
    size_t kept, changed;        /* nodes of the file */
    int64_t ir, ir_before;
};

/* Changes the model of file, in arena, unless report->findings has anything, which is the status
 * CM_UNSUPPORTED. targets: a version for each domain that is to change; others stay. */
enum cm_status cm_convert_version(struct cm_arena *arena, struct cm_model_file *file,
                                  const struct cm_opsets *targets, struct cm_version_report *report,
                                  struct cm_error *err) CM_MUST_CHECK;

#endif
