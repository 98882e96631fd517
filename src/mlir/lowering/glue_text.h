/* What the parts that write glue share: a growing text, and the model at hand. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_GLUE_TEXT_H
#define CM_MLIR_GLUE_TEXT_H

#include "mlir/lowering/glue.h"

struct cm_glue_text {
    struct cm_arena *arena;
    char *data;
    size_t size, room;
};

void cm_glue_put(struct cm_glue_text *text, const char *format, ...) CM_PRINTF(2, 3);
void cm_glue_put_bytes(struct cm_glue_text *text, struct cm_str bytes);
/* A string literal of C, whatever is in it. */
void cm_glue_put_literal(struct cm_glue_text *text, struct cm_str value);
/* Text for a comment: nothing in it ends the comment or the line. */
void cm_glue_put_comment(struct cm_glue_text *text, struct cm_str value);
/* An embedded source. */
void cm_glue_put_source(struct cm_glue_text *text, const char *name);

/* The ports that the caller sees: all but the variables of a training step. */
struct cm_glue_ports {
    const struct cm_mlir_port **items;
    size_t count;
    size_t *slots; /* per port of the program: which of these it is, where it is one */
};

struct cm_glue_writer {
    const struct cm_mlir_program *program;
    const struct cm_glue_options *options;
    struct cm_arena *arena;
    struct cm_glue *out;
    struct cm_glue_ports inputs, outputs;
    struct cm_glue_text header, source;
};

/* glue_header.c */
struct cm_str cm_glue_prototype(struct cm_glue_writer *w); /* as the source has it */
void cm_glue_put_header(struct cm_glue_writer *w);
/* "float[8,3]"; empty where no port of the program is the variable. */
struct cm_str cm_glue_weight_type(struct cm_arena *arena, const struct cm_mlir_weight *weight);
struct cm_str cm_glue_variable_type(struct cm_glue_writer *w, const struct cm_glue_variable *v);

/* May it stand in a name of C? */
static inline bool cm_glue_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

#endif
