/* What the files of api/ share: the inside of the public handles, and the way from the library's
 * statuses, options and strings to the public ones. Every public function that can fail is one
 * cm_guarded call. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_API_H
#define CM_API_API_H

#include "base/map.h"
#include "cameo.h"
#include "onnx/model_file.h"

#include <pthread.h>

/* Where the values of an initializer are, for reading and replacing them. */
struct cm_api_slot {
    struct cm_tensor_proto *proto; /* NULL for a sparse one */
    uint8_t *own;                  /* memory for replaced values, reused by the next replacement */
    size_t room;
};

/* Nodes and edges, of training entries and functions by their number; NULL where there is none. */
struct cm_api_graphs {
    struct cameo_graph *main, **functions, **initializations, **algorithms;
};

struct cm_api_log {
    cameo_log_fn *fn;
    void *arg;
};

struct cameo_model {
    struct cm_arena arena;      /* everything below lives here */
    struct cm_model_file *file; /* in arena */
    pthread_mutex_t lock; /* const calls map external files, for which they borrow the arena */

    struct cameo_summary summary;
    struct cameo_opset *opsets;
    struct cameo_entry *metadata;
    struct cameo_value_info *inputs, *outputs;
    struct cameo_initializer *initializers;
    struct cm_api_slot *slots; /* beside initializers */
    struct cameo_operator *operators;
    struct cameo_function *functions;
    struct cameo_training *trainings;
    struct cameo_external_file *external_files;
    const struct cameo_text *notes; /* made when somebody asks for them */
    size_t note_count;
    bool has_notes;
    struct cm_api_log log;
    struct cm_api_graphs *graphs;                /* made when somebody asks for one */
    struct cm_map by_name;                       /* initializers: index of the first of a name */
    const struct cm_prepared_training *prepared; /* for the first trainer; NULL once it is taken, or
                                                    the model is changed */
};

/* Fills everything from summary on; scratch is free for reuse afterwards. */
enum cm_status cm_describe_model(struct cameo_model *model, struct cm_arena *scratch,
                                 struct cm_error *err) CM_MUST_CHECK;
/* The rows about training, once initializers are known. */
void cm_describe_training(struct cameo_model *model, struct cm_arena *scratch);
/* Those that are no initializers of the graph. */
void cm_describe_weights(struct cameo_model *model);
void cm_describe_operators(struct cameo_model *model, struct cm_arena *scratch);
/* Nodes of a list, those of graphs inside them included. */
size_t cm_count_nodes(const struct cm_nodes *nodes);
void cm_describe_value(struct cm_arena *arena, const struct cm_value_info_proto *from,
                       struct cameo_value_info *out);

/* The same text, for callers: it must end with NUL, or be empty. */
static inline struct cameo_text cm_api_view(struct cm_str text)
{
    return (struct cameo_text){text.data ? text.data : "", text.size};
}

/* A copy that ends with NUL. */
struct cameo_text cm_api_text(struct cm_arena *arena, struct cm_str text);
struct cameo_entry *cm_api_entries(struct cm_arena *arena, const struct cm_entries *from);

/* What a public function does; scratch is gone afterwards. */
typedef enum cm_status cm_api_fn(void *call, struct cm_arena *scratch, struct cm_error *err);
/* The end of most public functions: calls fn under a guard and hands its outcome over. With a
 * model, fn has its lock and may use its arena; that fails where this thread has the lock already:
 * functions of the caller's, such as those of operators, may come back to the model. */
enum cameo_status cm_api_call(const struct cameo_model *model, cm_api_fn *fn, void *call,
                              struct cameo_error *err);
/* The same of what changes the model, which is then described as it is now; what was handed out
 * before stays in its arena. */
enum cameo_status cm_api_change_call(struct cameo_model *model, cm_api_fn *fn, void *call,
                                     struct cameo_error *err);
/* The same of what makes a model of another, whose lock is held: fn sets the file of made, and
 * may use its arena. *out is NULL after a failure. */
typedef enum cm_status cm_api_derive_fn(void *call, struct cameo_model *made,
                                        struct cm_arena *scratch, struct cm_error *err);
enum cameo_status cm_api_derive_call(const struct cameo_model *from, cm_api_derive_fn *fn,
                                     void *call, struct cameo_model **out, struct cameo_error *err);
