/* What the printer's files tell each other. Text goes to the caller's function through a small
 * buffer; the first failure sticks and the rest of the work prints nothing, so only loops over many
 * elements look at the status. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_SYNTAX_PRINT_H
#define CM_ONNX_SYNTAX_PRINT_H

#include "onnx/descriptor.h"
#include "onnx/syntax.h"

struct cm_printer {
    cm_text_write_fn *write;
    void *to;
    struct cm_error *err;
    enum cm_status status;
    bool upstream;     /* as ONNX's printer writes it, dropping what that drops */
    bool marks_floats; /* 1.0 rather than 1: no type before it says what it is */
    size_t elide;
    int depth;  /* nested graphs and types */
    int indent; /* columns before a node of the graph being printed */
    size_t n_pending;
    char pending[4096];
};

void cm_put(struct cm_printer *p, const char *bytes, size_t size);
void cm_put_text(struct cm_printer *p, const char *text);
void cm_put_str(struct cm_printer *p, struct cm_str text);
/* Short things: at most 1,000 bytes. Numbers are those of the C locale. */
void cm_put_format(struct cm_printer *p, const char *format, ...) CM_PRINTF(2, 3);
void cm_put_spaces(struct cm_printer *p, int count);
/* Is there an item i of a list of so many, and nothing has failed? Then ", " goes before all but
 * the first. */
bool cm_put_next(struct cm_printer *p, size_t i, size_t count);
void cm_put_quoted(struct cm_printer *p, struct cm_str text);
void cm_put_word(struct cm_printer *p,
                 struct cm_str name); /* in quotes unless it is an identifier */
void cm_put_name(struct cm_printer *p, struct cm_str name); /* and unless it means something else */
void cm_put_int64(struct cm_printer *p, int64_t value);
void cm_put_uint64(struct cm_printer *p, uint64_t value);
/* The fewest digits that read back as value. */
void cm_put_float(struct cm_printer *p, float value);
void cm_put_double(struct cm_printer *p, double value);
/* The first failure is kept. */
void cm_print_fail(struct cm_printer *p, enum cm_status status, const char *format, ...)
    CM_PRINTF(3, 4);
bool cm_print_enter(struct cm_printer *p);
/* Hands on what is pending; the status of the whole. */
enum cm_status cm_print_end(struct cm_printer *p) CM_MUST_CHECK;

/* key: value */
void cm_print_field(struct cm_printer *p, const struct cm_message_info *info, const void *msg,
                    int field);
/* <key: value, ..> of the present ones among these fields; says whether there were any. */
bool cm_print_notes(struct cm_printer *p, const struct cm_message_info *info, const void *msg,
                    uint32_t fields);
void cm_print_entries(struct cm_printer *p, const struct cm_entries *entries);

void cm_print_type(struct cm_printer *p, const struct cm_type_proto *type);
void cm_print_value(struct cm_printer *p, const struct cm_value_info_proto *value);
void cm_print_tensor(struct cm_printer *p, const struct cm_tensor_proto *tensor, bool initializer);
void cm_print_sparse(struct cm_printer *p, const struct cm_sparse_proto *sparse);
void cm_print_attribute(struct cm_printer *p, const struct cm_attribute_proto *attribute);
void cm_print_node(struct cm_printer *p, const struct cm_node_proto *node);
void cm_print_nodes(struct cm_printer *p, const struct cm_nodes *nodes);
void cm_print_graph(struct cm_printer *p, const struct cm_graph_proto *graph);

#endif
