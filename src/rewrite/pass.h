/* Passes: graph to graph, one job each. lower/ has the list of them, in order, under their names.
 *
 * Every pass keeps these rules:
 * - the graph means the same afterwards: same results up to rounding, the same refusals at worst
 *   later, never a result where there was none;
 * - inputs and outputs of the graph keep number, order, names and types; a value that the file
 *   named keeps its name where it still exists;
 * - the graph is fully typed on entry and on return (cm_graph_retype after changes);
 * - bodies of control flow are worked on too; values of graphs around them may be read, never made;
 * - random nodes are never duplicated, merged or moved into a body; state variables (is_state) are
 *   no constants;
 * - its cost is about linear in the nodes, and a node budget, memory limit or error ends it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PASS_H
#define CM_REWRITE_PASS_H

#include "graph/op.h"

struct cm_findings;

struct cm_pass_options {
    bool training;       /* the graph is a training step, or part of one: weights change */
    size_t memory_limit; /* bytes that constants made by a pass may hold; 0: the pass's own limit */
    bool for_file;       /* the graph is written: what stands for much in few bytes stays so */
    /* Of the pass core. */
    bool (*keeps)(struct cm_str domain, struct cm_str name); /* not core and stay; may be NULL */
    struct cm_findings *findings; /* receives every operator without a body; may be NULL */
};

/* options is never NULL. */
typedef enum cm_status cm_pass_fn(struct cm_graph *graph, const struct cm_pass_options *options,
                                  struct cm_error *err);

cm_pass_fn cm_pass_simplify;   /* no-ops, dead code, shape arithmetic computed once */
cm_pass_fn cm_pass_core;       /* for compiled models: core operators only */
cm_pass_fn cm_pass_patterns;   /* what exporters spell out becomes one operator with a gradient */
cm_pass_fn cm_pass_quantized;  /* products of dequantized codes multiply codes; not in training */
cm_pass_fn cm_pass_fold;       /* constants computed */
cm_pass_fn cm_pass_merge;      /* common sub-expressions */
cm_pass_fn cm_pass_inference;  /* Conv+BatchNormalization, MatMul+Add, Dropout; not in training */
cm_pass_fn cm_pass_transposes; /* moved, merged, cancelled */
cm_pass_fn cm_pass_regions;    /* groups that a kernel may compute as one */
cm_pass_fn cm_pass_recompute;  /* on request: activations computed again in the backward pass */

/* ---- for passes ---- */

/* Every use of old reads replacement instead; old's name goes along where replacement has none.
 * False, and nothing is changed, where that would lose the name of an output of the graph: old is
 * one and replacement is an input, an initializer, an outer value or has a name of its own that
 * must stay. */
bool cm_replace_value(struct cm_graph *graph, cm_value old, cm_value replacement);

/* Is it a node of this operator of ai.onnx? NULL is none. */
bool cm_node_is(const struct cm_node *node, const char *op_type);
const struct cm_type *cm_value_type(const struct cm_module *module, cm_value value);
/* The contents of a constant of at most so many elements. NULL: the value is no such constant, or
 * its file cannot be read, which the session reports later. */
const struct cm_tensor *cm_small_constant(const struct cm_module *module, cm_value value,
                                          int64_t most);
/* What to add in the place of a node that changes: as it is, but for attributes of these names (a
 * list that ends with NULL), and with room for `more` attributes. The operands are in a list of
 * their own with room for n_inputs. */
struct cm_node_spec cm_spec_like(const struct cm_node *node, const char *const *without,
                                 size_t more, size_t n_inputs, cm_value **inputs);

/* Is value an output of graph? */
bool cm_is_output(const struct cm_graph *graph, cm_value value);

#endif
