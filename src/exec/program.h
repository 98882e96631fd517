/* A compiled graph, and what runs of it are made of. Shared by the files of exec/, hidden from
 * everybody else. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EXEC_PROGRAM_H
#define CM_EXEC_PROGRAM_H

#include "base/array.h"
#include "base/parallel.h"
#include "base/random.h"
#include "exec/session.h"
#include "graph/backend.h"
#include "tensor/layout.h"
#include "tensor/pool.h"

/* ---- compiled: once, immutable ---- */

/* A slot is where a value lives during a run. Numbers are unique in the session, so a body reads a
 * slot of the graph around it just like one of its own. */
typedef uint32_t cm_slot_id;
#define CM_NO_SLOT UINT32_MAX

struct cm_block;

struct cm_step {
    struct cm_node *node;
    cm_slot_id *in, *out; /* CM_NO_SLOT: absent, not wanted */
    int n_in, n_out;
    struct cm_block **bodies; /* of node->bodies, in order; none of a region */
    struct cm_step *parts;    /* of a region: its body's nodes, for when no kernel takes it whole */
    size_t n_parts;
    CM_ARRAY(cm_slot_id)
    last; /* slots of this block that nobody reads after this step, bodies counted in */
    CM_ARRAY(const struct cm_kernel *) kernels; /* of backends, to be asked in order */
    uint32_t random;          /* of a random step: its place among those of the session */
    enum cm_memory_kind kind; /* of its results */
};

/* A graph: the main one or a body. */
struct cm_block {
    struct cm_graph *graph;
    struct cm_block *outer;
    uint32_t number;
    int depth;
    struct cm_step *steps;
    size_t n_steps;
    cm_slot_id *inputs, *outputs;
    size_t n_inputs, n_outputs;
    CM_ARRAY(cm_slot_id)
    captured; /* slots of blocks around it that it, or a block in it, reads; no constants */
    CM_ARRAY(cm_slot_id) results; /* outputs that a step of this block computes, each once */
    bool built;                   /* while compiling: what it captures is complete */
};

/* An update of a session, see struct cm_session_update. */
struct cm_update {
    size_t input, output;
    size_t leader; /* the first update with the same value: itself as a rule */
    bool alone;    /* the step that computes the value may overwrite the input: nobody else reads it
                      then, and nobody else wants the value */
};

struct cm_context;

struct cm_session {
    struct cm_module *module;
    struct cm_session_options options;
    struct cm_arena *arena;
    struct cm_block *main;
    struct cm_block **blocks;
    size_t n_blocks;
    size_t n_slots, n_steps;
    CM_ARRAY(struct cm_step *) random;  /* steps that draw random numbers, by stream */
    const struct cm_tensor **defaults;  /* by input of main; NULL: it must be given */
    const struct cm_tensor **constants; /* by slot; NULL: computed. Some lie unaligned */
    struct cm_datum **aligned;          /* by slot: such a one as cm_align_constant made it */
    const struct cm_type **constant_types;
    uint32_t *result_of;          /* by slot: which output of its block; CM_NO_SLOT: none */
    bool *is_captured;            /* by slot: a body reads it */
    uint32_t *block_of;           /* by slot: number of its block; of a constant the main one's */
    struct cm_pack_table *packed; /* constants in the layouts of kernels: see packed.c */
    const struct cm_str *mapped;  /* ranges of files */
    size_t n_mapped;
    CM_ARRAY(const struct cm_kernel *) kernels; /* those that may be asked, in order */
    struct cm_team *team;
    atomic_bool has_run; /* a run ended well: the session is here to stay */
    struct cm_update *updates;
    size_t n_updates;
    size_t n_updating;   /* steps at the end of main whose results are updates and nothing else */
    uint32_t *update_of; /* by output: the first update with its value; CM_NO_SLOT: none. NULL:
                            there are no updates */
    atomic_flag busy;    /* guards what follows */
    struct cm_context *free_contexts;
    struct cm_kept_state *states; /* that kernels share, by kind */
    uint32_t n_contexts;          /* made so far */
};

/* Fills session->main and the rest from graph. */
enum cm_status cm_compile(struct cm_session *session, struct cm_graph *graph,
                          struct cm_error *err) CM_MUST_CHECK;

/* ---- bound: once per shapes ---- */

