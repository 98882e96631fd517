/* What tests of kernels of codes share: any bytes, and kernels compared with the reference on each
 * instruction set. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_INT8_CASE_H
#define CM_TESTS_INT8_CASE_H

#include "base/machine.h"
#include "exec/exec_case.h"

static inline void note_kernel(void *arg, const struct cm_step_report *report)
{
    *(const char **)arg = report->kernel;
}

/* A tensor of any bytes, the extreme ones more often than chance has them; of float: small numbers.
 */
static inline struct cm_datum *bytes_of(struct cm_arena *arena, enum cm_dtype type,
                                        const struct cm_shape *shape, uint32_t seed)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    const int64_t count = cm_shape_elements(shape);
    datum->kind = CM_KIND_TENSOR;
    datum->tensor.type = type;
    datum->tensor.shape = *shape;
    datum->tensor.data = cm_arena_alloc(arena, (size_t)count * sizeof(float) + 1);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint8_t byte = seed >> 30 ? (uint8_t)(seed >> 16) : seed >> 20 & 1 ? 0xff : 0x80;
        if (type == CM_FLOAT)
            ((float *)datum->tensor.data)[i] = (float)(byte + 1) / 4096;
        else
            ((uint8_t *)datum->tensor.data)[i] = byte;
    }
    return datum;
}

static inline void run_threads(struct cm_arena *arena, const char *text, int threads,
                               const char *backend, const struct cm_datum *const *in, size_t n_in,
                               const char *kernel, struct cm_datum *out)
{
    struct cm_session *session =
        exec_of(arena, text, &(struct cm_session_options){.threads = threads, .backend = backend});
    struct cm_error err = {0};
    const char *ran = NULL;
    const struct cm_run_options options = {.step = note_kernel, .step_arg = &ran};
    CHECK_OK(cm_session_run(session, in, n_in, out, 1, &options, &err), &err);
    CHECK_STRING(ran, kernel);
}

static inline void run(struct cm_arena *arena, const char *text, const char *backend,
                       const struct cm_datum *const *in, size_t n_in, const char *kernel,
                       struct cm_datum *out)
{
    run_threads(arena, text, 2, backend, in, n_in, kernel, out);
}

static inline void agree(struct cm_arena *arena, const char *text, const struct cm_datum *const *in,
                         size_t n_in, const char *kernel)
{
    struct cm_datum slow = {0};
    run(arena, text, "reference", in, n_in, "reference", &slow);
    for (int machine = CM_PLAIN; machine < CM_MACHINES; machine++) {
        struct cm_datum fast = {0};
        cm_machine_limit((enum cm_machine)machine);
        run(arena, text, NULL, in, n_in, kernel, &fast);
        cm_machine_limit(CM_MACHINES - 1);
        if (!exec_same(&fast, &slow))
            fail_msg("machine %d: results differ for %s", machine, text);
        cm_datum_drop(&fast);
    }
    cm_datum_drop(&slow);
}

#endif
