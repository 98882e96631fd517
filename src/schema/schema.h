/* The facts of every operator version that ONNX and this project define: operands, attributes, type
 * constraints, legal counts, determinism, function bodies. The tables are constant data generated
 * from data/ at build time; this module looks things up in them and holds no state, so it is safe
 * from any thread. It does not know models: matching a node against its schema is done elsewhere. A
 * struct cm_schema is plain pointers and counts, so that one can also be written by hand. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_SCHEMA_SCHEMA_H
#define CM_SCHEMA_SCHEMA_H

#include "tensor/dtype.h"

#include <limits.h>

/* How an element type may be wrapped. ONNX uses no other nesting in its constraints. */
enum cm_type_form {
    CM_FORM_TENSOR,
    CM_FORM_SPARSE_TENSOR,
    CM_FORM_SEQ,          /* seq(tensor) */
    CM_FORM_OPTIONAL,     /* optional(tensor) */
    CM_FORM_OPTIONAL_SEQ, /* optional(seq(tensor)) */
    CM_FORM_MAP,          /* map(key, element) */
    CM_FORM_SEQ_MAP,      /* seq(map(key, element)) */
};

#define CM_TYPE_BIT(type) (UINT64_C(1) << (unsigned)(type))

struct cm_type_row {
    enum cm_type_form form;
    enum cm_dtype key; /* of the map forms; CM_UNDEFINED in all others */
    uint64_t elements; /* CM_TYPE_BIT of each element type */
};

/* A union of rows. */
struct cm_type_set {
    const struct cm_type_row *rows;
    size_t row_count;
};

/* A type variable ("T"), or a type that an operand always has ("tensor(int64)"). All operands of
 * one variable have the same type, save those marked mixed. */
struct cm_schema_type {
    const char *name;
    struct cm_type_set set;
    bool fixed; /* spelled out in the operand rather than a variable */
};

enum cm_param_kind { CM_PARAM_SINGLE, CM_PARAM_OPTIONAL, CM_PARAM_VARIADIC };

/* What ONNX says of the derivative with respect to, or of, an operand. */
enum cm_diff_tag { CM_DIFF_UNKNOWN, CM_DIFF_YES, CM_DIFF_NO };

struct cm_schema_param {
    const char *name;
    int16_t type; /* index into the schema's types */
    enum cm_param_kind kind : 8;
    enum cm_diff_tag diff : 8;
    int16_t min_arity; /* of a variadic: how many there must be */
    bool mixed;        /* each operand of a variadic may have a type of its own */
};

/* Numbered as AttributeProto.AttributeType. */
enum cm_schema_attr_kind {
    CM_SCHEMA_FLOAT = 1,
    CM_SCHEMA_INT = 2,
    CM_SCHEMA_STRING = 3,
    CM_SCHEMA_TENSOR = 4,
    CM_SCHEMA_GRAPH = 5,
    CM_SCHEMA_FLOATS = 6,
    CM_SCHEMA_INTS = 7,
    CM_SCHEMA_STRINGS = 8,
    CM_SCHEMA_TENSORS = 9,
    CM_SCHEMA_GRAPHS = 10,
    CM_SCHEMA_SPARSE_TENSOR = 11,
    CM_SCHEMA_SPARSE_TENSORS = 12,
    CM_SCHEMA_TYPE_PROTO = 13,
    CM_SCHEMA_TYPE_PROTOS = 14,
};

/* Only the member of the attribute's kind is set. */
struct cm_schema_default {
    float f;
    int64_t i;
    const char *s;
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
    size_t count; /* of whichever list is set; may be 0 */
};

struct cm_schema_attr {
    const char *name;
    enum cm_schema_attr_kind kind;
    bool required;
    const struct cm_schema_default *preset; /* the default; NULL when there is none */
};

enum cm_determinism {
    CM_DETERMINISTIC,
    CM_RANDOM_OUTPUT, /* declared not deterministic: random generators, and operators with bodies */
    CM_RANDOM_UNDECIDED, /* not declared */
};

enum { CM_SCHEMA_UNBOUNDED = INT_MAX };

/* There are hundreds: counts are narrow and stand together, so that the table takes little room. */
struct cm_schema {
    const char *domain; /* "" for ai.onnx */
    const char *name;

    const struct cm_schema_param *inputs, *outputs;
    const struct cm_schema_attr *attrs; /* sorted by name */
    const struct cm_schema_type *types; /* variables, then fixed types */
    /* Opset versions that ONNX has a function body in, ascending: one body for all uses, and one
     * built from the attributes, types and present operands of each use. */
    const int *bodies, *context_bodies;

    uint64_t legal_inputs; /* bit n: n operands are legal; 0: all from min to max */
    uint64_t legal_outputs;
    int min_inputs, max_inputs;   /* operands of a node, trailing absent ones not counted */
    int min_outputs, max_outputs; /* CM_SCHEMA_UNBOUNDED after a variadic */
    int since_version;

    uint16_t input_count, output_count; /* of parameters; a variadic one is the last */
    uint16_t attr_count, type_count;
    uint16_t body_count, context_body_count;

    enum cm_determinism determinism : 8;
    bool deprecated; /* exists in this version only to say that it is gone */
    bool experimental;
    bool infers_shape;      /* ONNX has an inference rule for it */
    bool propagates_values; /* and one for known values, as shape arithmetic needs */
};

/* The version of an operator in force at this opset: the newest one not above it. NULL if the
 * operator is unknown or younger. The domains "" and "ai.onnx" are the same. A deprecated version
 * is returned like any other. */
const struct cm_schema *cm_schema_find(struct cm_str domain, struct cm_str name, int64_t opset);
const struct cm_schema *cm_schema_newest(struct cm_str domain, struct cm_str name);

/* All versions of all operators, sorted by domain, name and descending version. */
size_t cm_schema_count(void);
const struct cm_schema *cm_schema_at(size_t index);

/* The operator that was probably meant by a name that is not known, in its newest version: the same
 * name in another domain, or a name a few letters away. NULL if nothing is close. */
const struct cm_schema *cm_schema_suggest(struct cm_str domain, struct cm_str name);

bool cm_schema_domain_known(struct cm_str domain);
int64_t cm_schema_newest_opset(struct cm_str domain); /* 0 if the domain is not known */

/* The parameter that operand number index belongs to; NULL if there is none. */
const struct cm_schema_param *cm_schema_input(const struct cm_schema *schema, size_t index);
const struct cm_schema_param *cm_schema_output(const struct cm_schema *schema, size_t index);
bool cm_schema_allows_inputs(const struct cm_schema *schema, size_t count);
bool cm_schema_allows_outputs(const struct cm_schema *schema, size_t count);
const struct cm_schema_attr *cm_schema_find_attr(const struct cm_schema *schema,
                                                 struct cm_str name);

/* What an operand of this parameter may be. */
const struct cm_type_set *cm_schema_types_of(const struct cm_schema *schema,
                                             const struct cm_schema_param *param);
bool cm_type_set_allows(const struct cm_type_set *set, enum cm_type_form form, enum cm_dtype key,
                        enum cm_dtype element);
/* Dense tensors, the usual case. */
bool cm_type_set_allows_tensor(const struct cm_type_set *set, enum cm_dtype element);
/* For messages: "float16, double, seq(float)". Cut to fit, "float and more";
 * always terminated if size is not 0. */
void cm_type_set_print(const struct cm_type_set *set, char *out, size_t size);

#endif
