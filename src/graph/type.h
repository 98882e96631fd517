/* Types of values in a graph: the element type is always known, a rank or a dimension may be
 * unknown or a symbol, and rules must ask. Types are immutable and live in the module's arena; pass
 * them by pointer. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_TYPE_H
#define CM_GRAPH_TYPE_H

#include "onnx/messages.h"
#include "tensor/tensor.h"

#include <string.h>

enum { CM_RANK_UNKNOWN = -1, CM_DIM_UNKNOWN = -1 };

/* A dimension: a number, else a symbol, else unknown and unrelated to every other. */
struct cm_dim {
    int64_t value;   /* CM_DIM_UNKNOWN unless it is a number */
    uint32_t symbol; /* of struct cm_symbols; 0: none. Means nothing beside a number */
};

#define CM_DIM(number) ((struct cm_dim){(number), 0})
#define CM_DIM_ANY     ((struct cm_dim){CM_DIM_UNKNOWN, 0})

/* One element of an integer tensor before it is computed: a number of any sign, else a symbol, else
 * unknown. */
struct cm_quantity {
    int64_t number;
    uint32_t symbol; /* 0: none */
    bool is_number;
};

static inline bool cm_dim_known(struct cm_dim dim)
{
    return dim.value >= 0;
}

struct cm_type {
    enum cm_kind kind;
    enum cm_dtype dtype; /* tensor, sparse: elements; map: keys */
    int rank;            /* tensor, sparse: CM_RANK_UNKNOWN or the number of dims */
    const struct cm_dim *dims;
    const struct cm_type *elem; /* sequence, optional, map: what is inside */
    struct cm_str domain, name; /* opaque */
};

/* Copies the dimensions of a tensor of known rank. A scalar has none, and `dims` may be NULL then.
 */
static inline void cm_type_copy_dims(struct cm_dim *out, const struct cm_type *type)
{
    if (type->rank > 0)
        memcpy(out, type->dims, (size_t)type->rank * sizeof *out);
}

/* Symbols, numbered from 1 and global to a model: names of dimensions in the file, unnamed ones,
 * and expressions of these (graph/dims/dim_math.h). */
struct cm_symbols;
struct cm_symbols *cm_symbols_new(struct cm_arena *arena);
uint32_t cm_symbol_named(struct cm_symbols *symbols, struct cm_str name);
/* What a person or a file calls it: a name, or "2*N + 1" for an expression. "" where that is made
 * of a symbol that nobody named: it stands for a dimension that is unknown but always the same. */
struct cm_str cm_symbol_name(const struct cm_symbols *symbols, uint32_t symbol);
/* Is it a sum, a product or the like of others? */
bool cm_symbol_is_expression(const struct cm_symbols *symbols, uint32_t symbol);
/* Is an unnamed symbol in it? Naming one gives it a text, which it has without being told apart by
 * it: the names are prefix0, prefix1 and so on, those that are taken left out. */
bool cm_symbol_is_fresh(const struct cm_symbols *symbols, uint32_t symbol);
void cm_symbol_name_fresh(struct cm_symbols *symbols, uint32_t symbol, const char *prefix);
/* The unnamed symbol of one dimension of one value; the same for the same numbers. */
uint32_t cm_symbol_unnamed(struct cm_symbols *symbols, uint32_t value, int axis);

const struct cm_type *cm_type_tensor(struct cm_arena *arena, enum cm_dtype dtype, int rank,
                                     const struct cm_dim *dims);
const struct cm_type *cm_type_of_tensor(struct cm_arena *arena, const struct cm_tensor *tensor);
const struct cm_type *cm_type_of_datum(struct cm_arena *arena, const struct cm_datum *datum);
const struct cm_type *cm_type_wrap(struct cm_arena *arena, enum cm_kind kind,
                                   const struct cm_type *elem);

/* From a file: refuses unknown element types, negative sizes, missing kinds, nesting past a sane
 * depth. A dimension whose symbol is empty is unknown. */
enum cm_status cm_type_from_proto(struct cm_arena *arena, struct cm_symbols *symbols,
                                  const struct cm_type_proto *proto, const struct cm_type **out,
                                  struct cm_error *err) CM_MUST_CHECK;
void cm_type_to_proto(struct cm_arena *arena, const struct cm_symbols *symbols,
                      const struct cm_type *type, struct cm_type_proto *out);

bool cm_type_equal(const struct cm_type *a, const struct cm_type *b);
/* The concrete shape, when every dimension is a number. */
bool cm_type_shape(const struct cm_type *type, struct cm_shape *out);
bool cm_type_is_concrete(const struct cm_type *type);

/* What both say together: numbers win over symbols, symbols over nothing. NULL when they contradict
 * each other. */
const struct cm_type *cm_type_meet(struct cm_arena *arena, const struct cm_type *a,
                                   const struct cm_type *b);
/* What holds of either: differing dimensions become unknown, differing ranks too. NULL when kinds
 * or element types differ. */
const struct cm_type *cm_type_join(struct cm_arena *arena, const struct cm_type *a,
                                   const struct cm_type *b);

/* "float[N,3,224,224]", "seq(int64[])", as in ONNX's text form. */
struct cm_str cm_type_print(struct cm_arena *arena, const struct cm_symbols *symbols,
                            const struct cm_type *type);

bool cm_dim_same(struct cm_dim a, struct cm_dim b); /* surely equal */
/* Are the first `count` dimensions of both surely equal? */
bool cm_dims_same(const struct cm_dim *a, const struct cm_dim *b, int count);
/* Tensors that surely have the same shape. */
bool cm_type_same_shape(const struct cm_type *a, const struct cm_type *b);
/* A tensor that surely has one element. */
bool cm_type_is_single(const struct cm_type *type);
/* numpy broadcasting of one axis; false when two numbers contradict each other. */
bool cm_dim_broadcast(struct cm_dim a, struct cm_dim b, struct cm_dim *out);
/* Two dimensions that must be equal: the one that says more; false when they contradict each other.
 */
bool cm_dim_unify(struct cm_dim a, struct cm_dim b, struct cm_dim *out);

#endif
