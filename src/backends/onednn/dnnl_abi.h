/* oneDNN's binary interface as far as we use it, declared by us: the library is opened at run time
 * and its headers are not needed. What differs between its major versions is in dnnl_v2.c and
 * dnnl_v3.c, behind struct cm_dnnl_major; all else is the same in both, numbers included. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_ONEDNN_DNNL_ABI_H
#define CM_BACKENDS_ONEDNN_DNNL_ABI_H

#include "backends/onednn/dnnl.h"
#include "base/library.h"

/* oneDNN's own objects. A memory descriptor is a struct of the caller's in version 2 and made by
 * the library in version 3; functions take its address in both. */
struct dnnl_engine;
struct dnnl_stream;
struct dnnl_memory;
struct dnnl_memory_desc;
struct dnnl_primitive;
struct dnnl_primitive_desc;
struct dnnl_primitive_attr;
struct dnnl_post_ops;

struct dnnl_exec_arg {
    int arg;
    struct dnnl_memory *memory;
};

struct dnnl_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

enum { /* statuses, and kinds of this and that, under oneDNN's names */
       DNNL_SUCCESS = 0,
       DNNL_OUT_OF_MEMORY = 1,
       DNNL_RUNTIME_SEQ = 1,
       DNNL_RUNTIME_OMP = 2,
       DNNL_CPU = 1,
       DNNL_F32 = 3,
       DNNL_FORMAT_TAG_ANY = 1,
       DNNL_FORMAT_KIND_BLOCKED = 2,
       DNNL_FORWARD_INFERENCE = 96,
       DNNL_STREAM_DEFAULT_FLAGS = 1,
       DNNL_SCRATCHPAD_MODE_USER = 1,
       DNNL_CONVOLUTION_DIRECT = 1,
       DNNL_DECONVOLUTION_DIRECT = 0xa,
       DNNL_POOLING_MAX = 0x1ff,
       DNNL_POOLING_AVG_INCLUDE_PADDING = 0x2ff,
       DNNL_POOLING_AVG_EXCLUDE_PADDING = 0x3ff,
       DNNL_LRN_ACROSS_CHANNELS = 0xaff,
       DNNL_BINARY_ADD = 0x1fff0,
       DNNL_BINARY_MUL = 0x1fff1,
       DNNL_BINARY_DIV = 0x1fff4,
       DNNL_BINARY_SUB = 0x1fff5,
       DNNL_QUERY_IMPL_INFO_STR = 8,
       DNNL_QUERY_EXEC_ARG_MD = 255,
};

enum { /* which operand an argument is */
       DNNL_ARG_SRC = 1,
       DNNL_ARG_SRC_1 = 2,
       DNNL_ARG_DST = 17,
       DNNL_ARG_WEIGHTS = 33,
       DNNL_ARG_BIAS = 41,
       DNNL_ARG_MEAN = 49,
       DNNL_ARG_VARIANCE = 50,
       DNNL_ARG_SCALE = 51,
       DNNL_ARG_SHIFT = 52,
       DNNL_ARG_SCRATCHPAD = 80,
       DNNL_ARG_DIFF_SRC = 129,
       DNNL_ARG_DIFF_DST = 145,
       DNNL_ARG_DIFF_WEIGHTS = 161,
       DNNL_ARG_DIFF_BIAS = 169,
       DNNL_ARG_MULTIPLE_SRC = 1024,
};

/* Functions that are the same in both versions, without their prefix dnnl_. */
struct cm_dnnl_functions {
    int (*engine_create)(struct dnnl_engine **, int kind, size_t index);
    int (*stream_create)(struct dnnl_stream **, struct dnnl_engine *, unsigned flags);
    int (*stream_wait)(struct dnnl_stream *);
    int (*stream_destroy)(struct dnnl_stream *);
    int (*memory_create)(struct dnnl_memory **, const struct dnnl_memory_desc *,
                         struct dnnl_engine *, void *data);
    int (*memory_set_data_handle)(struct dnnl_memory *, void *data);
    int (*memory_destroy)(struct dnnl_memory *);
    size_t (*memory_desc_get_size)(const struct dnnl_memory_desc *);
    int (*memory_desc_equal)(const struct dnnl_memory_desc *, const struct dnnl_memory_desc *);
    int (*primitive_desc_query)(const struct dnnl_primitive_desc *, int what, int index, void *out);
    const struct dnnl_memory_desc *(*primitive_desc_query_md)(const struct dnnl_primitive_desc *,
                                                              int what, int index);
    int (*primitive_desc_destroy)(struct dnnl_primitive_desc *);
    int (*primitive_create)(struct dnnl_primitive **, const struct dnnl_primitive_desc *);
    int (*primitive_execute)(const struct dnnl_primitive *, struct dnnl_stream *, int n_args,
                             const struct dnnl_exec_arg *);
    int (*primitive_destroy)(struct dnnl_primitive *);
    int (*primitive_attr_create)(struct dnnl_primitive_attr **);
    int (*primitive_attr_set_scratchpad_mode)(struct dnnl_primitive_attr *, int mode);
    int (*primitive_attr_set_post_ops)(struct dnnl_primitive_attr *, const struct dnnl_post_ops *);
    int (*primitive_attr_destroy)(struct dnnl_primitive_attr *);
    int (*post_ops_create)(struct dnnl_post_ops **);
    int (*post_ops_append_binary)(struct dnnl_post_ops *, int kind,
                                  const struct dnnl_memory_desc *);
    int (*post_ops_destroy)(struct dnnl_post_ops *);
    int (*reorder_primitive_desc_create)(struct dnnl_primitive_desc **,
                                         const struct dnnl_memory_desc *from, struct dnnl_engine *,
                                         const struct dnnl_memory_desc *to, struct dnnl_engine *,
                                         const struct dnnl_primitive_attr *);
};

