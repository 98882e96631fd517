/* What the files of the extension share: the module's state, errors, and values on their way
 * between Python and the library. Compiled against CPython's limited API alone. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_EXT_H
#define CAMEO_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* Py_LIMITED_API comes from cmake/python.cmake; free-threaded builds have none */

#include "cameo.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { EXT_STATUS_COUNT = 10 };

/* One per interpreter. */
struct ext_state {
    PyObject *errors[EXT_STATUS_COUNT]; /* exceptions by status; [0]: cameo.Error */
    PyObject *value_type, *model_type, *session_type, *trainer_type, *cancel_type, *data_type;
    PyObject *events_type, *registry_type, *call_type, *operand_type;
    PyObject *dlpack_name;           /* "__dlpack__" */
    struct ext_numpy *_Atomic numpy; /* from when it is first needed */
};

struct ext_state *ext_state(PyObject *module);
struct ext_state *
ext_state_of(PyTypeObject *type); /* of a type of ours, or of one derived from it */

/* The exception of err's status, borrowed. */
PyObject *ext_error_type(const struct ext_state *state, const struct cameo_error *err);
/* Raises the exception of err's status with its sentence; returns NULL. */
PyObject *ext_raise(const struct ext_state *state, const struct cameo_error *err);
/* The same with everything that stands in the way, as the exception's findings. */
PyObject *ext_raise_with(const struct ext_state *state, const struct cameo_error *err,
                         const struct cameo_findings *findings);
/* The same with findings of the caller's, which are freed. */
PyObject *ext_raise_listed(const struct ext_state *state, const struct cameo_error *err,
                           struct cameo_findings *findings);
/* A list of rows; NULL gives an empty one. */
PyObject *ext_findings(const struct cameo_findings *findings);

/* Whether err came of an exception in a function of the user's: then that is raised. */
bool ext_raise_held(const struct cameo_error *err);
/* Whether a function of the user's kept memory of the call that this thread made; asked once, when
 * the call is over. */
bool ext_take_kept(void);
/* An exception that is set, put aside: memory of other libraries is released by code of theirs,
 * which may run Python and must not meet it. */
struct ext_pending {
    PyObject *type, *value, *traceback;
};
struct ext_pending ext_pending_take(void);
void ext_pending_give(struct ext_pending pending);
/* Of a value that may hold such memory; in Python's threads only. */
void ext_value_free(struct cameo_value *value);

/* Into Python out of a function that the library calls, without the interpreter lock, and back. An
 * exception that an earlier function left for the end of the call waits meanwhile; a new one that
 * is left takes its place. */
struct ext_entry {
    PyGILState_STATE lock;
    PyObject *type, *value, *traceback;
};
void ext_enter(struct ext_entry *entry);
void ext_leave(struct ext_entry *entry);

PyObject *ext_text(struct cameo_text text); /* bytes that are no UTF-8 are replaced */

/* ---- values ---- */

struct ext_value {
    PyObject_HEAD struct cameo_value *value;
    PyObject *owner;   /* a Model in use, whose memory it is; or NULL */
    Py_ssize_t *shape; /* for buffers: dims, then strides in bytes; room, where it is enough */
    Py_ssize_t room[16];
};

/* The element type of a format of the buffer protocol; CAMEO_UNDEFINED: none. */
enum cameo_dtype ext_dtype_of(const char *format, Py_ssize_t width);
/* The type that the buffer protocol sees a tensor's elements as: unsigned numbers for narrow types
 * of whole bytes, CAMEO_UNDEFINED for what it cannot see. */
enum cameo_dtype ext_dtype_as(enum cameo_dtype dtype);

/* Takes value and owner (of ext_model_use, or NULL) over, also where it fails. */
PyObject *ext_value_new(struct ext_state *state, struct cameo_value *value, PyObject *owner);
/* The same as what Python would have: tensors as Value, sequences as list, maps as dict, an
 * optional without content as None, strings as (shape, list of texts). */
PyObject *ext_from_value(struct ext_state *state, const struct cameo_value *value);
/* The same as NumPy would have: arrays over the library's memory. Takes value over. */
PyObject *ext_array(struct ext_state *state, struct cameo_value *value);

/* What is needed of NumPy and of cameo._arrays; NULL after an exception. */
struct ext_numpy {
    PyObject *ndarray;
    PyObject *to_feed;    /* (object, ValueInfo row): what ext_lease takes */
    PyObject *from_value; /* what ext_from_value gave: what the caller gets */
    PyObject *dtypes;     /* a tuple by number of the element type; None: from_value makes it */
};
const struct ext_numpy *ext_numpy(struct ext_state *state);
void ext_numpy_end(struct ext_state *state);

/* Borrows from a Value, or from anything with a buffer or __dlpack__, for as long as the lease
 * lasts. What is borrowed is never part of a result. */
struct ext_lease {
    struct cameo_value *made;        /* to be freed */
    const struct cameo_value *value; /* fed as value, where not NULL */
    struct cameo_tensor tensor;      /* fed as memory otherwise */
    int64_t dims[64], strides[64];
    Py_buffer buffer;
    bool has_buffer;
    PyObject *kept, *name; /* what must live as long; or NULL */
};
bool ext_lease(struct ext_state *state, PyObject *object, struct ext_lease *out);
void ext_lease_end(struct ext_lease *lease);

/* Inputs or outputs as the model declares them. */
struct ext_slot {
    PyObject *name, *row; /* row: of ext_value_info */
    enum cameo_dtype dtype;
    enum cameo_kind kind;
};
struct ext_slots {
    struct ext_slot *items;
    size_t count;
};
typedef const struct cameo_value_info *ext_info_fn(const void *holder, size_t index);
/* False after an exception; to be ended either way. */
bool ext_slots(const void *holder, ext_info_fn *info, size_t count, struct ext_slots *out);
void ext_slots_end(struct ext_slots *slots);
/* By name; slots->count: there is none of that name. */
size_t ext_slot_find(const struct ext_slots *slots, PyObject *name);

/* Feeds out of a dict of names to objects; leases has as many. False after an exception. */
enum { EXT_FEW = 4 }; /* so many need no memory of their own */
struct ext_feeds {
    struct cameo_feed *feeds, few_feeds[EXT_FEW];
    struct ext_lease *leases, few_leases[EXT_FEW];
    Py_ssize_t count;
    bool kept; /* by a function of the user's: then what was fed is left alone for good */
};
bool ext_feeds(struct ext_state *state, PyObject *dict, struct ext_feeds *out);
/* The same with anything that can be understood as what the slot of its name declares. */
bool ext_feeds_for(struct ext_state *state, PyObject *dict, const struct ext_slots *slots,
                   struct ext_feeds *out);
void ext_feeds_end(struct ext_feeds *feeds);
/* Memory for a result: a buffer to be written to. False after an exception. */
bool ext_lease_room(PyObject *object, const struct ext_slot *slot, struct ext_lease *out);

PyObject *
ext_value_info(const struct cameo_value_info *info); /* (name, type, dtype, shape, default) */

/* ---- types ---- */

/* A model as the library holds it. It never changes once others refer to it: what changes a model
 * makes a copy, changes that and gives it back, so that sessions, views and trainers of the old one
 * go on. cameo.Model, in Python, is a name for whichever is the newest. */
struct ext_model {
    PyObject_HEAD struct cameo_model *model;
    PyObject
        *parent; /* what must outlive it: the bytes it was loaded from, the model it was made of */
    PyObject *merged;    /* the model that was joined to it, or NULL */
    unsigned depth;      /* how many models it was made of, one of the other */
    atomic_size_t users; /* sessions, trainers, views, models made of it */
};

extern PyType_Spec ext_value_spec, ext_model_spec, ext_session_spec, ext_trainer_spec,
    ext_cancel_spec, ext_data_spec;
/* The library's cancel in a Cancel, or NULL for None; false after a TypeError. */
bool ext_cancel_of(struct ext_state *state, PyObject *object, struct cameo_cancel **out);
extern PyType_Spec ext_events_spec, ext_registry_spec, ext_call_spec, ext_operand_spec;

/* Takes model over, also where it fails. parent: a Model, whose user it becomes, bytes, or NULL. */
PyObject *ext_model_new(struct ext_state *state, struct cameo_model *model, PyObject *parent);
/* The same of a model that knows a Registry, or None; parent is kept beside it. */
PyObject *ext_model_known(struct ext_state *state, struct cameo_model *model, PyObject *registry,
                          PyObject *parent);
