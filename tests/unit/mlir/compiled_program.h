/* Programs as text, compiled by the module, linked with a small glue of the test's own and run in
 * this process. The module is the build's own; clang-19 and ld.lld-19 come from the search path. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_MLIR_COMPILED_PROGRAM_H
#define CM_TESTS_MLIR_COMPILED_PROGRAM_H

#include "mlir/toolchain/mlir_module.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An argument of cm_main behind the first three: rows of the data, and its sizes. */
struct program_port {
    void *data;
    int rank;
    intptr_t dims[6];
};

struct program_case {
    const char *text;    /* what follows the arena in cm_main: "%x: memref<..>) { .. }" and more */
    const char *private; /* declarations and functions beside cm_main, or NULL */
    const char *c;       /* C that the glue has besides, or NULL */
    const char *cpu;     /* NULL: this machine's */
    const char *weights;
    size_t n_weights;
};

/* What the glue counted while the program ran. */
struct program_run {
    intptr_t failed;      /* 1 + the number of the check that failed; -1: no memory; 0: none */
    intptr_t n_allocated; /* calls of cm_allocate */
    intptr_t held;        /* allocated and not released at the end */
    intptr_t most;        /* bytes held at one time */
    intptr_t n_outputs;   /* calls of cm_output */
    intptr_t output_dims[6];
    char output[4096]; /* of the last one */
};

/* Was the module built? Then program_module gives it. */
bool program_has_module(void);
const struct cm_mlir_module *program_module(void);

/* Plans and finishes one job. */
bool program_build_job(const struct cm_mlir_job *job, struct cm_mlir_product *out);
/* Compiles into `out`, as `form` for `triple` ("": this machine). */
bool program_build(const struct program_case *program, enum cm_mlir_form form, const char *triple,
                   struct cm_mlir_product *out);
/* The same as a library that is loaded; product may be NULL. False: clang-19 or the linker is not
 * installed, which is counted. */
bool program_run(const struct program_case *program, const struct program_port *ports,
                 size_t n_ports, struct cm_mlir_product *product, struct program_run *out);
/* Is a program of this name on the search path? */
bool program_has_tool(const char *name);
/* Tells how many runs were left out, and why; for the last test of a file. */
void program_tell_left_out(void);

#endif
