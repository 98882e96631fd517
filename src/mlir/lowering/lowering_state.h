/* A lowering under way: what the files of it share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_LOWERING_STATE_H
#define CM_MLIR_LOWERING_STATE_H

#include "base/array.h"
#include "mlir/lowering/lowering.h"
#include "template/template.h"

enum {
    CM_MLIR_INLINE = 64, /* elements of a constant that is written into the text */
    CM_MLIR_RANK = 16,   /* sizes that a tensor may have */
    CM_MLIR_LINE = 4096,
};

/* The random state, as the function has it. */
#define CM_MLIR_RANDOM      "%random"
#define CM_MLIR_RANDOM_TYPE "memref<?xi64>"

struct cm_mlir_text {
    CM_ARRAY(char);
};

/* A constant that is to lie among the weights, if it is read: a template that names an operand may
 * take it packed instead. */
struct cm_mlir_asked {
    struct cm_str label, name, memory; /* memory: its type */
    const struct cm_tensor *tensor;
};

struct cm_mlir_stream {
    uint32_t stream;
    size_t word;
};

struct cm_mlir_lowering {
    struct cm_module *module;
    struct cm_arena *arena;
    const struct cm_mlir_lower_options *options;
    struct cm_mlir_text head;      /* declarations of functions */
    struct cm_mlir_text constants; /* at the top of the function */
    struct cm_mlir_text body;
    int indent;
    struct cm_str *names; /* by value; empty: not defined yet */
    size_t n_names;
    CM_ARRAY(struct cm_mlir_asked) asked;
    CM_ARRAY(struct cm_mlir_weight) weights;
    size_t weight_bytes;
    CM_ARRAY(struct cm_str) kernels;
    CM_ARRAY(struct cm_mlir_finish) finishes; /* functions that kernels call */
    bool *is_finished;        /* by value: a kernel computes it together with what it is made of */
    CM_ARRAY(int64_t) random; /* first words of the random state */
    CM_ARRAY(struct cm_mlir_stream) streams; /* nodes that have a place in it */
    CM_ARRAY(struct cm_mlir_panels) panels;
    size_t n_uses; /* of templates: each has a prefix of its own */
    bool is_told;  /* why a body cannot be lowered, and so the node it belongs to */
    struct cm_error *err;
};

/* A node whose template is being expanded. Scalars: names stand for elements, not for tensors.
 * Wide: halves are f32 to the template. */
struct cm_mlir_use {
    struct cm_mlir_lowering *lowering;
    const struct cm_node *node;
    bool is_scalar, is_wide;
    const struct cm_str *inputs, *outputs; /* names of scalars, by operand and result */
};

void cm_mlir_put(struct cm_mlir_lowering *l, struct cm_mlir_text *to, struct cm_str text);
void cm_mlir_line(struct cm_mlir_lowering *l, const char *format, ...) CM_PRINTF(2, 3);

/* ---- values ---- */

/* MLIR's element type, "i8" for uint8; NULL: there is none. */
const char *cm_mlir_scalar(enum cm_dtype type);
/* The same with its sign: "u8". */
const char *cm_mlir_element(enum cm_dtype type);
const struct cm_type *cm_mlir_type(const struct cm_mlir_lowering *l, cm_value value);
/* "tensor<2x?xf32>", or of another word than tensor. */
struct cm_str cm_mlir_type_text(struct cm_arena *arena, const char *word, enum cm_dtype type,
                                int rank, const struct cm_dim *dims);
struct cm_str cm_mlir_value_type(struct cm_mlir_lowering *l, cm_value value);
/* Refuses what is not a tensor of a known rank and a type that there is code for. */
enum cm_status cm_mlir_check_value(struct cm_mlir_lowering *l, cm_value value,
                                   struct cm_error *err);
/* The name of a value: "%v7"; defines constants where they are first asked for. */
struct cm_str cm_mlir_name(struct cm_mlir_lowering *l, cm_value value);
/* The name of a constant that is not a value of the graph; label: what people call it. The tensor
 * must live as long as the program. */
struct cm_str cm_mlir_constant(struct cm_mlir_lowering *l, struct cm_str label,
                               const struct cm_tensor *tensor);

/* Once all nodes are there: the constants that they read get their places among the weights. */
void cm_mlir_place_weights(struct cm_mlir_lowering *l);