/* The Registry that a Model knows, or None; borrowed. */
PyObject *ext_registry_in(struct ext_state *state, PyObject *model);
/* object as a model; NULL after a TypeError. */
struct ext_model *ext_model_of(struct ext_state *state, PyObject *object);
/* Refers to it for as long as it lives: counts, and keeps alive. Before the interpreter lock is
 * given up for a call that computes with the model: what nobody uses may change in place. */
PyObject *ext_model_use(struct ext_model *model);
void ext_model_leave(PyObject *model); /* NULL is fine */
/* A copy of a model to be changed, with whose memory it goes on; NULL after an exception. */
struct cameo_model *ext_model_edit(struct ext_state *state, struct ext_model *model);
/* The end of an edit: a new Model, or the exception that err tells of. */
PyObject *ext_model_edited(struct ext_state *state, struct ext_model *from,
                           struct cameo_model *edited, enum cameo_status status,
                           const struct cameo_error *err);

/* A Model that was made of another, or the same without that; takes made over, NULL is fine. */
PyObject *ext_model_alone(struct ext_state *state, PyObject *made);

/* A model made of another, and what the library says of it. */
struct ext_edit {
    struct ext_state *state;
    struct ext_model *from;
    struct cameo_model *made;
    enum cameo_status status;
    struct cameo_error err;
};
/* Of a model, without and with a copy in made, used until the end; false after an exception. */
bool ext_edit_from(struct ext_edit *e, PyObject *module, PyObject *object);
bool ext_edit_copy(struct ext_edit *e, PyObject *module, PyObject *object);
/* (Model, report), of which report is taken over; or the exception, with the findings. */
PyObject *ext_edit_end(struct ext_edit *e, PyObject *report, const struct cameo_findings *findings);
PyObject *ext_preparation(const struct cameo_preparation *report); /* a dict */
/* Options by the names of the struct's members, out of a dict, whose texts it borrows. */
bool ext_prepare_options(PyObject *dict, struct cameo_prepare_options *o);

/* Tells Python's logger "cameo" about a model that was loaded. */
void ext_log_to_python(struct cameo_model *model);

/* Small things to build results from; each takes over what it is given. */
PyObject *ext_texts(const struct cameo_text *texts, size_t count); /* a list of str */
bool ext_append(PyObject *list, PyObject *item);                   /* drops item; false: failed */
/* An int as C has it, without calling anything; check PyErr_Occurred. */
long long ext_whole(PyObject *number);
/* A list of texts as C has it, good until ext_names_end; None is no list. False after an exception.
 */
struct ext_names {
    const char **items;
    size_t count;
    PyObject *kept;
};
bool ext_names(PyObject *list, struct ext_names *out);
void ext_names_end(struct ext_names *names);
/* Bytes that the library writes piece by piece. Free bytes with free(). */
struct ext_pieces {
    char *bytes;
    size_t size, room;
};
int ext_take_piece(void *to, const void *bytes, size_t size);

/* Ctrl-C while the library computes on the main thread: Python's handler only notes the signal, so
 * one of ours is put before it for as long as the call lasts and sets the cancel. cancel is NULL on
 * other threads. After the call ext_watch_end tells whether a KeyboardInterrupt, or whatever the
 * handler of the program raises, is now set; status is the outcome of the call. */
struct ext_watch {
    struct cameo_cancel *cancel;
    struct cameo_cancel *outer; /* of the call that this one is nested in */
    struct sigaction before;
    bool armed, is_main, is_callers;
};
void ext_watch_begin(struct ext_watch *watch);
/* The same with a cancel of the caller's, on any thread; NULL: none. */
void ext_watch_begin_with(struct ext_watch *watch, struct cameo_cancel *cancel);
bool ext_watch_end(struct ext_watch *watch, enum cameo_status status);

/* Functions of the module, by file; all take a Model first where they are about one. */
extern PyMethodDef ext_value_functions[], ext_model_functions[], ext_describe_functions[],
    ext_edit_functions[], ext_graph_functions[], ext_derive_functions[], ext_checkpoint_functions[],
    ext_log_functions[], ext_draw_functions[], ext_files_functions[], ext_sizes_functions[],
    ext_vjp_functions[], ext_data_functions[], ext_evaluate_functions[], ext_fit_functions[];
extern PyMethodDef ext_operator_functions[];

#endif
