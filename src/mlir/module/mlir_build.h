/* One build inside the module: what its steps share, and the steps in the order they run. Each
 * step returns false after cm_mlir_build_fail, or when MLIR's own diagnostics have said why. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_MODULE_MLIR_BUILD_H
#define CM_MLIR_MODULE_MLIR_BUILD_H

#include "mlir/toolchain/mlir_module.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <mlir-c/IR.h>

/* Text that grows; after a failed allocation it stays as it was and `failed` is set. */
struct cm_mlir_string {
    char *data;
    size_t size, room;
    bool failed;
};

struct cm_mlir_build {
    const struct cm_mlir_job *job;
    struct cm_mlir_product *out;
    MlirContext context;
    MlirModule module;
    MlirOperation main;     /* cm_main */
    MlirValue arguments[3]; /* of cm_main: context, weights, arena */
    LLVMTargetMachineRef machine;
    char *layout, *triple; /* as LLVM spells them, for LLVMDisposeMessage */
    unsigned pointer_bits;
    bool has_f16; /* the target has instructions that convert float16 */
    LLVMContextRef llvm;
    LLVMModuleRef code;
    struct cm_mlir_string error; /* the first one that was reported */
    const char *stage;           /* what is being done, for messages */
    bool is_lost;                /* LLVM left it in the middle of something */
};

#define CM_MLIR_PART    "cm_part_"
#define CM_MLIR_APART   "cm_apart_"
#define CM_MLIR_FINISH  "cm_finish_"  /* of src/mlir/lowering/lowering_finish.c */
#define CM_MLIR_CONVERT "cm_convert_" /* small functions that are always inlined */

/* An index has 64 bits on every target, whatever an address has there: a size or a place that a
 * model computes must not wrap around, and MLIR 19 lowers vectors with no other index. */
enum { CM_MLIR_INDEX_BITS = 64 };

enum { CM_MLIR_CONTEXT, CM_MLIR_WEIGHTS, CM_MLIR_ARENA };

void cm_mlir_string_add(struct cm_mlir_string *text, const char *data, size_t size);

/* Keeps the reason unless there is one already. */
bool cm_mlir_build_fail(struct cm_mlir_build *build, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Runs passes given as text, "canonicalize,cse", over the program. */
bool cm_mlir_build_passes(struct cm_mlir_build *build, const char *passes);

/* ---- steps ---- */

bool cm_mlir_choose_target(struct cm_mlir_build *build);
/* cf.assert becomes a call of cm_require; its text goes to out->messages. */
bool cm_mlir_number_checks(struct cm_mlir_build *build);
/* Tensors of fixed size that a loop carries keep one buffer for all its turns. */
bool cm_mlir_carry_in_place(struct cm_mlir_build *build);
/* A view with gaps that is cast to a tensor without them is copied. */
bool cm_mlir_fill_gaps(struct cm_mlir_build *build);
/* Buffers of fixed size get places in the arena, all others calls of cm_allocate. */
bool cm_mlir_plan_arena(struct cm_mlir_build *build);
/* An address of a view becomes that of what it views and a distance. */
bool cm_mlir_resolve_addresses(struct cm_mlir_build *build);
/* Copies that memcpy cannot do, between memory with gaps, become loops. */
bool cm_mlir_copy_by_loops(struct cm_mlir_build *build);
/* Nests of loops become functions CM_MLIR_PART.. or, where their buffers do not overlap,
 * CM_MLIR_APART... */
bool cm_mlir_outline(struct cm_mlir_build *build);
/* Loops get an order that LLVM can vectorize. */
bool cm_mlir_order_loops(struct cm_mlir_build *build);
/* Where a call gives 0, cm_main returns; its control flow is blocks by now. */
bool cm_mlir_return_early(struct cm_mlir_build *build);
/* Arithmetic and conversions of float16 and bfloat16 that need no runtime library. */
bool cm_mlir_convert_floats(struct cm_mlir_build *build);
/* Narrow floats that the target cannot convert become integers, in LLVM's dialect. */
bool cm_mlir_move_as_integers(struct cm_mlir_build *build);
/* Calls of kernels get the types that the kernels have. */
bool cm_mlir_match_calls(struct cm_mlir_build *build);
/* LLVM's part: translate, link, add constants, optimize, write. */
bool cm_mlir_emit(struct cm_mlir_build *build);

#endif
