/* A working graph as a model file again, under the opset that the file has: nodes that no pass
 * touched are written as the file had them, new ones in a form that is legal there.
 *
 * A node is written, in this order of preference, as its origin; as it stands; in an older form of
 * its operator (versions/older_forms.h); as a call of its function body, which is written once as a
 * model-local function. Where all that fails the opset is raised, and the report says for what. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_WRITE_MODEL_H
#define CM_MODELS_WRITE_MODEL_H

#include "graph/graph.h"
#include "onnx/model_file.h"

/* The domain of the functions that regions and operators too new for the opset are written as. */
#define CM_FUNCTIONS_DOMAIN "ai.cameo.functions"

/* Makes simpler what was put in the place of a node: the whole graph, or one body. */
typedef enum cm_status cm_tidy_fn(void *arg, struct cm_graph *graph, bool is_body,
                                  struct cm_error *err);

struct cm_write_options {
    bool fresh; /* the graph is not the file's: inputs, outputs and all else about it are its own,
                   and the model says nothing that the file's says but its functions */
    cm_tidy_fn *tidy; /* may be NULL */
    void *tidy_arg;
    bool untouched; /* no pass has changed the graph: what an upgrade made of one node is written as
                       that node, where it means the same */
    bool portable;  /* bodies in place of regions, functions and operators of ai.cameo and
                       ai.onnx.preview.*; what has none is refused by name, all at once */
    bool feeds_draws; /* with portable: what random nodes draw comes from outside, as inputs; those
                         in bodies are refused */
};

struct cm_write_report {
    int64_t opset, opset_before; /* of ai.onnx; 0: not imported */
    int64_t ir, ir_before;
    struct cm_str raised_for; /* the node that needs opset; "": none, there is a least one */
    size_t functions;         /* written for regions and operators */
    size_t nodes;             /* bodies of control flow included; a region, or a call, is one */
    size_t nodes_inlined;     /* the same with the nodes of the body in its place */
};

/* graph was built from file's main graph, has its inputs and outputs, and is changed: what nobody
 * reads is removed, and with portable what was inlined. All else of the model is that of file,
 * whose bytes the result reads; it lives in arena. Training information is not looked at. */
enum cm_status cm_write_model(struct cm_graph *graph, const struct cm_model_file *file,
                              const struct cm_write_options *options, struct cm_arena *arena,
                              struct cm_model_file **out, struct cm_write_report *report,
                              struct cm_error *err) CM_MUST_CHECK;

/* The same for a graph inside the one that was built from a model with these imports, as the
 * algorithm of training info is, and nothing raised: what has no form under them is refused. Values
 * of the graph around are read by name. No pass has touched the graph, so that what an upgrade made
 * of a node is written as that node. Domains that are not imported yet are added. */
enum cm_status cm_write_inner_graph(const struct cm_graph *graph, struct cm_arena *arena,
                                    struct cm_opsets *imports, struct cm_graph_proto *out,
                                    struct cm_error *err) CM_MUST_CHECK;

/* A closed graph as a function without name, under these imports but for opset of ai.onnx, each
 * node in a form that is legal there. Where one has none, *needed is the opset that has it,
 * *needed_by says which, and nothing is written. */
enum cm_status cm_write_function(const struct cm_graph *graph, struct cm_arena *arena,
                                 const struct cm_opsets *imports, int64_t opset,
                                 struct cm_function_proto *out, int64_t *needed,
                                 struct cm_str *needed_by, struct cm_error *err) CM_MUST_CHECK;

#endif
