/* What the parser's files tell each other: one function per thing of the grammar, each reading it
 * from where the lexer stands. The grammar is in docs/text-form.md. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_SYNTAX_PARSE_H
#define CM_ONNX_SYNTAX_PARSE_H

#include "onnx/descriptor.h"
#include "onnx/syntax_lex.h"
#include "onnx/syntax_names.h"
#include "tensor/dtype.h"

/* A list while it is read: like CM_PUSH, but the first room is for one item, since most lists of a
 * text are short. */
#define CM_ADD(lex, list)                                                                          \
    ((list)->count == (list)->capacity                                                             \
         ? (void)((list)->items = cm_parse_grow((lex), (list)->items, &(list)->capacity,           \
                                                sizeof *(list)->items))                            \
         : (void)0,                                                                                \
     &(list)->items[(list)->count++])

/* A list that was read becomes a field of the message, which is present if the list has items. */
#define CM_SET_LIST(message, member, field, list)                                                  \
    do {                                                                                           \
        (message)->member.items = (list).items;                                                    \
        (message)->member.count = (list).count;                                                    \
        if ((list).count)                                                                          \
            cm_msg_set(&(message)->msg, (field));                                                  \
    } while (0)

void *cm_parse_grow(struct cm_lexer *lex, const void *items, size_t *capacity, size_t size);

/* key: value, .. up to close, which must follow at least one. */
enum cm_status cm_parse_fields(struct cm_lexer *lex, const struct cm_message_info *info, void *msg,
                               uint32_t allowed, char close) CM_MUST_CHECK;
/* The same in angle brackets if they are next, else nothing. */
enum cm_status cm_parse_notes(struct cm_lexer *lex, const struct cm_message_info *info, void *msg,
                              uint32_t allowed) CM_MUST_CHECK;
/* "key": "value", .. after the opening bracket; appends. */
enum cm_status cm_parse_entries(struct cm_lexer *lex, struct cm_entries *out) CM_MUST_CHECK;

/* Is the next word a type rather than the name of a value or a graph? */
bool cm_at_type(struct cm_lexer *lex);
enum cm_status cm_parse_type(struct cm_lexer *lex, struct cm_type_proto *out) CM_MUST_CHECK;
/* [type] name [notes] */
enum cm_status cm_parse_value(struct cm_lexer *lex, struct cm_value_info_proto *out) CM_MUST_CHECK;

/* {..} or ["location": ..] into a tensor of this type. */
enum cm_status cm_parse_tensor_data(struct cm_lexer *lex, const struct cm_type_proto *type,
                                    struct cm_tensor_proto *out) CM_MUST_CHECK;
bool cm_at_sparse(struct cm_lexer *lex);
enum cm_status cm_parse_sparse(struct cm_lexer *lex, struct cm_sparse_proto *out) CM_MUST_CHECK;
/* What may follow a type and make it a tensor: a name, notes, data. */
bool cm_at_tensor_rest(struct cm_lexer *lex);
enum cm_status cm_parse_tensor_rest(struct cm_lexer *lex, const struct cm_type_proto *type,
                                    struct cm_tensor_proto *out) CM_MUST_CHECK;

/* name [notes] [: type] [= value]; *bare: only a name was there, which a function may have. */
enum cm_status cm_parse_attribute(struct cm_lexer *lex, struct cm_attribute_proto *out,
                                  bool *bare) CM_MUST_CHECK;
enum cm_status cm_parse_node(struct cm_lexer *lex, struct cm_node_proto *out) CM_MUST_CHECK;
enum cm_status cm_parse_nodes(struct cm_lexer *lex, struct cm_nodes *out) CM_MUST_CHECK;
enum cm_status cm_parse_graph(struct cm_lexer *lex, struct cm_graph_proto *out) CM_MUST_CHECK;

#endif
