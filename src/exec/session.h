/* Running a graph fast. Three steps: compile once (order, liveness, kernels), bind once per shapes
 * of the inputs (sizes, places in one block of memory, prepared kernels), run as often as there is
 * data, without looking anything up and without allocating what the input shapes decide.
 *
 * A session is immutable once made: any number of threads may run it at once, each run leasing a
 * context with memory of its own. Contexts and their recent bindings are kept for the next run. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EXEC_SESSION_H
#define CM_EXEC_SESSION_H

#include "graph/op.h"

#include <stdatomic.h>

struct cm_session;

struct cm_findings;

struct cm_session_options {
    int threads;                  /* 0: as many as there are cores */
    size_t memory_limit;          /* bytes that one run may hold, weights not counted; 0: none */
    const char *backend;          /* "reference": our own kernels only; NULL: whatever is fastest */
    uint64_t seed;                /* of random nodes that bring none */
    struct cm_findings *findings; /* lent to cm_session_new: receives all that cannot run */
    const struct cm_session_update *updates; /* lent to cm_session_new */
    size_t n_updates;
};

/* Output `output` is the next value of input `input`, which no other update has: at its end a run
 * writes it into the input's memory, and the caller gets nothing for the output. All new values are
 * computed from old ones. Elementwise updates work in place, all of them in one parallel loop; for
 * others the run keeps the new value until the end. */
struct cm_session_update {
    size_t input, output;
};

/* Compiles graph, which is changed (expanded, folded) and must not be used otherwise from here on;
 * its module's arena must be lent to a guard during this call and live as long as the session. What
 * cannot run is named all at once: every node with its reason. options may be NULL. */
enum cm_status cm_session_new(struct cm_graph *graph, const struct cm_session_options *options,
                              struct cm_session **out, struct cm_error *err) CM_MUST_CHECK;
/* Ranges of mapped files, borrowed while the session lives: constants in them that kernels read in
 * a layout of their own need not stay in memory as the file has them. Before the first run. */
void cm_session_set_mapped(struct cm_session *session, const struct cm_str *ranges, size_t n);
/* Nobody may be running it. */
void cm_session_free(struct cm_session *session);

/* Called after each step of a run, in order; nested steps (bodies) before the step they belong to.
 */
struct cm_step_report {
    const struct cm_node *node;
    const char *kernel;   /* "reference", "onednn"; "function" for a body that runs as a graph */
    const char *declined; /* why faster kernels were not taken: "oneDNN product: operand 'B' is
                             double"; "" when none was asked */
    int depth;            /* 0: the main graph */
    uint64_t begin_ns, end_ns; /* since the run began */
    size_t live_bytes; /* of results that later steps read or the step read, and its scratch memory;
                          what the caller fed or gave, and constants, aside */
    double flops;      /* of its products, see struct cm_op */
    const struct cm_tensor *const *out; /* its results, in any layout; NULL where not wanted or no
                                           tensor */
    int n_out;
};
typedef void cm_step_fn(void *arg, const struct cm_step_report *report);

/* What an update is computed from, or its new value: of which output. */
struct cm_update_read {
    const struct cm_tensor *tensor;
    size_t output;
};
/* The results of a run are in their places and no input has been updated. With another status than
 * CM_OK the run ends here, as one that failed. */
typedef enum cm_status cm_ready_fn(void *arg, const struct cm_update_read *reads, size_t n_reads,
                                   struct cm_error *err);

struct cm_run_options {
    const atomic_bool *cancel; /* may be set by another thread; looked at between steps */
    cm_step_fn *step;          /* may be NULL */
    void *step_arg;
    bool apart; /* regions run as the nodes of their bodies: for who wants to see every result */
    cm_ready_fn *ready; /* may be NULL */
    void *ready_arg;
    bool no_updates; /* inputs stay as they are */
    bool careful;    /* no update works in place: ready sees the new values themselves */
    bool *finite;    /* may be NULL; receives whether everything that was updated is */
};

/* in: one value per graph input, borrowed for the call; NULL takes the input's default. out: one
 * per graph output; where out[i].tensor.data is set the result is written there (it must have room
 * for out[i].tensor's type and shape, which must be the result's), otherwise out[i] receives a new
 * reference. On failure nothing is held and the session lives on. options may be NULL. */
enum cm_status cm_session_run(struct cm_session *session, const struct cm_datum *const *in,
                              size_t n_in, struct cm_datum *out, size_t n_out,
                              const struct cm_run_options *options,
                              struct cm_error *err) CM_MUST_CHECK;

/* What values on the way are for, as far as somebody has said so. */
enum cm_memory_kind {
    CM_MEMORY_OTHER,
    CM_MEMORY_ACTIVATION,
    CM_MEMORY_GRADIENT,
    CM_MEMORY_SCRATCH, /* for kernels, while they run */
    CM_MEMORY_KINDS
};
typedef enum cm_memory_kind cm_memory_kind_fn(void *arg, const struct cm_node *node);
/* Asks for the nodes of the graph itself, before the first run. */
void cm_session_sort_memory(struct cm_session *session, cm_memory_kind_fn *kind, void *arg);

/* What a run holds, in bytes, as far as the shapes of its inputs decide. */
struct cm_session_memory {
    size_t constants; /* contents that never change; most of them lie in the mapped file */
    size_t packed;    /* copies of constants in the layouts of kernels, of all the session's runs */
    size_t aligned;   /* the same of constants that were copied for no more than their alignment */
    size_t block;     /* values on the way and scratch memory, in places that are used again */
    size_t most[CM_MEMORY_KINDS]; /* of block: of each kind at once. Not at the same moment, so
                                     that together they may be more */
    size_t results;               /* that the caller brings no memory for */
    size_t late; /* steps that take more as they run: the data decides, or a body's turns do */
};

/* What a run with inputs of these types and shapes would hold; their data is not looked at and may
 * be NULL. given as out for cm_session_run, or NULL. The memory limit is not applied, and the run
 * need not plan again. */
enum cm_status cm_session_measure(struct cm_session *session, const struct cm_datum *const *in,
                                  size_t n_in, const struct cm_datum *given,
                                  struct cm_session_memory *out,
                                  struct cm_error *err) CM_MUST_CHECK;

/* Where the random nodes stand, of a session that is run by one thread at a time: bytes in arena,
 * which cm_session_set_random takes back later or in another process; the next run then draws what
 * it would have drawn here. Nobody may be running it. */
enum cm_status cm_session_random(struct cm_session *session, struct cm_arena *arena,
                                 struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;
/* Bytes of another graph are refused, and then nothing has changed. */
enum cm_status cm_session_set_random(struct cm_session *session, struct cm_str bytes,
                                     struct cm_error *err) CM_MUST_CHECK;
/* Puts the random nodes back to where the last run, gone well or not, found them. Nobody may be
 * running it, and one thread alone has. */
void cm_session_rewind(struct cm_session *session);

#endif
