/* ONNX's text form: models, graphs, functions and nodes as people write them. What upstream's form
 * cannot say (training info, sparse initializers, ...) has extensions; docs/text-form.md lists
 * them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_SYNTAX_H
#define CM_ONNX_SYNTAX_H

#include "onnx/messages.h"

/* Graphs and types inside each other; text deeper than this is refused. A graph is three messages
 * deeper than the one around it and a type two, so what can be read as text also fits in
 * CM_DECODE_DEPTH messages of a file. */
enum { CM_SYNTAX_DEPTH = 30 };

/* The whole of text must be one model (graph, function, node). Strings of the result are views into
 * text or copies in arena; text must live as long as the structs. Errors begin with "line L, column
 * C: ". */
enum cm_status cm_syntax_parse_model(struct cm_str text, struct cm_arena *arena,
                                     struct cm_model_proto *out,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_syntax_parse_graph(struct cm_str text, struct cm_arena *arena,
                                     struct cm_graph_proto *out,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_syntax_parse_function(struct cm_str text, struct cm_arena *arena,
                                        struct cm_function_proto *out,
                                        struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_syntax_parse_node(struct cm_str text, struct cm_arena *arena,
                                    struct cm_node_proto *out, struct cm_error *err) CM_MUST_CHECK;

/* Text without the mark that some editors put before UTF-8; the parsers skip it themselves. */
struct cm_str cm_syntax_skip_mark(struct cm_str text);

struct cm_syntax_options {
    bool upstream; /* byte for byte what ONNX's own printer writes: drops what it drops, "..." for
                      what it cannot say */
    size_t elide;  /* tensors of more elements are cut to "..."; 0: print all (such text cannot be
                      read back) */
};

typedef enum cm_status cm_text_write_fn(void *to, const void *bytes, size_t size,
                                        struct cm_error *err);

/* What is printed without options reads back to a model that says the same, or the call fails and
 * says what the text form cannot hold. "The same" as cm_message_equal has it, but for two things:
 * tensor values come back in typed fields even if they were in raw_data, and an absent string may
 * come back as an empty one. The writer is called with pieces of a few KiB. */
enum cm_status cm_syntax_print_model(const struct cm_model_proto *model,
                                     const struct cm_syntax_options *options,
                                     cm_text_write_fn *write, void *to,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_syntax_print_graph(const struct cm_graph_proto *graph,
                                     const struct cm_syntax_options *options,
                                     cm_text_write_fn *write, void *to,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_syntax_print_function(const struct cm_function_proto *function,
                                        const struct cm_syntax_options *options,
                                        cm_text_write_fn *write, void *to,
                                        struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_syntax_print_node(const struct cm_node_proto *node,
                                    const struct cm_syntax_options *options,
                                    cm_text_write_fn *write, void *to,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif
