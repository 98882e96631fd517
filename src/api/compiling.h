/* What the files of api/ that compile models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_COMPILING_H
#define CM_API_COMPILING_H

#include "api/api.h"
#include "base/map.h"
#include "mlir/lowering/lowering.h"
#include "mlir/toolchain/produce.h"

/* One compilation. */
struct cm_api_compile {
    const struct cameo_model *model;
    struct cameo_compile_options options;
    enum cameo_emit emit;
    const struct cm_mlir_module *module; /* NULL: not needed */
    struct cameo_model *step, *core;     /* owned; NULL unless asked for */
    struct cameo_trainer *trainer;       /* has the first values of what a step changes */
    struct cameo_model *trained;         /* the trainer's copy of the model */
    struct cm_mlir_program program;
    bool wants_report;
    struct cameo_compilation *report;
    struct cm_error err;
};

enum cm_produce_kind cm_api_produce_kind(enum cameo_emit emit);
struct cm_clang_target cm_api_compile_target(const struct cm_api_compile *c);
void cm_api_compile_tell(void *compile, const char *what); /* whoever wants to know */
/* compile_files.c: from the program to bytes, to files and to what is said of them. */
enum cm_status cm_api_produce(struct cm_api_compile *c, struct cm_arena *arena,
                              struct cm_produced *out) CM_MUST_CHECK;
enum cm_status cm_api_write_compiled(struct cm_api_compile *c, const struct cm_produced *produced,
                                     struct cm_arena *arena) CM_MUST_CHECK;
enum cm_status cm_api_compile_report(struct cm_api_compile *c,
                                     const struct cm_produced *produced) CM_MUST_CHECK;

/* compile_step.c: a trainer for the first values; and which inputs and outputs of the program are
 * variables. */
enum cm_status cm_api_begin_state(struct cm_api_compile *c) CM_MUST_CHECK;
/* The entries of the training, for the lowering; 0: it is not a training step. */
size_t cm_api_step_entries(const struct cm_api_compile *c, struct cm_arena *arena,
                           const struct cm_mlir_entry **out);
void cm_api_end_state(struct cm_api_compile *c);
enum cm_status cm_api_find_state(struct cm_api_compile *c, struct cm_arena *arena,
                                 struct cm_glue_state *state,
                                 const struct cm_tensor ***initial) CM_MUST_CHECK;

/* compile_origins.c: nodes of a model by their names and by what they make; cm_api_origin is a
 * cm_mlir_origin_fn over them. */
struct cm_api_origins {
    struct cm_arena *arena;
    struct cm_map by_name;
};
void cm_api_list_origins(struct cm_api_origins *o, const struct cm_model_proto *model,
                         struct cm_arena *arena);
cm_mlir_origin_fn cm_api_origin;

#endif
