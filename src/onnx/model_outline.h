/* The outline of a model: which value each name of a graph stands for, what makes it and what reads
 * it, and which graphs are inside which node. It is made from messages alone, so a model that
 * breaks rules has one too: if several things have one name, the first counts. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_MODEL_OUTLINE_H
#define CM_ONNX_MODEL_OUTLINE_H

#include "base/array.h"
#include "base/map.h"
#include "onnx/messages.h"

enum cm_outline_origin {
    CM_OUTLINE_UNDEFINED = 0, /* nothing makes it: the model is broken */
    CM_OUTLINE_NODE = 1,
    CM_OUTLINE_INPUT = 2, /* of the graph, with or without a default */
    CM_OUTLINE_INITIALIZER = 3,
    CM_OUTLINE_OUTER = 4 /* it is a value of a graph around this one */
};

struct cm_outline;

struct cm_outline_node {
    const struct cm_node_proto *proto;
    struct cm_outline *graph; /* that it is in, at this index */
    size_t index;
    struct cm_outline_bodies { /* one for each attribute: its graph, or all */
        struct cm_outline **items;
        size_t count;
    } * bodies;
};

struct cm_outline_reader {
    const struct cm_outline_node *node;
    size_t input; /* of the node */
};

struct cm_outline_value {
    struct cm_str name;       /* as the message has it: without a zero byte */
    struct cm_outline *graph; /* that it is in, at this index */
    size_t index;
    enum cm_outline_origin origin;
    const struct cm_outline_node *maker; /* a node, of whose outputs it is this; or NULL */
    size_t maker_output;
    CM_ARRAY(struct cm_outline_reader) readers; /* nodes of graphs inside this one's included */
    bool is_output;                             /* of the graph */
    const struct cm_value_info_proto *info;     /* its type, if the file says it; or NULL */
    struct cm_outline_value *outer;             /* CM_OUTLINE_OUTER: that value */
};

struct cm_outline {
    struct cm_str name;
    size_t number;                       /* among the outlines of the model */
    const struct cm_outline_node *owner; /* of an attribute: its node; or NULL */
    struct cm_outline *around;
    bool apart; /* what it reads of the graph around does not count there */
    struct cm_outline_node *nodes;
    size_t node_count;
    /* In the order of the file, those without a name left out. */
    const struct cm_outline_value **inputs, **outputs;
    size_t input_count, output_count;
    CM_ARRAY(struct cm_outline_value *)
    values;                /* inputs, initializers and outputs of nodes first */
    struct cm_map by_name; /* numbers of values */
};

/* All graphs of a model; NULL where there is none. */
struct cm_outlines {
    struct cm_outline *main;
    struct cm_outline **functions;                     /* by their number */
    struct cm_outline **initializations, **algorithms; /* of entries of training_info */
    CM_ARRAY(struct cm_outline *) all;                 /* by number, those inside nodes included */
};

/* It refers to the messages, which must stay as they are. */
struct cm_outlines *cm_outlines_new(struct cm_arena *arena, const struct cm_model_proto *model);
/* The value of a graph that has this name, or NULL. */
const struct cm_outline_value *cm_outline_find(const struct cm_outline *graph, struct cm_str name);

#endif
