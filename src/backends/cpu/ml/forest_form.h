/* The compiled form of a forest, shared by forest_compile.c and forest_run.c. Not for others.
 *
 * Every test of every kind is made of tests `x <= v`, whose two successors lie side by side: entry
 * e leads to entry first(e) if x <= v, else, and for NaN, to the one after it. Features are copied
 * to columns before trees are walked; a test x >= v reads a column that holds -x. The last column
 * holds NaN. A leaf is an entry that tests it and leads to itself, so a walk needs no branch to
 * stop there, and its value is free to hold the leaf's weight.
 *
 * There are two forms of entries, 8 bytes for float features and 16 for double ones and for forests
 * whose numbers do not fit in 32 bits. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_FOREST_FORM_H
#define CM_BACKENDS_CPU_FOREST_FORM_H

#include "backends/cpu/ml/forest_engine.h"

enum { CM_FOREST_LANES = 8 }; /* rows, or trees, that are walked at the same time */

struct cm_entry_f32 {
    float value;   /* of a leaf: its weight; or its number, as bits */
    uint32_t next; /* column << bits | entry */
};

struct cm_entry_f64 {
    double value;
    uint64_t next;
};

struct cm_forest_column {
    int32_t feature;
    bool negated;
};

struct cm_forest {
    bool single; /* entries are struct cm_entry_f32 */
    bool direct; /* each leaf has one weight, and all those of a tree are for one target */
    unsigned bits;
    void *entries;
    size_t n_entries, n_trees, n_columns, n_leaves;
    struct cm_forest_column *columns; /* but the last, of NaN */
    /* Per tree; its root is entry 1 + the tree's number. */
    uint16_t *least;  /* the fewest steps from the root to a leaf */
    int32_t *targets; /* if direct */
    /* Trees are walked in blocks that fit in a cache: ends[i] is the tree after block i. */
    uint32_t *ends;
    size_t n_blocks;
    /* If not direct: weights of leaf i are [first[i], first[i + 1]). */
    uint32_t *first;
    struct cm_tree_weight *weights;
    bool *has_score; /* if direct: per target */
    int32_t n_targets;
    enum cm_tree_join join;
    /* Who shares it. */
    struct cm_forests *home; /* those of the session .. */
    struct cm_forest *next;  /* .. and the next of them */
    const struct cm_node *node;
    int64_t features;
    enum cm_dtype type;
    size_t users;
};

/* Fills an empty forest; one that failed halfway can be freed. */
enum cm_status cm_forest_compile(struct cm_call *call, struct cm_trees *trees,
                                 struct cm_forest *forest) CM_MUST_CHECK;
void cm_forest_free(struct cm_forest *forest);

/* How the rows of one run are cut up. */
struct cm_forest_plan {
    int64_t rows;
    bool by_tree;       /* few rows: lanes are trees */
    int64_t chunk;      /* rows that stay in the first-level cache together */
    int64_t span;       /* chunks for which there is scratch memory at a time */
    size_t chunk_bytes; /* of their columns */
};

struct cm_forest_plan cm_forest_plan(const struct cm_forest *forest, int64_t rows);
size_t cm_forest_scratch(const struct cm_forest *forest, int64_t rows); /* SIZE_MAX: too much */

#endif
