/* MLIR's text as a tree of operations, attributes and types, for the files that read the ONNX
 * dialect. The tree knows MLIR's syntax and a few operations' own forms, and nothing of what they
 * mean. Positions in the text are kept, for messages. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_DIALECT_TREE_H
#define CM_MLIR_DIALECT_TREE_H

#include "base/array.h"
#include "base/map.h"
#include "onnx/messages.h"
#include "onnx/syntax_lex.h"
#include "tensor/dtype.h"

enum cm_dialect_type_kind {
    CM_DIALECT_TYPE_UNKNOWN, /* !onnx.Unknown */
    CM_DIALECT_TYPE_NONE,
    CM_DIALECT_TYPE_ELEMENT, /* f32 */
    CM_DIALECT_TYPE_PROTO,   /* what a message can say */
    CM_DIALECT_TYPE_OTHER,   /* of functions, index */
};

struct cm_dialect_type;

struct cm_dialect_types {
    CM_ARRAY(struct cm_dialect_type);
};

struct cm_dialect_type {
    enum cm_dialect_type_kind kind;
    enum cm_dtype element;
    struct cm_type_proto *proto;
    struct cm_dialect_types results; /* of a function */
};

enum cm_dialect_attr_kind {
    CM_DIALECT_ATTR_UNIT, /* a key alone */
    CM_DIALECT_ATTR_NUMBER,
    CM_DIALECT_ATTR_STRING,
    CM_DIALECT_ATTR_ARRAY,
    CM_DIALECT_ATTR_DICT,
    CM_DIALECT_ATTR_TYPE,
    CM_DIALECT_ATTR_SYMBOL,
    CM_DIALECT_ATTR_DENSE,
    CM_DIALECT_ATTR_RESOURCE, /* dense values in a section at the end of the file */
};

struct cm_dialect_entry;

struct cm_dialect_entries {
    CM_ARRAY(struct cm_dialect_entry);
};

struct cm_dialect_attr {
    enum cm_dialect_attr_kind kind;
    const char *at;
    struct cm_str text; /* of a string, unescaped; of a number, as written; a name; dense values */
    bool whole;         /* a number without point and exponent */
    struct cm_dialect_type type;            /* a type; of a number, dense values */
    CM_ARRAY(struct cm_dialect_attr) items; /* of an array */
    struct cm_dialect_entries entries;
};

struct cm_dialect_entry {
    struct cm_str key;
    const char *at;
    struct cm_dialect_attr value;
};

/* "%5#1" is name "5" and index 1; where there is no "#", index 0. */
struct cm_dialect_ssa {
    struct cm_str name;
    const char *at;
    size_t index; /* of an operand; of a definition: how many there are */
};

struct cm_dialect_ssas {
    CM_ARRAY(struct cm_dialect_ssa);
};

struct cm_dialect_argument {
    struct cm_dialect_ssa ssa; /* of a result, empty */
    struct cm_dialect_type type;
    struct cm_dialect_entries attrs;
};

struct cm_dialect_arguments {
    CM_ARRAY(struct cm_dialect_argument);
};

struct cm_dialect_op;

struct cm_dialect_ops {
    CM_ARRAY(struct cm_dialect_op);
};

/* A region of one block. */
struct cm_dialect_region {
    const char *at;
    struct cm_dialect_arguments arguments;
    struct cm_dialect_ops ops;
};

struct cm_dialect_op {
    struct cm_str name; /* "onnx.Conv", "func.func", "builtin.module" */
    const char *at;
    struct cm_dialect_ssas results, operands;
    struct cm_dialect_types result_types;
    struct cm_dialect_entries attrs;
    CM_ARRAY(struct cm_dialect_region) regions;
    struct cm_dialect_arguments outputs; /* of a function: its results */
};

struct cm_dialect_tree {
    struct cm_lexer lex; /* for messages */
    struct cm_dialect_ops ops;
    struct cm_map resources; /* names to addresses of struct cm_str: hexadecimal digits */
};

enum cm_status cm_dialect_parse_tree(struct cm_str text, struct cm_arena *arena,
                                     struct cm_dialect_tree *out,
                                     struct cm_error *err) CM_MUST_CHECK;

/* NULL: there is none. */
const struct cm_dialect_attr *cm_dialect_get(const struct cm_dialect_entries *entries,
                                             const char *key);

/* The parts of the parser. */
extern const struct cm_lex_rules cm_dialect_lex;
bool cm_dialect_take(struct cm_lexer *lex, const char *mark);
enum cm_status cm_dialect_expect(struct cm_lexer *lex, const char *mark) CM_MUST_CHECK;
enum cm_status cm_dialect_string(struct cm_lexer *lex, struct cm_str *out) CM_MUST_CHECK;
/* A number as written; hexadecimal ones are whole. */
bool cm_dialect_at_number(struct cm_lexer *lex);
enum cm_status cm_dialect_number(struct cm_lexer *lex, struct cm_number_text *out) CM_MUST_CHECK;
/* What stands between an opening bracket, which was read, and its closing one. */
enum cm_status cm_dialect_skip_to(struct cm_lexer *lex, char open, char close,
                                  struct cm_str *out) CM_MUST_CHECK;
enum cm_status cm_dialect_symbol(struct cm_lexer *lex, struct cm_str *out) CM_MUST_CHECK;

enum cm_status cm_dialect_parse_type(struct cm_lexer *lex,
                                     struct cm_dialect_type *out) CM_MUST_CHECK;
enum cm_status cm_dialect_parse_attr(struct cm_lexer *lex,
                                     struct cm_dialect_attr *out) CM_MUST_CHECK;
/* `{key = value, ..}`, added to out. */
enum cm_status cm_dialect_parse_dict(struct cm_lexer *lex,
                                     struct cm_dialect_entries *out) CM_MUST_CHECK;

#endif
