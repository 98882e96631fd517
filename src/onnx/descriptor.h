/* What the messages look like on the wire, as rows: the decoder, the encoder and whoever else walks
 * all messages alike (comparison, statistics) read these tables and know no message by name. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_DESCRIPTOR_H
#define CM_ONNX_DESCRIPTOR_H

#include "onnx/messages.h"

/* How a field is held in its struct and on the wire. */
enum cm_field_kind {
    CM_FIELD_INT64,         /* int64_t; varint */
    CM_FIELD_INT32,         /* int32_t; varint, also for enumerations */
    CM_FIELD_FLOAT,         /* float; 4 bytes */
    CM_FIELD_STR,           /* struct cm_str; string or bytes */
    CM_FIELD_MESSAGE,       /* pointer to the struct */
    CM_FIELD_INT64S,        /* struct cm_int64s; varints, packed or not */
    CM_FIELD_FLOATS,        /* struct cm_floats; 4 bytes each, packed or not */
    CM_FIELD_STRS,          /* struct cm_strs */
    CM_FIELD_MESSAGES,      /* CM_LIST of structs */
    CM_FIELD_PACKED_VARINT, /* struct cm_packed, left undecoded */
    CM_FIELD_PACKED_4,
    CM_FIELD_PACKED_8,
};

struct cm_message_info;

struct cm_field_info {
    uint32_t number;
    enum cm_field_kind kind;
    const char *name; /* as in the proto schema */
    size_t offset;
    const struct cm_message_info *message; /* for CM_FIELD_MESSAGE and CM_FIELD_MESSAGES */
    bool oneof;                            /* such fields of one message exclude each other */
};

struct cm_message_info {
    const char *name;                   /* as in the proto schema: "TensorProto" */
    size_t size;                        /* of the struct */
    const struct cm_field_info *fields; /* indexed by the enum that goes with the struct */
    int n_fields;
};

/* The field with this number, or -1. */
int cm_message_field(const struct cm_message_info *info, uint32_t number);
/* The field with this name, or -1. */
int cm_message_field_named(const struct cm_message_info *info, struct cm_str name);

/* Do two messages say the same: equal fields in equal order, however they were written? Unknown
 * fields count by their bytes. *where (may be NULL) names the first difference, e.g.
 * "graph.node[3].op_type". */
bool cm_message_equal(const struct cm_message_info *info, const void *a, const void *b,
                      struct cm_arena *arena, struct cm_str *where);

/* Calls visit for the message and every message inside it, parents first. Stops at the first
 * failure. */
typedef enum cm_status cm_visit_fn(void *arg, const struct cm_message_info *info,
                                   struct cm_msg *msg);
enum cm_status cm_message_walk(const struct cm_message_info *info, void *msg, cm_visit_fn *visit,
                               void *arg);

#endif
