/* TensorFlow graphs, as far as writing them needs: nodes with operands and attributes, functions,
 * and their bytes as GraphDef and FunctionDef. The table
 * data/frameworks/tensorflow/lib/operators.txt has the operators and the types that their kernels
 * take. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TF_GRAPH_H
#define CM_CONVERT_TF_GRAPH_H

#include "base/array.h"
#include "base/map.h"
#include "bytes/byte_buffer.h"
#include "tensor/tensor.h"

/* Numbered as TensorFlow's DataType. */
enum cm_tf_type {
    CM_TF_NONE = 0,
    CM_TF_F32 = 1,
    CM_TF_F64 = 2,
    CM_TF_I32 = 3,
    CM_TF_U8 = 4,
    CM_TF_I16 = 5,
    CM_TF_I8 = 6,
    CM_TF_STRING = 7,
    CM_TF_C64 = 8,
    CM_TF_I64 = 9,
    CM_TF_BOOL = 10,
    CM_TF_BF16 = 14,
    CM_TF_U16 = 17,
    CM_TF_C128 = 18,
    CM_TF_F16 = 19,
    CM_TF_RESOURCE = 20,
    CM_TF_VARIANT = 21,
    CM_TF_U32 = 22,
    CM_TF_U64 = 23,
    CM_TF_TYPES = 32,
};

/* "f32"; rows and the table of operators call types so. */
const char *cm_tf_type_name(enum cm_tf_type type);
enum cm_tf_type cm_tf_type_named(struct cm_str name); /* CM_TF_NONE: there is none */
/* What holds elements of a type of ONNX: types of less than 8 bits lie in 8; CM_TF_NONE: none. */
enum cm_tf_type cm_tf_type_of(enum cm_dtype dtype);
/* The smallest type among `allowed` (bits by number) that holds what `type` holds. */
enum cm_tf_type cm_tf_type_widened(enum cm_tf_type type, uint64_t allowed);

/* ---- facts of operators ---- */

enum cm_tf_attr_kind {
    CM_TF_ATTR_INT,
    CM_TF_ATTR_FLOAT,
    CM_TF_ATTR_BOOL,
    CM_TF_ATTR_TEXT,
    CM_TF_ATTR_TYPE,
    CM_TF_ATTR_TYPES, /* a list */
    CM_TF_ATTR_INTS,
    CM_TF_ATTR_SHAPE,
    CM_TF_ATTR_FUNCTION,
    CM_TF_ATTR_OTHER,
};

struct cm_tf_arg {
    struct cm_str name;
    enum cm_tf_type type;    /* CM_TF_NONE: that of type_attr */
    struct cm_str type_attr; /* the attribute that says the type, or the list of types */
    struct cm_str number;    /* the attribute that says how many there are; empty: one */
    bool is_list;            /* type_attr is a list */
};

struct cm_tf_attr_fact {
    struct cm_str name;
    enum cm_tf_attr_kind kind;
    uint64_t types;         /* of a type: those that kernels take, bits by number */
    enum cm_tf_type preset; /* of a type: its default; CM_TF_NONE: it has none */
};

enum { CM_TF_ARGS = 16, CM_TF_ATTRS = 20 };

struct cm_tf_op {
    struct cm_str name;
    struct cm_tf_arg in[CM_TF_ARGS], out[CM_TF_ARGS];
    struct cm_tf_attr_fact attrs[CM_TF_ATTRS];
    size_t n_in, n_out, n_attrs;
};

/* ---- graphs ---- */

struct cm_tf_node;

struct cm_tf_tensor {
    struct cm_tf_node *node; /* NULL: none */
    size_t output;
    enum cm_tf_type type;
    bool is_scalar; /* has no axes, as far as is known */
};

struct cm_tf_output {
    struct cm_str arg; /* of the operator's result, and which of them */
    size_t index;
};

struct cm_tf_node {
    struct cm_str name, op;
    CM_ARRAY(struct cm_tf_tensor) inputs;
    CM_ARRAY(struct cm_tf_node *) controls; /* run before it */
    CM_ARRAY(struct cm_tf_output) outputs;
    struct cm_bytes attributes; /* entries of its map, encoded */
    bool is_argument;           /* of a function */
    bool is_pure;               /* goes where nobody reads it */
    size_t uses;
    const int64_t *perm; /* of a Transpose whose order is known; NULL: it is none */
    int rank;            /* of what perm orders; of a constant or a Reshape to known sizes */
    const int64_t *dims; /* of such a one; NULL: not known */
};