/* Element i of a tensor as a literal. */
struct cm_str cm_mlir_element_text(struct cm_mlir_lowering *l, const struct cm_tensor *tensor,
                                   int64_t i);
/* Its contents, where they are known; NULL otherwise. */
const struct cm_tensor *cm_mlir_contents(struct cm_mlir_lowering *l, cm_value value);

/* ---- nodes ---- */

/* "node 'x' (Conv)", of characters that are safe in quotes and comments of MLIR: names come from
 * files. */
struct cm_str cm_mlir_describe(struct cm_mlir_lowering *l, const struct cm_node *node);
/* The same in characters that may stand in a program. */
struct cm_str cm_mlir_place(struct cm_mlir_lowering *l, const struct cm_node *node);
/* The nodes of a graph, in order. */
enum cm_status cm_mlir_nodes(struct cm_mlir_lowering *l, struct cm_graph *graph,
                             struct cm_error *err);
/* Expands the template of the node. */
enum cm_status cm_mlir_expand(const struct cm_mlir_use *use, const struct cm_template_text *text,
                              struct cm_error *err);
/* The template of an operator; NULL: there is none. */
const struct cm_template_text *cm_mlir_template_of(const struct cm_node *node);
/* Does an expression of the template hold for the node? */
bool cm_mlir_holds(const struct cm_mlir_use *use, const struct cm_template_text *text,
                   struct cm_str expression);
/* Is it a group of nodes that a pass made one of? */
bool cm_mlir_is_region(const struct cm_node *node);
/* Is the node's template one for elements, or those of all nodes of a region? */
bool cm_mlir_is_elementwise(struct cm_mlir_lowering *l, const struct cm_node *node);
/* The nodes of a region's body, one by one. */
enum cm_status cm_mlir_region(struct cm_mlir_lowering *l, const struct cm_node *node,
                              struct cm_error *err);
/* One linalg.generic over the node's results, with the templates in its body. */
enum cm_status cm_mlir_elementwise(struct cm_mlir_lowering *l, const struct cm_node *node,
                                   struct cm_error *err);
/* Is it a constant of one element, which is written where it is used? */
bool cm_mlir_is_single(struct cm_mlir_lowering *l, cm_value value);
/* The templates of an elementwise node, or of all nodes of a region, on elements: the names of
 * those are given, but for constants of one element, and the names of the results told. */
enum cm_status cm_mlir_elements(struct cm_mlir_lowering *l, const struct cm_node *node,
                                struct cm_str *scalars, struct cm_str *results,
                                struct cm_error *err);
/* [SYMBOL, OTHER]: a function for what follows a value element by element, and the one other tensor
 * that it reads, or none; those nodes are done then. None: nothing does. */
struct cm_term cm_mlir_finish(struct cm_mlir_lowering *l, cm_value value);
/* [[[axes of x, axes of y], ..], sure]: groups of axes that have as many elements on both sides if
 * x reshaped is y; sure: they have, whatever the unknown sizes are. */
struct cm_term cm_mlir_regroup(struct cm_mlir_lowering *l, cm_value x, cm_value y);
extern const struct cm_template_host cm_mlir_host; /* its arg is a struct cm_mlir_use */

/* Functions of templates about the bodies of their node; false: there is none of that name. */
bool cm_mlir_body_call(const struct cm_mlir_use *use, struct cm_template_run *run,
                       struct cm_str function, const struct cm_term *args, size_t count,
                       struct cm_term *out);

/* The same for tables of numbers. */
bool cm_mlir_table_call(const struct cm_mlir_use *use, struct cm_template_run *run,
                        struct cm_str function, const struct cm_term *args, size_t count,
                        struct cm_term *out);

/* The same for random numbers. */
bool cm_mlir_random_call(const struct cm_mlir_use *use, struct cm_str function,
                         const struct cm_term *args, size_t count, struct cm_term *out);

/* Lines that make the random state of a function that is not given one, with its first words. */
struct cm_str cm_mlir_own_random(struct cm_mlir_lowering *l);

/* The same for weights that are packed for kernels in C. */
bool cm_mlir_panels_call(const struct cm_mlir_use *use, struct cm_str function,
                         const struct cm_term *args, size_t count, struct cm_term *out);

/* An index constant, or the size of an axis: the name of an index. */
struct cm_str cm_mlir_index(struct cm_mlir_lowering *l, int64_t number);
struct cm_str cm_mlir_size(struct cm_mlir_lowering *l, cm_value value, int axis);

#endif
