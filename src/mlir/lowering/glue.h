/* The C that stands between a program (mlir/lowering/mlir_program.h) and whoever calls it: a header
 * for people, and a source that checks what the caller gives, hands out memory of the arena and
 * calls the program. The source is compiled for the target by clang (mlir/toolchain/clang.h); it
 * needs no library, has no state of its own and may run in any number of threads. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_GLUE_H
#define CM_MLIR_GLUE_H

#include "base/arena.h"
#include "mlir/lowering/mlir_program.h"

enum cm_glue_weights {
    CM_GLUE_INSIDE, /* in the object, as cm_weights */
    CM_GLUE_BESIDE, /* in a file, which the caller maps */
    CM_GLUE_CALLER, /* the caller puts them together */
};

/* A variable of a training step: the program reads it as one of its inputs, and gives its next
 * value as one of its outputs. */
struct cm_glue_variable {
    struct cm_str name;
    size_t number; /* the caller's, which laying out keeps */
    size_t bytes;
    size_t offset;           /* in the state; set by cm_glue_lay_out_state */
    ptrdiff_t input, output; /* of the program; -1: not read, not changed */
    bool is_random;          /* the program's random state, which it changes in place */
};

struct cm_glue_state {
    struct cm_glue_variable *variables; /* changed ones first, once they are laid out */
    size_t count;
    size_t bytes, changed_bytes; /* of all, and of the changed ones */
    size_t initial_offset;       /* of the first values, laid out alike, in the weights */
};

struct cm_glue_options {
    const char *name;   /* a C identifier */
    const char *source; /* what the model is called, for people */
    enum cm_glue_weights weights;
    bool is_library;                   /* it exports its description */
    const struct cm_glue_state *state; /* NULL: not a training step */
    size_t weight_bytes;               /* those of the program, and the state's first values */
    uint32_t weight_check;             /* cm_crc32c of them */
    size_t planned_bytes;              /* of the arena, as the module planned it */
    bool arena_is_fixed;
    char *const *messages; /* of checks that the program makes */
    size_t n_messages;
};

struct cm_glue {
    struct cm_str header, source, prototype; /* the last: of the function that runs it */
    const char **exported;                   /* symbols */
    size_t n_exported;
    size_t arena_bytes; /* what the caller must give at least; it is enough where it is fixed */
};

/* A C identifier made of any text: "net-2.onnx" gives "net_2". */
struct cm_str cm_glue_name(struct cm_arena *arena, struct cm_str text);
bool cm_glue_name_is_valid(const char *name);

/* Gives variables their places, 64 bytes aligned. */
void cm_glue_lay_out_state(struct cm_glue_state *state);

enum cm_status cm_glue_write(const struct cm_mlir_program *program,
                             const struct cm_glue_options *options, struct cm_arena *arena,
                             struct cm_glue *out, struct cm_error *err) CM_MUST_CHECK;

/* How a port reads: "float[N,3]". */
struct cm_str cm_mlir_port_type(struct cm_arena *arena, const struct cm_mlir_port *port);
/* Bytes of one element as programs have it: types below a byte take one. */
size_t cm_mlir_element_bytes(enum cm_dtype type);
/* Elements of such a type, one to a byte, signs extended; and back into the tensor's memory. */
void cm_mlir_unpack(unsigned char *to, const struct cm_tensor *tensor);
void cm_mlir_pack(const struct cm_tensor *tensor, const unsigned char *from);

/* C sources that are compiled for the target, embedded by the build: "mlir/runtime/runtime.c". */
struct cm_mlir_source {
    const char *name, *text;
    size_t size;
};
extern const struct cm_mlir_source cm_mlir_sources[];
extern const size_t cm_mlir_source_count;
/* NULL: there is none. */
const struct cm_mlir_source *cm_mlir_source_find(const char *name);

#endif
