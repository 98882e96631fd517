/* Operator cases as text: one operator, its operands, what must come out. README.md describes the
 * form. This part reads; op_check.h judges. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_CASE_H
#define CM_TESTS_OP_CASE_H

#include "base/array.h"
#include "graph/type.h"
#include "onnx/messages.h"
#include "tensor/tensor.h"

/* How much of a result is compared. */
enum case_demand { DEMAND_ALL, DEMAND_TYPE, DEMAND_NOTHING };

struct case_value {
    struct cm_str name; /* "" for an absent operand or a result that is not asked for */
    bool outer;         /* for bodies to read; not an operand */
    bool again;         /* an operand that was given before */
    enum case_demand demand;
    const struct cm_type *type;
    struct cm_datum datum; /* dropped with the arena */
};

struct case_values {
    CM_ARRAY(struct case_value);
};

struct op_case {
    const char *file;
    int line; /* of the operator */
    struct cm_str domain, op_type;
    struct cm_node_proto node; /* with the attributes; operands are not in it yet */
    struct case_values inputs, outputs;
    CM_ARRAY(struct cm_str) refusals; /* parts of the message; any: the case must be refused */
    CM_ARRAY(struct cm_str) grad_of;  /* inputs whose gradient is checked; none: all */
    bool grad, second, body, unknown;
    bool rankless;                  /* also runs without ranks known */
    bool own_types;                 /* gradients are checked in the types that the case has */
    double tol, grad_tol, body_tol; /* below 0: by type */
    int64_t opset;                  /* 0: the newest */
    uint64_t seed;
};

struct case_reader {
    const char *file;
    struct cm_str rest;
    int line; /* number of the first line of rest */
};

/* The next case, all in arena. *found is false at the end. After a failure, reading goes on with
 * the block after the broken one; out->line says where that is. */
enum cm_status case_next(struct case_reader *reader, struct cm_arena *arena, struct op_case *out,
                         bool *found, struct cm_error *err);

#endif
