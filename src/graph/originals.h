/* What the framework calls the tensors of a model. Exporters fold transposes and constants, merge
 * equal tensors and give the results names of their own; PyTorch's newer exporter records where a
 * tensor came from, and the older one names nodes after modules. All of that is text in the file,
 * which anybody may have written: whoever changes the model by it checks shapes and values first.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_ORIGINALS_H
#define CM_GRAPH_ORIGINALS_H

#include "base/array.h"
#include "base/map.h"
#include "graph/op.h"
#include "onnx/messages.h"

/* The metadata of a value or tensor that lists the names it was folded from. */
extern const char cm_folded_key[];

/* What the exporter did to the framework's tensor. */
enum cm_folding {
    CM_FOLDED_NOT,        /* nothing: it is that tensor */
    CM_FOLDED_TRANSPOSED, /* a matrix, whose axes were swapped */
    CM_FOLDED_UNSQUEEZED, /* a vector, which got further axes of size 1 */
    CM_FOLDED_GATES,      /* tensors of a recurrent layer, with their gates in ONNX's order */
    CM_FOLDED_ROWS,       /* rows of a table, which were looked up */
    CM_FOLDED_COMPUTED,   /* something that cannot be undone, or nobody knows what */
};

/* Of an initializer. */
struct cm_original {
    struct cm_str_list {
        CM_ARRAY(struct cm_str);
    } names; /* of the framework's tensors: it is each of them, or was computed from all of them;
                none: nothing is known */
    enum cm_folding folding;
    bool is_parameter;     /* the file calls one of them a parameter */
    bool is_named_by_node; /* its name follows from the name of the node that reads it */
    bool is_transient;     /* a buffer that the framework does not save (persistent=False) */
    struct cm_str module;  /* without a name: the module that reads it; or empty */
};

struct cm_originals {
    CM_ARRAY(struct cm_original); /* by initializer of the graph; then those that were added */
    struct cm_map by_name;        /* names of initializers to index + 1 */
    struct cm_str_list missing;   /* parameters of the network that the graph does not have */
    struct cm_str_list buffers;   /* saved buffers that it does not have, other than statistics */
    struct cm_str_list norms;     /* modules whose running statistics it does not have */
    struct cm_map told;           /* fx_node's names of parameters to index + 1 in recorded */
    struct cm_recorded_tensor {
        struct cm_str target;
        bool is_parameter, is_transient;
        size_t holder; /* index + 1 of the initializer that is it, or was computed from it */
    } * recorded;
    size_t n_recorded;
    bool is_older; /* nodes are named as PyTorch's older exporter names them */
};

/* A name that an exporter made up: "val_12", "onnx::MatMul_305", "/layer/Constant_output_0". */
bool cm_original_is_made_up(struct cm_str name);

/* Reads the records of a model's graph, which may be NULL. The result borrows from the model. */
struct cm_originals *cm_originals_read(struct cm_arena *arena, const struct cm_graph_proto *graph);
/* Of the initializer of this name; NULL: nothing is known of it but its name. */
const struct cm_original *cm_originals_find(const struct cm_originals *originals,
                                            struct cm_str name);
/* An initializer stood for several tensors: the one that the framework calls `meant` has another
 * initializer from now on, called `name`. */
void cm_originals_part(struct cm_originals *originals, struct cm_arena *arena, struct cm_str from,
                       struct cm_str meant, struct cm_str name);
/* An initializer is computed from `to` from now on, whose tensor in the framework is its own too.
 */
void cm_originals_join(struct cm_originals *originals, struct cm_arena *arena, struct cm_str name,
                       struct cm_str to);
bool cm_original_has_name(const struct cm_original *original, struct cm_str name);
/* Writes into a tensor that it was folded from the framework's tensor `from`, as exporters do. */
void cm_originals_record(struct cm_arena *arena, struct cm_tensor_proto *tensor,
                         struct cm_str from);
/* Which of its names a node means that reads it as this operand; empty: that is not known. */
struct cm_str cm_originals_meant(const struct cm_originals *originals, struct cm_str name,
                                 const struct cm_node_proto *node, size_t operand);
/* What is known of the initializer of this name, as texts: its names, "a.weight, b.weight", or its
 * module; and "transposed", "unsqueezed", "gates", "rows", "computed" or "module". Both are empty
 * where it has no name but its own; folding is empty where it is the framework's tensor under
 * another name. */
struct cm_original_texts {
    struct cm_str original, folding;
};
struct cm_original_texts cm_originals_texts(const struct cm_originals *originals,
                                            struct cm_arena *arena, struct cm_str name);

/* What a layer calls the tensor that its node reads as this operand: "weight", "bias", "mean" or
 * "var"; NULL: it learns nothing there. */
const char *cm_operand_duty(const struct cm_op *op, int operand);

/* ---- what PyTorch's newer exporter writes into nodes ---- */

/* The next parameter or buffer that the framework's operation read, "p_fc_weight"; *at begins at 0.
 * false: there are no more. */
bool cm_node_next_parameter(const struct cm_node_proto *node, size_t *at, struct cm_str *name);
/* The module that a node is part of; empty: it is not recorded. */
struct cm_str cm_node_scope(const struct cm_node_proto *node);

#endif