enum cm_place_kind {
    CM_PLACE_BLOCK,  /* at an offset of the block's memory */
    CM_PLACE_RESULT, /* of the block: memory is given when a run begins */
    CM_PLACE_SAME,   /* where another slot is */
    CM_PLACE_KNOWN,  /* contents found when binding */
    CM_PLACE_AT_RUN, /* shape known only when its step has run: pooled memory */
};

struct cm_place {
    cm_slot_id slot;
    enum cm_place_kind kind;
    size_t offset; /* of a result: which output; of the same: bytes from where the other is */
    cm_slot_id same_as;
    const struct cm_type *type; /* concrete; NULL: known when it runs */
    const struct cm_layout *layout;
    const struct cm_tensor *known;
};

struct cm_prepared; /* see late.c */

struct cm_bound_step {
    const struct cm_step *step; /* NULL: a reorder */
    struct cm_arena *arena;     /* for what its kernel prepares */
    struct cm_context *context;
    cm_run_fn *run;
    cm_share_fn *share;           /* of the kernel, or of the operator */
    const struct cm_kernel *with; /* the kernel; NULL: the operator's own */
    struct cm_call call;
    const struct cm_tensor **in; /* what the call sees, to be changed here */
    struct cm_tensor **out;
    const struct cm_datum **in_datum;
    size_t scratch_size, scratch_offset;
    size_t first_waiting, n_waiting;       /* of its operands, in the binding */
    const struct cm_layout **want, **give; /* by input, by output: asked for by its prepare */
    bool at_run;                           /* memory and preparation wait until it runs */
    const struct cm_type **types; /* of a step that waits, by output: known all the same; or NULL */
    const char *waits_for;        /* why it waits, for people */
    struct cm_prepared *prepared; /* for it, by shapes, recently used first */
    CM_ARRAY(cm_slot_id) ends;    /* slots with memory of their own that nobody reads after it */
    size_t live; /* bytes in use of the block's memory as it ends, scratch included */
    const char *kernel, *declined;
    const struct cm_tensor *reorder_from;
    struct cm_tensor *reorder_to;
};

/* A tensor that is no value's: one in another layout, for the steps beside it. */
struct cm_extra {
    struct cm_tensor *tensor;
    size_t offset;
};

/* A constant that a kernel reads in a layout of its own and that is not packed yet: read where it
 * lies, or moved to memory that all such operands share just before its step. */
struct cm_waiting {
    struct cm_bound_step *step;
    int input;
    const struct cm_layout *layout;
    struct cm_datum *moved; /* NULL: it is read where it lies */
    size_t offset;          /* of the moved one in the shared memory */
};

/* Where the new value of an update is when all else is computed. */
struct cm_bound_update {
    bool in_place; /* nowhere: a step of the binding's updating ones will write it */
    bool kept;     /* in the block's memory .. */
    size_t offset; /* .. here */
};

struct cm_binding {
    struct cm_arena arena;
    struct cm_str signature;
    bool ready;                             /* false: memory ran out while it was made */
    CM_ARRAY(struct cm_bound_step *) steps; /* they do not move: calls point at themselves */
    CM_ARRAY(struct cm_place) places;
    CM_ARRAY(size_t) moving; /* places whose memory is another one in each run, by number */
    CM_ARRAY(struct cm_extra) extras;
    CM_ARRAY(struct cm_waiting) waiting;
    size_t n_packed; /* of them; when all are, the list is emptied */
    size_t runs;     /* after the session's first */
    void *shared;    /* for those that are moved; NULL: not yet needed, or no more */
    size_t shared_bytes;
    CM_ARRAY(struct cm_bound_step *)
    updating;                        /* steps that run when all else is done, see updates.c */
    int64_t *first_pieces;           /* by such step, and the number of all */
    struct cm_bound_update *updates; /* by update of the session; of the main block */
    CM_ARRAY(struct cm_update_read) reads;
    size_t memory;                /* of the block */
    size_t most[CM_MEMORY_KINDS]; /* of each kind at once */
    struct cm_binding *next;      /* more recently used first */
};

/* ---- a run's own ---- */

