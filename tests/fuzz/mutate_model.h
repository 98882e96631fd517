/* Structural mutations of models for libFuzzer: a model is decoded, a few things in it are changed
 * to others of their kind (operators, attributes, shapes, types, values, wires), and it is encoded
 * again. So what is tried passes the decoder and tests what comes after it. Only in fuzz builds. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_MUTATE_MODEL_H
#define CM_FUZZ_MUTATE_MODEL_H

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
    uint64_t random;
    struct cm_model_proto *model;
    struct {
        struct node_list *items;
        size_t count, capacity;
    } lists;
    struct {
        struct cm_node_proto **items;
        size_t count, capacity;
    } nodes;
    struct {
        struct cm_graph_proto **items;
        size_t count, capacity;
    } graphs;
    struct {
        struct cm_tensor_proto **items;
        size_t count, capacity;
    } tensors;
    struct {
        struct cm_value_info_proto **items;
        size_t count, capacity;
    } infos;
    struct {
        struct cm_str *items;
        size_t count, capacity;
    } names; /* of values, of all graphs */
};

/* A number below `below`, which is not 0. */
size_t mutation_draw(struct mutation *m, size_t below);
bool mutation_chance(struct mutation *m, unsigned percent);
/* Mostly small, now and then at an edge. */
int64_t mutation_number(struct mutation *m);
float mutation_real(struct mutation *m);
struct cm_str mutation_name(struct mutation *m);     /* of some value; may be empty */
struct cm_str mutation_new_name(struct mutation *m); /* of none so far, most likely */
int32_t mutation_dtype(struct mutation *m);          /* mostly a valid one */
/* A copy that shares nothing; NULL when it cannot be made. */
void *mutation_copy(struct mutation *m, const struct cm_message_info *info, const void *msg);

/* Each changes one thing, or returns false when there is none to change. */
bool mutate_operator(struct mutation *m);
bool mutate_attribute(struct mutation *m);
bool mutate_wire(struct mutation *m);
bool mutate_nodes(struct mutation *m);
bool mutate_new_node(struct mutation *m);
bool mutate_tensor(struct mutation *m);
bool mutate_info(struct mutation *m);
/* Random contents of a random small shape, or of the shape that is there. */
void mutation_fill_tensor(struct mutation *m, struct cm_tensor_proto *tensor, int32_t dtype,
                          bool keep_shape);
struct cm_type_proto *mutation_type(struct mutation *m);

#endif
