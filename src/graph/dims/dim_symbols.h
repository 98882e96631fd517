/* The table of symbols, as graph/dims/dim_math.h needs it: what an expression is made of. Everybody
 * else takes a symbol as a number with a name (graph/type.h). */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_DIMS_DIM_SYMBOLS_H
#define CM_GRAPH_DIMS_DIM_SYMBOLS_H

#include "graph/type.h"

enum { CM_ATOMS_MAX = 8, CM_SUM_KEY_SIZE = 1024 }; /* atoms of one term; bytes of a sum's key */

enum cm_symbol_kind {
    CM_SYMBOL_PLAIN = 0, /* a name of the file, or unnamed: a size, never negative */
    CM_SYMBOL_SUM,       /* of terms: a number times symbols that are no sums */
    CM_SYMBOL_QUOTIENT,  /* floor(a / b): b is above 0 if it is a number, else not below it */
    CM_SYMBOL_POSITIVE,  /* max(a, 0) */
};

struct cm_symbol_view {
    enum cm_symbol_kind kind;
    struct cm_quantity a, b; /* of a quotient; a of a maximum */
    struct cm_str terms;     /* of a sum: for cm_symbol_term */
};
void cm_symbol_look(const struct cm_symbols *symbols, uint32_t symbol, struct cm_symbol_view *out);
/* The term at *at, which moves on; false after the last. */
bool cm_symbol_term(const struct cm_symbol_view *sum, size_t *at, int64_t *number, int *degree,
                    uint32_t *atoms);
/* How large it is when it is written out. */
size_t cm_symbol_weight(const struct cm_symbols *symbols, uint32_t symbol);
/* Writes an expression as text, CM_SYMBOL_TEXT bytes at most; 0: it is longer, or something in it
 * has no name. */
enum { CM_SYMBOL_TEXT = 200 };
size_t cm_symbol_text(struct cm_symbols *symbols, uint32_t symbol, char *out);

/* Makers; the same symbol for the same arguments, 0 where the table is full. */
struct cm_sum_key {
    size_t size;
    char bytes[CM_SUM_KEY_SIZE];
};
void cm_sum_key_add(struct cm_sum_key *key, int64_t number, int degree, const uint32_t *atoms);
uint32_t cm_symbol_sum(struct cm_symbols *symbols, const struct cm_sum_key *key, size_t weight);
uint32_t cm_symbol_quotient(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b);
uint32_t cm_symbol_positive(struct cm_symbols *symbols, uint32_t a);

#endif
