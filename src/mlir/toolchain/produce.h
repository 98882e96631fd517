/* From a program (mlir/lowering/mlir_program.h) to the bytes of files: text of a stage, an object,
 * an archive, a shared library or a module of WebAssembly, with the header that describes it and
 * the weights that lie beside it. Nothing is written here but files in a temporary folder. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_PRODUCE_H
#define CM_MLIR_PRODUCE_H

#include "mlir/lowering/glue.h"
#include "mlir/toolchain/clang.h"
#include "mlir/toolchain/mlir_module.h"

enum cm_produce_kind {
    CM_PRODUCE_BUFFERS, /* text: loops over memory */
    CM_PRODUCE_LLVM,
    CM_PRODUCE_ASSEMBLY,
    CM_PRODUCE_OBJECT,
    CM_PRODUCE_ARCHIVE,
    CM_PRODUCE_LIBRARY, /* for WebAssembly: a module */
};

/* What is being done, for people; may be NULL. */
typedef void cm_produce_tell_fn(void *arg, const char *what);

struct cm_produce_options {
    enum cm_produce_kind kind;
    const char *name;   /* a C identifier */
    const char *source; /* what the model is called, for people */
    const char *file;   /* the name that the file will have, without folders */
    struct cm_clang_target target;
    enum cm_glue_weights weights;
    struct cm_glue_state *state;            /* NULL: not a training step; is laid out here */
    const struct cm_tensor *const *initial; /* the first values of its variables, by number */
    const struct cm_mlir_module *module;
    cm_produce_tell_fn *tell;
    void *tell_arg;
    const atomic_bool *cancel; /* looked at between steps; NULL: none */
};

/* All in the arena. */
struct cm_produced {
    struct cm_str bytes;
    struct cm_str header;  /* empty for text */
    struct cm_str weights; /* whatever place they have */
    struct cm_str prototype;
    size_t code_bytes; /* of code and constants, without the weights */
    size_t arena_bytes, state_bytes;
    bool arena_is_fixed;
    const struct cm_str *needs; /* functions that it calls and does not have */
    size_t n_needs;
};

/* Programs of others that kind needs are looked for, and asked whether there is such a target; to
 * be asked before any work. */
enum cm_status cm_produce_check(enum cm_produce_kind kind, const struct cm_clang_target *target,
                                struct cm_arena *arena, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_produce(const struct cm_mlir_program *program,
                          const struct cm_produce_options *options, struct cm_arena *arena,
                          struct cm_produced *out, struct cm_error *err) CM_MUST_CHECK;

/* object_file.c: what an object in the form of ELF or WebAssembly holds; false, and nothing is
 * known, for others. */
struct cm_object_facts {
    size_t bytes;   /* of what is loaded */
    bool is_narrow; /* for a machine of 32 bits, whose compiler has functions for what it lacks */
    const struct cm_str *undefined;
    size_t n_undefined;
};
bool cm_object_read(struct cm_str object, struct cm_arena *arena, struct cm_object_facts *out);

#endif
