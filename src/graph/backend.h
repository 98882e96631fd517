/* Backends: faster ways to run operators on one target. Each folder of src/backends/ defines one
 * const object, and data/backends.list says in which order the objects are asked for a node. The
 * reference kernels of src/ops/ are no backend: they run what every backend declines.
 * docs/adding-a-backend.md shows a whole one. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_BACKEND_H
#define CM_GRAPH_BACKEND_H

#include "graph/op.h"

/* A faster way to run an operator. Of a region (CM_REGION) it reads the body,
 * call->node->bodies[0].graph, whose inputs and outputs are the call's in order, and computes all
 * of it or declines. */
struct cm_kernel {
    const struct cm_backend *backend;
    const char *domain, *name;
    int turn; /* among the kernels of its backend for the operator: no two have the same turn */
    /* What users call the kernel: "int8 product". Says which kernel of the backend it is; no two
     * kernels of one backend and operator share a label. */
    const char *label;
    /* May this kernel take the call? If not, writes why with cm_call_decline: a short sentence that
     * names the operand or attribute, to be read after the label ("operand 'A' is float"). With
     * cm_call_fail and CM_NO_MEMORY instead, nobody else is asked and the run ends. */
    bool (*accepts)(struct cm_call *call);
    cm_prepare_fn *prepare;
    cm_run_fn *run;
    cm_share_fn *share; /* absent: as the operator says */
    enum cm_layout_rule layouts;
    const void *arg; /* what differs within a family: call->arg */
    /* Both or neither. The work is a number of pieces, in any order and on any thread, that cannot
     * fail: run does them all, and pieces of several calls may be run as one parallel loop. Asked
     * to check, run_pieces says whether every float it wrote is finite. */
    int64_t (*pieces)(const struct cm_call *call);
    bool (*run_pieces)(const struct cm_call *call, int64_t begin, int64_t end, bool check);
};

/* The turn of a kernel that is asked when the other kernels of all backends have declined: it can
 * do what another backend does faster. */
enum { CM_TURN_LAST = 9 };

struct cm_backend {
    const char *name;
    const struct cm_kernel *const *kernels; /* by turn; NULL after the last */
    /* The version of the library that the kernels call; "" if it cannot be used. Absent: they call
     * none. */
    const char *(*version)(void);
};

/* Defines the object of a backend; the build finds the line, and lists the kernels. */
#define CM_BACKEND(Name, ...)                                                                      \
    extern const struct cm_backend cm_backend_##Name;                                              \
    extern const struct cm_kernel *const cm_kernels_##Name[];                                      \
    const struct cm_backend cm_backend_##Name = {                                                  \
        .name = #Name, .kernels = cm_kernels_##Name, __VA_ARGS__}

/* Defines a kernel for an operator of ai.onnx, with turn 0; the build finds lines that start with
 * CM_KERNEL and lists them. */
#define CM_KERNEL(Backend, Name, ...) CM_KERNEL_AT_IN(Backend, 0, "", Name, __VA_ARGS__)
/* The same for an operator of another domain. */
#define CM_KERNEL_IN(Backend, Domain, Name, ...)                                                   \
    CM_KERNEL_AT_IN(Backend, 0, Domain, Name, __VA_ARGS__)
/* The same with a turn: 1 to 8, or CM_TURN_LAST. */
#define CM_KERNEL_AT(Backend, Turn, Name, ...) CM_KERNEL_AT_IN(Backend, Turn, "", Name, __VA_ARGS__)
#define CM_KERNEL_AT_IN(Backend, Turn, Domain, Name, ...)                                          \
    extern const struct cm_backend cm_backend_##Backend;                                           \
    extern const struct cm_kernel cm_kernel_##Backend##_##Name##_##Turn;                           \
    const struct cm_kernel cm_kernel_##Backend##_##Name##_##Turn = {.backend =                     \
                                                                        &cm_backend_##Backend,     \
                                                                    .domain = Domain,              \
                                                                    .name = #Name,                 \
                                                                    .turn = Turn,                  \
                                                                    __VA_ARGS__}

/* In the order of data/backends.list. */
extern const struct cm_backend *const cm_backends[];
extern const size_t cm_backend_count;

/* NULL: there is none of this name. */
const struct cm_backend *cm_backend_find(const char *name);

#endif
