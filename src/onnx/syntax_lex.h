/* The words and marks of ONNX's text form, and the numbers in it, for the files syntax_*.c, and
 * what MLIR's text has in common with it, for mlir/dialect/. There is no list of tokens: a parser
 * asks for what the grammar allows next, and what is read is a view into the text. Positions become
 * lines and columns only when something is wrong, so reading is linear. Numbers do not depend on
 * the locale. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_SYNTAX_LEX_H
#define CM_ONNX_SYNTAX_LEX_H

#include "base/arena.h"

/* How a language is written. */
struct cm_lex_rules {
    char comment[3]; /* begins one that ends with the line */
    char in_word[3]; /* marks that a word may have after its first letter */
};
extern const struct cm_lex_rules cm_lex_onnx;

struct cm_lexer {
    const struct cm_lex_rules *rules;
    const char *start, *at, *end;
    struct cm_arena *arena; /* strings with escapes are copied here */
    struct cm_error *err;
    int depth; /* graphs and types around this place */
};

/* "line 4, column 25: ..." for the place at, which must lie in the text. */
enum cm_status cm_lex_fail_at(const struct cm_lexer *lex, const char *at, enum cm_status status,
                              const char *format, ...) CM_PRINTF(4, 5);
/* "expected <what> but found <what is next>". */
enum cm_status cm_lex_expected(struct cm_lexer *lex, const char *what) CM_MUST_CHECK;

/* Each skips space and comments first. */
int cm_lex_peek(struct cm_lexer *lex); /* the next byte, -1 at the end */
bool cm_lex_take(struct cm_lexer *lex, char mark);
enum cm_status cm_lex_expect(struct cm_lexer *lex, char mark) CM_MUST_CHECK;
struct cm_str
cm_lex_peek_word(struct cm_lexer *lex); /* an unquoted identifier; empty when there is none */
bool cm_lex_take_word(struct cm_lexer *lex, const char *word);
/* The byte that follows the word that is next, space and comments skipped; -1 at the end. */
int cm_lex_peek_after_word(struct cm_lexer *lex);

/* Is this an identifier that needs no quotes? */
bool cm_lex_is_word(struct cm_str text);
int cm_lex_hex_digit(int c); /* its value; -1: it is none */

/* inf, infinity or nan, in capitals or not. */
bool cm_lex_is_number_word(struct cm_str word);

/* A string in quotes; a backslash copies the next byte. */
enum cm_status cm_lex_string(struct cm_lexer *lex, struct cm_str *out) CM_MUST_CHECK;
/* An identifier or a string in quotes. */
bool cm_lex_at_name(struct cm_lexer *lex);
enum cm_status cm_lex_name(struct cm_lexer *lex, const char *what,
                           struct cm_str *out) CM_MUST_CHECK;

/* A number as written: -12, 1.5e3, inf, -NaN, nan(5). */
struct cm_number_text {
    struct cm_str text;
    bool whole; /* an optional minus and digits */
};
bool cm_lex_at_number(struct cm_lexer *lex);
enum cm_status cm_lex_number(struct cm_lexer *lex, struct cm_number_text *out) CM_MUST_CHECK;
enum cm_status cm_lex_int64(struct cm_lexer *lex, int64_t *out) CM_MUST_CHECK;
/* The value of number, which was just read; refuses what does not fit, not what must be rounded. */
enum cm_status cm_number_to_int64(const struct cm_lexer *lex, const struct cm_number_text *number,
                                  int64_t min, int64_t max, const char *type,
                                  int64_t *out) CM_MUST_CHECK;
enum cm_status cm_number_to_uint64(const struct cm_lexer *lex, const struct cm_number_text *number,
                                   uint64_t max, const char *type, uint64_t *out) CM_MUST_CHECK;
enum cm_status cm_number_to_float(const struct cm_lexer *lex, const struct cm_number_text *number,
                                  float *out) CM_MUST_CHECK;
enum cm_status cm_number_to_double(const struct cm_lexer *lex, const struct cm_number_text *number,
                                   double *out) CM_MUST_CHECK;

/* One more level of nesting; the caller ends it with lex->depth--. */
enum cm_status cm_lex_enter(struct cm_lexer *lex) CM_MUST_CHECK;

#endif