/* How elements lie, as a value that can be copied and compared. */
struct cm_dnnl_arrangement {
    int rank, n_blocks; /* blocks: the innermost, dense part */
    int64_t dims[CM_DNNL_MAX_RANK], padded[CM_DNNL_MAX_RANK], strides[CM_DNNL_MAX_RANK];
    int64_t block_sizes[CM_DNNL_MAX_RANK], block_axes[CM_DNNL_MAX_RANK];
};

/* What there are primitives of. */
enum cm_dnnl_operation {
    CM_DNNL_CONV,
    CM_DNNL_CONV_DATA,
    CM_DNNL_CONV_WEIGHTS,
    CM_DNNL_MATMUL,
    CM_DNNL_POOLING,
    CM_DNNL_BATCH_NORM,
    CM_DNNL_LOCAL_NORM,
    CM_DNNL_BINARY,
    CM_DNNL_CONCAT,
    CM_DNNL_OPERATIONS
};

/* A primitive being described: all that it is made of in, the descriptor out. */
struct cm_dnnl_making {
    struct dnnl_engine *engine;
    const struct dnnl_primitive_attr *attr;
    const struct dnnl_memory_desc **operands; /* in the order of dnnl_primitive.c; absent: NULL */
    int n_operands;
    const void *asked; /* the struct of dnnl.h; the axis of a concatenation */
    int kind;          /* of pooling, of arithmetic */
    bool transposed;
    const struct cm_dnnl_window *window;
    int64_t holes[CM_DNNL_MAX_RANK]; /* of the window: dilation - 1 */
    struct dnnl_primitive_desc *desc;
};
typedef int cm_dnnl_describe_fn(struct cm_dnnl_making *making);

static inline int cm_dnnl_algorithm(const struct cm_dnnl_making *making)
{
    return making->transposed ? DNNL_DECONVOLUTION_DIRECT : DNNL_CONVOLUTION_DIRECT;
}

/* What differs between major versions. Functions return oneDNN's status unless they say otherwise.
 */
struct cm_dnnl_major {
    int major, least_minor;
    const struct cm_symbol *symbols; /* the functions of this version alone */
    size_t n_symbols;
    int post_operand; /* argument of an operand of the first post-operation; twice that, of the
                         second */

    /* Descriptors for the caller to free; NULL when there is no memory or oneDNN refuses. */
    struct dnnl_memory_desc *(*strided)(int rank, const int64_t *dims, const int64_t *strides);
    struct dnnl_memory_desc *(*any)(int rank, const int64_t *dims);
    struct dnnl_memory_desc *(*copy)(const struct dnnl_memory_desc *desc);
    void (*free)(struct dnnl_memory_desc *desc);
    /* False when the elements are arranged in a way that cannot be told. */
    bool (*arrangement)(const struct dnnl_memory_desc *desc, struct cm_dnnl_arrangement *out);

    int (*append_function)(struct dnnl_post_ops *, enum cm_dnnl_function, float a, float b);
    int (*append_sum)(struct dnnl_post_ops *);

    cm_dnnl_describe_fn *describe[CM_DNNL_OPERATIONS];
};

extern const struct cm_dnnl_major cm_dnnl_v2, cm_dnnl_v3;

/* oneDNN and its threads end the process where they get no memory. So that much must be left before
 * they are asked to make something: descriptors, generated code, buffers of the threads. What
 * tensors need is allocated here, not there. */
enum { CM_DNNL_RESERVE = 16 << 20 };

/* The library once it is open; one for the process, never closed. */
struct cm_dnnl {
    struct cm_library library;
    struct dnnl_version version;
    char version_text[48]; /* "" until the library can be used */
    const struct cm_dnnl_major *major;
    struct cm_dnnl_functions fn;
    struct dnnl_engine *engine;
    const char *teams;
    bool usable; /* else library.why says why not */
};
const struct cm_dnnl *cm_dnnl_get(void);

#endif
