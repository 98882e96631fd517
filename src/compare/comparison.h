/* What two models differ in. Graphs are matched by the names of values, initializers by their own
 * names. Messages are compared, so that models that break rules can be compared too; nothing runs
 * here: who runs the models adds rows about their results. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_COMPARE_COMPARISON_H
#define CM_COMPARE_COMPARISON_H

#include "base/array.h"
#include "compare/difference.h"
#include "onnx/model_outline.h"

/* The numbers are public. */
enum cm_compare_part {
    CM_COMPARE_STRUCTURE,
    CM_COMPARE_WEIGHTS,
    CM_COMPARE_RESULTS,
    CM_COMPARE_PARTS
};
enum cm_compare_kind {
    CM_COMPARE_ADDED,
    CM_COMPARE_REMOVED,
    CM_COMPARE_CHANGED,
    CM_COMPARE_VALUE, /* a result that differs */
    CM_COMPARE_FIRST, /* the first value of a run that differs */
    CM_COMPARE_NOTE   /* not a difference */
};

struct cm_compare_row {
    enum cm_compare_part part;
    enum cm_compare_kind kind;
    struct cm_str name, text; /* each ends with a zero byte; the text may be empty */
    bool measured;            /* there is a difference */
    struct cm_difference difference;
};

struct cm_comparison {
    struct cm_arena *arena; /* rows and their texts live here */
    struct cm_arena *scratch;
    CM_ARRAY(struct cm_compare_row);
    size_t compared[CM_COMPARE_PARTS]; /* nodes, tensors, values */
    size_t differing[CM_COMPARE_PARTS];
};

/* difference may be NULL, and so may format. */
void cm_compare_add(struct cm_comparison *c, enum cm_compare_part part, enum cm_compare_kind kind,
                    struct cm_str name, const struct cm_difference *difference, const char *format,
                    ...) CM_PRINTF(6, 7);

/* A model as messages, and who loads its tensors. */
struct cm_compared {
    const struct cm_model_proto *model;
    const struct cm_outlines *outlines;
    /* out->buffer is NULL or the caller's to drop. */
    enum cm_status (*load)(void *arg, const struct cm_tensor_proto *proto, struct cm_tensor *out,
                           struct cm_error *err);
    void *arg;
};

/* Rows about nodes, inputs, outputs, opsets, functions, training info and metadata: what became of
 * a in b. */
void cm_compare_structure(struct cm_comparison *c, const struct cm_compared *a,
                          const struct cm_compared *b);
/* Rows about initializers of graphs and of training info. */
void cm_compare_weights(struct cm_comparison *c, const struct cm_compared *a,
                        const struct cm_compared *b, struct cm_tolerance tolerance);
/* "node 'conv1' (Conv)", "node 3 (Conv)". */
struct cm_str cm_compare_node(struct cm_arena *arena, const struct cm_outline_node *node);

#endif