struct cm_tf_graph {
    struct cm_arena *arena;
    bool is_function;
    struct cm_str name; /* of a function */
    CM_ARRAY(struct cm_tf_node *) nodes;
    CM_ARRAY(struct cm_tf_tensor) arguments, results; /* of a function */
    struct cm_map names;                              /* that are taken */
    struct cm_map literals;                           /* constants by what they hold */
    CM_ARRAY(struct cm_tf_tensor) constants;
};

struct cm_tf_functions {
    CM_ARRAY(struct cm_tf_graph *);
    struct cm_map names;
};

/* A name that is legal in TensorFlow and free in the graph, like `wanted`, which may hold any
 * bytes. */
struct cm_str cm_tf_safe_name(struct cm_arena *arena, struct cm_map *taken, struct cm_str wanted);
struct cm_tf_node *cm_tf_add(struct cm_tf_graph *graph, const char *op, struct cm_str name);
void cm_tf_input(struct cm_tf_graph *graph, struct cm_tf_node *node, struct cm_tf_tensor tensor);
void cm_tf_after(struct cm_tf_graph *graph, struct cm_tf_node *node, struct cm_tf_node *before);
/* Adds a result under the name that the operator has for it. */
struct cm_tf_tensor cm_tf_output(struct cm_tf_graph *graph, struct cm_tf_node *node,
                                 const char *arg, enum cm_tf_type type);
struct cm_tf_tensor cm_tf_argument(struct cm_tf_graph *graph, enum cm_tf_type type);

void cm_tf_attr_int(struct cm_tf_node *node, struct cm_str name, int64_t value);
void cm_tf_attr_float(struct cm_tf_node *node, struct cm_str name, float value);
void cm_tf_attr_bool(struct cm_tf_node *node, struct cm_str name, bool value);
void cm_tf_attr_text(struct cm_tf_node *node, struct cm_str name, struct cm_str value);
void cm_tf_attr_type(struct cm_tf_node *node, struct cm_str name, enum cm_tf_type value);
void cm_tf_attr_types(struct cm_tf_node *node, struct cm_str name, const enum cm_tf_type *values,
                      size_t count);
void cm_tf_attr_ints(struct cm_tf_node *node, struct cm_str name, const int64_t *values,
                     size_t count);
/* rank -1: not known; a size of -1: not known. */
void cm_tf_attr_shape(struct cm_tf_node *node, struct cm_str name, const int64_t *dims, int rank);
/* A list of them, one for each tensor: of known rank and sizes where types says so. */
void cm_tf_attr_shapes(struct cm_tf_node *node, struct cm_str name, const struct cm_str *shapes,
                       size_t count);
void cm_tf_attr_function(struct cm_tf_node *node, struct cm_str name, struct cm_str function);
/* TensorShapeProto. */
struct cm_str cm_tf_shape(struct cm_arena *arena, const int64_t *dims, int rank);

/* An order of axes; perm NULL: none. */
struct cm_tf_order {
    const int64_t *perm;
    int rank;
};
/* A tensor in another order; Transposes that follow each other become one, or none. */
struct cm_tf_tensor cm_tf_transposed(struct cm_tf_graph *graph, struct cm_tf_tensor x,
                                     const struct cm_tf_order *order, struct cm_str name);

/* A constant with the contents of a tensor. */
struct cm_tf_tensor cm_tf_constant(struct cm_tf_graph *graph, struct cm_str name,
                                   const struct cm_tensor *tensor);
/* The same with bytes of a type of TensorFlow's; equal ones become one node. */
struct cm_tf_tensor cm_tf_literal(struct cm_tf_graph *graph, enum cm_tf_type type,
                                  const int64_t *dims, int rank, struct cm_str bytes);

/* Takes out the pure nodes that nobody reads. A node stands after those that it reads. */
void cm_tf_remove_dead(struct cm_tf_graph *graph);
/* GraphDef with its library, without dead nodes. */
struct cm_str cm_tf_encode(struct cm_tf_graph *graph, const struct cm_tf_functions *functions);

#endif
