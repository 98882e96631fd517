/* ONNX messages as plain structs, one per message of the proto schema, with ONNX's own field names.
 * data/onnx.messages lists them: a message TensorProto of the name "tensor" is a struct
 * cm_tensor_proto, its field dims is the member dims and the enum constant CM_TENSOR_DIMS.
 *
 * Strings and bytes are views into the file (or into the arena for what we made); tensor contents
 * stay where they are in the file until somebody asks (onnx/tensor_data.h). Every struct begins
 * with a struct cm_msg that remembers its bytes in the file, which fields are present, and which
 * were changed since: what is clean is written back byte for byte, unknown fields included
 * (onnx/encode.h).
 *
 * To change a message, set the member and call cm_msg_set (or cm_msg_clear) with the field; to add
 * to a list use CM_LIST_ADD and then cm_msg_set for the list. What is inside a changed child needs
 * no mark on its parents. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_MESSAGES_H
#define CM_ONNX_MESSAGES_H

#include "base/arena.h"
#include "base/text.h"

struct cm_msg {
    struct cm_str
        source;   /* the message's bytes, without its own tag and length; empty when made by us */
    uint32_t has; /* bit f: field f (an index of the enums below) is present */
    uint32_t changed; /* bit f: field f no longer is what source says */
};

static inline bool cm_msg_has(const struct cm_msg *msg, int field)
{
    return msg->has >> field & 1;
}

static inline void cm_msg_set(struct cm_msg *msg, int field)
{
    msg->has |= UINT32_C(1) << field;
    msg->changed |= UINT32_C(1) << field;
}

static inline void cm_msg_clear(struct cm_msg *msg, int field)
{
    msg->has &= ~(UINT32_C(1) << field);
    msg->changed |= UINT32_C(1) << field;
}

/* Lists are exact: count items, no spare room. Adding copies the list, so it moves. */
#define CM_LIST(type)                                                                              \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
    }

/* A pointer to a new zeroed item at the end of list. */
#define CM_LIST_ADD(arena, list)                                                                   \
    ((list)->items =                                                                               \
         cm_list_extended((arena), (list)->items, (list)->count, sizeof *(list)->items),           \
     &(list)->items[(list)->count++])

void *cm_list_extended(struct cm_arena *arena, const void *items, size_t count, size_t size);
/* The same with room for more zeroed items at once; for lists that grow by many. The caller sets
 * the count. */
void *cm_list_extended_by(struct cm_arena *arena, const void *items, size_t count, size_t more,
                          size_t size);

/* Gives a list items of its own, which may be changed where those that it had belong to another
 * message too. */
#define CM_LIST_OWN(arena, list)                                                                   \
    ((void)((list)->items = cm_list_extended_by((arena), (list)->items, (list)->count, 0,          \
                                                sizeof *(list)->items)))

/* Leaves those items of a list, the field of owner, for which test is true; i in test counts. */
#define CM_LIST_KEEP(owner, field, list, test)                                                     \
    do {                                                                                           \
        size_t kept_ = 0;                                                                          \
        for (size_t i = 0; i < (list)->count; i++)                                                 \
            if (test)                                                                              \
                (list)->items[kept_++] = (list)->items[i];                                         \
        if (kept_ < (list)->count)                                                                 \
            (kept_ ? cm_msg_set : cm_msg_clear)(&(owner)->msg, (field));                           \
        (list)->count = kept_;                                                                     \
    } while (0)

struct cm_int64s {
    int64_t *items;
    size_t count;
};

struct cm_floats {
    float *items;
    size_t count;
};

struct cm_strs {
    struct cm_str *items;
    size_t count;
};

/* A repeated number field left as it is on the wire, packed: 4 or 8 bytes each, or varints. */
struct cm_packed {
    const uint8_t *data;
    size_t size;
};

#include "message_structs.h"

/* TensorProto.DataLocation */
enum { CM_LOCATION_DEFAULT = 0, CM_LOCATION_EXTERNAL = 1 };

/* AttributeProto.AttributeType; the member of the struct may be any number of a file. */
enum cm_attribute_type {
    CM_ATTR_UNDEFINED = 0,
    CM_ATTR_FLOAT = 1,
    CM_ATTR_INT = 2,
    CM_ATTR_STRING = 3,
    CM_ATTR_TENSOR = 4,
    CM_ATTR_GRAPH = 5,
    CM_ATTR_FLOATS = 6,
    CM_ATTR_INTS = 7,
    CM_ATTR_STRINGS = 8,
    CM_ATTR_TENSORS = 9,
    CM_ATTR_GRAPHS = 10,
    CM_ATTR_SPARSE_TENSOR = 11,
    CM_ATTR_SPARSE_TENSORS = 12,
    CM_ATTR_TYPE_PROTO = 13,
    CM_ATTR_TYPE_PROTOS = 14,
    CM_ATTR_TYPE_COUNT
};

/* SequenceProto.DataType and OptionalProto.DataType */
enum {
    CM_ELEM_UNDEFINED = 0,
    CM_ELEM_TENSOR = 1,
    CM_ELEM_SPARSE_TENSOR = 2,
    CM_ELEM_SEQUENCE = 3,
    CM_ELEM_MAP = 4,
    CM_ELEM_OPTIONAL = 5,
};

/* The value of a key, such as one of metadata_props; empty: there is no such key. */
struct cm_str cm_entries_find(const struct cm_entries *entries, const char *key);
/* The first item of that name or key, or NULL. */
struct cm_value_info_proto *cm_value_infos_find(const struct cm_value_infos *infos,
                                                struct cm_str name);
struct cm_entry_proto *cm_entries_get(const struct cm_entries *entries, struct cm_str key);
struct cm_attribute_proto *cm_node_attribute(const struct cm_node_proto *node, struct cm_str name);
/* Graphs in a node's attributes, one after the other; NULL after the last. */
struct cm_graph_proto *cm_node_subgraph(const struct cm_node_proto *node, size_t index);
/* The main graph, then the initialization and the algorithm of each training info, as far as they
 * are there; NULL after the last. *at is 0 at first. */
struct cm_graph_proto *cm_model_next_graph(const struct cm_model_proto *model, size_t *at);
/* A node that copies a value under another name. */
struct cm_node_proto cm_identity_proto(struct cm_arena *arena, struct cm_str from,
                                       struct cm_str to);

#endif
