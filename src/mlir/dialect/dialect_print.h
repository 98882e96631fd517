/* What the files that print the ONNX dialect tell each other. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_DIALECT_PRINT_H
#define CM_MLIR_DIALECT_PRINT_H

#include "base/array.h"
#include "base/map.h"
#include "mlir/dialect/dialect.h"
#include "onnx/syntax_print.h"
#include "tensor/tensor.h"

/* A value of MLIR: its name there, and what its type is made from. */
struct cm_dialect_value {
    struct cm_str ssa;  /* "%arg0", "%5", "%5#1", "%none" */
    struct cm_str type; /* as printed */
};

/* Names of ONNX that a graph defines. */
struct cm_dialect_scope {
    const struct cm_dialect_scope *outer;
    struct cm_map names; /* to 1 + an index of values */
    struct cm_map types; /* of what nodes give: addresses of struct cm_type_proto */
};

struct cm_dialect_out {
    struct cm_printer pen;
    struct cm_arena *arena;
    const struct cm_dialect_options *options;
    const struct cm_model_proto *model;
    const struct cm_opsets *opsets; /* in force where it prints */
    CM_ARRAY(struct cm_dialect_value) values;
    size_t next_result, next_argument; /* numbers that are free */
};

/* A dictionary while it is printed: `{`, `, `, `}` come as they are needed. */
struct cm_dialect_dict {
    struct cm_dialect_out *out;
    const char *prefix; /* of keys */
    bool any;
};

void cm_dialect_put_quoted(struct cm_dialect_out *o, struct cm_str text);
/* A key of a dictionary: in quotes unless MLIR reads it without. */
void cm_dialect_put_key(struct cm_dialect_dict *dict, const char *key);
void cm_dialect_put_key_str(struct cm_dialect_dict *dict, struct cm_str key);
void cm_dialect_put_symbol(struct cm_dialect_out *o, struct cm_str name);
void cm_dialect_end(struct cm_dialect_dict *dict);
/* "1.000000e+00", as MLIR writes a number of this type; bits are those of the element. */
void cm_dialect_put_real(struct cm_dialect_out *o, enum cm_dtype type, double value, uint64_t bits);
void cm_dialect_put_f32(struct cm_dialect_out *o, float value); /* with its type */

/* The text of a type; what the dialect cannot say of it is left out. NULL: !onnx.Unknown. */
struct cm_str cm_dialect_type_text(struct cm_dialect_out *o, const struct cm_type_proto *type);
/* tensor<2x3xf32> of a tensor with a type and dims that are legal. */
struct cm_str cm_dialect_tensor_type(struct cm_dialect_out *o,
                                     const struct cm_tensor_proto *tensor);
/* Does the text, and the names of dimensions beside it, say all of the type? */
bool cm_dialect_type_is_whole(const struct cm_type_proto *type);
/* "0:N,2:M"; empty: no dimension has a name. */
struct cm_str cm_dialect_dim_params(struct cm_dialect_out *o, const struct cm_type_proto *type);

/* The entries that say what a value is declared as, beside the type that is printed for it (empty:
 * none is). */
void cm_dialect_put_declared(struct cm_dialect_dict *dict, const struct cm_value_info_proto *value,
                             struct cm_str printed);

/* The value of one field, and fields of a message, by the rows of onnx/descriptor.h; skipped: bit f
 * leaves field f out. */
void cm_dialect_put_field(struct cm_dialect_out *o, const struct cm_field_info *field,
                          const void *msg);
void cm_dialect_put_fields(struct cm_dialect_dict *dict, const struct cm_message_info *info,
                           const void *msg, uint32_t skipped);
void cm_dialect_put_message(struct cm_dialect_out *o, const struct cm_message_info *info,
                            const void *msg);

/* How a tensor is printed. */
enum cm_dialect_tensor_form {
    CM_DIALECT_DENSE,    /* dense<..> : tensor<..> */
    CM_DIALECT_EXTERNAL, /* its type, and where its contents are */
    CM_DIALECT_FIELDS,   /* field by field: it is broken, or odd */
};
/* *values is for CM_DIALECT_DENSE, else NULL, and to be dropped. */
enum cm_dialect_tensor_form cm_dialect_tensor_form(struct cm_dialect_out *o,
                                                   const struct cm_tensor_proto *tensor,
                                                   struct cm_tensor **values);
void cm_dialect_drop(struct cm_dialect_out *o, struct cm_tensor *values);
void cm_dialect_put_dense(struct cm_dialect_out *o, const struct cm_tensor *values);
/* What a tensor has beside its type, shape and values: its name, the field it keeps values in, .. ;
 * skipped as for cm_dialect_put_fields. */
void cm_dialect_put_tensor_notes(struct cm_dialect_dict *dict, const struct cm_tensor_proto *tensor,
                                 enum cm_dialect_tensor_form form, uint32_t skipped);
bool cm_dialect_has_tensor_notes(const struct cm_tensor_proto *tensor,
                                 enum cm_dialect_tensor_form form, uint32_t skipped);

/* Values of graphs. "" is the absent one; what no graph around defines is NULL. */
bool cm_dialect_knows(const struct cm_dialect_scope *scope, struct cm_str name);
void cm_dialect_define(struct cm_dialect_out *o, struct cm_dialect_scope *scope, struct cm_str name,
                       struct cm_str ssa, struct cm_str type);

/* Operations. */
void cm_dialect_put_line(struct cm_dialect_out *o); /* a new one, indented */
void cm_dialect_put_node(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                         const struct cm_node_proto *node, const struct cm_node_proto *typed);
/* `(%1, %2)`, and `(T, T)` of the same names. */
void cm_dialect_put_operands(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                             const struct cm_strs *names);
void cm_dialect_put_types(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                          const struct cm_strs *names);
/* onnx.Return or onnx.Yield. */
void cm_dialect_put_end(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                        const char *name, const struct cm_strs *names);

enum { CM_DIALECT_STEP = 2 }; /* columns a level is indented by */

/* For each input 1 + the initializer that gives its value, 0 for those that are arguments. */
size_t *cm_dialect_match_inputs(struct cm_dialect_out *o, const struct cm_graph_proto *graph);
/* The types that messages have for names of a graph or function, and one of them as text. */
void cm_dialect_note_types(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                           const struct cm_value_infos *values);
void cm_dialect_note_graph(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                           const struct cm_graph_proto *graph);
struct cm_str cm_dialect_type_of(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                                 struct cm_str name);
struct cm_strs cm_dialect_names_of(struct cm_dialect_out *o, const struct cm_value_infos *values);
/* `%arg3: T`, which is known from then on; its type. */
struct cm_str cm_dialect_put_argument(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                                      struct cm_str name);
void cm_dialect_put_nodes(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                          const struct cm_nodes *nodes, const struct cm_nodes *typed);
/* Initializers, nodes, and the operation at the end. */
void cm_dialect_put_body(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                         const struct cm_graph_proto *graph, const struct cm_graph_proto *typed,
                         const char *end);
/* What is said of a graph beside its operations. */
void cm_dialect_put_graph_notes(struct cm_dialect_dict *dict, const struct cm_graph_proto *graph);
/* A graph in a node's attribute, `{ .. }`, and the entries that tell what a region cannot. */
void cm_dialect_put_region(struct cm_dialect_out *o, const struct cm_dialect_scope *outer,
                           const struct cm_graph_proto *graph, const struct cm_graph_proto *typed);
void cm_dialect_put_region_notes(struct cm_dialect_dict *dict, const struct cm_graph_proto *graph);

#endif
