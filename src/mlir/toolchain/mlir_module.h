/* What the module of MLIR provides: a shared object of ours that links MLIR and LLVM through their
 * C interfaces, opened when the first model is compiled (mlir/toolchain/open.h). This header is all
 * that the two know of each other. It includes nothing of ours, so that the module links nothing of
 * ours. The module never prints or exits, and keeps state in builds only. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_MLIR_MODULE_H
#define CM_MLIR_MLIR_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a program is taken; each form is text but for the last. */
enum cm_mlir_form {
    CM_MLIR_LINALG,  /* parsed, verified, printed again: linalg on tensors */
    CM_MLIR_BUFFERS, /* after fusion and bufferization: loops over memory in the arena */
    CM_MLIR_DIALECT, /* MLIR's LLVM dialect */
    CM_MLIR_LLVM,    /* LLVM IR of the whole library, optimized */
    CM_MLIR_ASSEMBLY,
    CM_MLIR_OBJECT, /* an object file for the target */
};

struct cm_mlir_bytes {
    const char *data;
    size_t size;
};

/* The program is one module in MLIR's text form with one public function, cm_main, as
 * mlir/lowering/mlir_program.h describes it. */
struct cm_mlir_job {
    struct cm_mlir_bytes text;
    enum cm_mlir_form form;
    const char *triple;   /* "": this machine */
    const char *cpu;      /* "native": this machine's; "": the least of its kind */
    const char *features; /* as LLVM spells them, or "" */
    bool position_independent;
    /* Only read when the build is finished. The code that is linked in are LLVM modules that
     * nothing has optimized yet. Of the kernels only what the rest calls is kept. */
    struct cm_mlir_bytes glue; /* size 0: none */
    const struct cm_mlir_bytes *kernels;
    size_t n_kernels;
    const char *const *exported; /* the symbols that stay visible; all others become local */
    size_t n_exported;
    struct cm_mlir_bytes weights; /* becomes the constant `cm_weights`; size 0: none */
};

/* The results, all malloc'd, for release. Where a step failed, error says why, and the rest is
 * empty. Planning sets all but bytes. */
struct cm_mlir_product {
    char *bytes;
    size_t size;
    char *error;
    int64_t arena_bytes; /* of the planned part of the arena */
    bool arena_is_fixed; /* all of it is planned: nothing is allocated while it runs */
    char **messages;     /* of checks: what is wrong when check i (cm_require) fails */
    size_t n_messages;
};

struct cm_mlir_build;

struct cm_mlir_module {
    uint32_t abi;                             /* CM_MLIR_ABI of when it was compiled */
    void (*version)(char *text, size_t size); /* "19.1.7" */
    /* Reads the program and gives buffers their places in the arena, because the glue needs to know
     * them. Borrows job and out until the build ends. NULL: it failed. */
    struct cm_mlir_build *(*plan)(const struct cm_mlir_job *job, struct cm_mlir_product *out);
    /* Takes the planned program to the form of the job; once for a build. */
    bool (*finish)(struct cm_mlir_build *build);
    void (*end)(struct cm_mlir_build *build); /* NULL: nothing happens */
    void (*release)(struct cm_mlir_product *product);
    /* Targets that LLVM was built with, one a line; malloc'd. */
    char *(*targets)(void);
};

enum { CM_MLIR_ABI = 2 };
#define CM_MLIR_ENTRY "cameo_mlir_module"
typedef const struct cm_mlir_module *cm_mlir_entry_fn(void);

#endif
