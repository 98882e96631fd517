/* What a compiled model says of itself, and how any of them is called: the one constant that a
 * library exports beside its own functions, `cameo_compiled`. The text of this file is the
 * beginning of the source that is compiled into it (mlir/lowering/glue.h), and the library that
 * opens one (api/compiled.c) includes it, so that the two agree. It needs no other header of ours.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_RUNTIME_COMPILED_H
#define CM_MLIR_RUNTIME_COMPILED_H

#include <stddef.h>
#include <stdint.h>

#define CM_COMPILED_MAGIC  "cameo-c"
#define CM_COMPILED_SYMBOL "cameo_compiled"
enum { CM_COMPILED_ABI = 1 };

/* What MLIR calls an index: sizes, places, and addresses as numbers. */
typedef int64_t cm_index;

/* Memory of the caller's. The layout is that of struct NAME_tensor in the header of a model. */
struct cm_compiled_tensor {
    void *data;
    int64_t *shape;
    size_t size; /* of data, in bytes */
};

/* An input or an output. Types are numbered as in ONNX. */
struct cm_compiled_port {
    const char *name;
    const char *wrong; /* the sentence where the caller's tensor does not fit */
    int32_t type, element_bytes;
    int32_t rank, is_fixed;
    const int64_t *dims;          /* -1: known only when it runs */
    const char *const *dim_names; /* "" where there is none */
};

/* A part of the weights or of the state of a training. */
struct cm_compiled_place {
    const char *name;
    size_t offset, bytes;
    const char *type; /* "float[8,1,3,3]" */
};

/* One run. */
struct cm_compiled_call {
    const struct cm_compiled_tensor *inputs;
    struct cm_compiled_tensor *outputs;
    void *arena;
    size_t arena_bytes;
    const void *weights; /* NULL: those inside */
    void *state;         /* of a training step; else NULL */
    /* Where an output of unknown size goes, once its shape is known; NULL: outputs say. Gives NULL
     * where there is no memory. */
    void *(*place)(void *arg, size_t output, const int64_t *shape, size_t bytes);
    void *place_arg;
};

/* What a run gives: 0, or one of these; numbers of inputs, outputs and checks are added. */
enum {
    CM_COMPILED_ARENA = 1,   /* it is too small */
    CM_COMPILED_WEIGHTS = 2, /* they are missing, or not aligned */
    CM_COMPILED_STATE = 3,
    CM_COMPILED_INPUT = 0x10000,
    CM_COMPILED_OUTPUT = 0x20000,
    CM_COMPILED_CHECK = 0x30000,
};

enum { CM_COMPILED_ALIGNMENT = 64 }; /* of weights and state */

enum {
    CM_COMPILED_FIXED_ARENA = 1, /* arena_bytes is enough for every run */
    CM_COMPILED_OWN_WEIGHTS = 2, /* they are inside */
    CM_COMPILED_STEP = 4,        /* a training step: it needs a state */
    CM_COMPILED_CALLER = 8,      /* the caller gives the weights: there is no file of them */
};

struct cm_compiled {
    char magic[8];
    uint32_t abi, flags;
    const char *name;
    uint64_t n_inputs, n_outputs;
    const struct cm_compiled_port *inputs, *outputs;
    uint64_t arena_bytes;                /* the least */
    uint64_t weight_bytes, weight_check; /* the latter: cm_crc32c of them */
    uint64_t state_bytes;
    int (*run)(const struct cm_compiled_call *call);
    const char *(*error)(int code);
};

#endif
