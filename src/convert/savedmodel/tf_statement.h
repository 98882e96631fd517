/* A line of a row, read but not yet written: what tf_lines.c and tf_layout.c share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TF_STATEMENT_H
#define CM_CONVERT_TF_STATEMENT_H

#include "convert/savedmodel/tf_rows.h"

enum { CM_TF_LITERAL_RANK = 4, CM_TF_OPERANDS = 4096 };

struct cm_tf_number {
    double real;
    int64_t whole;
    bool is_real;
    struct cm_str text; /* of a string */
};

struct cm_tf_numbers {
    enum cm_tf_type type; /* CM_TF_NONE: not said */
    int64_t dims[CM_TF_LITERAL_RANK];
    int rank;
    bool is_text;
    CM_ARRAY(struct cm_tf_number);
};

struct cm_tf_operand {
    bool is_literal, is_list; /* a list: of operands */
    struct cm_tf_tensor tensor;
    struct cm_tf_numbers literal;
    CM_ARRAY(struct cm_tf_operand);
};

struct cm_tf_said {
    struct cm_str name, value;
};

struct cm_tf_statement {
    struct cm_tf_scope *scope;
    struct cm_arena *arena;
    struct cm_error *err;
    struct cm_str text;
    size_t at;
    CM_ARRAY(struct cm_str) results;
    CM_ARRAY(struct cm_tf_operand) operands;
    CM_ARRAY(struct cm_tf_said) attrs;
    const struct cm_tf_op *op;
    enum cm_tf_type types[CM_TF_ATTRS]; /* by attribute of the operator: what it is */
    enum cm_tf_type wide[CM_TF_ATTRS];  /* what the kernel is given */
    int64_t numbers[CM_TF_ATTRS];       /* the same of whole numbers; -1: not known */
    bool is_given[CM_TF_ATTRS];         /* the line says it */
};

/* Takes a Transpose away from before the operator, where the same can be computed before it; *perm
 * is the order that the result must be put in then, and is NULL where nothing was done. */
void cm_tf_sink(struct cm_tf_statement *statement, struct cm_tf_order *order);
#endif
