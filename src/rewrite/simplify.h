/* What the families of rules of `simplify` share, and `merge` with them. Not for other passes.
 *
 * A rule is a row: its name, the operator whose nodes it is asked about, when it may fire, and what
 * then stands for the node's results. Rules look at a node and at what it reads, never at who reads
 * it, so that one walk in order sees every node after all that it depends on was simplified. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_SIMPLIFY_H
#define CM_REWRITE_SIMPLIFY_H

#include "base/array.h"
#include "graph/clone.h"
#include "rewrite/pass.h"

/* What Gradient nodes read: values to differentiate by, and points to do it at. They stay what they
 * are, since the derivative is by them and not by what equals them. */
struct cm_named {
    bool *items; /* by value, below count */
    size_t count;
};

static inline bool cm_named_has(const struct cm_named *named, cm_value value)
{
    return value < named->count && named->items[value];
}

/* Notes what node reads if it is a Gradient node; items are made in arena. */
void cm_named_note(struct cm_named *named, struct cm_arena *arena, const struct cm_node *node);

enum { CM_RECENT_ROWS = 64 };

/* A rule in the list of one operator. */
struct cm_simplify_row {
    const struct cm_simplify_rule *rule;
    size_t next; /* the next row of the operator; 0: none */
};

/* What holds for one run of the pass. */
struct cm_simplifier {
    struct cm_module *module;
    struct cm_arena scratch;
    struct cm_map rules; /* by operator: its first row; 0: none */
    CM_ARRAY(struct cm_simplify_row) rows;
    struct {
        const struct cm_schema *schema;
        size_t row;
    } recent[CM_RECENT_ROWS]; /* the first row of nodes of this schema: most models have few */
    struct cm_named named;
    struct cm_clone clone; /* for inlining branches; made when first needed */
    size_t budget;         /* rules that may still fire */
    bool changed;
};

/* A node that a rule is asked about. */
struct cm_candidate {
    struct cm_simplifier *all;
    struct cm_module *module;
    struct cm_node *node;
    cm_value operand;        /* input 0, unless `when` says that build is about another value */
    cm_value *results;       /* build: what stands for each output; 0: nothing does */
    struct cm_builder build; /* where build adds nodes: before node; holds the first failure */
};

struct cm_simplify_rule {
    const char *name;
    const char *op_types; /* operators of ai.onnx, a space between them; "*": any node */
    bool (*when)(struct cm_candidate *m);
    void (*build)(struct cm_candidate *m);
};

/* The families, each ending with an empty row. */
extern const struct cm_simplify_rule cm_simplify_arithmetic[];
extern const struct cm_simplify_rule cm_simplify_views[];
extern const struct cm_simplify_rule cm_simplify_products[];
extern const struct cm_simplify_rule cm_simplify_parts[];
extern const struct cm_simplify_rule cm_simplify_shapes[];
extern const struct cm_simplify_rule cm_simplify_branches[];

/* The build of most rows: output 0 is m->operand. */
void cm_candidate_keep(struct cm_candidate *m);

/* The type of input i or output o of the node; NULL when it is absent. */
const struct cm_type *cm_candidate_type(const struct cm_candidate *m, int i);
const struct cm_type *cm_candidate_result_type(const struct cm_candidate *m, int o);
/* The contents of a value, or of input i, if they are constant and at most `most` elements; else
 * NULL. What a Gradient node reads is no constant here: it may be what is differentiated by. */
const struct cm_tensor *cm_candidate_contents(struct cm_candidate *m, cm_value value, int64_t most);
const struct cm_tensor *cm_candidate_constant(struct cm_candidate *m, int i, int64_t most);
/* The node of this operator that computes value; NULL if another does, or if a Gradient node reads
 * value, so that nothing may be led past it. */
const struct cm_node *cm_candidate_maker(const struct cm_candidate *m, cm_value value,
                                         const char *op_type);
/* What value is a view of, by a node that may be led past; 0 if there is none. */
cm_value cm_candidate_viewed(struct cm_candidate *m, cm_value value);
/* x under the shape that type has, by a Reshape with a constant shape; 0 where numbers, copied
 * dimensions and one that is left do not say it. Adds nothing then. */
cm_value cm_candidate_reshape(struct cm_candidate *m, cm_value x, const struct cm_type *type);
/* Can cm_candidate_reshape do that for what is of type from? */
bool cm_candidate_can_reshape(const struct cm_type *from, const struct cm_type *to);
/* Does result 0 surely have the type and shape of input 0? */
bool cm_candidate_keeps_shape(const struct cm_candidate *m);
/* Do both surely have the same shape, by numbers or symbols, and the same element type? */
bool cm_same_tensor_type(const struct cm_type *a, const struct cm_type *b);

#endif
