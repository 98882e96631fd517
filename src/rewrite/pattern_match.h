/* Finding groups of nodes that compute one known thing. A pattern is text:
 *
 *     (Mul x (Mul 0.5 (Add (Erf [(Div x 1.41421356) (Mul x 0.70710678)]) 1)))
 *
 * `(Op a b)` is a node of ai.onnx whose operands match in order; of Add and Mul, in either order.
 * `name=2` before the operands asks for the value of an integer attribute. A number is a constant
 * of one element that equals it up to the rounding of its type and broadcasts without effect. A
 * name stands for any value, the same one wherever it occurs; `name?` also for an operand that is
 * absent. `(Op@name ..)` names a result, `(Op!name ..)` one that nodes outside may read too.
 * `[a b]` is either. Nothing but named operands, the root's result and results marked with `!` may
 * be read or given outside of the match.
 *
 * A pattern says what is computed, not with which types and shapes: that is for the row's `when`.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PATTERN_MATCH_H
#define CM_REWRITE_PATTERN_MATCH_H

#include "graph/op.h"

enum { CM_PATTERN_NAMES = 16, CM_GROUP_NODES = 32 };

struct cm_pattern;

/* What adding a mask does to rows of scores. A row that is all -inf is NaN after a softmax and 0
 * after the operator. */
enum cm_mask_kind {
    CM_MASK_ANY,    /* may hide a whole row, or hold what is no number */
    CM_MASK_FINITE, /* hides nothing that another could not bring back */
    CM_MASK_OPEN,   /* -inf somewhere, but never in all of a row */
    CM_MASK_CAUSAL, /* 0 on and below the diagonal of a square, -inf above */
};

/* What was looked up of a large constant, and how much more may be looked at. */
struct cm_mask_memo {
    cm_value value; /* the last one; 0: none yet */
    enum cm_mask_kind kind;
    int64_t elements_left;
};

/* One pattern found. Values are those that the names of the pattern stand for. */
struct cm_group {
    struct cm_graph *graph;
    struct cm_node *root;
    const struct cm_pattern *pattern;
    cm_value bound[CM_PATTERN_NAMES];
    struct cm_node *nodes[CM_GROUP_NODES]; /* the root first; one may be there twice */
    size_t n_nodes;
    struct cm_mask_memo *memo; /* for attention */
};

/* May it be replaced? Called when all nodes match; if not, other ways to match are tried. */
typedef bool cm_group_when_fn(const struct cm_group *match);
/* Emits what takes the place of the root's result. Declines with 0; a failed emit counts as that.
 */
typedef cm_value cm_group_build_fn(const struct cm_group *match, struct cm_builder *build);

/* A rewrite rule. */
struct cm_pattern_row {
    const char *name, *text;
    cm_group_when_fn *when;
    cm_group_build_fn *build;
};

/* A compiled row, in arena; NULL where the registry lacks an operator of it. */
struct cm_pattern *cm_pattern_new(struct cm_arena *arena, const struct cm_registry *registry,
                                  const struct cm_pattern_row *row);
/* The operator of the node that a match ends in, without reading the rest; NULL: the registry lacks
 * it. */
const struct cm_op *cm_pattern_last(const struct cm_registry *registry,
                                    const struct cm_pattern_row *row);
/* Operators of which a match has at least one; 0: it may do without any in particular. */
int cm_pattern_needs(const struct cm_pattern *pattern, const struct cm_op *const **out);
/* Does it match the nodes that lead to root? */
bool cm_pattern_match(const struct cm_pattern *pattern, struct cm_node *root, struct cm_group *out);

/* What a name stands for; 0: the pattern does not have it, or not in the branch that matched. */
cm_value cm_group_value(const struct cm_group *match, const char *name);
/* Its type; NULL for 0. */
const struct cm_type *cm_group_type(const struct cm_group *match, const char *name);

/* A number that a value always is: a constant of one element, or arithmetic of such and of known
 * dimensions. */
bool cm_constant_number(const struct cm_module *module, cm_value value, double *out);
/* The same integers whatever the run: a constant list of up to CM_MAX_RANK. */
bool cm_constant_axes(const struct cm_module *module, cm_value value, size_t *count, int64_t *out);

#endif
