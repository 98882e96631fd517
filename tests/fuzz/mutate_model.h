/* Structural mutations of models for libFuzzer: a model is decoded, a few things in it are changed
 * to others of their kind (operators, attributes, shapes, types, values, wires), and it is encoded
 * again. So what is tried passes the decoder and tests what comes after it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_MUTATE_MODEL_H
#define CM_FUZZ_MUTATE_MODEL_H

#include "base/array.h"
#include "mutate.h"
#include "onnx/descriptor.h"
#include "schema/schema.h"

/* Nodes of a graph or of a function. */
struct node_list {
    struct cm_nodes *nodes;
    struct cm_msg *owner;
    int field;
};

/* One change: what there is in the model, collected anew before each, for lists move as they grow.
 */
struct mutation {
    struct cm_arena *arena;
    struct chance *chance;
    struct cm_model_proto *model;
    CM_ARRAY(struct node_list) lists;
    CM_ARRAY(struct cm_node_proto *) nodes;
    CM_ARRAY(struct cm_graph_proto *) graphs;
    CM_ARRAY(struct cm_tensor_proto *) tensors;
    CM_ARRAY(struct cm_value_info_proto *) infos;
    CM_ARRAY(struct cm_str) names; /* of values, of all graphs */
    struct {
        struct message {
            const struct cm_message_info *info;
            struct cm_msg *msg;
        } * items;
        size_t count, capacity;
    } messages; /* all of them */
};

struct cm_str mutation_name(struct mutation *m);     /* of some value; may be empty */
struct cm_str mutation_new_name(struct mutation *m); /* of none so far, most likely */
int32_t mutation_dtype(struct mutation *m);          /* mostly a valid one */
/* A copy that shares nothing; NULL when it cannot be made. */
void *mutation_copy(struct mutation *m, const struct cm_message_info *info, const void *msg);

/* Each changes one thing, or returns false when there is none to change. */
bool mutate_operator(struct mutation *m);
bool mutate_attribute(struct mutation *m);
bool mutate_operand(struct mutation *m);
bool mutate_nodes(struct mutation *m);
bool mutate_new_node(struct mutation *m);
bool mutate_tensor(struct mutation *m);
bool mutate_info(struct mutation *m);
bool mutate_field(struct mutation *m);      /* any field of any message */
bool mutate_typed_node(struct mutation *m); /* a node whose operands have types it takes */
bool mutate_outline(struct mutation *m);    /* nodes become a function, graphs become training */
/* Random contents of a random small shape, or of the shape that is there. */
void mutation_fill_tensor(struct mutation *m, struct cm_tensor_proto *tensor, int32_t dtype,
                          bool keep_shape);
struct cm_type_proto *mutation_type(struct mutation *m);
/* A node at the end of the graph, with the attributes that its operator needs. */
void mutation_add_node(struct mutation *m, struct cm_graph_proto *graph,
                       const struct cm_schema *schema, struct cm_strs in, struct cm_strs out);

#endif
