/* Names that the printer and the parser of the ONNX dialect share: element types, and operators
 * with the versions in which they are told apart. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_DIALECT_NAMES_H
#define CM_MLIR_DIALECT_NAMES_H

#include "schema/schema.h"

/* Graphs inside each other as in ONNX's text form; what is inside attributes and types counts for
 * itself. */
enum { CM_DIALECT_ATTRIBUTE_DEPTH = 60 };

#define CM_DIALECT_UNKNOWN "!onnx.Unknown"
#define CM_DIALECT_STRING  "!onnx.String"

/* "f32" of float; NULL for what is not a type. */
const char *cm_dialect_element(int64_t type);
/* And back; "si8" is int8 as well. */
bool cm_dialect_element_parse(struct cm_str name, enum cm_dtype *out);

/* Opsets of its domain in which an operator has the form that this name stands for. */
struct cm_dialect_operator {
    struct cm_str domain, name;
    int version; /* what the name ends in, as in "ReduceSumV11"; 0: it is the newest form */
    int64_t first, last;
};

/* The form that an operator has in an opset. False: it has none in the dialect, and becomes
 * onnx.Custom. */
bool cm_dialect_operator_of(struct cm_str domain, struct cm_str name, int64_t opset,
                            struct cm_dialect_operator *out);
/* The operator of a name such as "Conv" or "ReduceSumV11". */
bool cm_dialect_operator_named(struct cm_str name, struct cm_dialect_operator *out);

#endif