struct cm_slot {
    const struct cm_type *type;    /* while binding: concrete; NULL: known when it runs */
    const struct cm_tensor *known; /* a constant, or shape arithmetic done when binding */
    int storage;                   /* while binding: of struct storage, or one of these */
    size_t shift;                  /* while binding: bytes from where the storage begins */
    struct cm_datum datum;
};
enum {
    CM_STORAGE_FOREIGN = -1, /* not this block's to reuse */
    CM_STORAGE_LATE = -2
}; /* memory of its own, which comes when its step runs */

struct cm_block_state {
    struct cm_binding *bindings; /* recently used first */
    size_t n_bindings;
    const struct cm_binding *active; /* its decisions are in the slots; NULL: none's */
    char *memory;
    size_t memory_size;
    bool running;          /* its memory is in use */
    struct cm_arena arena; /* for the moment: signatures, steps that are prepared as they run */
};

struct cm_context {
    struct cm_session *session;
    struct cm_slot *slots;
    struct cm_block_state *blocks;
    struct cm_pool *pool;
    struct cm_guard *guard;    /* of the run under way */
    struct cm_random *randoms; /* by random step */
    struct cm_random *before;  /* the same as the last run found them */
    bool has_before;
    uint64_t began_ns;
    const struct cm_run_options *options;
    size_t block_bytes;    /* of all blocks' memory */
    size_t live_around;    /* bytes that results of the blocks around the running one hold */
    struct cm_fact *facts; /* by slot: of bodies whose types are looked for; NULL: not yet needed */
    size_t pool_before;    /* bytes of the pool that were out when the run began: earlier results */
    bool *given;           /* by output: the caller brought memory for it */
    struct cm_datum *results; /* by output: that memory, and that of updates; NULL: no updates */
    uint32_t number;          /* among the session's contexts */
    struct cm_context *next;
};

/* A buffer from the context's pool, within the limit; arg is the context. What kernels make for
 * themselves (strings, slices, items of sequences) comes from here too. */
enum cm_status cm_context_buffer(void *arg, size_t size, struct cm_buffer **out,
                                 struct cm_error *err) CM_MUST_CHECK;
/* A tensor over such a buffer. */
enum cm_status cm_context_tensor(struct cm_context *context, enum cm_dtype type,
                                 const struct cm_shape *shape, struct cm_tensor *out,
                                 struct cm_error *err) CM_MUST_CHECK;

/* The binding of block for the shapes its inputs and captured slots have now; made if there is none
 * yet. It is active afterwards: slots hold types and, where decided, memory. */
enum cm_status cm_bind(struct cm_context *context, struct cm_block *block, struct cm_binding **out,
                       struct cm_error *err) CM_MUST_CHECK;
/* The same without effect: no memory is taken and the slots hold nothing of use. */
enum cm_status cm_bind_decide(struct cm_context *context, struct cm_block *block,
                              struct cm_binding **out, struct cm_error *err) CM_MUST_CHECK;
size_t cm_binding_bytes(const struct cm_binding *binding); /* of memory that its block takes */
void cm_block_state_release(struct cm_block_state *state); /* its bindings and its memory */
/* Decides everything of a binding for the shapes at hand. */
enum cm_status cm_binding_build(struct cm_context *context, struct cm_block *block,
                                struct cm_binding *binding, struct cm_error *err) CM_MUST_CHECK;

/* Lets an operand of the step that is bound wait for its packing, if this is the first run of the
 * session and it can: `in` is what the step reads until then. */
bool cm_weight_waits(struct cm_context *context, const struct cm_block *block,
                     struct cm_binding *binding, struct cm_bound_step *bound, int input,
                     const struct cm_layout *layout, const struct cm_datum **in);
/* Before the steps of a run: memory for what waits or, once the session has run, its packing. */
enum cm_status cm_weights_ready(struct cm_context *context, struct cm_binding *binding,
                                struct cm_error *err) CM_MUST_CHECK;
/* Before a step: moves the operands that wait to the shared memory. */
enum cm_status cm_weights_move(const struct cm_binding *binding, const struct cm_bound_step *bound,
                               struct cm_error *err) CM_MUST_CHECK;

/* The facts of what a step with bodies gives, by the inference rules of the steps in them, as far
 * as they follow from the types at hand; types are NULL where they do not. block is being bound. */
void cm_infer_bodies(struct cm_context *context, const struct cm_block *block,
                     const struct cm_step *step, struct cm_arena *arena, struct cm_fact *results);

