/* What the files of api/ that run models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_RUNNING_H
#define CM_API_RUNNING_H

#include "api/api.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

#include <stdatomic.h>

/* A public struct cameo_value is a struct cm_datum: the names differ, so that the layout stays
 * ours. */
static inline const struct cm_datum *cm_api_value(const struct cameo_value *value)
{
    return (const struct cm_datum *)value;
}

/* Makes a value stand by itself: memory of its own, plain layout, strings that end with NUL. */
enum cm_status cm_api_own(struct cm_datum *datum, struct cm_error *err) CM_MUST_CHECK;
/* The same for strings alone, wherever they are in the value. */
enum cm_status cm_api_own_strings(struct cm_datum *datum, struct cm_error *err) CM_MUST_CHECK;
/* Moves what from holds into a new handle; from is empty afterwards, or as before if there is no
 * memory. */
enum cm_status cm_api_take(struct cm_datum *from, struct cameo_value **out,
                           struct cm_error *err) CM_MUST_CHECK;
/* value_new.c: a handle over plain memory, which it lets go of by itself; not after a failure. */
enum cm_status cm_api_wrap(const struct cm_tensor *tensor, cameo_deleter_fn *deleter, void *arg,
                           bool read_only, struct cameo_value **out,
                           struct cm_error *err) CM_MUST_CHECK;
/* value_difference.c: in the caller's words. */
struct cm_difference;
void cm_api_difference(const struct cm_difference *from, struct cameo_difference *out);
/* A shape from the caller's numbers. */
enum cm_status cm_api_shape(int rank, const int64_t *dims, struct cm_shape *out,
                            struct cm_error *err) CM_MUST_CHECK;
/* Can elements of this size that lie by strides around data be reached by adding to its address?
 * False: somewhere a product or the address overflows. strides may be NULL. */
bool cm_api_strides_fit(const struct cm_shape *shape, const int64_t *strides, const void *data,
                        size_t size);

/* lent_memory.c. Number index of an array whose first struct says how far apart they are, over what
 * out holds. */
enum cm_status cm_api_item(void *out, size_t size, const void *array, size_t index,
                           struct cm_error *err) CM_MUST_CHECK;
/* Where the value of a fetch goes, once the fetches were checked and cleared. */
struct cameo_value **cm_api_fetched(struct cameo_fetch *fetches, size_t index);
enum cm_status cm_api_check_fetches(struct cameo_fetch *fetches, size_t count,
                                    struct cm_error *err) CM_MUST_CHECK;
/* That, and ours over the same memory, its shape checked; its bytes are not looked at yet. */
enum cm_status cm_api_check_tensor(const struct cameo_tensor *given, struct cameo_tensor *lent,
                                   struct cm_tensor *out, struct cm_error *err) CM_MUST_CHECK;
/* Then its memory: whether it has the bytes that it needs. */
enum cm_status cm_api_check_bytes(const struct cameo_tensor *lent, const struct cm_tensor *tensor,
                                  struct cm_error *err) CM_MUST_CHECK;
/* The same, and the memory is used in place, or copied where it has strides or is not aligned. */
enum cm_status cm_api_use_memory(const struct cameo_tensor *lent, struct cm_tensor *tensor,
                                 struct cm_error *err) CM_MUST_CHECK;
bool cm_api_is_dense(const struct cameo_tensor *lent, const struct cm_shape *shape);
bool cm_api_is_aligned(const void *data, enum cm_dtype type);
/* A dense copy of elements that lie so many elements apart; strides may be NULL or negative. */
enum cm_status cm_api_gather(enum cm_dtype type, const struct cm_shape *shape,
                             const int64_t *strides, const void *data, struct cm_tensor *out,
                             struct cm_error *err) CM_MUST_CHECK;
/* After a call that succeeded: lets go of the memory of feeds that it took over. */
void cm_api_take_over(const struct cameo_feed *feeds, size_t count);

struct cameo_cancel {
    atomic_bool set;
};

/* Of the one operator that a compiled library is. */
#define CM_API_COMPILED_DOMAIN "ai.cameo.compiled"
/* compiled_file.c: fails with what is wrong with the library at path, which the loader refused. */
enum cm_status cm_api_refuse_library(const char *path, const char *reason,
                                     struct cm_error *err) CM_MUST_CHECK;

struct cameo_registry {
    struct cm_arena arena;
    struct cm_registry *registry; /* in arena */
    pthread_mutex_t lock;         /* for freezing, which several sessions may do at once */
    bool frozen;
};

/* The same of what a call was given; without that, what the model was given. */
const struct cm_registry *cm_api_operators(const struct cameo_registry *given,
                                           const struct cm_model_file *file);
/* Whose kernels run, with versions: a backend by name, or all that there are. */
const char *cm_api_backend_versions(struct cm_arena *arena, const char *only);
enum cm_status cm_api_check_threads(int threads, struct cm_error *err) CM_MUST_CHECK;
/* Is there a backend of this name? NULL: whatever is fastest. */
enum cm_status cm_api_check_backend(const char *name, struct cm_error *err) CM_MUST_CHECK;

struct cm_findings;

/* checking.c: the list as the caller gets it, with texts of its own; of a call that failed without
 * adding to it, the one reason that err has. */
enum cm_status cm_api_findings(const struct cameo_model *model, const struct cm_findings *list,
                               enum cm_status status, struct cameo_findings **out,
                               struct cm_error *err) CM_MUST_CHECK;
/* The same of a call that failed with status: out, which may be NULL, receives the list. */
enum cm_status cm_api_refused(const struct cameo_model *model, const struct cm_findings *list,
                              enum cm_status status, struct cameo_findings **out,
                              struct cm_error *err) CM_MUST_CHECK;
/* Fails with the list, which out receives unless it is NULL. */
enum cm_status cm_api_refuse(const struct cameo_model *model, const struct cm_findings *list,
                             struct cameo_findings **out, struct cm_error *err) CM_MUST_CHECK;
/* checking.c: drops findings whose place does not begin so. */
void cm_api_keep_findings(struct cameo_findings *findings, const char *place);

struct cm_session;
struct cm_step_report;
struct cm_eval_report;

/* Who hears of steps; an argument of the functions below, which engines call. */
struct cm_api_listener {
    cameo_step_fn *step; /* or NULL */
    void *arg;
    const struct cameo_model *log; /* whose log hears of them too, or NULL */
};
void cm_api_tell_step(void *listener, const struct cm_step_report *report);
void cm_api_tell_node(void *listener, const struct cm_eval_report *report);

/* Two dimensions of inputs that have one name. */
struct cm_api_axis {
    size_t input;
    int axis;
};
struct cm_api_same {
    struct cm_api_axis a, b;
};

struct cameo_session {
    struct cm_arena arena; /* the module and everything below */
    const struct cameo_model *model;
    struct cm_graph *graph;
    struct cm_session *exec; /* NULL: node by node, one run at a time */
    struct cameo_session_options options;
    size_t n_inputs, n_outputs;
    const struct cm_type **input_types;
    size_t *inputs; /* of the graph, as numbers of the model's inputs */
    struct cameo_value_info *outputs;
    size_t expanded; /* nodes that gave way to their bodies, as option expand asks */
    struct cm_api_same *same;
    size_t n_same;
    struct cm_datum *_Atomic spare; /* inputs and outputs of a run that is over; or NULL */
    atomic_bool told;               /* who computes what, to the log, in the first run */
};

#endif
