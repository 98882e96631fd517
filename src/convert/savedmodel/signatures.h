/* The signatures of a SavedModel: each a graph over the same variables. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_SIGNATURES_H
#define CM_CONVERT_SIGNATURES_H

#include "convert/savedmodel/tf_rows.h"
#include "onnx/model_file.h"

struct cm_tf_variable {
    struct cm_str name; /* of the model */
    struct cm_tensor tensor;
    bool is_trained;
    /* A filter of a convolution is kept as TensorFlow has it, (height, width, in, out), and so is
     * the optimizer's state for it: order makes that of what the model has. */
    bool is_filter;
    struct cm_tf_order order, back;
    struct cm_tf_tensor handle;
    struct cm_tf_node *assign; /* that restores it */
    struct cm_tf_node *read;   /* for the saver */
};

struct cm_tf_port {
    struct cm_str name;
    struct cm_tf_tensor tensor;
    struct cm_str shape; /* TensorShapeProto */
};

struct cm_tf_signature {
    struct cm_str name;
    CM_ARRAY(struct cm_tf_port) inputs, outputs;
};

struct cm_tf_model {
    struct cm_tf_writer writer;
    const struct cm_model_file *file;
    struct cm_tf_graph graph;
    struct cm_map variable_places; /* by name */
    CM_ARRAY(struct cm_tf_variable) variables;
    CM_ARRAY(struct cm_tf_signature) signatures;
};

/* Makes variables of initializers: what training changes, and all that may be trained. */
enum cm_status cm_tf_find_variables(struct cm_tf_model *model, struct cm_error *err) CM_MUST_CHECK;
/* The shape that TensorFlow sees. */
struct cm_shape cm_tf_variable_shape(const struct cm_tf_variable *variable);
/* Writes the graphs of all signatures. The findings receive what cannot be expressed. */
enum cm_status cm_tf_put_signatures(struct cm_tf_model *model, struct cm_error *err) CM_MUST_CHECK;

#endif