/* Asks the inference rule of a step, by the facts of its operands. */
enum cm_status cm_step_infer(const struct cm_step *step, struct cm_arena *arena,
                             const struct cm_fact *facts, struct cm_fact *results,
                             struct cm_error *err) CM_MUST_CHECK;

/* The first kernel of a backend that takes the call; NULL: none does. The reasons of those that did
 * not are added to bound->declined, in arena. */
const struct cm_kernel *cm_choose_kernel(struct cm_bound_step *bound, struct cm_arena *arena);

/* A place for as many constants in the layouts of kernels, more or less. */
struct cm_pack_table *cm_pack_table_new(struct cm_arena *arena, size_t n_constants);

/* The constant of a slot in a layout, made once for all bindings of the session that hold it; it
 * lives as long as arena. */
enum cm_status cm_pack_constant(struct cm_session *session, struct cm_arena *arena,
                                const struct cm_tensor *constant, const struct cm_layout *layout,
                                void **data, struct cm_error *err) CM_MUST_CHECK;

size_t cm_packed_bytes(struct cm_session *session); /* of all such */

/* An unaligned constant, aligned, for those who read it row by row: copied when it is first asked
 * for, once for the session. */
enum cm_status cm_align_constant(struct cm_session *session, cm_slot_id slot,
                                 const struct cm_datum **out, struct cm_error *err) CM_MUST_CHECK;
size_t cm_aligned_bytes(struct cm_session *session); /* of all such */
void cm_drop_aligned(struct cm_session *session);

/* Runs a step that could not be prepared before: its operands are here now. */
enum cm_status cm_run_late(struct cm_context *context, struct cm_bound_step *bound,
                           struct cm_error *err) CM_MUST_CHECK;
void cm_prepared_free(void *bound_step); /* what cm_run_late kept */
/* Gives a datum bytes of its own where it borrows them from memory that will be used again. */
enum cm_status cm_own_bytes(struct cm_context *context, struct cm_datum *datum,
                            struct cm_error *err) CM_MUST_CHECK;

/* For what is guarded by session->busy, for a few instructions. */
void cm_session_lock(struct cm_session *session);
void cm_session_unlock(struct cm_session *session);

/* Runs the steps of a block whose inputs are in their slots, and leaves its outputs in theirs.
 * results: memory for them, see cm_session_run; NULL for a body. */
enum cm_status cm_run_block(struct cm_context *context, struct cm_block *block,
                            const struct cm_datum *results, struct cm_error *err) CM_MUST_CHECK;

/* Drops what slots of the block hold for its outputs. */
void cm_drop_results(struct cm_context *context, const struct cm_block *block);

/* A second holder of what a slot holds, that nothing later in the run can overwrite. */
enum cm_status cm_share_result(struct cm_context *context, const struct cm_slot *slot,
                               struct cm_datum *out, struct cm_error *err) CM_MUST_CHECK;

/* Says that output o does not fit the memory the caller gave for it. */
enum cm_status cm_refuse_room(const struct cm_session *session, size_t o,
                              const struct cm_tensor *given, enum cm_dtype dtype,
                              const struct cm_shape *shape, struct cm_error *err);

/* ---- updates ---- */

/* Puts nodes that only update inputs at the end of the graph, before it is compiled. */
void cm_updates_move(struct cm_session *session, const struct cm_graph *graph);
/* Finds session->updates when the main block has its slots. */
void cm_updates_find(struct cm_session *session);

/* Memory for results of a run of the main block: the caller's, and that of updates. */
enum cm_status cm_updates_place(struct cm_context *context, const struct cm_binding *binding,
                                const struct cm_datum **results,
                                struct cm_error *err) CM_MUST_CHECK;
/* Says that all is ready, then updates the inputs. */
enum cm_status cm_updates_run(struct cm_context *context, struct cm_error *err) CM_MUST_CHECK;

/* Calls options->step for a step that has run. */
void cm_report_step(struct cm_context *context, const struct cm_block *block,
                    const struct cm_bound_step *bound, uint64_t began);

/* While a step is bound, what its prepare says of layouts. */
void cm_bind_want_layout(struct cm_call *call, int i, const struct cm_layout *layout);
void cm_bind_give_layout(struct cm_call *call, int o, const struct cm_layout *layout);

extern const struct cm_engine cm_exec_engine;

enum { CM_RECENT_BINDINGS = 8 };

#endif