/* These three where the call does not end yet. */
enum cm_status cm_api_guarded(const struct cameo_model *model, cm_api_fn *fn, void *call,
                              struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_api_change(struct cameo_model *model, cm_api_fn *fn, void *call,
                             struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_api_derive(const struct cameo_model *from, cm_api_derive_fn *fn, void *call,
                             struct cameo_model **out, struct cm_error *err) CM_MUST_CHECK;
/* The model of core operators. */
enum cm_status cm_api_expand_core(const struct cameo_model *model, struct cameo_model **out,
                                  struct cameo_findings **findings,
                                  struct cm_error *err) CM_MUST_CHECK;

/* Hands the outcome of a call to the caller; to may be NULL. */
enum cameo_status cm_api_done(enum cm_status status, const struct cm_error *from,
                              struct cameo_error *to);
/* Ends a public function with CAMEO_BAD_ARGUMENT when a pointer it cannot do without is NULL; the
 * second, when there are count things and nowhere to find them. */
#define CM_API_NEED(pointer, err)                                                                  \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            return cm_api_missing(#pointer, err);                                                  \
    } while (0)
#define CM_API_NEED_ALL(pointer, count, err)                                                       \
    do {                                                                                           \
        if (!(pointer) && (count))                                                                 \
            return cm_api_missing(#pointer, err);                                                  \
    } while (0)
enum cameo_status cm_api_missing(const char *argument, struct cameo_error *to);
/* Copies what the caller's struct holds over the defaults in out. A member added to an option
 * struct must begin at its old size: in its padding, old callers have anything. */
enum cm_status cm_api_options(void *out, size_t size, const void *from,
                              struct cm_error *err) CM_MUST_CHECK;

/* A struct that the caller made for us to fill, if there is one: does it say its size? */
enum cm_status cm_api_check_out(const void *out, struct cm_error *err) CM_MUST_CHECK;
/* Fills it, as far as it goes; all, of size bytes, begins with a struct_size of no meaning. */
void cm_api_give(void *out, const void *all, size_t size);

/* log.c: to be called with nothing locked. */
void cm_api_log(const struct cameo_model *model, enum cameo_log_level level, const char *format,
                ...) CM_PRINTF(3, 4);
/* Of a session or trainer that was made for a backend. */
void cm_api_log_ready(const struct cameo_model *model, const char *what, const char *backend);
void cm_api_log_step(const struct cameo_model *model, const struct cameo_step *step);
void cm_api_log_saved(const struct cameo_model *model, const char *path,
                      const struct cm_save_report *report);

/* The caller's function as the library calls it: a cm_text_write_fn whose to is one of these. */
struct cm_api_writer {
    cameo_write_fn *write;
    void *to;
};
enum cm_status cm_api_write(void *writer, const void *bytes, size_t size,
                            struct cm_error *err) CM_MUST_CHECK;

/* For everything that saves models: options checked and completed, the report handed over. */
enum cm_status cm_api_check_save(const char *path, const struct cameo_save_options *given,
                                 const struct cameo_save_report *report,
                                 struct cameo_save_options *out,
                                 struct cm_error *err) CM_MUST_CHECK;
void cm_api_give_report(const struct cm_save_report *from, struct cameo_save_report *to);

/* Puts the model's path before a reason that is about the model. */
enum cm_status cm_api_about(const struct cameo_model *model, enum cm_status status,
                            struct cm_error *err) CM_MUST_CHECK;

struct cm_module;
/* Spares looking for notes where the import of all nodes has found none; the model is locked. */
void cm_api_saw_order(struct cameo_model *model, const struct cm_module *module);

/* training_info.c: the file, or where algorithms call the inference graph as in ONNX 1.7, one in
 * arena in which they do not; initializers are shared. */
enum cm_status cm_api_today(struct cm_model_file *file, struct cm_arena *arena,
                            struct cm_model_file **out, struct cm_error *err) CM_MUST_CHECK;

/* The lock of a model; false: no memory. */
bool cm_api_lock_init(pthread_mutex_t *lock) CM_MUST_CHECK;
/* cm_api_guarded for those who need the guard itself. */
enum cm_status cm_api_locked(const struct cameo_model *model, cm_guarded_fn *fn, void *arg,
                             struct cm_error *err) CM_MUST_CHECK;

/* transform.c: options of a preparation checked, as train/ takes them; what it reports; texts. */
struct cm_findings;
struct cm_prepare_options;
struct cm_prepare_report;
enum cm_status cm_api_check_prepare(struct cameo_prepare_options *out,
                                    const struct cameo_prepare_options *given,
                                    struct cm_error *err) CM_MUST_CHECK;
struct cm_prepare_options cm_api_prepare_options(const struct cameo_prepare_options *o);
const struct cameo_preparation *cm_api_preparation(struct cm_arena *arena,
                                                   const struct cameo_model *model,
                                                   const struct cm_prepare_report *from);
/* The sentences of the notes. */
const struct cameo_text *cm_api_notes(struct cm_arena *arena, const struct cm_findings *list,
                                      size_t *count);
/* Adds sentences, two at most, to a list that has room: what an opset and an IR version were raised
 * to, and for which operator. before: 0 or what they were. */
struct cm_raised {
    int64_t opset_before, opset, ir_before, ir;
    struct cm_str needed_by; /* may be empty */
};
void cm_api_tell_raised(struct cm_arena *arena, const struct cm_raised *raised,
                        struct cameo_text *list, size_t *count);
/* checking.c: the list as the caller gets it, in a report that lives in arena. */
const struct cameo_findings *cm_api_findings_in(struct cm_arena *arena,
                                                const struct cameo_model *model,
                                                const struct cm_findings *list);

/* Checked options, as onnx/ takes them. */
struct cm_save_options cm_api_save_options(const struct cameo_save_options *options);

/* Who reads and writes the ONNX dialect of MLIR, and writing it: model is file's or a twin of it,
 * with tensors elsewhere. */
extern const struct cm_mlir_form_hooks cm_api_mlir;
enum cm_status cm_api_write_mlir(const struct cm_model_file *file,
                                 const struct cm_model_proto *model, bool generic, size_t elide,
                                 struct cm_arena *scratch, cm_text_write_fn *write, void *to,
                                 struct cm_error *err) CM_MUST_CHECK;

#endif
